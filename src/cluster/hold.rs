//! Holds: what plugins give a pod on its node beyond the columns, from Reserve until the pod has ended.
//!
//! The value is of a type that only its plugin knows. It is chosen by the plugin's Reserve, or read back from the
//! object of a pod that is bound already ([`DerivedState::bound_hold`](crate::DerivedState::bound_hold)). Every change
//! passes the functions here, which keep the pod's record, the plugin's state and the undo log in step.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use pellucid_model::effect::{BindingMarks, DueMarks};
use pellucid_model::pages::AnyInPage;
use pellucid_model::selector::Labels;
use pellucid_model::{Name, NodeIdx, Pod, PodId};
use smallvec::SmallVec;

use crate::changes::Changed;
use crate::derived::{HookContext, Placed};
use crate::event::ClusterEvent;
use crate::stage::Stage;
use crate::state::Cluster;
use crate::undo::Undo;

/// A plugin's value.
pub type HoldValue = Arc<dyn Any + Send + Sync>;

/// What the Binding adds to a pod for a hold, so that it can be read back.
#[derive(Clone)]
pub enum Marks {
    /// As it stands.
    Made(Arc<BindingMarks>),
    /// What the function makes of the plugin's value, once it is asked for.
    Of(fn(&HoldValue) -> BindingMarks),
    /// What the function makes of the plugin's value, and of something else as it was at Reserve.
    With(fn(&HoldValue, &AnyInPage) -> BindingMarks, AnyInPage),
}

impl From<BindingMarks> for Marks {
    fn from(marks: BindingMarks) -> Self {
        Self::Made(Arc::new(marks))
    }
}

impl Marks {
    /// Returns the marks, given the value of the hold.
    pub fn made(&self, what: &HoldValue) -> Arc<BindingMarks> {
        match self {
            Self::Made(marks) => marks.clone(),
            Self::Of(make) => Arc::new(make(what)),
            Self::With(make, beside) => Arc::new(make(what, beside)),
        }
    }
}

/// What a plugin holds for a pod.
#[derive(Clone)]
pub struct Hold {
    /// Name of the plugin.
    pub plugin: &'static str,
    /// The plugin's value.
    pub what: HoldValue,
    /// What the Binding adds to the pod, so that the hold can be read back. `None` also for what was read back.
    pub marks: Option<Marks>,
    /// All that was chosen for the pod, while others that stand in its room hold a part of it; else `None`.
    pub whole: Option<HoldValue>,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hold({})", self.plugin)
    }
}

impl Hold {
    /// Returns what the Binding adds to the pod for this hold: all that was chosen for it, whatever others hold of that.
    pub fn made_marks(&self) -> Option<Arc<BindingMarks>> {
        self.marks.as_ref().map(|marks| marks.made(self.whole()))
    }

    /// Returns all that was chosen for the pod.
    pub(crate) fn whole(&self) -> &HoldValue {
        self.whole.as_ref().unwrap_or(&self.what)
    }
}

/// Returns all that the Binding of a pod adds to it.
pub fn marks_of(holds: &[Hold]) -> Option<Arc<BindingMarks>> {
    let mut marks = holds.iter().filter_map(Hold::made_marks);
    let first = marks.next()?;
    Some(marks.fold(first, |mut all, marks| {
        // Reserve has refused holds that disagree.
        drop(Arc::make_mut(&mut all).add(&marks));
        all
    }))
}

/// Returns the same for an order, made when it is read.
pub fn due_marks_of(holds: &[Hold]) -> Option<DueMarks> {
    let mut marked = holds.iter().filter_map(|hold| Some((hold, hold.marks.as_ref()?)));
    let (first, marks) = marked.next()?;
    if marked.next().is_none() {
        let (what, marks) = (first.whole().clone(), marks.clone());
        return Some(DueMarks::new(move || Arc::unwrap_or_clone(marks.made(&what))));
    }
    let all = holds.to_vec();
    Some(DueMarks::new(move || marks_of(&all).map(Arc::unwrap_or_clone).unwrap_or_default()))
}

/// The place of a pod: its node, its stage, when it was placed, and its holds.
#[derive(Clone, Debug)]
pub struct Place {
    /// The node.
    pub node: NodeIdx,
    stage: Stage,
    since: Duration,
    holds: SmallVec<[Hold; 1]>,
}

impl Place {
    /// Returns this place on another node, or in another stage.
    pub(crate) fn moved(self, node: NodeIdx, stage: Stage) -> Self {
        Self { node, stage, ..self }
    }
}

