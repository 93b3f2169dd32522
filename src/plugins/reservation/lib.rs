//! Reservation: holds room for pods that are not there yet.
//!
//! See README.md for the rules. A reservation is scheduled as the pod that `stand_in` makes of it. `object` reads it,
//! `owners` says who may use it, `affinity` what a pod wants, `matching` joins both, `choosing` takes one of a node's.
//! `taking_over` places one over pods that run, `operating` reads pods that are reservations. `reservations` is the state of
//! all, `entry` that of one, `index` finds them, `writes` what it orders, `filtering` and `scoring` the points of the cycle, `reasons` words
//! refusals, `reading` serves.

use std::sync::Arc;
use std::time::Duration;

use pellucid_api::keys::reservation as keys;
use pellucid_cluster::{ClusterEvent, DerivedState, EventKinds, PodRecord, marks_of};
use pellucid_framework::plugin::{
    Concern, DeclaredKeys, Hint, Hints, Permit, Plugin, PreBind, PreBound, Reserve, VictimGuard,
};
use pellucid_framework::{
    Advice, Cause, Code, CycleValue, NodeOverride, NodeOverrides, Permitted, Registration, Rooms, View,
    points,
};
use pellucid_model::custom::CustomKind;
use pellucid_model::{CustomObject, NodeIdx, Now, Pod, PodId, PodSpec};
use serde_json::{Value, json};
use smallvec::smallvec;

mod affinity;
mod args;
mod choosing;
mod entry;
mod filtering;
mod index;
mod matching;
mod object;
mod operating;
mod owners;
mod reading;
mod reasons;
mod reservations;
mod scoring;
mod stand_in;
mod taking_over;
mod writes;

use args::ReservationArgs;
use choosing::{Stand, choose_but};
use entry::Taken;
use matching::{Counts, Seeker};
use object::Reservation;
use reservations::{Reservations, reservation_of};
use taking_over::{TakenOver, Taker};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "Reservation";

/// Weight of the score: a node whose reservation the pod can use comes before every other.
const WEIGHT: i64 = 5000;
/// How long the write that places a reservation may take.
const PLACING: Duration = Duration::from_secs(60);

/// What the plugin reads of pods.
const KEYS: DeclaredKeys = DeclaredKeys {
    pod_wide_labels: &[keys::RESERVATION_IGNORED, keys::POD_OPERATING_MODE],
    pod_wide_annotations: &[keys::RESERVATION_AFFINITY, keys::EXACT_MATCH_RESERVATION],
    binding_annotations: &[
        keys::RESERVATION_ALLOCATED,
        keys::RESERVATION_OWNERS,
        keys::RESERVATION_CURRENT_OWNER,
    ],
    ..DeclaredKeys::NONE
};

/// Reservations.
pub static RESERVATION: CustomKind = CustomKind {
    group: "scheduling.koordinator.sh",
    version: "v1alpha1",
    kind: "Reservation",
    plural: "reservations",
    qualified: "Reservation.scheduling.koordinator.sh",
    is_namespaced: false,
    is_required: false,
    is_decisive: true,
    verbs: &["get", "delete", "patch", "status/patch"],
    pod: Some(stand_in::pod),
    decode: |manifest| Ok(Arc::new(Reservation::read(manifest)?)),
    encode: |value| value.downcast_ref().map_or(Value::Null, Reservation::manifest),
};

/// Returns the plugin's entry in the registry.
pub fn registration() -> Registration {
    let summary = "Holds room for pods that are not there yet, and lets their owners in";
    Registration::new(NAME, summary, args::schema, |args| {
        Ok(ReservationPlugin { args: Arc::new(ReservationArgs::read(args)?) })
    })
    .with_weight(WEIGHT)
    .off_by_default()
    .with_keys(KEYS)
    .with_kinds([&RESERVATION])
    .with_reasons(reasons::ALL)
    .with_endpoints(reading::all())
    .with_gauges(&reading::gauges::ALL)
    .with_pod_read(reading::POD_READ)
}

/// The plugin, as a profile uses it.
struct ReservationPlugin {
    args: Arc<ReservationArgs>,
}

impl Plugin for ReservationPlugin {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        self.args.show()
    }
    points! {
        concern, pre_filter, filter, pre_score, score, reserve, permit, pre_bind, hints, node_overrides,
        victim_guard, advice
    }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Reservations::new(self.args.clone()))]
    }
}

impl Concern for ReservationPlugin {
    /// Most pods own no reservation and say nothing of any.
    fn concerns(&self, view: View<'_>, spec: &PodSpec, pod: &Pod) -> bool {
        let is_owner = || view.state::<Reservations>().is_some_and(|all| all.index.has_owner(pod));
        pod.stands_for.is_some()
            || affinity::says_anything(spec)
            || operating::name_of(pod).is_some()
            || is_owner()
    }
}

