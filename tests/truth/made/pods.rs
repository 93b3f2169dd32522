//! Pods without a gang.

use serde_json::{Value, json};

use crate::common::cluster::SCHEDULER;
use crate::made::{Theme, owned_by};
use crate::objects::Objects;
use crate::random::Rng;

/// Applications, one of which no pod has.
const APPS: [&str; 4] = ["web", "db", "cache", "batch"];
const TOPOLOGIES: [&str; 4] =
    ["kubernetes.io/hostname", "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"];

/// Adds pods that were on their nodes before the scheduler started.
pub(super) fn add_placed(rng: &mut Rng, objects: &mut Objects, theme: &Theme) {
    let nodes: Vec<String> = objects.nodes.keys().cloned().collect();
    for i in 0..rng.between(0, 8) {
        let mut json = pod(rng, &format!("old-{i}"), theme.rare / 2);
        let spec = json["spec"].as_object_mut().expect("a spec");
        spec.remove("schedulingGates");
        spec.remove("nodeSelector");
        spec.insert("priority".into(), rng.pick(&theme.priorities).into());
        spec.insert("nodeName".into(), rng.pick(&nodes).into());
        json["spec"]["containers"][0]["resources"]["requests"]["cpu"] =
            rng.pick(&["100m", "300m", "700m"]).into();
        json["status"] = json!({"phase": "Running"});
        objects.put_pod(json);
    }
}

/// Adds pods without a node, some of which use claims.
pub(super) fn add_pending(rng: &mut Rng, objects: &mut Objects, theme: &Theme, claims: &[(String, String)]) {
    for i in 0..theme.pods {
        let mut json = pod(rng, &format!("p{i:02}"), theme.rare);
        json["spec"]["priority"] = rng.pick(&theme.priorities).into();
        if !claims.is_empty() && rng.chance(30) {
            let (namespace, claim) = rng.pick(claims);
            json["metadata"]["namespace"] = namespace.into();
            json["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
        }
        objects.put_pod(json);
    }
}

/// Makes a pod that has each rarer feature in this many of a hundred cases.
pub(crate) fn pod(rng: &mut Rng, name: &str, rare: usize) -> Value {
    let app = rng.pick(&APPS[..]);
    let mut json = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": if rng.chance(88) { "default" } else { "team" }, "labels": {"app": app},
        },
        "spec": {
            "schedulerName": SCHEDULER, "priority": 0, "containers": [container(rng)],
        },
        "status": {},
    });
    match rng.below(10) {
        0..4 => json["metadata"]["ownerReferences"] = owned_by("ReplicaSet", &format!("{app}-5d4f")),
        4 => json["metadata"]["ownerReferences"] = owned_by("Job", app),
        _ => {}
    }
    if rng.chance(15) {
        json["spec"]["preemptionPolicy"] = "Never".into();
    }
    choose_nodes(rng, &mut json, rare);
    tolerate(rng, &mut json, rare);
    relate(rng, &mut json, app, rare);
    if rng.chance(rare) {
        let port = rng.pick(&[80, 443, 9000]);
        json["spec"]["containers"][0]["ports"] = json!([{"containerPort": port, "hostPort": port}]);
    }
    if rng.chance(rare / 3) {
        json["spec"]["schedulingGates"] = json!([{"name": "example.com/approval"}]);
    }
    json
}

fn container(rng: &mut Rng) -> Value {
    let mut requests = json!({
        "cpu": rng.pick(&["100m", "250m", "500m", "1", "1500m", "2", "3", "7", "12"]),
        "memory": rng.pick(&["64Mi", "256Mi", "512Mi", "1Gi", "3Gi", "9Gi"]),
    });
    if rng.chance(10) {
        requests["nvidia.com/gpu"] = rng.pick(&["1", "2"]).into();
    }
    if rng.chance(5) {
        requests = json!({});
    }
    json!({"name": "c", "image": "i", "resources": {"requests": requests}})
}

