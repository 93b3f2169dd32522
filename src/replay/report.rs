//! Formats the result of a replay for the user.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use comfy_table::Table;

use super::words::{columns, grouped};
use super::{AuditResult, GPU_CORE};

/// Allocated part of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Amount requested by placed pods, in the unit of the field.
    pub allocated: i64,
    /// Total capacity of the nodes, in the unit of the field.
    pub capacity: i64,
}

impl Allocated {
    /// Returns the allocated share in percent; 0 without capacity.
    pub fn percent(self) -> f64 {
        if self.capacity == 0 { 0.0 } else { self.allocated as f64 * 100.0 / self.capacity as f64 }
    }
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Number of pods in the trace, or in the part of it that was replayed.
    pub pods: usize,
    /// Number of pods that have a node.
    pub bound: usize,
    /// Number of pending pods by the message of their reason.
    pub pending_by_reason: BTreeMap<String, usize>,
    /// Number of pods that could not be decoded.
    pub quarantined: usize,
    /// Decided pods per second of wall time.
    pub pods_per_second: f64,
    /// Median decision time.
    pub decision_p50: Duration,
    /// 99th percentile of the decision time.
    pub decision_p99: Duration,
    /// CPU in thousandths of a core.
    pub cpu: Allocated,
    /// Memory in bytes.
    pub memory: Allocated,
    /// GPUs in hundredths.
    pub gpu: Allocated,
    /// Nodes that the audit found overcommitted, with the resource; must be empty.
    pub overcommitted: Vec<String>,
    /// What the audit could not judge; must be empty.
    pub unclear: Vec<String>,
    /// Additional lines for the report.
    pub notes: Vec<String>,
}

impl Report {
    /// Adds the findings of an audit of the API objects.
    pub fn with_audit(mut self, audit: &AuditResult) -> Self {
        let total = |resource: &str| audit.totals.get(resource).copied().unwrap_or_default();
        self.cpu = total("cpu").in_parts(1000);
        self.memory = total("memory").in_parts(1);
        self.gpu = total(GPU_CORE).in_parts(1);
        self.overcommitted =
            audit.overcommitted.iter().map(|o| format!("{} ({})", o.node, o.resource)).collect();
        self.unclear = audit.unclear.clone();
        self
    }

    /// Returns whether every pod is bound, pending with a reason, or quarantined.
    pub fn adds_up(&self) -> bool {
        self.bound + self.pending() + self.quarantined == self.pods
    }

    /// Returns whether all pods are accounted for, no node is overcommitted, and nothing is unclear.
    pub fn is_good(&self) -> bool {
        self.adds_up() && self.overcommitted.is_empty() && self.unclear.is_empty()
    }

    /// Returns the number of pending pods.
    pub fn pending(&self) -> usize {
        self.pending_by_reason.values().sum()
    }

    fn outcome(&self) -> Table {
        let mut table = columns(["pods", "", "why"]);
        let percent = |part: usize| match self.pods {
            0 => String::new(),
            all => format!("{:.1} %", part as f64 * 100.0 / all as f64),
        };
        let mut row = |pods: usize, why: &str| {
            // A line break would start another row.
            table.add_row([grouped(pods as u64), percent(pods), why.replace(['\n', '\r'], " ")]);
        };
        row(self.bound, "bound");
        let mut reasons: Vec<(&String, &usize)> = self.pending_by_reason.iter().collect();
        reasons.sort_by(|left, right| right.1.cmp(left.1).then_with(|| left.0.cmp(right.0)));
        for (reason, count) in reasons {
            row(*count, &format!("pending: {reason}"));
        }
        row(self.quarantined, "quarantined");
        row(self.pods, "in all");
        table
    }

