//! The plugin framework: extension points, what a plugin sees, and what it returns.
//!
//! PURE. The crate knows no plugin by name. A plugin sees all nodes at once: [`Filter`](plugin::Filter) removes nodes
//! from a set, each with a [`Cause`], and [`Score`](plugin::Score) fills one integer per node. Invariant, tested for
//! every plugin: filtering a set is the union of filtering its members, and so are raw scores. Start at
//! [`Plugin`](plugin::Plugin). In reading order:
//!
//! - [`view`]: what a plugin sees of the cluster;
//! - [`plugin`]: the traits, one per extension point;
//! - [`registration`], [`args`]: a plugin's entry in the registry, and how its arguments are read;
//! - [`post_filter`]: PostFilter, what it can try and returns, and disruption budgets;
//! - [`topology`], [`merge`]: hints about NUMA nodes, and what they lead to together;
//! - [`whole_cause`]: every reason for which a plugin refuses a node;
//! - [`advice`]: what a plugin tells people about one pod, and how it groups pods;
//! - [`overrides`]: nodes that one pod sees without some pods;
//! - [`victim_search`]: the search for victims that PostFilter plugins share;
//! - [`controllers`]: states that write objects of their own accord;
//! - [`endpoint`], [`list`], [`bodies`], [`gauges`]: what a plugin lets people read;
//! - [`registry`]: whether the plugins of a process get along;
//! - [`profile`], [`gangs`]: the enabled plugins of a scheduler name, and its gang rules.

pub mod advice;
pub mod args;
pub mod bodies;
pub mod endpoint;
mod factory;
pub mod gangs;
pub mod gauges;
pub mod list;
pub mod merge;
pub mod overrides;
pub mod plugin;
pub mod post_filter;
pub mod profile;
pub mod registration;
pub mod registry;
pub mod reserve;
pub mod topology;
pub mod victim_search;
pub mod view;
pub mod whole_cause;

pub use advice::{Advice, PodGroups};
pub use gangs::GangPolicy;
pub use overrides::{Absent, NodeOverride, NodeOverrides, Rooms};
pub use pellucid_model::cause::{Cause, CauseId, Causes, Code, Reason, nodes_message};
pub use pellucid_model::manifest;
pub use plugin::{
    Bind, Concern, CycleValue, DeclaredKeys, Evaluator, Filter, Hint, Hints, Nodes, Permit, Permitted,
    Plugin, PluginFactory, PostBind, PostFilter, PreBind, PreBound, PreEnqueue, PreFilter, PreFiltered,
    PreScore, PreScored, QueueSort, Reads, Reservation, Reserve, Score, VictimGuard,
};
pub use post_filter::PostFiltered;
pub use registration::controllers::{Controller, Right};
pub use registration::{Registration, controllers};
pub use topology::{NumaAffinity, TopologyHints};
pub use view::View;
pub use whole_cause::{EveryReason, NodeReason};
