//! The HTTP face: from bytes to an operation of the API, and from its result to bytes.
//!
//! A request passes `connection` (which a fault can cut), `server`, `router` and `body`; a list goes through
//! `paging`, `read`, and `render` or `table`; `patch` applies the four kinds of PATCH. `discovery` and `openapi`
//! say what is served. Not here: the rules of objects (`kinds`) and of storing them (`api`).

pub(crate) mod body;
pub(crate) mod connection;
pub(crate) mod discovery;
pub(crate) mod openapi;
pub(crate) mod paging;
pub(crate) mod patch;
pub(crate) mod read;
pub(crate) mod render;
pub(crate) mod router;
pub(crate) mod server;
pub(crate) mod table;
