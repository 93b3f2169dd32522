//! Whose entries they are.
//!
//! Most entries have their names with them. A placement, of which one comes with each decision, has but the numbers of
//! its pod and node in the state: copying the names was half of what the diagnosis that is always on cost. They are
//! written down when such a number is given up, or the pod's slot no longer says that it was placed, into the chunk
//! that is open then ([`Former`]). That is behind the placement, so it is pushed out no earlier. A number of which
//! nothing was written since still has its name in the state.

use pellucid_cluster::Cluster;
use pellucid_model::collections::{FxHashMap, FxHashSet};
use pellucid_model::{NodeIdx, PodId, PodKey};

use super::chunk::Chunk;
use super::entry::Entry;
use super::line::{About, Text};
use super::ring::FlightLog;

/// Whose number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Number {
    Pod(PodId),
    Node(NodeIdx),
}

/// A name that a number had in all entries before this one, back to when it had another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Former {
    pub(super) number: Number,
    /// The id that was given next.
    pub(super) before: u64,
    /// Namespace and name of a pod, the name of a node.
    pub(super) text: Text,
}

/// The names of a log's entries behind an id, given the state of the same snapshot.
pub struct Names<'a> {
    cluster: &'a Cluster,
    /// In rising order.
    former: FxHashMap<Number, Vec<(u64, [&'a str; 2])>>,
}

impl<'a> Names<'a> {
    fn new(
        chunks: impl Iterator<Item = &'a Chunk>,
        cluster: &'a Cluster,
        is_asked: impl Fn(Number) -> bool,
    ) -> Self {
        let mut former: FxHashMap<Number, Vec<(u64, [&str; 2])>> = FxHashMap::default();
        for chunk in chunks {
            for name in chunk.former().iter().filter(|name| is_asked(name.number)) {
                let [namespace, text, _] = chunk.text(name.text);
                former.entry(name.number).or_default().push((name.before, [namespace, text]));
            }
        }
        Self { cluster, former }
    }

    fn former(&self, number: Number, id: u64) -> Option<[&'a str; 2]> {
        let names = self.former.get(&number)?;
        let at = names.partition_point(|(before, _)| *before <= id);
        names.get(at).map(|(_, names)| *names)
    }

    fn all(&self, chunk: &'a Chunk, entry: &Entry) -> [&'a str; 3] {
        let (pod, node) = match entry.line.about() {
            About::Names(text) => return chunk.text(text),
            About::Placement(pod, node) => (pod, node),
        };
        let now = || self.cluster.pod(pod).map(|record| [&*record.pod.key.namespace, &*record.pod.key.name]);
        let [namespace, name] = self.former(Number::Pod(pod), entry.id).or_else(now).unwrap_or_default();
        let former = self.former(Number::Node(node), entry.id).map(|[_, name]| name);
        [namespace, name, former.unwrap_or_else(|| &self.cluster.slot(node).name)]
    }

    /// Returns namespace and name of what an entry is about.
    pub fn subject(&self, chunk: &'a Chunk, entry: &Entry) -> (&'a str, &'a str) {
        let [namespace, name, _] = self.all(chunk, entry);
        (namespace, name)
    }

    /// Returns the node of an entry, empty without one.
    pub fn node(&self, chunk: &'a Chunk, entry: &Entry) -> &'a str {
        self.all(chunk, entry)[2]
    }
}

impl FlightLog {
    /// Returns the names of the entries behind an id. `cluster`: the state of the same snapshot.
    pub fn names<'a>(&'a self, id: u64, cluster: &'a Cluster) -> Names<'a> {
        Names::new(self.chunks_behind(id), cluster, |_| true)
    }

    /// Returns the entries about a pod of this name, or a gang, with their names.
    pub fn about<'a>(&'a self, key: &PodKey, cluster: &'a Cluster) -> (Vec<(&'a Chunk, Entry)>, Names<'a>) {
        // Few of the many numbers ever had this name: the placements of all others are passed over.
        let mut pods: FxHashSet<PodId> = cluster.find_pod(key).into_iter().collect();
        for chunk in self.chunks_behind(0) {
            for Former { number, text, .. } in chunk.former() {
                if let Number::Pod(pod) = number
                    && usize::from(text.name) == key.name.len()
                    && chunk.text(*text)[..2] == [&*key.namespace, &*key.name]
                {
                    pods.insert(*pod);
                }
            }
        }
        let is_asked = |number| !matches!(number, Number::Pod(pod) if !pods.contains(&pod));
        let names = Names::new(self.chunks_behind(0), cluster, is_asked);
        let is_about = |(chunk, entry): &(&'a Chunk, Entry)| match entry.line.about() {
            About::Placement(pod, _) if !pods.contains(&pod) => false,
            _ => names.subject(chunk, entry) == (&*key.namespace, &*key.name),
        };
        (self.since(0).filter(is_about).collect(), names)
    }

    /// Returns the names of some entries, one behind the other.
    pub fn names_of<'a>(&'a self, entries: &[(&Chunk, Entry)], cluster: &'a Cluster) -> Names<'a> {
        let numbers = |entry: &Entry| match entry.line.about() {
            About::Placement(pod, node) => vec![Number::Pod(pod), Number::Node(node)],
            About::Names(_) => Vec::new(),
        };
        let asked: FxHashSet<Number> = entries.iter().flat_map(|(_, entry)| numbers(entry)).collect();
        let before = entries.first().map_or(self.newest, |(_, entry)| entry.id - 1);
        Names::new(self.chunks_behind(before), cluster, |number| asked.contains(&number))
    }
}
