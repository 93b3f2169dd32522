//! Reservation: where reservations and pods go, which reservation a pod takes, what stands in the status, what refusals say,
//! scores, and the endpoint's answers.
//!
//! Writes are carried out on objects in memory, and each decision is left to ours. A case ends at its first difference.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cycle::what_if::question::{Answer, NodeQuestion, Question};
use pellucid::framework::View;
use pellucid::framework::profile::Enabled;
use pellucid::model::{PodKey, quantity};
use pellucid::plugins::reservation::NAME;
use pellucid::recording::Outcome;
use serde_json::Value;

use crate::reservation_cluster::{Case, array, text};
use crate::{lines, own_copy};

/// Number of cases of this repository.
const ALL: usize = 72;
/// Annotation with the reservation that a pod took.
const TAKEN: &str = "scheduling.koordinator.sh/reservation-allocated";

/// Plugins whose scores are compared.
const COMPARED: [&str; 4] = ["TaintToleration", "NodeResourcesFit", "NodeResourcesBalancedAllocation", NAME];

/// Places where ours differs on purpose, with the reason.
const QUIRKS: &[(&str, &[&str])] = &[
    (
        "Of resources that the restricted options leave out, theirs says that what an owner uses is still there.",
        &["rs202x48 rs202x48-n0 items", "rs202x50 rs202x50-n0 items", "rs202x63 rs202x63-n0 items"],
    ),
    (
        "So the node counts such a resource of an owner twice in theirs: here 19 GiB of 25, where 12 are requested.",
        &["rs202x25 2 totals"],
    ),
    (
        "Theirs takes all that owners use off the sum of the node, also what overflowed their reservation, where the pod does \
         not match it. It is the mistake behind its overcommitted nodes: here 3.5 GiB and half a core too little count.",
        &["rs202x36 3 totals", "rs202x45 4 totals"],
    ),
    ("Theirs counts a reason once per reservation of a node.", &["rs202x60 0 message"]),
];

/// Returns the amounts of a resource list.
fn amounts(list: &Value) -> BTreeMap<String, i64> {
    let amount = |(name, value): (&String, &Value)| {
        let read = if name == "cpu" { quantity::milli(text(value)) } else { quantity::units(text(value)) };
        (name.clone(), read.expect("a quantity"))
    };
    list.as_object().into_iter().flatten().map(amount).filter(|(_, amount)| *amount != 0).collect()
}

/// What was compared, and where ours differs.
#[derive(Default)]
struct Compared {
    placed: usize,
    refused: usize,
    reservations: usize,
    scores: usize,
    nodes: usize,
    answers: usize,
    differences: Vec<(String, String)>,
}

impl Compared {
    fn check<T: PartialEq + std::fmt::Debug>(&mut self, at: &str, what: &str, ours: &T, theirs: &T) {
        if ours != theirs {
            self.differences.push((format!("{at} {what}"), format!("{ours:?}, recorded {theirs:?}")));
        }
    }
}

impl Case {
    fn play(&mut self, case: &Value, compared: &mut Compared) {
        let id = self.id.clone();
        self.check_reservations(&case["reservations"], &id, compared);
        for (i, step) in array(&case["steps"]).iter().enumerate() {
            if !compared.differences.is_empty() {
                return;
            }
            let at = format!("{id} {i}");
            if step["pod"].is_object() && !self.try_pod(step, &at, compared) {
                return;
            }
            if let Some(key) = step["delete"]["pod"].as_str() {
                let (namespace, name) = key.split_once('/').expect("namespace and name");
                self.delete_pod(&PodKey::new(namespace, name));
            }
            if let Some(name) = step["delete"]["reservation"].as_str() {
                self.delete_reservation(name);
            }
            if let Some(name) = step["delete"]["node"].as_str() {
                self.core.apply(Input::NodeDeleted(name.into()));
            }
            let read = ["pod", "reservation", "node"];
            let other =
                step["delete"].as_object().and_then(|of| of.keys().find(|key| !read.contains(&key.as_str())));
            assert!(other.is_none(), "{at}: {other:?} is not read");
            if let Some(seconds) = step["wait"].as_u64() {
                self.core.now.monotonic += Duration::from_secs(seconds);
                self.core.now.wall += Duration::from_secs(seconds);
            }
            self.settle();
            self.check_reservations(&step["reservations"], &at, compared);
        }
        if compared.differences.is_empty() && case["result"].is_object() {
            self.check_result(&case["result"], &id, compared);
        }
    }