impl NodeOverrides for ReservationPlugin {
    fn overrides(&self, view: View<'_>, spec: &PodSpec, pod: &Pod) -> Vec<NodeOverride> {
        let Some(all) = view.state::<Reservations>().filter(|all| !all.is_empty()) else { return Vec::new() };
        if pod.stands_for.is_some() {
            let taker = reservation_of(pod).and_then(|name| Taker::of(view, name));
            return taker.map_or_else(Vec::new, |taker| taker.overrides());
        }
        if affinity::ignores_all(spec) {
            let placed = all.iter().filter_map(|(_, entry, known)| {
                let node = *all.nodes.get(known.spec.status.node.as_ref()?)?;
                Some(NodeOverride { node, absent: smallvec![entry.stand_in.as_ref()?.id] })
            });
            return placed.collect();
        }
        let Ok(Some(seeker)) = Seeker::of(view, pod, spec) else { return Vec::new() };
        let matches = seeker.matches().into_values().flatten();
        matches.map(|of| NodeOverride { node: of.node, absent: smallvec![of.stand_in.id] }).collect()
    }

    fn rooms(&self, view: View<'_>, spec: &PodSpec, pod: &Pod, node: NodeIdx, absent: &[PodId]) -> Rooms {
        let is_owner = pod.stands_for.is_none() && !affinity::ignores_all(spec);
        match Seeker::of(view, pod, spec) {
            Ok(Some(seeker)) if is_owner => choosing::rooms(&seeker, node, absent),
            _ => Rooms::all(absent),
        }
    }

    fn ignores(&self, spec: &PodSpec) -> bool {
        affinity::ignores_all(spec)
    }

    /// To a pod that ignores reservations a node without them is as any. An owner takes one, so it depends on what is left.
    fn lasts(&self, _view: View<'_>, spec: &PodSpec) -> bool {
        affinity::ignores_all(spec)
    }
}

impl Reserve for ReservationPlugin {
    fn reserve(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
    ) -> Result<Option<pellucid_framework::Reservation>, Cause> {
        self.reserve_but(view, pod, node, &[])
    }

    fn reserve_but(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        refused: &[PodId],
    ) -> Result<Option<pellucid_framework::Reservation>, Cause> {
        if let Some(name) = reservation_of(pod) {
            let over = Taker::of(view, name).and_then(|taker| taker.take(name, node));
            return Ok(over.map(|over| pellucid_framework::Reservation::unmarked(Arc::new(over))));
        }
        let unreadable =
            |text: String| reasons::cause(Code::UnschedulableAndUnresolvable, &reasons::UNREADABLE, &text);
        let seeker = Seeker::of(view, pod, &pod.spec).map_err(unreadable)?;
        let Some(seeker) = seeker.filter(|_| !affinity::ignores_all(&pod.spec)) else { return Ok(None) };
        let choice = choose_but(&seeker, node, Stand::OnNode, refused);
        let Some(taken) = choice.taken else {
            // Where nothing matches, the other plugins have said whether the pod fits.
            let is_refused =
                !choice.fits_beside && (seeker.affinity().is_some() || !seeker.on(node).is_empty());
            return if is_refused {
                Err(reasons::lacking(&choice.lacks, seeker.affinity()))
            } else {
                Ok(None)
            };
        };
        let what = Taken { name: taken.name.clone(), uid: taken.known.uid.clone(), is_bound: false };
        let marks = Some(what.marks().into());
        Ok(Some(pellucid_framework::Reservation { what: Arc::new(what), marks }))
    }
}

impl Permit for ReservationPlugin {
    /// Refuses a reservation for which a plugin holds what it cannot hand on to owners.
    fn permit(&self, view: View<'_>, pod: &Pod, _node: NodeIdx) -> Permitted {
        if reservation_of(pod).is_none() {
            return Permitted::Yes;
        }
        let record = view.cluster().find_pod(&pod.key).and_then(|id| view.cluster().pod(id));
        let mut holds = record.into_iter().flat_map(|record| &record.holds);
        match holds.find(|hold| hold.plugin != NAME && !view.cluster().shares_holds(hold.plugin)) {
            Some(hold) => Permitted::No(reasons::cause(
                Code::UnschedulableAndUnresolvable,
                &reasons::NOT_HANDED_ON,
                hold.plugin,
            )),
            None => Permitted::Yes,
        }
    }
}

impl PreBind for ReservationPlugin {
    /// Places a reservation by a write of its status. Once the object says so, its pod is bound. What plugins hold for it
    /// stands on the object before, from where it is read back.
    fn pre_bind(&self, view: View<'_>, pod: &Pod, node: NodeIdx, held: Option<&CycleValue>) -> PreBound {
        let Some(name) = reservation_of(pod) else { return PreBound::Ready };
        let entry = view.state::<Reservations>().and_then(|all| all.get(name));
        let known = entry.and_then(|entry| Some((entry, entry.known.as_ref()?)));
        let record = view.cluster().find_pod(&pod.key).and_then(|id| view.cluster().pod(id));
        let Some(((entry, known), record)) = known.zip(record) else {
            return PreBound::Wait { writes: Vec::new(), at_most: PLACING };
        };
        let marks = marks_of(&record.holds);
        let mut writes: Vec<_> = writes::marked(name, known, (pod, marks.as_deref())).into_iter().collect();
        // Whoever reads the reservation as placed must find its owners.
        if let Some(over) = held.and_then(|held| held.downcast_ref::<TakenOver>()) {
            writes.extend(over.marks(entry));
        }
        if writes.is_empty() {
            writes.push(writes::placed(name, entry, known, view.name(node), record.since));
        }
        PreBound::Wait { writes, at_most: PLACING }
    }
}

