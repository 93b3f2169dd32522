//! Tests of decoding: faults with their paths, defaults, resize, and the recorded objects.

mod gang;
mod group;
mod objects;
mod relations;

use pellucid_model::pod::{HostPort, PodPhase, Protocol, RequestField};
use pellucid_model::taint::{TaintEffect, TolerationOperator};
use pellucid_model::{ObjectKind, PodSpec};

use serde_json::{Value, json};

use super::*;
use crate::decode::containers::normalised;
use crate::kinds::Kind;

fn pod_with(spec: Value) -> Value {
    json!({"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": spec})
}

fn spec_of(spec: Value) -> Arc<PodSpec> {
    Decoder::default().pod(&pod_with(spec)).expect("readable").spec
}

fn fault_of(object: &Value, kind: &str) -> (String, String, String) {
    let q = match kind {
        "Pod" => Decoder::default().pod(object).map(|_| ()).expect_err("unreadable"),
        _ => Decoder::default().node(object).map(|_| ()).expect_err("unreadable"),
    };
    assert_eq!(q.kind, kind);
    (q.field.to_string(), q.value.to_string(), q.problem.to_string())
}

#[test]
fn a_fault_names_field_value_and_problem() {
    let with_port = |port: Value| json!({"containers": [{"ports": [port]}]});
    for (spec, field, value, problem) in [
        (
            json!({"containers": [{"resources": {"requests": {"cpu": "1x"}}}]}),
            "containers[0].resources.requests.cpu",
            "1x",
            "not a quantity: its suffix is unknown",
        ),
        (
            json!({"initContainers": [{}, {"resources": {"limits": {"memory": {}}}}]}),
            "initContainers[1].resources.limits.memory",
            "(object)",
            "not a quantity",
        ),
        (json!({"overhead": {"cpu": ""}}), "overhead.cpu", "", "not a quantity: it is empty"),
        (json!({"priority": "high"}), "priority", "high", "not an integer"),
        (json!({"priority": 5_000_000_000_i64}), "priority", "5000000000", "not a 32-bit integer"),
        (json!({"containers": {}}), "containers", "(object)", "not a list"),
        (json!({"containers": ["c"]}), "containers[0]", "c", "not an object"),
        (json!({"containers": [null]}), "containers[0]", "null", "not an object"),
        (with_port(json!({"hostPort": -1})), "containers[0].ports[0].hostPort", "-1", "not a port"),
        (
            with_port(json!({"hostPort": 1, "protocol": "QUIC"})),
            "containers[0].ports[0].protocol",
            "QUIC",
            "unknown protocol",
        ),
        (json!({"tolerations": [{"effect": "No"}]}), "tolerations[0].effect", "No", "unknown taint effect"),
        (
            json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]}}}}),
            "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
             .nodeSelectorTerms[0].matchExpressions[0].operator",
            "Near",
            "unknown node selector operator",
        ),
        (json!({"nodeSelector": {"disk": 5}}), "nodeSelector.disk", "5", "not a text"),
        (
            json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution":
                [{"weight": 1.5}]}}}),
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
            "1.5",
            "not an integer",
        ),
    ] {
        let want = (format!("spec.{field}"), value.to_owned(), problem.to_owned());
        assert_eq!(fault_of(&pod_with(spec), "Pod"), want);
    }
}

#[test]
fn quarantine_keeps_what_identity_there_is() {
    let mut object = pod_with(json!({"priority": true, "schedulerName": "pellucid"}));
    let q = Decoder::default().pod(&object).expect_err("unreadable");
    assert_eq!((&*q.namespace, &*q.name, &*q.uid), ("ns", "p", "u"));
    assert_eq!(q.scheduler_name.as_deref(), Some("pellucid"));
    object["spec"] = json!(7);
    let q = Decoder::default().pod(&object).expect_err("unreadable");
    assert_eq!((&*q.field, &*q.name, q.scheduler_name), ("spec", "p", None));
    let q = Decoder::default().pod(&json!([])).expect_err("unreadable");
    assert_eq!((&*q.field, &*q.value), ("", "(list)"));
    assert_eq!(fault_of(&json!({"metadata": {}}), "Pod").0, "metadata.name");
}

