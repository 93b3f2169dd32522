//! Where a pod stands with its queue, in one sentence with the numbers.
//!
//! Not here: what would help (`proposals`), and how a queue's share comes about (`explain`).

use pellucid_cluster::gangs::Gangs;
use pellucid_model::{Name, PodSpec};
use pellucid_plugin_helper::listing::largest;

use super::super::admission::{Asking, Short};
use super::super::amounts::{clamp, text};
use super::super::queues::Queues;

/// Number of other queues that a sentence names.
const MOST_NAMED: usize = 3;

/// What must come free of a resource.
struct Needed {
    resource: Name,
    /// The least, or with `is_more` what must be exceeded.
    amount: i128,
    is_more: bool,
}

impl Queues {
    /// Returns how a pod stands with its queue, in one sentence; `None` when there is nothing to say.
    pub(super) fn sentence(&self, gangs: &Gangs, spec: &PodSpec) -> Option<String> {
        let asking = self.asking(gangs, spec)?;
        let (beyond, mut overused) = (self.beyond_capability(asking), self.overused(asking));
        // What the capability alone keeps a queue from is said once.
        let is_said = |short: &Short| {
            let most = self.capability(asking.queue, &short.resource);
            most.is_some_and(|most| short.limit >= most)
        };
        overused.retain(|short| !is_said(short));
        match beyond.is_empty() && overused.is_empty() {
            true => self.owed(asking),
            false => Some(self.refusing(asking, &beyond, &overused)),
        }
    }

    /// Says by which numbers a queue refuses a pod, who has what it lacks, and how it becomes free.
    fn refusing(&self, asking: Asking<'_>, beyond: &[Short], overused: &[Short]) -> String {
        let queue = asking.queue;
        let beyond_numbers = beyond.iter().map(|short| {
            let of = |amount| text(&short.resource, amount);
            let (held, request, most) = (of(short.allocated), of(short.request), of(short.limit));
            format!("{} allocated {held} + {request} > capability {most}", short.resource)
        });
        let numbers: Vec<String> =
            beyond_numbers.chain(overused.iter().map(|short| self.numbers(queue, short))).collect();
        let mut parts = vec![format!("queue {queue}: {}", numbers.join(", "))];
        for short in overused {
            let of = if overused.len() > 1 { format!("{}: ", short.resource) } else { String::new() };
            parts.extend(self.held_by(queue, short).map(|held| format!("{of}{held}")));
        }
        parts.extend(self.freed(asking, beyond, overused));
        parts.join("; ")
    }

    fn numbers(&self, queue: &Name, short: &Short) -> String {
        let of = |amount| text(&short.resource, amount);
        let (held, deserved, request) = (of(short.allocated), of(short.limit), of(short.request));
        let weights: i128 = self.existing.iter().map(|queue| i128::from(self.weight(queue))).sum();
        let weight = self.weight(queue);
        format!(
            "{} allocated {held} >= deserved {deserved} (weight {weight} of {weights}), the pod requests {request}",
            short.resource
        )
    }

    /// Says who has what a queue requests beyond what it deserves.
    fn held_by(&self, queue: &Name, short: &Short) -> Option<String> {
        let (resource, total) = (&short.resource, self.total.get(&short.resource));
        let of = |amount: i128| text(resource, amount);
        if self.weight(queue) == 0 {
            return Some("with weight 0 it deserves nothing".to_owned());
        }
        if short.limit >= total {
            return Some(format!("that is all that nodes offer, {}", of(total)));
        }
        let (borrowers, more) = largest(self.borrowers(queue, resource), MOST_NAMED);
        if borrowers.is_empty() {
            let others = self.existing.iter().filter(|other| *other != queue);
            let deserved = of(others.map(|other| self.deserved(other, resource)).sum());
            let all = of(total);
            return Some(format!("the other queues deserve {deserved} of {all}, within their weights"));
        }
        let named = borrowers.iter();
        let named: Vec<String> = named.map(|(n, other)| format!("{other} borrows {}", of(*n))).collect();
        let more = if more > 0 { format!(", {more} others borrow too") } else { String::new() };
        Some(format!("{}{more}", named.join(", ")))
    }

