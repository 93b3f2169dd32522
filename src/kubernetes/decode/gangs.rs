//! PodGroups of every API group, kube-batch's Queues, native Workloads.

use super::lenient::{Fault, Lenient};
use super::objects::Body;
use super::slim::Meta;
use super::slim_objects::GroupBody;
use super::workloads::own_key;
use crate::model::gang::{Named, PodGroup};
use crate::model::{GangKey, Object, ObjectKind};

impl Body for GroupBody {
    fn meta(&self) -> &Lenient<Meta> {
        &self.metadata
    }
    fn object(&self, kind: ObjectKind, meta: &Meta) -> Result<Object, Fault> {
        let (namespace, name) = own_key(meta)?;
        Ok(match kind {
            ObjectKind::QueueIncubator => Object::QueueIncubator(Named { namespace, name }),
            ObjectKind::QueueSigsDev => Object::QueueSigsDev(Named { namespace, name }),
            ObjectKind::WorkloadNative => Object::WorkloadNative(Named { namespace, name }),
            _ => {
                let key = GangKey { namespace, name };
                Object::PodGroup(PodGroup { kind, key, ..PodGroup::default() })
            }
        })
    }
}
