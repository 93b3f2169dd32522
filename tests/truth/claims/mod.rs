//! The claims by kind. Each looks at one settled cluster.

pub(crate) mod causes;
pub(crate) mod copies;
pub(crate) mod fixes;
pub(crate) mod gangs;
pub(crate) mod missed;
pub(crate) mod nearest;
pub(crate) mod outlook;
pub(crate) mod preemption;
mod relax;
pub(crate) mod reservations;
pub(crate) mod same_words;
pub(crate) mod simulations;
pub(crate) mod sums;
