//! Checks a replay of strict gangs from the watch events of its pods: no node exceeds its allocatable, no gang stays
//! below its quorum, no worker is lost.
//!
//! The check is independent on purpose: it reads API objects with their own annotations and shares no code with the
//! scheduler. It has no clock; the caller passes the time at which it read an event. A worker that has ended counts as
//! bound, because short jobs end before the last of their Bindings is observed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::audit::text;
use super::node_ledger::NodeLedger;
use super::{Fault, GANG_MIN, GANG_NAME, GANG_TOTAL, GangJob};

/// Maximum number of faults that are stored for the report; all are counted.
const SHOWN: usize = 50;

/// The outcome of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// Name of the job.
    pub job: String,
    /// Number of workers that the job should have.
    pub workers: usize,
    /// Time from the creation of the last worker to the Binding that completed the quorum; `None` without a quorum.
    pub wait: Option<Duration>,
    /// Time from the first Binding to the one that completed the quorum; `None` without a quorum.
    pub to_quorum: Option<Duration>,
    /// Time for which workers were bound before the quorum was, summed over the workers.
    pub held: Duration,
    /// Time at which the last worker succeeded; `None` if not all have succeeded.
    pub finished_at: Option<Duration>,
}

/// What a watch event meant for the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The event changed nothing that the replay waits for.
    Nothing,
    /// A worker was created, was bound, or ended.
    Progress,
    /// All workers of a job have succeeded. Holds their names.
    Finished(Vec<String>),
}

/// The outcome of all checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GangOutcome {
    /// Outcome of each job, ordered by name.
    pub results: Vec<JobResult>,
    /// The first violations, up to a limit.
    pub faults: Vec<Fault>,
    /// Number of violations, including those not stored.
    pub fault_count: usize,
    /// Number of judged watch events.
    pub events: u64,
    /// Maximum number of pods that existed at the same time.
    pub most_pods: usize,
    /// Maximum time for which a gang may be partially bound.
    pub limit: Duration,
}

#[derive(Debug, Default)]
struct Member {
    name: String,
    created: Duration,
    bound: Option<Duration>,
    ended: Option<Duration>,
}

#[derive(Debug, Default)]
struct Gang {
    workers: usize,
    quorum: usize,
    /// By pod uid.
    members: BTreeMap<String, Member>,
    succeeded: usize,
    quorum_at: Option<Duration>,
    /// Whether a worker is lost, so that the gang will not finish.
    is_broken: bool,
    result: Option<JobResult>,
}

/// Checks a replay, event by event.
#[derive(Debug)]
pub struct GangCheck {
    ledger: NodeLedger,
    gangs: BTreeMap<String, Gang>,
    /// Uids of the existing pods.
    present: BTreeSet<String>,
    settled: usize,
    outcome: GangOutcome,
}

impl GangCheck {
    /// Starts a check of these jobs on these nodes. `limit` is the maximum time for which a gang may be partially
    /// bound.
    pub fn new(nodes: &[Value], jobs: &[GangJob], limit: Duration) -> Self {
        let (ledger, unclear) = NodeLedger::new(nodes);
        let gang = |job: &GangJob| Gang { workers: job.workers, quorum: job.workers, ..Gang::default() };
        let gangs = jobs.iter().map(|job| (job.name.clone(), gang(job))).collect();
        let outcome = GangOutcome { limit, ..GangOutcome::default() };
        let mut check = Self { ledger, gangs, present: BTreeSet::new(), settled: 0, outcome };
        unclear.into_iter().for_each(|what| check.outcome.fault(Fault::Unclear(what)));
        check
    }

    /// Judges the current state of a pod, or its last state if `is_deleted`; `at` is the time since the start of the
    /// replay.
    pub fn observe(&mut self, pod: &Value, is_deleted: bool, at: Duration) -> Seen {
        self.outcome.events += 1;
        self.count(pod, is_deleted);
        let findings = self.ledger.book(pod, is_deleted);
        let (job, worker) = (annotation(pod, GANG_NAME), text(pod, "/metadata/name"));
        for over in findings.overcommitted {
            let (job, worker) = (job.to_owned(), worker.to_owned());
            self.outcome.fault(Fault::Overcommitted { at, job, worker, over });
        }
        findings.unclear.into_iter().for_each(|what| self.outcome.fault(Fault::Unclear(what)));
        let Some(gang) = self.gangs.get_mut(job) else {
            self.outcome.fault(Fault::Unclear(format!("{worker} belongs to no job of the trace: {job:?}")));
            return Seen::Nothing;
        };
        if gang.result.is_some() || gang.is_broken {
            return Seen::Nothing;
        }
        let seen = gang.observe(job, pod, is_deleted, at, &mut self.outcome);
        self.settled += usize::from(gang.is_broken || gang.result.is_some());
        seen
    }

    /// Returns whether no job can still finish.
    pub fn is_settled(&self) -> bool {
        self.settled == self.gangs.len()
    }

    /// Returns the number of jobs that have finished or failed.
    pub fn settled(&self) -> usize {
        self.settled
    }

    /// Ends the check at time `at` and returns the outcome.
    pub fn finish(mut self, at: Duration) -> GangOutcome {
        for (job, mut gang) in self.gangs {
            let result = gang.result.take().unwrap_or_else(|| {
                if let Some(fault) = gang.unfinished(&job, at) {
                    self.outcome.fault(fault);
                }
                gang.result(&job, at, None)
            });
            self.outcome.results.push(result);
        }
        self.outcome
    }

