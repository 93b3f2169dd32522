//! Rebuilds a scheduler from a dump, and repeats decisions with it.

use std::sync::Arc;
use std::time::Duration;

use pellucid_cluster::input::Quarantined;
use pellucid_cluster::{Input, NominatedBy, Nomination};
use pellucid_cycle::scheduler::Settings;
use pellucid_cycle::{Registry, Scheduler};
use pellucid_framework::profile::Profile;
use pellucid_model::collections::{HashMap, HashSet};
use pellucid_model::gang::{Dialect, GangDeclaration, GangTerms};
use pellucid_model::{CustomKindRef, CustomObject, GangKey, Name, Now, ObjectKind, Pod, PodKey};
use pellucid_queue::QueueLimits;
use pellucid_recording::Outcome;
use pellucid_recording::switches::Switches;

use super::Dump;
use super::check::stage;
use super::record::PastVerdict;
use super::state::{EndedPod, KnownNomination, PlacedPod, PluginObject, State, Unreadable};
use crate::history::hash_of_outcome;

/// The placements to undo before a decision is repeated: those of its attempt and of later ones.
#[derive(Clone, Debug, Default)]
pub struct Rewind {
    pods: HashSet<PodKey>,
    /// The time of the decision: nominations made then or later are ignored. In nanoseconds since 1970.
    until: Option<u64>,
}

impl Rewind {
    /// Returns what to undo so that a placed pod is decided on as if it had not been placed.
    pub fn before(dump: &Dump, verdict: &PastVerdict) -> Self {
        let placed: HashSet<&PodKey> =
            dump.state.pods.iter().filter(|p| p.node.is_some()).map(|p| &p.pod.key).collect();
        let later = dump
            .record
            .verdicts
            .iter()
            .filter(|v| v.outcome == "Placed" && v.cycle >= verdict.cycle && placed.contains(&v.pod));
        Self { pods: later.map(|v| v.pod.clone()).collect(), until: Some(verdict.at) }
    }

