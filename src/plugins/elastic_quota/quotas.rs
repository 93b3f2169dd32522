//! The state of all quotas: objects, nodes and pods, and the tree that follows from them.
//!
//! Hooks of pods and nodes keep the sums of the tree current; its shares are worked out when the state is settled, once
//! for many changes. A changed object of a quota has the tree made anew, with all pods counted again.

use std::sync::Arc;
use std::time::Duration;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_cluster::Given;
use pellucid_cluster::derived::{DerivedState, HookContext, Placed, Touched};
use pellucid_model::effect::{ObjectWrite, WriteOutcome};
use pellucid_model::object::Object;
use pellucid_model::requests::ResourceList;
use pellucid_model::selector::Labels;
use pellucid_model::{CustomObject, Name, Node, NodeIdx, Now, Pages, Pod, PodId, PodKey, PodSpec};

use super::accounting::Part;
use super::args::QuotaArgs;
use super::objects::{Consequence, Objects};
use super::overuse::Overuse;
use super::shares::Totals;
use super::tree::{DEFAULT, QuotaIdx, ROOT, Tree};
use super::writes::{SETTLING, Sync};

/// What of a pod is counted where.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) quota: QuotaIdx,
    pub(super) spec: Arc<PodSpec>,
    /// What of its requests counts, of a pod in whose room others stand; `None`: all. What those take counts for them.
    pub(super) taken: Option<Arc<ResourceList>>,
    /// Whether the pod is not preemptible.
    pub(super) is_fixed: bool,
}

impl Charge {
    /// Returns what counts.
    pub(super) fn list(&self) -> &ResourceList {
        self.taken.as_deref().unwrap_or(&self.spec.requests.list)
    }
}

/// A pod as it is counted.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    pub(super) key: PodKey,
    pub(super) uid: Arc<str>,
    /// All labels, by which disruption budgets select.
    pub(super) labels: Labels,
    pub(super) priority: i32,
    /// When it started, in seconds since 1970.
    pub(super) started: Option<i64>,
    pub(super) is_deleting: bool,
    /// Whether it stands for an object, and so cannot be evicted as a pod.
    pub(super) is_stand_in: bool,
    /// Whether its end gives its room to others: a pod of a DaemonSet and a static one come back where they were.
    pub(super) can_leave: bool,
    /// What it requests.
    pub(super) requested: Option<Charge>,
    used: Used,
}

/// What a pod uses.
#[derive(Clone, Debug)]
enum Used {
    /// Nothing: it has no place.
    Nothing,
    /// What it requests, as nearly all pods.
    AsRequested,
    Other(Charge),
}

/// What was changed since the tree was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unsettled {
    Nothing,
    /// Requests, or what there is to share out.
    Shares,
    /// Nodes or profiles.
    Totals,
    /// Objects of quotas.
    Tree,
}

/// The state of all quotas.
#[derive(Clone)]
pub(super) struct Quotas {
    pub(super) args: Arc<QuotaArgs>,
    keys: Arc<LabelKeys>,
    pub(super) objects: Objects,
    pub(super) tree: Tree,
    pub(super) pods: Pages<Option<Arc<Counted>>>,
    pub(super) totals: Arc<Totals>,
    unsettled: Unsettled,
    /// Whether amounts have changed that readers of the objects, or of overuse, do not know of.
    has_news: bool,
    pub(super) sync: Sync,
    pub(super) overuse: Overuse,
}

/// The labels of pods that are read, as names.
struct LabelKeys {
    name: Name,
    preemptible: Name,
}

impl Quotas {
    pub(super) fn new(args: Arc<QuotaArgs>) -> Self {
        let tree = Tree::new(&[], &args);
        let keys = LabelKeys { name: keys::NAME.into(), preemptible: keys::PREEMPTIBLE.into() };
        let objects = Objects::default();
        let totals = Arc::new(objects.totals(&tree));
        Self {
            args,
            keys: Arc::new(keys),
            objects,
            tree,
            pods: Pages::default(),
            totals,
            unsettled: Unsettled::Tree,
            has_news: false,
            sync: Sync::default(),
            overuse: Overuse::default(),
        }
    }

