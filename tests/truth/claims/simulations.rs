//! `POST /apis/v1/simulate` against what then happens: the same pods get places, on the same nodes, with the same
//! victims.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::case::Case;
use crate::edits::{Done, apply};
use crate::made;
use crate::objects::{Objects, gang_of, is_aside, list, node_of, text};
use crate::random::Rng;
use crate::report::Tally;
use crate::trial::Live;

/// Questions about one cluster.
const QUESTIONS: usize = 2;

pub(crate) fn look(case: &Case, times: usize, tally: &mut Tally) {
    let rng = &mut Rng::new(case.seed, 3);
    for _ in 0..QUESTIONS * times {
        let question = question(rng, case);
        if question.pods.is_empty() && question.include.is_empty() {
            continue;
        }
        one(case, &question, tally);
    }
}

struct Question {
    edits: Vec<Value>,
    pods: Vec<Value>,
    include: Vec<String>,
}

impl Question {
    fn body(&self) -> Value {
        json!({"edits": self.edits, "pods": self.pods, "include": self.include})
    }
}

fn question(rng: &mut Rng, case: &Case) -> Question {
    let mut question = Question { edits: edits(rng, &case.objects), pods: Vec::new(), include: Vec::new() };
    for at in 0..rng.between(0, 3) {
        let mut pod = made::pod(rng, &format!("new-{at}"), 12);
        pod["spec"].as_object_mut().expect("a spec").remove("schedulingGates");
        pod["spec"]["priority"] = rng.pick(&[0, 0, 0, 50]).into();
        question.pods.push(pod);
    }
    if question.pods.len() > 1 && rng.chance(30) {
        let min = question.pods.len().to_string();
        for pod in &mut question.pods {
            pod["metadata"]["namespace"] = "default".into();
            pod["metadata"]["annotations"] = json!({
                "gang.scheduling.koordinator.sh/name": "made-up",
                "gang.scheduling.koordinator.sh/min-available": min,
            });
        }
    }
    // A member of a gang brings its gang; those that wait keep the order of the queue.
    let mut include = case.sample(rng.between(0, 2));
    include = include.iter().flat_map(|key| case.objects.planned_with(key)).collect();
    include.sort_by_key(|key| case.waiting.iter().position(|other| other == key));
    include.dedup();
    question.include = include;
    question
}

fn edits(rng: &mut Rng, objects: &Objects) -> Vec<Value> {
    let nodes: Vec<&String> = objects.nodes.keys().collect();
    let placed: Vec<&String> =
        objects.placed().filter(|(_, pod)| crate::objects::can_leave(pod)).map(|(key, _)| key).collect();
    let mut edits = Vec::new();
    for at in 0..rng.between(0, 3) {
        let node = rng.pick(&nodes);
        match rng.below(6) {
            0 | 1 if !placed.is_empty() => edits.push(json!({"deletePod": rng.pick(&placed)})),
            2 => edits.push(json!({"uncordon": node})),
            3 => edits.push(json!({"copyNode": {"node": node, "name": format!("more-{at}")}})),
            4 => edits.push(json!({"labelNode": {"node": node, "key": "disktype", "value": "ssd"}})),
            _ => {
                if let Some(taint) = list(&objects.node(node)["spec"]["taints"]).first() {
                    edits.push(json!({"removeTaint": {"node": node, "key": taint["key"]}}));
                }
            }
        }
    }
    edits.sort_by_key(ToString::to_string);
    edits.dedup();
    edits
}

