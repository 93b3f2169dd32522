//! PodGroups of every API group, kube-batch's Queues and native Workloads. What pods say about gangs is read in
//! `decode::gangs`.

mod group_status;
pub(crate) mod pod_group;
pub(crate) mod queue;
pub(crate) mod workload;

use pellucid_model::gang::Named;

use crate::decode::lenient::Fault;
use crate::decode::objects::own_key;
use crate::decode::wire::Meta;

/// Reads an object of which only the name matters.
fn named(meta: &Meta) -> Result<Named, Fault> {
    let (namespace, name) = own_key(meta)?;
    Ok(Named { namespace, name })
}
