//! A recording: a switch that was set, by whom, for which pods, and until when.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pellucid_api::rest::debug;
use pellucid_model::selector::LabelSelector;
use pellucid_model::{GangKey, Name, Now, Pod, PodKey};

use crate::rfc3339;

pellucid_model::named! {
    /// The flags that can be set for a limited time; named as the last segment of their path.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Flag {
        /// `s`: score tables.
        Scores = "s",
        /// `f`: refused nodes.
        Failures = "f",
        /// `v`: verbosity of the log.
        Verbosity = "v",
        /// `log`: filter directive of the log.
        Log = "log",
    }
}

impl Flag {
    /// Returns whether the flag records attempts, so that a scope can select pods.
    pub fn records(self) -> bool {
        matches!(self, Self::Scores | Self::Failures)
    }

    /// Returns when what the flag asks for begins to come.
    pub fn when(self) -> &'static str {
        match self {
            Self::Scores => {
                "tables come with the next attempt that places a matching pod; earlier attempts are not recorded"
            }
            Self::Failures => {
                "lines come with the next attempt at a matching pod; earlier attempts are not recorded"
            }
            Self::Verbosity | Self::Log => "takes effect at once",
        }
    }

    /// Returns the value that turns the flag off.
    pub fn off(self) -> &'static str {
        match self {
            Self::Scores => "0",
            Self::Failures => "false",
            Self::Verbosity | Self::Log => "",
        }
    }
}

/// Selects pods. Every field that is present must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Label selector, with the text it was parsed from.
    pub selector: Option<(Arc<str>, LabelSelector)>,
    /// Namespace of the pods.
    pub namespace: Option<Name>,
    /// Namespace and name of a single pod.
    pub pod: Option<PodKey>,
    /// The gang that the pods are members of.
    pub gang: Option<GangKey>,
    /// `spec.schedulerName` of the pods.
    pub profile: Option<Name>,
}

impl Scope {
    /// Returns whether a pod is in the scope.
    pub fn matches(&self, pod: &Pod) -> bool {
        self.namespace.as_ref().is_none_or(|n| *n == pod.key.namespace)
            && self.profile.as_ref().is_none_or(|p| *p == pod.scheduler_name)
            && self.pod.as_ref().is_none_or(|p| *p == pod.key)
            && self.gang.as_ref().is_none_or(|g| pod.member_of() == Some(g))
            && self.selector.as_ref().is_none_or(|(_, s)| s.matches(&pod.labels))
    }

    /// Returns the REST body of the scope.
    pub fn body(&self) -> debug::RecordingScope {
        debug::RecordingScope {
            selector: self.selector.as_ref().map(|(text, _)| text.to_string()),
            namespace: self.namespace.as_ref().map(ToString::to_string),
            pod: self.pod.as_ref().map(ToString::to_string),
            gang: self.gang.as_ref().map(ToString::to_string),
            profile: self.profile.as_ref().map(ToString::to_string),
        }
    }
}

/// The settings of the log before a recording changed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogBefore {
    /// Verbosity, as klog's number.
    pub verbosity: u8,
    /// Filter directive.
    pub directive: String,
}

/// A switch that is set. The scheduling thread and the switches share it.
#[derive(Debug)]
pub struct Recording {
    /// Number of the recording; 0 for the raw value of a flag.
    pub id: u64,
    /// The flag that is set.
    pub flag: Flag,
    /// Value of the flag.
    pub value: Arc<str>,
    /// Number of rows to record of each score table; 0 for other flags.
    pub rows: usize,
    /// The pods whose attempts are recorded.
    pub scope: Scope,
    /// Who wants the recording.
    pub owner: Arc<str>,
    /// Address and user agent that the request came from.
    pub set_by: Arc<str>,
    /// When it was set.
    pub set_at: Now,
    /// When it ends, on the monotonic clock; `None` for a raw value.
    pub expires: Option<Duration>,
    /// Maximum number of attempts to record; `None` for no limit.
    pub most: Option<u64>,
    /// The log settings to restore when it ends.
    pub before: Option<LogBefore>,
    pub(super) records: AtomicU64,
    pub(super) ended: AtomicBool,
}

impl Recording {
    /// Returns whether its time has run out.
    pub fn is_due(&self, now: Now) -> bool {
        self.expires.is_some_and(|at| at <= now.monotonic)
    }

    /// Returns whether an attempt at a pod is to be recorded.
    pub fn wants(&self, flag: Flag, pod: &Pod, now: Now) -> bool {
        self.flag == flag && !self.is_due(now) && self.scope.matches(pod)
    }

    /// Returns the number of recorded attempts.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Counts a record, unless the recording has ended. Returns whether it counts, and whether it was the last one.
    pub(super) fn count(&self) -> (bool, bool) {
        if self.ended.load(Ordering::Relaxed) {
            return (false, false);
        }
        let records = self.records.fetch_add(1, Ordering::Relaxed) + 1;
        (true, self.most.is_some_and(|most| records >= most))
    }

    /// Returns the REST body of the recording.
    pub fn body(&self, now: Now) -> debug::Recording {
        let records = self.records();
        debug::Recording {
            id: self.id,
            flag: self.flag.as_str().into(),
            value: self.value.to_string(),
            active: !self.ended.load(Ordering::Relaxed) && !self.is_due(now),
            scope: self.scope.body(),
            owner: self.owner.to_string(),
            set_by: self.set_by.to_string(),
            set_at: rfc3339(self.set_at.wall),
            expires_at: self.expires.map(|at| rfc3339(self.set_at.wall_at(at))),
            records,
            records_left: self.most.map(|most| most.saturating_sub(records)),
            when: self.flag.when().into(),
        }
    }
}
