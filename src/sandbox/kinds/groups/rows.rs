//! Rows of the catalogue for the native kinds of gangs.

use k8s_openapi::api::scheduling::v1alpha2 as scheduling;

use super::{GROUP, VERSION, admission, printers, validate};
use crate::kinds::catalog::{BASE, Row, STATUS};
use crate::kinds::decode;

pub(crate) const ROWS: &[Row] = &[
    Row {
        group: GROUP,
        version: VERSION,
        kind: "PodGroup",
        plural: "podgroups",
        subresources: &[STATUS],
        decode: Some(decode::typed::<scheduling::PodGroup>),
        defaults: admission::pod_group_defaults,
        validate: validate::pod_group,
        columns: printers::POD_GROUPS,
        empty: r#"{"spec":{"podGroupTemplateRef":null,"schedulingPolicy":{}},"status":{}}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        version: VERSION,
        kind: "Workload",
        plural: "workloads",
        decode: Some(decode::typed::<scheduling::Workload>),
        defaults: admission::workload_defaults,
        validate: validate::workload,
        columns: printers::WORKLOADS,
        empty: r#"{"spec":{"podGroupTemplates":null}}"#,
        ..BASE
    },
];
