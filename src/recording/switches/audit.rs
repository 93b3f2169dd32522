//! The audit: a bounded list of the last changes of switches. Changes that are pushed out are counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pellucid_api::rest::debug;

use super::recording::{Recording, Scope};
use crate::rfc3339;

/// Maximum number of changes in the audit.
pub const CHANGES_KEPT: usize = 256;

pellucid_model::named! {
    /// Why a switch changed; named as in the REST API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Why {
        /// Somebody set it.
        Set = "set",
        /// Somebody set the same recording again.
        Renewed = "renewed",
        /// Somebody ended it.
        Ended = "ended",
        /// Its time ran out.
        Expired = "expired",
        /// It recorded its maximum number of attempts.
        UsedUp = "used up",
        /// It cost more than the budget allows.
        OverBudget = "over budget",
    }
}

/// One change of a switch.
#[derive(Clone, Debug)]
pub struct Change {
    /// Number of the change, ascending from 1.
    pub number: u64,
    /// When it was made, as wall time since 1970.
    pub at: Duration,
    /// Who made it: address and user agent, or `scheduler`.
    pub by: Arc<str>,
    /// Owner of the recording.
    pub owner: Arc<str>,
    /// Name of the flag.
    pub flag: Arc<str>,
    /// Number of the recording; 0 for the raw value.
    pub id: u64,
    /// Value before the change.
    pub from: Arc<str>,
    /// Value after the change.
    pub to: Arc<str>,
    /// Why it was made.
    pub why: Why,
    /// The pods that it concerns.
    pub scope: Scope,
}

impl Change {
    /// Makes the change that ends a recording.
    pub(super) fn end(of: &Recording, why: Why, by: &str, at: Duration) -> Self {
        Self {
            number: 0,
            at,
            by: by.into(),
            owner: of.owner.clone(),
            flag: of.flag.as_str().into(),
            id: of.id,
            from: of.value.clone(),
            to: of.flag.off().into(),
            why,
            scope: of.scope.clone(),
        }
    }

    /// Makes the change that begins a recording, or renews it when it existed `before`.
    pub(super) fn begin(of: &Recording, before: Option<&Recording>) -> Self {
        let from = before.map_or_else(|| of.flag.off().into(), |b| b.value.clone());
        let why = if before.is_some() && of.id != 0 { Why::Renewed } else { Why::Set };
        let (by, at, to) = (of.set_by.clone(), of.set_at.wall, of.value.clone());
        let (owner, flag) = (of.owner.clone(), of.flag.as_str().into());
        Self { number: 0, at, by, owner, flag, id: of.id, from, to, why, scope: of.scope.clone() }
    }

    fn body(&self) -> debug::SwitchChange {
        debug::SwitchChange {
            number: self.number,
            at: rfc3339(self.at),
            by: self.by.to_string(),
            owner: self.owner.to_string(),
            flag: self.flag.to_string(),
            id: self.id,
            from: self.from.to_string(),
            to: self.to.to_string(),
            why: self.why.as_str().into(),
            scope: self.scope.body(),
        }
    }
}

/// The changes, oldest first.
#[derive(Debug, Default)]
pub(super) struct Audit {
    changes: VecDeque<Change>,
    count: u64,
}

impl Audit {
    pub(super) fn push(&mut self, change: Change) {
        self.count += 1;
        self.changes.push_back(Change { number: self.count, ..change });
        if self.changes.len() > CHANGES_KEPT {
            self.changes.pop_front();
        }
    }

    /// Returns the bodies of the changes, newest first.
    pub(super) fn bodies(&self) -> Vec<debug::SwitchChange> {
        self.changes.iter().rev().map(Change::body).collect()
    }

    /// Returns the last change of a flag, if it is still in the audit.
    pub(super) fn last_of(&self, flag: &str) -> Option<&Change> {
        self.changes.iter().rev().find(|c| &*c.flag == flag)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.count - self.changes.len() as u64
    }
}
