//! The catalogue of built-in kinds, one row each. To add a kind, add a row.
//!
//! A row states only what differs from [`BASE`], an ordinary namespaced resource. The rules that rows name are in
//! `defaults.rs`, `validate.rs` and `printers.rs`. The rows of volumes and claims are in `storage/rows.rs`, those of
//! native gangs in `groups/rows.rs`, and those of accounts, rights and configuration in `installation.rs`, those of
//! admission webhooks in `webhooks/`.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1 as apps, batch::v1 as batch, coordination::v1 as coordination};
use k8s_openapi::api::{
    core::v1 as core, events::v1 as events, policy::v1 as policy, scheduling::v1 as scheduling,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use serde_json::Value;

use crate::kinds::annotations::{devices, machine};
use crate::kinds::crd;
use crate::kinds::decode;
use crate::kinds::defaults;
use crate::kinds::events as event_rules;
use crate::kinds::groups;
use crate::kinds::installation;
use crate::kinds::printers;
use crate::kinds::registry::{
    ALL_VERBS, Cell, Column, Decode, Form, Kind, Registry, STATUS_VERBS, Selectable, Subresource, Validate,
};
use crate::kinds::storage;
use crate::kinds::validate;
use crate::kinds::webhooks;

/// One row of the catalogue. What has no comment is as in [`Kind`].
pub(crate) struct Row {
    pub group: &'static str,
    pub version: &'static str,
    /// The kind's name. In lower case it is the singular name, which kubectl accepts.
    pub kind: &'static str,
    pub plural: &'static str,
    pub short: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub namespaced: bool,
    pub verbs: &'static [&'static str],
    pub subresources: &'static [Subresource],
    pub generation: bool,
    pub form: Form,
    pub decode: Option<Decode>,
    pub defaults: fn(&mut Value),
    pub validate: Validate,
    /// Selectable fields: label, JSON pointer, and value when absent.
    pub selectable: &'static [(&'static str, &'static str, &'static str)],
    pub columns: &'static [printers::Column],
    /// JSON of the object in a bookmark, apart from its metadata.
    pub empty: &'static str,
}

/// An ordinary namespaced resource of the core group.
pub(crate) const BASE: Row = Row {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short: &[],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
    generation: false,
    form: Form::Plain,
    decode: None,
    defaults: |_| {},
    validate: |_, _| Vec::new(),
    selectable: &[],
    columns: printers::PLAIN,
    empty: "{}",
};

/// The status subresource, written separately from the rest of the object.
pub(crate) const STATUS: Subresource =
    Subresource { name: "status", body: None, kind: "", verbs: STATUS_VERBS };
const SCALE: Subresource =
    Subresource { name: "scale", body: Some(("autoscaling", "v1")), kind: "Scale", verbs: STATUS_VERBS };
const BINDING: Subresource = Subresource { name: "binding", body: None, kind: "Binding", verbs: &["create"] };
const EVICTION: Subresource =
    Subresource { name: "eviction", body: Some(("policy", "v1")), kind: "Eviction", verbs: &["create"] };

const EVENT_FIELDS: &[(&str, &str, &str)] = &[
    ("involvedObject.kind", "/involvedObject/kind", ""),
    ("involvedObject.namespace", "/involvedObject/namespace", ""),
    ("involvedObject.name", "/involvedObject/name", ""),
    ("involvedObject.uid", "/involvedObject/uid", ""),
    ("involvedObject.apiVersion", "/involvedObject/apiVersion", ""),
    ("involvedObject.resourceVersion", "/involvedObject/resourceVersion", ""),
    ("involvedObject.fieldPath", "/involvedObject/fieldPath", ""),
    ("reason", "/reason", ""),
    ("reportingComponent", "/reportingComponent", ""),
    ("source", "/source/component", ""),
    ("type", "/type", ""),
    ("regarding.kind", "/involvedObject/kind", ""),
    ("regarding.namespace", "/involvedObject/namespace", ""),
    ("regarding.name", "/involvedObject/name", ""),
    ("regarding.uid", "/involvedObject/uid", ""),
    ("reportingController", "/reportingComponent", ""),
];

const NODE_EMPTY: &str = r#"{"spec":{},"status":{"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{
    "machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"",
    "kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}}"#;

