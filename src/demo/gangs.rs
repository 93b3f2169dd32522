//! The gangs of the demo, and the summary line of each: one gang runs, one is below its quorum, one cannot fit, and the
//! members of one wait for each other.

use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, presets};
use pellucid_cluster::Gang;
use pellucid_cycle::Snapshot;
use pellucid_cycle::scheduler::gangs::gate;
use pellucid_model::sentence::ended;
use pellucid_recording::GangOutcome;
use serde_json::{Value, json};

use super::cluster::{NAMESPACE, in_pool, pod, with, with_gpus};

const POD_GROUP: &str = "scheduling.x-k8s.io/pod-group";
/// How long waiting members hold their nodes: longer than anybody watches the demo.
const LONG: &str = "24h";

/// Returns the gangs' objects, in different dialects.
pub(super) fn objects() -> Vec<Value> {
    let mut all = vec![pod_group("ranks", 4), pod_group("too-many-gpus", 3)];
    all.extend((1..=4).map(|n| of_group("ranks", in_pool(pod(&format!("ranks-{n}"), "1", "2Gi"), "memory"))));
    all.extend((1..=2).map(|n| short_of_one(&format!("crew-{n}"))));
    let wide = |n| with_gpus(pod(&format!("too-many-gpus-{n}"), "4", "8Gi"), 8);
    all.extend((1..=3).map(|n| of_group("too-many-gpus", wide(n))));
    all.extend((1..=2).map(|n| patient(pod(&format!("render-{n}"), "250m", "256Mi"))));
    all.push(patient(in_pool(pod("render-3", "250m", "256Mi"), "repair")));
    all
}

pub(super) fn pod_group(name: &str, min: u32) -> Value {
    json!({
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": min},
    })
}

pub(super) fn of_group(group: &str, mut pod: Value) -> Value {
    pod["metadata"]["labels"][POD_GROUP] = group.into();
    pod
}

/// Returns a member of a gang that has two members and needs three.
fn short_of_one(name: &str) -> Value {
    let mut pod = pod(name, "500m", "512Mi");
    pod["metadata"]["labels"]["gang.unicore.mcyou.cn/name"] = "crew".into();
    pod["metadata"]["labels"]["gang.unicore.mcyou.cn/available-count"] = "3".into();
    pod
}

/// Returns a member of a NonStrict gang of three, which keeps its node while the others are tried.
fn patient(pod: Value) -> Value {
    let annotations = json!({
        "gang.scheduling.koordinator.sh/name": "render",
        "gang.scheduling.koordinator.sh/min-available": "3",
        "gang.scheduling.koordinator.sh/mode": "NonStrict",
        "gang.scheduling.koordinator.sh/waiting-time": LONG,
    });
    with(pod, "/metadata/annotations", annotations)
}

/// Returns how many members have a node and wait for the others.
pub(super) fn waiting(snapshot: &Snapshot) -> usize {
    snapshot.cluster.gangs().all().values().map(|gang| gang.counts.waiting as usize).sum()
}

pub(super) fn write(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(110).set_header(["gang", "members", "what became of it"]);
    for gang in snapshot.cluster.gangs().all().values() {
        table.add_row([gang.key.to_string(), members(gang), what(snapshot, gang)]);
    }
    writeln!(out, "{table}")
}

/// Describes how many members are at each stage and how many make a quorum.
fn members(gang: &Gang) -> String {
    let counts = gang.counts;
    let named = [
        (counts.bound, "bound"),
        (counts.waiting, "waiting"),
        (counts.permitted, "on the way"),
        (counts.pending, "pending"),
    ];
    let some: Vec<String> =
        named.iter().filter(|(n, _)| *n > 0).map(|(n, stage)| format!("{n} {stage}")).collect();
    format!("{}; {} make a quorum", some.join(", "), gang.definition.min)
}

fn what(snapshot: &Snapshot, gang: &Gang) -> String {
    if gang.is_satisfied() {
        return "Has its quorum.".into();
    }
    let gangs = snapshot.cluster.gangs();
    let pending = |key: &pellucid_model::GangKey| gangs.get(key).map_or(0, |g| g.counts.pending);
    if let Some(block) = gate::block(gangs, &gang.key, pending) {
        return ended(format!("Not tried: {}", block.message()));
    }
    match snapshot.gang_verdicts.get(&gang.key).map(|verdict| &verdict.outcome) {
        Some(GangOutcome::Refused(refusal)) => format!("Refused: {}", refusal.message),
        Some(GangOutcome::Waiting { refusal, .. }) => {
            format!("Its members keep their places and wait: {}", refusal.message)
        }
        Some(GangOutcome::Released { message, .. }) => format!("Gave its places up: {message}"),
        Some(GangOutcome::Placed { .. }) | None => "Under way.".into(),
    }
}
