//! The endpoints: what each queue deserves, requests and holds, and what of it waits.

use std::collections::BTreeMap;

use pellucid_api::rest::proportion::{
    ProportionState, QueueExplanation, QueueProblem, QueueRow, QueueSummaries, QueueSummary, QueueWaiting,
};
use pellucid_cluster::PodRecord;
use pellucid_framework::View;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_model::{Name, PodKey};
use serde_json::{Value, json};

use super::amounts::{Amounts, of_model, text};
use super::queues::{Declared, Member, Queues, Tenant};
use pellucid_plugin_helper::listing::{Examples, MAX_ROWS, cut, pending};

/// The API groups of Queues, in order of precedence.
pub(super) const API_GROUPS: [&str; 2] = ["scheduling.incubator.k8s.io", "scheduling.sigs.dev"];

pub(super) fn all() -> Vec<Endpoint> {
    vec![
        Endpoint::of::<ProportionState>("state", "All queues in short, and what is wrong with them", state)
            .with_rows("rows"),
        Endpoint::of::<QueueSummaries>("queues", "All queues with what of them waits, by name", all_queues),
        Endpoint::of::<QueueSummary>(
            "queues/:name",
            "What a queue deserves, what its pods request and hold, and which of them wait",
            one_queue,
        ),
        Endpoint::of::<QueueExplanation>(
            "queues/:name",
            "How what a queue deserves comes about: rounds, loans, and what limits it",
            super::explain::read,
        )
        .explaining(),
    ]
}

fn queues<'a>(view: View<'a>) -> Result<&'a Queues, ReadError> {
    view.state::<Queues>().ok_or_else(|| ReadError::NotFound {
        code: "PluginNotEnabled",
        message: "no profile enables Proportion".to_owned(),
    })
}

fn state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let Some(queues) = cx.view.state::<Queues>() else { return Ok(json!(ProportionState::default())) };
    let names = queues.shown();
    let resources = queues.resources();
    let rows = names.iter().flat_map(|queue| resources.iter().map(move |r| queues.row(queue, r)));
    let (rows, truncated) = cut(rows.take(MAX_ROWS + 1).collect(), MAX_ROWS);
    let total = resources.iter().map(|r| (r.to_string(), text(r, queues.total.get(r)))).collect();
    let unknown = queues.tenants.iter().filter(|(queue, _)| !queues.exists(queue));
    Ok(json!(ProportionState {
        queues: names.len(),
        is_active: queues.is_active(),
        total,
        rows,
        problems: queues.declared.keys().flat_map(|queue| queues.problems(queue)).collect(),
        unknown_queues: unknown.map(|(queue, t)| (queue.to_string(), t.sums.pods)).collect(),
        truncated,
    }))
}

fn all_queues(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let queues = queues(cx.view)?;
    let mut waiting = queues.waiting(cx.view);
    let (names, truncated) = cut(queues.shown(), MAX_ROWS);
    let parts = queues.all_parts();
    let summary =
        |queue: &Name| queues.summary(cx.view, queue, &parts, waiting.remove(queue).unwrap_or_default());
    let all = names.iter().map(summary).collect();
    Ok(json!(QueueSummaries { queues: all, truncated }))
}

fn one_queue(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let (queues, name) = named(cx)?;
    let waiting = queues.waiting(cx.view).remove(&name).unwrap_or_default();
    Ok(json!(queues.summary(cx.view, &name, &queues.all_parts(), waiting)))
}

/// Finds the queue that a path names.
pub(super) fn named<'a>(cx: &ReadContext<'a>) -> Result<(&'a Queues, Name), ReadError> {
    let queues = queues(cx.view)?;
    let text = cx.params.get("name").map_or("", String::as_str);
    let name = Name::new(text);
    if !queues.exists(&name) {
        let message = format!("cannot find queue {text}");
        return Err(ReadError::NotFound { code: "QueueNotFound", message });
    }
    Ok((queues, name))
}

/// The pods of one PodGroup that wait, or one without.
#[derive(Default)]
struct Waiters<'a> {
    examples: Examples,
    first: Option<&'a PodRecord>,
}

/// Parts by weight of the existing queues, by resource.
type Parts = BTreeMap<Name, Vec<i64>>;

/// PodGroups, then pods without one.
type Waiting<'a> = BTreeMap<(Option<String>, Option<&'a PodKey>), Waiters<'a>>;

impl Queues {
    /// Returns the names of the queues that exist, sorted.
    fn shown(&self) -> Vec<Name> {
        if self.existing.is_empty() { vec![self.default_queue().clone()] } else { self.existing.to_vec() }
    }

    fn row(&self, queue: &Name, resource: &Name) -> QueueRow {
        let tenant = self.tenants.get(queue);
        let of = |amounts: fn(&Tenant) -> &Amounts| {
            text(resource, tenant.map_or(0, |tenant| amounts(tenant).get(resource)))
        };
        QueueRow {
            queue: queue.to_string(),
            resource: resource.to_string(),
            weight: self.weight(queue),
            request: of(|t| &t.sums.requested),
            deserved: of(|t| &t.deserved),
            allocated: of(|t| &t.sums.allocated),
            capability: self.capability(queue, resource).map(|limit| text(resource, limit)),
            is_overused: self.is_overused(queue, resource),
        }
    }

