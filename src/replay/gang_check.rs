//! Judges a replay of strict gangs from the watch events of its pods: no node over its allocatable, no gang
//! below its quorum, no worker lost.
//!
//! Independent on purpose: it reads API objects, with their own annotations, and shares no line with the
//! scheduler. It asks nobody for the time: an event happened when the caller read it. A worker that has
//! ended counts as bound: short jobs end before the last of their Bindings is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::audit::text;
use super::node_ledger::NodeLedger;
use super::{Fault, GANG_MIN, GANG_NAME, GANG_TOTAL, GangJob};

/// Faults that are kept to be shown; all are counted.
const SHOWN: usize = 50;

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobResult {
    /// Job.
    pub job: String,
    /// How many workers it should have.
    pub workers: usize,
    /// From the creation of its last worker to the Binding that made the quorum; none without a quorum.
    pub wait: Option<Duration>,
    /// From its first Binding to the one that made the quorum; none without a quorum.
    pub to_quorum: Option<Duration>,
    /// The time that its workers were bound before the quorum was, summed over them.
    pub held: Duration,
    /// When the last worker had succeeded; none if not all have.
    pub finished_at: Option<Duration>,
}

/// What a watch event meant for the replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing went on by it.
    Nothing,
    /// A worker was created, bound, or ended.
    Progress,
    /// All workers of a job have succeeded. The names are theirs.
    Finished(Vec<String>),
}

/// The outcome of all checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GangOutcome {
    /// What became of each job, in the order of their names.
    pub results: Vec<JobResult>,
    /// The first violations.
    pub faults: Vec<Fault>,
    /// How many violations there were.
    pub fault_count: usize,
    /// Watch events that were judged.
    pub events: u64,
    /// The most pods that were there at a time.
    pub most_pods: usize,
    /// How long a gang may be bound in part.
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
    /// By uid.
    members: BTreeMap<String, Member>,
    succeeded: usize,
    quorum_at: Option<Duration>,
    /// A worker is lost, so it will not finish.
    is_broken: bool,
    result: Option<JobResult>,
}

/// The check, from event to event.
#[derive(Debug)]
pub struct GangCheck {
    ledger: NodeLedger,
    gangs: BTreeMap<String, Gang>,
    /// Uids of the pods that are there.
    present: BTreeSet<String>,
    settled: usize,
    outcome: GangOutcome,
}

impl GangCheck {
    /// Begins a check of these jobs on these nodes. A gang may be bound in part for as long as `limit`.
    pub fn new(nodes: &[Value], jobs: &[GangJob], limit: Duration) -> Self {
        let (ledger, unclear) = NodeLedger::new(nodes);
        let gang = |job: &GangJob| Gang { workers: job.workers, quorum: job.workers, ..Gang::default() };
        let gangs = jobs.iter().map(|job| (job.name.clone(), gang(job))).collect();
        let outcome = GangOutcome { limit, ..GangOutcome::default() };
        let mut check = Self { ledger, gangs, present: BTreeSet::new(), settled: 0, outcome };
        unclear.into_iter().for_each(|what| check.outcome.fault(Fault::Unclear(what)));
        check
    }

    /// Judges a pod as it now is, or as it was when it was deleted; `at` is the time since the replay began.
    pub fn observe(&mut self, pod: &Value, is_deleted: bool, at: Duration) -> Seen {
        self.outcome.events += 1;
        self.count(pod, is_deleted);
        let judgement = self.ledger.book(pod, is_deleted);
        let (job, worker) = (annotation(pod, GANG_NAME), text(pod, "/metadata/name"));
        for over in judgement.overcommitted {
            let (job, worker) = (job.to_owned(), worker.to_owned());
            self.outcome.fault(Fault::Overcommitted { at, job, worker, over });
        }
        judgement.unclear.into_iter().for_each(|what| self.outcome.fault(Fault::Unclear(what)));
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

    /// Whether no job is left that could still finish.
    pub fn is_settled(&self) -> bool {
        self.settled == self.gangs.len()
    }

    /// Returns how many jobs have come to an end, good or bad.
    pub fn settled(&self) -> usize {
        self.settled
    }

    /// Ends the check and returns the outcome.
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
        let member = self.members.entry(uid.to_owned()).or_insert_with(|| Member {
            name: name.to_owned(),
            created: at,
            ..Member::default()
        });
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

    /// Notes the quorum when the last Binding made it.
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

    /// Returns when its members were bound.
    fn bound(&self) -> impl Iterator<Item = Duration> {
        self.members.values().filter_map(|member| member.bound)
    }

    /// Says what is wrong with a gang at the end of the replay. A lost worker has been told of.
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

/// Reads from a worker's annotations how many of its gang must be bound together.
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
