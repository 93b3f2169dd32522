//! Nodes.

use pellucid_cluster::input::Quarantined;
use pellucid_model::node::NodeImage;
use pellucid_model::requests::ResourceList;
use pellucid_model::taint::Taint;
use pellucid_model::{Name, Node};

use crate::decode::fields::{annotations, flag, labels, name, required, text};
use crate::decode::lenient::{Fault, Lenient};
use crate::decode::objects::bodies;
use crate::decode::requests::{amounts, resource_list};
use crate::decode::wire::NodeBody;
use crate::decode::{Item, quarantined, wire};
use crate::kinds::pod::taint_effect;
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static NODE: BuiltIn<Node> = BuiltIn {
    resource: Resource { is_namespaced: false, is_required: true, ..Resource::new("", "v1", "nodes") },
    read: |text| Item::read::<NodeBody>(text, node),
};

bodies!(NodeBody);

/// Decodes a Node. Fails with its identity and the first field that cannot be read.
fn node(body: &Lenient<NodeBody>) -> Result<Node, Quarantined> {
    read_node(body).map_err(|fault| {
        let meta = body.good().and_then(|b| b.metadata.good());
        quarantined("Node", meta, None, fault)
    })
}

fn read_node(body: &Lenient<NodeBody>) -> Result<Node, Fault> {
    let Some(body) = body.read("")? else { return Err(Fault::new("", "null", "not an object")) };
    let (no_meta, no_spec, no_status) = <(wire::Meta, wire::NodeSpec, wire::NodeStatus)>::default();
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
        annotations: annotations(meta).map_err(under_meta)?,
        unschedulable: flag(&spec.unschedulable, "unschedulable").map_err(under_spec)?,
        taints: spec.taints.each("taints", taint).map_err(under_spec)?.into(),
        allocatable: allocatable(status).map_err(under_status)?,
        declared_features: declared_features(status).map_err(under_status)?,
        images: status.images.each("images", image).map_err(under_status)?.into(),
        ready: ready(status).map_err(under_status)?,
        created: meta.creation_timestamp.read("creationTimestamp").map_err(under_meta)?.map_or(0, |m| m.0),
    })
}

fn taint(taint: &wire::Taint) -> Result<Taint, Fault> {
    Ok(Taint {
        key: required(&taint.key, "key")?,
        value: name(&taint.value, "value")?,
        effect: taint_effect(&taint.effect)?.ok_or_else(|| Fault::new("effect", "", "missing"))?,
    })
}

/// Returns `status.allocatable`, or `status.capacity` when that is absent, which is the API server's default.
fn allocatable(status: &wire::NodeStatus) -> Result<ResourceList, Fault> {
    let amounts = match status.allocatable {
        Lenient::Absent => amounts(&status.capacity, "capacity")?,
        _ => amounts(&status.allocatable, "allocatable")?,
    };
    Ok(resource_list(amounts))
}

fn declared_features(status: &wire::NodeStatus) -> Result<Box<[Name]>, Fault> {
    let mut features = status.declared_features.each("declaredFeatures", |feature| Ok(feature.clone()))?;
    features.sort();
    features.dedup();
    Ok(features.into())
}

fn image(image: &wire::Image) -> Result<NodeImage, Fault> {
    Ok(NodeImage {
        names: image.names.each("names", |name| Ok(name.clone()))?.into(),
        size: image.size_bytes.read("sizeBytes")?.copied().unwrap_or(0),
    })
}

fn ready(status: &wire::NodeStatus) -> Result<bool, Fault> {
    let ready = status.conditions.each("conditions", |condition| {
        let is_ready = name(&condition.r#type, "type")?.as_str() == "Ready";
        Ok(is_ready && name(&condition.status, "status")?.as_str() == "True")
    })?;
    Ok(ready.contains(&true))
}