    /// Creates the pod of a step and compares what becomes of it. Returns whether the case goes on.
    fn try_pod(&mut self, step: &Value, at: &str, compared: &mut Compared) -> bool {
        let key = self.create_pod(&step["pod"]);
        let cluster = self.core.scheduler.cluster();
        let id = cluster.find_pod(&key).expect("the pod is known");
        let totals = match step["totals"].is_object() {
            true => self.check_scores(&key, step, at, compared),
            false => BTreeMap::new(),
        };
        let sentence = self.sentence(&key);
        let reasons = self.check_nodes(&key, step, at, compared);
        let mut said_by_nodes = self.reasons_of_nodes(&key, &reasons);
        self.core.run();
        let outcome = self.core.scheduler.verdict(id).expect("it was tried").outcome;
        match &outcome {
            Outcome::Placed(placement) => {
                let cluster = self.core.scheduler.cluster();
                let node = cluster.node_name(placement.node).to_string();
                compared.placed += 1;
                let ties: BTreeSet<&str> = array(&step["tie"]).iter().map(text).collect();
                if !ties.is_empty() {
                    compared.check(at, "is one of equals", &ties.contains(node.as_str()), &true);
                    if node != text(&step["node"]) {
                        return false;
                    }
                }
                // Of equals any may be taken. Theirs has one more score, by which they may differ.
                let recorded = totals.get(text(&step["node"]));
                if node != text(&step["node"]) && recorded.is_some() && totals.get(&node) == recorded {
                    return false;
                }
                self.settle();
                let taken = text(&self.pods[&key]["metadata"]["annotations"][TAKEN]).to_owned();
                let taken: Value = serde_json::from_str(&taken).unwrap_or_default();
                let ours = (node.as_str(), text(&taken["name"]));
                if !step["overcommitted"].is_null() {
                    compared.check(at, "is not overcommitted", &(ours.0 == text(&step["node"])), &false);
                    return false;
                }
                let theirs = (text(&step["node"]), text(&step["reservation"]));
                compared.check(at, "node and reservation", &ours, &theirs);
            }
            Outcome::Refused(refusal) => {
                compared.refused += 1;
                if !step["overcommitted"].is_null() {
                    return false;
                }
                if step["node"].is_string() {
                    let theirs = (text(&step["node"]), text(&step["reservation"]));
                    compared.check(at, "refused", &format!("{}", refusal.message()).as_str(), &theirs.0);
                    return false;
                }
                let (ours, _) = parts(&refusal.message());
                let (theirs, said) = parts(text(&step["message"]));
                compared.check(at, "message", &ours, &theirs);
                said_by_nodes.extend(sentence.iter().flat_map(|text| text.split(", ")).map(str::to_owned));
                compared.check(at, "sentence", &said_by_nodes, &said);
                self.delete_pod(&key);
            }
            other => panic!("{at}: {other:?}"),
        }
        true
    }

