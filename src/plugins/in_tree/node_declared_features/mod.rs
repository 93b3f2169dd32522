//! NodeDeclaredFeatures: keeps pods off nodes that lack a feature the pod requires.
//!
//! The required features are inferred from the pod's spec when the pod is decoded; nodes list theirs in
//! `status.declaredFeatures`.

use pellucid_framework::points;
use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_api::rest::volumes::{FeatureUse, NodeDeclaredFeaturesState};
use pellucid_cluster::{ClusterEvent, EventKinds, NodeChange};
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{
    CycleValue, Filter, Hint, Hints, Nodes, Plugin, PreFilter, PreFiltered, Reads,
};
use pellucid_framework::{Cause, CauseId, Code, EveryReason, NodeReason, Reason, Registration, View};
use pellucid_model::{Name, Node, NodeIdx, Pod, PodSpec};
use serde_json::{Value, json};

use pellucid_plugin_helper::describing::{MAX_REQUIREMENTS, detail, objects, tally};
use pellucid_plugin_helper::listing::{MAX_ROWS, cut, pending};

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "NodeDeclaredFeatures";

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let summary = "Keeps pods on nodes that declare the features the pod requires";
    let about = "The features that nodes declare or waiting pods require";
    let state = Endpoint::of::<NodeDeclaredFeaturesState>("state", about, read_state).with_rows("features");
    Registration::without_args(NAME, summary, || NodeDeclaredFeatures).with_endpoints([state])
}

struct NodeDeclaredFeatures;

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { pre_filter, filter, hints }
}

impl PreFilter for NodeDeclaredFeatures {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn pre_filter(&self, _view: View<'_>, spec: &PodSpec) -> PreFiltered {
        if spec.required_features.is_empty() {
            return PreFiltered::Skip;
        }
        PreFiltered::Ready { value: Arc::new(()), nodes: None }
    }
}

fn declares_all(node: &Node, required: &[Name]) -> bool {
    required.iter().all(|feature| node.declared_features.contains(feature))
}

impl Filter for NodeDeclaredFeatures {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn filter(&self, view: View<'_>, spec: &PodSpec, _value: &CycleValue, nodes: &mut Nodes<'_>) {
        let reason = Reason::of(ReasonCode::FeaturesMissing);
        let cause = nodes.cause(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason));
        nodes.refuse(|n| {
            let suits =
                view.cluster().node(n).is_some_and(|node| declares_all(node, &spec.required_features));
            if suits { CauseId::FEASIBLE } else { cause }
        });
    }

    /// Each feature that a node lacks is a reason.
    fn every_reason<'a>(
        &'a self,
        view: View<'a>,
        spec: &'a PodSpec,
        _value: &'a CycleValue,
    ) -> Option<EveryReason<'a>> {
        Some(Box::new(move |node, reasons| {
            let node = view.cluster().node(node);
            let lacks = |feature: &&Name| node.is_none_or(|node| !node.declared_features.contains(feature));
            let lacking = spec.required_features.iter().filter(lacks);
            let reason = |feature: &Name| Reason::about(ReasonCode::FeaturesMissing, feature.clone());
            reasons.extend(lacking.map(|feature| NodeReason::fixed(reason(feature))));
        }))
    }

    fn requirements(&self, view: View<'_>, spec: &PodSpec, _refused: &[NodeIdx]) -> Vec<RequirementDetail> {
        let known = tally(objects(view).flat_map(|(_, node)| &node.declared_features));
        let describe = |feature: &Name| {
            let mut of = detail(view, NAME, ReasonCode::FeaturesMissing, format!("feature {feature}"));
            of.nodes = known.get(feature.as_str()).copied().unwrap_or(0);
            of.text = format!("feature {feature}: declared by {} of {} nodes", of.nodes, of.total_nodes);
            (of.nodes < of.total_nodes).then_some(of)
        };
        spec.required_features.iter().take(MAX_REQUIREMENTS).filter_map(describe).collect()
    }
}

impl Hints for NodeDeclaredFeatures {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD.with(EventKinds::NODE_DECLARED_FEATURES).with(EventKinds::POD_SELF)
    }

    fn hint(&self, view: View<'_>, pod: &Pod, event: &ClusterEvent) -> Hint {
        let required = &pod.spec.required_features;
        let suits_now = |n| view.cluster().node(n).is_some_and(|node| declares_all(node, required));
        let opens = match event {
            ClusterEvent::NodeAdded(n) => suits_now(*n),
            ClusterEvent::NodeUpdated { node, change, old } => {
                change.any(NodeChange::DECLARED_FEATURES) && suits_now(*node) && !declares_all(old, required)
            }
            ClusterEvent::PendingUpdated { old, .. } => old.spec.required_features != *required,
            _ => false,
        };
        if opens { Hint::Queue } else { Hint::Skip }
    }
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut features: BTreeMap<&Name, (usize, usize)> = BTreeMap::new();
    for node in cx.view.nodes().iter().filter_map(|n| cx.view.cluster().node(*n)) {
        node.declared_features.iter().for_each(|f| features.entry(f).or_default().0 += 1);
    }
    for record in pending(cx.view) {
        record.pod.spec.required_features.iter().for_each(|f| features.entry(f).or_default().1 += 1);
    }
    let rows = features.into_iter().map(|(feature, (nodes, pending_pods))| FeatureUse {
        feature: feature.to_string(),
        nodes,
        pending_pods,
    });
    let (features, truncated) = cut(rows.collect(), MAX_ROWS);
    Ok(json!(NodeDeclaredFeaturesState { features, total_nodes: cx.view.nodes().len(), truncated }))
}
