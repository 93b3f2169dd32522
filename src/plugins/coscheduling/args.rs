//! Arguments (`CoschedulingArgs`): the fields of scheduler-plugins, those of Koordinator, and our own additions.

use std::time::Duration;

use pellucid_framework::gangs::GangRules;
use pellucid_framework::plugin::ArgsError;
use serde_json::{Value, json};

use pellucid_framework::args::{Problems, field};
use pellucid_model::duration;
use pellucid_model::gang::MatchPolicy;

/// Name, default, minimum and maximum of each field.
const FIELDS: [(&str, i64, i64, i64); 7] = [
    ("permitWaitingTimeSeconds", 60, 0, MOST),
    ("podGroupBackoffSeconds", 0, 0, MOST),
    ("podGroupRejectPercentage", 10, 0, 100),
    ("gangExpirationSeconds", 600, 0, MOST),
    ("controllerWorkers", 1, 0, 64),
    ("maxGroupGangs", 100, 1, 10_000),
    ("maxGroupMembers", 10_000, 1, 1_000_000),
];
/// Upper limit for durations: about thirty years, in seconds.
const MOST: i64 = 1_000_000_000;
/// Accepted without effect: of scheduler-plugins, whose last releases do so too, and of Koordinator.
const UNUSED: [&str; 2] = ["deniedPGExpirationTimeSeconds", "skipCheckScheduleCycle"];
/// Koordinator's, about gangs of its dialect.
const TIMEOUT: &str = "defaultTimeout";
const MATCH_POLICY: &str = "defaultMatchPolicy";
const POLICIES: [MatchPolicy; 3] =
    [MatchPolicy::OnlyWaiting, MatchPolicy::WaitingAndRunning, MatchPolicy::OnceSatisfied];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Args {
    /// Values of [`FIELDS`], in the same order.
    values: [i64; FIELDS.len()],
    wait: Option<Duration>,
    policy: Option<MatchPolicy>,
}

