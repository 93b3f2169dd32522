//! The ring: chunks in order, the last of them open; who writes it, and what readers hold of it.
//!
//! Pushing an entry writes into the open chunk, which nobody else holds. Its memory is used again for the next one, so
//! it stays in the cache: a chunk that is closed is moved out as a whole, which costs less than many small writes to
//! memory that is not, into the memory of a chunk that was pushed out. A publication copies that chunk, once, if
//! something was pushed since the last one, and the list of the segments of closed chunks. What readers hold keeps
//! its chunks alive beyond the bound, for as long as they read.

use std::collections::VecDeque;
use std::sync::Arc;

use super::chunk::{Chunk, ENTRIES};
use super::closed::Closed;
use super::entry::{Entry, Names, Numbers, Packed, Repeat, What};
use super::sameness::is_same;
use crate::model::collections::FxHashMap;
use crate::model::{GangKey, PodId, PodKey};

/// Chunks that a bound is divided into at least, so that little is pushed out at a time.
const PARTS: usize = 16;
/// Gangs whose last entry is remembered before those whose entry is gone are forgotten.
const GANGS: usize = 4096;
/// The first id may be no higher, so that ids stay numbers that JSON readers can hold exactly (below 2^53).
const HIGHEST_FIRST: u64 = 1 << 52;

/// What happened to a pod, to be recorded.
pub struct Noted<'a> {
    /// Its slot.
    pub id: PodId,
    /// Its name.
    pub key: &'a PodKey,
    /// The node that it is about, or nothing.
    pub node: &'a str,
    /// What.
    pub what: What,
}

/// When something is recorded: the attempt, and the wall time in nanoseconds since 1970.
pub type Recorded = (u64, u64);

/// The recorder, as the scheduling thread has it.
#[derive(Debug)]
pub struct Flight {
    closed: Closed,
    /// Replaced entries of each closed chunk, a bit each.
    dead: VecDeque<u128>,
    /// Bytes of the closed chunks.
    bytes: usize,
    limit: usize,
    open: Chunk,
    open_dead: u128,
    /// Chunks that were pushed out, oldest first: their memory is used again when no reader holds them any more.
    spare: VecDeque<Arc<Chunk>>,
    /// The open chunk as it was published last.
    shown: Option<Arc<Chunk>>,
    first: u64,
    next: u64,
    pushed_out: u64,
    dropped: u64,
    replaced: u64,
    /// The last attempt at the pod of each slot; 0: none since something else happened to it.
    of_pod: Vec<u64>,
    of_gang: FxHashMap<GangKey, u64>,
    /// Events since the switch was turned off, and when the first was.
    unrecorded: (u32, u64),
}

/// What readers hold.
#[derive(Clone, Debug)]
pub struct FlightLog {
    chunks: Closed,
    open: Arc<Chunk>,
    /// The id that the first entry got, kept or not: this process gave none below it.
    pub first: u64,
    /// The highest id among those that were pushed out; one less than the first: none.
    pub pushed_out: u64,
    /// How many entries were pushed out.
    pub dropped: u64,
    /// How many entries took the place of an earlier one.
    pub replaced: u64,
    /// The newest id; one less than the first: none.
    pub newest: u64,
    /// Bytes in use.
    pub bytes: usize,
    /// Bytes it may use.
    pub limit: usize,
}

