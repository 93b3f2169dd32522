//! Rows of the catalogue for the kinds of storage.

use k8s_openapi::api::{core::v1 as core, storage::v1 as storage};

use super::{defaults, printers, validate};
use crate::kinds::catalog::{BASE, Row, STATUS};
use crate::kinds::decode;

const GROUP: &str = "storage.k8s.io";

pub(crate) const ROWS: &[Row] = &[
    Row {
        kind: "PersistentVolume",
        plural: "persistentvolumes",
        singular: "persistentvolume",
        short: &["pv"],
        namespaced: false,
        subresources: &[STATUS],
        decode: Some(decode::typed::<core::PersistentVolume>),
        defaults: defaults::volume,
        validate: validate::volume,
        selectable: &[("name", "/metadata/name", "")],
        printer: &printers::VOLUMES,
        empty: r#"{"spec":{},"status":{}}"#,
        ..BASE
    },
    Row {
        kind: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        singular: "persistentvolumeclaim",
        short: &["pvc"],
        subresources: &[STATUS],
        decode: Some(decode::typed::<core::PersistentVolumeClaim>),
        defaults: defaults::claim,
        validate: validate::claim,
        selectable: &[("name", "/metadata/name", "")],
        printer: &printers::CLAIMS,
        empty: r#"{"spec":{"resources":{}},"status":{}}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "StorageClass",
        plural: "storageclasses",
        singular: "storageclass",
        short: &["sc"],
        namespaced: false,
        decode: Some(decode::typed::<storage::StorageClass>),
        defaults: defaults::class,
        validate: validate::class,
        printer: &printers::CLASSES,
        empty: r#"{"provisioner":""}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "CSINode",
        plural: "csinodes",
        singular: "csinode",
        namespaced: false,
        decode: Some(decode::typed::<storage::CSINode>),
        defaults: defaults::csi_node,
        validate: validate::csi_node,
        printer: &printers::CSI_NODES,
        empty: r#"{"spec":{"drivers":null}}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "CSIDriver",
        plural: "csidrivers",
        singular: "csidriver",
        namespaced: false,
        decode: Some(decode::typed::<storage::CSIDriver>),
        defaults: defaults::csi_driver,
        printer: &printers::CSI_DRIVERS,
        empty: r#"{"spec":{}}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "CSIStorageCapacity",
        plural: "csistoragecapacities",
        singular: "csistoragecapacity",
        decode: Some(decode::typed::<storage::CSIStorageCapacity>),
        validate: validate::capacity,
        printer: &printers::CAPACITIES,
        empty: r#"{"storageClassName":""}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "VolumeAttachment",
        plural: "volumeattachments",
        singular: "volumeattachment",
        namespaced: false,
        subresources: &[STATUS],
        decode: Some(decode::typed::<storage::VolumeAttachment>),
        defaults: defaults::attachment,
        validate: validate::attachment,
        printer: &printers::ATTACHMENTS,
        empty: r#"{"spec":{"attacher":"","source":{},"nodeName":""},"status":{"attached":false}}"#,
        ..BASE
    },
];
