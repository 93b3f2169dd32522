//! What stands around every request: the socket (`socket`, `listen`, `patient`), the bound on answers under way (`response_budget`), and the pool
//! in which reads run (`pool`), on threads that step back (`background`).

pub(crate) mod background;
pub(crate) mod listen;
pub(crate) mod patient;
pub(crate) mod pool;
pub(crate) mod response_budget;
pub(crate) mod socket;