impl Flight {
    /// Makes an empty one of so many bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            closed: Closed::default(),
            dead: VecDeque::new(),
            bytes: 0,
            limit,
            open: Chunk::default(),
            open_dead: 0,
            spare: VecDeque::new(),
            shown: None,
            first: 1,
            next: 1,
            pushed_out: 0,
            dropped: 0,
            replaced: 0,
            of_pod: Vec::new(),
            of_gang: FxHashMap::default(),
            unrecorded: (0, 0),
        }
    }

    /// Gives the first entry this id, at least 1: nothing may be recorded yet.
    pub fn numbered_from(self, first: u64) -> Self {
        let first = first.clamp(1, HIGHEST_FIRST);
        Self { first, next: first, pushed_out: first - 1, ..self }
    }

    /// Records what happened to a pod.
    pub fn note(&mut self, noted: Noted<'_>, at: Recorded) {
        let Noted { id, key, node, what } = noted;
        if self.unrecorded.0 > 0 {
            self.resume(at);
        }
        let names = [&*key.namespace, &*key.name, node];
        if matches!(what, What::Gated(_) | What::Refused(_)) {
            return self.note_refusal(id, what, names, at);
        }
        let is_of_attempt = matches!(what, What::Released);
        if !is_of_attempt && let Some(last) = self.of_pod.get_mut(id.index()).filter(|last| **last != 0) {
            *last = 0;
        }
        self.push(what, names, at, None);
    }

    /// Records a placement: what [`note`](Self::note) does with one, without anything that others need. One comes with
    /// each decision. Returns its id.
    #[inline]
    pub fn note_placed(&mut self, id: PodId, names: [&str; 3], numbers: Numbers, at: Recorded) -> u64 {
        if self.unrecorded.0 > 0 {
            self.resume(at);
        }
        if let Some(last) = self.of_pod.get_mut(id.index()).filter(|last| **last != 0) {
            *last = 0;
        }
        let id = self.next_id();
        self.open.push(entry(id, numbers.into(), at), names);
        id
    }

    #[inline(never)]
    fn note_refusal(&mut self, id: PodId, what: What, names: [&str; 3], at: Recorded) {
        let before = self.of_pod.get(id.index()).copied().unwrap_or(0);
        let last = self.attempt(before, what, names, at);
        if self.of_pod.len() <= id.index() {
            self.of_pod.resize(id.index() + 1, 0);
        }
        self.of_pod[id.index()] = last;
    }

    /// Records what became of an attempt at a group of gangs, under its first gang.
    pub fn note_gang(&mut self, gang: &GangKey, what: What, at: Recorded) {
        if self.unrecorded.0 > 0 {
            self.resume(at);
        }
        let before = self.of_gang.get(gang).copied().unwrap_or(0);
        let last = self.attempt(before, what, [&gang.namespace, &gang.name, ""], at);
        if self.of_gang.len() >= GANGS {
            let pushed_out = self.pushed_out;
            self.of_gang.retain(|_, last| *last > pushed_out);
        }
        self.of_gang.insert(gang.clone(), last);
    }

    /// Counts what happens while the switch is off.
    pub fn leave_out(&mut self, wall_nanos: u64) {
        if self.unrecorded.0 == 0 {
            self.unrecorded.1 = wall_nanos;
        }
        self.unrecorded.0 = self.unrecorded.0.saturating_add(1);
    }

    /// Returns what there is, for readers.
    pub fn publish(&mut self) -> FlightLog {
        let shown = self.shown.get_or_insert_with(|| Arc::new(self.open.clone()));
        FlightLog {
            chunks: self.closed.clone(),
            open: shown.clone(),
            first: self.first,
            pushed_out: self.pushed_out,
            dropped: self.dropped,
            replaced: self.replaced,
            newest: self.next - 1,
            bytes: self.bytes + self.open.weight(),
            limit: self.limit,
        }
    }

    /// An attempt: one that ended as the last one did takes its place. Returns its id.
    fn attempt(&mut self, before: u64, what: What, names: [&str; 3], at: Recorded) -> u64 {
        let known = self.find(before).map(|(_, chunk, entry)| (chunk, entry));
        let Some((chunk, entry)) = known else { return self.push(what, names, at, None) };
        let last = chunk.what(entry);
        if !is_same(&last, &what) {
            return self.push(what, names, at, None);
        }
        // An attempt whose verdict is stored twice is one attempt.
        if entry.cycle == at.0 && is_identical(&last, &what) {
            return before;
        }
        let count = chunk.count(entry).saturating_add(1);
        let repeat = Repeat { replaces: before, first: chunk.first(entry), count };
        self.replaced += 1;
        let id = self.push(what, names, at, Some(repeat));
        self.bury(before);
        id
    }

    fn push(&mut self, what: What, names: [&str; 3], at: Recorded, repeat: Option<Repeat>) -> u64 {
        let id = self.next_id();
        let what = self.open.pack(what);
        if let Some(repeat) = repeat {
            self.open.repeat(id, repeat);
        }
        self.open.push(entry(id, what, at), names);
        id
    }

    /// Gives the next id, and makes room for the entry.
    #[inline(always)]
    fn next_id(&mut self) -> u64 {
        if self.open.entries.len() == ENTRIES || self.open.weight() * PARTS >= self.limit {
            self.close();
        }
        self.shown = None;
        let id = self.next;
        self.next += 1;
        id
    }

    /// The switch is on again: an entry says how much is missing.
    #[cold]
    fn resume(&mut self, at: Recorded) {
        let (count, first) = std::mem::take(&mut self.unrecorded);
        // What was remembered of the pods may be long past.
        self.of_pod.clear();
        self.of_gang.clear();
        let repeat = Repeat { replaces: 0, first, count };
        self.push(What::NotRecorded, [""; 3], at, Some(repeat));
    }

    /// Returns an entry that is kept, and its chunk.
    pub fn get(&self, id: u64) -> Option<(&Chunk, &Entry)> {
        self.find(id).map(|(_, chunk, entry)| (chunk, entry))
    }

    /// Returns where an entry is: the number of its chunk, or `None` for the open one.
    fn find(&self, id: u64) -> Option<(Option<usize>, &Chunk, &Entry)> {
        if id <= self.pushed_out {
            return None;
        }
        if self.open.entries.first().is_some_and(|e| e.id <= id) {
            return Some((None, &self.open, self.open.find(id)?));
        }
        let number = self.closed.partition_point(|c| c.entries.last().is_some_and(|e| e.id < id));
        let chunk = self.closed.get(number)?;
        Some((Some(number), chunk, chunk.find(id)?))
    }

    /// An entry was replaced. It is looked up again: the new one may have closed its chunk.
    fn bury(&mut self, id: u64) {
        let Some((place, ..)) = self.find(id) else { return };
        let bit = |chunk: &Chunk| chunk.entries.binary_search_by_key(&id, |e| e.id).map_or(0, |i| 1u128 << i);
        match place {
            None => self.open_dead |= bit(&self.open),
            Some(number) => {
                let Some(chunk) = self.closed.get(number).cloned() else { return };
                self.dead[number] |= bit(&chunk);
                if self.dead[number].count_ones() as usize * 2 > chunk.entries.len() {
                    self.clear(number);
                }
            }
        }
    }

    /// Makes a closed chunk anew without its replaced entries, together with a small one before it.
    fn clear(&mut self, number: usize) {
        let Some(old) = self.closed.get(number).cloned() else { return };
        let alive = old.entries.len() - self.dead[number].count_ones() as usize;
        let before = number.checked_sub(1).and_then(|n| Some((n, self.closed.get(n)?.clone())));
        let before = before.filter(|(_, chunk)| chunk.entries.len() + alive <= ENTRIES / 2);
        let mut fresh = Chunk::default();
        if let Some((n, before)) = &before {
            fresh.append(before, self.dead[*n]);
        }
        fresh.append(&old, self.dead[number]);
        fresh.close();
        let from = before.as_ref().map_or(number, |(n, _)| *n);
        for old in before.iter().map(|(_, chunk)| chunk).chain([&old]) {
            self.bytes -= old.weight();
        }
        self.dead.drain(from..=number);
        let fresh = (!fresh.entries.is_empty()).then(|| Arc::new(fresh));
        if let Some(fresh) = &fresh {
            self.bytes += fresh.weight();
            self.dead.insert(from, 0);
        }
        self.closed.replace(from..number + 1, fresh);
    }

    /// Returns an empty chunk, with room if a spare one is free. Asking the allocator for so much at a time makes it
    /// put together all that was freed in small pieces.
    fn take_spare(&mut self) -> Chunk {
        let is_free = self.spare.front().is_some_and(|oldest| Arc::strong_count(oldest) == 1);
        let spare = if is_free { self.spare.pop_front() } else { None };
        spare.and_then(Arc::into_inner).unwrap_or_default()
    }

    /// Closes the open chunk and pushes out what is beyond the bound.
    #[cold]
    fn close(&mut self) {
        let entries = self.open.entries.len();
        let spare = self.take_spare();
        let mut full = self.open.move_out(spare);
        let dead = std::mem::take(&mut self.open_dead);
        if dead.count_ones() as usize * 2 > entries {
            let mut alive = Chunk::default();
            alive.append(&full, dead);
            full = alive;
        }
        if full.entries.is_empty() {
            return;
        }
        let is_cleared = full.entries.len() < entries;
        self.bytes += full.weight();
        self.closed.push_back(Arc::new(full));
        self.dead.push_back(if is_cleared { 0 } else { dead });
        // One part is for the open chunk, one for the spare ones.
        while self.bytes > self.limit - 2 * (self.limit / PARTS) {
            let Some(oldest) = self.closed.pop_front() else { break };
            let dead = self.dead.pop_front().unwrap_or_default();
            self.bytes -= oldest.weight();
            // What was replaced is not lost: its place is taken.
            self.dropped += oldest.entries.len() as u64 - u64::from(dead.count_ones());
            self.pushed_out = oldest.entries.last().map_or(self.pushed_out, |e| e.id);
            let is_spare =
                oldest.is_plain() && (self.spare.len() + 1) * oldest.weight() <= self.limit / PARTS;
            if is_spare {
                self.spare.push_back(oldest);
            }
        }
    }
}