impl Args {
    pub(super) fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        let mut problems = Problems::default();
        let own = FIELDS.iter().map(|(name, ..)| *name);
        let known: Vec<&str> = own.chain(UNUSED).chain([TIMEOUT, MATCH_POLICY]).collect();
        let object = problems.object("", args, &known);
        let mut values = FIELDS.map(|(_, default, ..)| default);
        for (at, (name, default, least, most)) in FIELDS.into_iter().enumerate() {
            let value = object.and_then(|o| o.get(name)).filter(|v| !v.is_null());
            let read = value.map_or(Some(default), Value::as_i64).filter(|n| (least..=most).contains(n));
            match read {
                Some(n) => values[at] = n,
                None => {
                    let wanted = format!("must be an integer from {least} to {most}");
                    problems.add(name, wanted, value.unwrap_or(&Value::Null));
                }
            }
        }
        let given = |name| object.map_or(&Value::Null, |fields| field(fields, name));
        let wait = given(TIMEOUT);
        let read = |text| duration::parse(text).filter(|wait| !wait.is_zero());
        let wait = problems.text(TIMEOUT, wait).map(|text| read(text).ok_or(wait));
        let policy = given(MATCH_POLICY);
        let read = |text| POLICIES.into_iter().find(|policy| policy.as_str() == text);
        let policy = problems.text(MATCH_POLICY, policy).map(|text| read(text).ok_or(policy));
        if let Some(Err(wrong)) = wait {
            problems.add(TIMEOUT, "must be a duration above zero", wrong);
        }
        if let Some(Err(wrong)) = policy {
            problems.add(MATCH_POLICY, "must be only-waiting, waiting-and-running or once-satisfied", wrong);
        }
        problems.into_result()?;
        Ok(Self { values, wait: wait.and_then(Result::ok), policy: policy.and_then(Result::ok) })
    }

    pub(super) fn to_value(self) -> Value {
        let fields = FIELDS.iter().zip(self.values).map(|((name, ..), value)| (*name, json!(value)));
        let wait = self.wait.map(|wait| (TIMEOUT, json!(duration::show(wait))));
        let policy = self.policy.map(|policy| (MATCH_POLICY, json!(policy.as_str())));
        let all = fields.chain(wait).chain(policy);
        Value::Object(all.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    pub(super) fn rules(self) -> GangRules {
        let Self { values: [wait, backoff, percentage, expiration, workers, gangs, members], .. } = self;
        let number = |n: i64| u32::try_from(n).unwrap_or(u32::MAX);
        let seconds = |n: i64| Duration::from_secs(n.unsigned_abs());
        GangRules {
            permit_wait: seconds(wait),
            backoff: seconds(backoff),
            reject_percentage: u8::try_from(percentage).unwrap_or(100),
            // An expiration of 0 would make the sweep run continuously.
            expiration: seconds(expiration.max(1)),
            max_group_gangs: number(gangs),
            max_group_members: number(members),
            gang_wait: self.wait,
            match_policy: self.policy,
            writes_status: workers > 0,
        }
    }
}

pub(super) fn schema() -> Value {
    let number = |default: i64, least: i64, most: i64| json!({"type": "integer", "minimum": least, "maximum": most, "default": default});
    let of_field = |(name, default, least, most): &(&str, i64, i64, i64)| {
        ((*name).to_owned(), number(*default, *least, *most))
    };
    let properties = FIELDS.iter().map(of_field);
    let unused =
        UNUSED.iter().map(|name| ((*name).to_owned(), json!({"description": "accepted, without effect"})));
    let texts = [
        (TIMEOUT, json!({"type": "string", "default": "600s"})),
        (
            MATCH_POLICY,
            json!({"type": "string", "enum": POLICIES.map(MatchPolicy::as_str), "default": "once-satisfied"}),
        ),
    ];
    let texts = texts.into_iter().map(|(name, schema)| (name.to_owned(), schema));
    let properties: serde_json::Map<String, Value> = properties.chain(unused).chain(texts).collect();
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_scheduler_plugins_defaults_and_limits() {
        assert_eq!(Args::read(&Value::Null).map(Args::rules), Ok(GangRules::default()));
        let given =
            json!({"permitWaitingTimeSeconds": 5, "podGroupRejectPercentage": 0, "controllerWorkers": 0});
        let rules = Args::read(&given).expect("readable").rules();
        assert_eq!(
            (rules.permit_wait.as_secs(), rules.reject_percentage, rules.writes_status),
            (5, 0, false)
        );
        assert!(Args::read(&json!({"deniedPGExpirationTimeSeconds": 3})).is_ok());
        let given = json!({"maxGroupGangs": 7, "maxGroupMembers": 20_000});
        let rules = Args::read(&given).expect("readable").rules();
        assert_eq!((rules.max_group_gangs, rules.max_group_members), (7, 20_000));
        let bad = json!({"podGroupRejectPercentage": 101, "podGroupBackoffSeconds": "1", "maxGroupGangs": 0});
        let fields: Vec<String> =
            Args::read(&bad).expect_err("refused").into_iter().map(|e| e.field).collect();
        assert_eq!(fields, ["podGroupBackoffSeconds", "podGroupRejectPercentage", "maxGroupGangs"]);
    }

    #[test]
    fn arguments_of_koordinator_are_about_gangs_of_its_dialect() {
        let given = json!({"defaultTimeout": "1m30s", "defaultMatchPolicy": "only-waiting", "skipCheckScheduleCycle": true});
        let args = Args::read(&given).expect("readable");
        let rules = args.rules();
        assert_eq!(
            (rules.gang_wait, rules.match_policy),
            (Some(Duration::from_secs(90)), Some(MatchPolicy::OnlyWaiting))
        );
        assert_eq!(Args::read(&args.to_value()), Ok(args));
        let bad = json!({"defaultTimeout": "0s", "defaultMatchPolicy": "sometimes"});
        let fields: Vec<String> =
            Args::read(&bad).expect_err("refused").into_iter().map(|e| e.field).collect();
        assert_eq!(fields, ["defaultTimeout", "defaultMatchPolicy"]);
    }
}
