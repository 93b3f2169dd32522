//! From the decision to bound volumes: what is held, what is written, and what ends it.

use std::time::Duration;

use pellucid::cluster::{Cluster, Hold, Stage};
use pellucid::framework::View;
use pellucid::framework::plugin::{CycleValue, PreBound};
use pellucid::model::effect::{ObjectWrite, Precondition};
use pellucid::model::{Name, PodId, PodKey};
use pellucid::plugins::volume_binding::{Held, NAME};
use serde_json::json;

use super::ask::{ask, lines, plugin, with_args};
use super::world::{NAMESPACE, apply, cluster};

const CLUSTER: &[&str] = &[
    "node a labels=host:a",
    "node b labels=host:b",
    "class local provisioner=kubernetes.io/no-provisioner wait",
    "class make provisioner=csi.d wait",
    "pv v1 class=local size=10 reach=host:a",
    "pv v2 class=local size=10 reach=host:a",
    "claim c class=local size=5",
    "claim d class=make size=5",
    "pod p claims=c,d",
    "pod q claims=c,d",
];

fn id(cluster: &Cluster, pod: &str) -> PodId {
    cluster.find_pod(&PodKey::new(NAMESPACE, pod)).unwrap()
}

/// Places a pod on a node with the holds that Reserve returns, as the scheduler does.
pub(crate) fn reserve(cluster: &mut Cluster, id: PodId, node: &str) -> Result<Option<CycleValue>, String> {
    let node = cluster.find_node(&node.into()).unwrap();
    cluster.place(id, node, Stage::Reserved);
    let pod = cluster.pod(id).unwrap().pod.clone();
    let plugin = plugin(NAME);
    let reserve = plugin.reserve().expect("it reserves");
    let held = reserve.reserve(View::new(cluster), &pod, node).map_err(|cause| cause.message())?;
    let held = held.map(|chosen| chosen.what);
    if let Some(what) = held.clone() {
        cluster.reserve(id, Hold { plugin: NAME, what, marks: None, whole: None });
    }
    Ok(held)
}

