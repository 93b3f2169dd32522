//! The hash of a decision: equal decisions have equal hashes, in every process and at any time.
//!
//! The hash covers the pod and its node, or the pod and why it was refused: plugins, codes, subjects, node counts and
//! amounts. It excludes times, attempts, slots and preemption, and it does not depend on the order of maps or of
//! arrival: sets are hashed item by item and sorted.

use pellucid_cluster::Cluster;
use pellucid_framework::Cause;
use pellucid_model::GangKey;
use pellucid_model::stable_hash::seeded;
use pellucid_recording::{GangOutcome, GangRefusal, GangVerdict, Outcome, Refusal};

/// Hashes fields one after another, each delimited by its length.
struct Hasher(u64);

impl Hasher {
    fn new(kind: &str) -> Self {
        Self(0).text(kind)
    }

    fn text(self, text: &str) -> Self {
        // The length distinguishes `ab`, `c` from `a`, `bc`.
        Self(seeded(self.0.rotate_left(7) ^ text.len() as u64, text))
    }

    fn number(self, number: i64) -> Self {
        self.text(&number.to_string())
    }

    fn set(self, mut items: Vec<u64>) -> Self {
        items.sort_unstable();
        items.into_iter().fold(self, |all, item| all.text(&format!("{item:x}")))
    }

    fn end(self) -> String {
        format!("{:016x}", self.0)
    }
}

pub(super) fn hash_of_placement((namespace, name): (&str, &str), node: &str) -> String {
    Hasher::new("placed").text(namespace).text(name).text(node).end()
}

pub(super) fn hash_of_refusal((namespace, name): (&str, &str), refusal: &Refusal) -> String {
    let of_pod = refusal.pod_cause.iter().map(hash_of_cause).collect();
    let groups = refusal.groups.iter().map(|group| {
        let measures = group
            .measures
            .iter()
            .map(|m| Hasher::new("measure").text(&m.resource).number(m.requested).number(m.available).0);
        let hasher = Hasher(hash_of_cause(&group.cause)).number(group.count as i64);
        hasher.set(measures.collect()).0
    });
    Hasher::new("refused")
        .text(namespace)
        .text(name)
        .number(refusal.total_nodes as i64)
        .number(refusal.not_evaluated as i64)
        .set(of_pod)
        .set(groups.collect())
        .end()
}

/// Returns the hash of an attempt's outcome for a pod of this cluster.
pub(crate) fn hash_of_outcome(cluster: &Cluster, pod: (&str, &str), outcome: &Outcome) -> String {
    match outcome {
        Outcome::Placed(placement) => hash_of_placement(pod, cluster.node_name(placement.node)),
        Outcome::Refused(refusal) | Outcome::Gated(refusal) => hash_of_refusal(pod, refusal),
    }
}

/// Returns the hash of the outcome of an attempt at a gang group.
pub(super) fn hash_of_gang(verdict: &GangVerdict) -> String {
    let hasher = Hasher::new("gang").set(verdict.group.iter().map(hash_of_key).collect());
    match &verdict.outcome {
        GangOutcome::Placed { members, .. } => hasher.text("placed").number(i64::from(*members)),
        GangOutcome::Waiting { placed, refusal } => {
            of_gang_refusal(hasher.text("waiting").number(i64::from(*placed)), refusal)
        }
        GangOutcome::Refused(refusal) => of_gang_refusal(hasher.text("refused"), refusal),
        GangOutcome::Released { code, members, .. } => {
            hasher.text("released").text(code.as_str()).number(i64::from(*members))
        }
    }
    .end()
}

fn of_gang_refusal(hasher: Hasher, refusal: &GangRefusal) -> Hasher {
    let shares = refusal.shares.iter().map(|share| {
        let hasher = Hasher(hash_of_key(&share.gang));
        hasher.number(i64::from(share.wanted)).number(i64::from(share.placeable)).0
    });
    hasher.text(refusal.code.as_str()).set(shares.collect())
}

fn hash_of_key(key: &GangKey) -> u64 {
    Hasher::new("key").text(&key.namespace).text(&key.name).0
}

fn hash_of_cause(cause: &Cause) -> u64 {
    let reasons = cause
        .reasons
        .iter()
        .map(|reason| Hasher::new(reason.code.as_str()).text(reason.subject.as_deref().unwrap_or("")).0);
    Hasher::new(cause.plugin).text(cause.code.as_str()).set(reasons.collect()).0
}

#[cfg(test)]
mod tests {
    use pellucid_api::reason::ReasonCode;
    use pellucid_framework::{Code, Reason};
    use pellucid_queue::RefusedBy;
    use pellucid_recording::Group;

    use super::*;

    fn refusal(resources: &[&str], count: usize) -> Refusal {
        let about = |r: &&str| Reason::about(ReasonCode::InsufficientResource, *r);
        let reasons = resources.iter().map(about).collect();
        let cause = Cause { plugin: "NodeResourcesFit", code: Code::Unschedulable, reasons };
        let group = Group { cause, count, examples: Default::default(), measures: Vec::new() };
        Refusal::of_nodes(vec![group.into()], 5, RefusedBy::default())
    }

    /// The hashes are a public interface: recorded ones are compared with those of later versions.
    #[test]
    fn a_hash_tells_decisions_apart_and_stays_what_it_is() {
        let pod = ("d", "p");
        assert_eq!(hash_of_placement(pod, "n1"), "9b1b40fd44da42b5");
        assert_eq!(hash_of_refusal(pod, &refusal(&["cpu", "memory"], 3)), "71e8e1552e5f92f8");
        assert_ne!(hash_of_placement(pod, "n1"), hash_of_placement(pod, "n2"));
        assert_ne!(hash_of_placement(("d", "px"), "y"), hash_of_placement(pod, "xy"));
        let of = |resources: &[&str], count| hash_of_refusal(pod, &refusal(resources, count));
        assert_eq!(of(&["cpu", "memory"], 3), of(&["memory", "cpu"], 3), "the order of reasons is no matter");
        assert_ne!(of(&["cpu"], 3), of(&["cpu"], 4));
        assert_ne!(of(&["cpu"], 3), of(&["memory"], 3));
    }
}
