//! What a gang's declarations come to: the PodGroup's word goes before the pods', the oldest pod's before the
//! others'. A definition that cannot be used says why; nothing is guessed.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::objects::Objects;
use crate::model::gang::{Dialect, GangMark, GangMode, GangProblem, GangTerms, MatchPolicy, PodGroup};
use crate::model::requests::ResourceList;
use crate::model::{GangKey, Name, Object, ObjectKind, Pod};

/// Where a definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangFrom {
    /// A PodGroup of this kind.
    PodGroup(ObjectKind),
    /// Labels or annotations of its pods.
    Pods,
}

/// Why a gang is not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// Its PodGroup was not created yet.
    GroupMissing,
    /// Its PodGroup was deleted.
    GroupGone,
    /// Something it says cannot be used.
    Invalid(GangProblem),
    /// Its pods declare it in different dialects.
    Mixed(Dialect, Dialect),
    /// It is in a kube-batch queue that does not exist.
    QueueMissing(Name),
    /// Its pods come from one controller, which makes fewer than the quorum.
    NeverComplete {
        /// The controller, such as `ReplicaSet web`.
        owner: Arc<str>,
        /// How many pods it makes.
        replicas: u32,
    },
}

/// A gang's definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Dialect.
    pub dialect: Dialect,
    /// Where it comes from.
    pub from: GangFrom,
    /// Members of a quorum.
    pub min: u32,
    /// Members there will ever be, where somebody says so.
    pub total: Option<u32>,
    /// Mode.
    pub mode: GangMode,
    /// Koordinator's match policy; other dialects have a fixed rule.
    pub policy: Option<MatchPolicy>,
    /// How long members wait for each other; `None`: the dialect's default.
    pub wait: Option<Duration>,
    /// The gangs it names as its group.
    pub groups: Box<[GangKey]>,
    /// Creation: of the PodGroup if there is one, else of the first pod; seconds since 1970.
    pub created: i64,
    /// The PodGroup's own priority.
    pub priority: Option<i32>,
    /// What must be free before anything is planned.
    pub min_resources: Option<ResourceList>,
    /// Its pods are scheduled one by one (native `basic`).
    pub is_basic: bool,
    /// Why it is not defined.
    pub undefined: Option<Undefined>,
    /// What stands in for something that cannot be used.
    pub warnings: Vec<GangProblem>,
}

impl Default for Definition {
    fn default() -> Self {
        Self {
            dialect: Dialect::Coscheduling,
            from: GangFrom::Pods,
            min: 1,
            total: None,
            mode: GangMode::Strict,
            policy: None,
            wait: None,
            groups: Box::default(),
            created: i64::MAX,
            priority: None,
            min_resources: None,
            is_basic: false,
            undefined: None,
            warnings: Vec::new(),
        }
    }
}

/// kube-batch's queue of groups that name none; it always exists.
const DEFAULT_QUEUE: &str = "default";

/// Makes a definition. `pods` are the members that have not ended, the oldest first; `had_group`: whether a
/// PodGroup was there before.
pub(super) fn define(key: &GangKey, pods: &[&Pod], objects: &Objects, had_group: bool) -> Definition {
    let mut marks: Vec<&GangMark> = pods.iter().filter_map(|p| p.gang.as_deref()).collect();
    // The first that can be used counts, as with Koordinator.
    marks.sort_by_key(|mark| mark.problems.iter().any(|p| p.is_fatal));
    let group = find_group(key, marks.first().map(|m| m.dialect), objects);
    let Some(dialect) = marks.first().map(|m| m.dialect).or(group.map(|g| dialect_of(g.kind))) else {
        return Definition::default();
    };
    let mut made = Definition { dialect, ..Definition::default() };
    made.created = group.map_or_else(|| pods.iter().map(|p| p.created).min().unwrap_or(0), |g| g.created);
    let of_pods = marks.first().map_or_else(GangTerms::default, |m| m.terms.clone());
    match group {
        Some(group) => {
            made.from = GangFrom::PodGroup(group.kind);
            made.priority = group.priority;
            made.min_resources = group.min_resources.clone();
            made.is_basic = group.is_basic;
            take_terms(&mut made, group.terms.clone(), of_pods);
        }
        None => take_terms(&mut made, of_pods, GangTerms::default()),
    }
    if let Some(policy) = made.policy.filter(|_| dialect != Dialect::Koordinator && group.is_none()) {
        // Another dialect's rule is fixed.
        made.policy = None;
        made.warnings.push(unused_policy(policy));
    }
    collect_problems(&mut made, &marks, group);
    if made.undefined.is_none() {
        made.undefined = contradiction(&made, &marks, group, objects, had_group);
    }
    if made.undefined.is_none() {
        made.undefined = never_complete(&made, pods, objects);
    }
    made
}

fn unused_policy(policy: MatchPolicy) -> GangProblem {
    GangProblem {
        field: "match-policy".into(),
        value: policy.as_str().into(),
        problem: "only gangs of Koordinator's dialect have a match policy".into(),
        is_fatal: false,
    }
}

/// The first word counts, field by field.
fn take_terms(made: &mut Definition, first: GangTerms, second: GangTerms) {
    made.min = first.min.or(second.min).unwrap_or(1);
    made.total = first.total.or(second.total);
    made.mode = first.mode.or(second.mode).unwrap_or_default();
    made.policy = first.policy.or(second.policy);
    made.wait = first.wait.or(second.wait);
    made.groups = if first.groups.is_empty() { second.groups } else { first.groups };
}

