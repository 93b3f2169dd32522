//! Evaluates one plugin for a pod: whether it skips the pod, refuses it, or its result per node.

use std::sync::Arc;

use pellucid::cluster::Cluster;
use pellucid::framework::plugin::{Plugin, PreFiltered};
use pellucid::framework::{Cause, CauseId, Causes, Code, Nodes, View};
use pellucid::model::{NodeIdx, PodSpec};
use serde_json::Value;

/// Makes a plugin of the registry with default arguments.
pub(crate) fn plugin(name: &str) -> Arc<dyn Plugin> {
    with_args(name, &Value::Null)
}

/// Makes a plugin of the registry.
pub(crate) fn with_args(name: &str, args: &Value) -> Arc<dyn Plugin> {
    let factory = pellucid::plugins::registry().into_iter().find(|f| f.name() == name);
    factory.unwrap_or_else(|| panic!("there is no plugin {name}")).make(args).unwrap()
}

/// A plugin's result for a pod.
pub(crate) enum Answer {
    /// The plugin skips the pod.
    Skip,
    /// No node can take the pod.
    Refused(Cause),
    /// Per node, by name: the cause, or `None` if the node is accepted.
    PerNode(Vec<(NodeIdx, Option<Cause>)>),
}

/// Evaluates all nodes, by name.
pub(crate) fn ask(plugin: &dyn Plugin, cluster: &Cluster, spec: &PodSpec) -> Answer {
    let view = View::new(cluster);
    let value = match plugin.pre_filter().expect("it prepares").pre_filter(view, spec) {
        PreFiltered::Skip => return Answer::Skip,
        PreFiltered::Refused(cause) => return Answer::Refused(cause),
        PreFiltered::Ready { value, .. } => value,
    };
    let filter = |nodes: &[NodeIdx]| -> Vec<Option<Cause>> {
        let mut causes = Causes::default();
        let mut mask = vec![CauseId::FEASIBLE; cluster.n_slots()];
        let mut left = nodes.to_vec();
        let mut set = Nodes::new(&mut left, &mut causes, &mut mask);
        plugin.filter().expect("it filters").filter(view, spec, &value, &mut set);
        nodes.iter().map(|n| causes.get(mask[n.index()]).cloned()).collect()
    };
    let nodes = cluster.by_name();
    let together = filter(nodes);
    let alone: Vec<_> = nodes.iter().flat_map(|n| filter(&[*n])).collect();
    assert_eq!(together, alone, "what it says about a node depends on that node alone");
    Answer::PerNode(nodes.iter().copied().zip(together).collect())
}

/// Renders a cause as in the tables: removing pods can help with `U`, but not with `UAU`.
pub(crate) fn text(cause: &Cause) -> String {
    let code = match cause.code {
        Code::Unschedulable => "U",
        Code::UnschedulableAndUnresolvable => "UAU",
    };
    format!("{code} {}", cause.message())
}

/// Renders a result, one line per node.
pub(crate) fn lines(cluster: &Cluster, answer: &Answer) -> Vec<String> {
    match answer {
        Answer::Skip => vec!["* skip".to_owned()],
        Answer::Refused(cause) => vec![format!("* {}", text(cause))],
        Answer::PerNode(nodes) => {
            let verdict = |cause: &Option<Cause>| cause.as_ref().map_or("ok".to_owned(), text);
            nodes.iter().map(|(n, cause)| format!("{} {}", cluster.node_name(*n), verdict(cause))).collect()
        }
    }
}
