//! Hostile pods: manifests that are valid but rare.

use serde_json::{Value, json};

use super::nodes;
use super::rng::Rng;
use super::state::Soak;

/// Annotation with the run time of a pod, read by the sandbox's kubelet.
const RUN_SECONDS: &str = "sandbox.pellucid.dev/run-seconds";
/// Control characters, direction marks, and characters that JSON escapes.
const ODD: &str = "\u{202e}\u{200f}ereh\u{202c}\u{7}\u{1b}[2J\u{0}\r\n\t\u{feff}\u{2028}\"\\</script>|\u{85}";

/// Returns a pod with small requests that any node may run.
pub(crate) fn small(name: &str) -> Value {
    let requests = json!({"cpu": "50m", "memory": "32Mi"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "hostile"}},
        "spec": {
            "schedulerName": "pellucid", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]
        },
    })
}

/// Returns a small pod with another CPU request and, unless empty, a priority class.
pub(crate) fn requesting(name: &str, milli_cpu: usize, class: &str) -> Value {
    let mut pod = small(name);
    set_request(&mut pod, "cpu", &format!("{milli_cpu}m"));
    if !class.is_empty() {
        pod["spec"]["priorityClassName"] = class.into();
    }
    pod
}

/// Returns a pod of low priority, as a victim for preemption.
pub(crate) fn victim(rng: &mut Rng, name: &str) -> Value {
    let mut pod = requesting(name, 500 + 100 * rng.below(15), "low");
    pod["metadata"]["labels"]["role"] = format!("victim-{}", rng.below(4)).into();
    pod
}

fn set_request(pod: &mut Value, resource: &str, amount: &str) {
    pod["spec"]["containers"][0]["resources"]["requests"][resource] = amount.into();
}

/// Returns the name of a random pod, or an empty name if there is none.
pub(crate) fn random_name(soak: &Soak, rng: &mut Rng) -> String {
    let names = soak.sandbox.names("pods");
    rng.pick(&names).map(|(_, name)| name.clone()).unwrap_or_default()
}

/// Returns a random change of a pod, as a merge patch.
pub(crate) fn change(rng: &mut Rng) -> Value {
    match rng.below(4) {
        0 => json!({"metadata": {"labels": {"app": format!("changed-{}", rng.below(1_000))}}}),
        1 => json!({"metadata": {"annotations": {"odd.example/note": ODD.repeat(rng.below(100))}}}),
        2 => json!({"spec": {"schedulingGates": null}}),
        _ => json!({"status": {"message": ODD, "conditions": [
            {"type": "Odd", "status": "True", "reason": "Odd", "message": ODD.repeat(20)}]}}),
    }
}