    /// Compares which nodes do not pass, by which plugin and for what, and which do. Returns our reasons by node.
    fn check_nodes(
        &self,
        key: &PodKey,
        step: &Value,
        at: &str,
        compared: &mut Compared,
    ) -> BTreeMap<String, BTreeSet<String>> {
        let cluster = self.core.scheduler.cluster();
        let id = cluster.find_pod(key).expect("the pod is known");
        let mut ours: BTreeMap<String, (&str, BTreeSet<String>)> = BTreeMap::new();
        let mut passed = BTreeSet::new();
        for node in cluster.present() {
            let name = cluster.node_name(*node).to_string();
            match NodeQuestion::new(cluster, *node).ask((0, &self.profile), id).expect("it is known") {
                Answer::Takes => drop(passed.insert(name)),
                Answer::Refuses(cause) => {
                    let reasons = cause.reasons.iter().flat_map(|reason| {
                        let text = reason.message();
                        text.split(", ").map(str::to_owned).collect::<Vec<_>>()
                    });
                    ours.insert(name, (cause.plugin, reasons.collect()));
                }
                Answer::LeftOut | Answer::Gone => {}
            }
        }
        for (node, theirs) in step["refused"].as_object().into_iter().flatten() {
            let reasons: BTreeSet<String> = text(&theirs["reason"]).split(", ").map(str::to_owned).collect();
            let theirs = (text(&theirs["plugin"]), reasons);
            compared.check(at, &format!("refusal of {node}"), &ours.get(node), &Some(&theirs));
            compared.nodes += 1;
        }
        for node in step["scores"].as_object().into_iter().flatten().map(|(node, _)| node) {
            compared.check(at, &format!("{node} passes"), &passed.contains(node), &true);
            compared.nodes += 1;
        }
        ours.into_iter().map(|(node, (_, reasons))| (node, reasons)).collect()
    }

    /// Says in Koordinator's words for how many reservations, that the pod may use, their node refuses it for what. A
    /// reason that is about reservations accounts for one of them.
    fn reasons_of_nodes(
        &self,
        key: &PodKey,
        reasons: &BTreeMap<String, BTreeSet<String>>,
    ) -> BTreeSet<String> {
        let cluster = self.core.scheduler.cluster();
        let record = cluster.find_pod(key).and_then(|id| cluster.pod(id)).expect("the pod waits");
        let plugin = self.profile.plugins.iter().find(|plugin| plugin.name() == NAME).expect("it is enabled");
        let body = plugin.advice().expect("it gives advice").body(
            View::new(cluster).for_pod(&record.pod),
            &record.pod,
            self.core.now,
        );
        let is_usable = |row: &&Value| {
            let reason = text(&row["reason"]);
            let is_other =
                reason.starts_with("the reservation ") || reason.starts_with("the pod does not select");
            row["phase"] == "Available" && !is_other && !reason.contains("ignores reservations")
        };
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (node, reasons) in reasons {
            let usable = array(&body["rows"]).iter().filter(is_usable).filter(|row| row["node"] == **node);
            let is_told = |reason: &&String| reason.starts_with("Reservation(s)");
            let left = usable.count().saturating_sub(reasons.iter().filter(is_told).count());
            for reason in reasons.iter().filter(|reason| left > 0 && !is_told(reason)) {
                *counts.entry(reason).or_insert(0) += left;
            }
        }
        let said = counts.into_iter();
        said.map(|(reason, n)| format!("{n} Reservation(s) for node reason that {reason}")).collect()
    }

