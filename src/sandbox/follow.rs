//! Follows the history of a table, as a watch does, for the sandbox's own tasks.
//!
//! Controllers and the kubelet read changes in order. One that falls behind the history starts again with all objects.

use std::sync::Arc;

use tokio::sync::watch;

use crate::requests::server::Server;
use crate::store::{Change, Event, Next};

/// Most changes read at once.
const BATCH: usize = 512;

/// What is new since the last read.
pub(super) struct News {
    /// Whether there was no usable cursor, so that the changes add all current objects.
    pub starts_over: bool,
    /// The changes, in order.
    pub events: Vec<Arc<Event>>,
}

impl News {
    pub(super) fn is_empty(&self) -> bool {
        !self.starts_over && self.events.is_empty()
    }
}

/// A cursor in the history of one table.
pub(super) struct Follower {
    server: Arc<Server>,
    table: &'static str,
    changed: watch::Receiver<u64>,
    cursor: Option<u64>,
}

impl Follower {
    /// Returns a follower that first reads all objects of a table.
    pub(super) fn new(server: &Arc<Server>, table: &'static str) -> Self {
        let changed = server.api.store.subscribe(table);
        Self { server: server.clone(), table, changed, cursor: None }
    }

    /// Returns what is new, which may be nothing.
    pub(super) fn take(&mut self) -> News {
        self.changed.borrow_and_update();
        let store = &self.server.api.store;
        if let Some(cursor) = self.cursor
            && let Next::Events(events, reached) = store.after(self.table, cursor, BATCH)
        {
            self.cursor = Some(reached.max(cursor));
            return News { starts_over: false, events };
        }
        let page = store.list(self.table, "");
        self.cursor = Some(page.revision);
        let added = |object| Arc::new(Event { change: Change::Added, object, previous: None });
        News { starts_over: true, events: page.items.into_iter().map(added).collect() }
    }

    /// Waits until there may be changes.
    pub(super) async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
