//! Makes clusters from short texts: one object per line, `kind name flag key=value ...`.
//!
//! The namespace is `ns`, the UID of a claim `uid-<name>`, and a resourceVersion is 1 unless `rv=` sets it.

use std::sync::Arc;

use pellucid::cluster::{Cluster, ClusterEvent};
use pellucid::model::requests::ResourceList;
use pellucid::model::selector::{LabelSelector, Labels, NodeSelectorTerm, Operator, Requirement};
use pellucid::model::storage::{
    AccessModes, ClaimPhase, ClaimRef, ClaimUse, CsiDriver, CsiNode, CsiNodeDriver, CsiStorageCapacity,
    CsiVolume, Disk, PersistentVolume, PersistentVolumeClaim, PodVolumes, StorageClass, VolumeAttachment,
};
use pellucid::model::{Name, Node, Object, Pod, PodKey, PodSpec};

/// Namespace of all objects.
pub(crate) const NAMESPACE: &str = "ns";

/// A parsed line.
struct Line<'a> {
    text: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, words: text.split_whitespace().collect() }
    }

    fn name(&self) -> &'a str {
        self.words.get(1).unwrap_or_else(|| panic!("{:?} has no name", self.text))
    }

    fn has(&self, flag: &str) -> bool {
        self.words.contains(&flag)
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        let value = |word: &&'a str| word.split_once('=').filter(|(k, _)| *k == key).map(|(_, v)| v);
        self.words.iter().find_map(value)
    }

    fn list(&self, key: &str) -> Vec<&'a str> {
        self.get(key).map_or_else(Vec::new, |list| list.split(',').collect())
    }

    fn text(&self, key: &str) -> &'a str {
        self.get(key).unwrap_or("")
    }

    fn number(&self, key: &str) -> i64 {
        self.get(key).map_or(0, |n| n.parse().unwrap())
    }

    fn version(&self) -> Arc<str> {
        self.get("rv").unwrap_or("1").into()
    }
}

fn pair(text: &str) -> (Name, Name) {
    let (key, value) = text.split_once(':').unwrap_or_else(|| panic!("{text:?} is no pair"));
    (key.into(), value.into())
}

fn names(list: Vec<&str>) -> Box<[Name]> {
    list.into_iter().map(Name::new).collect()
}

fn pairs(list: Vec<&str>) -> Labels {
    Labels::new(list.into_iter().map(pair))
}

/// Parses `key:a|b`: the label has one of the values.
fn requirement(text: &str) -> Requirement {
    let (key, values) = pair(text);
    Requirement { key, operator: Operator::In, values: names(values.split('|').collect()) }
}

fn modes(list: Vec<&str>) -> AccessModes {
    let mode = |text| match text {
        "RWO" => AccessModes::RWO,
        "ROX" => AccessModes::ROX,
        "RWX" => AccessModes::RWX,
        "RWOP" => AccessModes::RWOP,
        other => panic!("there is no access mode {other}"),
    };
    list.into_iter().map(mode).fold(AccessModes::default(), AccessModes::with)
}

fn disk(text: &str) -> Disk {
    let (kind, rest) = text.split_once(':').unwrap();
    let read_only = rest.ends_with("!ro");
    let rest = rest.trim_end_matches("!ro");
    match kind {
        "gce" => Disk::GcePersistentDisk { name: rest.into(), read_only },
        "ebs" => Disk::AwsElasticBlockStore { id: rest.into() },
        "iscsi" => Disk::Iscsi { iqn: rest.into(), read_only },
        "rbd" => {
            let parts: Vec<&str> = rest.split('/').collect();
            let monitors = names(parts[0].split('|').collect());
            Disk::Rbd { monitors, pool: parts[1].into(), image: parts[2].into(), read_only }
        }
        other => panic!("there is no disk {other}"),
    }
}

fn claim_use(text: &str) -> ClaimUse {
    let (claim, owner) = text.split_once('!').map_or((text, None), |(claim, owner)| (claim, Some(owner)));
    ClaimUse { claim: claim.into(), owner: owner.map(Into::into) }
}

fn spec(line: &Line<'_>) -> PodSpec {
    let claims = line.list("claims").into_iter().map(claim_use).collect();
    let disks = line.list("disks").into_iter().map(disk).collect();
    PodSpec {
        namespace: NAMESPACE.into(),
        volumes: PodVolumes { claims, disks },
        resource_claims: names(line.list("resources")),
        required_features: names(line.list("features")),
        ..PodSpec::default()
    }
}

/// Parses `pod name claims=a,b!uid disks=gce:d!ro resources=... features=...`; `!uid` marks a generic ephemeral
/// volume of the pod with that UID.
pub(crate) fn pod(text: &str) -> Pod {
    let line = Line::new(text);
    Pod {
        key: PodKey::new(NAMESPACE, line.name()),
        uid: format!("uid-{}", line.name()).into(),
        scheduler_name: "s".into(),
        node_name: line.get("on").map(Name::new),
        spec: Arc::new(spec(&line)),
        ..Pod::default()
    }
}

fn node(line: &Line<'_>) -> Node {
    Node {
        name: line.name().into(),
        labels: pairs(line.list("labels")),
        declared_features: names(line.list("features")),
        allocatable: ResourceList { pods: 110, ..ResourceList::default() },
        ..Node::default()
    }
}