    /// Returns the parts of all queues by weight, of each resource.
    fn all_parts(&self) -> Parts {
        self.resources().into_iter().map(|resource| (resource.clone(), self.parts(&resource))).collect()
    }

    /// Returns what a queue deserves beyond its part by weight, by resource.
    fn borrowed(&self, queue: &Name, parts: &Parts) -> BTreeMap<String, String> {
        let (at, tenant) = (self.existing.binary_search(queue), self.tenants.get(queue));
        let (Ok(at), Some(tenant)) = (at, tenant) else { return BTreeMap::new() };
        let beyond = |(resource, deserved): &(Name, i128)| {
            let amount = deserved - i128::from(*parts.get(resource)?.get(at)?);
            (amount > 0).then(|| (resource.to_string(), text(resource, amount)))
        };
        tenant.deserved.iter().filter_map(beyond).collect()
    }

    fn is_overused(&self, queue: &Name, resource: &Name) -> bool {
        self.is_active()
            && self.tenants.get(queue).is_some_and(|tenant| {
                let held = tenant.sums.allocated.get(resource);
                tenant.sums.requested.get(resource) > held && held >= tenant.deserved.get(resource)
            })
    }

    /// Returns the API groups that have an object of a queue.
    pub(super) fn api_groups(&self, queue: &Name) -> Vec<String> {
        let groups = self.declared.get(queue).into_iter().flat_map(|of| API_GROUPS.iter().zip(&of.0));
        groups.filter(|(_, object)| object.is_some()).map(|(group, _)| (*group).to_owned()).collect()
    }

    /// Returns what is wrong with the objects of a queue.
    pub(super) fn problems(&self, queue: &Name) -> Vec<QueueProblem> {
        let Some(declared) = self.declared.get(queue) else { return Vec::new() };
        let of = |at: usize, field: &str, value: &str, problem: String| QueueProblem {
            queue: queue.to_string(),
            api_group: API_GROUPS[at].to_owned(),
            field: field.to_owned(),
            value: value.to_owned(),
            problem,
        };
        let mut all = Vec::new();
        for (at, object) in declared.0.iter().enumerate().filter_map(|(at, o)| Some((at, o.as_ref()?))) {
            let wrong = object.problems.iter();
            all.extend(wrong.map(|p| of(at, &p.field, &p.value, p.problem.to_string())));
        }
        if let [Some(first), Some(second)] = &declared.0
            && (first.weight, &first.capability) != (second.weight, &second.capability)
        {
            let problem =
                format!("a Queue of this name in {} counts, and says something else", API_GROUPS[0]);
            all.push(of(1, "metadata.name", queue, problem));
        }
        all
    }

    /// Collects the pods that wait, by queue.
    fn waiting<'a>(&self, view: View<'a>) -> BTreeMap<Name, Waiting<'a>> {
        let mut all: BTreeMap<Name, Waiting<'a>> = BTreeMap::new();
        for record in pending(view) {
            let Some(member) = self.member(&record.pod.spec) else { continue };
            let Some(queue) = self.queue_of(&record.pod.spec) else { continue };
            let key = match member {
                Member::Group(group) => (Some(group.to_string()), None),
                Member::Shadow => (None, Some(&record.pod.key)),
            };
            let waiters = all.entry(queue.clone()).or_default().entry(key).or_default();
            waiters.examples.add(&record.pod.key.to_string());
            if waiters.first.is_none_or(|first| record.pod.key < first.pod.key) {
                waiters.first = Some(record);
            }
        }
        all
    }

    fn summary(&self, view: View<'_>, queue: &Name, parts: &Parts, waiting: Waiting<'_>) -> QueueSummary {
        let tenant = self.tenants.get(queue).cloned().unwrap_or_default();
        let show = |amounts: &Amounts| -> BTreeMap<String, String> {
            amounts.iter().map(|(r, amount)| (r.to_string(), text(r, *amount))).collect()
        };
        let declared = self.declared.get(queue);
        let limits = declared.and_then(Declared::counting).map_or(&[][..], |counting| &*counting.capability);
        let reason = |waiters: &Waiters<'_>| {
            let lack = self.lack(view.cluster().gangs(), &waiters.first?.pod.spec)?;
            Some(lack.code().to_owned())
        };
        let (waiting, truncated) = cut(waiting.into_iter().collect(), MAX_ROWS);
        let shown = |((pod_group, _), waiters): ((Option<String>, Option<&PodKey>), Waiters<'_>)| {
            let reason = reason(&waiters);
            let (pods, examples) = waiters.examples.finish();
            QueueWaiting { pod_group, pods, examples, reason }
        };
        QueueSummary {
            name: queue.to_string(),
            api_groups: self.api_groups(queue),
            weight: self.weight(queue),
            deserved: show(&tenant.deserved),
            allocated: show(&tenant.sums.allocated),
            request: show(&tenant.sums.requested),
            capability: limits.iter().map(|(r, n)| (r.to_string(), text(r, of_model(r, *n)))).collect(),
            overused: {
                let resources = tenant.sums.requested.iter().map(|(resource, _)| resource);
                resources.filter(|r| self.is_overused(queue, r)).map(Name::to_string).collect()
            },
            borrowed: self.borrowed(queue, parts),
            placed_pods: tenant.sums.placed,
            waiting: waiting.into_iter().map(shown).collect(),
            truncated,
            problems: self.problems(queue),
        }
    }
}
