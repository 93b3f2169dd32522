//! Two or three instances and one Lease, on clocks moved by hand: requests are delayed, lost before or after they took
//! effect, and clocks differ. At no moment may two instances write.

use std::time::Duration;

use proptest::prelude::*;

use super::election::{Act, Election, Terms};
use super::record::Record;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn terms(identity: &str) -> Terms {
    Terms {
        identity: identity.into(),
        lease_duration: 15 * SECOND,
        renew_deadline: 10 * SECOND,
        retry_period: 2 * SECOND,
    }
}

/// The Lease as the API server has it.
#[derive(Clone, Default)]
struct Stored {
    record: Option<Record>,
    version: u64,
}

impl Stored {
    /// Carries out a write. Fails when the version is not the current one.
    fn write(&mut self, version: Option<&str>, record: &Record) -> Result<String, ()> {
        let current = self.record.as_ref().map(|_| self.version.to_string());
        if version.map(str::to_owned) != current {
            return Err(());
        }
        self.version += 1;
        self.record = Some(record.clone());
        Ok(self.version.to_string())
    }

    fn read(&self) -> Option<(Record, String)> {
        self.record.clone().map(|record| (record, self.version.to_string()))
    }
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
struct Fate {
    /// Milliseconds until it reaches the server; `None` when it never does.
    there: Option<u64>,
    /// Milliseconds until its answer is back; `None` when it never is.
    back: Option<u64>,
}

/// A request on its way. Times are in true milliseconds.
struct Flight {
    act: Act,
    record: Record,
    sent_local: Duration,
    arrives: Option<u64>,
    answered: Option<u64>,
    /// When the instance stops waiting for the answer.
    given_up: u64,
    outcome: Option<Outcome>,
}

enum Outcome {
    Found(Option<(Record, String)>),
    Written(Result<String, ()>),
}

/// An instance on its own clock.
struct Replica {
    election: Election,
    name: String,
    /// How its clock relates to true time: ahead by `skew`, and running at `rate` parts of 1,000.
    skew: u64,
    rate: u64,
    /// Its requests; the newest is the one that it waits for. Older ones may still arrive.
    flights: Vec<Flight>,
    waits: bool,
    writes: u64,
    /// Until when it stands still, as a process that is not scheduled.
    asleep_until: u64,
    is_over: bool,
}

impl Replica {
    fn new(number: usize, skew: u64, rate: u64) -> Self {
        let name = format!("r{number}");
        let election = Election::new(terms(&name));
        let flights = Vec::new();
        Self { election, name, skew, rate, flights, waits: false, writes: 0, asleep_until: 0, is_over: false }
    }

    fn local(&self, now: u64) -> Duration {
        MILLISECOND * u32::try_from(self.skew + now * self.rate / 1_000).expect("a short test")
    }

    /// Whether a write could leave now.
    fn may_write(&self, now: u64) -> bool {
        self.election.may_write_until().is_some_and(|until| self.local(now) < until)
    }

    /// Sends what is due.
    fn act(&mut self, now: u64, fate: Fate) {
        if self.waits || self.is_over || now < self.asleep_until {
            return;
        }
        let local = self.local(now);
        let act = self.election.next(local);
        match &act {
            Act::Wait(_) => return,
            Act::Lost => return self.is_over = true,
            Act::Read | Act::Claim(_) => {}
        }
        self.writes += 1;
        let transitions = if let Act::Claim(claim) = &act { claim.transitions } else { 0 };
        let record = Record {
            holder: self.name.clone(),
            duration: Some(15 * SECOND),
            transitions,
            acquired: String::new(),
            renewed: format!("{} of {}", self.writes, self.name),
        };
        self.flights.push(Flight {
            act,
            record,
            sent_local: local,
            arrives: fate.there.map(|after| now + after),
            answered: fate.there.and_then(|there| Some(now + there + fate.back?)),
            given_up: now + 5_000,
            outcome: None,
        });
        self.waits = true;
    }

    /// Delivers what arrives now at the server.
    fn deliver(&mut self, now: u64, stored: &mut Stored) {
        for flight in self.flights.iter_mut().filter(|flight| flight.arrives == Some(now)) {
            flight.outcome = Some(match &flight.act {
                Act::Claim(claim) => Outcome::Written(stored.write(claim.version.as_deref(), &flight.record)),
                _ => Outcome::Found(stored.read()),
            });
        }
        self.flights.retain(|flight| {
            flight.answered.is_some_and(|at| at >= now)
                || flight.given_up > now
                || flight.arrives.is_some_and(|at| at > now)
        });
    }