    fn resources(&self) -> Table {
        let mut table = columns(["allocated", "of", "", "resource"]);
        let of = |unit: f64, amount: i64| format!("{:.1}", amount as f64 / unit);
        for (resource, unit, amounts) in [
            ("CPU, cores", 1000.0, self.cpu),
            ("memory, GiB", f64::from(1 << 30), self.memory),
            ("GPUs", 100.0, self.gpu),
        ] {
            let percent = format!("{:.1} %", amounts.percent());
            table.add_row([
                of(unit, amounts.allocated),
                of(unit, amounts.capacity),
                percent,
                resource.to_owned(),
            ]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.outcome().trim_fmt())?;
        writeln!(f, "{}\n", self.resources().trim_fmt())?;
        let (p50, p99) = (micros(self.decision_p50), micros(self.decision_p99));
        let rate = grouped(self.pods_per_second.round() as u64);
        writeln!(f, "{rate} pods/s; one decision took {p50} (p50), {p99} (p99)")?;
        match self.overcommitted.as_slice() {
            [] if !self.unclear.is_empty() => {}
            [] => writeln!(f, "No node is over its allocatable: checked from the objects, independently.")?,
            nodes => writeln!(f, "OVERCOMMITTED: {}: {}", nodes.len(), nodes.join(", "))?,
        }
        for unclear in &self.unclear {
            writeln!(f, "UNCLEAR: {unclear}")?;
        }
        writeln!(
            f,
            "GPUs are counted per node: per-card GPU placement is not modelled, and shares may not fit on the cards."
        )?;
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        let (bound, pending, quarantined) = (self.bound, self.pending(), self.quarantined);
        if self.adds_up() {
            write!(f, "{} pods: {bound} bound, {pending} pending, {quarantined} quarantined.", self.pods)
        } else {
            write!(
                f,
                "NOT ALL ACCOUNTED FOR: {} pods, but {bound} bound, {pending} pending and {quarantined} quarantined.",
                self.pods
            )
        }
    }
}

fn micros(duration: Duration) -> String {
    let micros = duration.as_nanos() as f64 / 1000.0;
    if micros < 10_000.0 { format!("{micros:.1} µs") } else { format!("{:.1} ms", micros / 1000.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report {
            pods: 8152,
            bound: 7000,
            pending_by_reason: [
                ("Insufficient cpu".to_owned(), 152),
                ("Insufficient memory".to_owned(), 999),
            ]
            .into(),
            quarantined: 1,
            pods_per_second: 123_456.4,
            decision_p50: Duration::from_nanos(4300),
            decision_p99: Duration::from_millis(12),
            cpu: Allocated { allocated: 1500, capacity: 3000 },
            memory: Allocated { allocated: 3 << 30, capacity: 4 << 30 },
            gpu: Allocated { allocated: 0, capacity: 0 },
            ..Report::default()
        }
    }

    #[test]
    fn the_report_reads_like_this() {
        let expected = "  pods           why
 7,000   85.9 %  bound
   999   12.3 %  pending: Insufficient memory
   152    1.9 %  pending: Insufficient cpu
     1    0.0 %  quarantined
 8,152  100.0 %  in all

 allocated   of          resource
       1.5  3.0  50.0 %  CPU, cores
       3.0  4.0  75.0 %  memory, GiB
       0.0  0.0   0.0 %  GPUs

123,456 pods/s; one decision took 4.3 µs (p50), 12.0 ms (p99)
No node is over its allocatable: checked from the objects, independently.
GPUs are counted per node: per-card GPU placement is not modelled, and shares may not fit on the cards.
8152 pods: 7000 bound, 1151 pending, 1 quarantined.";
        assert_eq!(report().to_string(), expected);
    }

    #[test]
    fn an_audit_gives_amounts_and_faults() {
        let node = serde_json::json!({
            "metadata": { "name": "n" },
            "status": { "allocatable": { "cpu": "2", "memory": "1Gi", "pods": "1" } },
        });
        let pod = serde_json::json!({
            "metadata": { "namespace": "default", "name": "p" },
            "spec": { "nodeName": "n", "containers": [{ "resources": { "requests": { "cpu": "2500m" } } }] },
        });
        let report = Report { pods: 1, bound: 1, ..Report::default() };
        let report = report.with_audit(&super::super::audit(&[node], &[pod]));
        assert_eq!(report.cpu, Allocated { allocated: 2500, capacity: 2000 });
        assert_eq!(report.memory.capacity, 1 << 30);
        assert_eq!(report.overcommitted, ["n (cpu)"]);
        assert!(report.adds_up() && !report.is_good());
    }

    #[test]
    fn what_is_wrong_stands_out() {
        let wrong = Report { quarantined: 0, overcommitted: vec!["n-1".into()], ..report() };
        assert!(!wrong.is_good());
        let text = wrong.to_string();
        assert!(text.contains("OVERCOMMITTED: 1: n-1"), "{text}");
        assert!(text.contains("NOT ALL ACCOUNTED FOR"), "{text}");
    }
}