const ROWS: &[Row] = &[
    Row {
        kind: "Namespace",
        plural: "namespaces",
        short: &["ns"],
        namespaced: false,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: &[Subresource { name: "finalize", body: None, kind: "", verbs: &["update"] }, STATUS],
        decode: Some(decode::typed::<core::Namespace>),
        defaults: defaults::namespace,
        selectable: &[("status.phase", "/status/phase", "")],
        columns: printers::NAMESPACES,
        empty: r#"{"spec":{},"status":{}}"#,
        ..BASE
    },
    Row {
        kind: "Node",
        plural: "nodes",
        short: &["no"],
        namespaced: false,
        subresources: &[STATUS],
        decode: Some(decode::typed::<core::Node>),
        defaults: defaults::node,
        validate: |node, _| machine::invalid(node).into_iter().chain(devices::invalid(node)).collect(),
        selectable: &[("spec.unschedulable", "/spec/unschedulable", "false")],
        columns: printers::NODES,
        empty: NODE_EMPTY,
        ..BASE
    },
    Row {
        kind: "Pod",
        plural: "pods",
        short: &["po"],
        categories: &["all"],
        subresources: &[BINDING, EVICTION, STATUS],
        generation: true,
        decode: Some(decode::typed::<core::Pod>),
        defaults: defaults::pod,
        validate: validate::pod,
        selectable: &[
            ("spec.nodeName", "/spec/nodeName", ""),
            ("status.phase", "/status/phase", ""),
            ("spec.schedulerName", "/spec/schedulerName", ""),
            ("spec.restartPolicy", "/spec/restartPolicy", ""),
            ("spec.serviceAccountName", "/spec/serviceAccountName", ""),
            ("spec.hostNetwork", "/spec/hostNetwork", "false"),
            ("status.podIP", "/status/podIP", ""),
            ("status.nominatedNodeName", "/status/nominatedNodeName", ""),
        ],
        columns: printers::PODS,
        empty: r#"{"spec":{"containers":null},"status":{}}"#,
        ..BASE
    },
    Row {
        kind: "Service",
        plural: "services",
        short: &["svc"],
        categories: &["all"],
        subresources: &[STATUS],
        decode: Some(decode::typed::<core::Service>),
        defaults: defaults::service,
        validate: validate::service,
        selectable: &[("spec.clusterIP", "/spec/clusterIP", ""), ("spec.type", "/spec/type", "")],
        columns: printers::SERVICES,
        empty: r#"{"spec":{},"status":{"loadBalancer":{}}}"#,
        ..BASE
    },
    Row {
        kind: "ReplicationController",
        plural: "replicationcontrollers",
        short: &["rc"],
        categories: &["all"],
        subresources: &[SCALE, STATUS],
        generation: true,
        decode: Some(decode::typed::<core::ReplicationController>),
        defaults: defaults::replication_controller,
        validate: validate::replication_controller,
        selectable: &[("status.replicas", "/status/replicas", "0")],
        columns: printers::REPLICA_SETS,
        empty: r#"{"spec":{},"status":{"replicas":0}}"#,
        ..BASE
    },
    Row {
        kind: "Event",
        plural: "events",
        short: &["ev"],
        decode: Some(decode::typed::<core::Event>),
        defaults: defaults::event,
        validate: event_rules::validate_core,
        selectable: EVENT_FIELDS,
        columns: printers::EVENTS,
        empty: r#"{"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,
            "reportingComponent":"","reportingInstance":""}"#,
        ..BASE
    },
    Row {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        short: &["ev"],
        form: Form::Event,
        decode: Some(decode::typed::<events::Event>),
        defaults: defaults::event,
        validate: event_rules::validate,
        selectable: EVENT_FIELDS,
        columns: printers::EVENTS,
        empty: r#"{"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,
            "deprecatedLastTimestamp":null}"#,
        ..BASE
    },
    Row {
        group: "apps",
        kind: "Deployment",
        plural: "deployments",
        short: &["deploy"],
        categories: &["all"],
        subresources: &[SCALE, STATUS],
        generation: true,
        decode: Some(decode::typed::<apps::Deployment>),
        defaults: defaults::deployment,
        validate: validate::workload,
        columns: printers::DEPLOYMENTS,
        empty: r#"{"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}"#,
        ..BASE
    },
    Row {
        group: "apps",
        kind: "ReplicaSet",
        plural: "replicasets",
        short: &["rs"],
        categories: &["all"],
        subresources: &[SCALE, STATUS],
        generation: true,
        decode: Some(decode::typed::<apps::ReplicaSet>),
        defaults: defaults::replica_set,
        validate: validate::workload,
        selectable: &[("status.replicas", "/status/replicas", "0")],
        columns: printers::REPLICA_SETS,
        empty: r#"{"spec":{"selector":null,"template":{"metadata":{}}},"status":{"replicas":0}}"#,
        ..BASE
    },
    Row {
        group: "apps",
        kind: "StatefulSet",
        plural: "statefulsets",
        short: &["sts"],
        categories: &["all"],
        subresources: &[SCALE, STATUS],
        generation: true,
        decode: Some(decode::typed::<apps::StatefulSet>),
        defaults: defaults::stateful_set,
        validate: validate::stateful_set,
        selectable: &[("status.successful", "/status/succeeded", "0")],
        columns: printers::STATEFUL_SETS,
        empty: r#"{"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}},
            "status":{"replicas":0}}"#,
        ..BASE
    },
    Row {
        group: "batch",
        kind: "Job",
        plural: "jobs",
        categories: &["all"],
        subresources: &[STATUS],
        generation: true,
        decode: Some(decode::typed::<batch::Job>),
        defaults: defaults::job,
        validate: validate::job,
        selectable: &[("status.successful", "/status/succeeded", "0")],
        columns: printers::JOBS,
        empty: r#"{"spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}}"#,
        ..BASE
    },
    Row {
        group: "policy",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        short: &["pdb"],
        subresources: &[STATUS],
        generation: true,
        decode: Some(decode::typed::<policy::PodDisruptionBudget>),
        defaults: defaults::budget,
        validate: validate::budget,
        columns: printers::BUDGETS,
        empty: r#"{"spec":{},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}}"#,
        ..BASE
    },
    Row {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        plural: "priorityclasses",
        short: &["pc"],
        namespaced: false,
        decode: Some(decode::typed::<scheduling::PriorityClass>),
        generation: true,
        defaults: defaults::priority_class,
        validate: validate::priority_class,
        columns: printers::PRIORITY_CLASSES,
        empty: r#"{"value":0}"#,
        ..BASE
    },
    Row {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        decode: Some(decode::typed::<coordination::Lease>),
        defaults: defaults::lease,
        columns: printers::LEASES,
        empty: r#"{"spec":{}}"#,
        ..BASE
    },
    Row {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        subresources: &[STATUS],
        generation: true,
        decode: Some(decode::typed::<apiextensions::CustomResourceDefinition>),
        defaults: crd::defaults,
        validate: crd::validate,
        columns: printers::DEFINITIONS,
        empty: r#"{"spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},
            "status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}}"#,
        ..BASE
    },
];

