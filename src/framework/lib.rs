//! The framework: extension points, what a plugin sees, and what it may say.
//!
//! PURE. A plugin sees all nodes at once: [`Filter`](plugin::Filter) removes nodes from a set, one cause
//! each, and [`Score`](plugin::Score) fills one integer per node. Two laws hold for every plugin and are
//! tested: filtering a set is the union of filtering its members, and so are raw scores. Reading order:
//! `view`, `plugin`, `endpoint`, `profile`; what a plugin says is made of [`Cause`]s.

pub mod bodies;
pub mod endpoint;
pub mod gangs;
pub mod plugin;
pub mod post_filter;
pub mod profile;
pub mod view;

pub use pellucid_model::cause::{Cause, CauseId, Causes, Code, Reason, nodes_message};
pub use plugin::{
    Bind, CycleValue, Evaluator, Filter, Hint, Hints, Nodes, Permit, Permitted, Plugin, PluginFactory,
    PostFilter, PreBind, PreBound, PreEnqueue, PreFilter, PreFiltered, PreScore, PreScored, QueueSort, Reads,
    Reserve, Score,
};
pub use post_filter::PostFiltered;
pub use view::View;
