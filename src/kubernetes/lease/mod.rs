//! Leader election: of several instances, only the holder of one Lease object writes to the cluster.
//!
//! The algorithm is client-go's. The holder renews the Lease; the others take it when it has not changed for its
//! duration, measured on their own clock from when they saw it change. Clocks of different machines are never compared.
//!
//! Beyond client-go, writes are fenced: `writes::write_right` is a point in time after which `ApiWriter` sends nothing, and it
//! moves only when a renewal succeeds. It lies `renewDeadline` after that renewal was *sent*, so it ends before anybody
//! else may take the Lease. A new holder first waits until its watches have passed what the old one wrote (`watches::catch_up`).
//!
//! [`election`] decides and is pure; `elector` carries out what it says; `requests` and `record` read and write the
//! Lease; [`leadership`] is what metrics and health checks see.
//!
//! *Invariant:* the requests of this folder are the only writes that do not pass `ApiWriter`, because an instance must
//! be able to write the Lease while it may write nothing else. They write one object, with its resourceVersion.

pub mod election;
#[cfg(test)]
mod election_tests;
pub mod elector;
pub mod leadership;
pub mod record;
pub mod requests;
