//! Helpers shared by the unit tests of plugins: a small cluster, and a plugin's answers by node name.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_cluster::{Cluster, ClusterEvent, Stage};
use pellucid_framework::plugin::{Measure, Plugin, PreFiltered, PreScored, derived_states};
use pellucid_framework::{CauseId, Causes, CycleValue, Nodes, PluginFactory, View};
use pellucid_model::requests::ResourceList;
use pellucid_model::selector::Labels;
use pellucid_model::storage::{ClaimUse, PersistentVolumeClaim};
use pellucid_model::{Name, Node, NodeIdx, Object, Pod, PodKey, PodSpec};

/// A small generator (xorshift), so that random cases are the same everywhere.
pub struct Random(pub u64);

impl Random {
    /// Returns a number from 0 up to `n`, exclusive.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Returns true once in so many calls.
    pub fn is(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// A cluster with the derived states of some plugins.
pub struct TestCluster {
    /// The state.
    pub cluster: Cluster,
    n_pods: usize,
}

impl TestCluster {
    /// Makes a cluster with the derived states of these plugins.
    pub fn with(plugins: &[Arc<dyn Plugin>], nodes: impl IntoIterator<Item = Node>) -> Self {
        let derived = derived_states(plugins.iter());
        let mut made = Self { cluster: Cluster::new(0, ["s".into()], derived), n_pods: 0 };
        for node in nodes {
            made.apply(node);
        }
        made
    }

    /// Makes a cluster with the derived states of these plugins as their default arguments make them.
    pub fn of<'a>(
        factories: impl IntoIterator<Item = &'a Box<dyn PluginFactory>>,
        nodes: impl IntoIterator<Item = Node>,
    ) -> Self {
        let made =
            factories.into_iter().map(|f| f.make(&serde_json::Value::Null).expect("defaults are valid"));
        Self::with(&made.collect::<Vec<_>>(), nodes)
    }

    /// Adds or changes a node. Returns the events of it.
    pub fn apply(&mut self, node: Node) -> Vec<ClusterEvent> {
        let mut events = Vec::new();
        self.cluster.apply_node(Arc::new(node), &mut events);
        events
    }

    /// Adds a pod that is bound to a node.
    pub fn place(&mut self, spec: PodSpec, node: &str) -> Arc<Pod> {
        self.n_pods += 1;
        let name = format!("p{}", self.n_pods);
        let pod = Pod {
            key: PodKey::new("d", &name),
            uid: name.into(),
            node_name: Some(node.into()),
            ..pod_with(spec)
        };
        let pod = Arc::new(pod);
        self.cluster.apply_pod(pod.clone(), &mut Vec::new());
        let placed = self.cluster.find_pod(&pod.key).and_then(|p| self.cluster.pod(p));
        assert_eq!(placed.map(|record| record.stage), Some(Stage::Bound));
        pod
    }

    /// Adds a pod to the cluster, on a node if it names one. Returns the pod as the cluster stores it.
    pub fn see(&mut self, pod: Pod) -> Arc<Pod> {
        let key = pod.key.clone();
        self.cluster.apply_pod(Arc::new(pod), &mut Vec::new());
        let id = self.cluster.find_pod(&key).expect("it is there");
        self.cluster.pod(id).expect("it is there").pod.clone()
    }

    /// Adds one pod with a label on each of the nodes.
    pub fn put(&mut self, (key, value): (&str, &str), nodes: &[&str]) {
        for node in nodes {
            let name = format!("{value}-{}", self.cluster.pods().count());
            self.see(Pod {
                node_name: Some((*node).into()),
                ..labelled(&name, &[(key, value)], PodSpec::default())
            });
        }
    }

    /// Applies an object as its watch would.
    pub fn object(&mut self, object: Object) {
        self.cluster.apply_object(Arc::new(object), &mut Vec::new());
    }

    /// Returns the raw and the normalised scores of all nodes, in the order of their numbers; `None` when PreScore
    /// skips.
    pub fn scores(&self, plugin: &dyn Plugin, spec: &PodSpec) -> Option<[Vec<i64>; 2]> {
        let (view, nodes) = (self.view(), self.view().nodes());
        let PreScored::Ready(value) = plugin.pre_score()?.pre_score(view, spec, nodes) else { return None };
        let mut raw = vec![0; nodes.len()];
        plugin.score()?.score(view, spec, &value, nodes, &mut raw);
        let mut normalised = raw.clone();
        plugin.score()?.normalize_all(view, &value, nodes, &mut normalised);
        Some([raw, normalised])
    }

    /// Returns the view of a plugin.
    pub fn view(&self) -> View<'_> {
        View::new(&self.cluster)
    }

    /// Returns the number of a node.
    pub fn idx(&self, name: &str) -> NodeIdx {
        self.cluster.find_node(&name.into()).expect("the node exists")
    }
}

/// Returns a node with room for 110 pods, 4 cores and 8 GiB.
pub fn node(name: &str) -> Node {
    Node {
        name: name.into(),
        allocatable: ResourceList { milli_cpu: 4000, memory: 8 << 30, pods: 110, ..Default::default() },
        ..Node::default()
    }
}

