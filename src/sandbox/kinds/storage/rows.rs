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
        short: &["pv"],
        namespaced: false,
        subresources: &[STATUS],
        decode: Some(decode::typed::<core::PersistentVolume>),
        defaults: defaults::volume,
        validate: validate::volume,
        selectable: &[("name", "/metadata/name", "")],
        columns: printers::VOLUMES,
        empty: r#"{"spec":{},"status":{}}"#,
        ..BASE
    },
    Row {
        kind: "PersistentVolumeClaim",
        plural: "persistentvolumeclaims",
        short: &["pvc"],
        subresources: &[STATUS],
        decode: Some(decode::typed::<core::PersistentVolumeClaim>),
        defaults: defaults::claim,
        validate: validate::claim,
        selectable: &[("name", "/metadata/name", "")],
        columns: printers::CLAIMS,
        empty: r#"{"spec":{"resources":{}},"status":{}}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "StorageClass",
        plural: "storageclasses",
        short: &["sc"],
        namespaced: false,
        decode: Some(decode::typed::<storage::StorageClass>),
        defaults: defaults::class,
        validate: validate::class,
        columns: printers::CLASSES,
        empty: r#"{"provisioner":""}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "CSINode",
        plural: "csinodes",
        namespaced: false,
        decode: Some(decode::typed::<storage::CSINode>),
        defaults: defaults::csi_node,
        validate: validate::csi_node,
        columns: printers::CSI_NODES,
        empty: r#"{"spec":{"drivers":null}}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "CSIDriver",
        plural: "csidrivers",
        namespaced: false,
        decode: Some(decode::typed::<storage::CSIDriver>),
        defaults: defaults::csi_driver,
        columns: printers::CSI_DRIVERS,
        empty: r#"{"spec":{}}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "CSIStorageCapacity",
        plural: "csistoragecapacities",
        decode: Some(decode::typed::<storage::CSIStorageCapacity>),
        validate: validate::capacity,
        columns: printers::CAPACITIES,
        empty: r#"{"storageClassName":""}"#,
        ..BASE
    },
    Row {
        group: GROUP,
        kind: "VolumeAttachment",
        plural: "volumeattachments",
        namespaced: false,
        subresources: &[STATUS],
        decode: Some(decode::typed::<storage::VolumeAttachment>),
        defaults: defaults::attachment,
        validate: validate::attachment,
        columns: printers::ATTACHMENTS,
        empty: r#"{"spec":{"attacher":"","source":{},"nodeName":""},"status":{"attached":false}}"#,
        ..BASE
    },
];