    /// Returns the quota of a pod with this spec.
    pub(super) fn quota_of(&self, spec: &PodSpec) -> QuotaIdx {
        self.tree.of_pod(spec.wide_labels.get(&self.keys.name), &spec.namespace)
    }

    /// Returns whether a pod with this spec is never evicted for others, and counts against min.
    pub(super) fn is_fixed(&self, spec: &PodSpec) -> bool {
        spec.wide_labels.get(&self.keys.preemptible).is_some_and(|value| &**value == "false")
    }

    /// Returns the quota that a pod names, if no quota has that name.
    pub(super) fn unknown_quota(&self, spec: &PodSpec) -> Option<Name> {
        let named = spec.wide_labels.get(&self.keys.name).filter(|name| !name.is_empty())?;
        self.tree.find(named).is_none().then(|| named.clone())
    }

    pub(super) fn charge(&self, spec: &Arc<PodSpec>) -> Charge {
        Charge { quota: self.quota_of(spec), spec: spec.clone(), taken: None, is_fixed: self.is_fixed(spec) }
    }

    fn charge_of(&self, placed: &Placed<'_>) -> Charge {
        let taken = placed.given.map(|_| Arc::new(placed.taken().into_owned().list));
        Charge { taken, ..self.charge(&placed.pod.spec) }
    }

    /// Returns a charge in the tree as it is now.
    fn charged_anew(&self, charge: &Charge) -> Charge {
        Charge { taken: charge.taken.clone(), ..self.charge(&charge.spec) }
    }

    /// Replaces what of a pod counts as `part`.
    fn set_charge(&mut self, id: PodId, pod: &Pod, part: Part, new: Option<Charge>) {
        self.has_news = true;
        self.pods.grow(id.index() + 1);
        let slot = &mut self.pods[id.index()];
        let counted = Arc::make_mut(slot.get_or_insert_with(|| Arc::new(Counted::new(pod))));
        let before = match part {
            Part::Request => counted.request(new),
            Part::Used => {
                let before = counted.used().cloned();
                counted.used = new.map_or(Used::Nothing, Used::Other);
                before
            }
        };
        for (charge, times) in [(before.as_ref(), -1), (counted.of(part), 1)] {
            let Some(charge) = charge else { continue };
            count(&mut self.tree, &mut self.unsettled, &self.args, (charge, part, times));
        }
        if counted.requested.is_none() && counted.used().is_none() {
            *slot = None;
        }
    }

    /// Returns what of a pod's requests counts.
    fn requested(&self, id: PodId) -> Option<&Charge> {
        self.pods.get(id.index())?.as_ref()?.requested.as_ref()
    }

    /// Lets a pod use what it requests, if that is known, or no longer. Returns whether it is so.
    fn set_use(&mut self, id: PodId, has_place: bool) -> bool {
        let Some(Some(counted)) = self.pods.get_mut(id.index()) else { return false };
        let is_plain = match counted.used {
            Used::Nothing => has_place && counted.requested.is_some(),
            Used::AsRequested => !has_place,
            Used::Other(_) => false,
        };
        let Some(charge) = counted.requested.as_ref().filter(|_| is_plain) else { return false };
        self.has_news = true;
        let times = if has_place { 1 } else { -1 };
        count(&mut self.tree, &mut self.unsettled, &self.args, (charge, Part::Used, times));
        Arc::make_mut(counted).used = if has_place { Used::AsRequested } else { Used::Nothing };
        true
    }

    /// Makes the tree anew and counts all pods in it.
    fn rebuild(&mut self) {
        self.tree = Tree::new(&self.objects.counting(), &self.args);
        for at in 0..self.pods.len() {
            let Some(counted) = &self.pods[at] else { continue };
            let counted = Counted {
                requested: counted.requested.as_ref().map(|charge| self.charged_anew(charge)),
                used: match &counted.used {
                    Used::Other(charge) => Used::Other(self.charged_anew(charge)),
                    same => same.clone(),
                },
                ..Counted::clone(counted)
            };
            for part in [Part::Request, Part::Used] {
                if let Some(charge) = counted.of(part) {
                    self.tree.count_own(charge.quota, charge.list(), charge.is_fixed, part);
                }
            }
            self.pods[at] = Some(Arc::new(counted));
        }
        self.tree.add_up();
    }

