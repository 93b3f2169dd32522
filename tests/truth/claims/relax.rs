//! Makes refusals of Koordinator's plugins good, each by the numbers that the answer states of the node and by no more.

use serde_json::{Value, json};

use crate::made::{card, topology};
use crate::model::{allocatable, amount, free, requests};
use crate::objects::{Objects, list, text};

const RESERVATION_AFFINITY: &str = "scheduling.koordinator.sh/reservation-affinity";
const RESOURCE_STATUS: &str = "scheduling.koordinator.sh/resource-status";
const THRESHOLDS: &str = "scheduling.koordinator.sh/usage-thresholds";
const CPU_TOPOLOGY: &str = "node.koordinator.sh/cpu-topology";
/// CPUs of a node of which nobody knew any.
const MANY: u64 = 64;

/// A node of which is told what it lacks for a pod.
pub(crate) struct Lacking<'a> {
    pub(crate) key: &'a str,
    pub(crate) node: &'a str,
    /// The entry of the node among the nearest.
    pub(crate) near: &'a Value,
    /// How much less than stated is made good: per cent, devices or CPUs.
    pub(crate) less: i64,
}

impl Lacking<'_> {
    /// Makes one requirement good. Returns false when the test does not know how, or the answer states no number.
    pub(crate) fn make_good(&self, objects: &mut Objects, failed: &Value) -> bool {
        let subject = text(&failed["subject"]);
        let done = match text(&failed["code"]) {
            "NodeMetricExpired" => objects.remove("NodeMetric", self.node).then_some(()),
            "UsageExceeded" | "AggregatedUsageExceeded" => self.raise_threshold(objects, subject),
            "InsufficientDevices" | "InsufficientGpuDevices" => self.add_cards(objects),
            "InvalidCpuTopology" => {
                objects.put(topology(self.node, MANY, &[(MANY, "1024Gi".to_owned())]));
                Some(())
            }
            "NotEnoughCpus" => self.add_cpus(objects),
            "InsufficientNumaResource" | "UnsatisfiedNumaResource" | "NumaTopologyMismatch" => {
                self.widen_zone(objects)
            }
            "NoReservationMatches" => {
                objects.change_pod(self.key, |json| {
                    if let Some(all) = json["metadata"]["annotations"].as_object_mut() {
                        all.remove(RESERVATION_AFFINITY);
                    }
                });
                Some(())
            }
            "InsufficientBesideReservations" => self.offer_more(objects, subject, 1),
            "InsufficientReservation" => self.enlarge(objects, subject),
            _ => None,
        };
        done.is_some()
    }

    /// Returns whether a code comes with numbers of which one step less is too little.
    pub(crate) fn is_exact(code: &Value) -> bool {
        let exact = ["UsageExceeded", "AggregatedUsageExceeded", "InsufficientDevices", "NotEnoughCpus"];
        exact.contains(&text(code))
    }

    /// Returns what is said of the node from these words on.
    fn said(&self, words: &str) -> Option<&str> {
        let mut all = list(&self.near["details"]).iter().map(text);
        all.find_map(|detail| detail.split_once(words)).map(|(_, rest)| rest)
    }

    /// Raises the thresholds of the node on a resource to what its usage would be.
    fn raise_threshold(&self, objects: &mut Objects, resource: &str) -> Option<()> {
        let percent = number(self.said(&format!("{resource} would be at "))?)? - self.less;
        let known = text(&objects.node(self.node)["metadata"]["annotations"][THRESHOLDS]);
        let mut own: Value = serde_json::from_str(known).unwrap_or(Value::Null);
        if own["usageThresholds"].is_null() {
            own["usageThresholds"] = json!({"cpu": 65, "memory": 95});
        }
        for which in ["usageThresholds", "prodUsageThresholds"] {
            if own[which].is_object() {
                own[which][resource] = percent.into();
            }
        }
        if own["aggregatedUsage"].is_object() {
            own["aggregatedUsage"]["usageThresholds"][resource] = percent.into();
        }
        objects.change_node(self.node, |json| {
            json["metadata"]["annotations"][THRESHOLDS] = own.to_string().into();
        });
        Some(())
    }

    /// Adds as many cards as are said to be missing.
    fn add_cards(&self, objects: &mut Objects) -> Option<()> {
        let detail = list(&self.near["details"]).iter().map(text).find(|text| text.contains(" wanted; "))?;
        let (wanted, able) = detail.split_once(" wanted; ")?;
        let wanted = wanted.split_whitespace().find_map(|word| word.parse::<i64>().ok())?;
        let missing = wanted - number(able)? - self.less;
        let known = objects.of_kind("Device").find(|of| of["metadata"]["name"] == self.node).cloned();
        let mut device = known?;
        let devices = device["spec"]["devices"].as_array_mut()?;
        let first = devices.len() as u64;
        devices.extend((0..missing.max(0) as u64).map(|more| card(self.node, first + more, true)));
        objects.put(device);
        Some(())
    }

    /// Adds as many CPUs as are said to be missing.
    fn add_cpus(&self, objects: &mut Objects) -> Option<()> {
        let said = self.said("the pod asks for ")?;
        let free = said.split("; ").skip(1).filter_map(|zone| number(zone.split_once(": ")?.1));
        let missing = number(said)? - free.sum::<i64>() - self.less;
        self.put_cpus(objects, missing, None)
    }

    /// Adds CPUs, on new cores, to a NUMA node or to the last one.
    fn put_cpus(&self, objects: &mut Objects, more: i64, zone: Option<i64>) -> Option<()> {
        let known = objects.of_kind("NodeResourceTopology").find(|of| of["metadata"]["name"] == self.node);
        let mut known = known?.clone();
        let annotation = &mut known["metadata"]["annotations"][CPU_TOPOLOGY];
        let mut cpus: Value = serde_json::from_str(text(annotation)).ok()?;
        let all = cpus["detail"].as_array_mut()?;
        let most = |field: &str| all.iter().filter_map(|cpu| cpu[field].as_i64()).max().unwrap_or(-1);
        let (id, core, zone) = (most("id") + 1, most("core") + 1, zone.unwrap_or(most("node")));
        for at in 0..more {
            all.push(json!({"id": id + at, "core": core + at / 2, "socket": 0, "node": zone}));
        }
        *annotation = cpus.to_string().into();
        objects.put(known);
        Some(())
    }

    /// Gives the first NUMA node what it is said to lack for the whole pod.
    fn widen_zone(&self, objects: &mut Objects) -> Option<()> {
        let said = self.said(" the pod asks for ")?;
        let (asked, zones) = said.split_once("; ")?;
        let zone = zones.split("; ").next()?.strip_prefix("NUMA 0: ")?;
        let known = objects.of_kind("NodeResourceTopology").find(|of| of["metadata"]["name"] == self.node);
        let mut known = known?.clone();
        for asked in asked.split(" and ") {
            let (wanted, resource) = asked.split_once(' ')?;
            let is_it = |part: &&str| part.contains(&format!(" {resource}"));
            let left = zone.split(", ").find(is_it)?.split_once(" of ")?.0;
            let missing = amount(resource, &wanted.into()) - amount(resource, &left.into());
            if missing <= 0 {
                continue;
            }
            let all = known["zones"][0]["resources"].as_array_mut()?;
            let own = all.iter_mut().find(|own| own["name"] == resource)?;
            let more = with_unit(resource, amount(resource, &own["allocatable"]) + missing);
            for field in ["capacity", "allocatable", "available"] {
                own[field] = more.clone().into();
            }
            if resource == "cpu" {
                objects.put(known);
                self.put_cpus(objects, (missing + 999) / 1000, Some(0))?;
                let mut grown = objects.of_kind("NodeResourceTopology");
                known = grown.find(|of| of["metadata"]["name"] == self.node)?.clone();
            }
        }
        objects.put(known);
        Some(())
    }

    /// Has the node offer more, by what the pod requests and by what the node has too little of without it: pods that ignore
    /// reservations stand in their room.
    fn offer_more(&self, objects: &mut Objects, resource: &str, times: i64) -> Option<()> {
        let own = requests(objects.pod(self.key)).get(resource).copied()?;
        let lacking = free(objects, self.node, resource).min(0);
        let offered = allocatable(objects.node(self.node), resource) - lacking + own * times;
        objects.change_node(self.node, |json| {
            json["status"]["allocatable"][resource] = with_unit(resource, offered).into();
        });
        Some(())
    }

    /// Enlarges the reservations of the node, and the node by as much.
    fn enlarge(&self, objects: &mut Objects, subject: &str) -> Option<()> {
        let resource = subject.split(',').next().unwrap_or(subject);
        let own = requests(objects.pod(self.key)).get(resource).copied()?;
        let here = objects
            .of_kind("Reservation")
            .filter(|of| of["status"]["nodeName"] == self.node && of["status"]["phase"] == "Available");
        let here: Vec<Value> = here.cloned().collect();
        let number = here.len() as i64;
        for mut reservation in here {
            let container = &mut reservation["spec"]["template"]["spec"]["containers"][0];
            let requests = &mut container["resources"]["requests"];
            let larger = with_unit(resource, amount(resource, &requests[resource]) + own);
            requests[resource] = larger.clone().into();
            reservation["status"]["allocatable"][resource] = larger.into();
            hold_more(&mut reservation["metadata"]["annotations"], resource, own);
            objects.put(reservation);
        }
        self.offer_more(objects, resource, number)
    }
}

/// Has a reservation that stands on a NUMA node hold more there.
fn hold_more(annotations: &mut Value, resource: &str, more: i64) {
    let known = text(&annotations[RESOURCE_STATUS]);
    let Ok(mut held) = serde_json::from_str::<Value>(known) else { return };
    let Some(amounts) = held.pointer_mut("/numaNodeResources/0/resources") else { return };
    if amounts[resource].is_string() {
        amounts[resource] = with_unit(resource, amount(resource, &amounts[resource]) + more).into();
        annotations[RESOURCE_STATUS] = held.to_string().into();
    }
}

/// Returns the whole number with which a text begins.
fn number(text: &str) -> Option<i64> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn with_unit(resource: &str, amount: i64) -> String {
    if resource == "cpu" { format!("{amount}m") } else { amount.to_string() }
}
