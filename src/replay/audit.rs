//! Checks from API objects that no node holds more than its allocatable: the final check of a replay.
//!
//! The audit is independent on purpose. It reads plain JSON, has its own quantities ([`super::quantity`]) and its own
//! sum over containers, and shares no code with the scheduler that it checks.

use std::collections::BTreeMap;

use serde_json::Value;

use super::quantity::{ONE, parse};
use super::{Allocated, GPU, GPU_CORE};

/// The checked resources.
pub(super) const CHECKED: [&str; 5] = ["cpu", "memory", GPU_CORE, GPU, "pods"];

/// A node that holds more than its allocatable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overcommitted {
    /// Name of the node.
    pub node: String,
    /// Name of the resource.
    pub resource: String,
    /// Allocatable amount of the node, in billionths.
    pub allocatable: i128,
    /// Amount requested by the node's pods, in billionths.
    pub requested: i128,
}

/// Amounts of a resource over all nodes, in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Amount requested by pods on nodes.
    pub requested: i128,
    /// Allocatable amount of the nodes.
    pub allocatable: i128,
}

impl Total {
    /// Converts both amounts to units of `1/per_one`. Rounds the requested amount up and the allocatable amount down.
    pub fn in_parts(self, per_one: i128) -> Allocated {
        let clamp = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
        let part = ONE / per_one;
        Allocated {
            allocated: clamp(-(-self.requested).div_euclid(part)),
            capacity: clamp(self.allocatable.div_euclid(part)),
        }
    }
}

/// The findings of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditResult {
    /// Overcommitted nodes, ordered by node and resource.
    pub overcommitted: Vec<Overcommitted>,
    /// Descriptions of pods whose node does not exist and of amounts that cannot be parsed.
    pub unclear: Vec<String>,
    /// Total amounts by resource.
    pub totals: BTreeMap<String, Total>,
}

/// Amounts by resource, in billionths.
pub(super) type Amounts = BTreeMap<&'static str, i128>;

/// Checks that the pods on each node request no more than the node's allocatable.
pub fn audit(nodes: &[Value], pods: &[Value]) -> AuditResult {
    let mut result = AuditResult::default();
    let mut books: BTreeMap<&str, (Amounts, Amounts)> = BTreeMap::new();
    for node in nodes {
        let name = text(node, "/metadata/name");
        let allocatable = amounts(node.pointer("/status/allocatable"), name, &mut result.unclear);
        books.insert(name, (allocatable, Amounts::new()));
    }
    for pod in pods {
        let node = text(pod, "/spec/nodeName");
        if node.is_empty() || is_finished(pod) {
            continue;
        }
        if let Some((_, requested)) = books.get_mut(node) {
            add(requested, &requests(pod, &mut result.unclear));
        } else {
            result.unclear.push(format!("{} is on {node}, which does not exist", key(pod)));
        }
    }
    for (node, (allocatable, requested)) in &books {
        for resource in CHECKED {
            let amount = |of: &Amounts| of.get(resource).copied().unwrap_or(0);
            let (allocatable, requested) = (amount(allocatable), amount(requested));
            let total = result.totals.entry(resource.to_owned()).or_default();
            total.allocatable += allocatable;
            total.requested += requested;
            if requested > allocatable {
                let (node, resource) = ((*node).to_owned(), resource.to_owned());
                result.overcommitted.push(Overcommitted { node, resource, allocatable, requested });
            }
        }
    }
    result
}

/// Returns a string of an object, empty when absent.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// Returns whether a pod has ended, so that it holds nothing.
pub(super) fn is_finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn key(pod: &Value) -> String {
    format!("{}/{}", text(pod, "/metadata/namespace"), text(pod, "/metadata/name"))
}

fn add(sum: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        *sum.entry(resource).or_default() += amount;
    }
}

fn raise(to: &mut Amounts, at_least: &Amounts) {
    for (resource, amount) in at_least {
        let have = to.entry(resource).or_default();
        *have = (*have).max(*amount);
    }
}

/// Parses the checked amounts of a resource list. Adds amounts that cannot be parsed to `unclear`.
pub(super) fn amounts(list: Option<&Value>, owner: &str, unclear: &mut Vec<String>) -> Amounts {
    let mut read = Amounts::new();
    for resource in CHECKED {
        let Some(value) = list.and_then(|list| list.get(resource)) else { continue };
        let number = value.as_str().map(str::to_owned).unwrap_or_else(|| value.to_string());
        match parse(&number) {
            Some(amount) => {
                read.insert(resource, amount);
            }
            None => unclear.push(format!("{owner}: {resource} is {value}, which is no quantity")),
        }
    }
    read
}

