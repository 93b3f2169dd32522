//! Fairness of a replay with quotas, over time and from the watch events of its pods alone.
//!
//! Of each quota, in GPUs: what its pods ask for (created and not ended), what they use (bound and not ended), and of its
//! min how much it asks for. All figures are averages over the time of the replay. The Jain index of the quotas that ask for
//! something is `(Σx)² / (n Σx²)` with x the part of its demand that a quota uses: 1 when all get the same part, 1/n when one
//! gets everything (R. Jain, D. Chiu, W. Hawe 1984).

use std::fmt;
use std::time::Duration;

use pellucid_model::collections::HashMap;
use serde_json::Value;

use super::audit::text;
use super::quota_file::{LeafQuota, QUOTA_NAME};
use super::words::{columns, grouped};

/// One quota's figures: amounts now, and amounts times seconds so far.
#[derive(Clone, Debug, Default)]
struct Figures {
    demand: u64,
    used: u64,
    demand_seconds: f64,
    used_seconds: f64,
    /// What it asks for of its min.
    due_seconds: f64,
    /// What it has of that.
    reached_seconds: f64,
    /// What it uses beyond its min.
    borrowed_seconds: f64,
}

/// Follows the pods of a replay.
#[derive(Debug)]
pub struct Fairness {
    leaves: Vec<LeafQuota>,
    figures: Vec<Figures>,
    by_name: HashMap<String, usize>,
    /// By uid: the quota, and whether the pod is bound.
    pods: HashMap<String, (usize, bool)>,
    last: Duration,
    jain_seconds: f64,
    /// For how long some quota asked for something.
    busy_seconds: f64,
}

impl Fairness {
    /// Starts with no pods.
    pub fn new(leaves: Vec<LeafQuota>) -> Self {
        let by_name = leaves.iter().enumerate().map(|(at, leaf)| (leaf.name.clone(), at)).collect();
        Self {
            figures: vec![Figures::default(); leaves.len()],
            leaves,
            by_name,
            pods: HashMap::default(),
            last: Duration::ZERO,
            jain_seconds: 0.0,
            busy_seconds: 0.0,
        }
    }

    /// Takes over the state of a pod, each of which uses one GPU; `at` is the time since the start of the replay.
    pub fn observe(&mut self, pod: &Value, is_deleted: bool, at: Duration) {
        let label = format!("/metadata/labels/{}", QUOTA_NAME.replace('/', "~1"));
        let Some(&quota) = self.by_name.get(text(pod, &label)) else { return };
        let has_ended = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        let is_bound = !text(pod, "/spec/nodeName").is_empty();
        let now = (!is_deleted && !has_ended).then_some((quota, is_bound));
        let uid = text(pod, "/metadata/uid");
        if self.pods.get(uid).copied() == now {
            return;
        }
        self.advance(at);
        let before = match now {
            Some(now) => self.pods.insert(uid.to_owned(), now),
            None => self.pods.remove(uid),
        };
        if let Some((quota, is_bound)) = before {
            self.figures[quota].demand -= 1;
            self.figures[quota].used -= u64::from(is_bound);
        }
        if let Some((quota, is_bound)) = now {
            self.figures[quota].demand += 1;
            self.figures[quota].used += u64::from(is_bound);
        }
    }

    /// Adds the time since the last change.
    fn advance(&mut self, at: Duration) {
        let seconds = at.saturating_sub(self.last).as_secs_f64();
        self.last = self.last.max(at);
        let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (of, leaf) in self.figures.iter_mut().zip(&self.leaves) {
            let due = of.demand.min(leaf.min);
            of.demand_seconds += of.demand as f64 * seconds;
            of.used_seconds += of.used as f64 * seconds;
            of.due_seconds += due as f64 * seconds;
            of.reached_seconds += of.used.min(due) as f64 * seconds;
            of.borrowed_seconds += of.used.saturating_sub(leaf.min) as f64 * seconds;
            if of.demand > 0 {
                let part = of.used as f64 / of.demand as f64;
                (n, sum, squares) = (n + 1.0, sum + part, squares + part * part);
            }
        }
        if n > 0.0 {
            // Nobody has anything: all have the same.
            self.jain_seconds += seconds * if squares > 0.0 { sum * sum / (n * squares) } else { 1.0 };
            self.busy_seconds += seconds;
        }
    }

