//! Decisions of the real Koordinator, with its state and scores: ours must agree.
//!
//! `PELLUCID_KOORDINATOR_ORACLE_DIR` names a directory with other case files of the same format.

#[path = "../common/mod.rs"]
mod common;
mod devices;
mod deviceshare;
mod elasticquota;
mod loadaware;
mod loadaware_model;
mod loadaware_telling;
mod numa;
mod numa_histories;
mod reservation;
mod reservation_alignment;
mod reservation_card_histories;
mod reservation_cluster;
mod reservation_cpu_histories;
mod reservation_histories;
mod reservation_ignoring;
mod reservation_operating_pods;
mod reservation_rules;
mod reservation_shares;
mod reservation_taking_over;
mod reservation_telling;

use common::cases::Cases;
use pellucid::framework::profile::Profile;
use pellucid::plugins::registry;
use serde_json::{Value, json};

/// The recorded cases.
const CASES: Cases = Cases { variable: "PELLUCID_KOORDINATOR_ORACLE_DIR", own: "tests/data/koordinator" };

/// Returns whether the cases are those of this repository.
fn own_copy() -> bool {
    CASES.are_own()
}

/// Reads a file of cases.
fn lines(name: &str) -> Vec<Value> {
    CASES.lines(name)
}

/// Returns the profile that enables plugins at all their points, as entries of `multiPoint`, with arguments of one.
fn profile_of(enabled: &[Value], name: &str, args: &Value) -> Profile {
    let config = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{
            "schedulerName": "koord-scheduler",
            "plugins": {"multiPoint": {"enabled": enabled}},
            "pluginConfig": [{"name": name, "args": args}],
        }],
    });
    let mut parsed =
        pellucid::config::parse(&config.to_string(), "case", &registry()).expect("valid arguments");
    parsed.profiles.remove(0)
}
