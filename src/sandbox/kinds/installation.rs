//! Rows of the catalogue for what installing a program takes besides its workloads: configuration, accounts, rights and
//! network policies.
//!
//! They are stored and served. Nothing acts on them: the sandbox has no network, and who may do what is not decided by
//! these roles.

use k8s_openapi::api::{core::v1 as core, networking::v1 as networking, rbac::v1 as rbac};

use crate::kinds::catalog::{BASE, Row};
use crate::kinds::decode;

const RBAC: &str = "rbac.authorization.k8s.io";
const ROLE: &str = r#"{"rules":null}"#;
const ROLE_BINDING: &str = r#"{"roleRef":{"apiGroup":"","kind":"","name":""}}"#;

pub(crate) const ROWS: &[Row] = &[
    Row {
        kind: "ConfigMap",
        plural: "configmaps",
        short: &["cm"],
        decode: Some(decode::typed::<core::ConfigMap>),
        ..BASE
    },
    Row {
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short: &["sa"],
        decode: Some(decode::typed::<core::ServiceAccount>),
        ..BASE
    },
    Row {
        group: RBAC,
        kind: "ClusterRole",
        plural: "clusterroles",
        namespaced: false,
        decode: Some(decode::typed::<rbac::ClusterRole>),
        empty: ROLE,
        ..BASE
    },
    Row {
        group: RBAC,
        kind: "ClusterRoleBinding",
        plural: "clusterrolebindings",
        namespaced: false,
        decode: Some(decode::typed::<rbac::ClusterRoleBinding>),
        empty: ROLE_BINDING,
        ..BASE
    },
    Row {
        group: RBAC,
        kind: "Role",
        plural: "roles",
        decode: Some(decode::typed::<rbac::Role>),
        empty: ROLE,
        ..BASE
    },
    Row {
        group: RBAC,
        kind: "RoleBinding",
        plural: "rolebindings",
        decode: Some(decode::typed::<rbac::RoleBinding>),
        empty: ROLE_BINDING,
        ..BASE
    },
    Row {
        group: "networking.k8s.io",
        kind: "NetworkPolicy",
        plural: "networkpolicies",
        short: &["netpol"],
        generation: true,
        decode: Some(decode::typed::<networking::NetworkPolicy>),
        empty: r#"{"spec":{"podSelector":{}}}"#,
        ..BASE
    },
];
