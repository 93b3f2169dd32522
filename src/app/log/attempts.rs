//! Logs attempts: their outcomes, and what the flags `s` and `f` recorded of them.

use std::time::Duration;

use pellucid_cycle::scheduler::Step;
use pellucid_diagnosis::views::score_views::markdown;
use pellucid_model::Name;
use pellucid_recording::Outcome;
use tracing::{Level, debug, enabled, info};

/// Maximum number of lines of tables and refused nodes logged per unit. The scheduling thread writes them, and a gang
/// of hundreds of members refused by all nodes has tens of thousands; `explain` and `scores` return all of them.
const LINES_PER_UNIT: usize = 1000;

/// Counts what the flags `s` and `f` log of one unit.
#[derive(Default)]
pub(crate) struct RecordedLines {
    logged: usize,
    left_out: usize,
}

impl RecordedLines {
    /// Returns whether `lines` more may be logged, and counts them as logged or left out.
    fn take(&mut self, lines: usize) -> bool {
        let may = self.logged < LINES_PER_UNIT;
        *(if may { &mut self.logged } else { &mut self.left_out }) += lines;
        may
    }

    /// Says how much was left out.
    pub(crate) fn end(self) {
        if self.left_out > 0 {
            let Self { logged, left_out } = self;
            info!(
                logged,
                left_out, "the log has a part of what was recorded of this attempt; explain has all of it"
            );
        }
    }
}

/// Logs the outcome of an attempt at a pod, and what was recorded of it.
pub(crate) fn log(step: &Step, node: Option<&Name>, took: Duration, recorded: &mut RecordedLines) {
    if let Some(table) = step.table.as_ref().filter(|table| recorded.take(table.rows.len())) {
        let plugins: Vec<&str> = table.plugins.iter().map(|(name, _)| *name).collect();
        info!(
            table = %markdown(table),
            "Top{} scores for Pod: {}, feasibleNodes: {}, plugins:[{}]",
            table.rows.len(),
            table.pod,
            table.feasible,
            plugins.join(" ")
        );
    }
    if let Some(failure) = &step.failure {
        for (node, cause) in failure.nodes.iter().filter(|_| recorded.take(1)) {
            info!(pod = %failure.pod, %node, plugin = cause.plugin, reason = cause.message(), "filter failure");
        }
    }
    if enabled!(Level::DEBUG) {
        let micros = took.as_micros();
        let (pod, attempts) = (&step.pod.key, step.attempts);
        match &step.verdict.outcome {
            Outcome::Placed(placement) => {
                let node = node.map_or("", |node| &**node);
                debug!(%pod, node, score = ?placement.score, feasible = placement.feasible, attempts, micros, "placed");
            }
            Outcome::Refused(refusal) | Outcome::Gated(refusal) => {
                debug!(%pod, attempts, micros, message = &*refusal.message(), "refused");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gang_of_hundreds_logs_a_bounded_part_of_what_was_recorded() {
        let mut recorded = RecordedLines::default();
        let logged = (0..300 * 80).filter(|_| recorded.take(1)).count();
        assert_eq!((logged, recorded.left_out), (LINES_PER_UNIT, 23_000));
        assert!(RecordedLines::default().take(5_000), "one table is never cut");
    }
}
