//! Nodes.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use pellucid_cluster::input::Quarantined;
use pellucid_model::node::NodeImage;
use pellucid_model::requests::ResourceList;
use pellucid_model::taint::Taint;
use pellucid_model::{Name, Node};
use serde::de::{Deserialize, Deserializer};
use serde_json::Value;

use super::fields::{flag, labels, name, required, text};
use super::lenient::{Fault, Lenient};
use super::pod::taint_effect;
use super::requests::{amounts, resource_list};
use super::{quarantined, slim};

/// A Node on the wire.
#[derive(Clone, Debug, Default, kube::Resource)]
#[resource(inherit = "core::Node")]
pub(crate) struct SlimNode {
    /// Name, uid and resource version.
    pub(crate) metadata: ObjectMeta,
    /// Everything we read.
    body: Lenient<slim::NodeBody>,
}

impl<'de> Deserialize<'de> for SlimNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let body = Lenient::<slim::NodeBody>::deserialize(deserializer)?;
        Ok(Self { metadata: slim::object_meta(body.good().map(|b| &b.metadata)), body })
    }
}

/// Decodes a Node manifest.
pub fn node_from_value(value: &Value) -> Result<Node, Quarantined> {
    match SlimNode::deserialize(value) {
        Ok(slim) => node(&slim),
        Err(error) => Err(quarantined("Node", None, None, Fault::new("", "", error.to_string()))),
    }
}

/// Decodes a Node.
pub(crate) fn node(slim: &SlimNode) -> Result<Node, Quarantined> {
    read_node(slim).map_err(|fault| {
        let meta = slim.body.good().and_then(|b| b.metadata.good());
        quarantined("Node", meta, None, fault)
    })
}

fn read_node(slim: &SlimNode) -> Result<Node, Fault> {
    let Some(body) = slim.body.read("")? else { return Err(Fault::new("", "null", "not an object")) };
    let no_meta = slim::Meta::default();
    let no_spec = slim::NodeSpec::default();
    let no_status = slim::NodeStatus::default();
    let meta = body.metadata.read("metadata")?.unwrap_or(&no_meta);
    let spec = body.spec.read("spec")?.unwrap_or(&no_spec);
    let status = body.status.read("status")?.unwrap_or(&no_status);
    let under_meta = |fault: Fault| fault.under("metadata");
    let under_spec = |fault: Fault| fault.under("spec");
    let under_status = |fault: Fault| fault.under("status");
    Ok(Node {
        name: Name::new(&required(&meta.name, "name").map_err(under_meta)?),
        uid: text(&meta.uid, "uid").map_err(under_meta)?,
        labels: labels(meta).map_err(under_meta)?,
        unschedulable: flag(&spec.unschedulable, "unschedulable").map_err(under_spec)?,
        taints: spec.taints.each("taints", taint).map_err(under_spec)?.into(),
        allocatable: allocatable(status).map_err(under_status)?,
        declared_features: declared_features(status).map_err(under_status)?,
        images: status.images.each("images", image).map_err(under_status)?.into(),
        ready: ready(status).map_err(under_status)?,
        created: meta.creation_timestamp.read("creationTimestamp").map_err(under_meta)?.map_or(0, |m| m.0),
    })
}

fn taint(taint: &slim::Taint) -> Result<Taint, Fault> {
    Ok(Taint {
        key: required(&taint.key, "key")?,
        value: name(&taint.value, "value")?,
        effect: taint_effect(&taint.effect)?.ok_or_else(|| Fault::new("effect", "", "missing"))?,
    })
}

/// `status.allocatable`, or `status.capacity` when that is absent, as an API server fills it in.
fn allocatable(status: &slim::NodeStatus) -> Result<ResourceList, Fault> {
    let amounts = match status.allocatable {
        Lenient::Absent => amounts(&status.capacity, "capacity")?,
        _ => amounts(&status.allocatable, "allocatable")?,
    };
    Ok(resource_list(amounts))
}

fn declared_features(status: &slim::NodeStatus) -> Result<Box<[Name]>, Fault> {
    let mut features = status.declared_features.each("declaredFeatures", |feature| Ok(feature.clone()))?;
    features.sort();
    features.dedup();
    Ok(features.into())
}

fn image(image: &slim::Image) -> Result<NodeImage, Fault> {
    Ok(NodeImage {
        names: image.names.each("names", |name| Ok(name.clone()))?.into(),
        size: image.size_bytes.read("sizeBytes")?.copied().unwrap_or(0),
    })
}

fn ready(status: &slim::NodeStatus) -> Result<bool, Fault> {
    let ready = status.conditions.each("conditions", |condition| {
        let is_ready = name(&condition.r#type, "type")?.as_str() == "Ready";
        Ok(is_ready && name(&condition.status, "status")?.as_str() == "True")
    })?;
    Ok(ready.contains(&true))
}
