//! The read about a pod: its queue with the amounts of each resource that the pod requests, and who has what it lacks.
//!
//! Not here: the sentence (`standing`), and how what a queue deserves comes about (`explain`).

use std::collections::BTreeMap;

use pellucid_api::rest::BodySchema;
use pellucid_api::rest::proportion::{PodQueue, PodQueueAmounts, QueueConsumer};
use pellucid_framework::View;
use pellucid_framework::advice::PodRead;
use pellucid_model::{Name, Pod, PodKey};
use pellucid_plugin_helper::listing::{MAX_EXAMPLES, largest};

use super::super::admission::{Asking, Short};
use super::super::amounts::{of_list, text};
use super::super::queues::{Member, Queues};

/// The read about a pod.
pub(in super::super) const POD_READ: PodRead = PodRead {
    path: "queue",
    summary: "Where a pod stands with its Queue of kube-batch: what the queue holds and deserves of each resource, which of them \
              it refuses the pod for, and who has that",
    body: BodySchema::of::<PodQueue>(),
    rows: "/resources",
};

impl Queues {
    /// Returns the body of the read about a pod.
    pub(super) fn of_pod(&self, view: View<'_>, pod: &Pod) -> PodQueue {
        let (spec, gangs) = (&*pod.spec, view.cluster().gangs());
        let queue = self.queue_of(spec);
        let lack = self.lack(gangs, spec);
        let amounts = |asking: Asking<'_>| {
            let blocking = (self.beyond_capability(asking), self.overused(asking));
            let mut requests = asking.requests();
            let pods = Name::new("pods");
            if self.capability(asking.queue, &pods).is_some() {
                requests.push((pods, 1));
            }
            requests.into_iter().map(|request| self.amounts(view, asking, request, &blocking)).collect()
        };
        PodQueue {
            namespace: pod.key.namespace.to_string(),
            name: pod.key.name.to_string(),
            queue: queue.map(Name::to_string),
            pod_group: self.member(spec).and_then(|member| match member {
                Member::Group(key) => Some(key.to_string()),
                Member::Shadow => None,
            }),
            exists: queue.is_some_and(|queue| self.exists(queue)),
            code: lack.as_ref().map(|lack| lack.code().to_owned()),
            text: self.sentence(gangs, spec),
            resources: self.asking(gangs, spec).map(amounts).unwrap_or_default(),
        }
    }

    fn amounts(
        &self,
        view: View<'_>,
        asking: Asking<'_>,
        (resource, requested): (Name, i128),
        (beyond, overused): &(Vec<Short>, Vec<Short>),
    ) -> PodQueueAmounts {
        let queue = asking.queue;
        let is_counted = resource.as_str() == "pods";
        let tenant = self.tenants.get(queue);
        let held = tenant.map_or(0, |tenant| match is_counted {
            true => tenant.sums.placed.into(),
            false => tenant.sums.allocated.get(&resource),
        });
        let asked = tenant.map_or(0, |tenant| match is_counted {
            true => tenant.sums.pods.into(),
            false => tenant.sums.requested.get(&resource),
        });
        let of = |amount: i128| text(&resource, amount);
        let is_in = |list: &[Short]| list.iter().any(|short| short.resource == resource);
        let named = |all: Vec<(i128, &Name)>| -> BTreeMap<String, String> {
            all.into_iter().map(|(amount, other)| (other.to_string(), of(amount))).collect()
        };
        let blocked_by = match (is_in(beyond), is_in(overused)) {
            (true, _) => Some("capability"),
            (false, true) => Some("deserved"),
            (false, false) => None,
        };
        let deserved = (!is_counted).then(|| of(self.deserved_with(queue, &resource, requested)));
        PodQueueAmounts {
            requested: of(requested),
            blocked_by: blocked_by.map(str::to_owned),
            allocated: of(held),
            own_gang: of(asking.own.map_or(0, |own| own.get(&resource))),
            deserved,
            capability: self.capability(queue, &resource).map(of),
            request: of(asked),
            borrowers: named(self.borrowers(queue, &resource)),
            holders: named(self.holders(queue, &resource)),
            consumers: match blocked_by.is_some() && !is_counted {
                true => self.consumers(view, queue, &resource),
                false => Vec::new(),
            },
            resource: resource.to_string(),
        }
    }

    /// Returns the pods of a queue that hold most of a resource.
    fn consumers(&self, view: View<'_>, queue: &Name, resource: &Name) -> Vec<QueueConsumer> {
        let records = view.cluster().pods().map(|(_, record)| record);
        let own = records.filter(|r| r.node.is_some() && self.queue_of(&r.pod.spec) == Some(queue));
        let held = own.filter_map(|record| {
            let found = of_list(&record.pod.spec.requests.list).find(|(known, _)| known == resource);
            found.map(|(_, amount)| (amount, &record.pod.key))
        });
        let (most, _) = largest(held, MAX_EXAMPLES);
        let show = |(amount, pod): (i128, &PodKey)| QueueConsumer {
            pod: pod.to_string(),
            allocated: text(resource, amount),
        };
        most.into_iter().map(show).collect()
    }
}