fn volume(line: &Line<'_>) -> PersistentVolume {
    let terms = line.get("reach").map(|_| {
        let expressions = line.list("reach").into_iter().map(requirement).collect();
        Box::from([NodeSelectorTerm { expressions, ..NodeSelectorTerm::default() }])
    });
    let csi = line.get("csi").map(|text| {
        let parts: Vec<&str> = text.split(':').collect();
        let migrated_from = parts.get(2).map(|plugin| Name::new(plugin));
        CsiVolume { driver: parts[0].into(), handle: parts[1].into(), migrated_from }
    });
    let claim = line.get("claim").map(|text| {
        let (name, uid) = text.split_once('!').unwrap_or((text, ""));
        ClaimRef { namespace: NAMESPACE.into(), name: name.into(), uid: uid.into() }
    });
    PersistentVolume {
        name: line.name().into(),
        resource_version: line.version(),
        labels: pairs(line.list("labels")),
        capacity: line.number("size"),
        access_modes: modes(line.list("modes")),
        class: line.text("class").into(),
        attributes_class: line.text("attributes").into(),
        is_block: line.has("block"),
        is_free: !line.has("used"),
        deleting: line.has("deleting"),
        node_affinity: terms,
        claim,
        csi,
        ..PersistentVolume::default()
    }
}

fn claim(line: &Line<'_>) -> PersistentVolumeClaim {
    let phase = if line.has("lost") { ClaimPhase::Lost } else { ClaimPhase::Pending };
    PersistentVolumeClaim {
        namespace: NAMESPACE.into(),
        name: line.name().into(),
        uid: line.get("uid").map_or_else(|| format!("uid-{}", line.name()).into(), Into::into),
        resource_version: line.version(),
        requested: line.number("size"),
        access_modes: modes(line.list("modes")),
        class: line.get("class").map(Name::new),
        attributes_class: line.text("attributes").into(),
        is_block: line.has("block"),
        selector: line.get("selector").map(|text| LabelSelector::of_pairs([&pair(text)])),
        volume: line.text("volume").into(),
        phase: if line.has("bound") { ClaimPhase::Bound } else { phase },
        bind_completed: line.has("bound"),
        selected_node: line.get("node").map(Name::new),
        owner_pod: line.get("owner").map(Into::into),
        deleting: line.has("deleting"),
    }
}

/// Makes the object of a line, or `None` for a node or pod.
pub(crate) fn object(text: &str) -> Option<Object> {
    let line = Line::new(text);
    Some(match line.words[0] {
        "pv" => Object::PersistentVolume(volume(&line)),
        "claim" => Object::PersistentVolumeClaim(claim(&line)),
        "class" => Object::StorageClass(StorageClass {
            name: line.name().into(),
            provisioner: line.text("provisioner").into(),
            waits_for_consumer: line.has("wait"),
            allowed_topologies: line.list("topology").into_iter().map(|t| [requirement(t)].into()).collect(),
        }),
        "csinode" => {
            let driver = |text: &str| {
                let (name, count) = text.split_once(':').map_or((text, None), |(n, c)| (n, Some(c)));
                CsiNodeDriver { name: name.into(), count: count.map(|c| c.parse().unwrap()) }
            };
            Object::CsiNode(CsiNode {
                name: line.name().into(),
                drivers: line.list("drivers").into_iter().map(driver).collect(),
                migrated: names(line.list("migrated")),
            })
        }
        "driver" => Object::CsiDriver(CsiDriver {
            name: line.name().into(),
            tracks_capacity: line.has("capacity"),
            required_on_node: line.has("required"),
        }),
        "capacity" => Object::CsiStorageCapacity(CsiStorageCapacity {
            namespace: NAMESPACE.into(),
            name: line.name().into(),
            class: line.text("class").into(),
            largest: line.get("size").map(|n| n.parse().unwrap()),
            nodes: line.get("nodes").map(|text| LabelSelector::of_pairs([&pair(text)])),
        }),
        "attachment" => Object::VolumeAttachment(VolumeAttachment {
            name: line.name().into(),
            driver: line.text("driver").into(),
            node: line.text("node").into(),
            volume: line.text("pv").into(),
        }),
        _ => return None,
    })
}

/// Makes an empty cluster with the derived state of every plugin.
pub(crate) fn empty() -> Cluster {
    Cluster::new(0, ["s".into()], crate::common::cluster::derived())
}

/// Applies a line to a cluster.
pub(crate) fn apply(cluster: &mut Cluster, text: &str) -> Vec<ClusterEvent> {
    let mut events = Vec::new();
    if let Some(object) = object(text) {
        cluster.apply_object(Arc::new(object), &mut events);
        return events;
    }
    match text.split_whitespace().next() {
        Some("node") => cluster.apply_node(Arc::new(node(&Line::new(text))), &mut events),
        Some("pod") => cluster.apply_pod(Arc::new(pod(text)), &mut events),
        _ => panic!("{text:?} is no object"),
    }
    events
}

/// Makes a cluster from lines.
pub(crate) fn cluster(lines: &[&str]) -> Cluster {
    let mut made = empty();
    for line in lines {
        apply(&mut made, line);
    }
    made
}
