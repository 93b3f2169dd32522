//! A custom scheduler: all of Pellucid plus the plugin `LicenceSeats`.
//!
//! A `LicencePool` has numbered seats. A pod asks for some in an annotation and is bound only with seats of its own, whose
//! numbers stand on it, so they are found again after a restart. A pool may lend its seats for a time. The plugin writes to
//! a pool's status how many are taken. `docs/writing-a-plugin.md` walks through this file; a test runs and kills it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use pellucid::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Plugin name in the scheduler configuration.
const NAME: &str = "LicenceSeats";
/// The annotation with which a pod asks for seats, such as `solver=2`.
const WANTED: &str = "example.com/licence-seats";
/// The annotation that says which seats a bound pod has.
const HELD: &str = "example.com/held-licence-seats";
/// The greatest number of seats of a pool.
const MAX_SEATS: i64 = 10_000;

// === the kind ===

static LICENCE_POOL: CustomKind = CustomKind {
    group: "example.com",
    version: "v1",
    kind: "LicencePool",
    plural: "licencepools",
    qualified: "LicencePool.example.com",
    is_namespaced: false,
    is_required: false,
    is_decisive: true,
    verbs: &["get", "status/patch"],
    pod: None,
    decode: |manifest| Ok(Arc::new(Licences::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, Licences::manifest),
};

/// What is read of a `LicencePool`.
#[derive(Clone)]
struct Licences {
    /// Number of seats.
    seats: u32,
    /// How long a pod may keep its seats, in seconds.
    lease: Option<u64>,
    /// How many are taken, as the status says.
    taken: Option<i64>,
}

impl Licences {
    fn read(manifest: &Value) -> Result<Self, FieldError> {
        let root = Field::root(manifest);
        let (seats, lease) = (root.at(&["spec", "seats"])?, root.at(&["spec", "leaseSeconds"])?);
        let number = seats.integer()?.filter(|n| (0..=MAX_SEATS).contains(n));
        let seconds =
            |n| u64::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| lease.error("must be above 0"));
        Ok(Self {
            seats: number.ok_or_else(|| seats.error("must be from 0 to 10000"))? as u32,
            lease: lease.integer()?.map(seconds).transpose()?,
            taken: root.at(&["status", "taken"])?.integer()?,
        })
    }

    fn manifest(&self) -> Value {
        json!({"spec": {"seats": self.seats, "leaseSeconds": self.lease}, "status": {"taken": self.taken}})
    }
}

/// Reads the annotation [`WANTED`]; `None` for a pod that asks for nothing.
fn wanted(spec: &PodSpec) -> Option<Result<(Name, usize), Cause>> {
    let text = spec.annotations.text(WANTED)?;
    let parts = text.split_once('=').and_then(|(pool, n)| Some((Name::new(pool), n.parse().ok()?)));
    let parts = parts.filter(|(pool, n)| !pool.is_empty() && (1..=MAX_SEATS as usize).contains(n));
    Some(parts.ok_or_else(|| refused(&UNREADABLE, true, &format!("{WANTED}: {text}"))))
}

/// The seats of a pod, as [`HELD`] says them.
#[derive(Serialize, Deserialize)]
struct Seats {
    pool: String,
    seats: Vec<u32>,
    /// When the lease ends, in seconds since 1970.
    until: Option<u64>,
}