/// Returns a pod of namespace `d` that mounts a claim.
pub fn mounting(claim: &str) -> PodSpec {
    let mut spec = PodSpec { namespace: "d".into(), ..PodSpec::default() };
    spec.volumes.claims = [ClaimUse { claim: claim.into(), owner: None }].into();
    spec
}

/// Returns a claim of namespace `d` without a volume or a class.
pub fn claim(name: &str) -> PersistentVolumeClaim {
    PersistentVolumeClaim { namespace: "d".into(), name: name.into(), ..PersistentVolumeClaim::default() }
}

/// Returns a pod of scheduler `s`.
pub fn pod_with(spec: PodSpec) -> Pod {
    Pod { scheduler_name: "s".into(), spec: Arc::new(spec), ..Pod::default() }
}

/// The value for Filter, and the candidate nodes if PreFilter narrowed them.
type Prepared = (CycleValue, Option<Vec<NodeIdx>>);

/// Runs PreFilter. Returns `Err` with the message when it refuses the pod and `Ok(None)` when it skips.
pub fn pre_filter(
    plugin: &dyn Plugin,
    cluster: &TestCluster,
    spec: &PodSpec,
) -> Result<Option<Prepared>, String> {
    let Some(point) = plugin.pre_filter() else { return Ok(Some((Arc::new(()), None))) };
    match point.pre_filter(cluster.view(), spec) {
        PreFiltered::Skip => Ok(None),
        PreFiltered::Ready { value, nodes } => Ok(Some((value, nodes))),
        PreFiltered::Refused(cause) => Err(cause.message()),
    }
}

/// Returns the message for every refused node, by node name.
pub fn filter_all(plugin: &dyn Plugin, cluster: &TestCluster, spec: &PodSpec) -> BTreeMap<String, String> {
    let causes = filter_causes(plugin, cluster, spec);
    causes.into_iter().map(|(name, cause)| (name, cause.message())).collect()
}

/// Returns the cause for every refused node, by node name.
pub fn filter_causes(
    plugin: &dyn Plugin,
    cluster: &TestCluster,
    spec: &PodSpec,
) -> BTreeMap<String, pellucid_framework::Cause> {
    let view = cluster.view();
    let Ok(Some((value, _))) = pre_filter(plugin, cluster, spec) else { return BTreeMap::new() };
    let mut causes = Causes::default();
    let mut mask = vec![CauseId::FEASIBLE; cluster.cluster.n_slots()];
    let mut members = view.nodes().to_vec();
    let filter = plugin.filter().expect("the plugin filters");
    filter.filter(view, spec, &value, &mut Nodes::new(&mut members, &mut causes, &mut mask));
    let refused = view.nodes().iter().filter(|n| !members.contains(n));
    refused
        .map(|n| {
            let cause = causes.get(mask[n.index()]).expect("a refused node has a cause");
            (view.name(*n).to_string(), cause.clone())
        })
        .collect()
}

/// Returns the measures behind the causes of refused nodes: resource, requested amount, available amount, and best
/// node.
pub fn measures(
    plugin: &dyn Plugin,
    cluster: &TestCluster,
    spec: &PodSpec,
) -> Vec<(String, i64, i64, String)> {
    let mut groups: Vec<(pellucid_framework::Cause, Vec<NodeIdx>)> = Vec::new();
    for (name, cause) in filter_causes(plugin, cluster, spec) {
        match groups.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, nodes)) => nodes.push(cluster.idx(&name)),
            None => groups.push((cause, vec![cluster.idx(&name)])),
        }
    }
    let (view, filter) = (cluster.view(), plugin.filter().expect("the plugin filters"));
    let measured = groups.iter().flat_map(|(cause, nodes)| filter.measure(view, spec, cause, nodes));
    let row =
        |m: Measure| (m.resource.to_string(), m.requested, m.available, view.name(m.best_node).to_string());
    measured.map(row).collect()
}

/// Returns the raw scores in the order of the node numbers; `None` when PreScore skips.
pub fn raw_scores(plugin: &dyn Plugin, cluster: &TestCluster, spec: &PodSpec) -> Option<Vec<i64>> {
    let view = cluster.view();
    let value: CycleValue = match plugin.pre_score().map(|p| p.pre_score(view, spec, view.nodes())) {
        None => Arc::new(()),
        Some(PreScored::Ready(value)) => value,
        Some(PreScored::Skip) => return None,
    };
    let mut out = vec![0; view.nodes().len()];
    plugin.score()?.score(view, spec, &value, view.nodes(), &mut out);
    Some(out)
}

/// Interns texts.
pub fn names(texts: &[&str]) -> Box<[Name]> {
    texts.iter().map(|t| Name::new(t)).collect()
}

/// Returns a pod with labels in namespace `d`.
pub fn labelled(name: &str, labels: &[(&str, &str)], spec: PodSpec) -> Pod {
    Pod {
        key: PodKey::new("d", name),
        uid: name.into(),
        scheduler_name: "s".into(),
        labels: pairs(labels),
        spec: Arc::new(spec),
        ..Pod::default()
    }
}

/// Returns labels.
pub fn pairs(labels: &[(&str, &str)]) -> Labels {
    Labels::new(labels.iter().map(|(k, v)| (Name::new(k), Name::new(v))))
}
