//! Causes: why a node (or a pod) was refused, as a plugin, a code and a set of reasons.
//!
//! The hot path stores small ids; text is rendered when somebody reads it. Ids are local to one [`Causes`] table and
//! mean nothing outside it.

use std::collections::BTreeMap;
use std::fmt::Write;

use pellucid_api::reason::ReasonCode;
use smallvec::SmallVec;

use crate::Name;

crate::named! {
    /// Whether removing pods could help, as kube-scheduler's status codes say it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Code {
        /// Refused; preemption may help on this node.
        Unschedulable = "Unschedulable",
        /// Refused; removing pods cannot help on this node.
        UnschedulableAndUnresolvable = "UnschedulableAndUnresolvable",
    }
}

/// One reason, with its subject where the message names one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reason {
    /// The reason's code in the registry.
    pub code: ReasonCode,
    /// What the reason is about: a resource, a list of gates, the text of a third-party plugin.
    pub subject: Option<Name>,
}

impl Reason {
    /// Makes a reason without a subject.
    #[inline]
    pub fn of(code: ReasonCode) -> Self {
        Self { code, subject: None }
    }

    /// Makes a reason about a subject.
    #[inline]
    pub fn about(code: ReasonCode, subject: impl Into<Name>) -> Self {
        Self { code, subject: Some(subject.into()) }
    }

    /// Returns the message in kube-scheduler's wording.
    #[inline]
    pub fn message(&self) -> String {
        self.code.message(self.subject.as_deref().unwrap_or(""))
    }
}

/// Why one node was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cause {
    /// Name of the plugin that refused the node.
    pub plugin: &'static str,
    /// Whether removing pods could help.
    pub code: Code,
    /// The reasons, at least one.
    pub reasons: SmallVec<[Reason; 2]>,
}

impl Cause {
    /// Makes a cause with one reason.
    #[inline]
    pub fn new(plugin: &'static str, code: Code, reason: Reason) -> Self {
        Self { plugin, code, reasons: smallvec::smallvec![reason] }
    }

    /// Returns the messages of all reasons, joined by commas.
    #[inline]
    pub fn message(&self) -> String {
        let mut text = String::new();
        for reason in &self.reasons {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{}", reason.message());
        }
        text
    }
}

/// Returns the message for a pod that no node can take, in kube-scheduler's grammar: reasons with the number of nodes,
/// sorted as text. A node with several reasons counts for each, so the numbers may add up to more than `total`.
#[inline]
pub fn nodes_message(total: usize, reasons: impl Iterator<Item = (String, usize)>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (message, count) in reasons {
        *counts.entry(message).or_default() += count;
    }
    let mut lines: Vec<String> = counts.into_iter().map(|(message, n)| format!("{n} {message}")).collect();
    lines.sort();
    format!("0/{total} nodes are available: {}.", lines.join(", "))
}

/// Number of a cause in its [`Causes`] table. 0 means that the node is feasible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CauseId(pub u16);

impl CauseId {
    /// The node is feasible.
    pub const FEASIBLE: Self = Self(0);
    /// The slot has no node.
    pub const ABSENT: Self = Self(u16::MAX);
    /// The node was not evaluated.
    pub const NOT_EVALUATED: Self = Self(u16::MAX - 1);

    /// Returns whether the node is feasible.
    #[inline]
    pub fn is_feasible(self) -> bool {
        self == Self::FEASIBLE
    }

    /// Returns whether this id refers to a cause in the table.
    #[inline]
    pub fn is_cause(self) -> bool {
        self.0 != 0 && self.0 < u16::MAX - 1
    }
}

/// A table of distinct causes.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    all: Vec<Cause>,
}

impl Causes {
    /// Returns the id of a cause, adding it when it is new. A linear scan is enough: there are few distinct causes, and
    /// a plugin asks at most once per distinct outcome.
    #[inline]
    pub fn id(&mut self, cause: Cause) -> CauseId {
        let at = self.all.iter().position(|known| *known == cause).unwrap_or_else(|| {
            self.all.push(cause);
            self.all.len() - 1
        });
        // Beyond 65,533 distinct causes the last id is shared by the rest; the mask of requested resources keeps
        // their number far below.
        CauseId(u16::try_from(at + 1).unwrap_or(u16::MAX - 2).min(u16::MAX - 2))
    }

    /// Returns the cause with this id, or `None` when the id refers to none.
    #[inline]
    pub fn get(&self, id: CauseId) -> Option<&Cause> {
        if id.is_cause() { self.all.get(usize::from(id.0) - 1) } else { None }
    }

    /// Iterates over all causes with their ids.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (CauseId, &Cause)> {
        self.all.iter().enumerate().map(|(i, c)| (CauseId(i as u16 + 1), c))
    }
}
