//! Tests of the order among victims and among candidates; `tests/oracle` checks whole searches.

use std::sync::Arc;

use pellucid_cluster::preemptions::Cost;
use pellucid_model::{Pod, PodId, PodKey};

use super::pick;
use super::search::{Target, importance};

#[test]
fn of_equal_pods_the_last_number_is_the_most_important() {
    let target =
        |name: &str| Target::new(PodId(0), Arc::new(Pod { key: PodKey::new("d", name), ..Pod::default() }));
    let mut targets = ["w-2", "w-10", "w-9", "w-1"].map(target);
    targets.sort_by(importance);
    assert_eq!(targets.map(|target| target.pod.key.name.to_string()), ["w-10", "w-9", "w-2", "w-1"]);
}

#[test]
fn the_first_criterion_that_differs_decides() {
    let base = Cost {
        budget_violations: 1,
        highest_priority: 5,
        priority_sum: 10,
        victims: 2,
        broken_gangs: 1,
        earliest_start: Some(100),
    };
    let better = [
        Cost { budget_violations: 0, highest_priority: 9, ..base },
        Cost { highest_priority: 4, priority_sum: 99, ..base },
        Cost { priority_sum: 9, victims: 9, ..base },
        Cost { victims: 1, broken_gangs: 2, earliest_start: Some(1), ..base },
        Cost { broken_gangs: 0, earliest_start: Some(1), ..base },
        Cost { earliest_start: Some(101), ..base },
        Cost { earliest_start: None, ..base },
    ];
    let named: Vec<&str> = better.iter().map(|b| pick::decided_by(b, &base)).collect();
    assert_eq!(
        named,
        [
            "fewest budget violations",
            "lowest priority of the most important victim",
            "smallest sum of priorities",
            "fewest victims",
            "fewest gangs that lose their quorum",
            "latest start of the most important victims",
            "latest start of the most important victims",
        ]
    );
    for cost in &better {
        assert!(pick::by_cost(cost, &base).is_lt(), "{cost:?}");
    }
    assert!(pick::decided_by(&base, &base).starts_with("all equal"));
}
