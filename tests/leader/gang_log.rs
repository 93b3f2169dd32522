//! Holds the sandbox's log of writes against the promise of strict gangs: a leader that begins to bind one binds all of it.
//!
//! Bindings of different pods are under way at the same time and are no transaction, so what the log can show is this: bind
//! orders leave a leader in the order in which it decided, and those of a quorum are decided together. A member that was
//! left out of a decision would be overtaken by pods that were decided on later; one whose leader was killed is overtaken
//! by no more than may be in flight.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use pellucid::sandbox::LoggedWrite;

/// Most Bindings that a scheduler has in flight.
const IN_FLIGHT: usize = 128;

/// What the log says of gangs.
#[derive(Debug, Default)]
pub(crate) struct Begun {
    /// Times that a leader began a gang and sent a Binding for every member that was not bound before.
    pub(crate) whole: usize,
    /// Times that a leader was killed before it had sent all.
    pub(crate) cut_off: usize,
    /// Most pods that one such leader sent Bindings for after it had begun the gang.
    pub(crate) overtaken_by: usize,
}

/// The Bindings of one leader.
#[derive(Default)]
struct Sent<'l> {
    /// Pods in the order of their first Bindings, each with its place in the order and when it arrived.
    firsts: BTreeMap<&'l str, (usize, Timestamp)>,
}

/// Returns the name of the pod that a write binds.
fn pod_of(write: &LoggedWrite) -> Option<&str> {
    write.path.strip_suffix("/binding")?.rsplit('/').next()
}

/// Checks that every leader sent Bindings for whole gangs, as far as it lived. `last` is the `User-Agent` of the leader that
/// was not killed, `gangs` are the names of the members of each gang, which are all needed.
/// Fails with the members that a leader left out.
pub(crate) fn check_gangs(log: &[LoggedWrite], last: &str, gangs: &[Vec<String>]) -> Result<Begun, String> {
    let mut leaders: BTreeMap<&str, Sent<'_>> = BTreeMap::new();
    let mut bound: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for write in log {
        let Some(pod) = pod_of(write) else { continue };
        let firsts = &mut leaders.entry(&write.user_agent).or_default().firsts;
        let place = firsts.len();
        firsts.entry(pod).or_insert((place, write.arrived));
        if let Some((at, ..)) = write.done.as_ref().filter(|_| write.is_success()) {
            bound.insert(pod, *at);
        }
    }
    let mut all = Begun::default();
    for (agent, sent) in &leaders {
        for members in gangs {
            let of_gang = members.iter().filter_map(|member| sent.firsts.get(member.as_str()));
            let Some((place, begun)) = of_gang.clone().min() else { continue };
            let is_there = |member: &&String| {
                let member = member.as_str();
                sent.firsts.contains_key(member) || bound.get(member).is_some_and(|at| at <= begun)
            };
            let missing: BTreeSet<&String> = members.iter().filter(|member| !is_there(member)).collect();
            if missing.is_empty() {
                all.whole += 1;
                continue;
            }
            if *agent == last {
                return Err(format!("{agent} bound a gang without {missing:?}"));
            }
            let later = sent.firsts.len() - place - of_gang.count();
            if later > IN_FLIGHT {
                return Err(format!("{agent} left {missing:?} out and went on to {later} other pods"));
            }
            all.cut_off += 1;
            all.overtaken_by = all.overtaken_by.max(later);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// Returns a log in which a leader binds these pods at these seconds.
    fn log(bindings: impl IntoIterator<Item = (&'static str, i64, String)>) -> Vec<LoggedWrite> {
        let write = |(agent, second, pod): (&str, i64, String)| {
            let arrived = Timestamp::from_second(second).expect("a time");
            LoggedWrite {
                arrived,
                user_agent: agent.into(),
                method: "POST".into(),
                path: format!("/api/v1/namespaces/default/pods/{pod}/binding"),
                done: Some((arrived, 201, Bytes::new())),
            }
        };
        bindings.into_iter().map(write).collect()
    }

    fn gang() -> Vec<Vec<String>> {
        vec![vec!["a".into(), "b".into()]]
    }

    /// A leader that binds one member of two, and then this many other pods.
    fn one_member_and(others: usize) -> Vec<LoggedWrite> {
        let others = (0..others).map(|n| ("one", 2, format!("other-{n}")));
        log(std::iter::once(("one", 1, "a".to_owned())).chain(others))
    }

    #[test]
    fn what_the_next_leader_completes_is_whole() {
        let mut writes = one_member_and(IN_FLIGHT);
        writes.extend(log([("two", 3, "b".to_owned())]));
        let begun = check_gangs(&writes, "two", &gang()).expect("nobody was left out");
        assert_eq!((begun.whole, begun.cut_off, begun.overtaken_by), (1, 1, IN_FLIGHT));
    }

    #[test]
    fn a_member_that_later_pods_overtake_was_left_out() {
        let wrong = check_gangs(&one_member_and(IN_FLIGHT + 1), "two", &gang()).expect_err("b was left out");
        assert_eq!(wrong, "one left {\"b\"} out and went on to 129 other pods");
    }

    #[test]
    fn the_leader_that_lives_has_no_excuse() {
        let wrong = check_gangs(&one_member_and(0), "one", &gang()).expect_err("b was left out");
        assert_eq!(wrong, "one bound a gang without {\"b\"}");
    }
}
