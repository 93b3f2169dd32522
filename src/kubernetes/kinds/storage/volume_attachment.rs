//! VolumeAttachments, which count towards the volumes of a node.

use pellucid_model::storage::VolumeAttachment;
use pellucid_model::{Name, Object, ObjectKind};

use crate::decode::fields::name;
use crate::decode::lenient::{Fault, Lenient};
use crate::decode::objects::{bodies, object, own_key};
use crate::decode::wire::{Meta, wire_types};
use crate::kinds::resource::{BuiltIn, Resource};

pub(crate) static VOLUME_ATTACHMENT: BuiltIn = BuiltIn {
    resource: Resource { is_namespaced: false, ..Resource::new("storage.k8s.io", "v1", "volumeattachments") },
    read: |text| object(ObjectKind::VolumeAttachment, text, volume_attachment),
};

wire_types! {
    struct AttachmentBody {
        metadata: Lenient<Meta>,
        spec: Lenient<AttachmentSpec>,
    }
    /// `spec` of a VolumeAttachment.
    struct AttachmentSpec {
        attacher: Lenient<Name>,
        node_name: Lenient<Name>,
        source: Lenient<AttachmentSource>,
    }
    /// `spec.source` of a VolumeAttachment.
    struct AttachmentSource {
        persistent_volume_name: Lenient<Name>,
    }
}

bodies!(AttachmentBody);

fn volume_attachment(body: &AttachmentBody, meta: &Meta) -> Result<Object, Fault> {
    let own_name = own_key(meta)?.1;
    body.spec.within("spec", |spec| {
        let field = "persistentVolumeName";
        Ok(Object::VolumeAttachment(VolumeAttachment {
            name: own_name,
            driver: name(&spec.attacher, "attacher")?,
            node: name(&spec.node_name, "nodeName")?,
            volume: spec.source.within("source", |source| name(&source.persistent_volume_name, field))?,
        }))
    })
}