fn one(case: &Case, question: &Question, tally: &mut Tally) {
    let body = question.body();
    let said = match case.simulate(&body) {
        Ok(said) => said,
        Err(why) => return tally.check(case, "answers", false, || format!("{body}: {why}")),
    };
    if said["meta"]["truncated"] == true {
        return tally.skip(case, "cut", || body.to_string());
    }
    if loses_members(case, question) {
        // That a gang had its quorum once is not in the objects.
        return tally.skip(case, "members are deleted", || body.to_string());
    }
    let mut objects = case.objects.only(&question.include);
    for edit in &question.edits {
        if let Done::Impossible(why) = apply(&mut objects, edit) {
            return tally.skip(case, "edit", || format!("{why}: {body}"));
        }
    }
    for pod in &question.pods {
        objects.put_pod(pod.clone());
    }
    let before = objects.clone();
    let asked = objects.pending().filter(|(_, pod)| !is_aside(pod));
    let asked: Vec<String> = asked.map(|(key, _)| key.clone()).collect();
    let mut live = Live::of(in_queue_order(objects, question));
    live.settle();
    let happened = live.places(&asked);
    let placements: BTreeMap<String, String> = list(&said["placements"])
        .iter()
        .filter(|placed| placed["stage"] != "waiting")
        .map(|placed| (text(&placed["pod"]).to_owned(), text(&placed["node"]).to_owned()))
        .collect();
    let which = |places: &BTreeMap<String, String>| places.keys().cloned().collect::<Vec<_>>();
    let evicts = !list(&said["victims"]).is_empty() || !live.evicted.is_empty();
    let is_gang = said["gangs"].as_array().is_some_and(|gangs| !gangs.is_empty());
    let kind = match (evicts, is_gang) {
        (true, _) => ", with preemption",
        (_, true) => ", with gangs",
        _ => "",
    };
    let is_waiting = list(&said["placements"]).iter().any(|placed| placed["stage"] == "waiting");
    let is_more = placements.iter().all(|(pod, node)| happened.get(pod) == Some(node));
    if is_waiting && is_more && placements.len() < happened.len() {
        // An answer holds until the waits of gangs run out.
        return tally.skip(case, "waits ran out", || format!("happened {happened:?}; {body}"));
    }
    tally.check(case, &format!("which are placed{kind}"), which(&placements) == which(&happened), || {
        format!("simulated {placements:?}, happened {happened:?}; {body}")
    });
    if which(&placements) == which(&happened) {
        tally.check(case, &format!("which node{kind}"), placements == happened, || {
            format!("simulated {placements:?}, happened {happened:?}; {body}")
        });
    }
    let was_placed = |key: &&str| before.pods.get(*key).is_some_and(|pod| node_of(&pod.json).is_some());
    // A new pod may be evicted before or after its Binding.
    let all = list(&said["victims"]).iter().map(|victim| text(&victim["pod"]));
    let mut victims: Vec<&str> = all.filter(was_placed).collect();
    victims.sort_unstable();
    let mut evicted: Vec<&str> =
        live.evicted.iter().map(|(victim, _)| victim.as_str()).filter(was_placed).collect();
    evicted.sort_unstable();
    evicted.dedup();
    tally.check(case, "victims", victims == evicted, || {
        format!("simulated {victims:?}, evicted {evicted:?}; {body}")
    });
    answers_agree(case, question, &said, &asked, tally);
}

/// Returns whether placed members of the gangs that are planned are deleted.
fn loses_members(case: &Case, question: &Question) -> bool {
    let gangs = question.include.iter().filter_map(|key| gang_of(case.objects.pod(key)));
    let planned: BTreeSet<String> = gangs.flat_map(|gang| case.objects.gang_group(&gang)).collect();
    let deleted = question.edits.iter().filter_map(|edit| edit["deletePod"].as_str());
    let mut deleted = deleted.filter_map(|key| gang_of(case.objects.pod(key)));
    deleted.any(|gang| planned.contains(&gang))
}

/// Gives the pods creation times in the order in which they stand in the queue: those that wait, then the new ones.
fn in_queue_order(mut objects: Objects, question: &Question) -> Objects {
    let new = question
        .pods
        .iter()
        .map(|pod| format!("{}/{}", text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"])));
    let order: Vec<String> = question.include.iter().cloned().chain(new).collect();
    for (at, key) in order.iter().enumerate() {
        objects.change_pod(key, |json| {
            json["metadata"]["creationTimestamp"] = format!("2026-02-01T00:00:{at:02}Z").into();
        });
    }
    objects
}

/// Every pod is placed or refused, and gangs have their quorum when their members have places.
fn answers_agree(case: &Case, question: &Question, said: &Value, asked: &[String], tally: &mut Tally) {
    let mut told: Vec<&str> =
        ["placements", "refused"].iter().flat_map(|f| list(&said[*f])).map(|pod| text(&pod["pod"])).collect();
    told.sort_unstable();
    tally.agree(case, "each pod once", told == asked.iter().map(String::as_str).collect::<Vec<_>>(), || {
        format!("asked {asked:?}, told of {told:?}; {}", question.body())
    });
    for refused in list(&said["refused"]) {
        let groups: i64 =
            list(&refused["nodeGroups"]).iter().filter_map(|group| group["count"].as_i64()).sum();
        let rest = refused["notEvaluated"].as_i64().unwrap_or_default();
        tally.agree(case, "node groups", refused["totalNodes"] == groups + rest, || refused.to_string());
    }
    for gang in list(&said["gangs"]) {
        let (placed, min) = (gang["placed"].as_u64(), gang["min"].as_u64());
        // A gang of Koordinator's dialect that had its quorum once goes on with fewer.
        let is_once = placed > Some(0) && is_once_satisfied(case, text(&gang["gang"]));
        let is_so = gang["hasQuorum"] == (placed >= min) || is_once && gang["hasQuorum"] == true;
        tally.agree(case, "quorum and places", is_so, || gang.to_string());
    }
}

fn is_once_satisfied(case: &Case, gang: &str) -> bool {
    let all = case.objects.pending().chain(case.objects.placed()).map(|(_, pod)| pod);
    let mut members = all.filter(|pod| gang_of(pod).as_deref() == Some(gang));
    members.any(|pod| pod["metadata"]["annotations"]["gang.scheduling.koordinator.sh/name"].is_string())
}
