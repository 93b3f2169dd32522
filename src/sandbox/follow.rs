//! Following the history of a table from inside, as a watch does from outside.
//!
//! Controllers and the kubelet read changes in order. One that fell behind the history starts again with
//! everything there is.

use std::sync::Arc;

use tokio::sync::watch;

use crate::requests::server::Server;
use crate::store::{Event, Next, Object};

/// How many changes are read at once.
const BATCH: usize = 512;

/// What happened since the last look.
pub(super) enum News {
    /// Nothing is known: these are all objects now.
    All(Vec<Arc<Object>>),
    /// These changes, in order.
    Changes(Vec<Arc<Event>>),
}

/// A cursor in one table.
pub(super) struct Follower {
    server: Arc<Server>,
    table: &'static str,
    changed: watch::Receiver<u64>,
    cursor: Option<u64>,
}

impl Follower {
    /// Returns a follower that begins with all objects of a table.
    pub(super) fn new(server: &Arc<Server>, table: &'static str) -> Self {
        let (changed, _) = server.api.store.subscribe(table);
        Self { server: server.clone(), table, changed, cursor: None }
    }

    /// Returns what is new; no changes when there are none.
    pub(super) fn take(&mut self) -> News {
        self.changed.borrow_and_update();
        let store = &self.server.api.store;
        if let Some(cursor) = self.cursor
            && let Next::Events(events, reached) = store.after(self.table, cursor, BATCH)
        {
            self.cursor = Some(reached.max(cursor));
            return News::Changes(events);
        }
        let page = store.list(self.table, "");
        self.cursor = Some(page.revision);
        News::All(page.items)
    }

    /// Waits until there may be something new.
    pub(super) async fn changed(&mut self) {
        if self.changed.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