fn event(text: &str) -> serde_json::Result<Event> {
    Event::read(text.as_bytes(), |item| Kind::Pod.read(item))
}

#[test]
fn one_bad_object_does_not_fail_its_neighbours_in_any_key_order() {
    let read = |object: Value| Kind::Pod.read(object.to_string().as_bytes()).expect("JSON");
    assert!(read(json!({"spec": {"priority": {}}, "metadata": {"name": "bad"}})).object.is_err());
    let good = read(json!({"metadata": {"name": "good", "resourceVersion": "7"}}));
    assert_eq!((&*good.resource_version, good.object.is_ok()), ("7", true));
    for text in [
        r#"{"type":"ADDED","object":{"metadata":{"name":"a"},"spec":[1,{"b":[]}]}}"#,
        r#"{"object":{"metadata":{"name":"a"},"spec":[1,{"b":[]}]},"type":"ADDED"}"#,
    ] {
        let Ok(Event::Applied(item)) = event(text) else { panic!("not added") };
        assert_eq!(&*item.object.expect_err("unreadable").field, "spec");
    }
    let bookmark = event(r#"{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"9"}}}"#);
    assert!(matches!(bookmark, Ok(Event::Bookmark { version, ends_initial: false }) if version == "9"));
    let error = event(r#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#);
    assert!(matches!(error, Ok(Event::Error(status)) if status.code == 410));
    let unknown = event(r#"{"type":"RENAMED","object":{}}"#).err().map(|e| e.to_string());
    assert_eq!(unknown.as_deref(), Some("an event of the unknown type \"RENAMED\""));
}

#[test]
fn a_limit_without_a_request_is_the_request() {
    let spec = spec_of(json!({"containers": [
        {"resources": {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"memory": "1Mi"}}}]}));
    assert_eq!((spec.requests.list.milli_cpu, spec.requests.list.memory), (2000, 1 << 20));
}

#[test]
fn pod_level_requests_and_overhead() {
    let spec = spec_of(json!({"containers": [{"resources": {"requests": {"cpu": "3"}}}],
        "resources": {"requests": {"cpu": "1"}}, "overhead": {"cpu": "5m"}}));
    assert_eq!(spec.requests.list.milli_cpu, 1005);
}

#[test]
fn a_pod_level_limit_is_the_request_of_what_no_container_requests() {
    let spec = spec_of(json!({"containers": [{"resources": {"requests": {"cpu": "3"}}}, {}],
        "resources": {"limits": {"cpu": "8", "memory": "4Gi", "example.com/x": "1"}}}));
    let list = &spec.requests.list;
    assert_eq!((list.milli_cpu, list.memory, list.scalars.len()), (3000, 4 << 30, 0));
    let pages = json!({"requests": {"hugepages-2Mi": "2Mi"}});
    let spec = spec_of(json!({"containers": [{"resources": pages}],
        "resources": {"limits": {"hugepages-2Mi": "64Mi"}}}));
    assert_eq!(spec.requests.list.scalar(&"hugepages-2Mi".into()), 64 << 20);
    assert_eq!(spec.requests.by_containers.as_ref().map(|of| of.scalars[0].1), Some(2 << 20));
}

#[test]
fn a_resize_of_the_pod_as_a_whole_counts_the_largest() {
    let mut object = pod_with(json!({"containers": [{}], "resources": {"requests": {"cpu": "1"}}}));
    object["status"] = json!({"allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "3"}}});
    let milli =
        |object: &Value| Decoder::default().pod(object).expect("readable").spec.requests.list.milli_cpu;
    assert_eq!(milli(&object), 4000);
    object["status"]["resources"]["requests"]["memory"] = json!("1Gi");
    let list = Decoder::default().pod(&object).expect("readable").spec.requests.list.clone();
    assert_eq!((list.milli_cpu, list.memory), (4000, 0), "the pod as a whole requests no memory");
    object["status"] = json!({"allocatedResources": {"cpu": "4"}});
    assert_eq!(milli(&object), 1000, "what is allocated does not count alone");
    object["spec"]["resources"] = json!(null);
    object["status"]["resources"] = json!({"requests": {"cpu": "3"}});
    assert_eq!(milli(&object), 0, "no request of the pod as a whole, so none of it is in use");
}

#[test]
fn what_containers_request_is_added_up_before_it_is_rounded() {
    let of = |memory: &str| json!({"resources": {"requests": {"memory": memory, "cpu": "1500m"}}});
    let sum = |spec: Value| spec_of(spec).requests.list.memory;
    assert_eq!(sum(json!({"containers": [of("0.1Gi"), of("0.1Gi")]})), 214_748_365, "twice 107,374,182.4");
    assert_eq!(sum(json!({"containers": [of("1500m"), of("1500m")]})), 3);
    assert_eq!(sum(json!({"containers": [of("1500m"), of("1.4")], "overhead": {"memory": "100m"}})), 3);
    assert_eq!(sum(json!({"containers": [of("1.4")], "initContainers": [of("1.5")]})), 2);
    let sidecar = json!({"restartPolicy": "Always", "resources": {"requests": {"memory": "0.2"}}});
    assert_eq!(sum(json!({"containers": [of("1.4")], "initContainers": [sidecar, of("1.8")]})), 2);
    // API servers round each amount up to thousandths, so CPU is a sum of whole ones.
    let cpu = json!({"resources": {"requests": {"cpu": "1.0005"}}});
    assert_eq!(spec_of(json!({"containers": [cpu, cpu]})).requests.list.milli_cpu, 2002);
}

#[test]
fn of_a_pod_with_requests_as_a_whole_only_what_nobody_requests_is_assumed() {
    const DEFAULT: i64 = 200 << 20;
    let amounts = |resources: Value| {
        let spec = spec_of(json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}, {}],
            "resources": resources}));
        (spec.requests.non_zero_milli_cpu, spec.requests.non_zero_memory)
    };
    assert_eq!(amounts(json!(null)), (1100, 2 * DEFAULT));
    assert_eq!(amounts(json!({"requests": {"memory": "1Gi"}})), (1000, 1 << 30), "a container requests CPU");
    assert_eq!(amounts(json!({"requests": {"cpu": "3"}})), (3000, 2 * DEFAULT), "nobody requests memory");
    // API servers give the pod as a whole what its containers request.
    assert_eq!(amounts(json!({"limits": {"cpu": "3"}})), (1000, 2 * DEFAULT));
    assert_eq!(amounts(json!({"limits": {"ephemeral-storage": "3"}})), (1000, 2 * DEFAULT));
}

