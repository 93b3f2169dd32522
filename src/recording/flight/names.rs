//! Resolves the names of entries.
//!
//! Most entries contain their names. A placement, of which every decision records one, contains only the slots of its
//! pod and node in the state: copying the names was half the cost of the diagnosis that is always on. When a slot is
//! freed, or no longer says that its pod was placed, the name is written to the open chunk ([`FormerName`]). It comes
//! after the placement, so it is pushed out no earlier. A slot without a later former name still has its name in the
//! state.

use pellucid_cluster::Cluster;
use pellucid_model::collections::{FxHashMap, FxHashSet};
use pellucid_model::{NodeIdx, PodId, PodKey};

use super::chunk::Chunk;
use super::entry::Entry;
use super::line::{About, Text};
use super::ring::FlightLog;

/// A slot of the state, which holds a pod or a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Slot {
    Pod(PodId),
    Node(NodeIdx),
}

/// The name of a slot's occupant in all entries before `before`, back to the slot's previous former name.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormerName {
    pub(super) slot: Slot,
    /// The first entry id at which the name no longer applies.
    pub(super) before: u64,
    /// Namespace and name of a pod, or the name of a node.
    pub(super) text: Text,
}

/// Returns the name under which events of an object without a namespace are recorded, in namespace `""`. No pod and no gang
/// has it.
pub fn object_subject(kind: &str, object: &str) -> String {
    format!("{kind}/{object}")
}

/// The names of a log's entries after an id; borrows the state of the same snapshot.
pub struct Names<'a> {
    cluster: &'a Cluster,
    /// Former names of each slot, in ascending order of `before`.
    former: FxHashMap<Slot, Vec<(u64, [&'a str; 2])>>,
}

impl<'a> Names<'a> {
    fn new(
        chunks: impl Iterator<Item = &'a Chunk>,
        cluster: &'a Cluster,
        is_asked: impl Fn(Slot) -> bool,
    ) -> Self {
        let mut former: FxHashMap<Slot, Vec<(u64, [&str; 2])>> = FxHashMap::default();
        for chunk in chunks {
            for name in chunk.former().iter().filter(|name| is_asked(name.slot)) {
                let [namespace, text, _] = chunk.text(name.text);
                former.entry(name.slot).or_default().push((name.before, [namespace, text]));
            }
        }
        Self { cluster, former }
    }

    fn former(&self, slot: Slot, id: u64) -> Option<[&'a str; 2]> {
        let names = self.former.get(&slot)?;
        let at = names.partition_point(|(before, _)| *before <= id);
        names.get(at).map(|(_, names)| *names)
    }

    fn all(&self, chunk: &'a Chunk, entry: &Entry) -> [&'a str; 3] {
        let (pod, node) = match entry.line.about() {
            About::Names(text) => return chunk.text(text),
            About::Placement(pod, node) => (pod, node),
        };
        let now = || self.cluster.pod(pod).map(|record| [&*record.pod.key.namespace, &*record.pod.key.name]);
        let [namespace, name] = self.former(Slot::Pod(pod), entry.id).or_else(now).unwrap_or_default();
        let former = self.former(Slot::Node(node), entry.id).map(|[_, name]| name);
        [namespace, name, former.unwrap_or_else(|| self.cluster.node_name(node))]
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
        let is_subject = |namespace: &str, name: &str| (namespace, name) == (&*key.namespace, &*key.name);
        self.about_any(is_subject, cluster.find_pod(key), cluster)
    }

    /// Does the same for all whose namespace and name are asked for. `pod` is the pod among them that the state has.
    pub fn about_any<'a>(
        &'a self,
        is_subject: impl Fn(&str, &str) -> bool,
        pod: Option<PodId>,
        cluster: &'a Cluster,
    ) -> (Vec<(&'a Chunk, Entry)>, Names<'a>) {
        // Few slots ever had this name; placements of all others are skipped.
        let mut pods: FxHashSet<PodId> = pod.into_iter().collect();
        for chunk in self.chunks_behind(0) {
            for FormerName { slot, text, .. } in chunk.former() {
                let [namespace, name, _] = chunk.text(*text);
                if let Slot::Pod(pod) = slot
                    && is_subject(namespace, name)
                {
                    pods.insert(*pod);
                }
            }
        }
        let is_asked = |slot| !matches!(slot, Slot::Pod(pod) if !pods.contains(&pod));
        let names = Names::new(self.chunks_behind(0), cluster, is_asked);
        let is_about = |(chunk, entry): &(&'a Chunk, Entry)| match entry.line.about() {
            About::Placement(pod, _) if !pods.contains(&pod) => false,
            _ => {
                let (namespace, name) = names.subject(chunk, entry);
                is_subject(namespace, name)
            }
        };
        (self.since(0).filter(is_about).collect(), names)
    }

    /// Returns the names of the given entries, which are in ascending order.
    pub fn names_of<'a>(&'a self, entries: &[(&Chunk, Entry)], cluster: &'a Cluster) -> Names<'a> {
        let slots = |entry: &Entry| match entry.line.about() {
            About::Placement(pod, node) => vec![Slot::Pod(pod), Slot::Node(node)],
            About::Names(_) => Vec::new(),
        };
        let asked: FxHashSet<Slot> = entries.iter().flat_map(|(_, entry)| slots(entry)).collect();
        let before = entries.first().map_or(self.newest, |(_, entry)| entry.id - 1);
        Names::new(self.chunks_behind(before), cluster, |slot| asked.contains(&slot))
    }
}
