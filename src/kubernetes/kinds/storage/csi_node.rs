//! CSINodes, which say how many volumes of each driver a node takes.

use pellucid_model::storage::{CsiNode, CsiNodeDriver};
use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::fields::{name, required};
use crate::decode::lenient::{Fault, Lenient, List};
use crate::decode::objects::{bodies, object, own_key};
use crate::decode::wire::{Meta, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::storage::known;

pub(crate) static CSI_NODE: BuiltIn = BuiltIn {
    resource: Resource { is_namespaced: false, ..Resource::new("storage.k8s.io", "v1", "csinodes") },
    read: |text| object(ObjectKind::CsiNode, text, csi_node),
};

wire_types! {
    struct CsiNodeBody {
        metadata: Lenient<Meta>,
        spec: Lenient<CsiNodeSpec>,
    }
    /// `spec` of a CSINode.
    struct CsiNodeSpec {
        drivers: List<NodeDriver>,
    }
    /// An entry of `drivers` of a CSINode.
    struct NodeDriver {
        name: Lenient<Name>,
        allocatable: Lenient<NodeDriverRoom>,
    }
    /// `allocatable` of a driver on a node.
    struct NodeDriverRoom {
        count: Lenient<i64>,
    }
}

bodies!(CsiNodeBody);

fn csi_node(body: &CsiNodeBody, meta: &Meta) -> Result<Object, Fault> {
    let field = "annotations.storage.alpha.kubernetes.io/migrated-plugins";
    let migrated = || name(&known(meta)?.migrated_plugins, field);
    let migrated = migrated().map_err(|f| f.under("metadata"))?;
    let drivers = body.spec.within("spec", |spec| {
        spec.drivers.each("drivers", |driver| {
            let count =
                driver.allocatable.within("allocatable", |room| Ok(room.count.read("count")?.copied()))?;
            Ok(CsiNodeDriver { name: required(&driver.name, "name")?, count })
        })
    })?;
    let plugins = migrated.split(',').map(str::trim).filter(|p| !p.is_empty());
    Ok(Object::CsiNode(CsiNode {
        name: own_key(meta)?.1,
        drivers: drivers.into(),
        migrated: plugins.map(Name::new).collect(),
    }))
}
