//! Which events wake a pod that a plugin refused, and which do not.

use pellucid::cluster::{Cluster, ClusterEvent};
use pellucid::framework::View;
use pellucid::framework::plugin::Hint;
use pellucid::model::{Name, ObjectKind, Pod, PodKey};

use super::ask::plugin;
use super::world::{NAMESPACE, apply, cluster, pod};

/// Executes `object line`, `gone Kind name`, `gone-pod name` or `gone-node name`.
fn change(cluster: &mut Cluster, text: &str) -> Vec<ClusterEvent> {
    let mut events = Vec::new();
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        ["gone-pod", name] => cluster.delete_pod(&PodKey::new(NAMESPACE, name), &mut events),
        ["gone", kind, name] => {
            let kind = ObjectKind::ALL.into_iter().find(|k| k.as_str() == kind).unwrap();
            cluster.delete_object(kind, &(Name::default(), name.into()), &mut events);
        }
        _ => events = apply(cluster, text),
    }
    events
}

/// Returns whether one of the events makes a plugin queue a pod again.
pub(crate) fn wakes(name: &str, cluster: &Cluster, pod: &Pod, events: &[ClusterEvent]) -> bool {
    let plugin = plugin(name);
    let hints = plugin.hints().expect("it has hints");
    let registered = events.iter().filter(|e| hints.events().any(e.kinds()));
    registered.into_iter().any(|e| hints.hint(View::new(cluster), pod, e) == Hint::Queue)
}