    /// Returns how many placements are undone, including the pod's own.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Returns whether nothing is undone.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}

/// A repeated decision.
#[derive(Clone, Debug)]
pub struct Decided {
    /// `Placed`, `Refused` or `Gated`.
    pub outcome: &'static str,
    /// Node of a placed pod.
    pub node: Option<String>,
    /// Hash of the decision: 16 hexadecimal digits.
    pub decision_hash: String,
    /// Message of a refusal, or the node in words.
    pub message: String,
}

/// Returns a scheduler in the state of the dump. Fails when the profiles do not fit the dump, the scheduler does not
/// accept one of its pods, or the dump contains an unknown stage or kind, or an object that its plugin cannot read.
pub fn restore(
    dump: &Dump,
    profiles: Vec<Profile>,
    registry: Registry,
    rewind: &Rewind,
) -> Result<Scheduler, String> {
    let state = &dump.state;
    if state.starts.len() != profiles.len() {
        let (starts, profiles) = (state.starts.len(), profiles.len());
        return Err(format!("state.starts has {starts} numbers, and configuration {profiles} profiles"));
    }
    let mut kinds: Vec<CustomKindRef> =
        registry.iter().flat_map(|factory| factory.kinds()).map(CustomKindRef).collect();
    kinds.sort();
    kinds.dedup();
    let mut scheduler = Scheduler::new(Settings {
        profiles,
        registry,
        limits: QueueLimits::default(),
        seed: state.seed,
        switches: Arc::new(Switches::default()),
        // What is rebuilt writes nothing.
        controllers: Vec::new(),
        shadow_of: state.shadow_of.clone(),
    });
    // Before a decision is repeated, time goes back to it, because plugins may judge objects by their age.
    let now = time(dump, rewind.until.unwrap_or(dump.published));
    let plugin_time = Duration::from_nanos(state.plugin_time).min(now.wall);
    scheduler.restore_begin(Now { wall: plugin_time, ..now });
    scheduler.apply(Input::Leading(!state.is_standby), now);
    apply_objects(&mut scheduler, state, (rewind, &kinds), now)?;
    for pod in state.pods.iter().filter(|p| !rewind.pods.contains(&p.pod.key)) {
        let Some(node) = &pod.node else { continue };
        let stage =
            stage(&pod.stage).ok_or_else(|| format!("pod {} has the stage {:?}", pod.pod.key, pod.stage))?;
        let since = pod.since.map_or(now.wall, Duration::from_nanos);
        scheduler.restore_place(&pod.pod.key, node, (stage, since), pod.marks.as_ref());
    }
    let counts = |n: &&KnownNomination| {
        rewind.until.is_none_or(|until| n.since < until) && !rewind.pods.contains(&n.pod)
    };
    let nominations = state.nominations.iter().filter(counts).map(|n| nomination(n, now));
    scheduler.restore_nominations(nominations.collect());
    let fresh = fresh_gangs(dump, rewind);
    for gang in &state.gangs {
        let is_fresh = fresh.contains(&gang.key);
        let (once, partial) = (gang.once_satisfied && !is_fresh, gang.is_partial && !is_fresh);
        scheduler.restore_gang(&gang.key, once, partial, gang.is_overdue, gang.had_group);
    }
    scheduler.restore_end(state.starts.clone(), now);
    Ok(scheduler)
}

/// Applies the objects of a dump as a watch would. Fails when the scheduler does not accept one of its pods, or a plugin
/// one of its objects.
fn apply_objects(
    scheduler: &mut Scheduler,
    state: &State,
    (rewind, kinds): (&Rewind, &[CustomKindRef]),
    now: Now,
) -> Result<(), String> {
    let mut unreadable = unreadable(&state.unreadable, kinds)?;
    let mut of_kind =
        |kind: &str| -> Vec<Quarantined> { unreadable.extract_if(.., |q| q.kind == kind).collect() };
    scheduler.apply(Input::NodesReset { nodes: state.nodes.clone(), quarantined: of_kind("Node") }, now);
    for kind in ObjectKind::ALL {
        let objects = state.objects.iter().filter(|o| o.kind() == kind).cloned().collect();
        scheduler.apply(Input::ObjectsReset { kind, objects, quarantined: of_kind(kind.as_str()) }, now);
    }
    let mut plugin_objects = plugin_objects(state, kinds)?;
    for kind in kinds {
        let objects = plugin_objects.extract_if(.., |object| object.kind == *kind).collect();
        let quarantined = of_kind(kind.0.qualified);
        scheduler.apply(Input::CustomReset { kind: *kind, objects, quarantined }, now);
    }
    let pods = state.pods.iter().map(|p| match rewind.pods.contains(&p.pod.key) {
        true => unplaced(&p.pod),
        false => p.pod.clone(),
    });
    let pods = pods.chain(state.ended.iter().map(ended)).collect();
    scheduler.apply(Input::PodsReset { pods, quarantined: of_kind("Pod") }, now);
    let is_left_out = |pod: &&PlacedPod| scheduler.cluster().find_pod(&pod.pod.key).is_none();
    match state.pods.iter().find(is_left_out) {
        Some(pod) => Err(left_out(scheduler, &pod.pod)),
        None => Ok(()),
    }
}

fn nomination(of: &KnownNomination, now: Now) -> (PodKey, Nomination) {
    let since = Now { wall: Duration::from_nanos(of.since), ..now };
    let by = if of.is_ours { NominatedBy::Us } else { NominatedBy::Others };
    (of.pod.clone(), Nomination { node: of.node.clone(), by, since })
}

/// Decides on a pod that has no place, together with its gang if that is one of a group without a quorum. The time is that
/// of the recorded verdict, so that ages in explanations are the same.
pub fn decide(scheduler: &mut Scheduler, dump: &Dump, pod: &PodKey) -> Result<Decided, String> {
    let recorded = dump.record.verdicts.iter().find(|verdict| verdict.pod == *pod);
    let now = time(dump, recorded.map_or(dump.published, |verdict| verdict.at));
    let verdict = scheduler.decide_again(pod, now)?;
    let (outcome, node, message) = match &verdict.outcome {
        Outcome::Placed(placement) => {
            let node = scheduler.cluster().node_name(placement.node);
            ("Placed", Some(node.to_string()), format!("it goes to {node}"))
        }
        Outcome::Refused(refusal) => ("Refused", None, refusal.message().to_string()),
        Outcome::Gated(refusal) => ("Gated", None, refusal.message().to_string()),
    };
    let decision_hash = hash_of_outcome(scheduler.cluster(), (&pod.namespace, &pod.name), &verdict.outcome);
    Ok(Decided { outcome, node, decision_hash, message })
}

/// Returns a time, in nanoseconds since 1970, but not one after the dump.
fn time(dump: &Dump, at: u64) -> Now {
    // The monotonic clock, which deadlines use, starts over.
    Now { monotonic: Duration::from_secs(1), wall: Duration::from_nanos(at.min(dump.published)) }
}

/// Reads the objects of plugins' kinds. Fails when no plugin knows the kind, or it cannot read the object.
fn plugin_objects(state: &State, kinds: &[CustomKindRef]) -> Result<Vec<Arc<CustomObject>>, String> {
    let read = |(i, object): (usize, &PluginObject)| {
        let PluginObject { kind: word, namespace, name, uid, resource_version, content } = object;
        let of = |problem: String| format!("state.pluginObjects[{i}], {word} {name}: {problem}");
        let kind = kinds.iter().find(|kind| kind.0.qualified == word);
        let kind = *kind.ok_or_else(|| of("no plugin of this program brings this kind".to_owned()))?;
        let value = (kind.0.decode)(content).map_err(|error| of(format!("content.{error}")))?;
        Ok(Arc::new(CustomObject {
            kind,
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
            resource_version: resource_version.clone(),
            value,
            pod: state
                .pods
                .iter()
                .map(|p| &p.pod)
                .find(|pod| stands_for(pod, kind, (namespace, name)))
                .cloned()
                .map(Ok),
        }))
    };
    state.plugin_objects.iter().enumerate().map(read).collect()
}

/// Returns whether a pod stands for this object.
fn stands_for(pod: &Pod, CustomKindRef(kind): CustomKindRef, object: (&Name, &Name)) -> bool {
    pod.stands_for.as_ref().is_some_and(|of| {
        &*of.kind == kind.kind
            && of.api_version.split_once('/') == Some((kind.group, kind.version))
            && (&of.namespace, &of.name) == object
    })
}

/// Returns the gangs whose placed members are all undone: their quorum is planned again.
fn fresh_gangs(dump: &Dump, rewind: &Rewind) -> HashSet<GangKey> {
    let mut is_fresh: HashMap<&GangKey, bool> = HashMap::default();
    for placed in dump.state.pods.iter().filter(|p| p.node.is_some()) {
        if let Some(gang) = placed.pod.member_of() {
            *is_fresh.entry(gang).or_insert(true) &= rewind.pods.contains(&placed.pod.key);
        }
    }
    is_fresh.into_iter().filter(|(_, fresh)| *fresh).map(|(gang, _)| gang.clone()).collect()
}

/// Explains why the scheduler did not accept a pod of the dump.
fn left_out(scheduler: &Scheduler, pod: &Pod) -> String {
    let (key, name) = (&pod.key, &pod.scheduler_name);
    if !scheduler.cluster().is_ours(name) {
        return format!(
            "state.pods: pod {key} waits for scheduler {name:?}, and no profile of configuration has that name"
        );
    }
    format!("state.pods: pod {key} waits, and state.unreadable says that it cannot be read")
}

fn unplaced(pod: &Pod) -> Arc<Pod> {
    Arc::new(Pod { node_name: None, nominated_node: None, deleting: false, ..pod.clone() })
}

fn ended(ended: &EndedPod) -> Arc<Pod> {
    let mark = GangDeclaration {
        gang: ended.gang.clone(),
        dialect: Dialect::Unicore,
        needs_group: false,
        is_shadow: false,
        names_two: false,
        terms: GangTerms::default(),
        problems: Box::default(),
    };
    Arc::new(Pod {
        key: ended.key.clone(),
        uid: ended.uid.clone(),
        phase: ended.phase,
        gang: Some(Arc::new(mark)),
        ..Pod::default()
    })
}

fn unreadable(all: &[Unreadable], of_plugins: &[CustomKindRef]) -> Result<Vec<Quarantined>, String> {
    let read = |object: &Unreadable| {
        let kinds = ObjectKind::ALL.into_iter().map(ObjectKind::as_str).chain(["Pod", "Node"]);
        let mut kinds = kinds.chain(of_plugins.iter().map(|kind| kind.0.qualified));
        let kind = kinds.find(|kind| *kind == object.kind);
        Ok(Quarantined {
            kind: kind.ok_or_else(|| format!("objects of kind {:?} are not known", object.kind))?,
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            uid: object.uid.clone(),
            // Without a scheduler name, no event reports the object, and it does not count as a pending pod.
            scheduler_name: None,
            is_bound: false,
            field: object.field.clone(),
            value: object.value.clone(),
            problem: object.problem.clone(),
        })
    };
    all.iter().map(read).collect()
}
