//! Topology keys as columns: for each node, the numeric id of its value of a label.
//!
//! Constraints and terms count pods per domain for all nodes at once. With values as small integers, that is an array
//! over values and one walk over the nodes. Columns of keys in use are maintained; for any other key a column is built
//! on demand, with the same result.

use std::sync::{Arc, LazyLock};

use pellucid_model::collections::FxHashMap;
use pellucid_model::selector::Labels;
use pellucid_model::{CowMap, Name, NodeIdx, Pages, PodSpec};

/// The label key whose values are the nodes themselves.
pub(crate) static HOSTNAME: LazyLock<Name> = LazyLock::new(|| Name::new("kubernetes.io/hostname"));
/// The label key of zones.
pub(crate) static ZONE: LazyLock<Name> = LazyLock::new(|| Name::new("topology.kubernetes.io/zone"));

/// Maximum number of maintained columns, so that users cannot force one per pod.
const MOST: usize = 32;

/// Id of a label value; [`NO_VALUE`] where the node lacks the label or does not exist.
pub(crate) type ValueId = u32;
/// The node does not have the label.
pub(crate) const NO_VALUE: ValueId = 0;

/// A label value and the number of nodes that have it.
#[derive(Clone, Debug, Default)]
struct Value {
    name: Option<Name>,
    nodes: u32,
}

/// The values of one label on all nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Column {
    of_node: Pages<ValueId>,
    values: Pages<Value>,
    n_nodes: usize,
}

impl Column {
    /// Returns the value id of a node.
    #[inline]
    pub(crate) fn of(&self, node: NodeIdx) -> ValueId {
        self.of_node.get(node.index()).copied().unwrap_or(NO_VALUE)
    }

    /// Returns the length of an array indexed by value id.
    pub(crate) fn len(&self) -> usize {
        self.values.len().max(1)
    }

    /// Returns the text of a value; `None` if no node has it.
    pub(crate) fn name(&self, value: ValueId) -> Option<&Name> {
        self.values.get(value as usize).and_then(|v| v.name.as_ref())
    }

    /// Returns the number of nodes with the label.
    pub(crate) fn n_nodes(&self) -> usize {
        self.n_nodes
    }

    /// Iterates over the values that at least one node has.
    pub(crate) fn values(&self) -> impl Iterator<Item = ValueId> {
        self.values.iter().enumerate().filter(|(_, v)| v.nodes > 0).map(|(i, _)| i as ValueId)
    }

    fn set(&mut self, node: NodeIdx, value: ValueId) {
        let old = self.of(node);
        if old == value {
            return;
        }
        self.of_node.set(node.index(), value);
        for (value, delta) in [(old, -1), (value, 1)] {
            if value != NO_VALUE {
                let nodes = &mut self.values[value as usize].nodes;
                *nodes = nodes.saturating_add_signed(delta);
            }
        }
        self.n_nodes = self.n_nodes + usize::from(value != NO_VALUE) - usize::from(old != NO_VALUE);
    }
}

/// A column that is updated with every node change.
#[derive(Clone, Debug)]
struct MaintainedColumn {
    key: Name,
    column: Arc<Column>,
    ids: CowMap<Name, ValueId>,
    free: Vec<ValueId>,
    /// Number of constraints and terms of placed pods that use the key.
    users: usize,
}

impl MaintainedColumn {
    fn set(&mut self, node: NodeIdx, value: Option<&Name>) {
        let old = self.column.of(node);
        let column = Arc::make_mut(&mut self.column);
        let new = match value {
            None => NO_VALUE,
            Some(name) => match self.ids.get(name) {
                Some(known) => *known,
                None => {
                    let id = self.free.pop().unwrap_or(column.len() as ValueId);
                    column.values.set(id as usize, Value { name: Some(name.clone()), nodes: 0 });
                    self.ids.insert(name.clone(), id);
                    id
                }
            },
        };
        column.set(node, new);
        if old != NO_VALUE && column.values[old as usize].nodes == 0 {
            if let Some(name) = std::mem::take(&mut column.values[old as usize]).name {
                self.ids.remove(&name);
            }
            self.free.push(old);
        }
    }
}

/// The labels of all nodes, and the maintained columns.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    labels: Pages<Option<Labels>>,
    kept: Vec<Arc<MaintainedColumn>>,
}

impl Default for Topology {
    fn default() -> Self {
        let mut made = Self { labels: Pages::default(), kept: Vec::new() };
        // The default spread constraints use these keys, so their columns are never evicted.
        for key in [&HOSTNAME, &ZONE] {
            made.keep(key);
            made.count_user(key, 1);
        }
        made
    }
}

impl Topology {
    /// Returns the column of a key, building it if it is not maintained.
    pub(crate) fn column(&self, key: &Name) -> Arc<Column> {
        match self.kept.iter().find(|kept| kept.key == *key) {
            Some(kept) => kept.column.clone(),
            None => Arc::new(self.make(key)),
        }
    }

    /// Updates a node's labels; `None` when the node is gone.
    pub(super) fn set(&mut self, node: NodeIdx, labels: Option<&Labels>) {
        self.labels.set(node.index(), labels.cloned());
        for kept in &mut self.kept {
            let value = labels.and_then(|l| l.get(&kept.key));
            if value != kept.column.name(kept.column.of(node)) {
                Arc::make_mut(kept).set(node, value);
            }
        }
    }

