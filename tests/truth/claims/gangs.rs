//! Gangs: numbers that agree, a root cause that is one, never and not now, fixes that give the whole gang its quorum.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::case::Case;
use crate::claims::outlook::{gang_places, says_reservations, wanted};
use crate::edits::{Done, apply};
use crate::objects::{Objects, can_leave, gang_of, list, text};
use crate::report::Tally;
use crate::trial::Live;

pub(crate) fn look(case: &Case, most: usize, tally: &mut Tally) {
    let gangs: BTreeSet<String> = case.objects.pods.values().filter_map(|pod| gang_of(&pod.json)).collect();
    for gang in gangs.into_iter().take(most) {
        let Ok(body) = case.try_ask(&format!("/apis/v1/explain/gangs/{gang}")) else {
            tally.check(case, "explained", false, || format!("{gang} is not explained"));
            continue;
        };
        let found = Gang { case, name: &gang, body: &body };
        found.numbers(tally);
        if case.objects.members(&BTreeSet::from([gang.clone()])).is_empty() {
            continue;
        }
        found.root_cause(tally);
        found.outlook(tally);
        found.members(tally);
        found.fixes(tally);
    }
}

struct Gang<'a> {
    case: &'a Case,
    name: &'a str,
    body: &'a Value,
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// Returns the two numbers of `2 of 4 are there` and the like.
fn of_text(words: &str) -> Option<(i64, i64)> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let at = words.windows(4).find(|w| w[1] == "of" && matches!(w[3], "are" | "there"))?;
    Some((at[0].parse().ok()?, at[2].parse().ok()?))
}

