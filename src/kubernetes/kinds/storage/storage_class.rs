//! StorageClasses.

use pellucid_model::selector::Requirement;
use pellucid_model::storage::StorageClass;
use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::fields::{exactly, name, required};
use crate::decode::lenient::{Fault, Lenient, List};
use crate::decode::objects::{bodies, object, own_key};
use crate::decode::wire::{Meta, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static STORAGE_CLASS: BuiltIn = BuiltIn {
    resource: Resource { is_namespaced: false, ..Resource::new("storage.k8s.io", "v1", "storageclasses") },
    read: |text| object(ObjectKind::StorageClass, text, storage_class),
};

wire_types! {
    struct ClassBody {
        metadata: Lenient<Meta>,
        provisioner: Lenient<Name>,
        volume_binding_mode: Lenient<Name>,
        allowed_topologies: List<TopologyTerm>,
    }
    /// An entry of `allowedTopologies`.
    struct TopologyTerm {
        match_label_expressions: List<TopologyRequirement>,
    }
    /// An entry of `matchLabelExpressions`: the label has one of these values.
    struct TopologyRequirement {
        key: Lenient<Name>,
        values: List<Name>,
    }
}

bodies!(ClassBody);

fn storage_class(body: &ClassBody, meta: &Meta) -> Result<Object, Fault> {
    let requirement = |own: &TopologyRequirement| {
        let values = own.values.each("values", |value| Ok(value.clone()))?.into();
        Ok(Requirement { values, ..exactly(required(&own.key, "key")?, Name::default()) })
    };
    let terms = body.allowed_topologies.each("allowedTopologies", |term| {
        let all = term.match_label_expressions.each("matchLabelExpressions", requirement)?;
        Ok(all.into_boxed_slice())
    })?;
    Ok(Object::StorageClass(StorageClass {
        name: own_key(meta)?.1,
        provisioner: name(&body.provisioner, "provisioner")?,
        waits_for_consumer: match name(&body.volume_binding_mode, "volumeBindingMode")?.as_str() {
            "" | "Immediate" => false,
            "WaitForFirstConsumer" => true,
            other => return Err(Fault::new("volumeBindingMode", other, "unknown binding mode")),
        },
        allowed_topologies: terms.into(),
    }))
}
