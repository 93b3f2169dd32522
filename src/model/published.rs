//! The trait of published states. It is defined here because the HTTP server does not know what it serves, and what is
//! served does not know the server.

/// A state published in generations. Readers may ask for one at least as new as theirs.
pub trait Published {
    /// Returns the number of this publication. Invariant: it never decreases.
    fn generation(&self) -> u64;
}