    /// Compares scores. Returns the totals by which ours decides.
    fn check_scores(
        &mut self,
        key: &PodKey,
        step: &Value,
        at: &str,
        compared: &mut Compared,
    ) -> BTreeMap<String, i64> {
        let cluster = self.core.scheduler.cluster();
        let id = cluster.find_pod(key).expect("the pod is known");
        let mut question = Question::ask(cluster, &self.profile, id).expect("it is known");
        let mut ours: BTreeMap<String, i64> = BTreeMap::new();
        let mut own: BTreeMap<String, i64> = BTreeMap::new();
        let mut decisive: BTreeMap<String, i64> = BTreeMap::new();
        let place = self.profile.score.iter().position(|e| e.plugin.name() == NAME);
        for scored in question.scores() {
            let node = cluster.node_name(scored.node).to_string();
            let shares = self.profile.score.iter().zip(&scored.shares);
            let known = shares.filter(|(e, _)| COMPARED.contains(&e.plugin.name()));
            let once = |e: &Enabled, (_, own, weighted): (i64, i64, i64)| {
                if e.plugin.name() == "NodeResourcesFit" { own } else { weighted }
            };
            let total = known.filter_map(|(e, share)| share.map(|share| once(e, share))).sum();
            let mine = place.and_then(|at| scored.shares[at]).map_or(0, |(_, _, weighted)| weighted);
            ours.insert(node.clone(), total);
            decisive.insert(node.clone(), scored.total);
            own.insert(node, mine);
        }
        let theirs = step["scores"].as_object().expect("scores by node");
        let sum = |of: &Value| COMPARED.iter().filter_map(|name| of[*name].as_i64()).sum();
        let totals: BTreeMap<String, i64> = theirs.iter().map(|(node, of)| (node.clone(), sum(of))).collect();
        let reserved =
            theirs.iter().map(|(node, of)| (node.clone(), of[NAME].as_i64().unwrap_or(0))).collect();
        compared.check(at, "score", &own, &reserved);
        compared.check(at, "totals", &ours, &totals);
        compared.scores += totals.len();
        decisive
    }

    fn check_reservations(&self, theirs: &Value, at: &str, compared: &mut Compared) {
        let theirs = theirs.as_object().expect("reservations by name");
        let names = |of: Vec<&String>| of.into_iter().cloned().collect::<BTreeSet<String>>();
        let ours = names(self.reservations.keys().collect());
        compared.check(at, "reservations", &ours, &names(theirs.keys().collect()));
        for (name, theirs) in theirs {
            let Some(ours) = self.reservations.get(name).map(|object| &object["status"]) else { continue };
            let at = format!("{at} {name}");
            for field in ["phase", "nodeName"] {
                compared.check(&at, field, &text(&ours[field]), &text(&theirs[field]));
            }
            for field in ["allocatable", "allocated"] {
                compared.check(&at, field, &amounts(&ours[field]), &amounts(&theirs[field]));
            }
            let owner = |of: &Value| format!("{}/{}", text(&of["namespace"]), text(&of["name"]));
            let owners: Vec<String> = array(&ours["currentOwners"]).iter().map(owner).collect();
            let recorded: Vec<String> =
                array(&theirs["currentOwners"]).iter().map(|of| text(of).to_owned()).collect();
            compared.check(&at, "currentOwners", &owners, &recorded);
            let (mut ours, theirs) = (conditions(ours), conditions(theirs));
            // Messages are recorded before the first step alone.
            if theirs.iter().all(|(.., message)| message.is_empty()) {
                ours.iter_mut().for_each(|(.., message)| message.clear());
            }
            compared.check(&at, "conditions", &ours, &theirs);
            compared.reservations += 1;
        }
    }

    fn check_result(&self, result: &Value, at: &str, compared: &mut Compared) {
        for (node, theirs) in result.as_object().expect("nodes by name") {
            let at = format!("{at} {node}");
            let ours = self.read("nodeReservations/:nodeName", node);
            let item = |of: &Value| {
                let mut of = of.clone();
                let lists = [&of["allocatable"], &of["allocated"]].map(amounts);
                let pod = |pod: &Value| match pod.as_str() {
                    Some(key) => key.to_owned(),
                    None => format!("{}/{}", text(&pod["Namespace"]), text(&pod["Name"])),
                };
                let pods: Vec<String> = array(&of["assignedPods"]).iter().map(pod).collect();
                let fields = of.as_object_mut().expect("an item");
                for field in ["uid", "allocatable", "allocated", "assignedPods"] {
                    fields.remove(field);
                }
                (of, lists, pods)
            };
            let items = |of: &Value| array(of).iter().map(item).collect::<Vec<_>>();
            compared.check(&at, "items", &items(&ours["items"]), &items(&theirs["nodeReservations"]));
            compared.answers += 1;
            // Theirs counts what owners took of a reservation twice.
            let cluster = self.core.scheduler.cluster();
            let slot = cluster.slot(cluster.find_node(&node.as_str().into()).expect("it is there"));
            let whole = |of: &dyn Fn(&pellucid::model::requests::ResourceList) -> i64| -> i64 {
                let pods = slot.pods.iter().filter_map(|id| cluster.pod(*id));
                pods.map(|record| of(&record.pod.spec.requests.list)).sum()
            };
            let ours = (whole(&|list| list.milli_cpu), whole(&|list| list.memory));
            let requested = &theirs["requested"];
            let recorded = |field: &str| requested[field].as_i64().unwrap_or(0);
            compared.check(&at, "requested", &ours, &(recorded("MilliCPU"), recorded("Memory")));
        }
    }
}

