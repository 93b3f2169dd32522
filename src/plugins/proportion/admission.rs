//! Admission: whether a pod's queue lets the pod be tried, and the refusal if it does not.
//!
//! A pod is judged by the resources that it requests alone, so one that requests none is placed whatever its queue holds.

use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};
use pellucid_cluster::gangs::Gangs;
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::{Name, PodSpec};

use super::NAME;
use super::amounts::{Amounts, of_list, text};
use super::queues::{Member, Queues, Tenant};

/// Refuses a pod whose queue holds what it deserves.
pub(super) static OVERUSED: PluginReason = PluginReason {
    code: "QueueOverused",
    plugin: NAME,
    message: "queue is overused, {}",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Pod,
    meaning: "The pods of the queue hold, of a resource that the pod requests, what the queue deserves or more: its part \
              of the cluster by weight, with what other queues do not request. A gang is judged as a whole, before its \
              first member.",
    remedy: "Wait until pods of the queue end or other queues request less, raise its weight, or move the PodGroup to \
             another queue.",
    never: Some("Raise the queue's weight, or move the PodGroup to another queue."),
    example: Example {
        subject: "queue: research, cpu: allocated 40, deserved 40, pod's request 4",
        message: "queue is overused, queue: research, cpu: allocated 40, deserved 40, pod's request 4",
        situation: "Two queues of equal weight share 80 cores, both request more than half, and research holds its half.",
    },
};

/// Refuses a pod with which its queue would hold more than it may.
pub(super) static CAPABILITY: PluginReason = PluginReason {
    code: "QueueCapabilityExceeded",
    plugin: NAME,
    message: "queue has reached its capability, {}",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Pod,
    meaning: "With the pod, the pods of the queue would hold more of a resource than spec.capability of the Queue allows.",
    remedy: "Wait until pods of the queue end, raise its capability, or move the PodGroup to another queue.",
    never: Some("Raise the queue's capability, request less, or move the PodGroup to another queue."),
    example: Example {
        subject: "queue: research, cpu: allocated 8, capability 10, pod's request 4",
        message: "queue has reached its capability, queue: research, cpu: allocated 8, capability 10, pod's request 4",
        situation: "Pods of research hold 8 cores of the 10 that it may, and a pod asks for 4.",
    },
};

/// A resource of which a queue has too little for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) resource: Name,
    pub(super) allocated: i128,
    /// What the queue deserves, or its capability.
    pub(super) limit: i128,
    pub(super) request: i128,
}

/// Why a queue does not let a pod be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lack {
    pub(super) queue: Name,
    /// Whether its capability is too small; otherwise it holds what it deserves.
    pub(super) is_capability: bool,
    /// The resources, by name; never empty.
    pub(super) resources: Vec<Short>,
}

/// A pod before its queue.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) queue: &'a Name,
    /// What its gang holds already, which does not count against it while the gang is short of its quorum.
    pub(super) own: Option<&'a Amounts>,
    spec: &'a PodSpec,
}

impl Asking<'_> {
    /// Returns what the pod requests, by name of the resource.
    pub(super) fn requests(&self) -> Vec<(Name, i128)> {
        let mut requests: Vec<(Name, i128)> = of_list(&self.spec.requests.list).collect();
        requests.sort();
        requests
    }
}

impl Queues {
    /// Returns why a pod with this spec is not tried, `None` when it is.
    pub(super) fn lack(&self, gangs: &Gangs, spec: &PodSpec) -> Option<Lack> {
        let asking = self.asking(gangs, spec)?;
        let of = |is_capability, resources: Vec<Short>| {
            (!resources.is_empty()).then(|| Lack { queue: asking.queue.clone(), is_capability, resources })
        };
        of(true, self.beyond_capability(asking)).or_else(|| of(false, self.overused(asking)))
    }

    /// Returns the queue that judges a pod, `None` when none does: there is no Queue, the pod is in none, or in one that does
    /// not exist.
    pub(super) fn asking<'a>(&'a self, gangs: &Gangs, spec: &'a PodSpec) -> Option<Asking<'a>> {
        if !self.is_active() {
            return None;
        }
        let member = self.member(spec)?;
        let (queue, own) = match &member {
            Member::Shadow => (self.default_queue(), None),
            Member::Group(key) => {
                let job = self.jobs.get(key)?;
                // A gang is judged as it was before its first member: one that begins is not stopped by itself.
                let is_short = gangs.get(key).is_some_and(|gang| !gang.is_satisfied());
                (job.queue()?, is_short.then_some(&job.sums.allocated))
            }
        };
        // Of a missing queue the gang says so.
        self.exists(queue).then_some(Asking { queue, own, spec })
    }

    /// Returns the resources of which the queue would hold more than its capability with the pod.
    pub(super) fn beyond_capability(&self, asking: Asking<'_>) -> Vec<Short> {
        let (queue, requests) = (asking.queue, asking.requests());
        let tenant = self.tenants.get(queue);
        let pods = (Name::new("pods"), 1);
        let short = |(resource, request): &(Name, i128)| {
            let limit = self.capability(queue, resource)?;
            let held = |t: &Tenant| match resource.as_str() {
                "pods" => t.sums.placed.into(),
                _ => t.sums.allocated.get(resource),
            };
            let allocated = tenant.map_or(0, |tenant| held(tenant));
            let (resource, request) = (resource.clone(), *request);
            (allocated + request > limit).then_some(Short { resource, allocated, limit, request })
        };
        requests.iter().chain([&pods]).filter_map(short).collect()
    }

    /// Returns the resources of which the queue holds what it deserves, among those that the pod requests.
    pub(super) fn overused(&self, asking: Asking<'_>) -> Vec<Short> {
        let Asking { queue, own, .. } = asking;
        let tenant = self.tenants.get(queue);
        let short = |(resource, request): &(Name, i128)| {
            if self.total.get(resource) <= 0 && self.weight(queue) > 0 {
                // No node has any: that is what keeps the pod. A queue without weight would have no part of it either.
                return None;
            }
            let all = tenant.map_or(0, |tenant| tenant.sums.allocated.get(resource));
            let allocated = all - own.map_or(0, |own| own.get(resource));
            let limit = self.deserved_with(queue, resource, *request);
            let (resource, request) = (resource.clone(), *request);
            (allocated >= limit).then_some(Short { resource, allocated, limit, request })
        };
        asking.requests().iter().filter_map(short).collect()
    }
}

impl Lack {
    /// Returns the code of the refusal.
    pub(super) fn code(&self) -> &'static str {
        if self.is_capability { CAPABILITY.code } else { OVERUSED.code }
    }

    /// Returns the refusal of the pod.
    pub(super) fn cause(&self) -> Cause {
        let (reason, limit) =
            if self.is_capability { (&CAPABILITY, "capability") } else { (&OVERUSED, "deserved") };
        let numbers = |short: &Short| {
            let of = |amount| text(&short.resource, amount);
            let (allocated, most, request) = (of(short.allocated), of(short.limit), of(short.request));
            format!("{}: allocated {allocated}, {limit} {most}, pod's request {request}", short.resource)
        };
        let all: Vec<String> = self.resources.iter().map(numbers).collect();
        let subject = format!("queue: {}, {}", self.queue, all.join("; "));
        Cause::new(NAME, Code::Unschedulable, Reason::about(ReasonCode::Plugin(reason), subject.as_str()))
    }
}