/// Returns a registry of all built-in kinds, with the native kinds of gangs if `has_gangs` is set.
pub(crate) fn registry(has_gangs: bool) -> Registry {
    let mut registry = Registry::default();
    let gangs = if has_gangs { groups::ROWS } else { &[] };
    for row in ROWS.iter().chain(installation::ROWS).chain(webhooks::ROWS).chain(storage::ROWS).chain(gangs) {
        registry.insert(Arc::new(kind(row)));
    }
    registry
}

pub(crate) fn kind(row: &Row) -> Kind {
    let storage = match row.form {
        Form::Event => "events".to_owned(),
        Form::Plain if row.group.is_empty() => row.plural.to_owned(),
        Form::Plain => format!("{}.{}", row.plural, row.group),
    };
    let selectable = row.selectable.iter().map(|(label, pointer, default)| Selectable {
        label: (*label).into(),
        path: pointer.split('/').skip(1).map(Into::into).collect(),
        default: (*default).into(),
    });
    let columns = row.columns.iter().map(|column| Column {
        name: column.name.into(),
        kind: column.kind.into(),
        format: if column.name == "Name" { "name".into() } else { "".into() },
        about: column.about.into(),
        priority: column.priority,
        cell: Cell::BuiltIn(column),
    });
    Kind {
        group: row.group.into(),
        version: row.version.into(),
        kind: row.kind.into(),
        plural: row.plural.into(),
        singular: row.kind.to_lowercase().into(),
        short_names: row.short.iter().map(|s| (*s).into()).collect(),
        categories: row.categories.iter().map(|s| (*s).into()).collect(),
        namespaced: row.namespaced,
        storage: storage.into(),
        verbs: row.verbs,
        subresources: row.subresources.to_vec(),
        generation: row.generation,
        form: row.form,
        decode: row.decode,
        defaults: row.defaults,
        validate: row.validate,
        selectable: selectable.collect(),
        columns: columns.collect(),
        empty: serde_json::from_str(row.empty).expect("the catalogue holds valid JSON"),
        schema: None,
    }
}
