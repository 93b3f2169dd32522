//! What stands around every request: the socket (`listen`, `patient`), the bound on answers under way (`unread`), the pool in
//! which reads run (`pool`), and ids, panics and log lines (`middleware`).

pub(crate) mod listen;
pub(crate) mod middleware;
pub(crate) mod patient;
pub(crate) mod pool;
pub(crate) mod unread;
