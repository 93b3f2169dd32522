//! The trees of quotas: which quota is whose child, and the amounts of each.
//!
//! A tree is made from all objects at once; `accounting` then counts pods in it and `shares` distributes what there is.
//! Bad objects leave the rest alone: of two quotas with one name the older counts, and a quota without a known parent,
//! or on a circle of parents, stands below the root with its min and no weight.

use std::sync::Arc;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_model::Name;
use pellucid_model::collections::FxHashMap;
use pellucid_model::stable_hash::StableHash;

use super::args::QuotaArgs;
use super::quota::{Amounts, ElasticQuota};

/// Position of a quota in [`Tree::quotas`].
pub(super) type QuotaIdx = usize;

/// The root of the default tree, the system quota and the default quota, which are always there.
pub(super) const ROOT: QuotaIdx = 0;
pub(super) const SYSTEM: QuotaIdx = 1;
pub(super) const DEFAULT: QuotaIdx = 2;

/// What a quota is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The root of a tree, which has the total.
    Root,
    /// The system quota or the default quota: not distributed to, taken off the total by what it uses.
    BuiltIn,
    /// Any other.
    Ordinary,
}

/// Why a quota stands below the root instead of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutOff {
    /// Its parent does not exist.
    UnknownParent,
    /// Its ancestors lead back to it.
    Circle,
}

/// What pods add up to, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Requests of all pods.
    pub(super) request: i128,
    /// Requests of the pods that have a place.
    pub(super) used: i128,
    /// The part of `request` of pods that are not preemptible.
    pub(super) fixed_request: i128,
    /// The part of `used` of pods that are not preemptible.
    pub(super) fixed_used: i128,
}

/// The amounts of one resource in one quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    /// Its max; without one the resource is not counted for its own pods.
    pub(super) max: Option<i64>,
    pub(super) min: Option<i64>,
    pub(super) weight: i64,
    /// Of its own pods.
    pub(super) own: Sums,
    /// Of its own pods and of those below it. Here `request` has of each child what the child asks for.
    pub(super) all: Sums,
    /// What runs in it, or is guaranteed to its children. Kept when usage is guaranteed.
    pub(super) allocated: i128,
    /// Its min as far as there is enough for the mins of all siblings.
    pub(super) scaled_min: i64,
    /// Whether `scaled_min` was scaled.
    pub(super) is_scaled: bool,
    /// What it may use now; of a root, the total.
    pub(super) runtime: i64,
}

/// Returns an exact sum as an amount.
pub(super) fn clamp(sum: i128) -> i64 {
    i64::try_from(sum.max(0)).unwrap_or(i64::MAX)
}

impl Cell {
    /// Returns its min, 0 when it has none.
    pub(super) fn floor(&self) -> i64 {
        self.min.unwrap_or(0)
    }

    /// Returns what it requests: what pods and children ask for and, if it does not lend, at least its min.
    pub(super) fn request(&self, lends: bool) -> i64 {
        let asked = clamp(self.all.request);
        if lends { asked } else { asked.max(self.floor()) }
    }

    /// Returns what it asks of its parent: its request, at most its max.
    pub(super) fn limited_request(&self, lends: bool) -> i64 {
        self.request(lends).min(self.max.unwrap_or(i64::MAX))
    }

    /// Returns what stays guaranteed to it: min, or what is allocated.
    pub(super) fn guaranteed(&self) -> i64 {
        clamp(self.allocated).max(self.floor())
    }
}

/// One quota.
#[derive(Clone, Debug)]
pub(super) struct Quota {
    pub(super) name: Name,
    pub(super) role: Role,
    /// Its object, if it has one.
    pub(super) object: Option<Arc<ElasticQuota>>,
    pub(super) parent: Option<QuotaIdx>,
    /// By name.
    pub(super) children: Arc<[QuotaIdx]>,
    /// Name of its tree; empty for the default tree.
    pub(super) tree: Name,
    pub(super) cut_off: Option<CutOff>,
    pub(super) lends: bool,
    /// By resource, in the order of [`Tree::resources`].
    pub(super) cells: Box<[Cell]>,
    /// Whether the shares of its children must be worked out again.
    pub(super) is_dirty: bool,
}