#[test]
fn resize_counts_the_largest_unless_it_is_infeasible() {
    let mut object = pod_with(json!({
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "4", "memory": "10"}}}],
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
            {"name": "i", "resources": {"requests": {"cpu": "1"}}}]}));
    object["status"] = json!({
        "containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2", "memory": "30"},
            "resources": {"requests": {"cpu": "3", "memory": "20"}}}],
        "initContainerStatuses": [{"name": "s", "resources": {"requests": {"cpu": "2"}}},
            {"name": "i", "resources": {"requests": {"cpu": "90"}}}]});
    let list = |object: &Value| Decoder::default().pod(object).expect("readable").spec.requests.list.clone();
    assert_eq!((list(&object).milli_cpu, list(&object).memory), (4000 + 2000, 30));
    let mut allocated_alone = object.clone();
    allocated_alone["status"]["containerStatuses"][0] =
        json!({"name": "c", "allocatedResources": {"cpu": "9"}});
    assert_eq!(list(&allocated_alone).milli_cpu, 4000 + 2000);
    object["status"]["conditions"] =
        json!([{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]);
    assert_eq!(list(&object).milli_cpu, 3000 + 2000);
    object["status"]["conditions"][0]["reason"] = json!("Deferred");
    assert_eq!(list(&object).milli_cpu, 4000 + 2000);
}

