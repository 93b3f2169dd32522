//! The core without I/O: inputs in, effects out, on a simulated clock.
//!
//! - `placing`: one pod through its life
//! - `waking`: what wakes a refused pod; `wakeups`: that nothing else does, and that wake-ups are reported
//! - `objects`: objects that watches report
//! - `preempting`: nominations and evictions; `victims`: a search for victims by the rules of another plugin
//! - `volumes`: volumes that are bound before a pod is; `writes`: waits and writes of other plugins
//! - `storage`: the plugins for volumes, devices and features
//! - `relations`: topology spread and pod affinity
//! - `aligning`: hints about NUMA nodes; `overrides`: nodes that a pod sees without some pods
//! - `leading`: standing by and beginning to lead
//! - `labels`: label keys that selectors start and stop using
//! - `trials`: trial placements that are undone
//! - `unlucky`: failures on the way; `echoes`: our own writes that come back late
//! - `shadow`: what the decisions of a shadowed scheduler are to us
//! - `snapshots`: what readers see
//! - `recorded`: entries of the flight recorder; `recording`: what flags record
//! - `dumps`: rebuilding a state from a dump; `plugin_dumps`: with objects of plugins' kinds, and time
//! - `reasons`: reasons that a plugin brings; `refusals`: those of a shape that is tried again
//! - `random`: what must hold in any history

mod aligning;
mod dumps;
mod echoes;
mod labels;
mod leading;
mod objects;
mod overrides;
mod placing;
mod plugin_dumps;
mod preempting;
mod random;
mod reasons;
mod recorded;
mod recording;
mod refusals;
mod relations;
mod shadow;
mod snapshots;
mod storage;
mod trials;
mod unlucky;
mod victims;
mod volumes;
mod wakeups;
mod waking;
mod writes;