#[inline(always)]
fn entry(id: u64, what: Packed, (cycle, last): Recorded) -> Entry {
    Entry { id, last, cycle, what, names: Names::default() }
}

fn is_identical(before: &What, now: &What) -> bool {
    match (before.refusal(), now.refusal()) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

impl FlightLog {
    /// Returns how many ids were given.
    pub fn given(&self) -> u64 {
        self.newest + 1 - self.first
    }

    /// Returns the oldest id there is; one more than the newest when there is none.
    pub fn lowest(&self) -> u64 {
        let mut chunks = self.chunks.iter().chain([&self.open]);
        chunks.find_map(|c| c.entries.first()).map_or(self.newest + 1, |e| e.id)
    }

    /// Returns an entry that is kept, and its chunk.
    pub fn get(&self, id: u64) -> Option<(&Chunk, &Entry)> {
        let number = self.chunks.partition_point(|c| c.entries.last().is_none_or(|e| e.id < id));
        let chunk: &Chunk = self.chunks.get(number).unwrap_or(&self.open);
        Some((chunk, chunk.find(id)?))
    }

    /// Iterates over the entries behind an id, in their order, each with its chunk.
    pub fn since(&self, id: u64) -> impl Iterator<Item = (&Chunk, &Entry)> {
        let from = self.chunks.partition_point(|c| c.entries.last().is_none_or(|e| e.id <= id));
        let chunks = self.chunks.since(from).chain([&self.open]);
        chunks.flat_map(move |chunk| {
            let at = chunk.entries.partition_point(|e| e.id <= id);
            chunk.entries[at..].iter().map(move |entry| (&**chunk, entry))
        })
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|c| c.entries.len()).sum::<usize>() + self.open.entries.len()
    }

    /// Whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
