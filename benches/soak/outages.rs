//! What goes wrong between scheduler and API server: single faults all the time, and outages of the whole server.
//!
//! An outage is known by its end, which is set when it begins, so that what happened beside it can be told apart from what
//! happened because of it. The sandbox's own clients, which make the load, do not meet the faults.

use std::time::Duration;

use parking_lot::Mutex;
use pellucid::sandbox::{Fault, Match};

use super::state::Soak;

/// What happened within so long after an outage is judged as its recovery.
pub(crate) const RECOVERY: Duration = Duration::from_secs(15);
/// Readiness may be denied so long after an outage.
pub(crate) const READY_AGAIN: Duration = Duration::from_secs(20);

/// One outage, in time since the beginning of the load.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    pub(crate) kind: &'static str,
    /// Whether all connections were closed at its beginning.
    pub(crate) cuts: bool,
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    /// From its end until the first pod was bound.
    pub(crate) first_bound: Option<Duration>,
    /// From its end until the last pod was bound that was created before the end.
    pub(crate) backlog_bound: Option<Duration>,
    /// How long readiness was denied after the end.
    pub(crate) unready: Duration,
    /// Whether readiness was denied at all.
    pub(crate) was_unready: bool,
}

/// All outages so far.
#[derive(Default)]
pub(crate) struct Outages(Mutex<Vec<Outage>>);

impl Outages {
    pub(crate) fn all(&self) -> Vec<Outage> {
        self.0.lock().clone()
    }

    /// Says whether an outage, or the time of recovery after one, was at some time between two.
    pub(crate) fn touch(&self, from: Duration, to: Duration, recovery: Duration) -> bool {
        self.0.lock().iter().any(|outage| outage.from <= to && from <= outage.to + recovery)
    }

    /// A plain pod was bound.
    pub(crate) fn note_bound(&self, created: Duration, bound: Duration) {
        for outage in self.0.lock().iter_mut().filter(|outage| outage.to <= bound) {
            let after = bound - outage.to;
            outage.first_bound.get_or_insert(after);
            if created < outage.to && created >= outage.from {
                outage.backlog_bound = outage.backlog_bound.max(Some(after));
            }
        }
    }

    /// Readiness was denied.
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

    /// Lets it happen.
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

/// Lets one outage after the other happen, each kind once before one comes again.
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
            // A probe comes every 5 s. What is swallowed and not noticed by one is noticed after 80 s of silence.
            Kind::BlackHole if !is_long => rng.millis(7_000, 10_000),
            Kind::BlackHole => rng.millis(7_000, 30_000),
            _ if is_long => rng.millis(5_000, 30_000),
            _ => rng.millis(3_000, 8_000),
        };
        // Watches that stay open hear of everything; others have to come back.
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

/// Lets single requests and watches go wrong, one every few seconds.
pub(crate) fn keep_stumbling(soak: &Soak) {
    let mut rng = soak.rng(2);
    let faults = soak.sandbox.faults();
    while soak.pause(rng.millis(1_000, 5_000)) {
        // What nothing has met yet is enough.
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
            // What no server sends. The kind is listed again after a second, so it is not that of plain pods.
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
