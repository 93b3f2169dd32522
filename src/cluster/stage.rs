//! Where a pod stands between the queue and the node, and what plugins hold for it on the way.

use std::any::Any;
use std::sync::Arc;

/// Where a pod stands between the queue and the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// Not placed.
    #[default]
    Pending,
    /// Assumed on a node within a cycle.
    Reserved,
    /// Held at Permit with a deadline.
    Waiting,
    /// Released by Permit; its bind order waits to be pulled.
    Permitted,
    /// PreBind effects are under way.
    PreBinding,
    /// The Binding was sent.
    Binding,
    /// The API server says so.
    Bound,
}

impl Stage {
    /// Whether the pod takes room on a node.
    pub fn is_placed(self) -> bool {
        self != Self::Pending
    }

    /// Whether we placed it and the API server has not yet confirmed it.
    pub fn is_assumed(self) -> bool {
        self.is_placed() && self != Self::Bound
    }

    /// Returns the word used in bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Reserved => "reserved",
            Self::Waiting => "waiting",
            Self::Permitted => "permitted",
            Self::PreBinding => "pre-binding",
            Self::Binding => "binding",
            Self::Bound => "bound",
        }
    }
}

/// What a plugin's Reserve holds for a pod besides its room on the node, such as volumes.
#[derive(Clone)]
pub struct Hold {
    /// The plugin.
    pub plugin: &'static str,
    /// What it holds, of a type that the plugin knows.
    pub what: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hold({})", self.plugin)
    }
}
