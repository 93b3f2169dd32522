//! The state of the cluster: nodes, the pods on them and the pods that wait, gangs, nominations and preemptions.
//!
//! PURE, and written by one thread. The crate knows neither plugins nor the queue. Start at [`state::Cluster`]: watch
//! events change it, overlays undo changes, and [`Cluster::fork`](state::Cluster::fork) makes a copy for readers.
//!
//! - [`state`]: the state itself, and `place` and `release`, through which every change of node usage goes;
//! - `stage`, `hold`, `given`: the stage of a pod between queue and node, what plugins hold for it, and what it gives up for
//!   others;
//! - [`input`], `apply`, [`event`]: what the API server reports, how it changes the state, and what changed;
//! - [`columns`], `resource_table`: allocatable and requested amounts per node, in pages;
//! - [`shapes`], `selected_keys`: which pods count as equal;
//! - `undo`, [`changes`]: the undo log of overlays, and the log of changed nodes for caches;
//! - [`derived`]: state that plugins derive from nodes and pods;
//! - [`objects`], `custom`, `nominator`, [`preemptions`], [`gangs`]: the rest of the state;
//! - `content_hash`: one hash of the state, to compare two of them.

mod apply;
pub mod changes;
pub mod columns;
mod content_hash;
mod custom;
pub mod derived;
pub mod event;
pub mod gangs;
mod given;
mod hold;
pub mod input;
mod nominator;
pub mod objects;
mod outside;
pub mod preemptions;
mod selected_keys;
pub mod shapes;
mod stage;
pub mod state;
mod undo;
mod withdrawn;

pub use apply::{DueWrite, StateId};
pub use columns::{Columns, ResourceIdx};
pub use custom::CustomObjects;
pub use derived::DerivedState;
pub use event::{ClusterEvent, EventKinds, NodeChange};
pub use gangs::{Gang, Gangs};
pub use given::Given;
pub use hold::{Hold, HoldValue, Marks, Place, due_marks_of, marks_of};
pub use input::Input;
pub use nominator::{NominatedBy, Nomination, Nominator};
pub use objects::Objects;
pub use outside::{OutsidePod, OutsidePods};
pub use selected_keys::SelectedKeys;
pub use shapes::ShapeId;
pub use stage::Stage;
pub use state::{Cluster, NodeSlot, PodRecord};