    fn count(&mut self, pod: &Value, is_deleted: bool) {
        let uid = text(pod, "/metadata/uid");
        if is_deleted {
            self.present.remove(uid);
        } else if !self.present.contains(uid) {
            self.present.insert(uid.to_owned());
        }
        self.outcome.most_pods = self.outcome.most_pods.max(self.present.len());
    }
}

impl GangOutcome {
    fn fault(&mut self, fault: Fault) {
        self.fault_count += 1;
        if self.faults.len() < SHOWN {
            self.faults.push(fault);
        }
    }
}

impl Gang {
    fn observe(
        &mut self,
        job: &str,
        pod: &Value,
        is_deleted: bool,
        at: Duration,
        outcome: &mut GangOutcome,
    ) -> Seen {
        let (uid, name) = (text(pod, "/metadata/uid"), text(pod, "/metadata/name"));
        let is_new = !self.members.contains_key(uid);
        if is_new {
            match quorum(pod, self.workers) {
                Ok(quorum) => self.quorum = quorum,
                Err(what) => outcome.fault(Fault::Unclear(format!("{name}: {what}"))),
            }
        }
        let new = || Member { name: name.to_owned(), created: at, ..Member::default() };
        let member = self.members.entry(uid.to_owned()).or_insert_with(new);
        let (node, phase) = (text(pod, "/spec/nodeName"), text(pod, "/status/phase"));
        let is_bound_now = !node.is_empty() && member.bound.is_none();
        if is_bound_now {
            member.bound = Some(at);
        }
        let has_succeeded = phase == "Succeeded" && member.ended.is_none();
        if has_succeeded {
            member.ended = Some(at);
            self.succeeded += 1;
        }
        let how = match phase {
            "Failed" => Some("failed"),
            _ if is_deleted && member.ended.is_none() => Some("was deleted before it had succeeded"),
            _ => None,
        };
        if is_bound_now {
            self.judge_quorum(job, at, outcome);
        }
        if let Some(how) = how {
            self.is_broken = true;
            let (job, worker, node) = (job.to_owned(), name.to_owned(), node.to_owned());
            outcome.fault(Fault::LostWorker { job, worker, node, how });
            return Seen::Progress;
        }
        if self.succeeded == self.workers {
            self.result = Some(self.result(job, at, Some(at)));
            let members = std::mem::take(&mut self.members);
            return Seen::Finished(members.into_values().map(|member| member.name).collect());
        }
        if is_new || is_bound_now || has_succeeded { Seen::Progress } else { Seen::Nothing }
    }

    /// Records the quorum when the latest Binding completed it.
    fn judge_quorum(&mut self, job: &str, at: Duration, outcome: &mut GangOutcome) {
        if self.quorum_at.is_some() || self.bound().count() < self.quorum {
            return;
        }
        self.quorum_at = Some(at);
        let first = self.bound().min().unwrap_or(at);
        let (took, limit) = (at - first, outcome.limit);
        if took > limit {
            let in_time = self.bound().filter(|bound| *bound <= first + limit).count();
            let (job, quorum) = (job.to_owned(), self.quorum);
            outcome.fault(Fault::LateQuorum { job, quorum, in_time, limit, took });
        }
    }

    /// Returns the times at which members were bound.
    fn bound(&self) -> impl Iterator<Item = Duration> {
        self.members.values().filter_map(|member| member.bound)
    }

    /// Returns the fault of a gang that has not finished by the end of the replay; `None` if a lost worker was already
    /// reported.
    fn unfinished(&self, job: &str, at: Duration) -> Option<Fault> {
        let (job, bound) = (job.to_owned(), self.bound().count());
        match self.bound().min() {
            _ if self.is_broken => None,
            Some(first) if self.quorum_at.is_none() => {
                let (quorum, since_first) = (self.quorum, at.saturating_sub(first));
                Some(Fault::NoQuorum { job, quorum, bound, since_first })
            }
            _ => {
                let (workers, created, succeeded) = (self.workers, self.members.len(), self.succeeded);
                Some(Fault::NotFinished { job, workers, created, bound, succeeded })
            }
        }
    }

    fn result(&self, job: &str, at: Duration, finished_at: Option<Duration>) -> JobResult {
        let members = || self.members.values();
        let last_created = members().map(|member| member.created).max().unwrap_or_default();
        let first_bound = self.bound().min().unwrap_or_default();
        let whole_at = self.quorum_at.unwrap_or(at);
        let until = |member: &Member| member.ended.map_or(whole_at, |ended| ended.min(whole_at));
        let hold = |member: &Member| Some(until(member).saturating_sub(member.bound?));
        JobResult {
            job: job.to_owned(),
            workers: self.workers,
            wait: self.quorum_at.map(|quorum| quorum.saturating_sub(last_created)),
            to_quorum: self.quorum_at.map(|quorum| quorum.saturating_sub(first_bound)),
            held: members().filter_map(hold).sum(),
            finished_at,
        }
    }
}

fn annotation<'a>(pod: &'a Value, key: &str) -> &'a str {
    pod["metadata"]["annotations"][key].as_str().unwrap_or("")
}

/// Reads the gang's quorum from a worker's annotations. Fails if they contradict the number of workers.
fn quorum(pod: &Value, workers: usize) -> Result<usize, String> {
    let number = |key: &str| {
        let value = annotation(pod, key);
        value.parse::<usize>().map_err(|_| format!("{key} is {value:?}, which is no number"))
    };
    let (min, total) = (number(GANG_MIN)?, number(GANG_TOTAL)?);
    match total == workers && (1..=total).contains(&min) {
        true => Ok(min),
        false => Err(format!("its gang has {min} of {total} members, but the job has {workers} workers")),
    }
}

#[cfg(test)]
#[path = "gang_check_tests.rs"]
mod tests;
