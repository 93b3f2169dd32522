//! Why a node (or a pod) was refused: a plugin, a code, and a set of reasons.
//!
//! The hot path stores small ids; text is made when somebody reads. Ids are local to one [`Causes`]
//! table and mean nothing outside it.

use std::collections::BTreeMap;
use std::fmt::Write;

use pellucid_api::reason::ReasonCode;
use smallvec::SmallVec;

use crate::Name;

/// Whether removing pods could help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Code {
    /// Refused; preemption may help on this node.
    Unschedulable,
    /// Refused; removing pods cannot help on this node.
    UnschedulableAndUnresolvable,
}

impl Code {
    /// Returns kube-scheduler's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
        }
    }
}

/// One reason, with its subject where the message names one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reason {
    /// Code of the registry.
    pub code: ReasonCode,
    /// What it is about: a resource, a list of gates, the text of a foreign plugin.
    pub subject: Option<Name>,
}

impl Reason {
    /// A reason without a subject.
    pub fn of(code: ReasonCode) -> Self {
        Self { code, subject: None }
    }

    /// A reason about something.
    pub fn about(code: ReasonCode, subject: impl Into<Name>) -> Self {
        Self { code, subject: Some(subject.into()) }
    }

    /// Returns the message in kube-scheduler's words.
    pub fn message(&self) -> String {
        self.code.message(self.subject.as_deref().unwrap_or(""))
    }
}

/// Why one node was refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The plugin that refused.
    pub plugin: &'static str,
    /// Whether removing pods could help.
    pub code: Code,
    /// Its reasons, at least one.
    pub reasons: SmallVec<[Reason; 2]>,
}

impl Cause {
    /// A cause with one reason.
    pub fn new(plugin: &'static str, code: Code, reason: Reason) -> Self {
        Self { plugin, code, reasons: smallvec::smallvec![reason] }
    }

    /// Returns all messages, joined by a comma.
    pub fn message(&self) -> String {
        let mut text = String::new();
        for reason in &self.reasons {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{}", reason.message());
        }
        text
    }
}

/// Returns the message of a pod that no node takes, in kube-scheduler's grammar: reasons with their numbers of
/// nodes, sorted as text. A node with several reasons counts for each, so the numbers may exceed `total`.
pub fn nodes_message(total: usize, reasons: impl Iterator<Item = (String, usize)>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (message, count) in reasons {
        *counts.entry(message).or_default() += count;
    }
    let mut lines: Vec<String> = counts.into_iter().map(|(message, n)| format!("{n} {message}")).collect();
    lines.sort();
    format!("0/{total} nodes are available: {}.", lines.join(", "))
}

/// A cause's place in its table. 0 means that the node is feasible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CauseId(pub u16);

impl CauseId {
    /// Nothing refused the node.
    pub const FEASIBLE: Self = Self(0);
    /// There is no node in this slot.
    pub const ABSENT: Self = Self(u16::MAX);
    /// Nobody looked at the node.
    pub const NOT_EVALUATED: Self = Self(u16::MAX - 1);

    /// Whether the node is feasible.
    pub fn is_feasible(self) -> bool {
        self == Self::FEASIBLE
    }

    /// Whether this id stands for a cause in the table.
    pub fn is_cause(self) -> bool {
        self.0 != 0 && self.0 < u16::MAX - 1
    }
}

/// A table of causes.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    all: Vec<Cause>,
}

impl Causes {
    /// Returns the id of a cause, adding it when it is new. There are few distinct causes, and a plugin
    /// asks at most once per distinct outcome, so a scan is right.
    pub fn id(&mut self, cause: Cause) -> CauseId {
        let at = self.all.iter().position(|known| *known == cause).unwrap_or_else(|| {
            self.all.push(cause);
            self.all.len() - 1
        });
        // Beyond 65,533 distinct causes the last one stands for the rest; the mask of requested
        // resources bounds them far below.
        CauseId(u16::try_from(at + 1).unwrap_or(u16::MAX - 2).min(u16::MAX - 2))
    }

    /// Returns the cause behind an id.
    pub fn get(&self, id: CauseId) -> Option<&Cause> {
        if id.is_cause() { self.all.get(usize::from(id.0) - 1) } else { None }
    }

    /// Iterates over all causes with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (CauseId, &Cause)> {
        self.all.iter().enumerate().map(|(i, c)| (CauseId(i as u16 + 1), c))
    }
}
