//! What users of a simulated week submit, and the nodes. Every name, uid and label value of a job is its own.

use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::model::gang::{Controller, Dialect, GangDeclaration, GangTerms, PodGroup};
use pellucid::model::relations::{NodeInclusion, PodAffinityTerm, PodTerms, SpreadConstraint, WeightedTerm};
use pellucid::model::requests::ResourceList;
use pellucid::model::selector::{LabelSelector, Labels, NodeAffinity};
use pellucid::model::{GangKey, Name, Node, Object, ObjectKind, Pod, PodKey, PodSpec};

use crate::common::made::{requests, unreadable};
use crate::world::{Action, World, applied};

/// Scheduler name of the pods that are placed.
pub(crate) const SCHEDULER: &str = "pellucid";
const ZONE: &str = "topology.kubernetes.io/zone";
const JOB: &str = "batch.kubernetes.io/job-name";
/// Seconds until users delete what is still pending.
const PATIENCE: u64 = 900;

/// Submits the job of this number. The kinds take turns, so that the load is even.
pub(crate) fn submit(world: &mut World, job: u64) {
    match job % 20 {
        0..=8 => plain(world, job),
        9..=11 => odd(world, job),
        12 => gang(world, job, Dialect::Coscheduling),
        13 => gang(world, job, Dialect::Koordinator),
        14 => never_fits(world, job),
        15 | 16 => low(world, job),
        17 => urgent(world, job),
        18 => others(world, job),
        _ => gated_and_unreadable(world, job),
    }
}

/// Makes the n-th node. Every fourth is in the pool that is always full.
pub(crate) fn node(n: u64) -> Node {
    let name = Name::new(&format!("node-{n}"));
    let (milli_cpu, memory) = if is_tight(n) { (4_000, 64 << 30) } else { (64_000, 256 << 30) };
    Node {
        uid: format!("node-uid-{n}").into(),
        labels: node_labels(&name, "t0"),
        allocatable: ResourceList { milli_cpu, memory, pods: 110, ..ResourceList::default() },
        ready: true,
        name,
        ..Node::default()
    }
}

fn is_tight(n: u64) -> bool {
    n.is_multiple_of(4)
}

/// Returns the labels of a node: zone, pool, and when they were last written.
pub(crate) fn node_labels(name: &Name, stamp: &str) -> Labels {
    let n = name.rsplit('-').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or_default();
    let pool = if is_tight(n) { "tight" } else { "wide" };
    Labels::new([
        ("kubernetes.io/hostname".into(), name.clone()),
        (ZONE.into(), format!("zone-{}", n % 3).as_str().into()),
        ("pool".into(), pool.into()),
        ("stamp".into(), stamp.into()),
    ])
}

/// Makes a pod of a job, which has a controller and a label of its own.
fn pod(job: u64, index: u64, milli_cpu: i64) -> Pod {
    let (name, uid) = (format!("job-{job}"), format!("job-uid-{job}"));
    let labels =
        [(Name::new(JOB), Name::new(&name)), ("app".into(), format!("app-{}", job % 7).as_str().into())];
    let spec = PodSpec {
        namespace: "ns".into(),
        labels: Labels::new(labels.clone()),
        requests: requests(milli_cpu),
        n_containers: 1,
        affinity: in_pool("wide"),
        ..PodSpec::default()
    };
    Pod {
        key: PodKey::new("ns", &format!("{name}-{index}")),
        uid: format!("{uid}-{index}").into(),
        created: job as i64,
        labels: Labels::new(labels),
        scheduler_name: SCHEDULER.into(),
        controller: Some(Controller { uid: uid.into(), kind: "Job".into(), name: name.into() }),
        spec: Arc::new(spec),
        ..Pod::default()
    }
}

fn in_pool(pool: &str) -> NodeAffinity {
    NodeAffinity { selector: [("pool".into(), pool.into())].into(), ..NodeAffinity::default() }
}

fn with(mut pod: Pod, change: impl FnOnce(&mut PodSpec)) -> Pod {
    change(Arc::make_mut(&mut pod.spec));
    pod
}

/// Creates a pod, which its user deletes if it is still pending after a while.
fn create(world: &mut World, pod: Pod) {
    let key = pod.key.clone();
    world.after(0, Action::Create(Box::new(pod)));
    world.after(PATIENCE, Action::GiveUp(key));
}

