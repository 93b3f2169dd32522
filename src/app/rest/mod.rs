//! The content of the REST server: routes for registered reads ([`routes`], `rows`), run-time switches ([`flags`]),
//! what-if questions (`simulate`, `question`, `admission`, `plugin_objects`, `names`), dumps ([`dump`]) `trends` and
//! `consistency`.

mod admission;
mod consistency;
pub mod dump;
pub mod flags;
mod names;
mod plugin_objects;
mod question;
pub mod routes;
mod rows;
mod simulate;
mod trends;
