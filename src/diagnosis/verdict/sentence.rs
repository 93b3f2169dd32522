//! The verdict on a refused pod as a sentence.

use pellucid_framework::Cause;
use pellucid_model::sentence::ended;
use pellucid_recording::{Group, Refusal};

use pellucid_api::rest::explain::Outlook;

use super::PodVerdict;
use crate::explain::{shortfall_text, with_subject};
use crate::requirements::outlook;

/// Returns a sentence on why a pod is pending: its own cause, or what the nearest nodes fail; whether it can fit; and
/// what would help. `refusal` says how many nodes and causes the attempt met.
pub(crate) fn sentence(refusal: &Refusal, verdict: &PodVerdict) -> String {
    let mut parts = vec![why(refusal, verdict)];
    // Of a pod that waits for others to end, the remedies say so.
    let telling = verdict.outlook.as_ref().filter(|outlook| outlook.code != outlook::HELD);
    parts.extend(telling.map(said_of));
    parts.extend(verdict.remedies.iter().map(|remedy| (*remedy).to_owned()));
    parts.join(" ")
}

fn why(refusal: &Refusal, verdict: &PodVerdict) -> String {
    if let Some(told) = verdict.told.as_ref().filter(|_| refusal.pod_cause.is_some()) {
        return ended(format!("Not placed: {told}"));
    }
    if let Some(cause) = &refusal.pod_cause {
        return ended(format!("Not placed: {}", described(cause)));
    }
    let (total, causes) = (refusal.total_nodes, refusal.groups.len());
    let nearest = verdict.nearest.as_ref().map(|nearest| &nearest.group);
    match (&*refusal.groups, nearest) {
        ([], _) => "Not placed: the cluster has no nodes.".into(),
        (_, Some(nearest)) if nearest.count == total => {
            ended(format!("None of {total} nodes fits: {}", of_group(nearest)))
        }
        ([group], None) => ended(format!("None of {total} nodes fits: {}", of_group(group))),
        (_, Some(nearest)) => {
            let nodes = match (nearest.examples.first(), nearest.count) {
                (Some(name), 1) => format!("Nearest is {name}"),
                (Some(name), count) => format!("Nearest are {count} nodes, such as {name}"),
                (None, count) => format!("Nearest are {count} nodes"),
            };
            let causes = match causes {
                1 => "one cause".to_owned(),
                n => format!("{n} causes"),
            };
            ended(format!("None of {total} nodes fits, for {causes}. {nodes}: {}", of_group(nearest)))
        }
        ([first, others @ ..], None) => {
            let rest = match others.len() {
                1 => "one other cause".to_owned(),
                n => format!("{n} other causes"),
            };
            let (count, group) = (first.count, of_group(first));
            format!("None of {total} nodes fits. {count} of them: {group}. The rest have {rest}.")
        }
    }
}

/// Returns what the nodes of a group fail, with shortfalls.
fn of_group(group: &Group) -> String {
    let lacking: Vec<String> =
        group.measures.iter().map(|m| format!("{}: {}", m.resource, shortfall_text(m))).collect();
    let lacking = if lacking.is_empty() { String::new() } else { format!(" ({})", lacking.join("; ")) };
    format!("{}{lacking}", described(&group.cause))
}

fn described(cause: &Cause) -> String {
    let texts: Vec<String> =
        cause.reasons.iter().map(|r| with_subject(r.message(), r.subject.as_deref())).collect();
    texts.join(", ")
}

/// Returns an outlook as a sentence. It begins with a capital letter, but for the name of a node, which stays as it is.
fn said_of(outlook: &Outlook) -> String {
    let text = &outlook.message;
    let begins_with_name = outlook.node.as_ref().is_some_and(|node| text.starts_with(node.as_str()));
    ended(if begins_with_name { text.clone() } else { capitalised(text) })
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