fn plain(world: &mut World, job: u64) {
    for index in 0..4 {
        create(world, pod(job, index, 250 * (1 + job as i64 % 8)));
    }
}

/// Creates a pod with requests and selectors that no other has.
fn odd(world: &mut World, job: u64) {
    let selector = LabelSelector::of_pairs([&(Name::new(JOB), Name::new(&format!("job-{job}")))]);
    let term = PodAffinityTerm {
        topology_key: ZONE.into(),
        selector: Some(selector.clone()),
        ..PodAffinityTerm::default()
    };
    let spread = SpreadConstraint {
        max_skew: 1,
        topology_key: ZONE.into(),
        is_hard: false,
        selector: Some(selector),
        min_domains: 1,
        node_affinity_policy: NodeInclusion::Honor,
        node_taints_policy: NodeInclusion::Ignore,
    };
    let milli_cpu = 100 + (job % 1_000_003) as i64 % 900;
    let made = with(pod(job, 0, milli_cpu), |spec| {
        spec.limits.memory = job as i64;
        spec.spread = [spread].into();
        spec.pod_anti_affinity =
            PodTerms { required: [].into(), preferred: [WeightedTerm { weight: 1, term }].into() };
    });
    create(world, made);
}

/// Creates a strict gang, and its PodGroup if the dialect has one, which is deleted after all members have ended.
fn gang(world: &mut World, job: u64, dialect: Dialect) {
    const MEMBERS: u32 = 6;
    let key = GangKey::new("ns", &format!("gang-{job}"));
    let terms = GangTerms { min: Some(MEMBERS), ..GangTerms::default() };
    let needs_group = dialect == Dialect::Coscheduling;
    if needs_group {
        let (uid, of) = (format!("group-uid-{job}").into(), (key.namespace.clone(), key.name.clone()));
        let group = PodGroup { key: key.clone(), uid, terms: terms.clone(), ..PodGroup::default() };
        world.after(0, Action::Object(applied(Object::PodGroup(group))));
        world.after(4200, Action::Object(Input::ObjectDeleted(ObjectKind::PodGroupX, of)));
    }
    let declared = Arc::new(GangDeclaration {
        gang: key,
        dialect,
        needs_group,
        is_shadow: false,
        names_two: false,
        terms: if needs_group { GangTerms::default() } else { terms },
        problems: Box::default(),
    });
    for index in 0..u64::from(MEMBERS) {
        create(world, Pod { gang: Some(declared.clone()), ..pod(job, index, 500) });
    }
    world.counts.gangs += 1;
}

fn never_fits(world: &mut World, job: u64) {
    create(world, pod(job, 0, 1_000_000 + job as i64));
    create(world, with(pod(job, 1, 100), |spec| spec.affinity = in_pool(&format!("none-{job}"))));
}

/// Fills the tight pool with pods of low priority.
fn low(world: &mut World, job: u64) {
    for index in 0..3 {
        create(world, ranked(pod(job, index, 1_000), -10));
    }
}

/// Creates pods that have to preempt in the tight pool.
fn urgent(world: &mut World, job: u64) {
    for index in 0..3 {
        create(world, ranked(pod(job, index, 1_000), 1_000));
    }
}

fn ranked(pod: Pod, priority: i32) -> Pod {
    let pod = with(pod, |spec| (spec.priority, spec.affinity) = (priority, in_pool("tight")));
    Pod { priority, ..pod }
}

/// Creates a pod of another scheduler, which binds it at once.
fn others(world: &mut World, job: u64) {
    let made = Pod { scheduler_name: "other".into(), ..pod(job, 0, 200) };
    let node = world.newest_node();
    world.after(1, Action::Bound(made.key.clone(), node));
    create(world, made);
}

fn gated_and_unreadable(world: &mut World, job: u64) {
    let gated = Pod { gates: ["example.com/quota".into()].into(), ..pod(job, 0, 200) };
    world.after(30, Action::Ungate(gated.key.clone()));
    create(world, gated);
    let unread = unreadable(&pod(job, 1, 200));
    world.after(300, Action::Gone(PodKey::new("ns", &unread.name)));
    world.after(0, Action::Unreadable(unread));
}
