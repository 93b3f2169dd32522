//! The list of the paths that a server serves. Descriptions are in the OpenAPI document, not here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// HTTP method to sorted path templates, parameters written `:name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct Services(pub BTreeMap<String, Vec<String>>);
