//! To follow.
use std::sync::Arc;
use super::server::Server;
/// Runs until the sandbox stops.
pub(super) async fn run(server: Arc<Server>) { server.shutdown.cancelled().await }
