//! A run of entries with the bytes of their names: what is shared, pushed out and cleared away as one.

use super::entry::{Entry, Names, Numbers, Packed, Repeat, What};
use crate::cycle::decision::{Group, GroupMeasure, Refusal};
use crate::cycle::gangs::{GangOutcome, GangVerdict};

/// Entries per chunk, so that a word has a bit for each.
pub(super) const ENTRIES: usize = 128;

/// A run of entries, ids rising.
#[derive(Debug, Default)]
pub struct Chunk {
    pub(super) entries: Vec<Entry>,
    text: Vec<u8>,
    /// What is more than numbers, in the order of the entries that point at it.
    held: Vec<What>,
    /// By the ids of the entries that stand for several events.
    repeats: Vec<(u64, Repeat)>,
    /// Bytes that its refusals hold, each counted once if they come together.
    weight_held: usize,
    last_held: usize,
}

impl Clone for Chunk {
    /// With the room that a chunk needs: a copy goes on growing.
    fn clone(&self) -> Self {
        let mut copy = Self {
            held: self.held.clone(),
            repeats: self.repeats.clone(),
            weight_held: self.weight_held,
            last_held: self.last_held,
            ..Self::default()
        };
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
        let short = |text: &str| text.len().min(usize::from(u8::MAX)) as u8;
        entry.names = Names {
            at: self.text.len() as u32,
            name: name.len().min(usize::from(u16::MAX)) as u16,
            namespace: short(namespace),
            node: short(node),
        };
        self.text.extend_from_slice(&namespace.as_bytes()[..usize::from(entry.names.namespace)]);
        self.text.extend_from_slice(&name.as_bytes()[..usize::from(entry.names.name)]);
        self.text.extend_from_slice(&node.as_bytes()[..usize::from(entry.names.node)]);
        self.entries.push(entry);
    }

    /// Makes room for what is more than numbers; the entry that it is of is pushed next.
    pub(super) fn pack(&mut self, what: What) -> Packed {
        match &what {
            What::Added => return Packed::Added,
            What::Bound => return Packed::Bound,
            What::Released => return Packed::Released,
            What::NotRecorded => return Packed::NotRecorded,
            What::Gone(gone) => return Packed::Gone(*gone),
            What::Placed(numbers) => return (*numbers).into(),
            What::Gated(refusal) | What::Refused(refusal) => {
                self.hold(std::sync::Arc::as_ptr(refusal) as usize, || weight_of_refusal(refusal));
            }
            What::Gang(verdict) => {
                self.hold(std::sync::Arc::as_ptr(verdict) as usize, || weight_of_gang(verdict));
            }
            What::Evicted(_) => self.weight_held += 300,
        }
        self.held.push(what);
        Packed::Held(self.held.len() as u32 - 1)
    }

    /// The entry of this id, pushed next, stands for several events.
    pub(super) fn repeat(&mut self, id: u64, repeat: Repeat) {
        self.repeats.push((id, repeat));
    }

    /// Equal pods are refused with one shared refusal, one after the other.
    fn hold(&mut self, what: usize, weight: impl FnOnce() -> usize) {
        if self.last_held != what {
            self.last_held = what;
            self.weight_held += weight();
        }
    }

    /// Whether it holds nothing but numbers and names.
    pub(super) fn is_plain(&self) -> bool {
        self.held.is_empty() && self.repeats.is_empty()
    }

    /// Returns a chunk of what this one holds, in the room of one that nobody reads any more, made no larger than
    /// needed. This one is empty then and keeps its room.
    pub(super) fn move_out(&mut self, mut out: Self) -> Self {
        out.entries.clear();
        out.text.clear();
        (out.held, out.repeats) = (std::mem::take(&mut self.held), std::mem::take(&mut self.repeats));
        out.weight_held = self.weight_held;
        (self.weight_held, self.last_held) = (0, 0);
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
        self.held.shrink_to_fit();
        self.repeats.shrink_to_fit();
    }

    /// Returns the bytes it takes.
    #[inline]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + self.entries.len() * size_of::<Entry>()
            + self.text.len()
            + self.held.len() * size_of::<What>()
            + self.repeats.len() * size_of::<(u64, Repeat)>()
            + self.weight_held
    }

    /// Adds those entries of another chunk that are not in `dead`.
    pub(super) fn append(&mut self, other: &Self, dead: u128) {
        for (i, entry) in other.entries.iter().enumerate() {
            if dead & (1 << i) == 0 {
                let what = self.pack(other.what(entry));
                self.repeats.extend(other.repeat_of(entry).map(|repeat| (entry.id, *repeat)));
                self.push(Entry { what, ..*entry }, other.names(entry));
            }
        }
    }

    /// Returns the entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entry of an id.
    pub(super) fn find(&self, id: u64) -> Option<&Entry> {
        let at = self.entries.binary_search_by_key(&id, |entry| entry.id).ok()?;
        Some(&self.entries[at])
    }

    /// Returns what happened.
    pub fn what(&self, entry: &Entry) -> What {
        match entry.what {
            Packed::Added => What::Added,
            Packed::Bound => What::Bound,
            Packed::Released => What::Released,
            Packed::NotRecorded => What::NotRecorded,
            Packed::Gone(gone) => What::Gone(gone),
            Packed::Placed { score, changes, attempts, feasible, evaluated, total } => {
                What::Placed(Numbers { score, changes, attempts, feasible, evaluated, total })
            }
            Packed::Held(number) => self.held[number as usize].clone(),
        }
    }

    fn repeat_of(&self, entry: &Entry) -> Option<&Repeat> {
        let at = self.repeats.binary_search_by_key(&entry.id, |(id, _)| *id).ok()?;
        Some(&self.repeats[at].1)
    }

    /// Returns the entry whose place one took; 0: none.
    pub fn replaces(&self, entry: &Entry) -> u64 {
        self.repeat_of(entry).map_or(0, |repeat| repeat.replaces)
    }

    /// Returns the wall time of the first event that an entry stands for, nanoseconds since 1970.
    pub fn first(&self, entry: &Entry) -> u64 {
        self.repeat_of(entry).map_or(entry.last, |repeat| repeat.first)
    }

    /// Returns how many events an entry stands for.
    pub fn count(&self, entry: &Entry) -> u32 {
        self.repeat_of(entry).map_or(1, |repeat| repeat.count)
    }

    fn names(&self, entry: &Entry) -> [&str; 3] {
        let Names { at, name, namespace, node } = entry.names;
        let mut at = at as usize;
        [namespace.into(), name, node.into()].map(|length| {
            let from = at;
            at += usize::from(length);
            // Names are whole texts; only one beyond 255 bytes, of a gang beyond 64 KiB, was cut.
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
