//! Fault injection as data: which requests, which fault, how often.
//!
//! A test adds rules at the start or while the sandbox runs. A rule holds for a number of requests, or for a time on
//! the sandbox's clock. A fault affects the response to any request, a watch as it opens, or an open watch. Troubles do
//! not affect requests: the sandbox's own kubelet and provisioner meet them at certain objects.
//! [`Handle::restart`](super::Handle::restart) restarts the whole server.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::{Clock, later};
use crate::store::Object;

/// The effect on a request or watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection closes before a response; the request is not carried out.
    Drop,
    /// The request is carried out, then the connection closes before the answer.
    DropAfterCommit,
    /// The request waits on the sandbox's clock and is then carried out.
    Delay(Duration),
    /// The response has this status (409, 410, 429, 503, 504, …); the request is not carried out.
    Status(u16),
    /// The response has this status and a `Retry-After` in seconds; the request is not carried out.
    RetryAfter(u16, u32),
    /// The request is carried out, and the response has this status.
    StatusAfterCommit(u16),
    /// The request waits while the rule holds, then it is carried out and answered. Open watches go on. A counted rule
    /// holds until [`Faults::clear`].
    Hang,
    /// Nothing is answered and nothing closes: a request is never carried out, and an open watch falls silent for good,
    /// without a bookmark or an end. New requests are served once the rule ends; what it swallowed stays lost.
    BlackHole,
    /// The connection is reset (RST) before a response; the request is not carried out. An open watch is reset too.
    Reset,
    /// A watch answers 200 and ends at once, without an event.
    EndWatch,
    /// A watch is accepted and stays silent.
    SilentWatch,
    /// The next event of a watch is sent twice.
    DuplicateEvent,
    /// The next event of a watch is never sent, and the watch goes on as if it had been.
    LoseEvent,
    /// The next event of a watch has an object that cannot be decoded.
    UndecodableEvent,
    /// The next event of a watch ends in the middle of the line, and the connection closes.
    DropMidLine,
    /// A watch gets an `ERROR` event with status 410 instead of its next event, and ends.
    GoneEvent,
}

/// When a fault can take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// A request has arrived.
    Request,
    /// A watch was accepted.
    WatchOpens,
    /// A watch is open, with or without an event to send.
    WatchOpen,
    /// A watch is about to send an event.
    WatchEvent,
}

impl Fault {
    /// Returns whether the fault can take effect at a moment.
    pub(super) fn is_met_at(&self, moment: Moment) -> bool {
        match self {
            Self::Drop
            | Self::DropAfterCommit
            | Self::Delay(_)
            | Self::Status(_)
            | Self::RetryAfter(..)
            | Self::StatusAfterCommit(_)
            | Self::Hang => moment == Moment::Request,
            Self::BlackHole | Self::Reset => matches!(moment, Moment::Request | Moment::WatchOpen),
            Self::EndWatch | Self::SilentWatch => moment == Moment::WatchOpens,
            Self::DuplicateEvent
            | Self::LoseEvent
            | Self::UndecodableEvent
            | Self::DropMidLine
            | Self::GoneEvent => moment == Moment::WatchEvent,
        }
    }
}

/// Which requests a rule matches. Empty fields match everything.
#[derive(Clone, Debug, Default)]
pub struct Match {
    /// The HTTP method.
    pub method: Option<String>,
    /// The resource, with the subresource if the request is for one: `pods`, `pods/status`, `persistentvolumes`.
    pub resource: Option<String>,
    /// A substring of path and query.
    pub path_contains: String,
    /// `Some(true)` matches only watches, `Some(false)` everything else.
    pub is_watch: Option<bool>,
    /// The `User-Agent` of the client, so that one of several can be cut off.
    pub user_agent: Option<String>,
}

impl Match {
    /// Matches all requests.
    pub fn all() -> Self {
        Self::default()
    }

    /// Matches requests with a method and a substring of path and query.
    pub fn new(method: &str, path_contains: &str) -> Self {
        Self { method: Some(method.to_owned()), path_contains: path_contains.to_owned(), ..Self::default() }
    }

    /// Matches requests with a method on exactly one resource or subresource, such as `PATCH` on `pods/status`.
    pub fn on(method: &str, resource: &str) -> Self {
        Self { method: Some(method.to_owned()), resource: Some(resource.to_owned()), ..Self::default() }
    }

    /// Matches watches of a resource, such as `pods`.
    pub fn watches(resource: &str) -> Self {
        Self { is_watch: Some(true), ..Self::on("GET", resource) }
    }

    /// Matches lists of a resource and reads of single objects.
    pub fn reads(resource: &str) -> Self {
        Self { is_watch: Some(false), ..Self::on("GET", resource) }
    }

