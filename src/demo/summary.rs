//! The output of `pellucid demo`: where pods went, why others are pending, and which commands to try next.

use std::collections::BTreeMap;
use std::io::{self, Write};

use comfy_table::{ContentArrangement, Table, presets};
use pellucid_cycle::Snapshot;
use pellucid_diagnosis::summary;
use pellucid_model::PodKey;
use pellucid_model::sentence::ended;
use serde_json::Value;

use super::gangs;

/// Writes how many pods each pool got, the preemptions, the reason of each pending pod, and the gangs.
pub(super) fn write(snapshot: &Snapshot, pods: &[Value], out: &mut dyn Write) -> io::Result<()> {
    let mut placed: BTreeMap<String, usize> = BTreeMap::new();
    let mut waiting = Table::new();
    waiting.load_style(presets::UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    waiting.set_width(110).set_header(["pending pod", "why"]);
    for pod in pods {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let key = PodKey::new(text("/metadata/namespace"), text("/metadata/name"));
        match text("/spec/nodeName") {
            // Gangs have their own table.
            "" if is_member(snapshot, &key) => {}
            "" => _ = waiting.add_row([key.name.to_string(), why(snapshot, &key)]),
            node => {
                let pool = node.rsplit_once('-').map_or(node, |(pool, _)| pool);
                *placed.entry(pool.to_string()).or_default() += 1;
            }
        }
    }
    let total: usize = placed.values().sum();
    let pools: Vec<String> = placed.iter().map(|(pool, n)| format!("{n} on {pool}")).collect();
    writeln!(out, "\n{} nodes; {total} pods placed: {}", snapshot.cluster.present().len(), pools.join(", "))?;
    for preemption in snapshot.cluster.preemptions().ended() {
        let victims: Vec<String> = preemption.victims.iter().map(|v| v.key.to_string()).collect();
        let (pod, node, gone) = (&preemption.preemptor, &preemption.node, victims.join(", "));
        writeln!(out, "{pod} (priority {}) evicted {gone} on {node}", preemption.priority)?;
    }
    writeln!(out, "{waiting}")?;
    gangs::write(snapshot, out)
}

fn is_member(snapshot: &Snapshot, key: &PodKey) -> bool {
    let record = snapshot.cluster.find_pod(key).and_then(|id| snapshot.cluster.pod(id));
    record.is_some_and(|record| record.pod.member_of().is_some())
}

fn why(snapshot: &Snapshot, key: &PodKey) -> String {
    if let Some(object) = snapshot.find_quarantined(key) {
        return ended(format!("Quarantined: {}", pellucid_cycle::quarantine_message(object)));
    }
    let known = snapshot.cluster.find_pod(key).and_then(|id| summary(snapshot, id, snapshot.published));
    known.unwrap_or_else(|| "Not tried yet.".into())
}

pub(super) fn write_curls(url: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "\nTry (a small job arrives every 10 s; Ctrl-C ends the demo):\n\
         \x20 curl -s {url}/apis/v1/explain/pods/demo/needs-500-cores | jq .summary\n\
         \x20 curl -s '{url}/apis/v1/explain/pods?format=table'\n\
         \x20 curl -s '{url}/apis/v1/queue?format=table'\n\
         \x20 curl -s {url}/apis/v1/explain/pods/demo/urgent/preemption | jq .summary\n\
         \x20 curl -s {url}/apis/v1/explain/gangs/demo/too-many-gpus | jq .verdict\n\
         \x20 curl -X PUT {url}/debug/flags/s --data 5; sleep 11; curl -s {url}/apis/v1/scores | jq '.tables[0]'\n\
         \x20 curl -s {url}/apis/v1/plugins/NodeResourcesFit/state\n\
         \x20 curl -s '{url}/apis/v1/plugins/LoadAwareScheduling/nodes?format=table'\n\
         \x20 curl -s {url}/apis/v1/explain/pods/demo/waits-for-a-calm-edge | jq .summary\n\
         \x20 curl -s {url}/apis/v1/explain/pods/demo/whole-card/devices | jq .text\n\
         \x20 curl -s {url}/apis/v1/__services__\n\
         \x20 pellucid explain pod demo/third-on-port-443 --server {url}"
    )
}
