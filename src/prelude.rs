//! What the file of a plugin from outside usually names, for `use pellucid::prelude::*`.
//!
//! Only names of other rooms; nothing is defined here.

pub use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};
pub use pellucid_api::rest::BodySchema;

pub use crate::cli::run::{RunArgs, run_with};
pub use crate::cluster::derived::{HookContext, Placed, Touched};
pub use crate::cluster::{ClusterEvent, DerivedState, EventKinds, HoldValue, Marks, NodeChange, Stage};
pub use crate::framework::args::Problems;
pub use crate::framework::endpoint::{Endpoint, Query, QueryKind, ReadContext, ReadError};
pub use crate::framework::manifest::{Field, FieldError};
pub use crate::framework::plugin::*;
pub use crate::framework::{Cause, CauseId, Causes, Code, Reason, Registration, View, points};
pub use crate::model::custom::{CustomKind, CustomKindRef};
pub use crate::model::effect::{
    BindingMarks, ObjectPart, ObjectRef, ObjectWrite, PodRef, Precondition, WriteOutcome,
};
pub use crate::model::requests::ResourceList;
pub use crate::model::selector::Labels;
pub use crate::model::{
    CowMap, CustomObject, Name, Node, NodeIdx, Now, Object, ObjectKind, Pod, PodId, PodKey, PodSpec,
};