    /// Matches all requests and watches of one client, by its `User-Agent`.
    pub fn of_client(user_agent: &str) -> Self {
        Self { user_agent: Some(user_agent.to_owned()), ..Self::default() }
    }

    fn fits(&self, Caller { method, path, user_agent }: Caller<'_>) -> bool {
        self.method.as_deref().is_none_or(|m| m.eq_ignore_ascii_case(method))
            && path.contains(&self.path_contains)
            && self.resource.as_deref().is_none_or(|wanted| resource(path) == wanted)
            && self.is_watch.is_none_or(|wanted| is_watch(path) == wanted)
            && self.user_agent.as_deref().is_none_or(|wanted| user_agent == wanted)
    }
}

/// Who asks for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) method: &'a str,
    /// Path and query.
    pub(super) path: &'a str,
    pub(super) user_agent: &'a str,
}

/// Returns whether the query of a path asks for a watch.
fn is_watch(path: &str) -> bool {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// Returns the resource of a path, with the subresource.
fn resource(path: &str) -> String {
    let bare = path.split('?').next().unwrap_or_default();
    let segments: Vec<&str> = bare.split('/').filter(|s| !s.is_empty()).collect();
    let below = match segments.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => &[],
    };
    match below {
        ["namespaces", _, "status" | "finalize"] => format!("namespaces/{}", below[2]),
        ["namespaces", _, kind, _, part] | [kind, _, part] if *kind != "namespaces" => {
            format!("{kind}/{part}")
        }
        ["namespaces", _, kind, ..] | [kind, ..] => (*kind).to_owned(),
        [] => String::new(),
    }
}

/// What goes wrong in the sandbox's own kubelet and provisioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A deleted pod on a node never ends. A delete with grace 0 still removes it.
    PodNeverEnds,
    /// No volume is provisioned for a claim, and no error is reported.
    ProvisioningHangs,
    /// Provisioning for a claim takes this long.
    ProvisioningTakes(Duration),
    /// Provisioning for a claim fails: the claim loses its selected node, so that a scheduler has to choose again.
    ProvisioningFails,
}

/// Which objects a trouble affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// All objects of the kind.
    All,
    /// One object, by namespace and name.
    Named(String, String),
    /// The objects with a label, by key and value.
    Labelled(String, String),
}

impl Objects {
    /// Selects one object.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self::Named(namespace.to_owned(), name.to_owned())
    }

    /// Selects the objects with a label.
    pub fn labelled(key: &str, value: &str) -> Self {
        Self::Labelled(key.to_owned(), value.to_owned())
    }

    fn have(&self, object: &Object) -> bool {
        match self {
            Self::All => true,
            Self::Named(namespace, name) => *object.key.0 == **namespace && *object.key.1 == **name,
            Self::Labelled(key, value) => object.labels.iter().any(|(k, v)| **k == **key && **v == **value),
        }
    }
}

/// How long a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    /// For this many more requests.
    Times(usize),
    /// Until this time of the sandbox's clock.
    Until(Timestamp),
}

#[derive(Debug)]
struct Rule {
    which: Match,
    fault: Fault,
    term: Term,
}

/// The fault rules and troubles in force. Rules are matched in the order in which they were added.
#[derive(Debug)]
pub struct Faults {
    clock: Clock,
    rules: Mutex<VecDeque<Rule>>,
    /// Objects, their trouble, and how many more times they meet it.
    troubles: Mutex<Vec<(Objects, Trouble, usize)>>,
    /// Fires when troubles change.
    changed: watch::Sender<usize>,
    /// Fires when rules are added.
    added: watch::Sender<usize>,
    /// Fires when all rules are removed.
    cleared: watch::Sender<usize>,
}

