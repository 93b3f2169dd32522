//! Tests of the parts; `tests/oracle` checks whole searches.

use pellucid_cluster::preemptions::Cost;
use serde_json::json;

use super::*;

#[test]
fn arguments() {
    let default = Args::read(&Value::Null).expect("defaults");
    assert_eq!((default.wanted(5000), default.wanted(300), default.wanted(7)), (500, 100, 7));
    let all = Args::read(&json!({"minCandidateNodesPercentage": 100})).expect("in range");
    assert_eq!(all.wanted(5000), 5000);
    for bad in [
        json!({"minCandidateNodesPercentage": 101}),
        json!({"minCandidateNodesAbsolute": -1}),
        json!({"minCandidateNodesAbsolute": "many"}),
        json!({"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}),
    ] {
        assert_eq!(Args::read(&bad).expect_err("out of range").len(), 1, "{bad}");
    }
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
