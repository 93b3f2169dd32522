//! The core without I/O: inputs in, effects out, on a simulated clock.
//!
//! - `placing`: one pod through its life
//! - `waking`: what wakes a refused pod; `wakeups`: that nothing else does, and that wake-ups are reported
//! - `objects`: objects that watches report
//! - `preempting`: nominations and evictions
//! - `volumes`: volumes that are bound before a pod is
//! - `relations`: topology spread and pod affinity
//! - `labels`: label keys that selectors start and stop using
//! - `trials`: trial placements that are undone
//! - `unlucky`: failures on the way
//! - `snapshots`: what readers see
//! - `recorded`: entries of the flight recorder; `recording`: what flags record
//! - `dumps`: rebuilding a state from a dump
//! - `random`: what must hold in any history

#[path = "common/cluster.rs"]
mod cluster;
#[path = "common/driver.rs"]
mod driver;
#[path = "common/seen.rs"]
mod seen;

#[path = "core/made.rs"]
mod made;

#[path = "core/dumps.rs"]
mod dumps;
#[path = "core/labels.rs"]
mod labels;
#[path = "core/objects.rs"]
mod objects;
#[path = "core/placing.rs"]
mod placing;
#[path = "core/preempting.rs"]
mod preempting;
#[path = "core/random.rs"]
mod random;
#[path = "core/recorded.rs"]
mod recorded;
#[path = "core/recording.rs"]
mod recording;
#[path = "core/relations.rs"]
mod relations;
#[path = "core/snapshots.rs"]
mod snapshots;
#[path = "core/trials.rs"]
mod trials;
#[path = "core/unlucky.rs"]
mod unlucky;
#[path = "core/volumes.rs"]
mod volumes;
#[path = "core/wakeups.rs"]
mod wakeups;
#[path = "core/waking.rs"]
mod waking;
