//! How the API server is reached: configuration, credentials, connections, limits on every wait, and a probe that notices
//! when it is back. Start at [`client`].

mod bearer_token;
pub mod client;
mod exec_plugin;
pub(crate) mod kubeconfig;
pub(crate) mod limits;
pub mod server_probe;
pub(crate) mod service_proxy;
pub(crate) mod transport;