fn collect_problems(made: &mut Definition, marks: &[&GangMark], group: Option<&PodGroup>) {
    // What a PodGroup or an older pod says well, its pods need not say.
    let is_defined = match group {
        Some(group) => group.terms.min.is_some() || group.is_basic,
        None => marks.first().is_some_and(|mark| !mark.problems.iter().any(|p| p.is_fatal)),
    };
    let of_group = group.iter().flat_map(|g| g.problems.iter());
    let of_pods = marks.iter().flat_map(|m| m.problems.iter());
    let fatal = of_group.clone().chain(of_pods.clone().filter(|_| !is_defined)).find(|p| p.is_fatal);
    made.undefined = fatal.cloned().map(Undefined::Invalid);
    let warnings = of_group.chain(of_pods).filter(|p| !p.is_fatal || is_defined);
    made.warnings.extend(warnings.map(|p| GangProblem { is_fatal: false, ..p.clone() }));
    if let Some(first) = marks.first()
        && group.is_none()
        && let Some(other) = marks.iter().find(|m| m.terms.min != first.terms.min && m.terms.min.is_some())
    {
        let (min, said) = (first.terms.min.unwrap_or(1), other.terms.min.unwrap_or(1));
        made.warnings.push(GangProblem {
            field: "min".into(),
            value: said.to_string().into(),
            problem: format!("its pods disagree; the oldest one's {min} counts").into(),
            is_fatal: false,
        });
    }
    made.warnings.sort();
    made.warnings.dedup();
}

fn contradiction(
    made: &Definition,
    marks: &[&GangMark],
    group: Option<&PodGroup>,
    objects: &Objects,
    had_group: bool,
) -> Option<Undefined> {
    if let Some(other) = marks.iter().find(|m| m.dialect != made.dialect) {
        return Some(Undefined::Mixed(made.dialect, other.dialect));
    }
    let Some(group) = group else {
        let needs = marks.iter().any(|m| m.needs_group) || marks.is_empty();
        return needs.then_some(if had_group { Undefined::GroupGone } else { Undefined::GroupMissing });
    };
    let queues = match group.kind {
        ObjectKind::PodGroupIncubator => ObjectKind::QueueIncubator,
        ObjectKind::PodGroupSigsDev => ObjectKind::QueueSigsDev,
        _ => return None,
    };
    let queue = &group.queue;
    let is_default = queue.is_empty() || &**queue == DEFAULT_QUEUE;
    let exists = is_default || objects.get(queues, &(Name::default(), queue.clone())).is_some();
    (!exists).then(|| Undefined::QueueMissing(queue.clone()))
}

/// When all its pods come from one controller, that one's replicas are all the pods there will ever be.
fn never_complete(made: &Definition, pods: &[&Pod], objects: &Objects) -> Option<Undefined> {
    let owner = pods.first()?.controller.as_ref()?;
    if pods.iter().any(|p| p.controller.as_ref() != Some(owner)) {
        return None;
    }
    let kind = match &*owner.kind {
        "ReplicaSet" => ObjectKind::ReplicaSet,
        "StatefulSet" => ObjectKind::StatefulSet,
        "ReplicationController" => ObjectKind::ReplicationController,
        _ => return None,
    };
    let key = (pods[0].key.namespace.clone(), Name::new(&owner.name));
    let replicas = objects.get(kind, &key)?.controller()?.replicas?;
    let is_short = replicas < made.min && pods.len() as u32 <= replicas;
    is_short.then(|| Undefined::NeverComplete {
        owner: format!("{} {}", owner.kind, owner.name).into(),
        replicas,
    })
}

/// Returns the PodGroup that defines a gang. Of two API groups that both have one, the first by order counts.
pub(super) fn find_group<'o>(
    key: &GangKey,
    dialect: Option<Dialect>,
    objects: &'o Objects,
) -> Option<&'o PodGroup> {
    let at = (key.namespace.clone(), key.name.clone());
    let kinds = ObjectKind::POD_GROUPS.into_iter().filter(|k| dialect.is_none_or(|d| may_define(*k, d)));
    let mut found = kinds.filter_map(|kind| objects.get(kind, &at));
    match found.next()?.as_ref() {
        Object::PodGroup(group) => Some(group),
        _ => None,
    }
}

fn may_define(kind: ObjectKind, dialect: Dialect) -> bool {
    match kind {
        ObjectKind::PodGroupX | ObjectKind::PodGroupSigs => {
            matches!(dialect, Dialect::Coscheduling | Dialect::Koordinator)
        }
        ObjectKind::PodGroupIncubator | ObjectKind::PodGroupSigsDev => dialect == Dialect::KubeBatch,
        ObjectKind::PodGroupNative => dialect == Dialect::Native,
        _ => false,
    }
}

fn dialect_of(kind: ObjectKind) -> Dialect {
    match kind {
        ObjectKind::PodGroupIncubator | ObjectKind::PodGroupSigsDev => Dialect::KubeBatch,
        ObjectKind::PodGroupNative => Dialect::Native,
        _ => Dialect::Coscheduling,
    }
}
