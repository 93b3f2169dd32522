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
}

const GANG: &str = "verdict of a gang";
const CAUSE: &str = "group of nodes with one cause";
const FEASIBILITY: &str = "verdict of feasibility";
const TOPOLOGY: &str = "verdict of a gang's topology";
const STANDING: &str = "pod that is not pending";
const PREEMPTION: &str = "verdict of preemption";
const ERROR: &str = "refused request";

const fn of(where_seen: &'static str, code: &'static str, meaning: &'static str) -> StateEntry {
    StateEntry { code, where_seen, meaning }
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
    of(FEASIBILITY, "NotNow", "No node takes the pod now; one would if the pods on it ended."),
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
    of(STANDING, "PodPlaced", "This scheduler placed the pod."),
    of(STANDING, "PodPlacedByOthers", "The pod is on a node, and this process did not place it there."),
    of(STANDING, "PodEnded", "The pod succeeded or failed."),
    of(STANDING, "PodDeleting", "The pod is being deleted before it was on a node."),
    of(STANDING, "PodDeleted", "The pod was deleted; its history is still recorded."),
    of(STANDING, "PodUnreadable", "The pod cannot be read, so it is not placed."),
    of(PREEMPTION, "PreemptionNotAllowed", "The pod's policy or its priority forbids it to evict any pod."),
    of(PREEMPTION, "Preempted", "The pod took the node of its last preemption."),
    of(PREEMPTION, "NoCandidates", "The last search found no node that would take the pod with others gone."),
    of(PREEMPTION, "PreemptionEnded", "The pod's last preemption ended before the pod had a place."),
    of(PREEMPTION, "PreemptionNotNeeded", "The pod has a place and evicted nobody for it."),
    of(PREEMPTION, "PreemptionNotTried", "No search for victims was made for the pod."),
    of(
        ERROR,
        "AnswersUnread",
        "Answers that were not read yet take all the memory that there is for them; ask again later.",
    ),
    of(ERROR, "BodyIncomplete", "The body broke off."),
    of(ERROR, "BodyNotText", "The body is not UTF-8."),
    of(ERROR, "BodyTimeout", "The body did not arrive in time."),
    of(ERROR, "BodyTooLarge", "The body is larger than this path takes."),
    of(
        ERROR,
        "ContinueExpired",
        "The state that a list began with is not kept any more; begin the list again.",
    ),
    of(ERROR, "DeadlineExceeded", "The answer took longer than it may and was given up; ask for less."),
    of(ERROR, "FlagNotFound", "There is no such flag."),
    of(ERROR, "GangNotFound", "There is no such gang."),
    of(ERROR, "GenerationNotReached", "The state that `minGeneration` asks for was not published in time."),
    of(ERROR, "HistoryNotFound", "Nothing is recorded of such a pod."),
    of(ERROR, "HostRefused", "The Host header names another host than the ones that are served."),
    of(ERROR, "InvalidBody", "A field of the body cannot be used."),
    of(ERROR, "InvalidContinue", "`continue` is not the token of a page of this list."),
    of(ERROR, "InvalidEdit", "An edit of a simulation cannot be made."),
    of(ERROR, "InvalidHeader", "A header cannot be used."),
    of(ERROR, "InvalidParameter", "A parameter has a value that it cannot have."),
    of(ERROR, "InvalidValue", "A flag cannot have this value."),
    of(ERROR, "MalformedJson", "The body is not JSON."),
    of(ERROR, "MalformedUrl", "The path or the query cannot be decoded."),
    of(ERROR, "MethodNotAllowed", "The path is served for other methods; `Allow` names them."),
    of(ERROR, "MissingParameter", "A parameter that is needed is absent."),
    of(ERROR, "NoOtherNode", "There is no other node to compare with."),
    of(ERROR, "NoTable", "The body has no rows, so there is no table of it."),
    of(ERROR, "NodeNotFound", "There is no such node."),
    of(ERROR, "NotAcceptable", "None of the types that `Accept` names is served."),
    of(ERROR, "NotInQueue", "Neither a pod nor a gang of this name is in the queue."),
    of(ERROR, "NotOurPod", "The pod is of another scheduler."),
    of(ERROR, "NotShadowing", "This scheduler shadows no other."),
    of(ERROR, "PluginNotFound", "There is no such plugin."),
    of(ERROR, "PodNotFound", "There is no such pod that the scheduler knows."),
    of(ERROR, "RecordingNotFound", "There is no such recording."),
    of(ERROR, "RepeatedParameter", "A parameter stands in the query more than once."),
    of(ERROR, "OriginRefused", "A page of another origin may not change anything here."),
    of(ERROR, "SameNode", "The two nodes to compare are one."),
    of(ERROR, "ScoresNotRecorded", "No score table of the pod was recorded."),
    of(ERROR, "ShuttingDown", "The scheduler is about to end."),
    of(ERROR, "SnapshotFailed", "The snapshot could not be made."),
    of(ERROR, "TooManyConnections", "So many connections are open that this one was refused."),
    of(ERROR, "TooManyRecordings", "So many recordings are in force that no other is taken."),
    of(ERROR, "TooManyRequests", "So much is being asked that this was refused; ask again later."),
    of(ERROR, "TooManyStreams", "So many feeds are open that this one was refused."),
    of(ERROR, "UnknownDimension", "`by` names a dimension that is not known."),
    of(ERROR, "UnknownFormat", "`format` names a form that is not known."),
    of(ERROR, "UnknownParameter", "The path has no such parameter."),
    of(ERROR, "UnknownPath", "Nothing is served at this path."),
    of(ERROR, "UnsupportedMediaType", "The body is of a type that the path does not take."),
];
