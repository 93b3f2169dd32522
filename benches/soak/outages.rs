//! Faults between the scheduler and the API server: single faults all the time, and outages of the whole server.
//!
//! The end of an outage is set when it begins, so that effects of an outage can be separated from other problems. The
//! sandbox's own clients, which create the load, are not affected by faults.

use std::time::Duration;

use parking_lot::Mutex;
use pellucid::sandbox::{Fault, Match};

use super::state::Soak;

/// Time after an outage during which problems count as part of its recovery.
pub(crate) const RECOVERY: Duration = Duration::from_secs(15);
/// Time after an outage during which the scheduler may be unready.
pub(crate) const READY_AGAIN: Duration = Duration::from_secs(20);

/// One outage. Times count from the start of the load.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    pub(crate) kind: &'static str,
    /// Whether all connections were closed at the start.
    pub(crate) cuts: bool,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    /// Time from the end of the outage until the first pod was bound.
    pub(crate) first_bound: Option<Duration>,
    /// Time from the end until the last pod that was created during the outage was bound.
    pub(crate) backlog_bound: Option<Duration>,
    /// Time after the end at which readiness was last denied.
    pub(crate) unready: Duration,
    /// Whether readiness was denied at all.
    pub(crate) was_unready: bool,
}

/// All outages so far, in order.
#[derive(Default)]
pub(crate) struct Outages(Mutex<Vec<Outage>>);

impl Outages {
    pub(crate) fn all(&self) -> Vec<Outage> {
        self.0.lock().clone()
    }

    /// Returns whether an outage, including its recovery time, overlaps with a period.
    pub(crate) fn touch(&self, from: Duration, to: Duration, recovery: Duration) -> bool {
        self.0.lock().iter().any(|outage| outage.from <= to && from <= outage.to + recovery)
    }

    /// Records that a plain pod was bound.
    pub(crate) fn note_bound(&self, created: Duration, bound: Duration) {
        for outage in self.0.lock().iter_mut().filter(|outage| outage.to <= bound) {
            let after = bound - outage.to;
            outage.first_bound.get_or_insert(after);
            if created < outage.to && created >= outage.from {
                outage.backlog_bound = outage.backlog_bound.max(Some(after));
            }
        }
    }

    /// Records that readiness was denied.
    pub(crate) fn note_unready(&self, at: Duration) {
        if let Some(outage) = self.0.lock().last_mut() {
            outage.was_unready = true;
            outage.unready = outage.unready.max(at.saturating_sub(outage.to));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Hang,
    BlackHole,
    Later,
    Unavailable,
    LongUnavailable,
    Reset,
    Close,
    EndWatch,
    Restart,
    RestartWithoutHistory,
}

const KINDS: [Kind; 10] = [
    Kind::Hang,
    Kind::BlackHole,
    Kind::Later,
    Kind::Unavailable,
    Kind::Reset,
    Kind::Close,
    Kind::EndWatch,
    Kind::Restart,
    Kind::RestartWithoutHistory,
    Kind::LongUnavailable,
];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Hang => "hangs, then answers",
            Self::BlackHole => "hangs, never answers",
            Self::Later => "429, Retry-After 3600",
            Self::Unavailable => "503",
            Self::LongUnavailable => "503 for long",
            Self::Reset => "connections reset",
            Self::Close => "connections closed at once",
            Self::EndWatch => "watches end at once",
            Self::Restart => "restart",
            Self::RestartWithoutHistory => "restart, changes gone",
        }
    }

    /// Starts the fault for a duration.
    fn begin(self, soak: &Soak, length: Duration, cuts: bool) {
        let faults = soak.sandbox.faults();
        let during = |which, fault| faults.during(which, fault, length);
        match self {
            Self::Hang => during(Match::all(), Fault::Hang),
            Self::BlackHole => during(Match::all(), Fault::BlackHole),
            Self::Later => during(Match::all(), Fault::RetryAfter(429, 3600)),
            Self::Unavailable | Self::LongUnavailable => during(Match::all(), Fault::Status(503)),
            Self::Reset => during(Match::all(), Fault::Reset),
            Self::Close => during(Match::all(), Fault::Drop),
            Self::EndWatch => {
                during(Match { is_watch: Some(true), ..Match::new("GET", "") }, Fault::EndWatch)
            }
            Self::Restart => soak.sandbox.restart(length),
            Self::RestartWithoutHistory => {
                soak.sandbox.restart(length);
                soak.sandbox.compact(soak.sandbox.revision() + 1000);
            }
        }
        if cuts {
            soak.sandbox.restart(Duration::ZERO);
        }
    }
}