    /// Returns by how much other queues deserve more than their parts by weight.
    pub(super) fn borrowers<'q>(&'q self, queue: &Name, resource: &Name) -> Vec<(i128, &'q Name)> {
        let with_parts = self.existing.iter().zip(self.parts(resource));
        let beyond =
            with_parts.map(|(other, part)| (self.deserved(other, resource) - i128::from(part), other));
        beyond.filter(|(amount, other)| *amount > 0 && *other != queue).collect()
    }

    /// Returns by how much other queues hold more than they deserve.
    pub(super) fn holders<'q>(&'q self, queue: &Name, resource: &Name) -> Vec<(i128, &'q Name)> {
        let beyond = |other: &'q Name| {
            let held = self.tenants.get(other)?.sums.allocated.get(resource);
            Some((held - self.deserved(other, resource), other))
        };
        let beyond = self.existing.iter().filter_map(beyond);
        beyond.filter(|(amount, other)| *amount > 0 && *other != queue).collect()
    }

    fn deserved(&self, queue: &Name, resource: &Name) -> i128 {
        self.tenants.get(queue).map_or(0, |tenant| tenant.deserved.get(resource))
    }

    /// Says after what the queue takes the pod; `None` when neither ending pods nor other queues can bring that about.
    fn freed(&self, asking: Asking<'_>, beyond: &[Short], overused: &[Short]) -> Option<String> {
        let mut ways = Vec::new();
        let is_within = |short: &Short| short.request <= short.limit;
        // Who deserves nothing is never below it.
        if beyond.iter().all(is_within) && overused.iter().all(|short| short.limit > 0) {
            ways.push(self.ending(asking, &needed(beyond, overused)));
        }
        if beyond.is_empty() && overused.iter().all(|short| self.is_held_by_others(asking.queue, short)) {
            ways.push("other queues request less".to_owned());
        }
        (!ways.is_empty()).then(|| format!("freed when {}", ways.join(", or ")))
    }

    /// Returns whether what other queues deserve would be enough, if they no longer requested it.
    fn is_held_by_others(&self, queue: &Name, short: &Short) -> bool {
        let others = self.existing.iter().filter(|other| *other != queue);
        let held: i128 = others.map(|other| self.deserved(other, &short.resource)).sum();
        let reached = short.limit + held;
        let most = self.capability(queue, &short.resource).unwrap_or(i128::MAX);
        self.weight(queue) > 0 && short.allocated < reached.min(most)
    }

    fn ending(&self, asking: Asking<'_>, needed: &[Needed]) -> String {
        let whose = match asking.own.is_some_and(|own| !own.is_empty()) {
            true => format!("{} outside its gang", asking.queue),
            false => asking.queue.to_string(),
        };
        let amounts = needed.iter().filter(|of| &*of.resource != "pods").map(|of| {
            let amount = match (of.is_more, of.amount) {
                (true, 0) => "some".to_owned(),
                (true, amount) => format!("more than {}", text(&of.resource, amount)),
                (false, amount) => text(&of.resource, amount),
            };
            format!("{amount} {}", of.resource)
        });
        let amounts: Vec<String> = amounts.collect();
        let pods = needed.iter().find(|of| &*of.resource == "pods").map_or(0, |of| clamp(of.amount));
        match (amounts.join(" and "), pods) {
            (all, 0) => format!("pods of {whose} with {all} end"),
            (all, 1) if all.is_empty() => format!("a pod of {whose} ends"),
            (all, n) if all.is_empty() => format!("{n} pods of {whose} end"),
            (all, n) => format!("{n} or more pods of {whose} with {all} end"),
        }
    }

    /// Says who holds more than it deserves of what a pod requests that its queue lets pass.
    fn owed(&self, asking: Asking<'_>) -> Option<String> {
        let requests = asking.requests();
        let of_each = requests.iter().map(|(resource, request)| {
            let held = self.holders(asking.queue, resource).into_iter();
            let over = held.map(|(n, other)| format!("{other} holds {}", text(resource, n)));
            (resource, *request, over.collect::<Vec<String>>())
        });
        let (resource, request, over) = of_each.into_iter().find(|(_, _, over)| !over.is_empty())?;
        let more = over.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} others hold some") } else { String::new() };
        let of = |amount| text(resource, amount);
        let held = self.tenants.get(asking.queue).map_or(0, |tenant| tenant.sums.allocated.get(resource));
        Some(format!(
            "queue {}: {resource} allocated {} < deserved {}, the pod requests {}; {}{more} beyond what it deserves, and \
             nobody takes that back",
            asking.queue,
            of(held - asking.own.map_or(0, |own| own.get(resource))),
            of(self.deserved_with(asking.queue, resource, request)),
            of(request),
            over[..over.len().min(MOST_NAMED)].join(", "),
        ))
    }
}

/// Returns what must come free of each resource.
fn needed(beyond: &[Short], overused: &[Short]) -> Vec<Needed> {
    let of_capability = beyond.iter().map(|short| Needed {
        resource: short.resource.clone(),
        amount: short.allocated + short.request - short.limit,
        is_more: false,
    });
    let mut all: Vec<Needed> = of_capability.collect();
    for short in overused {
        let amount = short.allocated - short.limit;
        match all.iter_mut().find(|known| known.resource == short.resource) {
            // More than one of two equal amounts is the stricter demand.
            Some(known) if amount >= known.amount => (known.amount, known.is_more) = (amount, true),
            Some(_) => {}
            None => all.push(Needed { resource: short.resource.clone(), amount, is_more: true }),
        }
    }
    all
}
