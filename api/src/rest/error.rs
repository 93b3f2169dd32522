//! The body of every refused request.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Says why a request was not answered. Programs read `code`, people read `message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// A stable word for the kind of failure, such as `NodeNotFound`.
    #[schema(example = "NodeNotFound")]
    pub code: String,
    /// What is wrong and, where it is known, what to do about it. The wording may change.
    pub message: String,
    /// Names this request in the log; also in the header `X-Request-Id`.
    #[schema(example = "18a2f0c4-17")]
    pub request_id: String,
}