/// Causes outages one after another; each kind occurs once before any kind repeats.
pub(crate) fn keep_failing(soak: &Soak) {
    let mut rng = soak.rng(1);
    let is_long = soak.options.is_long();
    let (least, most) = if is_long { (45_000, 120_000) } else { (18_000, 25_000) };
    let mut bag: Vec<Kind> = Vec::new();
    loop {
        if !soak.pause(rng.millis(least, most)) {
            return;
        }
        if bag.is_empty() {
            bag = KINDS.into_iter().filter(|kind| is_long || *kind != Kind::LongUnavailable).collect();
        }
        let kind = bag.swap_remove(rng.below(bag.len()));
        let length = match kind {
            Kind::LongUnavailable => Duration::from_secs(90),
            // A probe is sent every 5 s. A black hole that no probe detects is detected after 80 s of silence.
            Kind::BlackHole if !is_long => rng.millis(7_000, 10_000),
            Kind::BlackHole => rng.millis(7_000, 30_000),
            _ if is_long => rng.millis(5_000, 30_000),
            _ => rng.millis(3_000, 8_000),
        };
        // Watches that stay open receive all events; closed ones have to reconnect.
        let can_cut =
            !matches!(kind, Kind::BlackHole | Kind::Reset | Kind::Restart | Kind::RestartWithoutHistory);
        let cuts = can_cut && (kind == Kind::EndWatch || rng.chance(50));
        let from = soak.now();
        if from + length + RECOVERY > soak.options.length {
            return;
        }
        soak.outages.0.lock().push(Outage {
            kind: kind.name(),
            cuts,
            from,
            to: from + length,
            first_bound: None,
            backlog_bound: None,
            unready: Duration::ZERO,
            was_unready: false,
        });
        kind.begin(soak, length, cuts);
        if !soak.pause(length + RECOVERY) {
            return;
        }
    }
}

/// Causes faults of single requests and watches, one every few seconds.
pub(crate) fn keep_stumbling(soak: &Soak) {
    let mut rng = soak.rng(2);
    let faults = soak.sandbox.faults();
    while soak.pause(rng.millis(1_000, 5_000)) {
        // Do not add more while many faults are still pending.
        if faults.pending() > 20 {
            continue;
        }
        let writes = [
            ("POST", "/binding"),
            ("PATCH", "/status"),
            ("POST", "/events"),
            ("POST", "/eviction"),
            ("POST", ""),
        ];
        let kinds = ["pods", "pods", "nodes", "podgroups"];
        let write = |rng: &mut super::rng::Rng| {
            let (method, path) = rng.pick(&writes).copied().unwrap_or_default();
            Match::new(method, path)
        };
        let watch = Match::watches(rng.pick(&kinds).copied().unwrap_or_default());
        let (name, which, fault) = match rng.below(12) {
            0 => ("409", write(&mut rng), Fault::Status(409)),
            1 => ("410 of a watch", watch, Fault::GoneEvent),
            2 => ("503 after commit", write(&mut rng), Fault::StatusAfterCommit(503)),
            3 => ("dropped after commit", write(&mut rng), Fault::DropAfterCommit),
            4 => ("dropped", write(&mut rng), Fault::Drop),
            5 => ("broken off in a line", watch, Fault::DropMidLine),
            6 => ("event twice", watch, Fault::DuplicateEvent),
            // No real server sends this. The kind is relisted after one second, so do not use the kind of plain pods.
            7 => ("event not readable", Match::watches("podgroups"), Fault::UndecodableEvent),
            8 => ("reset", write(&mut rng), Fault::Reset),
            9 => ("500", write(&mut rng), Fault::Status(500)),
            10 => ("late", write(&mut rng), Fault::Delay(rng.millis(10, 2_000))),
            _ => ("silent watch", Match::watches("poddisruptionbudgets"), Fault::SilentWatch),
        };
        faults.next(which, fault);
        soak.count(format!("fault {name}"));
    }
}