/// Makes a reason of code, message, meaning, remedy, and an example: subject, rendered message, situation.
const fn reason(texts: [&'static str; 7], resolver: Resolver) -> PluginReason {
    let [code, message, meaning, remedy, subject, said, situation] = texts;
    let example = Example { subject, message: said, situation };
    PluginReason {
        code,
        plugin: NAME,
        message,
        resolver,
        terminal_for: TerminalFor::Pod,
        meaning,
        remedy,
        never: None,
        example,
    }
}

static UNREADABLE: PluginReason = reason(
    [
        "LicenceRequestUnreadable",
        "pod asks for licences in a way that cannot be read: {}",
        "The annotation is not POOL=NUMBER.",
        "Correct the annotation of the pod.",
        "example.com/licence-seats: solver",
        "pod asks for licences in a way that cannot be read: example.com/licence-seats: solver",
        "The annotation is `solver`, without a number.",
    ],
    Resolver::PodOwner,
);
static NO_POOL: PluginReason = reason(
    [
        "LicencePoolMissing",
        "there is no LicencePool {}",
        "No pool has the name that the pod asks for.",
        "Create the LicencePool.",
        "solver",
        "there is no LicencePool solver",
        "A pod asks for `solver=2`, and only the pool `mesher` exists.",
    ],
    Resolver::ClusterAdmin,
);
static NO_SEATS: PluginReason = PluginReason {
    never: Some("Raise spec.seats of the pool."),
    ..reason(
        [
            "NoFreeLicenceSeats",
            "not enough free licence seats: {}",
            "Other pods have the seats, or the pool has fewer than the pod asks for.",
            "Wait for pods to end, or raise spec.seats of the pool.",
            "2 of pool solver, 1 of 5 free",
            "not enough free licence seats: 2 of pool solver, 1 of 5 free",
            "Four of the five seats are taken, and a pod asks for two.",
        ],
        Resolver::Time,
    )
};

fn refused(reason: &'static PluginReason, is_lasting: bool, about: &str) -> Cause {
    let code = if is_lasting { Code::UnschedulableAndUnresolvable } else { Code::Unschedulable };
    Cause::new(NAME, code, Reason::about(ReasonCode::Plugin(reason), about))
}

// === the state ===

/// A pool and who has its seats.
#[derive(Clone, Default)]
struct Pool {
    /// Its object with the uid; `None` while only pods know the pool.
    object: Option<(Licences, Arc<str>)>,
    /// The pods with a seat, by seat and id, and when each lease ends in seconds since 1970.
    taken: BTreeMap<(u32, PodId), (PodKey, Option<u64>)>,
    /// The number that was ordered to be written to the status.
    ordered: Option<i64>,
}

impl Pool {
    fn seats_taken(&self) -> BTreeSet<u32> {
        self.taken.keys().map(|(seat, _)| *seat).collect()
    }
}

/// All pools.
#[derive(Clone, Default)]
struct Pools {
    all: CowMap<Name, Arc<Pool>>,
    /// Up to when leases have ended.
    now: u64,
    /// Until when no status is written, on the monotonic clock.
    pause: Option<Duration>,
}

impl Pools {
    fn change(&mut self, name: &Name, change: impl FnOnce(&mut Pool)) {
        let mut pool = self.all.remove(name).unwrap_or_default();
        change(Arc::make_mut(&mut pool));
        if pool.object.is_some() || !pool.taken.is_empty() {
            self.all.insert(name.clone(), pool);
        }
    }

    /// Returns the seats that a pod would get: the free ones with the lowest numbers.
    fn choose(&self, name: &Name, n: usize, now: u64) -> Result<Seats, Cause> {
        let pool = self.all.get(name);
        let Some((pool, (licences, _))) = pool.and_then(|pool| Some((pool, pool.object.as_ref()?))) else {
            return Err(refused(&NO_POOL, true, name));
        };
        let taken = pool.seats_taken();
        let mut seats: Vec<u32> = (0..licences.seats).filter(|seat| !taken.contains(seat)).collect();
        if seats.len() < n {
            let about = format!("{n} of pool {name}, {} of {} free", seats.len(), licences.seats);
            return Err(refused(&NO_SEATS, n > licences.seats as usize, &about));
        }
        seats.truncate(n);
        Ok(Seats { pool: name.to_string(), seats, until: licences.lease.map(|seconds| now + seconds) })
    }

    fn hold(&mut self, placed: &Placed<'_>, hold: &HoldValue, begins: bool) -> Touched {
        let Some(held) = hold.downcast_ref::<Seats>() else { return Touched::Nothing };
        // When the lease has ended, the seats are the pod's no longer.
        let lasts = held.until.is_none_or(|until| until > self.now);
        self.change(&Name::new(&held.pool), |pool| {
            for key in held.seats.iter().filter(|_| lasts).map(|seat| (*seat, placed.id)) {
                _ = match begins {
                    true => pool.taken.insert(key, (placed.pod.key.clone(), held.until)),
                    false => pool.taken.remove(&key),
                };
            }
        });
        Touched::Attempts
    }
}

impl DerivedState for Pools {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }
    fn plugin(&self) -> &'static str {
        NAME
    }

    fn custom_changed(
        &mut self,
        _cx: &HookContext<'_>,
        old: Option<&CustomObject>,
        new: Option<&CustomObject>,
    ) -> Touched {
        let Some(object) = new.or(old).filter(|o| o.get::<Licences>().is_some()) else {
            return Touched::Nothing;
        };
        let value = new.and_then(|new| Some((new.get::<Licences>()?.clone(), new.uid.clone())));
        self.change(&object.name, |pool| (pool.object, pool.ordered) = (value, None));
        Touched::Attempts
    }

    fn reserved(&mut self, _cx: &HookContext<'_>, placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        self.hold(placed, hold, true)
    }
    fn unreserved(&mut self, _cx: &HookContext<'_>, placed: &Placed<'_>, hold: &HoldValue) -> Touched {
        self.hold(placed, hold, false)
    }

    fn bound_hold(
        &self,
        _cx: &HookContext<'_>,
        placed: &Placed<'_>,
        held: Option<&HoldValue>,
    ) -> Option<HoldValue> {
        let read = || serde_json::from_str::<Seats>(placed.pod.marks.text(HELD)?).ok();
        wanted(&placed.pod.spec)?.ok()?;
        held.cloned().or_else(|| Some(Arc::new(read()?)))
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_deadline(&self, now: Now) -> Option<Duration> {
        let ends = self.all.iter().flat_map(|(_, pool)| pool.taken.values()).filter_map(|(_, until)| *until);
        let end = ends.min().map(|until| Duration::from_secs(until).saturating_sub(now.wall));
        end.map(|left| now.monotonic + left).into_iter().chain(self.pause).min()
    }

    fn expire(&mut self, now: Now) -> Touched {
        self.now = now.wall.as_secs();
        self.pause = self.pause.filter(|until| *until > now.monotonic);
        let lasts = |until: Option<u64>| until.is_none_or(|until| until > now.wall.as_secs());
        let has_ended = |pool: &Pool| pool.taken.values().any(|(_, until)| !lasts(*until));
        let pools = self.all.iter().filter(|(_, pool)| has_ended(pool));
        let pools: Vec<Name> = pools.map(|(name, _)| name.clone()).collect();
        let retain = |pool: &mut Pool| pool.taken.retain(|_, (_, until)| lasts(*until));
        pools.iter().for_each(|name| self.change(name, retain));
        if pools.is_empty() { Touched::Nothing } else { Touched::Attempts }
    }

    fn due_writes(&mut self, _cx: &HookContext<'_>) -> Vec<ObjectWrite> {
        let stale = |(name, pool): (&Name, &Arc<Pool>)| {
            let ((licences, uid), taken) = (pool.object.as_ref()?, pool.seats_taken().len() as i64);
            let is_known = pool.ordered.or(licences.taken) == Some(taken);
            (!is_known).then(|| (name.clone(), uid.clone(), taken))
        };
        let mut stale: Vec<_> = self.all.iter().filter(|_| self.pause.is_none()).filter_map(stale).collect();
        stale.sort();
        let write = |(name, uid, taken): (Name, Arc<str>, i64)| {
            self.change(&name, |pool| pool.ordered = Some(taken));
            ObjectWrite::Patch {
                object: ObjectRef::custom(&LICENCE_POOL, &Name::default(), &name),
                part: ObjectPart::Status,
                precondition: Precondition::uid(uid),
                patch: Arc::new(json!({"status": {"taken": taken}})),
            }
        };
        stale.into_iter().map(write).collect()
    }

    fn write_settled(
        &mut self,
        cx: &HookContext<'_>,
        write: &ObjectWrite,
        outcome: &WriteOutcome,
    ) -> Touched {
        if let (ObjectWrite::Patch { object, .. }, WriteOutcome::Refused { .. }) = (write, outcome) {
            self.change(&object.name, |pool| pool.ordered = None);
            self.pause = Some(cx.now.monotonic + Duration::from_secs(5));
        }
        Touched::Nothing
    }
}

