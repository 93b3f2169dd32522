//! Whose names a reader may see.
//!
//! A value that goes with a read from the server to where its body is redacted. It knows no users and no rights: who asks
//! and what the cluster allows is settled before.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The namespaces whose names a reader may see. Of all others it sees counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Viewer {
    /// Every namespace.
    #[default]
    All,
    /// These namespaces.
    Namespaces(Arc<BTreeSet<String>>),
}

impl Viewer {
    /// Returns a viewer of some namespaces.
    pub fn of<T: Into<String>>(namespaces: impl IntoIterator<Item = T>) -> Self {
        Self::Namespaces(Arc::new(namespaces.into_iter().map(Into::into).collect()))
    }

    /// Returns whether names in a namespace are shown.
    pub fn sees(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Namespaces(namespaces) => namespaces.contains(namespace),
        }
    }

    /// Returns the namespaces of a viewer that does not see all.
    pub fn limits(&self) -> Option<&BTreeSet<String>> {
        match self {
            Self::All => None,
            Self::Namespaces(namespaces) => Some(namespaces),
        }
    }
}
