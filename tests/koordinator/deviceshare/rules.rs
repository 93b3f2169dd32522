//! What Koordinator decides by rules that we do not follow: each is computed, and exactly its answer is accepted.
//!
//! The rules are those of the table "Decided on purpose" of `src/plugins/device_share/README.md`.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::model::manifest::Field;
use pellucid::model::quantity;
use pellucid::model::selector::{LabelSelector, Labels};
use serde_json::{Value, json};

use super::{Amounts, amounts, array, text};

const HINT: &str = "scheduling.koordinator.sh/device-allocate-hint";
const JOINT: &str = "scheduling.koordinator.sh/device-joint-allocate";
const CORE: &str = "koordinator.sh/gpu-core";
const MEMORY: &str = "koordinator.sh/gpu-memory";
const RATIO: &str = "koordinator.sh/gpu-memory-ratio";

/// Resources by which types of devices are requested.
fn kind_of(resource: &str) -> Option<&'static str> {
    let (vendor, name) = resource.split_once('/')?;
    match name {
        "rdma" => Some("rdma"),
        "fpga" => Some("fpga"),
        _ if name.starts_with("gpu") && vendor != "example.com" => Some("gpu"),
        _ => None,
    }
}

fn requests(pod: &Value) -> impl Iterator<Item = (String, i64)> + '_ {
    let containers = array(&pod["spec"]["containers"]).iter();
    let all = containers.flat_map(|c| c["resources"]["requests"].as_object().into_iter().flatten());
    all.map(|(name, amount)| {
        (name.replace("kubernetes.io/", "koordinator.sh/"), quantity::units(text(amount)).unwrap_or(0))
    })
}

/// Returns the types of devices that a pod requests.
pub(super) fn types(pod: &Value) -> BTreeSet<&'static str> {
    requests(pod).filter(|(_, amount)| *amount > 0).filter_map(|(name, _)| kind_of(&name)).collect()
}

fn annotation(pod: &Value, key: &str) -> Value {
    serde_json::from_str(text(&pod["metadata"]["annotations"][key])).unwrap_or_default()
}

/// Koordinator lets pods share what they say they do not share: returns the pod without a word of it. Not where it makes the
/// pod request whole devices, which Koordinator heeds.
pub(super) fn sharing(pod: &Value) -> Option<Value> {
    let mut hints = annotation(pod, HINT);
    let mut changed = false;
    for (_, hint) in hints.as_object_mut()? {
        let takes_whole =
            hint["allocateStrategy"] == "RequestsAsCount" && hint["exclusivePolicy"] == "DeviceLevel";
        if let Some(hint) = hint.as_object_mut().filter(|_| !takes_whole) {
            changed |= hint.remove("exclusivePolicy").is_some();
        }
    }
    let mut pod = pod.clone();
    pod["metadata"]["annotations"][HINT] = json!(hints.to_string());
    changed.then_some(pod)
}

/// Koordinator looks at the types of a pod in any order: returns the pod as if it requested one alone, and that type.
pub(super) fn of_one_type(pod: &Value) -> Vec<(&'static str, Value)> {
    let all = types(pod);
    let only = |kind: &'static str| {
        let mut pod = pod.clone();
        for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
            for list in ["requests", "limits"] {
                if let Some(list) = container["resources"][list].as_object_mut() {
                    list.retain(|name, _| {
                        kind_of(&name.replace("kubernetes.io/", "koordinator.sh/"))
                            .is_none_or(|of| of == kind)
                    });
                }
            }
        }
        if let Some(annotations) = pod["metadata"]["annotations"].as_object_mut() {
            annotations.remove(JOINT);
        }
        (kind, pod)
    };
    if all.len() < 2 { Vec::new() } else { all.iter().copied().map(only).collect() }
}

/// Returns the types that a pod wants beside each other: these Koordinator allocates in their order.
pub(super) fn joined(pod: &Value) -> Vec<String> {
    let (requested, hints) = (types(pod), annotation(pod, HINT));
    let joint = annotation(pod, JOINT);
    let all = array(&joint["deviceTypes"]).iter().map(text);
    let all =
        all.filter(|kind| requested.contains(kind) && hints[*kind]["allocateStrategy"] != "ApplyForAll");
    all.map(str::to_owned).collect()
}

/// Returns how often each reason stands in a message.
pub(super) fn reasons(message: &str) -> BTreeMap<String, i64> {
    let reasons = message.split_once(": ").map_or(message, |(_, reasons)| reasons).trim_end_matches('.');
    let counted = |part: &str| match part.split_once(' ').map(|(n, rest)| (n.parse(), rest)) {
        Some((Ok(n), rest)) => (rest.to_owned(), n),
        _ => (part.to_owned(), 1),
    };
    reasons.split(", ").map(counted).collect()
}

