//! Builds a gang's definition from what its PodGroup and its pods declare. The PodGroup takes precedence over the pods,
//! and the oldest pod over the others. A definition that cannot be used says why; nothing is guessed.

use std::sync::Arc;
use std::time::Duration;

use pellucid_model::gang::{
    Dialect, GangDeclaration, GangMode, GangProblem, GangTerms, MatchPolicy, PodGroup,
};
use pellucid_model::requests::ResourceList;
use pellucid_model::{GangKey, Name, Object, ObjectKind};

use super::declarations::{GangDeclarations, controller_kind};
use super::gang_groups::GroupLimits;
use crate::objects::Objects;

/// Where a definition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangFrom {
    /// A PodGroup of this kind.
    PodGroup(ObjectKind),
    /// Labels or annotations of the gang's pods.
    Pods,
}

/// Why a gang cannot be scheduled as it is defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// The PodGroup that its pods name was not created yet.
    GroupMissing,
    /// The PodGroup was deleted.
    GroupGone,
    /// A declared value cannot be used and has no default.
    Invalid(GangProblem),
    /// Its pods declare it in these two dialects.
    Mixed(Dialect, Dialect),
    /// It names a kube-batch queue that does not exist.
    QueueMissing(Name),
    /// It names more gangs as its group than a group may have.
    NamesTooMany {
        /// Number of gangs that it names as its group, itself included.
        named: usize,
        /// Maximum number of gangs in a group.
        max: u32,
    },
    /// Its pods come from one controller, which creates fewer than the quorum.
    NeverComplete {
        /// Kind and name of the controller, such as `ReplicaSet web`.
        owner: Arc<str>,
        /// Number of replicas of that controller.
        replicas: u32,
    },
}

/// What is in force for a gang, from its PodGroup and its pods together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The dialect of the declarations.
    pub dialect: Dialect,
    /// Whether the PodGroup or the pods define the gang.
    pub from: GangFrom,
    /// Number of members that make a quorum.
    pub min: u32,
    /// Total number of members that will ever exist, when declared.
    pub total: Option<u32>,
    /// What happens to placeable members while the quorum is missing.
    pub mode: GangMode,
    /// Koordinator's match policy; the other dialects have a fixed rule.
    pub policy: Option<MatchPolicy>,
    /// How long members wait for each other; `None` means the dialect's default.
    pub wait: Option<Duration>,
    /// The gangs that it names as its group, itself included, sorted by key, without duplicates.
    pub groups: Arc<[GangKey]>,
    /// Creation of the PodGroup, or of the first pod when there is none, in seconds since 1970.
    pub created: i64,
    /// The PodGroup's own priority.
    pub priority: Option<i32>,
    /// Resources that must be free before anything is planned.
    pub min_resources: Option<ResourceList>,
    /// Whether its pods are scheduled one by one (native `basic` policy).
    pub is_basic: bool,
    /// Why the gang cannot be scheduled as defined; `None` when the definition can be used.
    pub undefined: Option<Undefined>,
    /// Problems that do not prevent scheduling, such as values that a default replaces. Sorted and bounded.
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
            groups: Arc::default(),
            created: i64::MAX,
            priority: None,
            min_resources: None,
            is_basic: false,
            undefined: None,
            warnings: Vec::new(),
        }
    }
}

/// kube-batch's queue of PodGroups that name none; it always exists.
const DEFAULT_QUEUE: &str = "default";

/// Maximum number of warnings that a definition lists.
const MAX_WARNINGS: usize = 16;

/// What a definition is built from.
pub(super) struct Sources<'a> {
    /// What the members that have not ended declare.
    pub(super) declarations: &'a GangDeclarations,
    /// The declaration of the member that takes precedence over the others.
    pub(super) first: Option<&'a GangDeclaration>,
    /// The fatal problem of the oldest member whose declaration cannot be used.
    pub(super) fault: Option<&'a GangProblem>,
    /// The objects of the state: PodGroups, queues and controllers.
    pub(super) objects: &'a Objects,
    /// Whether a PodGroup existed before.
    pub(super) had_group: bool,
    /// How many gangs one may name, and what one has that does not say it.
    pub(super) limits: GroupLimits,
}

/// Builds the definition of a gang.
pub(super) fn define(key: &GangKey, of: &Sources<'_>) -> Definition {
    let (first, objects) = (of.first, of.objects);
    let group = find_group(key, first.map(|m| m.dialect), objects);
    let Some(dialect) = first.map(|m| m.dialect).or(group.map(|g| dialect_of(g.kind))) else {
        return Definition::default();
    };
    let mut made = Definition { dialect, ..Definition::default() };
    made.created = group.map_or_else(|| of.declarations.oldest().map_or(0, |(at, _)| at), |g| g.created);
    let of_pods = first.map_or_else(GangTerms::default, |m| m.terms.clone());
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
        // The rule of every other dialect is fixed.
        made.policy = None;
        let problem = "only gangs of Koordinator's dialect have a match policy";
        made.warnings.push(warning("match-policy", policy.as_str(), problem));
    }
    if dialect == Dialect::Koordinator {
        made.wait = made.wait.or(of.limits.wait);
        made.policy = made.policy.or(of.limits.policy);
    }
    collect_problems(&mut made, of, group);
    if made.undefined.is_none() {
        made.undefined = contradiction(&made, of, group);
    }
    if made.undefined.is_none() {
        made.undefined = never_complete(key, &made, of);
    }
    bound_group(&mut made, of.limits.gangs);
    made
}

