//! The core without I/O: inputs in, orders out, on a clock of numbers.
//!
//! `placing` follows one pod through its life, `waking` what brings a refused one back, `wakeups` that nothing
//! else does and that it is told, `objects` what watches report, `preempting` nominations and evictions, `volumes`
//! what is bound before a pod is, `relations` what spread and affinity mean, `labels` that keys of selectors come and go, `trials` that what is tried out is undone,
//! `unlucky` what goes wrong on the way, `snapshots` what readers see, `recorded` what the flight recorder is told,
//! `recording` what flags record, `dumps` that a state can be rebuilt, `random` what must hold whatever happens.

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
