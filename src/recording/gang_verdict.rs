//! What became of an attempt at a gang.

use std::sync::Arc;

use pellucid_api::reason::ReasonCode;
use pellucid_framework::{Cause, Code, Reason};
use pellucid_model::{GangKey, Now, PodKey};
use pellucid_queue::RefusedBy;

use super::decision::Refusal;

/// How many members of one gang were wanted and could be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangShare {
    /// The gang.
    pub gang: GangKey,
    /// Members wanted for its quorum besides those that count already.
    pub wanted: u32,
    /// How many of them could be placed together.
    pub placeable: u32,
}

/// Why a group was not placed.
#[derive(Clone, Debug)]
pub struct GangRefusal {
    /// Code.
    pub code: ReasonCode,
    /// In words.
    pub message: Arc<str>,
    /// The member that stands for the failure, with why it was refused beside the others.
    pub root_cause: Option<(PodKey, Arc<Refusal>)>,
    /// Per gang of the group.
    pub shares: Vec<GangShare>,
    /// Members that were not asked: an equal one had been refused.
    pub not_evaluated: u32,
    /// The orders in which members were tried; the first found the most places, or as many as any.
    pub orders: Vec<&'static str>,
    /// Whether more could have been tried, and was not because of what it costs.
    pub is_truncated: bool,
}

/// What an attempt at a group came to.
#[derive(Clone, Debug)]
pub enum GangOutcome {
    /// The quorum was placed.
    Placed {
        /// How many members.
        members: u32,
        /// In which order.
        order: &'static str,
    },
    /// Some members were placed and wait for the others (NonStrict).
    Waiting {
        /// How many were placed in this attempt.
        placed: u32,
        /// What keeps the others.
        refusal: Arc<GangRefusal>,
    },
    /// Nothing was placed.
    Refused(Arc<GangRefusal>),
    /// Places that were held were given up.
    Released {
        /// Why.
        code: ReasonCode,
        /// In words.
        message: Arc<str>,
        /// How many.
        members: u32,
    },
}

/// The stored outcome of the last attempt at a group, shared by its gangs.
#[derive(Clone, Debug)]
pub struct GangVerdict {
    /// Number of the attempt.
    pub cycle: u64,
    /// Attempts at the unit so far.
    pub attempts: u32,
    /// When.
    pub at: Now,
    /// How many changes of nodes there had been.
    pub changes: u64,
    /// The gangs of the group.
    pub group: Arc<[GangKey]>,
    /// What it came to.
    pub outcome: GangOutcome,
}

/// The plugin behind verdicts about gangs.
pub const PLUGIN: &str = "Coscheduling";

/// A refusal of a member for what became of its gang.
pub fn member_refusal(code: ReasonCode, subject: &str, total_nodes: usize) -> Refusal {
    Refusal::of_pod(member_cause(code, subject), total_nodes, RefusedBy::default())
}

/// Why that is, without the number of nodes.
pub fn member_cause(code: ReasonCode, subject: &str) -> Cause {
    Cause::new(PLUGIN, Code::UnschedulableAndUnresolvable, Reason::about(code, subject))
}