    /// Counts the topology keys of a placed pod that was added (`delta` 1) or removed (-1).
    pub(super) fn count_users(&mut self, spec: &PodSpec, delta: isize) {
        let terms = spec.pod_affinity.iter().chain(spec.pod_anti_affinity.iter()).map(|t| &t.topology_key);
        for key in terms.chain(spec.spread.iter().map(|c| &c.topology_key)) {
            if delta > 0 && !self.kept.iter().any(|kept| kept.key == *key) {
                self.keep(key);
            }
            self.count_user(key, delta);
        }
    }

    fn count_user(&mut self, key: &Name, delta: isize) {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.key == *key) {
            let kept = Arc::make_mut(kept);
            kept.users = kept.users.saturating_add_signed(delta);
        }
    }

    /// Starts maintaining a column. At the limit it replaces an unused column; if all are used, it does nothing.
    fn keep(&mut self, key: &Name) {
        if self.kept.len() >= MOST {
            let Some(unused) = self.kept.iter().position(|kept| kept.users == 0) else { return };
            self.kept.remove(unused);
        }
        let column = self.make(key);
        let named = column.values.iter().enumerate();
        let mut ids = CowMap::default();
        for (id, name) in named.filter_map(|(id, v)| v.name.clone().map(|name| (id, name))) {
            ids.insert(name, id as ValueId);
        }
        let (key, column) = (key.clone(), Arc::new(column));
        self.kept.push(Arc::new(MaintainedColumn { key, column, ids, free: Vec::new(), users: 0 }));
    }

    fn make(&self, key: &Name) -> Column {
        let mut column = Column::default();
        column.values.grow(1);
        let mut ids: FxHashMap<&Name, ValueId> = FxHashMap::default();
        for (node, labels) in self.labels.iter().enumerate() {
            let Some(name) = labels.as_ref().and_then(|l| l.get(key)) else { continue };
            let next = column.values.len() as ValueId;
            let id = *ids.entry(name).or_insert(next);
            if id == next {
                column.values.set(id as usize, Value { name: Some(name.clone()), nodes: 0 });
            }
            column.set(NodeIdx(node as u32), id);
        }
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().map(|(k, v)| (Name::new(k), Name::new(v))))
    }

    fn texts(topology: &Topology, key: &str, n: u32) -> Vec<String> {
        let column = topology.column(&Name::new(key));
        let text = |value| column.name(value).map_or("-".to_owned(), |name| name.to_string());
        (0..n).map(|node| text(column.of(NodeIdx(node)))).collect()
    }

    #[test]
    fn a_kept_column_says_the_same_as_one_made_for_the_occasion() {
        let mut topology = Topology::default();
        let key = Name::new("rack");
        topology.set(NodeIdx(0), Some(&labels(&[("rack", "a")])));
        topology.keep(&key);
        let steps = [
            (1, Some("b")),
            (2, Some("a")),
            (1, Some("")),
            (70, Some("c")),
            (0, None),
            (2, Some("c")),
            (3, Some("a")),
        ];
        for (node, rack) in steps {
            let seen = topology.clone();
            let before = texts(&seen, "rack", 80);
            // An empty text means a node without the label.
            let on_it = |rack: &str| if rack.is_empty() { labels(&[]) } else { labels(&[("rack", rack)]) };
            topology.set(NodeIdx(node), rack.map(on_it).as_ref());
            let (kept, made) = (topology.column(&key), topology.make(&key));
            assert_eq!(kept.n_nodes(), made.n_nodes());
            assert_eq!(kept.values().count(), made.values().count());
            let name = |column: &Column, node| column.name(column.of(NodeIdx(node))).cloned();
            assert!((0..80).all(|n| name(&kept, n) == name(&made, n)), "after {node} {rack:?}");
            assert_eq!(texts(&seen, "rack", 80), before);
        }
        assert_eq!(texts(&topology, "rack", 4), ["-", "-", "c", "a"]);
    }

    #[test]
    fn columns_of_keys_that_nobody_uses_make_room() {
        let mut topology = Topology::default();
        topology.set(NodeIdx(0), Some(&labels(&[("k0", "a"), ("k99", "b")])));
        let using = |i: usize| PodSpec {
            spread: Box::new([pellucid_model::relations::SpreadConstraint {
                max_skew: 1,
                topology_key: Name::new(&format!("k{i}")),
                is_hard: true,
                selector: None,
                min_domains: 1,
                node_affinity_policy: pellucid_model::relations::NodeInclusion::Honor,
                node_taints_policy: pellucid_model::relations::NodeInclusion::Ignore,
            }]),
            ..PodSpec::default()
        };
        for i in 0..100 {
            topology.count_users(&using(i), 1);
        }
        assert_eq!(topology.kept.len(), MOST);
        assert_eq!(texts(&topology, "k99", 1), ["b"], "not kept, but known all the same");
        topology.count_users(&using(0), -1);
        topology.count_users(&using(99), 1);
        assert!(topology.kept.iter().any(|k| &*k.key == "k99") && topology.kept.len() == MOST);
        assert_eq!(
            (texts(&topology, "k0", 1), texts(&topology, "k99", 1)),
            (vec!["a".into()], vec!["b".into()])
        );
        assert!(topology.kept.iter().any(|k| k.key == *HOSTNAME), "never given up");
    }
}
