//! What other programs may depend on.
