//! Words for volumes that are in another zone or region than a node.

use std::collections::BTreeSet;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::View;
use pellucid_model::storage::ClaimUse;
use pellucid_model::{Name, NodeIdx, Object, ObjectKind, PodSpec};

use super::super::claims::{self, describe_missing};
use super::{Demand, NAME, TOPOLOGIES, demands_of, is_placed};
use pellucid_plugin_helper::describing::{
    MAX_REQUIREMENTS, ask_meant, detail, meant, most_frequent, tally, values_text,
};

/// Returns the claims whose volumes demand a zone or region, each once.
pub(super) fn located(view: View<'_>, spec: &PodSpec) -> Vec<(Name, Vec<Demand>)> {
    let mut known = BTreeSet::new();
    let first = claims::named(spec).filter(|mounted| known.insert(&mounted.claim));
    let found = first.filter_map(|of| Some((of.claim.clone(), demands_of(view, spec, of).ok()?)));
    found.filter(|(_, demands)| !demands.is_empty()).collect()
}

/// Returns whether a node is where a volume is.
pub(super) fn suits(view: View<'_>, demands: &[Demand], node: NodeIdx) -> bool {
    view.labels(node).is_none_or(|labels| !is_placed(labels) || demands.iter().all(|d| d.suits(labels)))
}

fn texts(demands: &[Demand]) -> String {
    let text = |demand: &Demand| {
        let values: Vec<&str> = demand.values.iter().map(|value| value.as_str()).collect();
        format!("{} {}", TOPOLOGIES[demand.topology].key, values.join(","))
    };
    demands.iter().map(text).collect::<Vec<String>>().join(" and ")
}

fn volume<'a>(view: View<'a>, spec: &PodSpec, claim: &Name) -> &'a str {
    let claim = view.cluster().objects().claim(&spec.namespace, claim);
    claim.map_or("", |claim| claim.volume.as_str())
}

/// Describes the claims whose volumes are elsewhere than some refusing node, and what keeps a claim from having a
/// volume.
pub(super) fn of(view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    let mut all = describe_missing(view, NAME, spec);
    all.extend(claims::named(spec).filter_map(|mounted| unclassed(view, spec, mounted)));
    for (claim, demands) in located(view, spec) {
        if refused.iter().all(|node| suits(view, &demands, *node)) {
            continue;
        }
        let mut of = detail(view, NAME, ReasonCode::VolumeZoneConflict, format!("claim {claim}"));
        of.nodes = view.nodes().iter().filter(|node| suits(view, &demands, **node)).count();
        let (place, volume, nodes) = (texts(&demands), volume(view, spec, &claim), of.nodes);
        let total = of.total_nodes;
        of.text = format!("claim {claim}: volume {volume} is in {place}, as {nodes} of {total} nodes");
        if let Some(demand) = demands.first() {
            let topology = &TOPOLOGIES[demand.topology];
            of.key = Some(topology.key.to_string());
            of.values = demand.values.iter().map(ToString::to_string).collect();
            let labels = view.nodes().iter().filter_map(|node| view.labels(*node));
            let values = labels.filter_map(|l| l.get(&topology.key).or_else(|| l.get(&topology.current)));
            (of.found, of.truncated) = most_frequent(tally(values));
            of.text += &format!("; nodes are in {}", values_text(&of.found, of.truncated));
        }
        all.push(of);
    }
    all.truncate(MAX_REQUIREMENTS);
    all
}

/// Describes a claim that has no volume for want of a class, or whose class does not exist.
fn unclassed(view: View<'_>, spec: &PodSpec, mounted: &ClaimUse) -> Option<RequirementDetail> {
    let objects = view.cluster().objects();
    let claim = claims::find(view, spec, mounted)?;
    let reason = demands_of(view, spec, mounted).err()?;
    let mut of = detail(view, NAME, reason.code, format!("claim {}", claim.name));
    let class = claim.class.as_ref().map_or("", |class| class.as_str());
    of.text = match reason.code {
        ReasonCode::VolumeNotFound => format!("claim {}: there is no volume {}", claim.name, claim.volume),
        ReasonCode::ClassNotFound => {
            let classes = objects.iter(ObjectKind::StorageClass).filter_map(|object| match &**object {
                Object::StorageClass(class) => Some(&class.name),
                _ => None,
            });
            of.did_you_mean.extend(meant(class, &tally(classes)));
            format!("claim {}: there is no storage class {class}", claim.name)
        }
        ReasonCode::ClaimWithoutClass => {
            format!("claim {} has neither a volume nor a storage class", claim.name)
        }
        _ => format!(
            "claim {} has no volume yet, and class {class} does not wait for the first consumer",
            claim.name
        ),
    };
    ask_meant(&mut of.text, &of.did_you_mean);
    Some(of)
}

/// Describes the volumes that are elsewhere than one node.
pub(super) fn on_node(view: View<'_>, spec: &PodSpec, node: NodeIdx) -> Option<String> {
    let located = located(view, spec);
    let unsuited = located.iter().filter(|(_, demands)| !suits(view, demands, node));
    let word = |(claim, demands): &(Name, Vec<Demand>)| {
        format!("volume {} of claim {claim} is in {}", volume(view, spec, claim), texts(demands))
    };
    let all: Vec<String> = unsuited.take(MAX_REQUIREMENTS).map(word).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pellucid_model::storage::{PersistentVolume, PersistentVolumeClaim};

    use super::*;
    use crate::relations::testing::{in_zone, pairs};
    use crate::testing::{TestCluster, claim, cluster_of, mounting};

    fn cluster() -> TestCluster {
        let mut cluster = cluster_of([in_zone("a1", "za"), in_zone("b1", "zb"), in_zone("b2", "zb")]);
        let volume = PersistentVolume {
            name: "pv".into(),
            labels: pairs(&[("topology.kubernetes.io/zone", "za")]),
            ..PersistentVolume::default()
        };
        let data = PersistentVolumeClaim { volume: "pv".into(), ..claim("data") };
        let lost = PersistentVolumeClaim { class: Some("fsat".into()), ..claim("lost") };
        let class = pellucid_model::storage::StorageClass { name: "fast".into(), ..Default::default() };
        for object in [
            Object::PersistentVolume(volume),
            Object::PersistentVolumeClaim(data),
            Object::PersistentVolumeClaim(lost),
            Object::StorageClass(class),
        ] {
            cluster.cluster.apply_object(Arc::new(object), &mut Vec::new());
        }
        cluster
    }

    #[test]
    fn a_volume_in_another_zone_is_named_with_the_zones_of_nodes() {
        let (cluster, spec) = (cluster(), mounting("data"));
        let [of] = &of(cluster.view(), &spec, cluster.view().nodes())[..] else { panic!("one claim") };
        let want = "claim data: volume pv is in topology.kubernetes.io/zone za, as 1 of 3 nodes; nodes are in zb (2), za (1)";
        assert_eq!((of.text.as_str(), of.nodes), (want, 1));
        let own = |node: &str| on_node(cluster.view(), &spec, cluster.idx(node));
        assert_eq!(
            own("b1").as_deref(),
            Some("volume pv of claim data is in topology.kubernetes.io/zone za")
        );
        assert_eq!(own("a1"), None);
    }

    #[test]
    fn a_class_that_does_not_exist_is_asked_about() {
        let cluster = cluster();
        let [of] = &of(cluster.view(), &mounting("lost"), &[])[..] else { panic!("one claim") };
        assert_eq!(of.text, "claim lost: there is no storage class fsat; did you mean fast?");
    }
}