/// All quotas.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// Names of the resources that some quota has a max for.
    pub(super) resources: Arc<[Name]>,
    pub(super) quotas: Vec<Arc<Quota>>,
    /// Quotas that may have children, parents before their children.
    pub(super) downwards: Arc<[QuotaIdx]>,
    by_name: Arc<FxHashMap<Name, QuotaIdx>>,
    by_namespace: Arc<FxHashMap<Name, QuotaIdx>>,
    /// Whether all quotas keep what they have, as with allow-lent-resource false.
    pub(super) guarantees_usage: bool,
}

impl Tree {
    /// Makes the tree of some objects, without pods. `objects` has one object per name, by name.
    pub(super) fn new(objects: &[Arc<ElasticQuota>], args: &QuotaArgs) -> Self {
        let resources = resources(objects, args);
        let mut made = Self {
            quotas: built_ins(&resources, args),
            resources,
            downwards: Arc::default(),
            by_name: Arc::default(),
            by_namespace: Arc::default(),
            guarantees_usage: args.guarantees_usage,
        };
        let mut by_name = FxHashMap::default();
        for (i, names) in BUILT_IN.iter().enumerate() {
            by_name.insert(Name::new(names[0]), i);
            by_name.insert(Name::new(names[1]), i);
        }
        for object in objects {
            let at = made.quotas.len();
            // A quota that happens to have a name of 0.7's is an ordinary one, unless it stands where built-ins do.
            if let Some(built_in) = built_in(object, args) {
                made.set_object(built_in, object);
                continue;
            }
            by_name.insert(object.name.clone(), at);
            made.quotas.push(Arc::new(ordinary(object, &made.resources)));
        }
        made.by_name = Arc::new(by_name);
        made.by_namespace = Arc::new(made.namespaces());
        made.join(objects.len());
        made
    }

    /// Gives a built-in quota its object. What the object says of min and max counts, except for the root.
    fn set_object(&mut self, at: QuotaIdx, object: &Arc<ElasticQuota>) {
        let quota = Arc::make_mut(&mut self.quotas[at]);
        quota.object = Some(object.clone());
        if at != ROOT && !object.max.is_empty() {
            set_amounts(&mut quota.cells, &self.resources, object);
        }
    }

    fn namespaces(&self) -> FxHashMap<Name, QuotaIdx> {
        let mut all = FxHashMap::default();
        for (at, quota) in self.quotas.iter().enumerate() {
            for namespace in quota.object.iter().flat_map(|object| &object.namespaces) {
                // Of several quotas that claim a namespace the first by name has it.
                all.entry(namespace.clone()).or_insert(at);
            }
        }
        for (at, quota) in self.quotas.iter().enumerate().skip(BUILT_IN.len()) {
            // A quota in the namespace whose name it has comes before annotations.
            if quota.object.as_ref().is_some_and(|object| object.namespace == object.name) {
                all.insert(quota.name.clone(), at);
            }
        }
        all
    }

    /// Joins children to parents.
    fn join(&mut self, n_objects: usize) {
        let first = BUILT_IN.len();
        let mut roots: FxHashMap<Name, QuotaIdx> = FxHashMap::from_iter([(Name::default(), ROOT)]);
        for at in first..self.quotas.len() {
            let parent = self.parent_of(at);
            let quota = Arc::make_mut(&mut self.quotas[at]);
            match parent {
                Ok(parent) => quota.parent = Some(parent),
                Err(why) => (quota.parent, quota.cut_off) = (Some(ROOT), Some(why)),
            }
        }
        for at in first..self.quotas.len() {
            if self.is_on_circle(at, n_objects) {
                let quota = Arc::make_mut(&mut self.quotas[at]);
                quota.cut_off = Some(CutOff::Circle);
            }
        }
        for at in first..self.quotas.len() {
            let quota = &self.quotas[at];
            let own_tree = quota.object.as_ref().filter(|o| o.is_tree_root && quota.parent == Some(ROOT));
            let own_tree = own_tree.and_then(|object| object.tree.clone());
            let is_cut_off = quota.cut_off.is_some();
            if is_cut_off {
                let quota = Arc::make_mut(&mut self.quotas[at]);
                quota.parent = Some(ROOT);
                quota.cells.iter_mut().for_each(|cell| cell.weight = 0);
            } else if let Some(tree) = own_tree {
                let root = *roots.entry(tree.clone()).or_insert_with(|| {
                    let root = Quota { tree, ..root(self.resources.len()) };
                    self.quotas.push(Arc::new(root));
                    self.quotas.len() - 1
                });
                Arc::make_mut(&mut self.quotas[at]).parent = Some(root);
            }
        }
        self.list_children();
    }