/// Returns whether a message is another with some of the reasons exchanged: each node's for one of its others.
pub(super) fn exchanges(ours: &str, theirs: &str, nodes: &[(String, Vec<String>)]) -> bool {
    let theirs = reasons(theirs);
    let mut all = vec![reasons(ours)];
    for (own, others) in nodes {
        let exchanged: Vec<BTreeMap<String, i64>> = all
            .iter()
            .flat_map(|known| {
                others.iter().map(|other| {
                    let mut made = known.clone();
                    *made.entry(own.clone()).or_default() -= 1;
                    *made.entry(other.clone()).or_default() += 1;
                    made.retain(|_, n| *n != 0);
                    made
                })
            })
            .collect();
        all.extend(exchanged);
    }
    all.contains(&theirs)
}

/// Koordinator takes an entry of the partition table whatever is left of the cards, and so gives more computing power than a
/// card has: returns a pod that requests no more than that, to which it gives the same cards.
pub(super) fn fitting(pod: &Value) -> Option<Value> {
    let all: BTreeMap<String, i64> = requests(pod).collect();
    let (core, ratio) = (*all.get(CORE)?, *all.get(RATIO)?);
    if core <= ratio || ratio < 100 || all.contains_key("koordinator.sh/gpu.shared") {
        return None;
    }
    let mut pod = pod.clone();
    let mut left = ratio;
    for container in pod["spec"]["containers"].as_array_mut()? {
        for (name, amount) in container["resources"]["requests"].as_object_mut().into_iter().flatten() {
            if name.ends_with("/gpu-core") {
                *amount = json!(std::mem::take(&mut left).to_string());
            }
        }
    }
    Some(pod)
}

/// Koordinator counts one card for the computing power of several beside memory in bytes, and no card has as much: returns
/// whether a pod requests that.
pub(super) fn wants_several_of_one(pod: &Value) -> bool {
    let all: BTreeMap<String, i64> = requests(pod).collect();
    let core = all.get(CORE).copied().unwrap_or(0);
    core > 100 && all.contains_key(MEMORY) && !all.contains_key("koordinator.sh/gpu.shared")
}

/// Returns whether a message says of each of some nodes what is expected, and of as many others something else.
pub(super) fn says_of(message: &str, expected: &[&str], others: i64) -> bool {
    let mut said = reasons(message);
    for reason in expected {
        *said.entry((*reason).to_owned()).or_default() -= 1;
    }
    said.values().all(|n| *n >= 0) && said.values().sum::<i64>() == others
}

/// A node as Koordinator sees it.
pub(super) struct NodeSeen<'a> {
    pub(super) device: &'a Value,
    /// The body of `nodeDeviceSummaries`.
    pub(super) summary: &'a Value,
    /// The arguments of the plugin.
    pub(super) args: &'a Value,
}

