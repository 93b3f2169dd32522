//! The reasons for which the plugin refuses pods and nodes.

use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};
use pellucid_framework::{Cause, Code, Reason};

use super::NAME;
use super::affinity::Affinity;
use super::choosing::Lack;

/// Refuses a pod whose reservation affinity no reservation fulfils.
pub(super) static NO_MATCH: PluginReason = PluginReason {
    code: "NoReservationMatches",
    plugin: NAME,
    message: "node(s) no reservations match reservation affinity",
    resolver: Resolver::PodOwner,
    terminal_for: TerminalFor::Pod,
    meaning: "The pod may be placed in reservations alone, and none that is available has the pod as an owner and fulfils \
              its reservation-affinity annotation.",
    remedy: "Make a reservation with the pod as an owner, wait until one is Available, or change the pod's \
             scheduling.koordinator.sh/reservation-affinity annotation.",
    never: Some(
        "Make a reservation with the pod as an owner, or change the pod's scheduling.koordinator.sh/reservation-affinity \
         annotation.",
    ),
    example: Example {
        subject: "",
        message: "node(s) no reservations match reservation affinity",
        situation: "A pod names reservation r, which does not exist.",
    },
};

/// Refuses a pod whose annotations about reservations cannot be read.
pub(super) static UNREADABLE: PluginReason = PluginReason {
    code: "ReservationWishUnreadable",
    plugin: NAME,
    message: "what the pod says of reservations cannot be read: {}",
    resolver: Resolver::PodOwner,
    terminal_for: TerminalFor::Pod,
    meaning: "An annotation of the pod about reservations is no JSON, or a field of it has a wrong type.",
    remedy: "Correct the annotation that the message names, or remove it.",
    never: None,
    example: Example {
        subject: "annotation scheduling.koordinator.sh/reservation-affinity: name: not a text (1)",
        message: "what the pod says of reservations cannot be read: annotation \
                  scheduling.koordinator.sh/reservation-affinity: name: not a text (1)",
        situation: "The annotation is {\"name\": 1}.",
    },
};

/// Refuses a node on which no reservation that matches fits the pod together with what is free.
pub(super) static BY_NODE: PluginReason = PluginReason {
    code: "InsufficientBesideReservations",
    plugin: NAME,
    message: "Insufficient {} by node",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Node,
    meaning: "The pod may use a reservation of the node, but what is left of it and what is free of the node are too little, \
              because the other reservations keep what is left of them. Or the reservation is Restricted and too small, and what is \
              free beside it is too little for the pod as well.",
    remedy: "Free room on the node, delete a reservation that nobody needs, or make a larger one.",
    never: Some("Delete a reservation that nobody needs, make a larger one, or request less."),
    example: Example {
        subject: "cpu",
        message: "Insufficient cpu by node",
        situation: "A node has two reservations of 2 cores each and nothing free, and a pod that may use both asks for 3.",
    },
};

/// Refuses a node whose restricted reservations have too little.
pub(super) static IN_RESERVATION: PluginReason = PluginReason {
    code: "InsufficientReservation",
    plugin: NAME,
    message: "Reservation(s) Insufficient {}",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Node,
    meaning: "The pod must use a reservation, and of the one on the node with allocatePolicy Restricted too little is left.",
    remedy: "Wait until owners of the reservation end, make a larger one, or request less.",
    never: Some("Make a larger reservation, or request less."),
    example: Example {
        subject: "cpu",
        message: "Reservation(s) Insufficient cpu",
        situation: "A restricted reservation has 2 cores left, and a pod that must use it asks for 3.",
    },
};

/// Refuses a node to a reservation of another policy.
pub(super) static POLICY_CONFLICT: PluginReason = PluginReason {
    code: "AllocatePolicyConflict",
    plugin: NAME,
    message: "node(s) reservation allocate policy conflict",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Node,
    meaning: "A reservation without allocatePolicy does not share a node with one that is Aligned or Restricted.",
    remedy: "Give the reservations of a node an allocatePolicy, or wait until those of the node have ended.",
    never: Some("Give the reservations of a node an allocatePolicy, or delete those that nobody needs."),
    example: Example {
        subject: "",
        message: "node(s) reservation allocate policy conflict",
        situation: "A node has an Aligned reservation, and one without a policy is to be placed.",
    },
};