    fn parent_of(&self, at: QuotaIdx) -> Result<QuotaIdx, CutOff> {
        let Some(parent) = self.quotas[at].object.as_ref().and_then(|object| object.parent.as_ref()) else {
            return Ok(ROOT);
        };
        self.by_name.get(parent).copied().filter(|p| *p == ROOT || *p > DEFAULT).ok_or(CutOff::UnknownParent)
    }

    fn is_on_circle(&self, start: QuotaIdx, n: usize) -> bool {
        let mut at = start;
        for _ in 0..=n {
            match self.quotas[at].parent {
                None => return false,
                Some(parent) if parent == start => return true,
                Some(parent) => at = parent,
            }
        }
        false
    }

    /// Fills in children, trees and the order of parents.
    fn list_children(&mut self) {
        let mut children: Vec<Vec<QuotaIdx>> = vec![Vec::new(); self.quotas.len()];
        for (at, quota) in self.quotas.iter().enumerate() {
            if let Some(parent) = quota.parent {
                children[parent].push(at);
            }
        }
        let is_root = |at: &QuotaIdx| self.quotas[*at].role == Role::Root;
        let mut downwards: Vec<QuotaIdx> = (0..self.quotas.len()).filter(is_root).collect();
        for (at, mut own) in children.into_iter().enumerate() {
            own.sort_by(|a, b| self.quotas[*a].name.cmp(&self.quotas[*b].name));
            Arc::make_mut(&mut self.quotas[at]).children = own.into();
        }
        let mut next = 0;
        while let Some(at) = downwards.get(next).copied() {
            next += 1;
            let (children, tree) = (self.quotas[at].children.clone(), self.quotas[at].tree.clone());
            for child in children.iter() {
                Arc::make_mut(&mut self.quotas[*child]).tree = tree.clone();
                if !self.quotas[*child].children.is_empty() {
                    downwards.push(*child);
                }
            }
        }
        self.downwards = downwards.into();
    }

    /// Returns the quota that a pod with this label belongs to. An unknown name is the default quota.
    pub(super) fn of_pod(&self, label: Option<&Name>, namespace: &Name) -> QuotaIdx {
        let named = label.filter(|name| !name.is_empty());
        let found = match named {
            Some(name) => self.by_name.get(name),
            None => self.by_namespace.get(namespace),
        };
        found.copied().unwrap_or(DEFAULT)
    }

    /// Returns a quota by its name, or one of the names of a built-in one.
    pub(super) fn find(&self, name: &Name) -> Option<QuotaIdx> {
        self.by_name.get(name).copied()
    }

    pub(super) fn get(&self, at: QuotaIdx) -> &Quota {
        &self.quotas[at]
    }

    pub(super) fn get_mut(&mut self, at: QuotaIdx) -> &mut Quota {
        Arc::make_mut(&mut self.quotas[at])
    }

    /// Returns a number that changes, but for chance, whenever the quota's runtime does, and with nothing else.
    pub(super) fn version(&self, at: QuotaIdx) -> u64 {
        let mut hash = StableHash::default();
        for (cell, name) in self.quotas[at].cells.iter().zip(self.resources.iter()) {
            hash.add_text(name);
            hash.add_number(cell.runtime.unsigned_abs());
        }
        hash.finish() >> 1
    }

