//! The catalogue of built-in kinds, one row each. To add a kind, add a row.
//!
//! A row states only what differs from [`BASE`], an ordinary namespaced resource. The rules that rows name are in
//! `defaults.rs`, `validate.rs` and `printers.rs`. The rows of volumes and claims are in `storage/rows.rs`, those of
//! native gangs in `groups/rows.rs`.

use std::sync::Arc;

use k8s_openapi::api::{apps::v1 as apps, batch::v1 as batch, coordination::v1 as coordination};
use k8s_openapi::api::{
    core::v1 as core, events::v1 as events, policy::v1 as policy, scheduling::v1 as scheduling,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use serde_json::Value;

use crate::kinds::crd;
use crate::kinds::decode;
use crate::kinds::defaults;
use crate::kinds::events as event_rules;
use crate::kinds::groups;
use crate::kinds::printers;
use crate::kinds::registry::{
    ALL_VERBS, Cells, Column, Decode, Form, Kind, Registry, STATUS_VERBS, Selectable, Subresource, Validate,
};
use crate::kinds::storage;
use crate::kinds::validate;

/// One row of the catalogue.
pub(crate) struct Row {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// The kind's name.
    pub kind: &'static str,
    /// The resource's name in paths.
    pub plural: &'static str,
    /// The singular name, which kubectl accepts.
    pub singular: &'static str,
    /// Short names, such as `po`.
    pub short: &'static [&'static str],
    /// Categories, such as `all`.
    pub categories: &'static [&'static str],
    /// Whether objects are namespaced.
    pub namespaced: bool,
    /// Supported verbs.
    pub verbs: &'static [&'static str],
    /// Subresources of an object.
    pub subresources: &'static [Subresource],
    /// Whether `metadata.generation` counts changes of the spec.
    pub generation: bool,
    /// Whether the served form differs from the stored one.
    pub form: Form,
    /// Decodes an object into its Kubernetes type, to find wrong types and unknown fields.
    pub decode: Option<Decode>,
    /// Fills in defaults.
    pub defaults: fn(&mut Value),
    /// Validates an object.
    pub validate: Validate,
    /// Selectable fields: label, JSON pointer, and value when absent.
    pub selectable: &'static [(&'static str, &'static str, &'static str)],
    /// Columns of `kubectl get`.
    pub printer: &'static printers::Printer,
    /// JSON of the object in a bookmark, apart from its metadata.
    pub empty: &'static str,
}

