//! What is wrong with devices: parts of a Device that cannot be read, and what pods say that cannot be. Whatever is wrong,
//! the rest counts, and no device is given twice by this scheduler.

use pellucid_api::rest::device_share::DeviceProblem;
use pellucid_cluster::{PodRecord, Stage};
use pellucid_framework::View;
use pellucid_model::{NodeIdx, PodId};

use super::allocation::{Allocation, DEVICE_ALLOCATED};
use super::request::Request;
use super::row::{CardInUse, Row};

/// Maximum number of pods that a problem names.
const MAX_NAMED: usize = 5;

/// Returns what is wrong on a node: with its Device first, then with its pods.
pub(super) fn of_node(view: View<'_>, node: NodeIdx, row: &Row) -> Vec<DeviceProblem> {
    let node_name = || view.name(node).to_string();
    let device = row.device().into_iter().flat_map(|device| &device.problems).map(|error| DeviceProblem {
        node_name: node_name(),
        pod: None,
        field: error.field.clone(),
        value: error.value.clone(),
        problem: error.problem.clone(),
    });
    let mut all: Vec<DeviceProblem> = device.collect();
    for card in row.cards() {
        all.extend(overcommitted(view, row, card).map(|(field, value, problem)| DeviceProblem {
            node_name: node_name(),
            pod: None,
            field,
            value,
            problem,
        }));
    }
    let mut of_pods: Vec<DeviceProblem> = Vec::new();
    for (id, record) in pods(view, node) {
        of_pods.extend(of_pod((id, record), row).into_iter().map(|(value, problem)| DeviceProblem {
            node_name: node_name(),
            pod: Some(record.pod.key.to_string()),
            field: format!("metadata.annotations.{DEVICE_ALLOCATED}"),
            value,
            problem,
        }));
    }
    of_pods.sort();
    all.extend(of_pods);
    all
}

/// Returns the pods on a node that request devices and do not say which they have.
pub(super) fn unknown_pods(view: View<'_>, node: NodeIdx, row: &Row) -> Vec<String> {
    let is_unknown = |(id, record): &(PodId, &PodRecord)| {
        let has = row.pods.iter().any(|pod| pod.id == *id);
        !has && record.stage == Stage::Bound
            && row.device().is_some()
            && !matches!(Request::of(&record.pod.spec), Ok(None))
    };
    let mut all: Vec<String> =
        pods(view, node).filter(is_unknown).map(|(_, record)| record.pod.key.to_string()).collect();
    all.sort();
    all
}

fn pods<'a>(view: View<'a>, node: NodeIdx) -> impl Iterator<Item = (PodId, &'a PodRecord)> {
    let cluster = view.cluster();
    cluster.slot(node).pods.iter().filter_map(|id| Some((*id, cluster.pod(*id)?)))
}

/// Returns field, value and problem of a card of which pods have more than there is.
fn overcommitted(view: View<'_>, row: &Row, card: CardInUse<'_>) -> Option<(String, String, String)> {
    if card.info.is_none() || card.taken.pods == 0 {
        return None;
    }
    let field = format!("spec.devices[{} {}]", card.kind, card.minor);
    let who = || {
        let has = |pod: &&super::row::PodOnCards| {
            pod.what.given.iter().any(|given| given.minor == card.minor && given.kind == card.kind)
        };
        let mut names: Vec<String> =
            row.pods.iter().filter(has).map(|pod| pod.key(view).to_string()).collect();
        names.sort();
        let more = names.len().saturating_sub(MAX_NAMED);
        names.truncate(MAX_NAMED);
        let names = names.join(", ");
        if more == 0 { names } else { format!("{names} and {more} more") }
    };
    if !card.healthy {
        return Some((
            field,
            "false".to_owned(),
            format!("the device is not healthy, and pods have it: {}", who()),
        ));
    }
    let (resource, used) =
        card.taken.used.iter().find(|(resource, used)| *used > card.total.get(*resource))?;
    let name = resource.name();
    let (used, all) = (resource.format(used), resource.format(card.total.get(resource)));
    let problem =
        format!("pods have {used} of its {all} {name}: {}; nothing of it is given to others", who());
    Some((field, all, problem))
}

/// Returns values and problems of what a pod says that it has.
fn of_pod((id, record): (PodId, &PodRecord), row: &Row) -> Vec<(String, String)> {
    if record.stage != Stage::Bound {
        return Vec::new();
    }
    let Some(text) = record.pod.marks.text(DEVICE_ALLOCATED) else { return Vec::new() };
    let (read, problems) = match Allocation::read(text) {
        Ok(read) => read,
        Err(error) => {
            let counts = match row.pods.iter().any(|pod| pod.id == id) {
                true => "what the pod had before counts",
                false => "the pod counts without devices",
            };
            return vec![(error.value, format!("{}; {counts}", error.problem))];
        }
    };
    let mut all: Vec<(String, String)> = problems
        .into_iter()
        .map(|error| (error.value, format!("{}: {}", error.field, error.problem)))
        .collect();
    let is_there = |kind, minor| {
        row.cards().any(|card| card.info.is_some() && (&card.kind, card.minor) == (kind, minor))
    };
    for given in read.given.iter().filter(|given| !is_there(&given.kind, given.minor)) {
        all.push((
            given.minor.to_string(),
            format!("the node's Device has no {} {}", given.kind, given.minor),
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use pellucid_model::PodKey;
    use pellucid_plugin_helper::testing::TestCluster;
    use serde_json::Value;

    use super::super::amounts::CORE;
    use super::super::node_devices::NodeDevices;
    use super::super::tests::{bound, cluster, devices, gpu, plugin, report};
    use super::*;

    #[test]
    fn a_pod_keeps_its_devices_when_what_it_says_of_them_cannot_be_read_any_more() {
        let plugin = plugin(Value::Null);
        let mut cluster = cluster(&plugin);
        report(&mut cluster, "a", &devices(&[gpu(0, 0)]), "1");
        let most = r#"{"gpu":[{"minor":0,"resources":{"koordinator.sh/gpu-core":"60"}}]}"#;
        let less = most.replace("60", "30");
        let used = |cluster: &TestCluster| {
            let row = cluster.view().state::<NodeDevices>().and_then(|devices| devices.row(cluster.idx("a")));
            let row = row.expect("a row").clone();
            (row.card(0).taken.used.get(CORE), of_node(cluster.view(), cluster.idx("a"), &row))
        };
        for (text, core) in [(most, 60), ("{", 60), (&less, 30), (r#"{"gpu":3}"#, 30)] {
            bound(&mut cluster, "p", "a", text);
            let (known, problems) = used(&cluster);
            assert_eq!(known, core, "{text}");
            let said = problems.first().map(|problem| problem.problem.as_str()).unwrap_or_default();
            let is_readable = [most, &less].contains(&text);
            assert!(said.ends_with("; what the pod had before counts") != is_readable, "{text}: {said}");
        }
        cluster.cluster.delete_pod(&PodKey::new("d", "p"), &mut Vec::new());
        assert_eq!(used(&cluster).0, 0);
    }
}
