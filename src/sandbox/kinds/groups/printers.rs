//! Columns of `kubectl get` for the native kinds of gangs.

use serde_json::Value;

use crate::kinds::printers::{AGE, NAME, Printer, created, name};

pub(crate) const POD_GROUPS: Printer = Printer {
    columns: &[
        NAME,
        ("Policy", "string", 0, "How the pods are scheduled: gang or basic."),
        ("MinCount", "integer", 0, "Pods that make a quorum."),
        ("Scheduled", "string", 0, "Whether the quorum has its nodes."),
        AGE,
    ],
    cells: |group, now| {
        let policy = &group["spec"]["schedulingPolicy"];
        let kind = if policy["gang"].is_object() { "gang" } else { "basic" };
        vec![
            name(group),
            kind.into(),
            policy["gang"]["minCount"].clone(),
            scheduled(group),
            created(group, now),
        ]
    },
};

pub(crate) const WORKLOADS: Printer = Printer {
    columns: &[NAME, ("Templates", "integer", 0, "Templates of pod groups."), AGE],
    cells: |workload, now| {
        let templates = workload["spec"]["podGroupTemplates"].as_array().map_or(0, Vec::len);
        vec![name(workload), templates.into(), created(workload, now)]
    },
};

fn scheduled(group: &Value) -> Value {
    let conditions = group["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|c| c["type"] == "PodGroupScheduled");
    found.map_or("".into(), |condition| condition["status"].clone())
}