    /// Ends the replay.
    pub fn finish(mut self, at: Duration) -> FairnessReport {
        self.advance(at);
        let total = self.last.as_secs_f64();
        let ratio = |part: f64, of: f64| (of > 0.0).then(|| part / of);
        let row = |(leaf, of): (&LeafQuota, &Figures)| QuotaFairness {
            quota: leaf.name.clone(),
            min: leaf.min,
            demand: ratio(of.demand_seconds, total).unwrap_or(0.0),
            used: ratio(of.used_seconds, total).unwrap_or(0.0),
            min_reached: ratio(of.reached_seconds, of.due_seconds),
            borrowed: ratio(of.borrowed_seconds, of.used_seconds),
        };
        let quotas = self.leaves.iter().zip(&self.figures).map(row).collect();
        FairnessReport { quotas, jain: ratio(self.jain_seconds, self.busy_seconds) }
    }
}

/// What one quota got. Amounts are GPUs, averages over time.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaFairness {
    /// The quota.
    pub quota: String,
    /// GPUs of its min.
    pub min: u64,
    /// What its pods asked for.
    pub demand: f64,
    /// What its pods used.
    pub used: f64,
    /// The part that it had of what it asked for of its min; `None` if it asked for nothing.
    pub min_reached: Option<f64>,
    /// The part of its use that was beyond its min; `None` if it used nothing.
    pub borrowed: Option<f64>,
}

/// Fairness of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct FairnessReport {
    /// Quotas without children, by name.
    pub quotas: Vec<QuotaFairness>,
    /// The average Jain index while some quota asked for something; `None` if none ever did.
    pub jain: Option<f64>,
}

impl fmt::Display for FairnessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent =
            |part: Option<f64>| part.map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", 100.0 * part));
        let mut table = columns(["min", "asked", "used", "min reached", "borrowed", "quota"]);
        for of in &self.quotas {
            table.add_row([
                grouped(of.min),
                format!("{:.1}", of.demand),
                format!("{:.1}", of.used),
                percent(of.min_reached),
                percent(of.borrowed),
                of.quota.clone(),
            ]);
        }
        writeln!(f, "Fairness in GPUs, averages over the time of the replay:\n{}", table.trim_fmt())?;
        let jain = self.jain.map_or_else(|| "-".to_owned(), |jain| format!("{jain:.3}"));
        write!(f, "Jain index of the parts that quotas got of what they asked for: {jain}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::QuotaFile;
    use super::*;

    fn pod(uid: &str, quota: &str, node: &str, phase: &str) -> Value {
        json!({
            "metadata": {"uid": uid, "labels": {QUOTA_NAME: quota}},
            "spec": {"nodeName": node}, "status": {"phase": phase},
        })
    }

    fn fairness() -> Fairness {
        let quota = |name: &str, min: u64| json!({"kind": "ElasticQuota", "metadata": {"name": name}, "spec": {"min": {super::super::GPU: min}}});
        Fairness::new(QuotaFile::read(vec![quota("a", 1), quota("b", 2)]).expect("fine").leaves)
    }

    #[test]
    fn figures_are_averages_over_time() {
        let mut fairness = fairness();
        let mut see = |second: u64, pod: Value| fairness.observe(&pod, false, Duration::from_secs(second));
        // a asks for two and has both from 0 to 10 s; b asks for one from 0 to 10 s, and has it from 5 s on.
        see(0, pod("1", "a", "n", "Pending"));
        see(0, pod("2", "a", "n", "Running"));
        see(0, pod("3", "b", "", "Pending"));
        see(3, pod("3", "b", "", "Pending"));
        see(5, pod("3", "b", "n", "Running"));
        see(10, pod("1", "a", "n", "Succeeded"));
        see(10, pod("2", "a", "n", "Succeeded"));
        see(10, pod("3", "b", "n", "Succeeded"));
        let report = fairness.finish(Duration::from_secs(20));
        let [a, b] = &report.quotas[..] else { panic!("{report:?}") };
        assert_eq!((a.demand, a.used, a.min_reached, a.borrowed), (1.0, 1.0, Some(1.0), Some(0.5)));
        assert_eq!((b.demand, b.used, b.min_reached, b.borrowed), (0.5, 0.25, Some(0.5), Some(0.0)));
        // Half of the busy time one of two had everything.
        assert_eq!(report.jain, Some(0.75));
        let expected = "Fairness in GPUs, averages over the time of the replay:
 min  asked  used  min reached  borrowed  quota
   1    1.0   1.0      100.0 %    50.0 %  a
   2    0.5   0.2       50.0 %     0.0 %  b
Jain index of the parts that quotas got of what they asked for: 0.750";
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn nothing_at_all_is_said_with_dashes() {
        let report = fairness().finish(Duration::from_secs(1));
        assert_eq!((report.jain, report.quotas[0].min_reached), (None, None));
        assert!(report.to_string().ends_with("asked for: -"));
    }
}
