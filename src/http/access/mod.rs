//! Who asks, and what they may: authentication, authorisation, whose names are shown, and what one user may cost.
//!
//! Nothing is decided here but whom to ask about what: a [`crate::authority::Authority`] answers, which for a cluster is its API server.
//! Without one there is no gate, and the server listens on loopback only. A request passes in this order:
//! - `credentials`: the token that it brings;
//! - `cache`: answers of the authority, for seconds and in a bounded number; `digest`: what they are kept by;
//! - `strangers`: what tokens may cost that nobody has vouched for yet;
//! - `share`: how much of the server one user may take; `bucket`: how often;
//! - `gate`: the decision on one request, and which namespaces the answer may name;
//! - `redaction`: names of other namespaces out of bodies; `audit`: a line for each write.

pub(crate) mod audit;
mod bucket;
mod cache;
pub(crate) mod credentials;
mod digest;
pub(crate) mod gate;
pub(crate) mod redaction;
pub(crate) mod share;
mod strangers;