    /// Takes the answer to the newest request, or gives it up.
    fn take_answer(&mut self, now: u64) {
        if !self.waits || now < self.asleep_until {
            return;
        }
        let local = self.local(now);
        let Some(flight) = self.flights.last_mut() else {
            self.waits = false;
            return self.election.failed(local, 0.5);
        };
        let is_answered = flight.answered.is_some_and(|at| at <= now) && flight.outcome.is_some();
        if !is_answered && now < flight.given_up {
            return;
        }
        self.waits = false;
        let sent = flight.sent_local;
        let record = flight.record.clone();
        match flight.outcome.take().filter(|_| is_answered) {
            None => self.election.failed(local, 0.5),
            Some(Outcome::Found(found)) => self.election.read(local, found, 0.5),
            Some(Outcome::Written(Ok(version))) => self.election.claimed((sent, local), record, version),
            Some(Outcome::Written(Err(()))) => self.election.conflicted(local),
        }
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    let delay =
        prop_oneof![6 => (1_u64..50).prop_map(Some), 2 => (50_u64..9_000).prop_map(Some), 1 => Just(None)];
    (delay.clone(), delay).prop_map(|(there, back)| Fate { there, back })
}

/// Plays a history. Returns how often the right to write went to another instance.
fn play(replicas: &mut [Replica], fates: &[Fate], sleeps: &[(u64, usize, u64)], end: u64) -> usize {
    let mut stored = Stored::default();
    let (mut asked, mut last, mut changes) = (0, None, 0);
    for now in 0..end {
        for (at, who, time) in sleeps {
            let who = who % replicas.len();
            if *at == now {
                replicas[who].asleep_until = now + time;
            }
        }
        let count = replicas.len();
        for (number, replica) in replicas.iter_mut().enumerate() {
            replica.deliver(now, &mut stored);
            replica.take_answer(now);
            let before = replica.flights.len();
            replica.act(now, fates[asked % fates.len()]);
            asked += usize::from(replica.flights.len() > before);
            if replica.is_over {
                // The process ends, and a new one takes its place.
                let (skew, rate) = (replica.skew, replica.rate);
                *replica = Replica::new(number + count + now as usize, skew, rate);
            }
        }
        let writers: Vec<_> = replicas.iter().filter(|replica| replica.may_write(now)).collect();
        assert!(writers.len() <= 1, "{now}: {:?}", writers.iter().map(|r| &r.name).collect::<Vec<_>>());
        if let [writer] = writers.as_slice()
            && last.as_ref() != Some(&writer.name)
        {
            changes += usize::from(last.is_some());
            last = Some(writer.name.clone());
        }
    }
    changes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn never_two_may_write(
        clocks in prop::collection::vec((0_u64..1_000_000, 900_u64..1_100), 2..4),
        fates in prop::collection::vec(fate(), 1..60),
        sleeps in prop::collection::vec((0_u64..150_000, 0_usize..3, 100_u64..40_000), 0..8),
    ) {
        let of = |(number, (skew, rate)): (usize, &(u64, u64))| Replica::new(number, *skew, *rate);
        let mut replicas: Vec<Replica> = clocks.iter().enumerate().map(of).collect();
        play(&mut replicas, &fates, &sleeps, 150_000);
    }
}

/// A fate of one millisecond each way.
const SOON: Fate = Fate { there: Some(1), back: Some(1) };

#[test]
fn the_right_does_go_from_one_to_the_other() {
    let mut replicas = [Replica::new(0, 0, 1_000), Replica::new(1, 77_000, 1_000)];
    // Each stands still in turn for longer than the lease lasts.
    let sleeps: Vec<_> = (0..6).map(|turn| (10_000 + turn * 20_000, turn as usize, 19_000)).collect();
    assert!(play(&mut replicas, &[SOON], &sleeps, 150_000) >= 4);
}

fn other(holder: &str, renewed: &str) -> Record {
    Record {
        holder: holder.into(),
        duration: Some(15 * SECOND),
        renewed: renewed.into(),
        ..Record::default()
    }
}

#[test]
fn the_lease_of_another_is_left_alone_until_it_has_not_changed_for_its_duration() {
    let mut election = Election::new(terms("me"));
    assert_eq!(election.next(SECOND), Act::Read);
    election.read(SECOND, Some((other("x", "1"), "1".into())), 0.0);
    assert_eq!(election.next(SECOND), Act::Wait(SECOND + 250 * MILLISECOND));
    // A change of the version alone, such as a label, does not prolong it; a renewal does.
    election.read(5 * SECOND, Some((other("x", "1"), "2".into())), 0.0);
    election.read(6 * SECOND, Some((other("x", "2"), "3".into())), 0.0);
    election.read(21 * SECOND - MILLISECOND, Some((other("x", "2"), "3".into())), 0.0);
    assert_eq!(election.next(21 * SECOND - MILLISECOND), Act::Wait(21 * SECOND));
    assert_eq!(election.next(21 * SECOND), Act::Read);
    election.read(21 * SECOND, Some((other("x", "2"), "4".into())), 0.0);
    let Act::Claim(claim) = election.next(21 * SECOND) else { panic!("it has expired") };
    assert_eq!((claim.version.as_deref(), claim.transitions, claim.acquired), (Some("4"), 1, None));
}

#[test]
fn a_released_lease_is_taken_at_once_and_one_that_was_deleted_is_waited_for() {
    let mut election = Election::new(terms("me"));
    election.read(SECOND, Some((other("x", "1"), "1".into())), 0.0);
    election.read(2 * SECOND, None, 0.0);
    assert!(matches!(election.next(2 * SECOND), Act::Wait(_)), "its holder may still write");
    election.read(3 * SECOND, Some((other("", "2"), "3".into())), 0.0);
    assert!(matches!(election.next(3 * SECOND), Act::Claim(_)));
    let mut election = Election::new(terms("me"));
    election.read(SECOND, Some((other("x", "1"), "1".into())), 0.0);
    election.read(16 * SECOND, None, 0.0);
    let Act::Claim(claim) = election.next(16 * SECOND) else { panic!("it has expired") };
    assert_eq!(claim.version, None);
}

/// Returns a machine that has held the Lease since `sent`.
fn holder(sent: Duration) -> Election {
    let mut election = Election::new(terms("me"));
    election.read(sent, None, 0.0);
    assert!(matches!(election.next(sent), Act::Claim(_)));
    election.claimed((sent, sent + SECOND), other("me", "1"), "1".into());
    election
}

#[test]
fn the_right_counts_from_when_the_renewal_was_sent() {
    let mut election = holder(SECOND);
    assert_eq!(election.may_write_until(), Some(11 * SECOND));
    assert_eq!(election.next(2 * SECOND), Act::Wait(3 * SECOND));
    let Act::Claim(claim) = election.next(3 * SECOND) else { panic!("a renewal") };
    assert_eq!((claim.version.as_deref(), claim.transitions), (Some("1"), 0));
    assert_eq!(claim.acquired.as_deref(), Some(""), "the time of acquiring stays");
    // An answer that comes after the deadline of its own request gives no right.
    let mut late = Election::new(terms("me"));
    late.read(SECOND, None, 0.0);
    late.claimed((SECOND, 11 * SECOND), other("me", "1"), "1".into());
    assert_eq!(late.may_write_until(), None);
}

#[test]
fn a_holder_that_cannot_renew_or_sees_another_has_lost() {
    let mut election = holder(SECOND);
    election.failed(9 * SECOND, 0.0);
    assert_eq!(election.next(9 * SECOND), Act::Wait(11 * SECOND), "not beyond the deadline");
    assert_eq!(election.next(11 * SECOND), Act::Lost);
    assert_eq!(election.may_write_until(), None);
    let mut election = holder(SECOND);
    election.read(2 * SECOND, Some((other("x", "2"), "2".into())), 0.0);
    assert_eq!((election.next(2 * SECOND), election.may_write_until()), (Act::Lost, None));
}

#[test]
fn releasing_ends_the_right_first() {
    let mut election = holder(SECOND);
    let claim = election.release().expect("it holds the lease");
    assert_eq!((claim.version.as_deref(), election.may_write_until()), (Some("1"), None));
    assert_eq!(election.release(), None);
    assert_eq!(Election::new(terms("me")).release(), None);
}

#[test]
fn a_lease_that_names_this_instance_is_renewed_though_the_answer_was_lost() {
    let mut election = Election::new(terms("me"));
    election.failed(SECOND, 0.0);
    election.read(3 * SECOND, Some((other("me", "1"), "7".into())), 0.0);
    let Act::Claim(claim) = election.next(3 * SECOND) else { panic!("its own") };
    assert_eq!((claim.version.as_deref(), claim.transitions), (Some("7"), 0));
}