/// An ordinary namespaced resource of the core group.
pub(crate) const BASE: Row = Row {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    singular: "",
    short: &[],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    subresources: &[],
    generation: false,
    form: Form::Plain,
    decode: None,
    defaults: defaults::nothing,
    validate: validate::nothing,
    selectable: &[],
    printer: &printers::PLAIN,
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
        singular: "namespace",
        short: &["ns"],
        namespaced: false,
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        subresources: &[Subresource { name: "finalize", body: None, kind: "", verbs: &["update"] }, STATUS],
        decode: Some(decode::typed::<core::Namespace>),
        defaults: defaults::namespace,
        selectable: &[("status.phase", "/status/phase", "")],
        printer: &printers::NAMESPACES,
        empty: r#"{"spec":{},"status":{}}"#,
        ..BASE
    },
    Row {
        kind: "Node",
        plural: "nodes",
        singular: "node",
        short: &["no"],
        namespaced: false,
        subresources: &[STATUS],
        decode: Some(decode::typed::<core::Node>),
        defaults: defaults::node,
        selectable: &[("spec.unschedulable", "/spec/unschedulable", "false")],
        printer: &printers::NODES,
        empty: NODE_EMPTY,
        ..BASE
    },
    Row {
        kind: "Pod",
        plural: "pods",
        singular: "pod",
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
        printer: &printers::PODS,
        empty: r#"{"spec":{"containers":null},"status":{}}"#,
        ..BASE
    },
    Row {
        kind: "Service",
        plural: "services",
        singular: "service",
        short: &["svc"],
        categories: &["all"],
        subresources: &[STATUS],
        decode: Some(decode::typed::<core::Service>),
        defaults: defaults::service,
        validate: validate::service,
        selectable: &[("spec.clusterIP", "/spec/clusterIP", ""), ("spec.type", "/spec/type", "")],
        printer: &printers::SERVICES,
        empty: r#"{"spec":{},"status":{"loadBalancer":{}}}"#,
        ..BASE
    },
    Row {
        kind: "ReplicationController",
        plural: "replicationcontrollers",
        singular: "replicationcontroller",
        short: &["rc"],
        categories: &["all"],
        subresources: &[SCALE, STATUS],
        generation: true,
        decode: Some(decode::typed::<core::ReplicationController>),
        defaults: defaults::replication_controller,
        validate: validate::replication_controller,
        selectable: &[("status.replicas", "/status/replicas", "0")],
        printer: &printers::REPLICA_SETS,
        empty: r#"{"spec":{},"status":{"replicas":0}}"#,
        ..BASE
    },
    Row {
        kind: "Event",
        plural: "events",
        singular: "event",
        short: &["ev"],
        decode: Some(decode::typed::<core::Event>),
        defaults: defaults::event,
        validate: event_rules::validate_core,
        selectable: EVENT_FIELDS,
        printer: &printers::EVENTS,
        empty: r#"{"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,
            "reportingComponent":"","reportingInstance":""}"#,
        ..BASE
    },
    Row {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        singular: "event",
        short: &["ev"],
        form: Form::Event,
        decode: Some(decode::typed::<events::Event>),
        defaults: defaults::event,
        validate: event_rules::validate,
        selectable: EVENT_FIELDS,
        printer: &printers::EVENTS,
        empty: r#"{"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,
            "deprecatedLastTimestamp":null}"#,
        ..BASE
    },
    Row {
        group: "apps",
        kind: "Deployment",
        plural: "deployments",
        singular: "deployment",
        short: &["deploy"],
        categories: &["all"],
        subresources: &[SCALE, STATUS],
        generation: true,
        decode: Some(decode::typed::<apps::Deployment>),
        defaults: defaults::deployment,
        validate: validate::workload,
        printer: &printers::DEPLOYMENTS,
        empty: r#"{"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}"#,
        ..BASE
    },
    Row {
        group: "apps",
        kind: "ReplicaSet",
        plural: "replicasets",
        singular: "replicaset",
        short: &["rs"],
        categories: &["all"],
        subresources: &[SCALE, STATUS],
        generation: true,
        decode: Some(decode::typed::<apps::ReplicaSet>),
        defaults: defaults::replica_set,
        validate: validate::workload,
        selectable: &[("status.replicas", "/status/replicas", "0")],
        printer: &printers::REPLICA_SETS,
        empty: r#"{"spec":{"selector":null,"template":{"metadata":{}}},"status":{"replicas":0}}"#,
        ..BASE
    },
    Row {
        group: "apps",
        kind: "StatefulSet",
        plural: "statefulsets",
        singular: "statefulset",
        short: &["sts"],
        categories: &["all"],
        subresources: &[SCALE, STATUS],
        generation: true,
        decode: Some(decode::typed::<apps::StatefulSet>),
        defaults: defaults::stateful_set,
        validate: validate::stateful_set,
        selectable: &[("status.successful", "/status/succeeded", "0")],
        printer: &printers::STATEFUL_SETS,
        empty: r#"{"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{}},
            "status":{"replicas":0}}"#,
        ..BASE
    },
    Row {
        group: "batch",
        kind: "Job",
        plural: "jobs",
        singular: "job",
        categories: &["all"],
        subresources: &[STATUS],
        generation: true,
        decode: Some(decode::typed::<batch::Job>),
        defaults: defaults::job,
        validate: validate::job,
        selectable: &[("status.successful", "/status/succeeded", "0")],
        printer: &printers::JOBS,
        empty: r#"{"spec":{"template":{"metadata":{},"spec":{"containers":null}}},"status":{}}"#,
        ..BASE
    },
    Row {
        group: "policy",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        singular: "poddisruptionbudget",
        short: &["pdb"],
        subresources: &[STATUS],
        generation: true,
        decode: Some(decode::typed::<policy::PodDisruptionBudget>),
        defaults: defaults::budget,
        validate: validate::budget,
        printer: &printers::BUDGETS,
        empty: r#"{"spec":{},"status":{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}}"#,
        ..BASE
    },
    Row {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        plural: "priorityclasses",
        singular: "priorityclass",
        short: &["pc"],
        namespaced: false,
        decode: Some(decode::typed::<scheduling::PriorityClass>),
        generation: true,
        defaults: defaults::priority_class,
        validate: validate::priority_class,
        printer: &printers::PRIORITY_CLASSES,
        empty: r#"{"value":0}"#,
        ..BASE
    },
    Row {
        group: "coordination.k8s.io",
        kind: "Lease",
        plural: "leases",
        singular: "lease",
        decode: Some(decode::typed::<coordination::Lease>),
        defaults: defaults::lease,
        printer: &printers::LEASES,
        empty: r#"{"spec":{}}"#,
        ..BASE
    },
    Row {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        singular: "customresourcedefinition",
        short: &["crd", "crds"],
        categories: &["api-extensions"],
        namespaced: false,
        subresources: &[STATUS],
        generation: true,
        decode: Some(decode::typed::<apiextensions::CustomResourceDefinition>),
        defaults: crd::defaults,
        validate: crd::validate,
        printer: &printers::DEFINITIONS,
        empty: r#"{"spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},
            "status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}}"#,
        ..BASE
    },
];

/// Returns a registry of all built-in kinds, with the native kinds of gangs if `has_gangs` is set.
pub(crate) fn registry(has_gangs: bool) -> Registry {
    let mut registry = Registry::default();
    let gangs = if has_gangs { groups::ROWS } else { &[] };
    for row in ROWS.iter().chain(storage::ROWS).chain(gangs) {
        registry.insert(Arc::new(kind(row)));
    }
    registry
}

fn kind(row: &Row) -> Kind {
    let storage = match row.form {
        Form::Event => "events".to_owned(),
        Form::Plain if row.group.is_empty() => row.plural.to_owned(),
        Form::Plain => format!("{}.{}", row.plural, row.group),
    };
    let selectable = row.selectable.iter().map(|(label, pointer, default)| Selectable {
        label: (*label).into(),
        pointer: (*pointer).into(),
        default: (*default).into(),
    });
    let columns = row.printer.columns.iter().map(|(name, kind, priority, about)| Column {
        name: (*name).into(),
        kind: (*kind).into(),
        format: if *name == "Name" { "name".into() } else { "".into() },
        about: (*about).into(),
        priority: *priority,
    });
    Kind {
        group: row.group.into(),
        version: row.version.into(),
        kind: row.kind.into(),
        plural: row.plural.into(),
        singular: row.singular.into(),
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
        cells: Cells::Function(row.printer.cells),
        empty: serde_json::from_str(row.empty).expect("the catalogue holds valid JSON"),
        schema: None,
    }
}
