//! Misbehaviour on purpose, as data: which requests, which fault, how often.
//!
//! A test adds rules at start or while the sandbox runs. A rule is used up by the requests it matches. Some
//! faults concern the answer of any request, the others the next event of a matching watch. Troubles are not
//! of requests: the sandbox's own kubelet and provisioner meet them at certain objects.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::store::Object;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The connection closes before an answer; nothing was done.
    Drop,
    /// The request is carried out, then the connection closes before the answer.
    DropAfterCommit,
    /// The request waits on the sandbox's clock, then is carried out.
    Delay(Duration),
    /// The request is answered with this status (409, 410, 429, 503, 504, …); nothing was done.
    Status(u16),
    /// The request is carried out, then answered with this status.
    StatusAfterCommit(u16),
    /// A watch is accepted and never says anything.
    SilentWatch,
    /// The next event of a watch comes twice.
    DuplicateEvent,
    /// The next event of a watch holds an object that does not decode.
    UndecodableEvent,
    /// The next event of a watch breaks off in the middle of the line, and with it the connection.
    DropMidLine,
    /// A watch gets an `ERROR` event with status 410 instead of its next event, and ends.
    GoneEvent,
}

impl Fault {
    /// Says whether the fault waits for an event of a watch.
    pub fn is_for_watch(&self) -> bool {
        matches!(
            self,
            Self::SilentWatch
                | Self::DuplicateEvent
                | Self::UndecodableEvent
                | Self::DropMidLine
                | Self::GoneEvent
        )
    }
}

/// Which requests a rule means. Empty fields match everything.
#[derive(Clone, Debug, Default)]
pub struct Match {
    /// The HTTP method.
    pub method: Option<String>,
    /// The resource, with its subresource if it is about one: `pods`, `pods/status`, `persistentvolumes`.
    pub resource: Option<String>,
    /// A part of the path and query.
    pub path_contains: String,
}

impl Match {
    /// Means requests of a method whose path and query contain a text.
    pub fn new(method: &str, path_contains: &str) -> Self {
        Self { method: Some(method.to_owned()), path_contains: path_contains.to_owned(), resource: None }
    }

    /// Means requests of a method on exactly a resource or subresource, such as `PATCH` on `pods/status`.
    pub fn on(method: &str, resource: &str) -> Self {
        Self { method: Some(method.to_owned()), resource: Some(resource.to_owned()), ..Self::default() }
    }

    fn fits(&self, method: &str, path: &str) -> bool {
        self.method.as_deref().is_none_or(|m| m.eq_ignore_ascii_case(method))
            && path.contains(&self.path_contains)
            && self.resource.as_deref().is_none_or(|wanted| resource(path) == wanted)
    }
}

/// Returns the resource that a path is about, with the subresource.
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
    /// A deleted pod on a node never ends; a delete with grace 0 still removes it.
    PodNeverEnds,
    /// No volume is provisioned for a claim, and nobody says why.
    ProvisioningHangs,
    /// Provisioning for a claim takes this long.
    ProvisioningTakes(Duration),
    /// Provisioning for a claim fails: the claim loses its selected node, so a scheduler has to choose again.
    ProvisioningFails,
}

/// The objects that meet a trouble.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// All of the kind.
    All,
    /// One, by namespace and name.
    Named(String, String),
    /// Those with a label.
    Labelled(String, String),
}

impl Objects {
    /// Means one object.
    pub fn named(namespace: &str, name: &str) -> Self {
        Self::Named(namespace.to_owned(), name.to_owned())
    }

    /// Means objects with a label.
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

/// The rules in force, in the order in which they were added.
#[derive(Debug)]
pub struct Faults {
    rules: Mutex<VecDeque<(Match, Fault, usize)>>,
    /// Objects, their trouble, and how often they still meet it.
    troubles: Mutex<Vec<(Objects, Trouble, usize)>>,
    /// Changes when troubles do.
    changed: watch::Sender<usize>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { rules: Mutex::default(), troubles: Mutex::default(), changed: watch::Sender::new(0) }
    }
}

impl Faults {
    /// Lets the next matching request meet a fault.
    pub fn next(&self, which: Match, fault: Fault) {
        self.times(which, fault, 1);
    }

    /// Lets the next `times` matching requests meet a fault.
    pub fn times(&self, which: Match, fault: Fault, times: usize) {
        self.rules.lock().push_back((which, fault, times));
    }

    /// Takes all rules and troubles away.
    pub fn clear(&self) {
        self.rules.lock().clear();
        self.troubles.lock().clear();
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns how many rules are not used up.
    pub fn pending(&self) -> usize {
        self.rules.lock().len()
    }

    /// Uses up a rule for a request; `wanted` says which faults the caller can carry out.
    pub fn take(&self, method: &str, path: &str, wanted: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let mut rules = self.rules.lock();
        let at = rules.iter().position(|(which, fault, _)| wanted(fault) && which.fits(method, path))?;
        let (_, fault, left) = rules.get_mut(at)?;
        let fault = fault.clone();
        *left -= 1;
        if *left == 0 {
            rules.remove(at);
        }
        Some(fault)
    }

    /// Lets some objects meet a trouble until it is lifted.
    pub fn trouble(&self, objects: Objects, trouble: Trouble) {
        self.trouble_times(objects, trouble, usize::MAX);
    }

    /// Lets some objects meet a trouble `times` times, all of them together.
    pub fn trouble_times(&self, objects: Objects, trouble: Trouble, times: usize) {
        self.troubles.lock().push((objects, trouble, times));
        self.changed.send_modify(|count| *count += 1);
    }

    /// Lifts the troubles of some objects: what they held up goes on.
    pub fn lift(&self, objects: &Objects) {
        self.troubles.lock().retain(|(held, _, _)| held != objects);
        self.changed.send_modify(|count| *count += 1);
    }

    /// Returns the first trouble of an object that the caller can carry out, and uses it up once.
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

    /// Returns a signal that changes when troubles do.
    pub(super) fn subscribe(&self) -> watch::Receiver<usize> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
