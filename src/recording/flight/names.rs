//! Resolves the names of entries.
//!
//! Most entries contain their names. A placement, of which every decision records one, contains only the numbers of its
//! pod and node in the state: copying the names was half the cost of the diagnosis that is always on. The names are
//! written down in the open chunk ([`Former`]) when such a number is given up, or when the pod's slot no longer says
//! that it was placed. They come after the placement, so they are pushed out no earlier. A number without a later
//! former name still has its name in the state.

use pellucid_cluster::Cluster;
use pellucid_model::collections::{FxHashMap, FxHashSet};
use pellucid_model::{NodeIdx, PodId, PodKey};

use super::chunk::Chunk;
use super::entry::Entry;
use super::line::{About, Text};
use super::ring::FlightLog;

/// The number of a pod or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Number {
    Pod(PodId),
    Node(NodeIdx),
}

/// The name that a number had in all entries before this one, back to its previous former name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Former {
    pub(super) number: Number,
    /// The first entry id at which the name no longer applies.
    pub(super) before: u64,
    /// Namespace and name of a pod, or the name of a node.
    pub(super) text: Text,
}

/// The names of a log's entries after an id, together with the state of the same snapshot.
pub struct Names<'a> {
    cluster: &'a Cluster,
    /// Former names of each number, in ascending order of `before`.
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

    /// Returns namespace and name of the pod or gang that an entry is about.
    pub fn subject(&self, chunk: &'a Chunk, entry: &Entry) -> (&'a str, &'a str) {
        let [namespace, name, _] = self.all(chunk, entry);
        (namespace, name)
    }

    /// Returns the name of an entry's node, empty without one.
    pub fn node(&self, chunk: &'a Chunk, entry: &Entry) -> &'a str {
        self.all(chunk, entry)[2]
    }
}

impl FlightLog {
    /// Returns the names of the entries after an id. `cluster` must be the state of the same snapshot.
    pub fn names<'a>(&'a self, id: u64, cluster: &'a Cluster) -> Names<'a> {
        Names::new(self.chunks_behind(id), cluster, |_| true)
    }

    /// Returns the entries about the pod or gang with this name, and their names.
    pub fn about<'a>(&'a self, key: &PodKey, cluster: &'a Cluster) -> (Vec<(&'a Chunk, Entry)>, Names<'a>) {
        // Few numbers ever had this name: placements of all others are skipped.
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

    /// Returns the names of the given entries, which are in ascending order.
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