// === scheduling ===

struct LicenceSeats;

impl Plugin for LicenceSeats {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { pre_filter, reserve, hints }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Pools::default())]
    }
}

/// Returns the seats that a pod would get now; `None` for a pod that asks for nothing.
fn seats_for(view: View<'_>, spec: &PodSpec) -> Result<Option<Seats>, Cause> {
    let (Some(wanted), Some(pools)) = (wanted(spec), view.state::<Pools>()) else { return Ok(None) };
    let (pool, n) = wanted?;
    pools.choose(&pool, n, view.cluster().now().wall.as_secs()).map(Some)
}

impl PreFilter for LicenceSeats {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_filter(&self, view: View<'_>, spec: &PodSpec) -> PreFiltered {
        match seats_for(view, spec) {
            Ok(None) => PreFiltered::Skip,
            Ok(Some(_)) => PreFiltered::Ready { value: Arc::new(()), nodes: None },
            Err(cause) => PreFiltered::Refused(cause),
        }
    }
}

impl Reserve for LicenceSeats {
    fn reserve(&self, view: View<'_>, pod: &Pod, _node: NodeIdx) -> Result<Option<Reservation>, Cause> {
        let Some(seats) = seats_for(view, &pod.spec)? else { return Ok(None) };
        let marks = BindingMarks::annotation(HELD, json!(seats).to_string());
        Ok(Some(Reservation { what: Arc::new(seats), marks: Some(marks.into()) }))
    }
}

