//! Services.

use pellucid_model::object::Workload;
use pellucid_model::{Object, ObjectKind};

use crate::decode::lenient::Fault;
use crate::decode::objects::object;
use crate::decode::wire::Meta;
use crate::kinds::resource::{BuiltIn, Resource};
use crate::kinds::workloads::{PairsBody, by_pairs};

pub(crate) static SERVICE: BuiltIn = BuiltIn {
    resource: Resource::new("", "v1", "services"),
    read: |text| object(ObjectKind::Service, text, service),
};

fn service(body: &PairsBody, meta: &Meta) -> Result<Object, Fault> {
    Ok(Object::Service(Workload { replicas: None, ..by_pairs(body, meta)? }))
}
