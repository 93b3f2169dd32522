//! Records of attempts and pods. Decisions read only the node of the last attempt.

pub(crate) mod draft;
pub(crate) mod events;
pub mod last_attempt;
pub(crate) mod leaving;
pub(crate) mod metering;

use std::sync::Arc;

use pellucid_model::{Mirror, Pages};
use pellucid_queue::Wakeup;
use pellucid_recording::Refusal;
use pellucid_recording::flight::FlightRecorder;
use pellucid_recording::meter::Meter;
use pellucid_recording::recorder::Recorder;
use pellucid_recording::switches::Switches;

use crate::scheduler::Counters;
use crate::scheduler::records::last_attempt::LastAttempt;
use crate::scheduler::records::leaving::Leaving;

/// Owns the records.
pub(crate) struct Records {
    /// The last attempt at each pod, by pod slot.
    pub(crate) last_attempts: Mirror<LastAttempt>,
    /// For placed pods that an event had woken: the profile and the wake-up, by pod slot.
    pub(crate) wakeups: Pages<Option<(usize, Arc<Wakeup>)>>,
    /// Recorded score tables and refused nodes, while a switch wants them.
    pub(crate) recorder: Recorder,
    pub(crate) flight: FlightRecorder,
    pub(crate) leaving: Leaving,
    pub(crate) meter: Meter,
    pub(crate) counters: Counters,
    /// The newest refusal that PostFilter added a note to, without and with the note. Equal pods share the second one.
    pub(crate) last_noted: Option<(Arc<Refusal>, Arc<Refusal>)>,
}

impl Records {
    pub(crate) fn new(switches: &Switches) -> Self {
        Self {
            last_attempts: Mirror::default(),
            wakeups: Pages::default(),
            recorder: Recorder::default(),
            flight: FlightRecorder::new(switches.recorder_bytes()).numbered_from(switches.recorder_first()),
            leaving: Leaving::default(),
            meter: Meter::default(),
            counters: Counters::default(),
            last_noted: None,
        }
    }
}
