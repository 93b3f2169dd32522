//! Codes that describe a state, not why a pod is not placed: verdicts of gangs, kinds of causes, answers of
//! feasibility, and the codes of refused requests.
//!
//! `GET /apis/v1/reasons` serves this table as `states`, beside the registry of reasons. Invariant: every `code` in any
//! body is in one of the two tables; the conformance check fails on any other.

/// A code that describes a state, with its meaning.
#[derive(Clone, Copy, Debug)]
pub struct StateEntry {
    /// The code as it appears in bodies.
    pub code: &'static str,
    /// The kind of body that contains it.
    pub where_seen: &'static str,
    /// What the code means.
    pub meaning: &'static str,
    /// HTTP status of a refused request with this code; `None` when no request is refused with it.
    pub status: Option<u16>,
}

const GANG: &str = "verdict of a gang";
const CAUSE: &str = "group of nodes with one cause";
const FEASIBILITY: &str = "verdict of feasibility";
const TOPOLOGY: &str = "verdict of a gang's topology";
const STANDING: &str = "pod that is not pending";
const PREEMPTION: &str = "verdict of preemption";
const ERROR: &str = "refused request";

const fn of(where_seen: &'static str, code: &'static str, meaning: &'static str) -> StateEntry {
    StateEntry { code, where_seen, meaning, status: None }
}

/// A read that has an answer for pending pods alone is refused with the code of the others.
const fn standing(code: &'static str, meaning: &'static str) -> StateEntry {
    StateEntry { code, where_seen: STANDING, meaning, status: Some(404) }
}

const fn refused(status: u16, code: &'static str, meaning: &'static str) -> StateEntry {
    StateEntry { code, where_seen: ERROR, meaning, status: Some(status) }
}