impl NodeSeen<'_> {
    fn of_gpu(&self, field: &str, minor: i64) -> Amounts {
        amounts(&self.summary[field]["gpu"][minor.to_string()])
    }

    fn gpus(&self) -> impl Iterator<Item = &Value> {
        array(&self.device["spec"]["devices"]).iter().filter(|device| device["type"] == "gpu")
    }

    /// Returns what Koordinator says of a node without a GPU that fits.
    pub(super) fn lacks_gpus(&self, pod: &Value) -> &'static str {
        let has_scope = !text(&annotation(pod, HINT)["gpu"]["requiredTopologyScope"]).is_empty();
        let has_places = self.gpus().next().is_some() && self.gpus().all(|gpu| !gpu["topology"].is_null());
        match (has_places, has_scope) {
            (true, true) => "Insufficient Topology Scoped GPU Devices",
            (true, false) => "Insufficient GPU Devices",
            (false, true) => "node(s) missing GPU Device Topology Tree",
            (false, false) => "Insufficient gpu devices",
        }
    }

    /// Koordinator gives GPUs that come after others one for each of the others' PCIe switches, where it searches no scopes:
    /// returns whether it did.
    pub(super) fn gives_one_per_switch(
        &self,
        pod: &Value,
        ours: usize,
        theirs: usize,
        others: &[i64],
    ) -> bool {
        let joint = joined(pod);
        let Some(first) = joint.first().filter(|first| *first != "gpu" && joint.iter().any(|k| k == "gpu"))
        else {
            return false;
        };
        let devices = array(&self.device["spec"]["devices"]).iter();
        let of_first = devices.filter(|device| device["type"] == **first);
        let chosen = of_first.filter(|device| others.contains(&device["minor"].as_i64().unwrap_or(0)));
        let switches: BTreeSet<&str> = chosen.filter_map(|d| d["topology"]["pcieID"].as_str()).collect();
        theirs > ours && theirs <= switches.len()
    }

    /// Koordinator scores a shared GPU with what is free of it in place of all, and all in place of what is free, so that a
    /// card in use is worth nothing (or everything) and the first one of the scopes in use is taken. Returns that card.
    pub(super) fn card_by_swapped_score(&self, pod: &Value, given: &Amounts) -> Option<i64> {
        let hint = annotation(pod, HINT);
        let selector = Field::root(&hint["gpu"]["selector"]).selector().ok()?;
        let names: BTreeSet<String> = requests(pod).map(|(name, _)| name).collect();
        let is_named =
            |name: &str| names.contains(name) || (names.contains("koordinator.sh/gpu") && name != MEMORY);
        let each: Amounts =
            given.iter().filter(|(name, _)| is_named(name)).map(|(n, a)| (n.clone(), *a)).collect();
        let is_left = |gpu: &Value| gpu["health"] == true && selects(selector.as_ref(), gpu);
        let minor = |gpu: &Value| gpu["minor"].as_i64().unwrap_or(0);
        let is_used = |gpu: &&Value| {
            let is_counted = is_left(gpu) || !selects(selector.as_ref(), gpu);
            is_counted && !self.of_gpu("deviceUsedDetail", minor(gpu)).is_empty()
        };
        let place = |gpu: &Value| {
            let topology = &gpu["topology"];
            (topology["nodeID"].as_i64().unwrap_or(-1), text(&topology["pcieID"]).to_owned())
        };
        let used: Vec<(i64, String)> = self.gpus().filter(is_used).map(place).collect();
        let rank = |gpu: &Value| {
            let own = place(gpu);
            let scopes = used.contains(&own) as i64 + used.iter().any(|(numa, _)| *numa == own.0) as i64;
            (-scopes, -self.swapped_score(minor(gpu), &each), own, minor(gpu))
        };
        let fits = |gpu: &&Value| {
            let free = self.of_gpu("deviceFreeDetail", minor(gpu));
            is_left(gpu) && each.iter().all(|(name, n)| *n <= free.get(name).copied().unwrap_or(0))
        };
        let has_places = self.gpus().all(|gpu| !gpu["topology"].is_null());
        let best = self.gpus().filter(fits).map(rank).min()?;
        has_places.then_some(best.3)
    }

    fn swapped_score(&self, minor: i64, each: &Amounts) -> i64 {
        let (total, free) = (self.of_gpu("deviceTotalDetail", minor), self.of_gpu("deviceFreeDetail", minor));
        let strategy = &self.args["scoringStrategy"];
        let mut weights: Vec<(String, i64)> = array(&strategy["resources"])
            .iter()
            .map(|r| (text(&r["name"]).to_owned(), r["weight"].as_i64().unwrap_or(1)))
            .collect();
        if weights.is_empty() {
            weights = [RATIO, MEMORY].map(|name| (name.to_owned(), 1)).into();
        }
        let (mut sum, mut all) = (0, 0);
        for (name, weight) in weights {
            let of = |amounts: &Amounts| amounts.get(&name).copied().unwrap_or(0);
            let (left, whole) = (of(&free), of(&total));
            if left == 0 {
                continue;
            }
            let taken = if left >= whole { left - whole + of(each) } else { left };
            let part = match text(&strategy["type"]) {
                "MostAllocated" => taken.min(left),
                _ => (left - taken).max(0),
            };
            sum += weight * (i128::from(part) * 100 / i128::from(left)) as i64;
            all += weight;
        }
        if all == 0 { 0 } else { sum / all }
    }
}

fn selects(selector: Option<&LabelSelector>, gpu: &Value) -> bool {
    let labels = gpu["labels"].as_object().into_iter().flatten();
    let labels = Labels::new(labels.map(|(key, value)| (key.as_str().into(), text(value).into())));
    selector.is_none_or(|selector| selector.matches(&labels))
}

/// Returns whether a pod requests one GPU, and not all of it.
pub(super) fn shares_one_gpu(given: &[(i64, Amounts)]) -> bool {
    matches!(given, [(_, amounts)] if amounts.get(RATIO) < Some(&100) || amounts.get(CORE) < Some(&100))
}
