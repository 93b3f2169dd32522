//! Pellucid, a Kubernetes scheduler whose every decision can be read over HTTP while it runs.
//!
//! The rooms in reading order. Each is a crate below `src/` with a dependency table that says which rooms it may know;
//! here they have their short names. *Pure* rooms are functions from values to values: no clock, no I/O, no wire types.
//! Effects live in the *I/O rooms*. ARCHITECTURE.md is the map.

// The pure rooms. (Blank lines keep the reading order; the formatter sorts neighbours.)

pub use pellucid_model as model;

pub use pellucid_cluster as cluster;

pub use pellucid_queue as queue;

pub use pellucid_framework as framework;

pub use pellucid_plugins as plugins;

pub use pellucid_recording as recording;

pub use pellucid_cycle as cycle;

pub use pellucid_diagnosis as diagnosis;

pub use pellucid_config as config;

// The I/O rooms.

pub use pellucid_kubernetes as kubernetes;

pub use pellucid_http as http;

pub use pellucid_sandbox as sandbox;

pub use pellucid_replay as replay;

pub use pellucid_client as client;

pub use pellucid_webhook as webhook;

pub use pellucid_app as app;

// What starts it, with all plugins.

pub mod demo;

pub mod playback;

pub mod cli;

// What a plugin from outside names.

pub mod prelude;

/// The commit that this program is built from; empty when that is not known.
pub const GIT_COMMIT: &str = env!("PELLUCID_GIT_COMMIT");