    /// Brings tree and shares up to date. Returns whether a share changed.
    fn settle(&mut self) -> bool {
        let unsettled = std::mem::replace(&mut self.unsettled, Unsettled::Nothing);
        if unsettled == Unsettled::Tree {
            self.rebuild();
        }
        if unsettled >= Unsettled::Totals {
            self.totals = Arc::new(self.objects.totals(&self.tree));
        }
        let changed = unsettled > Unsettled::Nothing && self.tree.refresh(&self.totals, self.args.scales_min);
        changed || unsettled == Unsettled::Tree
    }
}

impl Counted {
    fn new(pod: &Pod) -> Self {
        Self {
            key: pod.key.clone(),
            uid: pod.uid.clone(),
            labels: pod.labels.clone(),
            priority: pod.priority,
            started: pod.started,
            is_deleting: pod.deleting,
            is_stand_in: pod.stands_for.is_some(),
            can_leave: pod.can_leave(),
            requested: None,
            used: Used::Nothing,
        }
    }

    /// Takes over what a newer object says, except for what is counted.
    fn describe(&mut self, pod: &Pod) {
        let (requested, used) = (self.requested.take(), std::mem::replace(&mut self.used, Used::Nothing));
        *self = Self { requested, used, ..Self::new(pod) };
    }

    /// Replaces what the pod requests. What it uses stays as it is. Returns what it requested before.
    fn request(&mut self, new: Option<Charge>) -> Option<Charge> {
        let before = std::mem::replace(&mut self.requested, new);
        if let (Used::AsRequested, Some(before)) = (&self.used, &before) {
            self.used = Used::Other(before.clone());
        }
        before
    }

    /// Returns what the pod uses; `None` while it has no place.
    pub(super) fn used(&self) -> Option<&Charge> {
        match &self.used {
            Used::Nothing => None,
            Used::AsRequested => self.requested.as_ref(),
            Used::Other(charge) => Some(charge),
        }
    }

    pub(super) fn of(&self, part: Part) -> Option<&Charge> {
        match part {
            Part::Request => self.requested.as_ref(),
            Part::Used => self.used(),
        }
    }
}

/// Counts a pod in the tree, or no longer. A tree that is to be made anew counts all pods then.
fn count(
    tree: &mut Tree,
    unsettled: &mut Unsettled,
    args: &QuotaArgs,
    (charge, part, times): (&Charge, Part, i128),
) {
    if *unsettled == Unsettled::Tree {
        return;
    }
    tree.count(charge.quota, charge.list(), charge.is_fixed, part, times);
    // What is used decides about shares only where it is guaranteed, or taken off a total that others share.
    let is_taken_off = charge.quota <= DEFAULT && !tree.get(ROOT).children.is_empty();
    if part == Part::Request || args.guarantees_usage || is_taken_off {
        *unsettled = (*unsettled).max(Unsettled::Shares);
    }
}