#[test]
fn events_wake_the_pods_they_could_help() {
    const RESTRICTIONS: &str = "VolumeRestrictions";
    const LIMITS: &str = "NodeVolumeLimits";
    const BINDING: &str = "VolumeBinding";
    const ZONE: &str = "VolumeZone";
    const FEATURES: &str = "NodeDeclaredFeatures";
    let zone = |z: &str| format!("pv v labels=topology.kubernetes.io/zone:{z}");
    let (z1, z2) = (zone("z1"), zone("z2"));
    // Columns: plugin, objects, pending pod, change, whether it wakes the pod.
    let table: &[(&str, &[&str], &str, &str, bool)] = &[
        (RESTRICTIONS, &[], "pod p claims=c", "node a", true),
        (RESTRICTIONS, &["node a"], "pod p claims=c", "node a labels=x:y", false),
        (RESTRICTIONS, &["node a", "pod o on=a claims=c"], "pod p claims=c", "gone-pod o", true),
        (RESTRICTIONS, &["node a", "pod o on=a claims=d"], "pod p claims=c", "gone-pod o", false),
        (RESTRICTIONS, &["node a", "pod o on=a claims=c!uid-o"], "pod p claims=c", "gone-pod o", false),
        (RESTRICTIONS, &["node a", "pod o on=a disks=ebs:v"], "pod p disks=ebs:v", "gone-pod o", true),
        (RESTRICTIONS, &["node a", "pod o on=a disks=ebs:w"], "pod p disks=ebs:v", "gone-pod o", false),
        (RESTRICTIONS, &[], "pod p claims=c", "claim c", true),
        (RESTRICTIONS, &[], "pod p claims=c", "claim d", false),
        (RESTRICTIONS, &["claim c"], "pod p claims=c", "claim c size=1", false),
        (RESTRICTIONS, &["claim c modes=RWOP"], "pod p claims=c", "claim c modes=RWOP size=1", false),
        (RESTRICTIONS, &["claim c modes=RWOP"], "pod p claims=c", "claim c modes=RWO", true),
        (LIMITS, &[], "pod p claims=c", "node a", true),
        (LIMITS, &[], "pod p claims=c", "csinode a", true),
        (LIMITS, &["csinode a drivers=d:1"], "pod p claims=c", "csinode a drivers=d:2", true),
        (LIMITS, &["csinode a drivers=d:2"], "pod p claims=c", "csinode a drivers=d:1", false),
        (LIMITS, &["csinode a drivers=d:1"], "pod p claims=c", "csinode a drivers=d", true),
        (LIMITS, &["csinode a drivers=d:1"], "pod p claims=c", "csinode a drivers=d:1,e:1", true),
        (LIMITS, &["csinode a drivers=d:1,e"], "pod p claims=c", "csinode a drivers=e", true),
        (LIMITS, &["csinode a drivers=d:1,e"], "pod p claims=c", "csinode a drivers=d:1", false),
        (LIMITS, &["driver d required"], "pod p claims=c", "driver d", true),
        (LIMITS, &["driver d required"], "pod p claims=c", "gone CSIDriver d", true),
        (LIMITS, &["driver d"], "pod p claims=c", "driver d capacity", false),
        (LIMITS, &["node a", "pod o on=a claims=x"], "pod p claims=c", "gone-pod o", true),
        (LIMITS, &["node a", "pod o on=a disks=ebs:v"], "pod p claims=c", "gone-pod o", true),
        (LIMITS, &["node a", "pod o on=a disks=iscsi:v"], "pod p claims=c", "gone-pod o", false),
        (LIMITS, &[], "pod p claims=c!uid-p", "claim c owner=uid-p", true),
        (LIMITS, &[], "pod p claims=c", "claim other", false),
        (LIMITS, &["claim c"], "pod p claims=c", "claim c volume=v", true),
        (LIMITS, &["claim c"], "pod p claims=c", "claim c size=2", false),
        (LIMITS, &["claim c"], "pod p claims=c!uid-p", "claim c owner=uid-p", true),
        (LIMITS, &["claim d"], "pod p claims=c", "claim d volume=v", false),
        (
            LIMITS,
            &["class k provisioner=d", "claim c class=k", "attachment t driver=d node=a pv=v"],
            "pod p claims=c",
            "gone VolumeAttachment t",
            true,
        ),
        (
            LIMITS,
            &["class k provisioner=e", "claim c class=k", "attachment t driver=d node=a pv=v"],
            "pod p claims=c",
            "gone VolumeAttachment t",
            false,
        ),
        (BINDING, &[], "pod p claims=c", "node a", true),
        (BINDING, &["node a"], "pod p claims=c", "node a labels=zone:z1", true),
        (BINDING, &["node a"], "pod p claims=c", "node a features=F", false),
        (BINDING, &[], "pod p claims=c", "class k", true),
        (BINDING, &["class k"], "pod p claims=c", "class k topology=zone:z1", true),
        (BINDING, &["class k"], "pod p claims=c", "class k wait", false),
        (BINDING, &[], "pod p claims=c", "claim c", true),
        (BINDING, &["claim c"], "pod p claims=c", "claim c bound volume=v", true),
        (BINDING, &[], "pod p claims=c", "claim d", false),
        (BINDING, &["claim c class=k"], "pod p claims=c", "pv v class=k", true),
        (BINDING, &["claim c class=k"], "pod p claims=c", "pv v class=other", false),
        (BINDING, &["claim c volume=v"], "pod p claims=c", "pv v", true),
        (BINDING, &["claim c class=k", "pv v claim=c"], "pod p claims=c", "pv v claim=c size=1", true),
        (BINDING, &[], "pod p claims=c", "csinode a", true),
        (BINDING, &["csinode a"], "pod p claims=c", "csinode a migrated=x", true),
        (BINDING, &["csinode a"], "pod p claims=c", "csinode a drivers=d:1", false),
        (BINDING, &["driver d capacity"], "pod p claims=c", "driver d", true),
        (BINDING, &["driver d"], "pod p claims=c", "driver d capacity", false),
        (BINDING, &[], "pod p claims=c", "capacity x size=1", true),
        (BINDING, &["capacity x size=1"], "pod p claims=c", "capacity x size=2", true),
        (BINDING, &["capacity x size=2"], "pod p claims=c", "capacity x size=1", false),
        (BINDING, &["node a", "pod o on=a claims=x"], "pod p claims=c", "gone-pod o", false),
        (ZONE, &[], "pod p claims=c", "node a", true),
        (ZONE, &["node a"], "pod p claims=c", "node a labels=x:y", true),
        (ZONE, &[], "pod p claims=c", "class k wait", true),
        (ZONE, &[], "pod p claims=c", "class k", false),
        (ZONE, &[], "pod p claims=c", "claim c", true),
        (ZONE, &[], "pod p claims=c!uid-p", "claim c", false),
        (ZONE, &[], "pod p claims=c", "pv v", true),
        (ZONE, &[&z1], "pod p claims=c", &z2, true),
        (ZONE, &["pv v"], "pod p claims=c", "pv v size=3", false),
        (FEATURES, &[], "pod p features=F", "node a features=F", true),
        (FEATURES, &[], "pod p features=F", "node a features=G", false),
        (FEATURES, &["node a features=G"], "pod p features=F", "node a features=F", true),
        (FEATURES, &["node a features=F"], "pod p features=F", "node a features=F,G", false),
        (FEATURES, &["pod p features=F"], "pod p", "pod p", true),
        ("DynamicResources", &["pod p resources=gpu"], "pod p", "pod p", true),
        ("DynamicResources", &["node a"], "pod p resources=gpu", "node b", false),
    ];
    let mut wrong = Vec::new();
    for (plugin, objects, waiting, changed, want) in table {
        let mut cluster = cluster(objects);
        let events = change(&mut cluster, changed);
        assert!(!events.is_empty(), "{changed} is an event");
        if wakes(plugin, &cluster, &pod(waiting), &events) != *want {
            wrong.push(format!("{plugin} {objects:?}: {changed:?} wakes {waiting:?}: want {want}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_pod_whose_place_is_given_up_frees_its_volumes_for_others() {
    let mut cluster = cluster(&["node a", "pod o claims=x"]);
    let id = cluster.find_pod(&PodKey::new(NAMESPACE, "o")).unwrap();
    let node = cluster.present()[0];
    cluster.place(id, node, pellucid::cluster::Stage::PreBinding);
    let gone = cluster.pod(id).unwrap().pod.clone();
    cluster.release(id);
    let event = ClusterEvent::PodReleased { pod: gone, node };
    assert!(wakes("VolumeBinding", &cluster, &pod("pod p claims=c"), &[event]));
}