/// All codes that describe a state.
pub const STATES: &[StateEntry] = &[
    of(GANG, "GangQueued", "It can be planned and waits for its turn."),
    of(GANG, "GangWaiting", "Members have places and wait for the others."),
    of(GANG, "GangPlaced", "Its quorum is placed and not yet bound."),
    of(GANG, "GangPartiallyBound", "A part of its quorum is bound."),
    of(GANG, "GangRunning", "Its quorum is bound."),
    of(GANG, "GangFinished", "All its pods have ended."),
    of(GANG, "GangEmpty", "It has no pods."),
    of(
        GANG,
        "GangNotScheduled",
        "Coscheduling is off in the profile of its pods, which are scheduled one by one.",
    ),
    of(CAUSE, "Unschedulable", "Removing pods from these nodes could help."),
    of(CAUSE, "UnschedulableAndUnresolvable", "Removing pods from these nodes could not help."),
    of(FEASIBILITY, "FitsNow", "A node takes the pod as things are."),
    of(FEASIBILITY, "FitsAfterPreemption", "A node takes the pod when pods of lower priority are evicted."),
    of(FEASIBILITY, "NotNow", "No node takes the pod now; one would once other pods have ended."),
    of(FEASIBILITY, "NeverFits", "No node takes the pod, not even without the pods that can leave it."),
    of(FEASIBILITY, "HeldBack", "The pod is refused as a whole, whatever the nodes have free."),
    of(FEASIBILITY, "NotKnown", "No node takes the pod now, and whether one would later was not found out."),
    of(TOPOLOGY, "TopologyFits", "One domain of the key has places for all members that the quorum needs."),
    of(
        TOPOLOGY,
        "TopologyFragmented",
        "No domain of the key has places for all members that the quorum needs; the places of all domains add up to enough.",
    ),
    of(TOPOLOGY, "TopologyShort", "Even the places of all domains of the key add up to too few."),
    of(
        TOPOLOGY,
        "TopologyNotKnown",
        "No domain that was planned has places for all; there are more domains, or a plan was cut off.",
    ),
    standing("PodPlaced", "This scheduler placed the pod."),
    standing("PodPlacedByOthers", "The pod is on a node, and this process did not place it there."),
    standing("PodEnded", "The pod succeeded or failed."),
    standing("PodDeleting", "The pod is being deleted before it was on a node."),
    standing("PodDeleted", "The pod was deleted; its history is still recorded."),
    standing("PodUnreadable", "The pod cannot be read, so it is not placed."),
    of(PREEMPTION, "PreemptionNotAllowed", "The pod's policy or its priority forbids it to evict any pod."),
    of(PREEMPTION, "Preempted", "The pod took the node of its last preemption."),
    of(PREEMPTION, "NoCandidates", "The last search found no node that would take the pod with others gone."),
    of(PREEMPTION, "PreemptionEnded", "The pod's last preemption ended before the pod had a place."),
    of(PREEMPTION, "PreemptionNotNeeded", "The pod has a place and evicted nobody for it."),
    of(PREEMPTION, "PreemptionNotTried", "No search for victims was made for the pod."),
    refused(
        503,
        "AnswersUnread",
        "Answers that were not read yet take all the memory that there is for them; ask again later.",
    ),
    refused(503, "AuthorityUnavailable", "The API server does not say who asks and what they may."),
    refused(400, "BodyIncomplete", "The body broke off."),
    refused(400, "BodyNotText", "The body is not UTF-8."),
    refused(400, "BodyTimeout", "The body did not arrive in time."),
    refused(413, "BodyTooLarge", "The body is larger than this path takes."),
    refused(
        410,
        "ContinueExpired",
        "The state that a list began with is not kept any more; begin the list again.",
    ),
    refused(503, "DeadlineExceeded", "The answer took longer than it may and was given up; ask for less."),
    refused(404, "FlagNotFound", "There is no such flag."),
    refused(403, "Forbidden", "The user lacks a right; the message says which."),
    refused(404, "GangNotFound", "There is no such gang."),
    refused(
        503,
        "GenerationNotReached",
        "The state that `minGeneration` asks for was not published in time.",
    ),
    refused(404, "HistoryNotFound", "Nothing is recorded of such a pod."),
    refused(400, "HostRefused", "The Host header names another host than the ones that are served."),
    refused(400, "InvalidBody", "A field of the body cannot be used."),
    refused(400, "InvalidContinue", "`continue` is not the token of a page of this list."),
    refused(400, "InvalidEdit", "An edit of a simulation cannot be made."),
    refused(400, "InvalidHeader", "A header cannot be used."),
    refused(400, "InvalidParameter", "A parameter has a value that it cannot have."),
    refused(400, "InvalidValue", "A flag cannot have this value."),
    refused(400, "MalformedJson", "The body is not JSON."),
    refused(
        400,
        "MalformedUrl",
        "The path or the query cannot be decoded, or the path has more than 4,096 bytes.",
    ),
    refused(405, "MethodNotAllowed", "The path is served for other methods; `Allow` names them."),
    refused(400, "MissingParameter", "A parameter that is needed is absent."),
    refused(
        400,
        "NoAdmissionReview",
        "The body of a webhook's request is no AdmissionReview that can be answered.",
    ),
    refused(400, "NoOtherNode", "There is no other node to compare with."),
    refused(400, "NoTable", "The body has no rows, so there is no table of it."),
    refused(404, "NodeNotFound", "There is no such node."),
    refused(400, "NotAcceptable", "None of the types that `Accept` names is served."),
    refused(404, "NotInQueue", "Neither a pod nor a gang of this name is in the queue."),
    refused(404, "NotOurPod", "The pod is of another scheduler."),
    refused(503, "NotReady", "The webhook has not listed quotas and pods yet."),
    refused(404, "NotShadowing", "This scheduler shadows no other."),
    refused(404, "PluginNotEnabled", "No profile enables the plugin, so it has no state."),
    refused(404, "PluginNotFound", "There is no such plugin."),
    refused(404, "PodNotFound", "There is no such pod that the scheduler knows."),
    refused(404, "QueueNotFound", "There is no such Queue."),
    refused(404, "QuotaNotFound", "There is no such quota."),
    refused(404, "RecordingNotFound", "There is no such recording."),
    refused(400, "RepeatedParameter", "A parameter stands in the query more than once."),
    refused(403, "OriginRefused", "A page of another origin may not change anything here."),
    refused(404, "ReservationNotFound", "There is no such Reservation."),
    refused(400, "SameNode", "The two nodes to compare are one."),
    refused(404, "ScoresNotRecorded", "No score table of the pod was recorded."),
    refused(503, "ShuttingDown", "The scheduler is about to end."),
    refused(503, "SnapshotFailed", "The snapshot could not be made."),
    refused(503, "TooManyConnections", "So many connections are open that this one was refused."),
    refused(400, "TooManyNamespaces", "The request names more namespaces than it may at once."),
    refused(429, "TooManyOfUser", "One user asks so much that this was refused; ask again later."),
    refused(429, "TooManyRecordings", "So many recordings are in force that no other is taken."),
    refused(429, "TooManyRequests", "So much is being asked that this was refused; ask again later."),
    refused(429, "TooManyStreams", "So many feeds are open that this one was refused."),
    refused(401, "Unauthorized", "Nobody says who asks, or the token is not valid."),
    refused(400, "UnknownDimension", "`by` names a dimension that is not known."),
    refused(400, "UnknownFormat", "`format` names a form that is not known."),
    refused(400, "UnknownParameter", "The path has no such parameter."),
    refused(404, "UnknownPath", "Nothing is served at this path."),
    refused(415, "UnsupportedMediaType", "The body is of a type that the path does not take."),
    refused(400, "WrongResource", "The path of the webhook is for another resource."),
];