/// Refuses a node to a reservation whose template names another one.
pub(super) static OTHER_NODE: PluginReason = PluginReason {
    code: "ReservationNodeMismatch",
    plugin: NAME,
    message: "node(s) didn't match the nodeName specified by reservation",
    resolver: Resolver::PodOwner,
    terminal_for: TerminalFor::Node,
    meaning: "The template of the reservation names another node in spec.nodeName, and no other will do.",
    remedy: "Make room on the node that the template names, or make a reservation that names another one or none.",
    never: Some("Make a reservation that names another node or none."),
    example: Example {
        subject: "",
        message: "node(s) didn't match the nodeName specified by reservation",
        situation: "The template of a reservation has nodeName: a, and the node is b.",
    },
};

/// Refuses a reservation for which another plugin would hold what owners cannot get.
pub(super) static NOT_HANDED_ON: PluginReason = PluginReason {
    code: "ReservationHoldsMore",
    plugin: NAME,
    message: "a reservation cannot hand on to its owners what {} gives it",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Pod,
    meaning: "The template asks for something, such as a volume, that the plugin named would hold for the reservation and cannot \
              hand on to owners, so nobody could use it. Amounts, cards and CPUs are handed on.",
    remedy: "Leave volumes out of the reservation's template.",
    never: None,
    example: Example {
        subject: "VolumeBinding",
        message: "a reservation cannot hand on to its owners what VolumeBinding gives it",
        situation: "The template of a reservation has a volume of a claim that is not bound.",
    },
};

/// Refuses a reservation that must be placed over a pod.
pub(super) static NOTHING_TO_TAKE: PluginReason = PluginReason {
    code: "NoPodToPreAllocate",
    plugin: NAME,
    message: "node(s) no pod match reservation with pre allocation required",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Pod,
    meaning: "The reservation may be placed over a bound pod of its owners alone, and none is there that is in no reservation \
              and fits in it.",
    remedy: "Wait until an owner is bound, or remove label scheduling.koordinator.sh/pre-allocation-required from the \
             reservation.",
    never: None,
    example: Example {
        subject: "",
        message: "node(s) no pod match reservation with pre allocation required",
        situation: "A reservation with preAllocation and the label pre-allocation-required has an owner that is pending.",
    },
};

/// All of them.
pub(super) const ALL: [&PluginReason; 8] = [
    &NO_MATCH,
    &UNREADABLE,
    &BY_NODE,
    &IN_RESERVATION,
    &POLICY_CONFLICT,
    &OTHER_NODE,
    &NOT_HANDED_ON,
    &NOTHING_TO_TAKE,
];

/// Makes the cause of one reason.
pub(super) fn cause(code: Code, reason: &'static PluginReason, subject: &str) -> Cause {
    let code_of = ReasonCode::Plugin(reason);
    let reason = if subject.is_empty() { Reason::of(code_of) } else { Reason::about(code_of, subject) };
    Cause::new(NAME, code, reason)
}

/// Makes the cause for which a node is refused to a pod. A pod that names its reservation is told its numbers.
pub(super) fn lacking<'l>(lacks: impl IntoIterator<Item = &'l Lack>, affinity: Option<&Affinity>) -> Cause {
    let is_named = affinity.is_some_and(|affinity| affinity.name.is_some());
    let reason = |lack: &Lack| match lack {
        Lack::Node(resource) => Reason::about(ReasonCode::Plugin(&BY_NODE), resource.clone()),
        Lack::Reservation { resource, requested, used, capacity } if is_named => {
            let text = format!("{resource}, requested: {requested}, used: {used}, capacity: {capacity}");
            Reason::about(ReasonCode::Plugin(&IN_RESERVATION), text.as_str())
        }
        Lack::Reservation { resource, .. } => {
            Reason::about(ReasonCode::Plugin(&IN_RESERVATION), resource.clone())
        }
    };
    let mut reasons: Vec<Reason> = lacks.into_iter().map(reason).collect();
    reasons.dedup();
    if reasons.is_empty() {
        return cause(Code::Unschedulable, &NO_MATCH, "");
    }
    Cause { plugin: NAME, code: Code::Unschedulable, reasons: reasons.into_iter().collect() }
}