impl VictimGuard for ReservationPlugin {
    fn protects(&self, _view: View<'_>, pod: &PodRecord) -> bool {
        !self.args.is_preemptible && reservation_of(&pod.pod).is_some()
    }
}

impl Hints for ReservationPlugin {
    fn events(&self) -> EventKinds {
        EventKinds::CUSTOM_OBJECT
            .with(EventKinds::PLUGIN_STATE)
            .with(EventKinds::POD_DELETE)
            .with(EventKinds::POD_SELF)
            .with(EventKinds::NODE_ADD)
            .with(EventKinds::NODE_LABEL)
            .with(EventKinds::NODE_ALLOCATABLE)
    }

    /// Room that comes free helps where a reservation is, so without any only changed reservations count.
    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let spec_of = |object: &Option<Arc<CustomObject>>| {
            object.as_ref().and_then(|object| object.shared::<Reservation>())
        };
        let may_help = match event {
            // Another reservation helps one that waits by its end alone.
            ClusterEvent::CustomChanged { old, new } if pod.stands_for.is_some() => {
                spec_of(old).is_some() && spec_of(new).is_none_or(|spec| spec.status.phase.has_ended())
            }
            ClusterEvent::CustomChanged { old, new } => spec_of(new).or(spec_of(old)).is_some(),
            ClusterEvent::PendingUpdated { old, .. } => old.spec != pod.spec || old.labels != pod.labels,
            _ => view.state::<Reservations>().is_some_and(|all| !all.is_empty()),
        };
        if may_help { Hint::Queue } else { Hint::Skip }
    }
}

impl Advice for ReservationPlugin {
    /// Counts in Koordinator's words the reservations of which the pod is an owner.
    fn sentence(&self, view: View<'_>, spec: &PodSpec, _now: Now) -> Option<String> {
        let seeker = Seeker::of(view, view.pod()?, spec).ok()??;
        let counts = if affinity::ignores_all(spec) { Counts::default() } else { seeker.counts() };
        if counts.owned == 0 && seeker.affinity().is_none() {
            return None;
        }
        let said = |n: usize, words: &str| (n > 0).then(|| format!("{n} Reservation(s) {words}"));
        let others = counts.others.iter().filter_map(|(mismatch, n)| said(*n, &mismatch.words()));
        let named = said(counts.named, "exactly matches the requested reservation name");
        let mut all: Vec<String> = named.into_iter().chain(others).collect();
        all.push(format!("{} Reservation(s) matched owner total", counts.owned));
        Some(all.join(", "))
    }

    fn body(&self, view: View<'_>, pod: &Pod, _now: Now) -> Value {
        json!(reading::candidates::reservations_of(view, pod))
    }
}

#[cfg(test)]
mod tests {
    use pellucid_cluster::{Cluster, Hold, Input};
    use pellucid_model::PodKey;
    use pellucid_model::pod::StandsFor;

    use super::*;

    #[test]
    fn a_reservation_for_which_a_plugin_holds_what_it_does_not_share_is_refused() {
        let mut cluster = Cluster::new(0, [], Vec::new());
        let of = StandsFor {
            api_version: "scheduling.koordinator.sh/v1alpha1".into(),
            kind: "Reservation".into(),
            name: "r".into(),
            ..StandsFor::default()
        };
        let pod = Pod {
            key: PodKey::new("default", "reservation:r"),
            node_name: Some("n".into()),
            stands_for: Some(Arc::new(of)),
            ..Pod::default()
        };
        cluster.apply(Input::PodApplied(Arc::new(pod.clone())), &mut Vec::new());
        let id = cluster.find_pod(&pod.key).expect("it is known");
        let node = cluster.find_node(&"n".into()).expect("it has a slot");
        let plugin = ReservationPlugin { args: Arc::new(ReservationArgs::default()) };
        let said = |cluster: &Cluster| Permit::permit(&plugin, View::new(cluster), &pod, node);
        assert_eq!(said(&cluster), Permitted::Yes);
        cluster.reserve(id, Hold { plugin: "VolumeBinding", what: Arc::new(()), marks: None, whole: None });
        let Permitted::No(cause) = said(&cluster) else { panic!("{:?}", said(&cluster)) };
        assert_eq!(cause.reasons[0].code.as_str(), "ReservationHoldsMore");
        assert_eq!(cause.message(), "a reservation cannot hand on to its owners what VolumeBinding gives it");
    }
}
