//! How far a pod is between the queue and its node.

pellucid_model::named! {
    /// How far a pod is between the queue and its node; named as in the REST API.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Stage {
        /// Not placed.
        #[default]
        Pending = "pending",
        /// Assumed on a node within a cycle.
        Reserved = "reserved",
        /// Held at Permit with a deadline.
        Waiting = "waiting",
        /// Released by Permit; its bind order waits to be taken from the effect queue.
        Permitted = "permitted",
        /// Its PreBind effects are under way.
        PreBinding = "pre-binding",
        /// The Binding was sent.
        Binding = "binding",
        /// Confirmed by the API server.
        Bound = "bound",
    }
}

impl Stage {
    /// Returns whether the pod uses resources of a node.
    #[inline]
    pub fn is_placed(self) -> bool {
        self != Self::Pending
    }

    /// Returns whether we placed the pod and the API server has not confirmed it yet.
    #[inline]
    pub fn is_assumed(self) -> bool {
        self.is_placed() && self != Self::Bound
    }
}
