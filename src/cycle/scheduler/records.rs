//! What is recorded of attempts and pods. No decision reads it, except for the node in the last attempt.

use std::sync::Arc;

use pellucid_model::{Mirror, Pages};
use pellucid_queue::Wakeup;
use pellucid_recording::Refusal;
use pellucid_recording::flight::Flight;
use pellucid_recording::meter::Meter;
use pellucid_recording::recorder::Recorder;
use pellucid_recording::switches::Switches;

use super::Counters;
use super::last_attempt::LastAttempt;
use super::leaving::Leaving;

/// Owns the records.
pub(crate) struct Records {
    /// The last attempt at each pod, by its slot.
    pub(crate) last_attempts: Mirror<LastAttempt>,
    /// What woke a pod that has its place by now, with its profile; of those that something woke.
    pub(crate) wakeups: Pages<Option<(usize, Arc<Wakeup>)>>,
    /// Score tables and refused nodes, while a switch asks for them.
    pub(crate) recorder: Recorder,
    pub(crate) flight: Flight,
    pub(crate) leaving: Leaving,
    pub(crate) meter: Meter,
    pub(crate) counters: Counters,
    /// The newest refusal that PostFilter added a note to, without and with the note: equal pods share the second.
    pub(crate) last_noted: Option<(Arc<Refusal>, Arc<Refusal>)>,
}

impl Records {
    pub(crate) fn new(switches: &Switches) -> Self {
        Self {
            last_attempts: Mirror::default(),
            wakeups: Pages::default(),
            recorder: Recorder::default(),
            flight: Flight::new(switches.recorder_bytes()).numbered_from(switches.recorder_first()),
            leaving: Leaving::default(),
            meter: Meter::default(),
            counters: Counters::default(),
            last_noted: None,
        }
    }
}