impl Hints for LicenceSeats {
    fn events(&self) -> EventKinds {
        EventKinds::POD_DELETE.with(EventKinds::CUSTOM_OBJECT).with(EventKinds::PLUGIN_STATE)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, _event: &ClusterEvent) -> Hint {
        if seats_for(view, &pod.spec).is_ok() { Hint::Queue } else { Hint::Skip }
    }
}

/// `LicenceSeats/state`.
#[derive(Serialize, ToSchema)]
struct LicenceSeatsState {
    /// Namespace and name of the pod that has a seat, by pool and number of the seat.
    pools: BTreeMap<String, BTreeMap<u32, String>>,
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let all = cx.view.state::<Pools>().into_iter().flat_map(|pools| pools.all.iter());
    let seats =
        |pool: &Pool| pool.taken.iter().map(|((seat, _), (pod, _))| (*seat, pod.to_string())).collect();
    Ok(json!(LicenceSeatsState { pools: all.map(|(name, pool)| (name.to_string(), seats(pool))).collect() }))
}

/// Returns the plugin's entry in the registry.
pub fn registration() -> Registration {
    let keys =
        DeclaredKeys { pod_annotations: &[WANTED], binding_annotations: &[HELD], ..DeclaredKeys::default() };
    Registration::without_args(NAME, "Binds pods only with the licence seats that they ask for", || {
        LicenceSeats
    })
    .with_keys(keys)
    .with_kinds([&LICENCE_POOL])
    .with_reasons([&UNREADABLE, &NO_POOL, &NO_SEATS])
    .with_endpoints([Endpoint::of::<LicenceSeatsState>("state", "Who has which seats", read_state)])
}

/// Pellucid with the plugin LicenceSeats; the flags are those of `pellucid run`.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: RunArgs,
}

fn main() -> anyhow::Result<()> {
    let mut registry = pellucid::plugins::registry();
    registry.push(Box::new(registration()));
    run_with(&Options::parse().run, registry)
}
