//! Formats the result of a replay of gangs for the user.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use comfy_table::CellAlignment;

use super::fairness::FairnessReport;
use super::gang_check::{GangOutcome, JobResult};
use super::words::{columns, grouped, span};

/// Speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Seconds of the trace per second of the replay.
    pub speedup: f64,
}

impl Pace {
    /// Returns the replay time for a duration of the trace.
    pub fn wall(self, trace: Duration) -> Duration {
        let seconds = trace.as_secs_f64() / self.speedup;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Returns the trace time for a duration of the replay.
    pub fn trace(self, wall: Duration) -> Duration {
        Duration::try_from_secs_f64(wall.as_secs_f64() * self.speedup).unwrap_or(Duration::MAX)
    }

    /// Formats a replay time, followed by the trace time if it differs.
    fn both(self, wall: Duration) -> String {
        match self.speedup {
            1.0 => span(wall),
            _ => format!("{} ({} of trace)", span(wall), span(self.trace(wall))),
        }
    }
}

/// The result of a replay of gangs. Times are replay times, not trace times.
#[derive(Clone, Debug, PartialEq)]
pub struct GangReport {
    /// The results of the checks.
    pub outcome: GangOutcome,
    /// Speed of the replay.
    pub pace: Pace,
    /// Time at which the last job was due, counted from the first.
    pub last_due: Duration,
    /// Maximum delay from the time a job was due until its last worker was created.
    pub lag: Duration,
    /// Additional lines for the report.
    pub notes: Vec<String>,
    /// What each quota got, if there are quotas.
    pub fairness: Option<FairnessReport>,
}

impl GangReport {
    /// Returns whether every job finished without any violation.
    pub fn is_good(&self) -> bool {
        self.outcome.fault_count == 0 && self.finished() == self.outcome.results.len()
    }

    /// Returns the number of finished jobs.
    pub fn finished(&self) -> usize {
        self.outcome.results.iter().filter(|result| result.finished_at.is_some()).count()
    }

    fn slowest(&self) -> Option<(&JobResult, Duration)> {
        let times = self.outcome.results.iter().filter_map(|result| Some((result, result.to_quorum?)));
        // The first of several equal times wins.
        times.reduce(|best, next| if next.1 > best.1 { next } else { best })
    }

    fn held(&self) -> Duration {
        self.outcome.results.iter().map(|result| result.held).sum()
    }

    fn makespan(&self) -> Option<Duration> {
        self.outcome.results.iter().filter_map(|result| result.finished_at).max()
    }

    fn sizes(&self) -> String {
        let mut by_size: BTreeMap<usize, Vec<&JobResult>> = BTreeMap::new();
        for result in &self.outcome.results {
            by_size.entry(result.workers).or_default().push(result);
        }
        let mut table =
            columns(["workers", "jobs", "finished", "wait p50", "wait p99", "first to quorum", "held"]);
        let mut row = |name: String, results: &[&JobResult]| {
            let finished = results.iter().filter(|result| result.finished_at.is_some()).count();
            let (p50, p99) = waits(results.iter().copied());
            let longest = results.iter().filter_map(|result| result.to_quorum).max();
            let held: Duration = results.iter().map(|result| result.held).sum();
            table.add_row([
                name,
                grouped(results.len() as u64),
                grouped(finished as u64),
                shown(p50),
                shown(p99),
                shown(longest),
                span(held),
            ]);
        };
        for (size, results) in &by_size {
            row(size.to_string(), results);
        }
        row("all".into(), &self.outcome.results.iter().collect::<Vec<_>>());
        if let Some(held) = table.column_mut(6) {
            held.set_cell_alignment(CellAlignment::Right);
        }
        table.trim_fmt()
    }

    fn faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let events = grouped(self.outcome.events);
        if self.outcome.fault_count == 0 {
            writeln!(
                f,
                "At none of {events} watch events was a node over its allocatable, and no gang stayed below its quorum for {}:\nchecked from the objects, independently.",
                span(self.outcome.limit)
            )?;
        }
        for fault in &self.outcome.faults {
            writeln!(f, "{fault}")?;
        }
        match self.outcome.fault_count - self.outcome.faults.len() {
            0 => Ok(()),
            more => writeln!(f, "... and {} violations more", grouped(more as u64)),
        }
    }
}

/// Returns the median and the 99th percentile of the waits.
fn waits<'a>(results: impl Iterator<Item = &'a JobResult>) -> (Option<Duration>, Option<Duration>) {
    let mut waits: Vec<Duration> = results.filter_map(|result| result.wait).collect();
    waits.sort_unstable();
    let quantile = |percent: usize| {
        let at = (waits.len() * percent).div_ceil(100);
        waits.get(at.saturating_sub(1)).copied()
    };
    (quantile(50), quantile(99))
}

fn shown(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".into(), span)
}

