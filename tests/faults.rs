//! Faults of the API server and the network, and replicas that come and go.

mod common;

mod chaos;
mod leader;
