//! The verdict of an attempt at a gang.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::{GangKey, Now, PodKey};
use pellucid_queue::RefusedBy;

use super::decision::Refusal;

/// How many members of one gang an attempt needed and could place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangShare {
    /// Namespace and name of the gang.
    pub gang: GangKey,
    /// Members that its quorum still needs.
    pub wanted: u32,
    /// How many of them could be placed together with the rest of the group.
    pub placeable: u32,
}

/// Why a gang group was not placed.
#[derive(Clone, Debug)]
pub struct GangRefusal {
    /// Reason code of the refusal.
    pub code: ReasonCode,
    /// Message for people.
    pub message: Arc<str>,
    /// The member that caused the failure, with its refusal while the other members were placed.
    pub root_cause: Option<(PodKey, Arc<Refusal>)>,
    /// Wanted and placeable members of each gang of the group.
    pub shares: Vec<GangShare>,
    /// Members that were not evaluated because an equal one had been refused.
    pub not_evaluated: u32,
    /// The orders in which members were tried; the first placed the most members, or as many as any other.
    pub orders: Vec<&'static str>,
    /// Whether further orders were not tried because of their cost.
    pub is_truncated: bool,
}

/// The outcome of an attempt at a gang group.
#[derive(Clone, Debug)]
pub enum GangOutcome {
    /// The quorum was placed.
    Placed {
        /// Number of members placed.
        members: u32,
        /// The order in which the members were tried.
        order: &'static str,
    },
    /// Some members were placed and wait for the others (NonStrict).
    Waiting {
        /// Number of members placed in this attempt.
        placed: u32,
        /// Why the others were not placed.
        refusal: Arc<GangRefusal>,
    },
    /// No member was placed.
    Refused(Arc<GangRefusal>),
    /// Members that waited lost their places.
    Released {
        /// Reason code of the release.
        code: ReasonCode,
        /// Message for people.
        message: Arc<str>,
        /// Number of members released.
        members: u32,
    },
}

/// The stored outcome of the last attempt at a gang group, shared by its gangs.
#[derive(Clone, Debug)]
pub struct GangVerdict {
    /// Number of the attempt (scheduling cycle).
    pub cycle: u64,
    /// Attempts at the unit so far.
    pub attempts: u32,
    /// When it was decided.
    pub at: Now,
    /// Node-change counter at decision time; a larger current value means that the verdict may be stale.
    pub changes: u64,
    /// The gangs of the group.
    pub group: Arc<[GangKey]>,
    /// How the attempt ended.
    pub outcome: GangOutcome,
}

/// Name of the plugin that verdicts about gangs name.
pub const PLUGIN: &str = "Coscheduling";

/// Makes the refusal of a member because of its gang.
pub fn member_refusal(code: ReasonCode, subject: &str, total_nodes: usize) -> Refusal {
    Refusal::of_pod(member_cause(code, subject), total_nodes, RefusedBy::default())
}

/// Makes the cause of such a refusal, which has no number of nodes.
pub fn member_cause(code: ReasonCode, subject: &str) -> Cause {
    Cause::new(PLUGIN, Code::UnschedulableAndUnresolvable, Reason::about(code, subject))
}

/// Maximum number of gangs named in a message, which goes to every member.
const MAX_GANGS_TOLD: usize = 8;

/// Returns a message on how far a group came: its gangs, and the member that stands for the failure.
pub fn attempt_message(shares: &[GangShare], root: Option<&(PodKey, Arc<Refusal>)>) -> Arc<str> {
    let of_gang = |s: &GangShare| {
        format!("{}: {} of {} members that its quorum needs can be placed", s.gang, s.placeable, s.wanted)
    };
    // For a large group, the message names only gangs that are short.
    let is_told = |s: &&GangShare| shares.len() <= MAX_GANGS_TOLD || s.placeable < s.wanted;
    let told: Vec<&GangShare> = shares.iter().filter(is_told).collect();
    let mut gangs: Vec<String> = told.iter().take(MAX_GANGS_TOLD).map(|s| of_gang(s)).collect();
    if told.len() > MAX_GANGS_TOLD {
        gangs.push(format!("{} more gangs are short too", told.len() - MAX_GANGS_TOLD));
    }
    if gangs.is_empty() {
        gangs.push(format!("{} gangs have the members that their quorums need", shares.len()));
    }
    let gangs = gangs.join("; ");
    match root {
        Some((pod, refusal)) => format!("{gangs}; {pod} cannot: {}", refusal.message()).into(),
        None => gangs.into(),
    }
}