/// Returns the object of a write, and what it is to become.
fn shown(write: &ObjectWrite) -> String {
    let ObjectWrite::Patch { object, precondition, patch, .. } = write else { panic!("{write} is no patch") };
    let Precondition { resource_version: Some(version), .. } = precondition else {
        panic!("{write}: always")
    };
    let node = &patch["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
    match (object.plural, patch["spec"].get("claimRef"), node.as_str()) {
        ("persistentvolumes", Some(claim), None) => {
            let text = |field: &str| claim[field].as_str().unwrap_or_default();
            format!(" {} to {} {}", object.name, text("name"), text("uid"))
        }
        ("persistentvolumeclaims", None, Some(node)) => format!(" {} at {node} on {version}", object.name),
        _ => panic!("{write} is not a write of volumes"),
    }
}

struct Way {
    cluster: Cluster,
    held: Option<CycleValue>,
}

impl Way {
    /// Places pod `p` on node `a`.
    fn new() -> Self {
        let mut cluster = cluster(CLUSTER);
        let p = id(&cluster, "p");
        let held = reserve(&mut cluster, p, "a").unwrap();
        Self { cluster, held }
    }

    fn asked(&self) -> PreBound {
        let record = self.cluster.pod(id(&self.cluster, "p")).unwrap();
        let (pod, node) = (record.pod.clone(), record.node.unwrap());
        let plugin = with_args(NAME, &json!({"bindTimeoutSeconds": 7}));
        let pre_bind = plugin.pre_bind().expect("it works before binding");
        pre_bind.pre_bind(View::new(&self.cluster), &pod, node, self.held.as_ref())
    }

    /// Returns the result of PreBind: `ready`, `failed: ...`, or `wait` with the objects to write.
    fn said(&self) -> String {
        match self.asked() {
            PreBound::Ready => "ready".to_owned(),
            PreBound::Failed(cause) => cause.message(),
            PreBound::Wait { writes, at_most } => {
                assert_eq!(at_most, Duration::from_secs(7));
                writes.iter().map(shown).fold("wait".to_owned(), |all, one| all + &one)
            }
        }
    }

    fn see(&mut self, lines: &[&str]) -> String {
        for line in lines {
            apply(&mut self.cluster, line);
        }
        self.said()
    }
}

#[test]
fn all_volumes_are_bound_before_the_pod() {
    let mut way = Way::new();
    assert_eq!(way.said(), "wait v1 to c uid-c d at a on 1");
    assert_eq!(way.said(), "wait v1 to c uid-c d at a on 1", "asked again, the same is said");
    assert_eq!(way.see(&["pv v1 class=local size=10 reach=host:a claim=c!uid-c rv=2"]), "wait d at a on 1");
    assert_eq!(way.see(&["claim d class=make size=5 node=a rv=2"]), "wait");
    assert_eq!(way.see(&["claim c class=local size=5 volume=v1 rv=2"]), "wait", "not bound completely");
    assert_eq!(way.see(&["claim c class=local size=5 volume=v1 bound rv=3"]), "wait");
    assert_eq!(way.see(&["claim d class=make size=5 node=a volume=new rv=3"]), "wait", "before its volume");
    assert_eq!(way.see(&["pv new class=make size=5 reach=host:a claim=d!uid-d"]), "wait");
    assert_eq!(way.see(&["claim d class=make size=5 node=a volume=new bound rv=4"]), "ready");
}

#[test]
fn what_goes_wrong_ends_the_attempt() {
    let table: &[(&[&str], &str)] = &[
        // Written by us, then reverted by the provisioner; also when the write itself was never observed.
        (
            &["claim d class=make size=5 node=a rv=2", "claim d class=make size=5 rv=3"],
            "binding volumes: provisioning failed for PVC \"d\"",
        ),
        (&["claim d class=make size=5 rv=3"], "binding volumes: provisioning failed for PVC \"d\""),
        (
            &["claim d class=make size=5 node=b rv=2"],
            "binding volumes: PVC \"d\" is being provisioned for node \"b\"",
        ),
        (&["claim d class=make size=5 uid=other"], "binding volumes: PVC \"d\" is gone"),
        (&["claim d class=make size=5 node=a deleting rv=2"], "binding volumes: PVC \"d\" is being deleted"),
        (
            &["claim d class=make size=5 node=a volume=new rv=2", "pv new class=make size=5 reach=host:b"],
            "binding volumes: pv \"new\" node affinity doesn't match node \"a\"",
        ),
        (
            &["pv v1 class=local size=10 reach=host:a rv=2"],
            "binding volumes: ClaimRef got reset for pv \"v1\"",
        ),
        (
            &["pv v1 class=local size=10 reach=host:a claim=other!uid-other rv=2"],
            "binding volumes: ClaimRef got reset for pv \"v1\"",
        ),
        (
            &["claim c class=local size=5 volume=v2 bound rv=2"],
            "binding volumes: PVC \"c\" was bound to pv \"v2\" instead of \"v1\"",
        ),
        (&["node a labels=host:x"], "binding volumes: pv \"v1\" node affinity doesn't match node \"a\""),
    ];
    for (changes, want) in table {
        assert_eq!(way_after(changes), *want, "{changes:?}");
    }
}

fn way_after(changes: &[&str]) -> String {
    Way::new().see(changes)
}

#[test]
fn what_is_gone_ends_the_attempt() {
    let mut way = Way::new();
    let key = (Name::default(), "v1".into());
    way.cluster.delete_object(pellucid::model::ObjectKind::PersistentVolume, &key, &mut Vec::new());
    assert_eq!(way.said(), "binding volumes: pv \"v1\" is gone");
    let mut way = Way::new();
    way.cluster.delete_node(&"a".into(), &mut Vec::new());
    assert_eq!(way.said(), "binding volumes: node \"a\" is gone");
}

#[test]
fn bound_claims_hold_nothing_and_are_ready_at_once() {
    let mut way =
        Way { cluster: cluster(&["node a", "pv v", "claim c volume=v bound", "pod p claims=c"]), held: None };
    let p = id(&way.cluster, "p");
    way.held = reserve(&mut way.cluster, p, "a").unwrap();
    assert!(way.held.is_none());
    assert_eq!(way.said(), "ready");
}

#[test]
fn a_volume_set_aside_by_its_maker_is_not_written() {
    let objects = ["node a", "class k wait", "pv v class=k claim=c", "claim c class=k", "pod p claims=c"];
    let mut way = Way { cluster: cluster(&objects), held: None };
    let p = id(&way.cluster, "p");
    way.held = reserve(&mut way.cluster, p, "a").unwrap();
    assert!(way.held.is_some());
    assert_eq!(way.said(), "wait", "the volume controller binds it by itself");
    assert_eq!(way.see(&["claim c class=k volume=v bound"]), "ready");
}

#[test]
fn others_see_what_is_held_until_it_is_given_up() {
    let mut way = Way::new();
    let other = |way: &Way, text: &str| {
        let spec = super::world::pod(text).spec;
        lines(&way.cluster, &ask(&*plugin(NAME), &way.cluster, &spec))
    };
    let none = "UAU node(s) didn't find available persistent volumes to bind";
    for claim in ["claim e class=local size=5", "claim f class=local size=5"] {
        apply(&mut way.cluster, claim);
    }
    assert_eq!(other(&way, "pod r claims=e"), ["a ok", &format!("b {none}")], "v2 is left");
    assert_eq!(other(&way, "pod r claims=e,f"), [format!("a {none}"), format!("b {none}")]);
    assert_eq!(other(&way, "pod r claims=d"), ["a ok", &format!("b {none}")], "d will be made for node a");

    // Another pod with the same claims gets the same volume; the volume is free once both have released it.
    let (p, q) = (id(&way.cluster, "p"), id(&way.cluster, "q"));
    let held = reserve(&mut way.cluster, q, "a").unwrap().unwrap();
    assert_eq!(held.downcast_ref::<Held>().unwrap().bindings[0].volume, Name::new("v1"));
    way.cluster.release(p);
    assert_eq!(other(&way, "pod r claims=e,f"), [format!("a {none}"), format!("b {none}")]);
    way.cluster.release(q);
    assert_eq!(other(&way, "pod r claims=e,f"), ["a ok", &format!("b {none}")]);
    assert_eq!(other(&way, "pod r claims=d"), ["a ok", "b ok"]);
}

#[test]
fn an_overlay_takes_back_what_was_held() {
    let mut cluster = cluster(CLUSTER);
    let p = id(&cluster, "p");
    let overlay = cluster.begin();
    reserve(&mut cluster, p, "a").unwrap();
    cluster.rollback(overlay);
    let spec = super::world::pod("pod r claims=d").spec;
    assert_eq!(lines(&cluster, &ask(&*plugin(NAME), &cluster, &spec)), ["a ok", "b ok"]);
    assert!(cluster.pod(p).unwrap().holds.is_empty());
}

#[test]
fn a_pod_that_cannot_have_the_node_after_all_is_refused() {
    let mut cluster = cluster(CLUSTER);
    let p = id(&cluster, "p");
    let refused = reserve(&mut cluster, p, "b").map(|_| ()).unwrap_err();
    assert_eq!(refused, "node(s) didn't find available persistent volumes to bind");
}

#[test]
fn the_smallest_volume_is_taken_and_names_break_ties() {
    let choose = |volumes: &[&str]| {
        let base = ["node a labels=host:a", "class k wait", "claim c class=k size=5", "pod p claims=c"];
        let mut cluster = cluster(&[&base, volumes].concat());
        let p = id(&cluster, "p");
        let held = reserve(&mut cluster, p, "a").unwrap().unwrap();
        held.downcast_ref::<Held>().unwrap().bindings[0].volume.to_string()
    };
    assert_eq!(choose(&["pv v1 class=k size=9", "pv v2 class=k size=6", "pv v3 class=k size=7"]), "v2");
    assert_eq!(choose(&["pv z class=k size=6", "pv y class=k size=6 reach=host:a"]), "y");
    assert_eq!(choose(&["pv y class=k size=6 reach=host:a", "pv z class=k size=5"]), "z");
    assert_eq!(choose(&["pv y class=k size=6 claim=c", "pv z class=k size=5"]), "y", "set aside goes first");
    let (a, b) = ("pv a class=k size=6 reach=host:a|b", "pv b class=k size=6 reach=host:b|a");
    assert_eq!(choose(&[a, b]), "a");
    assert_eq!(choose(&[b, a]), "a", "the order in which they came does not count");
}

#[test]
fn people_can_read_what_is_held() {
    let way = Way::new();
    let read = |plugin: &str, path: &str| {
        let factory = pellucid::plugins::registry().into_iter().find(|f| f.name() == plugin).unwrap();
        let endpoint = factory.endpoints().into_iter().find(|e| e.path == path).unwrap();
        let params = Default::default();
        let cx = pellucid::framework::endpoint::ReadContext {
            view: View::new(&way.cluster),
            params: &params,
            now: pellucid::model::Now::default(),
            list: &pellucid::framework::list::List::default(),
        };
        (endpoint.read)(&cx).unwrap()
    };
    let state = read(NAME, "state");
    assert_eq!(
        state["held"],
        json!([
            {"pod": "ns/p", "claim": "c", "nodeName": "a", "volume": "v1", "waitsFor": "write"},
            {"pod": "ns/p", "claim": "d", "nodeName": "a", "waitsFor": "write"},
        ])
    );
    assert_eq!((&state["unboundClaims"], &state["freeVolumes"]), (&json!(2), &json!(1)));
    let volumes = read(NAME, "volumes");
    assert_eq!(
        volumes["volumes"][0],
        json!({"volume": "v1", "storageClass": "local", "capacityBytes": 10, "free": false, "claim": "ns/c",
            "assumed": true, "limitedToNodes": true})
    );
    let claims = read("VolumeRestrictions", "state");
    assert_eq!(claims["claims"][0], json!({"claim": "ns/c", "exclusive": false, "pods": 1, "nodes": ["a"]}));
    assert_eq!(read("VolumeZone", "state")["unzonedVolumes"], json!(2));
    assert_eq!(read("DynamicResources", "state")["totalPods"], json!(0));
    assert_eq!(read("NodeDeclaredFeatures", "state")["totalNodes"], json!(2));
    assert_eq!(read("NodeVolumeLimits", "state")["limits"], json!([]));
}

#[test]
fn arguments() {
    let made = with_args(NAME, &json!({"bindTimeoutSeconds": 30}));
    assert_eq!(made.args(), json!({"bindTimeoutSeconds": 30}));
    assert_eq!(plugin(NAME).args(), json!({"bindTimeoutSeconds": 600}));
    let factory = pellucid::plugins::registry().into_iter().find(|f| f.name() == NAME).unwrap();
    let bad = json!({"bindTimeoutSeconds": -1, "shape": [{"utilization": 0, "score": 0}]});
    let Err(problems) = factory.make(&bad) else { panic!("both are wrong") };
    assert_eq!(problems.iter().map(|p| &*p.field).collect::<Vec<_>>(), ["bindTimeoutSeconds", "shape"]);
    let dra = with_args("DynamicResources", &json!({"filterTimeout": "5s"}));
    assert_eq!(dra.args()["filterTimeout"], json!("5s"));
}
