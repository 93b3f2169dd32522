//! From one registered read (`route`) come its parameters (`params`), its operation in the OpenAPI document (`operation`,
//! `openapi`) with what it needs of its user (`need`), its endpoint (`endpoint`) and its tables (`table`).

pub(crate) mod endpoint;
pub(crate) mod need;
pub(crate) mod openapi;
pub(crate) mod operation;
pub(crate) mod params;
pub(crate) mod route;
pub(crate) mod table;