fn choose_nodes(rng: &mut Rng, json: &mut Value, rare: usize) {
    if rng.chance(rare + 4) {
        let (key, value) = rng.pick(&[
            ("disktype", "ssd"),
            ("disktype", "hdd"),
            ("disktype", "sdd"),
            ("pool", "web"),
            ("pool", "bacth"),
            ("topology.kubernetes.io/zone", "a"),
            ("topology.kubernetes.io/zone", "d"),
            ("kubernetes.io/hostname", "n2"),
        ]);
        json["spec"]["nodeSelector"] = json!({key: value});
    }
    if rng.chance(rare) {
        let terms: Vec<Value> = (0..rng.between(1, 2)).map(|_| node_term(rng)).collect();
        json["spec"]["affinity"]["nodeAffinity"] =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
    }
}

fn node_term(rng: &mut Rng) -> Value {
    let expressions = [
        json!({"key": "disktype", "operator": "In", "values": ["ssd", "nvme"]}),
        json!({"key": "disktype", "operator": "NotIn", "values": ["hdd"]}),
        json!({"key": "pool", "operator": "Exists"}),
        json!({"key": "pool", "operator": "DoesNotExist"}),
        json!({"key": "generation", "operator": "Gt", "values": ["4"]}),
        json!({"key": "generation", "operator": "Lt", "values": ["4"]}),
        json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b", "c"]}),
        json!({"key": "topologe.kubernetes.io/zone", "operator": "In", "values": ["a"]}),
    ];
    let n = rng.between(1, 2);
    json!({"matchExpressions": (0..n).map(|_| rng.pick(&expressions)).collect::<Vec<_>>()})
}

fn tolerate(rng: &mut Rng, json: &mut Value, rare: usize) {
    if rng.chance(rare + 6) {
        json["spec"]["tolerations"] = json!([rng.pick(&[
            json!({"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}),
            json!({"key": "dedicated", "operator": "Equal", "value": "cpu", "effect": "NoSchedule"}),
            json!({"key": "team", "operator": "Exists"}),
            json!({"key": "maintenance", "operator": "Exists", "effect": "NoSchedule"}),
            json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}),
        ])]);
    }
}

fn relate(rng: &mut Rng, json: &mut Value, app: &str, rare: usize) {
    if rng.chance(rare) {
        json["spec"]["affinity"]["podAffinity"] =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": [pod_term(rng, app)]});
    }
    if rng.chance(rare) {
        let terms: Vec<Value> = (0..rng.between(1, 2)).map(|_| pod_term(rng, app)).collect();
        json["spec"]["affinity"]["podAntiAffinity"] =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
    }
    if rng.chance(rare) {
        let constraints: Vec<Value> = (0..rng.between(1, 2)).map(|at| spread(rng, app, at)).collect();
        json["spec"]["topologySpreadConstraints"] = constraints.into();
    }
}

fn pod_term(rng: &mut Rng, own: &str) -> Value {
    let app = rng.pick(&[own, own, "cache", "db", "web", "catche"]);
    let mut term =
        json!({"topologyKey": rng.pick(&TOPOLOGIES), "labelSelector": {"matchLabels": {"app": app}}});
    if rng.chance(20) {
        term["namespaces"] = json!(["default", "team"]);
    }
    term
}

fn spread(rng: &mut Rng, app: &str, at: usize) -> Value {
    // Two constraints of one pod must not have one key.
    let keys = if at == 0 { &TOPOLOGIES[..2] } else { &TOPOLOGIES[2..] };
    let mut constraint = json!({
        "topologyKey": rng.pick(keys), "maxSkew": rng.between(1, 2), "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    });
    if rng.chance(15) {
        constraint["minDomains"] = 3.into();
    }
    if rng.chance(15) {
        constraint["nodeTaintsPolicy"] = "Honor".into();
    }
    if rng.chance(15) {
        constraint["whenUnsatisfiable"] = "ScheduleAnyway".into();
    }
    constraint
}
