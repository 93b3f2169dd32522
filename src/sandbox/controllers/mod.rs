//! To follow.
use super::server::Server;
use std::sync::Arc;
/// Runs until the sandbox stops.
pub(super) async fn run(server: Arc<Server>) {
    server.shutdown.cancelled().await
}