/// Returns a pod that is unusual in one of many ways.
pub(crate) fn odd(rng: &mut Rng, number: usize) -> Value {
    let mut pod = small(&format!("odd-{number}"));
    if rng.chance(50) {
        let time = format!("{}.{}", rng.below(20), rng.below(10));
        pod["metadata"]["annotations"][RUN_SECONDS] = time.into();
    }
    match rng.below(22) {
        0 => {
            for n in 0..300 + rng.below(300) {
                pod["spec"]["nodeSelector"][format!("selects.example/key-{n}-{}", rng.below(100_000))] = "x".into();
            }
        }
        1 => pod["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": (0..100).map(|n| expressions(rng, n)).collect::<Vec<_>>()}}}),
        2 => pod["spec"]["affinity"] = pods_near(rng, "podAffinity", "nobody"),
        3 => pod["spec"]["affinity"] = pods_near(rng, "podAntiAffinity", "hostile"),
        4 => pod["spec"]["topologySpreadConstraints"] = (0..8).map(|_| spread(rng)).collect(),
        5 => pod["spec"]["containers"][0]["env"] = json!([{"name": "E", "value": "x".repeat(1_000_000)}]),
        6 => pod["metadata"]["annotations"] = json!({"k": ODD.repeat(262_000 / ODD.len())}),
        7 => pod["metadata"]["annotations"] = json!({"k": "x".repeat(262_143 + rng.below(2))}),
        8 => {
            for _ in 0..1 + rng.below(30) {
                set_request(&mut pod, &nodes::unheard_of(rng), "1");
            }
        }
        9 => {
            let amounts =
                ["9223372036854775807", "9223372036854775808", "8Ei", "1e18", "1n", "0", "1e-9", "-1", "9.9E", "1E400"];
            for resource in ["cpu", "memory", "ephemeral-storage", "example.com/gpu"] {
                set_request(&mut pod, resource, rng.pick(&amounts).copied().unwrap_or_default());
            }
        }
        10 => pod["spec"]["schedulingGates"] =
            (0..1 + rng.below(50)).map(|n| json!({"name": format!("gate.example/{n}")})).collect(),
        11 => pod["metadata"]["finalizers"] = json!(["soak.example/held"]),
        12 => pod["metadata"]["name"] = long_name(number).into(),
        13 => {
            for n in 0..200 {
                pod["metadata"]["labels"][format!("labels.example/{n}-{}", rng.below(100_000))] = "x".repeat(63).into();
            }
        }
        14 => pod["spec"]["tolerations"] =
            (0..300).map(|n| json!({"key": format!("taint.example/{n}"), "operator": "Exists"})).collect(),
        15 => pod["spec"]["containers"] = (0..200).map(|n| container(rng, n)).collect(),
        16 => pod["spec"]["nodeName"] = rng.pick(&["nowhere", "node-01", "node-02"]).copied().into(),
        17 => pod["spec"]["volumes"] = (0..50)
            .map(|n| json!({"name": format!("v{n}"), "persistentVolumeClaim": {"claimName": format!("missing-{n}")}}))
            .collect(),
        18 => pod["spec"]["containers"][0]["ports"] =
            (0..100).map(|n| json!({"containerPort": 1 + n, "hostPort": 1 + rng.below(65_535)})).collect(),
        19 => {
            pod["spec"]["overhead"] = json!({"cpu": "9223372036854775807", "memory": "8Ei"});
            pod["spec"]["priorityClassName"] = "high".into();
        }
        20 => pod["spec"]["schedulerName"] = format!("somebody-{}", rng.below(1_000)).into(),
        _ => pod = requesting(&format!("odd-{number}"), 4_000 + 1_000 * rng.below(12), "middle"),
    }
    pod
}

/// Returns a name of up to 253 characters.
fn long_name(number: usize) -> String {
    let name =
        format!("{number}.{}", ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(63)].join("."));
    name.chars().take(253).collect::<String>().trim_end_matches('.').to_owned()
}

fn expressions(rng: &mut Rng, n: usize) -> Value {
    let operator =
        rng.pick(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]).copied().unwrap_or_default();
    let values: Vec<String> = match operator {
        "Exists" | "DoesNotExist" => Vec::new(),
        "Gt" | "Lt" => vec![rng.below(100).to_string()],
        _ => (0..20).map(|n| format!("v{n}")).collect(),
    };
    json!({"matchExpressions": [{"key": format!("expr.example/{n}-{}", rng.below(100)), "operator": operator, "values": values}]})
}

fn pods_near(rng: &mut Rng, how: &str, app: &str) -> Value {
    let mut term = |n: usize| {
        let key = rng.pick(&[
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
            "flips.example/1",
            "no.example/key",
        ]);
        let labels = if n == 0 {
            json!({"app": app})
        } else {
            json!({format!("near.example/{}", rng.below(100)): "x"})
        };
        json!({"topologyKey": key.copied(), "labelSelector": {"matchLabels": labels}, "namespaceSelector": {}})
    };
    let terms: Vec<Value> = (0..10).map(&mut term).collect();
    json!({how: {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
}

fn spread(rng: &mut Rng) -> Value {
    let key = format!("spread.example/{}", rng.below(100_000));
    let keys = ["topology.kubernetes.io/zone", "kubernetes.io/hostname", &key];
    json!({
        "maxSkew": 1 + rng.below(3), "topologyKey": rng.pick(&keys), "labelSelector": {"matchLabels": {"app": "hostile"}},
        "whenUnsatisfiable": rng.pick(&["DoNotSchedule", "ScheduleAnyway"]),
    })
}

fn container(rng: &mut Rng, n: usize) -> Value {
    let requests = json!({"cpu": format!("{}m", rng.below(20)), "memory": "1Mi"});
    json!({"name": format!("c{n}"), "image": format!("image-{}", rng.below(1_000)), "resources": {"requests": requests}})
}