#[test]
fn host_ports_of_containers_and_sidecars() {
    let port = |port: u16, ip: &str, protocol| HostPort { protocol, ip: ip.into(), port };
    let spec = spec_of(json!({
        "containers": [{"ports": [{"containerPort": 80}, {"hostPort": 81, "hostIP": "", "protocol": "UDP"}]}],
        "initContainers": [{"ports": [{"hostPort": 1}]},
            {"restartPolicy": "Always", "ports": [{"hostPort": 2, "hostIP": "10.0.0.1"}]}]}));
    let want = [port(2, "10.0.0.1", Protocol::Tcp), port(81, "0.0.0.0", Protocol::Udp)];
    assert_eq!(&*spec.host_ports, &want);
    let spec = spec_of(json!({"hostNetwork": true, "containers": [{"ports": [{"containerPort": 80}]}]}));
    assert_eq!(&*spec.host_ports, &[port(80, "0.0.0.0", Protocol::Tcp)]);
}

#[test]
fn images_get_a_tag() {
    for (image, want) in [
        ("nginx", "nginx:latest"),
        ("host:5000/nginx", "host:5000/nginx:latest"),
        ("host:5000/nginx:1", "host:5000/nginx:1"),
        ("nginx@sha256:00", "nginx@sha256:00"),
    ] {
        assert_eq!(normalised(&image.into()), Name::new(want));
    }
    let spec = spec_of(json!({"containers": [{"image": "a:1"}], "initContainers": [{"image": "b"}],
        "volumes": [{"emptyDir": {}}, {"image": {"reference": "c"}}]}));
    assert_eq!(&*spec.images, ["b:latest", "a:1", "c:latest"].map(Name::new));
    assert_eq!(spec.n_containers, 2);
}

#[test]
fn a_pod_of_one_container_requests_what_that_one_does() {
    let container = json!({"resources": {"requests": {"cpu": "1"}}});
    let is_of_one = |spec: Value| {
        let object = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec});
        Decoder::default().pod(&object).expect("readable").requests_of_one
    };
    assert!(is_of_one(json!({"containers": [container]})));
    for spec in [
        json!({"containers": [container, container]}),
        json!({"containers": [container], "initContainers": [container]}),
        json!({"containers": [container], "overhead": {"cpu": "1"}}),
        json!({"containers": [container], "resources": {"requests": {"cpu": "1"}}}),
    ] {
        assert!(!is_of_one(spec.clone()), "{spec}");
    }
}

#[test]
fn a_field_that_alone_decides_a_request_is_known() {
    let of = |cpu: &str| json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    let setup = json!({"name": "setup", "resources": {"requests": {"cpu": "6"}}});
    let sidecar = json!({"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}});
    let fields = |spec: Value| {
        let object = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec});
        let fields = Decoder::default().pod(&object).expect("readable").request_fields;
        let field = |f: &RequestField| {
            let init = f.init_container.as_ref().map(|(at, name)| format!("init {at} {name}"));
            let main = f.container.as_ref().map(|(at, name)| format!("{at} {name}"));
            (init.or(main).unwrap_or_default(), f.rest, f.beside)
        };
        fields.iter().map(field).collect::<Vec<_>>()
    };
    let level = json!({"requests": {"cpu": "40"}});
    let overhead = json!({"cpu": "1"});
    for (spec, place, rest, beside) in [
        (json!({"containers": [of("1"), of("2")], "resources": level}), "", 3000, 0),
        (json!({"containers": [of("1"), of("2")], "resources": level, "overhead": overhead}), "", 4000, 1000),
        (json!({"containers": [of("1")], "initContainers": [of("2"), setup]}), "init 1 setup", 2000, 0),
        (json!({"containers": [of("1"), of("2")]}), "1 c", 1000, 1000),
        (json!({"containers": [of("9")], "initContainers": [setup]}), "0 c", 6000, 0),
        (json!({"containers": [of("3")], "overhead": overhead}), "0 c", 1000, 1000),
        (
            json!({"containers": [of("1")], "initContainers": [setup], "overhead": overhead}),
            "init 0 setup",
            2000,
            1000,
        ),
        (json!({"containers": [of("1")], "initContainers": [sidecar, setup]}), "init 1 setup", 2000, 1000),
        (json!({"containers": [of("1"), of("6")], "initContainers": [sidecar]}), "1 c", 2000, 2000),
    ] {
        assert_eq!(fields(spec.clone()), [(place.to_owned(), rest, beside)], "{spec}");
    }
    for spec in
        [json!({"containers": [of("1")]}), json!({"containers": [of("1")], "initContainers": [setup, setup]})]
    {
        assert_eq!(fields(spec.clone()), [], "{spec}");
    }
}