impl Gang<'_> {
    fn count(&self, field: &str) -> i64 {
        number(&self.body["counts"][field])
    }

    /// Returns the pending members of the gang and of those that are planned with it.
    fn planned(&self) -> Vec<String> {
        self.case.objects.members(&self.case.objects.gang_group(self.name))
    }

    fn own(&self) -> Vec<String> {
        self.case.objects.members(&BTreeSet::from([self.name.to_owned()]))
    }

    /// Returns how many members were on nodes before.
    fn placed(&self, objects: &Objects) -> usize {
        objects.placed().filter(|(_, pod)| gang_of(pod).as_deref() == Some(self.name)).count()
    }

    fn numbers(&self, tally: &mut Tally) {
        let counts = &self.body["counts"];
        let stages = ["gated", "pending", "waiting", "permitted", "bound", "finished"];
        let sum: i64 = stages.iter().map(|stage| self.count(stage)).sum();
        tally.agree(self.case, "members add up", sum == self.count("created"), || {
            format!("{}: {counts}", self.name)
        });
        let own =
            self.case.objects.pods.values().filter(|pod| gang_of(&pod.json).as_deref() == Some(self.name));
        tally.check(self.case, "members", self.count("created") == own.count() as i64, || {
            format!("{}: {counts}", self.name)
        });
        let listed = list(&self.body["members"]).len() as i64;
        tally.agree(self.case, "members listed", listed == self.count("created"), || {
            format!("{}: {listed} are listed of {counts}", self.name)
        });
        // In a group, another gang may be the one that is short.
        let is_alone = self.case.objects.gang_group(self.name).len() == 1;
        if let (Some(placeable), Some(wanted)) = (counts["placeable"].as_i64(), counts["wanted"].as_i64()) {
            tally.agree(self.case, "placeable is short", placeable < wanted || !is_alone, || {
                format!("{}: refused, and {placeable} of {wanted} are placeable", self.name)
            });
        }
        let is_own = self.body["verdict"]["code"] == "GangQuorumMissing";
        if let Some((have, need)) = of_text(text(&self.body["verdict"]["message"])).filter(|_| is_own) {
            let is_so = need == self.count("min") && have == need - self.count("missing");
            tally.agree(self.case, "numbers of the verdict", is_so, || {
                format!("{}: {} beside {counts}", self.name, self.body["verdict"]["message"])
            });
        }
    }

    /// Counts the members that get places one by one, in some order.
    fn one_by_one(&self, order: &[String]) -> BTreeSet<String> {
        let mut live = Live::of(self.case.objects.only(&[]));
        let mut placed = BTreeSet::new();
        for key in order {
            let mut json = self.case.objects.copied(key, key.rsplit('/').next().unwrap_or_default());
            json["metadata"]["uid"] = Value::Null;
            live.create(json);
            live.run();
            if live.place(key).is_some() {
                placed.insert(key.clone());
            } else {
                live.delete(key);
            }
        }
        placed
    }

    fn root_cause(&self, tally: &mut Tally) {
        let root = text(&self.body["rootCause"]["pod"]);
        if root.is_empty() {
            return;
        }
        let planned = self.planned();
        tally.check(self.case, "root cause is a member", planned.iter().any(|key| key == root), || {
            format!("{}: {root} is none of {planned:?}", self.name)
        });
        let others: Vec<String> = planned.iter().filter(|key| *key != root).cloned().collect();
        let mut order = others.clone();
        order.push(root.to_owned());
        let placed = self.one_by_one(&order);
        let all = placed.len() == order.len();
        tally.check(self.case, "root cause", !all, || {
            format!("{}: {root} has a place beside all others: {placed:?}", self.name)
        });
        let alone = self.own();
        if let (Some(placeable), Some(wanted)) =
            (self.body["counts"]["placeable"].as_i64(), self.body["counts"]["wanted"].as_i64())
            && planned.len() == alone.len()
        {
            let own = self.one_by_one(&alone).len() as i64;
            tally.check(self.case, "placeable", own < wanted && placeable <= alone.len() as i64, || {
                format!("{}: {placeable} of {wanted} placeable, one by one {own} have places", self.name)
            });
        }
        let groups: i64 =
            list(&self.body["rootCause"]["nodeGroups"]).iter().map(|g| number(&g["count"])).sum();
        let rest = number(&self.body["rootCause"]["notEvaluated"]);
        tally.agree(self.case, "node groups", self.body["rootCause"]["totalNodes"] == groups + rest, || {
            format!("{}: {}", self.name, self.body["rootCause"])
        });
    }

    /// Returns whether the gang gets its quorum, when it and its group are the only ones without a node.
    fn has_quorum(&self, objects: &Objects, preempts: bool) -> bool {
        self.reaches(objects, preempts, self.count("min"))
    }

    /// Does the same for a quorum of `min`.
    fn reaches(&self, objects: &Objects, preempts: bool, min: i64) -> bool {
        let planned = objects.members(&objects.gang_group(self.name));
        let before = self.placed(objects);
        let own: Vec<String> = objects.members(&BTreeSet::from([self.name.to_owned()]));
        let mut only = objects.only(&planned);
        if !preempts {
            only.never_preempts(&planned);
        }
        let mut live = Live::of(only);
        live.settle();
        let now = live.places(&own).len();
        (before + now) as i64 >= min
    }

    fn outlook(&self, tally: &mut Tally) {
        let said = &self.body["outlook"];
        let code = text(&said["code"]);
        if code.is_empty() {
            return;
        }
        let objects = &self.case.objects;
        let keeps = wanted(objects, &self.planned());
        let emptied_to = |keeps: &BTreeSet<String>, with_reservations: bool| {
            let rest = objects.emptied_and_reported(keeps);
            self.has_quorum(&if with_reservations { rest } else { rest.without_reservations() }, true)
        };
        let emptied = |with: bool| {
            let all = emptied_to(&BTreeSet::new(), with);
            let kept = if keeps.is_empty() { all } else { emptied_to(&keeps, with) };
            (all, kept)
        };
        let told = |what: &str| format!("{}: {code}, but {what}: {}", self.name, said["message"]);
        match code {
            "FitsNow" => tally.check(self.case, "FitsNow", self.has_quorum(objects, false), || told("not")),
            "FitsAfterPreemption" => {
                tally.check(self.case, code, self.has_quorum(objects, true), || told("not"));
            }
            "NeverFits" => {
                let (all, kept) = emptied(true);
                tally.check(self.case, code, !all && !kept, || told("it has its quorum when emptied"));
                let words = text(&self.body["verdict"]["remedy"]);
                let says_wait = words.contains("Wait for") || self.body["verdict"]["resolver"] == "time";
                tally.agree(self.case, "wait against never", !says_wait, || told(words));
            }
            // Members that have places and leave too are missing afterwards.
            "NotNow" if self.has_lost_members() => {
                tally.skip(self.case, "members were evicted", || told("nothing"));
            }
            "NotNow" => {
                let has = |with| matches!(emptied(with), (true, _) | (_, true));
                let leave: Vec<&str> = list(&said["wouldLeave"]).iter().map(text).collect();
                let holds = if leave.is_empty() {
                    has(true) || says_reservations(said) && has(false)
                } else {
                    let mut rest = objects.clone();
                    leave.iter().all(|called| rest.delete_called(called)) && self.has_quorum(&rest, false)
                };
                tally.check(self.case, code, holds, || told(&format!("it has no quorum without {leave:?}")));
            }
            _ => {}
        }
    }

    /// No member is told that it fits when its gang does not.
    fn members(&self, tally: &mut Tally) {
        let has_quorum = self.has_quorum(&self.case.objects, false);
        for key in self.own().iter().take(1) {
            let said = self.case.of_pod(key, "/feasibility?copies=1");
            let fits = said["verdict"]["code"] == "FitsNow";
            tally.agree(self.case, "a member fits now, its gang does not", !fits || has_quorum, || {
                format!("{key} FitsNow, and {} has no quorum", self.name)
            });
            let gang = &self.case.of_pod(key, "")["gang"];
            tally.agree(
                self.case,
                "verdict at the member",
                gang["code"] == self.body["verdict"]["code"],
                || format!("{key}: {gang}, {}", self.body["verdict"]),
            );
        }
    }

    /// Returns whether members of the group were evicted while the cluster settled.
    fn has_lost_members(&self) -> bool {
        let (before, now) = (&self.case.initial, &self.case.objects);
        let group = before.gang_group(self.name);
        let is_own = |pod: &Value| gang_of(pod).is_some_and(|gang| group.contains(&gang));
        before.pods.iter().any(|(key, pod)| !now.pods.contains_key(key) && is_own(&pod.json))
    }

    fn fixes(&self, tally: &mut Tally) {
        let body = self.case.ask(&format!("/apis/v1/explain/gangs/{}/suggestions?max=2", self.name));
        if let (Some(missing), Some(placeable), Some(wanted)) = (
            body["slotsMissing"].as_i64(),
            self.body["counts"]["placeable"].as_i64(),
            self.body["counts"]["wanted"].as_i64(),
        ) {
            tally.agree(self.case, "slots missing", missing == wanted - placeable, || {
                format!("{}: slotsMissing {missing}, {placeable} of {wanted} placeable", self.name)
            });
        }
        let has_quorum = self.has_quorum(&self.case.objects, false);
        let is_held = self.body["state"] == "Gated";
        let said =
            || format!("{}: fitsNow {}, and its quorum has places: {has_quorum}", self.name, body["fitsNow"]);
        if !has_quorum && self.has_lost_members() {
            // That it had its quorum once is not in the objects.
            tally.skip(self.case, "members were evicted", said);
        } else {
            let is_so = is_held || (body["fitsNow"] == true) == has_quorum;
            tally.check(self.case, "fits now", is_so, said);
        }
        for fix in list(&body["fixes"]) {
            self.fix(fix, tally);
        }
    }

    fn fix(&self, fix: &Value, tally: &mut Tally) {
        let mut objects = self.case.objects.clone();
        for edit in list(&fix["edits"]) {
            match apply(&mut objects, edit) {
                Done::Yes => {}
                Done::Impossible(why) => {
                    return tally
                        .check(self.case, "impossible edit", false, || format!("{}: {why}", self.name));
                }
                Done::Unknown(what) => return tally.skip(self.case, &what, || fix.to_string()),
            }
            if let Some(pod) = edit["deletePod"].as_str() {
                let leaves = self.case.objects.pods.get(pod).is_some_and(|pod| can_leave(&pod.json));
                tally.check(self.case, "deletes a pod that comes back", leaves, || edit.to_string());
            }
        }
        let lowered = list(&fix["edits"]).iter().find(|edit| edit["setQuorum"]["gang"] == self.name);
        let min = lowered.map_or(self.count("min"), |edit| number(&edit["setQuorum"]["min"]));
        tally.check(self.case, "fix", self.reaches(&objects, false, min), || {
            format!("{} has no quorum after {}", self.name, fix["edits"])
        });
        if let Some(slots) = fix["slots"].as_u64() {
            let planned = objects.members(&objects.gang_group(self.name));
            if planned.len() == self.own().len() {
                let placed = gang_places(&objects, &planned, false) + self.placed(&objects);
                tally.check(self.case, "slots of a fix", placed as u64 == slots, || {
                    format!("{}: slots {slots}, and {placed} have places after {}", self.name, fix["edits"])
                });
            }
        }
    }
}
