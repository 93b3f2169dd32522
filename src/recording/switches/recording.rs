//! A switch that was set: who set it, for which pods, and when it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pellucid_api::rest::debug;
use pellucid_model::selector::LabelSelector;
use pellucid_model::{GangKey, Name, Now, Pod, PodKey};

use crate::rfc3339;

/// The flags that can be set for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// `s`: score tables.
    Scores,
    /// `f`: refused nodes.
    Failures,
    /// `v`: verbosity of the log.
    Verbosity,
    /// `log`: directive of the log.
    Log,
}

impl Flag {
    /// Returns the last segment of its path.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scores => "s",
            Self::Failures => "f",
            Self::Verbosity => "v",
            Self::Log => "log",
        }
    }

    /// Whether it records attempts, of pods that a scope can name.
    pub fn records(self) -> bool {
        matches!(self, Self::Scores | Self::Failures)
    }

    /// Returns the value that means off.
    pub fn off(self) -> &'static str {
        match self {
            Self::Scores => "0",
            Self::Failures => "false",
            Self::Verbosity | Self::Log => "",
        }
    }
}

/// Which pods; what is absent does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Label selector, with the text it was read from.
    pub selector: Option<(Arc<str>, LabelSelector)>,
    /// Namespace.
    pub namespace: Option<Name>,
    /// Pod.
    pub pod: Option<PodKey>,
    /// Gang.
    pub gang: Option<GangKey>,
    /// `spec.schedulerName`.
    pub profile: Option<Name>,
}

impl Scope {
    /// Whether a pod is in it.
    pub fn matches(&self, pod: &Pod) -> bool {
        self.namespace.as_ref().is_none_or(|n| *n == pod.key.namespace)
            && self.profile.as_ref().is_none_or(|p| *p == pod.scheduler_name)
            && self.pod.as_ref().is_none_or(|p| *p == pod.key)
            && self.gang.as_ref().is_none_or(|g| pod.member_of() == Some(g))
            && self.selector.as_ref().is_none_or(|(_, s)| s.matches(&pod.labels))
    }

    /// Returns it as bodies show it.
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

/// What the log was set to before a recording changed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogBefore {
    /// The klog number.
    pub verbosity: u8,
    /// The directive.
    pub directive: String,
}

/// See the module.
#[derive(Debug)]
pub struct Recording {
    /// Number; 0 for the raw value of a flag.
    pub id: u64,
    /// Flag.
    pub flag: Flag,
    /// Its value.
    pub value: Arc<str>,
    /// Rows of score tables, when they are what is recorded.
    pub rows: usize,
    /// Which pods.
    pub scope: Scope,
    /// Who wanted it.
    pub owner: Arc<str>,
    /// Where the request came from.
    pub set_by: Arc<str>,
    /// When.
    pub set_at: Now,
    /// When it ends, on the monotonic clock.
    pub expires: Option<Duration>,
    /// How many attempts it records at most.
    pub most: Option<u64>,
    /// What to go back to at its end.
    pub before: Option<LogBefore>,
    pub(super) records: AtomicU64,
    pub(super) ended: AtomicBool,
}

impl Recording {
    /// Whether its time has come.
    pub fn is_due(&self, now: Now) -> bool {
        self.expires.is_some_and(|at| at <= now.monotonic)
    }

    /// Whether an attempt at a pod is to be recorded.
    pub fn wants(&self, flag: Flag, pod: &Pod, now: Now) -> bool {
        self.flag == flag && !self.is_due(now) && self.scope.matches(pod)
    }

    /// Returns how many attempts were recorded.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Counts a record, unless it has ended. Returns whether it counts, and whether it was the last one.
    pub(super) fn count(&self) -> (bool, bool) {
        if self.ended.load(Ordering::Relaxed) {
            return (false, false);
        }
        let records = self.records.fetch_add(1, Ordering::Relaxed) + 1;
        (true, self.most.is_some_and(|most| records >= most))
    }

    /// Returns it as bodies show it.
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
        }
    }
}