impl fmt::Display for GangReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pace, results) = (self.pace, &self.outcome.results);
        let both = |time: Option<Duration>| time.map_or_else(|| "-".into(), |time| pace.both(time));
        writeln!(f, "{}\n", self.sizes())?;
        let (p50, p99) = waits(results.iter());
        writeln!(f, "Gang wait, last worker's creation to quorum-th Binding:")?;
        writeln!(f, "  p50 {}, p99 {}", both(p50), both(p99))?;
        writeln!(f, "Longest time from first to quorum-th Binding of a strict gang:")?;
        match self.slowest() {
            Some((result, time)) => {
                let limit = span(self.outcome.limit);
                let (job, workers) = (&result.job, result.workers);
                writeln!(f, "  {} ({job}, workers: {workers}); must be under {limit}", span(time))?;
            }
            None => writeln!(f, "  - (no gang had its quorum bound)")?,
        }
        let held = self.held();
        let trace = pace.trace(held).as_secs_f64();
        writeln!(f, "Partial hold, workers bound before their gang's quorum was:")?;
        writeln!(f, "  {:.3} pod-seconds ({trace:.0} of trace)", held.as_secs_f64())?;
        writeln!(f, "Makespan, first submission to last end:")?;
        writeln!(f, "  {}; the last job was due at {}", both(self.makespan()), span(self.last_due))?;
        let (lag, most) = (span(self.lag), grouped(self.outcome.most_pods as u64));
        writeln!(
            f,
            "Workers of a job were there {lag} after it was due at the latest; at most {most} pods at a time."
        )?;
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        writeln!(f)?;
        if let Some(fairness) = &self.fairness {
            writeln!(f, "{fairness}\n")?;
        }
        self.faults(f)?;
        let (finished, all) = (grouped(self.finished() as u64), grouped(results.len() as u64));
        let violations = grouped(self.outcome.fault_count as u64);
        write!(f, "Jobs finished: {finished} / {all}. Violations: {violations}.")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fault;
    use super::*;

    fn result(job: &str, workers: usize, wait: u64, to_quorum: u64) -> JobResult {
        let ms = |ms| Some(Duration::from_millis(ms));
        JobResult {
            job: job.into(),
            workers,
            wait: ms(wait),
            to_quorum: ms(to_quorum),
            held: Duration::from_millis(to_quorum * (workers as u64 - 1)),
            finished_at: ms(511_400),
        }
    }

    fn report() -> GangReport {
        let results = vec![result("a", 1, 3, 0), result("b", 1, 4, 0), result("c", 8, 1200, 15)];
        let limit = Duration::from_secs(2);
        let outcome = GangOutcome { results, events: 12_345, most_pods: 10, limit, ..GangOutcome::default() };
        GangReport {
            outcome,
            pace: Pace { speedup: 10_000.0 },
            last_due: Duration::from_millis(450_844),
            lag: Duration::from_millis(31),
            notes: Vec::new(),
            fairness: None,
        }
    }

    #[test]
    fn the_report_reads_like_this() {
        let expected = " workers  jobs  finished  wait p50  wait p99  first to quorum      held
       1     2         2    3.0 ms    4.0 ms              0 s       0 s
       8     1         1    1.20 s    1.20 s          15.0 ms  105.0 ms
     all     3         3    4.0 ms    1.20 s          15.0 ms  105.0 ms

Gang wait, last worker's creation to quorum-th Binding:
  p50 4.0 ms (40.0 s of trace), p99 1.20 s (3 h 20 min of trace)
Longest time from first to quorum-th Binding of a strict gang:
  15.0 ms (c, workers: 8); must be under 2.00 s
Partial hold, workers bound before their gang's quorum was:
  0.105 pod-seconds (1050 of trace)
Makespan, first submission to last end:
  8 min 31 s (59 d 4 h of trace); the last job was due at 7 min 30 s
Workers of a job were there 31.0 ms after it was due at the latest; at most 10 pods at a time.

At none of 12,345 watch events was a node over its allocatable, and no gang stayed below its quorum for 2.00 s:
checked from the objects, independently.
Jobs finished: 3 / 3. Violations: 0.";
        assert_eq!(report().to_string(), expected);
        assert!(report().is_good());
    }

    #[test]
    fn what_is_wrong_stands_out() {
        let mut report = report();
        report.outcome.results[2].finished_at = None;
        assert!(!report.is_good());
        report.outcome.faults = vec![Fault::Unclear("this".into())];
        report.outcome.fault_count = 3;
        let text = report.to_string();
        let end = "\n\nUNCLEAR: this\n... and 2 violations more\nJobs finished: 2 / 3. Violations: 3.";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn nothing_at_all_is_said_with_dashes() {
        let report = GangReport { outcome: GangOutcome::default(), ..report() };
        assert!(report.to_string().contains("p50 -, p99 -"));
    }
}
