//! A run of entries with the bytes of their names: what is shared, pushed out and cleared away as one.

use super::entry::{Entry, Names, Repeat, What};
use crate::cycle::decision::{Group, GroupMeasure, Refusal};
use crate::cycle::gangs::{GangOutcome, GangVerdict};

/// Entries per chunk, so that a word has a bit for each.
pub(super) const ENTRIES: usize = 128;

/// A run of entries, ids rising.
#[derive(Debug, Default)]
pub struct Chunk {
    pub(super) entries: Vec<Entry>,
    text: Vec<u8>,
    /// Bytes that its refusals hold, each counted once if they come together.
    held: usize,
    last_held: usize,
}

impl Clone for Chunk {
    /// With the room that a chunk needs: a copy goes on growing.
    fn clone(&self) -> Self {
        let mut copy = Self { held: self.held, last_held: self.last_held, ..Self::default() };
        copy.entries.reserve_exact(self.entries.capacity());
        copy.entries.extend_from_slice(&self.entries);
        copy.text.reserve_exact(self.text.capacity());
        copy.text.extend_from_slice(&self.text);
        copy
    }
}

impl Chunk {
    /// Adds an entry with its names: namespace, name, node.
    #[inline(always)]
    pub(super) fn push(&mut self, mut entry: Entry, [namespace, name, node]: [&str; 3]) {
        let length = |text: &str| text.len().min(usize::from(u16::MAX)) as u16;
        entry.names = Names {
            at: self.text.len() as u32,
            namespace: length(namespace),
            name: length(name),
            node: length(node),
        };
        for text in [namespace, name, node] {
            self.text.extend_from_slice(&text.as_bytes()[..usize::from(length(text))]);
        }
        match &entry.what {
            What::Gated(refusal) | What::Refused(refusal) => {
                self.hold(std::sync::Arc::as_ptr(refusal) as usize, || weight_of_refusal(refusal));
            }
            What::Gang(verdict) => {
                self.hold(std::sync::Arc::as_ptr(verdict) as usize, || weight_of_gang(verdict));
            }
            What::Evicted(_) => self.held += 300,
            _ => {}
        }
        if entry.repeat.is_some() {
            self.held += size_of::<Repeat>();
        }
        self.entries.push(entry);
    }

    /// Equal pods are refused with one shared refusal, one after the other.
    fn hold(&mut self, what: usize, weight: impl FnOnce() -> usize) {
        if self.last_held != what {
            self.last_held = what;
            self.held += weight();
        }
    }

    /// Returns a chunk of what this one holds, of just that size. This one is empty then and keeps its room.
    pub(super) fn move_out(&mut self) -> Self {
        let mut out = Self { held: self.held, ..Self::default() };
        (self.held, self.last_held) = (0, 0);
        out.entries.reserve_exact(self.entries.len());
        out.entries.append(&mut self.entries);
        out.text.reserve_exact(self.text.len());
        out.text.append(&mut self.text);
        out
    }

    /// Gives unused room back.
    pub(super) fn close(&mut self) {
        self.entries.shrink_to_fit();
        self.text.shrink_to_fit();
    }

    /// Returns the bytes it takes.
    pub fn weight(&self) -> usize {
        size_of::<Self>() + self.entries.len() * size_of::<Entry>() + self.text.len() + self.held
    }

    /// Adds those entries of another chunk that are not in `dead`.
    pub(super) fn append(&mut self, other: &Self, dead: u128) {
        for (i, entry) in other.entries.iter().enumerate() {
            if dead & (1 << i) == 0 {
                let names = other.names(entry);
                self.push(entry.clone(), names);
            }
        }
    }

    /// Returns the entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    fn names(&self, entry: &Entry) -> [&str; 3] {
        let mut at = entry.names.at as usize;
        [entry.names.namespace, entry.names.name, entry.names.node].map(|length| {
            let from = at;
            at += usize::from(length);
            // Names are whole texts; only one beyond 64 KiB was cut.
            std::str::from_utf8(self.text.get(from..at).unwrap_or_default()).unwrap_or_default()
        })
    }

    /// Returns namespace and name of what an entry is about.
    pub fn subject(&self, entry: &Entry) -> (&str, &str) {
        let [namespace, name, ..] = self.names(entry);
        (namespace, name)
    }

    /// Returns the node of an entry, empty without one.
    pub fn node(&self, entry: &Entry) -> &str {
        self.names(entry)[2]
    }
}

fn weight_of_refusal(refusal: &Refusal) -> usize {
    const MESSAGE: usize = 200;
    let measures: usize = refusal.groups.iter().map(|g| g.measures.len()).sum();
    size_of::<Refusal>()
        + MESSAGE
        + refusal.groups.len() * size_of::<Group>()
        + measures * size_of::<GroupMeasure>()
}

fn weight_of_gang(verdict: &GangVerdict) -> usize {
    let refusal = match &verdict.outcome {
        GangOutcome::Refused(refusal) | GangOutcome::Waiting { refusal, .. } => {
            let root = refusal.root_cause.as_ref().map_or(0, |(_, own)| weight_of_refusal(own));
            size_of_val(&**refusal) + refusal.message.len() + size_of_val(&*refusal.shares) + root
        }
        GangOutcome::Released { message, .. } => message.len(),
        GangOutcome::Placed { .. } => 0,
    };
    size_of::<GangVerdict>() + size_of_val(&*verdict.group) + refusal
}