/// What is said of the field that decides is so for every amount that it may get.
#[test]
fn a_pod_requests_less_by_what_its_field_is_lowered() {
    let mut seed = 7_u64;
    let mut random = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let mut tried = 0;
    for _ in 0..500 {
        let mut container = |is_init: bool| {
            let mut made =
                json!({"name": "c", "resources": {"requests": {"cpu": (1 + random(9)).to_string()}}});
            if is_init && random(2) == 0 {
                made["restartPolicy"] = "Always".into();
            }
            made
        };
        let containers = [container(false), container(false)];
        let init_containers = [container(true), container(true)];
        let n = (1 + random(2) as usize, random(3) as usize);
        let mut spec = json!({"containers": containers[..n.0], "initContainers": init_containers[..n.1]});
        if random(2) == 0 {
            spec["overhead"] = json!({"cpu": "1"});
        }
        let read = |spec: &Value| {
            let object = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec});
            Decoder::default().pod(&object).expect("readable")
        };
        let pod = read(&spec);
        let requested = pod.spec.requests.list.milli_cpu;
        for field in &pod.request_fields {
            for amount in (field.rest.max(field.beside)..requested).step_by(500) {
                let mut lowered = spec.clone();
                let (list, at) = match (&field.init_container, &field.container) {
                    (Some((at, _)), _) => ("initContainers", *at),
                    (_, Some((at, _))) => ("containers", *at),
                    _ => panic!("{spec}"),
                };
                lowered[list][at]["resources"]["requests"]["cpu"] =
                    format!("{}m", amount - field.beside).into();
                assert_eq!(read(&lowered).spec.requests.list.milli_cpu, amount, "{spec}: {field:?}");
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn what_a_pod_says_about_itself() {
    let pod = Decoder::default()
        .pod(&json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"b": "2", "a": "1"},
            "creationTimestamp": "1970-01-01T00:01:00Z", "deletionTimestamp": "1970-01-01T00:02:00Z",
            "annotations": {"kubernetes.io/config.mirror": "x", "other": "y"}, "managedFields": [{}]},
        "spec": {"nodeName": "", "priority": -5, "schedulerName": "s", "schedulingGates": [{"name": "g"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
            "nodeSelector": {"z": "1", "d": "ssd"},
            "tolerations": [{"key": "k", "operator": "Gt", "value": "5"}, {"operator": "Exists"}]},
        "status": {"phase": "Running", "nominatedNodeName": "n",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "r", "message": "m"}]}}))
        .expect("readable");
    assert_eq!((pod.created, pod.priority, pod.node_name.as_ref()), (60, -5, None));
    assert!(pod.deleting && pod.is_static && pod.phase == PodPhase::Running);
    assert_eq!((&*pod.gates, pod.nominated_node.as_deref()), (&[Name::new("g")][..], Some("n")));
    assert_eq!(pod.labels.iter().map(|(k, _)| k.as_str()).collect::<String>(), "ab");
    assert_eq!(&*pod.scheduled.expect("condition").message, "m");
    assert_eq!(pod.spec.affinity.required.as_deref(), Some(&[][..]));
    assert_eq!(pod.spec.affinity.selector[0], ("d".into(), "ssd".into()));
    let operators: Vec<_> = pod.spec.tolerations.iter().map(|t| t.operator).collect();
    assert_eq!(operators, [TolerationOperator::Unknown, TolerationOperator::Exists]);
}