/// Returns what a pod holds: one place among the node's pods, and the sum of its containers and sidecars or, if
/// greater, the peak of its init containers, plus the overhead.
pub(super) fn requests(pod: &Value, unclear: &mut Vec<String>) -> Amounts {
    let owner = key(pod);
    let list = |field: &str| pod["spec"][field].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut of = |container: &Value| {
        let resources = &container["resources"];
        let mut wanted = amounts(resources.get("limits"), &owner, unclear);
        wanted.extend(amounts(resources.get("requests"), &owner, unclear));
        wanted
    };
    let mut sidecars = Amounts::new();
    let mut peak = Amounts::new();
    for container in list("initContainers") {
        let own = of(container);
        if text(container, "/restartPolicy") == "Always" {
            add(&mut sidecars, &own);
            raise(&mut peak, &sidecars);
        } else {
            let mut moment = sidecars.clone();
            add(&mut moment, &own);
            raise(&mut peak, &moment);
        }
    }
    let mut running = sidecars;
    for container in list("containers") {
        add(&mut running, &of(container));
    }
    raise(&mut running, &peak);
    add(&mut running, &amounts(pod.pointer("/spec/overhead"), &owner, unclear));
    running.insert("pods", ONE);
    running
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str) -> Value {
        let allocatable = json!({ "cpu": "2", "memory": "4Gi", "pods": "2", GPU_CORE: "100" });
        json!({ "metadata": { "name": name }, "status": { "allocatable": allocatable } })
    }

    fn pod(node: &str, requests: Value) -> Value {
        json!({
            "metadata": { "namespace": "default", "name": "p" },
            "spec": { "nodeName": node, "containers": [{ "resources": { "requests": requests } }] },
        })
    }

    fn over(result: &AuditResult) -> Vec<&str> {
        result.overcommitted.iter().map(|found| found.resource.as_str()).collect()
    }

    fn is_clean(result: &AuditResult) -> bool {
        result.overcommitted.is_empty() && result.unclear.is_empty()
    }

    #[test]
    fn a_full_node_is_clean_and_one_more_thousandth_is_not() {
        let full =
            vec![pod("n", json!({ "cpu": "1500m", "memory": "4Gi" })), pod("n", json!({ "cpu": "0.5" }))];
        let result = audit(&[node("n"), node("m")], &full);
        assert!(is_clean(&result), "{result:?}");
        assert_eq!(result.totals["cpu"].in_parts(1000), Allocated { allocated: 2000, capacity: 4000 });
        assert_eq!(result.totals["pods"].requested, 2 * ONE);
        let more = vec![
            pod("n", json!({ "cpu": "1501m", "memory": "4194305Ki" })),
            pod("n", json!({ "cpu": "0.5" })),
        ];
        assert_eq!(over(&audit(&[node("n")], &more)), ["cpu", "memory"]);
    }

    #[test]
    fn pods_and_gpus_count() {
        let shares = vec![pod("n", json!({ GPU_CORE: "46" })), pod("n", json!({ GPU_CORE: "55" }))];
        assert_eq!(over(&audit(&[node("n")], &shares)), [GPU_CORE]);
        let many = vec![pod("n", json!({})), pod("n", json!({})), pod("n", json!({}))];
        assert_eq!(over(&audit(&[node("n")], &many)), ["pods"]);
    }

    #[test]
    fn what_holds_no_room_is_left_out() {
        let mut done = pod("n", json!({ "cpu": "9" }));
        done["status"]["phase"] = "Succeeded".into();
        let result = audit(&[node("n")], &[done, pod("", json!({ "cpu": "9" }))]);
        assert!(is_clean(&result));
        assert_eq!((result.totals["cpu"].requested, result.totals["pods"].requested), (0, 0));
    }

    #[test]
    fn what_cannot_be_judged_is_said() {
        let pods = [pod("gone", json!({})), pod("n", json!({ "cpu": "many" }))];
        let result = audit(&[node("n")], &pods);
        assert_eq!(result.unclear[0], "default/p is on gone, which does not exist");
        assert_eq!(result.unclear[1], "default/p: cpu is \"many\", which is no quantity");
    }

    #[test]
    fn init_containers_sidecars_and_overhead_count() {
        let cpu = |amount: &str| json!({ "resources": { "requests": { "cpu": amount } } });
        let mut sidecar = cpu("300m");
        sidecar["restartPolicy"] = "Always".into();
        let mut big_init = pod("n", json!({ "cpu": "100m" }));
        big_init["spec"]["initContainers"] = json!([sidecar, cpu("1600m")]);
        big_init["spec"]["overhead"] = json!({ "cpu": "100m" });
        let result = audit(&[node("n")], &[big_init]);
        assert_eq!(result.totals["cpu"].in_parts(1000).allocated, 2000);
        assert!(is_clean(&result));
    }
}