impl DerivedState for Quotas {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn plugin(&self) -> &'static str {
        super::NAME
    }

    fn pod_came(&mut self, _cx: &HookContext<'_>, id: PodId, pod: &Pod) -> Touched {
        let charge = self.charge(&pod.spec);
        self.set_charge(id, pod, Part::Request, Some(charge));
        Touched::Nothing
    }

    fn pod_changed(&mut self, _cx: &HookContext<'_>, id: PodId, old: &Pod, new: &Pod) -> Touched {
        if let Some(Some(counted)) = self.pods.get_mut(id.index()) {
            Arc::make_mut(counted).describe(new);
        }
        if !Arc::ptr_eq(&old.spec, &new.spec) {
            let charge = self.charge(&new.spec);
            self.set_charge(id, new, Part::Request, Some(charge));
        }
        Touched::Nothing
    }

    fn pod_left(&mut self, _cx: &HookContext<'_>, id: PodId, pod: &Pod) -> Touched {
        self.set_charge(id, pod, Part::Request, None);
        Touched::Nothing
    }

    fn pod_withdrawn(&mut self, id: PodId, pod: &Pod) {
        self.set_charge(id, pod, Part::Request, None);
    }

    fn pod_returned(&mut self, id: PodId, pod: &Pod) {
        let charge = self.charge(&pod.spec);
        self.set_charge(id, pod, Part::Request, Some(charge));
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        let known = self.requested(placed.id);
        let is_same = known.is_some_and(|known| {
            placed.given.is_none() && known.taken.is_none() && Arc::ptr_eq(&known.spec, &placed.pod.spec)
        });
        if is_same && self.set_use(placed.id, true) {
            return;
        }
        let charge = self.charge_of(placed);
        if self.requested(placed.id).is_some_and(|known| known.taken != charge.taken) {
            self.set_charge(placed.id, placed.pod, Part::Request, Some(charge.clone()));
        }
        self.set_charge(placed.id, placed.pod, Part::Used, Some(charge));
    }

    fn given_changed(&mut self, placed: &Placed<'_>, _before: Option<&Given>) {
        for part in [Part::Request, Part::Used] {
            let charge = self.charge_of(placed);
            self.set_charge(placed.id, placed.pod, part, Some(charge));
        }
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        if !self.set_use(placed.id, false) {
            self.set_charge(placed.id, placed.pod, Part::Used, None);
        }
    }

    fn node_changed(&mut self, node: NodeIdx, old: Option<&Node>, new: Option<&Node>) -> Touched {
        if self.objects.change_node(node, old, new) {
            self.unsettled = self.unsettled.max(Unsettled::Totals);
        }
        Touched::Nothing
    }

    fn object_changed(&mut self, old: Option<&Object>, new: Option<&Object>) -> Touched {
        self.overuse.change_budget(old, new);
        Touched::Nothing
    }

    fn custom_changed(
        &mut self,
        cx: &HookContext<'_>,
        old: Option<&CustomObject>,
        new: Option<&CustomObject>,
    ) -> Touched {
        let consequence = self.objects.change(old, new);
        if let (Consequence::Rewritten | Consequence::Tree, Some(object)) = (consequence, new.or(old)) {
            self.sync.came_back(&object.name, cx.now);
        }
        match consequence {
            Consequence::Nothing | Consequence::Rewritten => {}
            Consequence::Totals => self.unsettled = self.unsettled.max(Unsettled::Totals),
            Consequence::Tree => self.unsettled = Unsettled::Tree,
        }
        Touched::Nothing
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn next_deadline(&self, now: Now) -> Option<Duration> {
        if self.unsettled != Unsettled::Nothing {
            return Some(now.monotonic);
        }
        let overuse = self.overuse.deadline().filter(|_| self.monitors());
        // The next tick, which comes after a second at the latest, takes the news up.
        let news = self.has_news.then_some(now.monotonic + SETTLING);
        self.sync.deadline().into_iter().chain(overuse).chain(news).min()
    }

    fn expire(&mut self, now: Now) -> Touched {
        let has_changed = self.settle();
        if has_changed || std::mem::take(&mut self.has_news) {
            self.sync.note(now);
            self.overuse.note();
        }
        self.sync.expire(now);
        self.look_for_overuse(now);
        if has_changed { Touched::Attempts } else { Touched::Nothing }
    }

    fn due_writes(&mut self, cx: &HookContext<'_>) -> Vec<ObjectWrite> {
        let mut all = self.due_evictions();
        all.extend(self.due_syncs(cx.now));
        all
    }

    fn write_settled(
        &mut self,
        cx: &HookContext<'_>,
        write: &ObjectWrite,
        outcome: &WriteOutcome,
    ) -> Touched {
        if let WriteOutcome::Refused { .. } = outcome {
            match write {
                // Evicted again when the quota has been over for the time once more.
                ObjectWrite::Evict { pod, .. } => drop(self.overuse.ordered.remove(&pod.uid)),
                ObjectWrite::Patch { object, .. } => self.sync.refused(&object.name, cx.now),
                ObjectWrite::Create { .. } | ObjectWrite::Delete { .. } => {}
            }
        }
        Touched::Nothing
    }
}