    /// Iterates from a quota up to its root.
    pub(super) fn upwards(&self, at: QuotaIdx) -> impl Iterator<Item = QuotaIdx> {
        std::iter::successors(Some(at), |at| self.quotas[*at].parent)
    }

    /// Returns whether others may use what a quota does not request.
    pub(super) fn lends(&self, quota: &Quota) -> bool {
        quota.lends && !self.guarantees_usage
    }

    /// Returns the resources that the children of a quota are given: those that one of them, or the quota itself unless
    /// it is a root, has a max for.
    pub(super) fn shared_resources(&self, parent: QuotaIdx) -> impl Iterator<Item = usize> {
        let own = &self.quotas[parent];
        let has = |quota: &Quota, r: usize| quota.cells[r].max.is_some();
        (0..self.resources.len()).filter(move |r| {
            (own.role != Role::Root && has(own, *r))
                || own.children.iter().any(|child| has(&self.quotas[*child], *r))
        })
    }
}

/// Names of the built-in quotas, by position.
const BUILT_IN: [[&str; 2]; 3] = [keys::ROOT_QUOTA, keys::SYSTEM_QUOTA, keys::DEFAULT_QUOTA];

/// Returns which built-in quota an object is. Names of 0.7 count only in the namespace of the built-in quotas.
pub(super) fn built_in(object: &ElasticQuota, args: &QuotaArgs) -> Option<QuotaIdx> {
    let is = |names: &[&str; 2]| {
        &*object.name == names[0] || (&*object.name == names[1] && object.namespace == args.namespace)
    };
    BUILT_IN.iter().position(is)
}

/// Returns the resources that some quota has a max for, by name.
fn resources(objects: &[Arc<ElasticQuota>], args: &QuotaArgs) -> Arc<[Name]> {
    let maxes = objects.iter().map(|object| &object.max).chain([&args.default_max, &args.system_max]);
    let mut all: Vec<Name> = maxes.flat_map(Amounts::keys).cloned().collect();
    all.sort();
    all.dedup();
    all.into()
}

fn root(n_resources: usize) -> Quota {
    Quota {
        name: Name::new(keys::ROOT_QUOTA[0]),
        role: Role::Root,
        object: None,
        parent: None,
        children: Arc::default(),
        tree: Name::default(),
        cut_off: None,
        lends: true,
        cells: vec![Cell::default(); n_resources].into(),
        is_dirty: false,
    }
}

fn built_ins(resources: &[Name], args: &QuotaArgs) -> Vec<Arc<Quota>> {
    let built_in = |name: &str, max: &Amounts| {
        let mut quota = Quota { name: name.into(), role: Role::BuiltIn, ..root(resources.len()) };
        let without_min = ElasticQuota { max: max.clone(), ..ElasticQuota::default() };
        set_amounts(&mut quota.cells, resources, &without_min);
        Arc::new(quota)
    };
    vec![
        Arc::new(root(resources.len())),
        built_in(keys::SYSTEM_QUOTA[0], &args.system_max),
        built_in(keys::DEFAULT_QUOTA[0], &args.default_max),
    ]
}

fn ordinary(object: &Arc<ElasticQuota>, resources: &[Name]) -> Quota {
    let mut made = Quota {
        name: object.name.clone(),
        role: Role::Ordinary,
        object: Some(object.clone()),
        lends: object.lends,
        ..root(resources.len())
    };
    set_amounts(&mut made.cells, resources, object);
    made
}

/// Takes over what an object says; a negative amount counts as 0.
pub(super) fn set_amounts(cells: &mut [Cell], resources: &[Name], object: &ElasticQuota) {
    let amount = |of: &Amounts, name: &Name| of.get(name).map(|amount| (*amount).max(0));
    for (cell, name) in cells.iter_mut().zip(resources) {
        cell.max = amount(&object.max, name);
        cell.min = amount(&object.min, name);
        cell.weight = amount(object.weight(), name).unwrap_or(0);
        cell.scaled_min = cell.floor();
    }
}
