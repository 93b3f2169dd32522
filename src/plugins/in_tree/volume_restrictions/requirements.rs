//! Words for disks and ReadWriteOncePod claims that other pods use.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::View;
use pellucid_model::storage::{ClaimUse, Disk};
use pellucid_model::{Name, NodeIdx, Pod, PodSpec};

use super::super::claims::{self, describe_missing};
use super::{ClaimsInUse, NAME, conflict, has_conflict, is_in_use_alone};
use pellucid_plugin_helper::describing::{
    MAX_REQUIREMENTS, add_pods, detail, first_by_name, pods_on, pods_text,
};

/// Iterates over the ReadWriteOncePod claims of a pod that a placed pod uses, each once.
pub(super) fn claims_in_use<'a>(view: View<'a>, spec: &'a PodSpec) -> impl Iterator<Item = &'a Name> {
    let mounted: Vec<&ClaimUse> = claims::named(spec).collect();
    let is_first = move |at: usize, of: &ClaimUse| mounted[..at].iter().all(|other| other.claim != of.claim);
    let used = claims::named(spec).enumerate().filter(move |(at, of)| is_first(*at, of));
    let used = used.filter_map(move |(_, of)| claims::find(view, spec, of));
    used.filter(move |claim| is_in_use_alone(view, spec, claim)).map(|claim| &claim.name)
}

/// Returns a disk as text: its kind and its name there.
pub(super) fn disk_text(disk: &Disk) -> String {
    match disk {
        Disk::GcePersistentDisk { name, .. } => format!("gcePersistentDisk {name}"),
        Disk::AwsElasticBlockStore { id } => format!("awsElasticBlockStore {id}"),
        Disk::Iscsi { iqn, .. } => format!("iscsi {iqn}"),
        Disk::Rbd { pool, image, .. } => format!("rbd {pool}/{image}"),
    }
}

pub(super) fn uses<'a>(spec: &'a PodSpec, claim: &'a Name) -> impl Fn(&Pod) -> bool + 'a {
    move |pod| {
        pod.spec.namespace == spec.namespace && claims::named(&pod.spec).any(|other| other.claim == *claim)
    }
}

/// Describes the disks and claims that other pods use, and claims that do not exist.
pub(super) fn of(view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    let mut all = describe_missing(view, NAME, spec);
    for disk in &spec.volumes.disks {
        let alone = std::slice::from_ref(disk);
        let on: Vec<NodeIdx> = refused.iter().copied().filter(|n| has_conflict(view, alone, *n)).collect();
        if on.is_empty() {
            continue;
        }
        let mut of = detail(view, NAME, ReasonCode::DiskConflict, disk_text(disk));
        of.nodes = of.total_nodes - on.len();
        for node in first_by_name(view, on.iter().copied()) {
            add_pods(&mut of, view, node, |pod| conflict(alone, &pod.spec));
        }
        let (n, total, pods) = (on.len(), of.total_nodes, pods_text(&of.pods));
        of.text = format!("{}: in use on {n} of {total} nodes: {pods}", of.requirement);
        all.push(of);
    }
    all.extend(claims_in_use(view, spec).map(|claim| {
        let mut of = detail(view, NAME, ReasonCode::ClaimInUse, format!("claim {claim}"));
        let key = (spec.namespace.clone(), claim.clone());
        let nodes = view.state::<ClaimsInUse>().into_iter().flat_map(|used| used.nodes(&key));
        for node in first_by_name(view, nodes) {
            add_pods(&mut of, view, node, uses(spec, claim));
        }
        let pods = pods_text(&of.pods);
        of.text = format!("claim {claim} is ReadWriteOncePod, for one pod at a time, and in use: {pods}");
        of
    }));
    all.truncate(MAX_REQUIREMENTS);
    all
}

/// Describes the disks that are in use on one node, and the claims that are in use on any.
pub(super) fn on_node(view: View<'_>, spec: &PodSpec, node: NodeIdx) -> Option<String> {
    let disk = |disk: &Disk| {
        let alone = std::slice::from_ref(disk);
        let (pods, _) = pods_on(view, node, |pod| conflict(alone, &pod.spec));
        (!pods.is_empty()).then(|| format!("{} is in use by {}", disk_text(disk), pods.join(", ")))
    };
    let disks = spec.volumes.disks.iter().filter_map(disk);
    let claim = |claim: &Name| {
        let key = (spec.namespace.clone(), claim.clone());
        let nodes = view.state::<ClaimsInUse>().into_iter().flat_map(|used| used.nodes(&key));
        let on = first_by_name(view, nodes);
        let pods: Vec<String> = on.iter().flat_map(|n| pods_on(view, *n, uses(spec, claim)).0).collect();
        format!("claim {claim} is in use by {}", pods.join(", "))
    };
    let all: Vec<String> = disks.chain(claims_in_use(view, spec).map(claim)).take(MAX_REQUIREMENTS).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pellucid_model::Object;
    use pellucid_model::storage::{AccessModes, PersistentVolumeClaim};

    use super::*;
    use crate::testing::{TestCluster, claim, cluster_of, mounting, node};

    fn cluster() -> TestCluster {
        let mut cluster = cluster_of([node("a"), node("b")]);
        let claim = PersistentVolumeClaim { access_modes: AccessModes::RWOP, ..claim("data") };
        cluster.cluster.apply_object(Arc::new(Object::PersistentVolumeClaim(claim)), &mut Vec::new());
        cluster
    }

    #[test]
    fn the_pod_that_uses_a_claim_alone_is_named() {
        let mut cluster = cluster();
        cluster.place(mounting("data"), "b");
        let spec = mounting("data");
        let [of] = &of(cluster.view(), &spec, cluster.view().nodes())[..] else { panic!("one claim") };
        let want = "claim data is ReadWriteOncePod, for one pod at a time, and in use: on b d/p1";
        assert_eq!((of.text.as_str(), of.nodes), (want, 0));
        let own = on_node(cluster.view(), &spec, cluster.idx("a"));
        assert_eq!(own.as_deref(), Some("claim data is in use by d/p1"));
    }

    #[test]
    fn a_misspelt_claim_is_asked_about() {
        let cluster = cluster();
        let [of] = &of(cluster.view(), &mounting("dat"), &[])[..] else { panic!("one claim") };
        assert_eq!(of.text, "claim dat: there is none in namespace d; did you mean data?");
    }
}
