//! The living hostile objects: each has an end of life, and their number is bounded so that memory can be flat.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::state::Soak;

/// Maximum number of hostile objects.
const MOST: usize = 2_500;

struct Member {
    table: &'static str,
    namespace: &'static str,
    name: String,
    has_finalizers: bool,
}

/// All living hostile objects.
#[derive(Default)]
pub(crate) struct Population {
    /// By end of life; the number separates objects with the same end.
    living: BTreeMap<(Duration, u64), Member>,
    made: u64,
}

impl Population {
    /// Creates an object that is deleted after `lives`. Returns whether the sandbox accepted it.
    pub(crate) fn put(&mut self, soak: &Soak, table: &'static str, object: Value, lives: Duration) -> bool {
        let is_cluster_wide = table == "nodes" || table.starts_with("queues.");
        let member = Member {
            table,
            namespace: if is_cluster_wide { "" } else { "default" },
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            has_finalizers: object["metadata"]["finalizers"].is_array(),
        };
        let is_there = soak.create(object);
        if is_there {
            self.made += 1;
            self.living.insert((soak.now() + lives, self.made), member);
        }
        is_there
    }

    /// Deletes objects that are due, and the next ones while there are more than [`MOST`].
    pub(crate) fn thin(&mut self, soak: &Soak) {
        while let Some(entry) = self.living.first_entry() {
            if entry.key().0 > soak.now() && self.living.len() <= MOST {
                return;
            }
            if let Some((_, member)) = self.living.pop_first() {
                remove(soak, &member);
            }
        }
    }
}

fn remove(soak: &Soak, member: &Member) {
    let Member { table, namespace, name, has_finalizers } = member;
    // Preemption or the pod's own end may have deleted it first.
    if soak.sandbox.delete(table, namespace, name, None).is_ok() {
        soak.count("deleted");
    }
    if *has_finalizers {
        let free = json!({"metadata": {"finalizers": null}});
        // Fails if the object is already gone.
        let _ = soak.sandbox.merge(table, namespace, name, &free);
    }
}