/// Returns the conditions as the recordings have them: the message of a pending reservation up to the preemption's part.
fn conditions(status: &Value) -> Vec<(String, String, String, BTreeSet<String>)> {
    let word = |of: &Value, field: &str| text(&of[field]).to_owned();
    let condition = |of: &Value| {
        let message = parts(text(&of["message"])).0;
        let is_told = word(of, "reason") == "Unschedulable";
        let message = if is_told { message } else { BTreeSet::new() };
        (word(of, "type"), word(of, "status"), word(of, "reason"), message)
    };
    array(&status["conditions"]).iter().map(condition).collect()
}

/// Splits a message into what it says of nodes and what it says of reservations.
fn parts(message: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let own = message.split("preemption:").next().unwrap_or_default();
    let own = own.trim().trim_end_matches([',', '.']);
    let (nodes, others) = own.split_once(". ").unwrap_or((own, ""));
    let set = |text: &str| -> BTreeSet<String> {
        let parts = text.split(", ").filter(|part| !part.is_empty());
        parts.flat_map(|part| part.split(": ")).map(str::to_owned).collect()
    };
    (set(nodes), others.split(", ").filter(|part| !part.is_empty()).map(str::to_owned).collect())
}

#[test]
fn reservations_and_their_owners_go_where_koordinator_puts_them() {
    let all = lines("reservation.jsonl");
    let (mut sums, mut differences) = (Compared::default(), Vec::new());
    for case in &all {
        let mut compared = Compared::default();
        Case::new(case).play(case, &mut compared);
        for (sum, own) in [
            (&mut sums.placed, compared.placed),
            (&mut sums.refused, compared.refused),
            (&mut sums.reservations, compared.reservations),
            (&mut sums.scores, compared.scores),
            (&mut sums.nodes, compared.nodes),
            (&mut sums.answers, compared.answers),
        ] {
            *sum += own;
        }
        differences.append(&mut compared.differences);
    }
    let known = |at: &str| QUIRKS.iter().any(|(_, places)| places.contains(&at));
    let unknown: Vec<String> =
        differences.iter().filter(|(at, _)| !known(at)).map(|(at, what)| format!("{at}: {what}")).collect();
    let said = format!(
        "{} placed, {} refused, {} reservations, {} scores, {} nodes, {} answers",
        sums.placed, sums.refused, sums.reservations, sums.scores, sums.nodes, sums.answers
    );
    assert!(unknown.is_empty(), "{} differences in {said}:\n{}", unknown.len(), unknown.join("\n"));
    println!("{} cases: {said} agree", all.len());
    if own_copy() {
        assert_eq!(all.len(), ALL);
        assert!(sums.nodes >= 283, "{} nodes", sums.nodes);
        let met: BTreeSet<&str> = differences.iter().map(|(at, _)| at.as_str()).collect();
        let listed: BTreeSet<&str> = QUIRKS.iter().flat_map(|(_, places)| places.iter().copied()).collect();
        assert_eq!(met, listed, "every quirk is met");
    }
}
