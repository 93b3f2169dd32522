//! Node overrides: nodes that one pod sees without some pods, because what those hold is there for it.
//!
//! A plugin that keeps room for certain pods implements [`NodeOverrides`]. The cycle judges each node that it names in a
//! trial in which the named pods are gone, and the other nodes as usual. Who may have the room, and how it gives way
//! once such a pod is placed, is the plugin's matter.

use pellucid_model::{NodeIdx, Pod, PodId, PodSpec};
use smallvec::{SmallVec, smallvec};

use super::plugin::CycleValue;
use super::view::View;

/// A node as one pod sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOverride {
    /// The node.
    pub node: NodeIdx,
    /// The pods that are not there for the pod, in any order. One that is not placed on the node has no effect.
    pub absent: Absent,
}

/// Pods that are absent together.
pub type Absent = SmallVec<[PodId; 2]>;

/// Which of the pods that are absent for a pod it does without in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rooms {
    /// The sets in which the pod fits, as far as the plugin knows, in the order of Reserve. The first that no other plugin
    /// refuses counts. An empty set: beside all of them.
    pub fitting: SmallVec<[Absent; 1]>,
    /// The set that would remain if the node had more; it matters where none is fitting.
    pub otherwise: Absent,
}

impl Rooms {
    /// All of them, in any case.
    pub fn all(absent: &[PodId]) -> Self {
        Self { fitting: smallvec![absent.into()], otherwise: absent.into() }
    }
}

/// Says which nodes a pod sees without some pods. The plugins of a profile that return one take part at whichever points
/// they are enabled; what several say about a node adds up.
///
/// Filters, topology hints and scores are asked about such a node in a trial in which the absent pods, and all that is
/// held for them, are gone: for the decision, in the search for victims, and in every explanation. PreFilter and
/// PreScore of plugins that read [`Reads::Everything`](super::plugin::Reads::Everything) are asked in the trial too, so
/// that a pod which is refused as a whole only because of the absent pods can still have the node. These results hold
/// for one attempt and are not kept for equal pods.
///
/// # What the plugin must guarantee
///
/// The trial ends before the pod is placed. From Reserve on the absent pods are where they were, and the columns count
/// them and the pod: the framework does not know which pod stands in the room of which. No placement may exceed what a
/// node has, so the plugin
///
/// - names only pods whose room it can take back: what runs on the node keeps its room, and is a victim, not an override;
/// - gives up, in [`Reserve`](super::plugin::Reserve) or with the hook
///   [`reserved`](pellucid_cluster::DerivedState::reserved) of its state, what the pod takes of the promised room
///   ([`given_up`](pellucid_cluster::DerivedState::given_up)), and gets it back in `unreserved`. Its Reserve refuses the
///   pod when it cannot;
/// - names an absent pod only as long as all of its room is there: what other pods stand in already must not be promised
///   a second time.
///
/// Its Reserve runs before that of the others. A plugin that holds something for the pod which gives up its room is then
/// asked to choose from that ([`reserve_within`](super::plugin::Reserve::reserve_within)), and what it chooses is taken off
/// what it holds there. The other absent pods are in place at Reserve. Where something is held for an absent pod, Reserve is
/// run in a trial before the node counts as one that takes the pod.
///
/// None of this holds for a pod that [`ignores`](Self::ignores) the absent ones: what it uses may be missing to them later.
pub trait NodeOverrides: Send + Sync {
    /// Returns the nodes that the pod sees without some pods; empty for most pods. `spec` is the pod's, or a changed one
    /// in a question about it.
    ///
    /// Called once per attempt, and for the chosen node again where topology hints are merged. It must be cheap for a pod
    /// that nothing is kept for, and depend on nothing but the arguments.
    fn overrides(&self, view: View<'_>, spec: &PodSpec, pod: &Pod) -> Vec<NodeOverride>;

    /// Returns of `absent`, pods of an overridden node, those that stay absent while other plugins are asked about the node: the
    /// pod may have the room of one of them alone. `view` is the state in question, in which they are still there.
    fn rooms(&self, _view: View<'_>, _spec: &PodSpec, _pod: &Pod, _node: NodeIdx, absent: &[PodId]) -> Rooms {
        Rooms::all(absent)
    }

    /// Returns whether the pod takes nothing of the absent pods, and has what it needs as if they were not there. Other plugins
    /// then reserve for it without them, what they hold included, if they cannot with them.
    fn ignores(&self, _spec: &PodSpec) -> bool {
        false
    }

    /// Returns whether nothing about overridden nodes depends on more than the spec, the node and which pods are absent there,
    /// so that what trials find holds for the next pod with this spec. Then a node is judged again when it has changed, as
    /// nodes that are not overridden are.
    fn lasts(&self, _view: View<'_>, _spec: &PodSpec) -> bool {
        false
    }
}

/// The room in which a pod is to stand, as one plugin knows it.
#[derive(Clone)]
pub struct Room {
    /// What the plugin holds for the pod that gives it up, without what other pods in the room have.
    pub what: CycleValue,
    /// Whether nothing else may be chosen.
    pub is_limit: bool,
}