impl Cluster {
    /// Records that a plugin holds something for a placed pod.
    pub fn reserve(&mut self, id: PodId, hold: Hold) {
        let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) else { return };
        let plugin = hold.plugin;
        record.holds.push(hold);
        self.undo.push(Undo::Unreserve { id });
        self.notify_holder(id, None, true);
        self.share_beside(id, plugin);
    }

    /// Has a host's hold follow a change of what is held for it or for a guest.
    fn share_beside(&mut self, id: PodId, plugin: &'static str) {
        let Some(record) = self.pod(id) else { return };
        let (host, is_host) = (record.host, record.given.is_some());
        if is_host {
            self.share_hold(id, plugin);
        }
        if let Some(host) = host {
            self.share_hold(host, plugin);
        }
    }

    /// Gives up everything that is held for a pod, newest first.
    #[inline]
    pub fn unreserve_all(&mut self, id: PodId) {
        while self.unreserve_last(id) {}
    }

    pub(crate) fn unreserve_last(&mut self, id: PodId) -> bool {
        let last = self.pod(id).and_then(|record| record.holds.len().checked_sub(1));
        last.is_some_and(|at| self.unreserve_at(id, at))
    }

    fn unreserve_at(&mut self, id: PodId, at: usize) -> bool {
        let Some(record) = self.pods.get_mut(id.index()).and_then(Option::as_mut) else { return false };
        let hold = record.holds.remove(at);
        self.notify_holder(id, Some(&hold), false);
        let plugin = hold.plugin;
        self.undo.push(Undo::Reserve { id, hold });
        if let Some(host) = self.pod(id).and_then(|record| record.host) {
            self.share_hold(host, plugin);
        }
        true
    }

    /// Returns the place of a pod, or `None` if it has no node.
    pub fn place_of(&self, id: PodId) -> Option<Place> {
        let record = self.pod(id)?;
        let (stage, since, holds) = (record.stage, record.since, record.holds.clone());
        record.node.map(|node| Place { node, stage, since, holds })
    }

    /// Takes a pod off its node for a trial. Returns its place, or `None` if it has no node.
    pub fn displace(&mut self, id: PodId) -> Option<Place> {
        let place = self.place_of(id)?;
        self.release(id);
        Some(place)
    }

    /// Puts a pod back in its place, with its holds.
    pub fn put_back(&mut self, id: PodId, place: Place) {
        self.place_since(id, place.node, place.stage, place.since);
        for hold in place.holds {
            self.reserve(id, hold);
        }
    }

    /// Changes when a placed pod took its place, for a state that is rebuilt.
    pub fn set_since(&mut self, id: PodId, since: Duration) {
        // In an overlay, so that a slot without a node object is not freed in between.
        let overlay = self.begin();
        if let Some(place) = self.displace(id) {
            self.put_back(id, Place { since, ..place });
        }
        self.commit(overlay);
    }

    /// Restores the holds of a pod that is not bound yet from its marks, for a state that is rebuilt.
    pub fn read_marks(&mut self, id: PodId, marks: &Arc<BindingMarks>) {
        let Some(record) = self.pod(id) else { return };
        let (Some(node), mut pod, since) = (record.node, Pod::clone(&record.pod), record.since) else {
            return;
        };
        pod.marks =
            Labels::new(marks.annotations.iter().map(|(key, value)| (Name::new(key), Name::new(value))));
        for at in 0..self.derived.len() {
            let plugin = self.derived[at].plugin();
            let cx = HookContext { now: self.now, nodes: &self.node_index };
            let placed = Placed { id, pod: &pod, node, stage: Stage::Bound, since, given: None };
            if let Some(what) = self.derived[at].bound_hold(&cx, &placed, None) {
                self.reserve(id, Hold { plugin, what, marks: Some(Marks::Made(marks.clone())), whole: None });
            }
        }
    }

    /// Updates the holds of a bound pod from its object, and reports a change as an event.
    pub(crate) fn report_holds(&mut self, id: PodId, out: &mut Vec<ClusterEvent>) {
        if let Some(node) = self.read_holds(id) {
            out.push(ClusterEvent::PluginStateChanged { nodes: [node].into() });
        }
    }

    /// Updates the holds of a bound pod from its object. Returns its node if they changed. Never called while an
    /// overlay is open.
    pub fn read_holds(&mut self, id: PodId) -> Option<NodeIdx> {
        let mut changed = None;
        for at in 0..self.derived.len() {
            let plugin = self.derived[at].plugin();
            if plugin.is_empty() {
                continue;
            }
            let Some(record) = self.pod(id).filter(|record| record.stage == Stage::Bound) else { break };
            let Some(node) = record.node else { break };
            let known = record.holds.iter().position(|hold| hold.plugin == plugin);
            let held = known.map(|at| record.holds[at].whole().clone());
            let held = held.as_ref();
            let cx = HookContext { now: self.now, nodes: &self.node_index };
            let placed = Placed::of(id, record, node);
            let new = self.derived[at].bound_hold(&cx, &placed, held);
            let is_same = match (held, &new) {
                (None, None) => true,
                (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                _ => false,
            };
            if is_same {
                continue;
            }
            if let Some(at) = known {
                self.unreserve_at(id, at);
            }
            if let Some(what) = new {
                self.reserve(id, Hold { plugin, what, marks: None, whole: None });
            }
            self.changes.push(node, Changed::Usage);
            changed = Some(node);
        }
        changed
    }

    /// Notifies the plugin's state that a hold begins or ends; `None` for the pod's last.
    pub(super) fn notify_holder(&mut self, id: PodId, hold: Option<&Hold>, begins: bool) {
        let Some(record) = self.pods.get(id.index()).and_then(Option::as_ref) else { return };
        let (Some(node), Some(hold)) = (record.node, hold.or(record.holds.last())) else { return };
        let placed = Placed::of(id, record, node);
        let cx = HookContext { now: self.now, nodes: &self.node_index };
        for at in self.state_index.of_plugin(hold.plugin) {
            let state = &mut self.derived[at];
            let touched = match begins {
                true => state.reserved(&cx, &placed, &hold.what),
                false => state.unreserved(&cx, &placed, &hold.what),
            };
            self.changes.push_touched(&touched);
        }
        self.settle_given();
    }
}
