//! Columns of `kubectl get` for the native kinds of gangs.

use crate::fields;
use crate::kinds::printers::{AGE, Column, NAME, count, own, value};

pub(crate) const POD_GROUPS: &[Column] = &[
    NAME,
    own("Policy", "How the pods are scheduled: gang or basic.", |group, _| {
        if group["spec"]["schedulingPolicy"]["gang"].is_object() { "gang".into() } else { "basic".into() }
    }),
    value("MinCount", "integer", "/spec/schedulingPolicy/gang/minCount", "Pods that make a quorum."),
    own("Scheduled", "Whether the quorum has its nodes.", |group, _| {
        let found = fields::condition(group, "PodGroupScheduled");
        found.map_or("".into(), |condition| condition["status"].clone())
    }),
    AGE,
];

pub(crate) const WORKLOADS: &[Column] =
    &[NAME, count("Templates", "/spec/podGroupTemplates", "Templates of pod groups."), AGE];