impl Faults {
    /// Returns an empty set of rules. `clock` determines when timed rules end.
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            rules: Mutex::default(),
            troubles: Mutex::default(),
            changed: watch::Sender::new(0),
            added: watch::Sender::new(0),
            cleared: watch::Sender::new(0),
        }
    }

    /// Injects a fault into the next matching request.
    pub fn next(&self, which: Match, fault: Fault) {
        self.times(which, fault, 1);
    }

    /// Injects a fault into the next `times` matching requests.
    pub fn times(&self, which: Match, fault: Fault, times: usize) {
        if times > 0 {
            self.add(Rule { which, fault, term: Term::Times(times) });
        }
    }

    /// Injects a fault into all matching requests for a time on the sandbox's clock; with [`Duration::MAX`], until
    /// [`Faults::clear`].
    pub fn during(&self, which: Match, fault: Fault, time: Duration) {
        let until = later(self.clock.now(), time);
        self.add(Rule { which, fault, term: Term::Until(until) });
    }

    fn add(&self, rule: Rule) {
        self.rules.lock().push_back(rule);
        self.added.send_modify(|count| *count += 1);
    }

    /// Removes all rules and troubles. Requests that hang go on.
    pub fn clear(&self) {
        self.rules.lock().clear();
        self.troubles.lock().clear();
        self.changed.send_modify(|count| *count += 1);
        self.cleared.send_modify(|count| *count += 1);
    }

    /// Returns the number of rules that are neither used up nor ended.
    pub fn pending(&self) -> usize {
        let mut rules = self.rules.lock();
        self.drop_ended(&mut rules);
        rules.len()
    }

    fn drop_ended(&self, rules: &mut VecDeque<Rule>) {
        let now = self.clock.now();
        rules.retain(|rule| !matches!(rule.term, Term::Until(until) if until <= now));
    }

    /// Returns the first fault that a request meets at a moment, and when its rule ends if it holds for a time. Counts
    /// the request against the rule.
    pub(super) fn take(&self, caller: Caller<'_>, moment: Moment) -> Option<(Fault, Option<Timestamp>)> {
        let mut rules = self.rules.lock();
        self.drop_ended(&mut rules);
        let meets = |rule: &Rule| rule.fault.is_met_at(moment) && rule.which.fits(caller);
        let at = rules.iter().position(meets)?;
        let rule = rules.get_mut(at)?;
        let fault = rule.fault.clone();
        match &mut rule.term {
            Term::Until(until) => Some((fault, Some(*until))),
            Term::Times(left) => {
                *left -= 1;
                if *left == 0 {
                    rules.remove(at);
                }
                Some((fault, None))
            }
        }
    }

    /// Waits until a time, or forever if there is none, but no longer than until the rules are cleared.
    pub(super) async fn wait(&self, until: Option<Timestamp>) {
        let mut cleared = self.cleared.subscribe();
        tokio::select! {
            () = self.clock.wait_until_some(until) => {}
            _ = cleared.changed() => {}
        }
    }

    /// Returns a signal that fires when rules are added.
    pub(super) fn additions(&self) -> watch::Receiver<usize> {
        self.added.subscribe()
    }

    /// Puts some objects in trouble until it is lifted.
    pub fn trouble(&self, objects: Objects, trouble: Trouble) {
        self.trouble_times(objects, trouble, usize::MAX);
    }

    /// Puts some objects in trouble; all of them together meet it at most `times` times.
    pub fn trouble_times(&self, objects: Objects, trouble: Trouble, times: usize) {
        self.troubles.lock().push((objects, trouble, times));
        self.changed.send_modify(|count| *count += 1);
    }

    /// Lifts the troubles of some objects. What the troubles held up goes on.
    pub fn lift(&self, objects: &Objects) {
        self.troubles.lock().retain(|(held, _, _)| held != objects);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns the first trouble of an object that the caller handles, and counts it.
    pub(super) fn meet(&self, object: &Object, wanted: impl Fn(Trouble) -> bool) -> Option<Trouble> {
        let mut troubles = self.troubles.lock();
        let at = troubles.iter().position(|(who, trouble, _)| wanted(*trouble) && who.have(object))?;
        let (_, trouble, left) = troubles.get_mut(at)?;
        let trouble = *trouble;
        *left -= 1;
        if *left == 0 {
            troubles.remove(at);
        }
        Some(trouble)
    }

    /// Returns a signal that fires when troubles change.
    pub(super) fn subscribe(&self) -> watch::Receiver<usize> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_are_told_from_lists() {
        let pods = "/api/v1/pods";
        for (path, expected) in [
            (pods.to_owned(), false),
            (format!("{pods}?watch=true"), true),
            (format!("{pods}?&watch=1&x=y"), true),
            (format!("{pods}?labelSelector=watch%3Dtrue"), false),
            (format!("{pods}?watch=false"), false),
        ] {
            let caller = Caller { method: "GET", path: &path, user_agent: "a" };
            assert_eq!(Match::watches("pods").fits(caller), expected, "{path}");
            assert_eq!(Match::reads("pods").fits(caller), !expected, "{path}");
            assert!(!Match::watches("nodes").fits(caller), "{path}");
            assert!(Match::of_client("a").fits(caller) && !Match::of_client("b").fits(caller), "{path}");
        }
    }

    #[test]
    fn requests_are_known_by_their_resource() {
        let pods = "/api/v1/namespaces/default/pods";
        for (path, expected) in [
            ("/api/v1/nodes/n1?x=/y", "nodes"),
            ("/api/v1/nodes/n1/status", "nodes/status"),
            ("/api/v1/namespaces/default", "namespaces"),
            ("/api/v1/namespaces/default/finalize", "namespaces/finalize"),
            (pods, "pods"),
            (&format!("{pods}/a"), "pods"),
            (&format!("{pods}/status/status"), "pods/status"),
            ("/apis/apps/v1/namespaces/default/deployments/a/scale", "deployments/scale"),
            ("/version", ""),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
    }
}
