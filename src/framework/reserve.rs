//! Reserve: what a plugin holds for a pod on its node.

use pellucid_cluster::Marks;
use pellucid_model::cause::Cause;
use pellucid_model::{NodeIdx, Pod, PodId, PodSpec};

use super::overrides::Room;
use super::plugin::CycleValue;
use super::topology::NumaAffinity;
use super::view::View;

/// What a plugin's Reserve chose.
pub struct Reservation {
    /// The plugin's value, which PreBind and the plugin's derived state get.
    pub what: CycleValue,
    /// What the Binding adds to the pod. It must say enough for [`DerivedState::bound_hold`] to read the value back.
    pub marks: Option<Marks>,
}

impl Reservation {
    /// Makes a reservation of which nothing stands on the pod.
    pub fn unmarked(what: CycleValue) -> Self {
        Self { what, marks: None }
    }
}

/// Reserve: chooses what a plugin holds for a pod on its node, besides the node's resources.
///
/// What a plugin derives from placed pods changes with the placement itself ([`DerivedState`]); Reserve is for
/// what must be chosen, such as volumes or cards. There is no Unreserve: the state stores the hold with the pod, tells
/// the plugin's derived state ([`DerivedState::reserved`]), and gives it up when the pod loses its place or ends.
///
/// Reserve is asked in trials as well: for nominated pods, members of gangs and what-if questions. So it must give what
/// Filter promised, for a pod that is on the node already.
pub trait Reserve: Send + Sync {
    /// Returns whether the plugin may hold something for a pod with this spec, or refuse it. The others here are not called for
    /// pods of which it says no. Must not depend on what [`Reads::Node`] does not cover, unless the plugin's state says of a
    /// change that it touches all nodes.
    ///
    /// [`Reads::Node`]: super::plugin::Reads::Node
    #[inline]
    fn may_hold(&self, _view: View<'_>, _spec: &PodSpec) -> bool {
        true
    }
    /// Has the processor fetch what Reserve reads of a node that was just chosen. A hint alone: Reserve may come without it or not
    /// follow it, and no answer may depend on it. It helps where an address is known without reading memory.
    #[inline]
    fn prefetch(&self, _view: View<'_>, _node: NodeIdx) {}
    /// Chooses what to hold, `None` for nothing. Fails with a cause when the pod cannot have the node after all.
    fn reserve(&self, view: View<'_>, pod: &Pod, node: NodeIdx) -> Result<Option<Reservation>, Cause>;
    /// Like [`reserve`](Self::reserve), with what the plugin's PreFilter prepared for pods like this one, so that the pod need not
    /// be read again. Called instead of it where that is at hand: never for a plugin whose PreFilter reads
    /// [`Reads::Everything`](super::plugin::Reads::Everything).
    #[inline]
    fn reserve_prepared(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        _prepared: &CycleValue,
    ) -> Result<Option<Reservation>, Cause> {
        self.reserve(view, pod, node)
    }
    /// Like [`reserve`](Self::reserve), on the NUMA nodes that all providers agreed on ([`TopologyHints`]). Called
    /// instead of it where the node demands an agreement.
    #[inline]
    fn reserve_aligned(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        _affinity: NumaAffinity,
    ) -> Result<Option<Reservation>, Cause> {
        self.reserve(view, pod, node)
    }
    /// Like [`reserve`](Self::reserve), of a plugin with [`NodeOverrides`], after others refused the pod in the room of these
    /// pods, into which this plugin let it before.
    #[inline]
    fn reserve_but(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        _refused: &[PodId],
    ) -> Result<Option<Reservation>, Cause> {
        self.reserve(view, pod, node)
    }
    /// Chooses for a pod that another plugin lets into the room of a pod for which this plugin holds something: from that
    /// room first, or only. The view is without that pod. `affinity` as in [`reserve_aligned`](Self::reserve_aligned), if
    /// the node demands one. What is chosen is taken off the room ([`DerivedState::hold_left`]).
    fn reserve_within(
        &self,
        view: View<'_>,
        pod: &Pod,
        node: NodeIdx,
        affinity: Option<NumaAffinity>,
        _room: &Room,
    ) -> Result<Option<Reservation>, Cause> {
        match affinity {
            Some(affinity) => self.reserve_aligned(view, pod, node, affinity),
            None => self.reserve(view, pod, node),
        }
    }
}
