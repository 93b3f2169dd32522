//! Helpers shared by the endpoints of several plugins: list bounds, examples, and lookup of nodes and pods by name.

use std::collections::BTreeSet;

use pellucid_cluster::{PodRecord, Stage};
use pellucid_framework::View;
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_model::{Name, NodeIdx, PodKey};

/// Maximum number of rows in an endpoint's list.
pub const MAX_ROWS: usize = 1000;
/// Maximum number of examples per row.
pub const MAX_EXAMPLES: usize = 5;

/// Truncates a list to `at` rows and returns whether rows were dropped.
pub fn cut<T>(mut rows: Vec<T>, at: usize) -> (Vec<T>, bool) {
    let truncated = rows.len() > at;
    rows.truncate(at);
    (rows, truncated)
}

/// Returns the `most` largest amounts with what has them, equal ones by name, and how many more there are.
pub fn largest<A: Ord, N: Ord>(all: impl IntoIterator<Item = (A, N)>, most: usize) -> (Vec<(A, N)>, usize) {
    let mut all: Vec<(A, N)> = all.into_iter().collect();
    all.sort_by(|a, b| (&b.0, &a.1).cmp(&(&a.0, &b.1)));
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    (all, more)
}

/// Counts members and keeps the alphabetically first [`MAX_EXAMPLES`] as examples.
#[derive(Default)]
pub struct Examples {
    count: usize,
    first: BTreeSet<String>,
}

impl Examples {
    /// Counts one member.
    pub fn add(&mut self, text: &str) {
        self.count += 1;
        let last = self.first.last();
        if self.first.len() < MAX_EXAMPLES || last.is_some_and(|l| text < l.as_str()) {
            self.first.insert(text.to_owned());
            if self.first.len() > MAX_EXAMPLES {
                self.first.pop_last();
            }
        }
    }

    /// Returns the count and the examples.
    pub fn finish(self) -> (usize, Vec<String>) {
        (self.count, self.first.into_iter().collect())
    }
}

/// Iterates over pending pods, in no particular order.
pub fn pending<'a>(view: View<'a>) -> impl Iterator<Item = &'a PodRecord> {
    view.cluster().pods().map(|(_, record)| record).filter(|record| record.stage == Stage::Pending)
}

/// Returns the node named by the path parameter `nodeName`. Fails with `NodeNotFound` if it does not exist.
pub fn node_of(cx: &ReadContext<'_>) -> Result<NodeIdx, ReadError> {
    let text = cx.params.get("nodeName").map_or("", String::as_str);
    let node = cx.view.cluster().find_node(&Name::new(text));
    node.filter(|n| cx.view.cluster().node(*n).is_some()).ok_or_else(|| ReadError::NotFound {
        code: "NodeNotFound",
        message: format!("cannot find node {text}"),
    })
}

/// Returns the pod named by the path parameters `namespace` and `podName`. Fails with `PodNotFound` if it does not
/// exist.
pub fn pod_of<'a>(cx: &ReadContext<'a>) -> Result<&'a PodRecord, ReadError> {
    let param = |name: &str| cx.params.get(name).map_or("", String::as_str);
    let key = PodKey::new(param("namespace"), param("name"));
    let cluster = cx.view.cluster();
    cluster.find_pod(&key).and_then(|id| cluster.pod(id)).ok_or_else(|| ReadError::NotFound {
        code: "PodNotFound",
        message: format!("there is no pod {:?} in the scheduler's view", key.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_equal_ones_by_name() {
        let all = [(1, "d"), (3, "b"), (2, "c"), (3, "a")];
        assert_eq!(largest(all, 3), (vec![(3, "a"), (3, "b"), (2, "c")], 1));
        assert_eq!(largest(all, 9).1, 0);
    }

    #[test]
    fn examples_are_the_first_in_order_whatever_the_order_they_came_in() {
        let mut examples = Examples::default();
        for text in ["g", "a", "f", "b", "e", "c", "d"] {
            examples.add(text);
        }
        assert_eq!(examples.finish(), (7, ["a", "b", "c", "d", "e"].map(String::from).to_vec()));
    }
}