#[test]
fn nodes() {
    let mut object = json!({
        "metadata": {"name": "n", "uid": "u", "creationTimestamp": "1970-01-01T00:00:07Z"},
        "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoExecute"}]},
        "status": {"capacity": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": ["a:1"], "sizeBytes": 5}],
            "allocatable": {"cpu": "1500m", "memory": "1Gi", "pods": "110", "example.com/gpu": "2"}}});
    let node = Decoder::default().node(&object).expect("readable");
    assert!(node.unschedulable && node.ready && node.created == 7);
    assert_eq!((node.allocatable.milli_cpu, node.allocatable.pods), (1500, 110));
    assert_eq!(node.allocatable.scalar(&"example.com/gpu".into()), 2);
    assert_eq!((node.images[0].size, node.taints[0].effect), (5, TaintEffect::NoExecute));
    object["status"]["allocatable"] = json!(null);
    assert_eq!(Decoder::default().node(&object).expect("readable").allocatable.milli_cpu, 8000);
    object["spec"]["taints"][0]["effect"] = json!("Later");
    let want = ("spec.taints[0].effect".into(), "Later".into(), "unknown taint effect".into());
    assert_eq!(fault_of(&object, "Node"), want);
    assert_eq!(fault_of(&json!(3), "Node").1, "3");
}

#[test]
fn recorded_objects_are_readable() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/oracle/schedule.jsonl");
    let text = std::fs::read_to_string(path).expect("recorded cases");
    let (mut pods, mut nodes) = (0, 0);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        for object in case["nodes"].as_array().expect("nodes") {
            Decoder::default().node(object).expect("a readable node");
            nodes += 1;
        }
        for object in case["pods"].as_array().expect("pods") {
            let pod = Decoder::default().pod(object).expect("a readable pod");
            assert_eq!(pod.node_name.as_deref(), object["spec"]["nodeName"].as_str());
            pods += 1;
        }
    }
    assert!(pods > 300 && nodes > 1000, "{pods} pods, {nodes} nodes");
}

#[test]
fn answers_of_a_real_api_server_are_readable() {
    fn check(object: &Value, count: &mut usize) {
        let kind = object["kind"].as_str().unwrap_or_default();
        match kind {
            "PodList" | "NodeList" => {
                for item in object["items"].as_array().into_iter().flatten() {
                    let mut item = item.clone();
                    item["kind"] = json!(kind.trim_end_matches("List"));
                    check(&item, count);
                }
                return;
            }
            _ if !object["metadata"]["uid"].is_string() => return,
            "Pod" => {
                let pod = Decoder::default().pod(object).expect("a readable pod");
                assert!(pod.created > 1_700_000_000 && !pod.uid.is_empty());
            }
            "Node" => {
                assert!(Decoder::default().node(object).expect("a readable node").allocatable.milli_cpu > 0)
            }
            _ => {
                let Some(kind) = ObjectKind::ALL.into_iter().find(|k| k.as_str() == kind) else { return };
                let read = Decoder::default().object(kind, object).expect("a readable object");
                assert_eq!(Some(&*read.key().1), object["metadata"]["name"].as_str());
            }
        }
        *count += 1;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/kube-apiserver-1.36.jsonl");
    let text = std::fs::read_to_string(path).expect("recorded answers");
    let mut count = 0;
    for line in text.lines() {
        let response = &serde_json::from_str::<Value>(line).expect("a record")["response"];
        check(&response["body"], &mut count);
        for event in response["lines"].as_array().into_iter().flatten() {
            check(&event["object"], &mut count);
        }
    }
    assert!(count > 35, "{count}");
}