/// Drops a group that is too large, so that the cost of walking along it is bounded.
fn bound_group(made: &mut Definition, max: u32) {
    let named = made.groups.len();
    if named > max as usize {
        made.groups = Arc::default();
        made.undefined.get_or_insert(Undefined::NamesTooMany { named, max });
    }
}

fn warning(field: &str, value: &str, problem: &str) -> GangProblem {
    GangProblem { field: field.into(), value: value.into(), problem: problem.into(), is_fatal: false }
}

/// Applies declared values, taking each field from `first` where it is set, else from `second`.
fn take_terms(made: &mut Definition, first: GangTerms, second: GangTerms) {
    made.min = first.min.or(second.min).unwrap_or(1);
    made.total = first.total.or(second.total);
    made.mode = first.mode.or(second.mode).unwrap_or_default();
    made.policy = first.policy.or(second.policy);
    made.wait = first.wait.or(second.wait);
    made.groups = in_order(if first.groups.is_empty() { second.groups } else { first.groups });
}

/// Returns the gangs sorted and without duplicates, so that lookups can use binary search.
fn in_order(groups: Arc<[GangKey]>) -> Arc<[GangKey]> {
    if groups.windows(2).all(|pair| pair[0] < pair[1]) {
        return groups;
    }
    let mut sorted = groups.to_vec();
    sorted.sort();
    sorted.dedup();
    sorted.into()
}

fn collect_problems(made: &mut Definition, of: &Sources<'_>, group: Option<&PodGroup>) {
    // What a PodGroup or an older pod declares correctly, the other pods need not declare.
    let is_defined = match group {
        Some(group) => group.terms.min.is_some() || group.is_basic,
        None => of.first.is_some_and(|mark| !mark.problems.iter().any(|p| p.is_fatal)),
    };
    let of_group = group.iter().flat_map(|g| g.problems.iter());
    let fault = of_group.clone().find(|p| p.is_fatal).or(of.fault.filter(|_| !is_defined));
    made.undefined = fault.cloned().map(Undefined::Invalid);
    let of_group = of_group.filter(|p| !p.is_fatal || is_defined);
    made.warnings.extend(of_group.map(|p| GangProblem { is_fatal: false, ..p.clone() }));
    // Takes one more than is listed, to notice that there are more.
    let faults = of.declarations.faults().filter(|_| is_defined).take(MAX_WARNINGS + 1);
    made.warnings.extend(of.declarations.warnings().take(MAX_WARNINGS + 1).chain(faults).cloned());
    let min = of.first.and_then(|mark| mark.terms.min);
    if group.is_none()
        && of.first.is_some()
        && let Some(said) = of.declarations.other_quorum(min)
    {
        let problem = format!("its pods disagree; the oldest one's {} counts", min.unwrap_or(1));
        made.warnings.push(warning("min", &said.to_string(), &problem));
    }
    made.warnings.sort();
    made.warnings.dedup();
    if made.warnings.len() > MAX_WARNINGS {
        made.warnings.truncate(MAX_WARNINGS);
        let problem = format!("they have more warnings than the {MAX_WARNINGS} that are listed");
        made.warnings.push(warning("pods", "", &problem));
    }
}

fn contradiction(made: &Definition, of: &Sources<'_>, group: Option<&PodGroup>) -> Option<Undefined> {
    if let Some(other) = of.declarations.other_dialect(made.dialect) {
        return Some(Undefined::Mixed(made.dialect, other));
    }
    let Some(group) = group else {
        let needs = of.declarations.needs_group() || of.first.is_none();
        return needs.then_some(if of.had_group { Undefined::GroupGone } else { Undefined::GroupMissing });
    };
    let queues = match group.kind {
        ObjectKind::PodGroupIncubator => ObjectKind::QueueIncubator,
        ObjectKind::PodGroupSigsDev => ObjectKind::QueueSigsDev,
        _ => return None,
    };
    let queue = &group.queue;
    let is_default = queue.is_empty() || &**queue == DEFAULT_QUEUE;
    let exists = is_default || of.objects.get(queues, &(Name::default(), queue.clone())).is_some();
    (!exists).then(|| Undefined::QueueMissing(queue.clone()))
}

/// Checks whether all pods come from one controller whose replicas are fewer than the quorum.
fn never_complete(key: &GangKey, made: &Definition, of: &Sources<'_>) -> Option<Undefined> {
    let owner = of.declarations.controller()?;
    let at = (key.namespace.clone(), Name::new(&owner.name));
    let replicas = of.objects.get(controller_kind(owner)?, &at)?.controller()?.replicas?;
    let is_short = replicas < made.min && of.declarations.len() <= replicas as usize;
    is_short.then(|| Undefined::NeverComplete {
        owner: format!("{} {}", owner.kind, owner.name).into(),
        replicas,
    })
}

/// Returns the PodGroup that defines a gang. When several API groups have one, the first in `POD_GROUPS` order counts.
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
