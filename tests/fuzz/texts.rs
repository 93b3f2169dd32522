//! Quantities, selectors, and requests to switches.

use pellucid::model::quantity;
use pellucid::model::selector::LabelSelector;
use pellucid::recording::switches::{Flag, parse};

use crate::fuzz::fuzz;
use crate::fuzz::mutate::text;

fn good(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn quantities() {
    let good = good(&[
        "0",
        "1",
        "100m",
        "1.5",
        "12e3",
        "1E2",
        "64Gi",
        "128974848",
        "-1500m",
        "+2",
        "7n",
        "3Ei",
        "0.001",
        "1e-3",
    ]);
    fuzz(
        "quantities",
        |seed| text(seed, &good),
        |text| {
            let (milli, units) = (quantity::milli(text), quantity::units(text));
            assert_eq!(milli.is_ok(), units.is_ok(), "{text:?} is a quantity or it is none");
            let Ok(milli) = milli else { return false };
            let shown = quantity::format_milli(milli);
            assert_eq!(quantity::milli(&shown).ok(), Some(milli), "{text:?} is shown as {shown:?}");
            true
        },
    );
}

#[test]
fn selectors() {
    let good = good(&[
        "",
        "a=b",
        "a==b,c!=d",
        "tier in (front,back),!canary",
        "x notin (y)",
        "n>3,n<9",
        "example.com/key",
    ]);
    fuzz("selectors", |seed| text(seed, &good), |text| LabelSelector::parse(text).is_ok());
}

#[test]
fn requests_to_switches() {
    let good = good(&[
        r#"{"value": "5"}"#,
        r#"{"value": 20, "ttlSeconds": 60, "maxRecords": 10, "namespace": "a", "selector": "app=web"}"#,
        r#"{"topN": 3, "gang": "ns/g", "oneShot": true, "owner": "me"}"#,
        r#"{"value": true, "pod": "ns/p", "profile": "pellucid"}"#,
        r#"{"id": 7, "off": true}"#,
        r#"{"value": "info,pellucid=trace"}"#,
    ]);
    for flag in [Flag::Scores, Flag::Failures, Flag::Verbosity, Flag::Log] {
        fuzz(flag.as_str(), |seed| text(seed, &good), |text| parse(flag, text).is_ok());
    }
}
