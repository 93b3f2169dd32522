//! The state of the cluster: nodes and pods in all stages, as columns and pages.
//!
//! PURE, one writer. [`state::Cluster`] holds it, `apply` turns watch events into changes, `undo` takes
//! changes back, [`Cluster::fork`](state::Cluster::fork) makes what readers see. What plugins derive from
//! nodes and pods hangs on it as [`derived::DerivedState`].

mod apply;
pub mod changes;
pub mod columns;
mod content_hash;
pub mod derived;
pub mod event;
pub mod gangs;
pub mod input;
mod nominator;
pub mod objects;
pub mod preemptions;
mod selected_keys;
pub mod shapes;
mod stage;
pub mod state;
mod undo;

pub use columns::{Columns, ResourceIdx};
pub use derived::DerivedState;
pub use event::{ClusterEvent, EventKinds, NodeChange};
pub use gangs::{Gang, Gangs};
pub use input::Input;
pub use nominator::{NominatedBy, Nomination, Nominator};
pub use objects::Objects;
pub use selected_keys::SelectedKeys;
pub use shapes::ShapeId;
pub use stage::{Hold, Stage};
pub use state::{Cluster, NodeSlot, PodRecord};
