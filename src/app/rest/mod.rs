//! What the REST server is given: routes made of registered reads ([`routes`], `rows`), the switches ([`flags`]), what-if
//! questions (`simulate`, `question`, `admission`, `plugin_objects`, `names`) and dumps ([`dump`]).

mod admission;
pub mod dump;
pub mod flags;
mod names;
mod plugin_objects;
mod question;
pub mod routes;
mod rows;
mod simulate;
