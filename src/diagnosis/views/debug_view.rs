//! `/apis/v1/debug`: the current switches, and what diagnosis has cost.

use pellucid_api::rest::debug::{Debug, DiagnosisCost};
use pellucid_cycle::Snapshot;
use pellucid_model::Now;
use pellucid_recording::meter::{FREE, WINDOW};

use crate::meta::of_snapshot;

/// Returns what is recorded, the audit of switch changes, and the costs.
pub(crate) fn debug(snapshot: &Snapshot, now: Now) -> Debug {
    let active = snapshot.switches.active(None, now);
    let (audit, audit_dropped) = snapshot.switches.audit(now);
    Debug { meta: of_snapshot(snapshot, now), active, audit, audit_dropped, cost: cost(snapshot, now) }
}

fn cost(snapshot: &Snapshot, now: Now) -> DiagnosisCost {
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let costs = &snapshot.costs;
    let (cycle, l1) = costs.recent(now.monotonic.as_secs());
    let percent = (cycle > 0).then(|| (1000.0 * l1 as f64 / cycle as f64).round() / 10.0);
    let mut body = DiagnosisCost {
        cycle_seconds: seconds(costs.cycle),
        l0_seconds: seconds(costs.l0),
        l1_seconds: seconds(costs.l1),
        budget_percent: snapshot.switches.budget(),
        window_seconds: WINDOW as u32,
        free_seconds: FREE.as_secs_f64(),
        recent_cycle_seconds: seconds(cycle),
        recent_l1_seconds: seconds(l1),
        recent_l1_percent: percent,
        note: String::new(),
    };
    body.note = note(&body);
    body
}

/// Says what recording took within the window, of what, and whether that turns anything off.
fn note(cost: &DiagnosisCost) -> String {
    let (window, budget) = (cost.window_seconds, cost.budget_percent);
    let Some(percent) = cost.recent_l1_percent else {
        return format!("No attempt was recorded within the last {window} s.");
    };
    let ms = |seconds: f64| format!("{:.1} ms", 1000.0 * seconds);
    let (l1, cycle) = (ms(cost.recent_l1_seconds), ms(cost.recent_cycle_seconds));
    let took = format!("Within the last {window} s recording took {l1} of {cycle} of attempts, {percent} %");
    if percent <= f64::from(budget) {
        return format!("{took}: within the budget of {budget} %.");
    }
    let free = cost.free_seconds;
    if cost.recent_l1_seconds <= free {
        let free = ms(free);
        return format!(
            "{took}. That is more than the budget of {budget} %, which counts only once recording takes more than {free} \
             within {window} s: where few decisions are made, writing one down takes longer than making it, and nobody waits for that."
        );
    }
    format!(
        "{took}: more than the budget of {budget} %, so what recorded most is turned off with the next attempt."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(cycle: f64, l1: f64) -> String {
        let cost = DiagnosisCost {
            budget_percent: 10,
            window_seconds: 10,
            free_seconds: 0.1,
            recent_cycle_seconds: cycle,
            recent_l1_seconds: l1,
            recent_l1_percent: (cycle > 0.0).then_some(100.0 * l1 / cycle),
            ..DiagnosisCost::default()
        };
        note(&cost)
    }

    #[test]
    fn a_share_above_the_budget_is_explained() {
        assert_eq!(said(0.0, 0.0), "No attempt was recorded within the last 10 s.");
        assert!(
            said(1.0, 0.05)
                .ends_with("took 50.0 ms of 1000.0 ms of attempts, 5 %: within the budget of 10 %.")
        );
        let idle = said(0.004, 0.003);
        assert!(
            idle.contains("75 %. That is more than the budget of 10 %, which counts only once"),
            "{idle}"
        );
        assert!(said(1.0, 0.25).ends_with("turned off with the next attempt."));
    }
}
