//! Tests of the arguments; `tests/oracle` checks whole searches.

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
