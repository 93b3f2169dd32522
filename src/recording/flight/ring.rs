//! The ring of chunks, of which the last is open: how the scheduling thread writes it, and how readers see it.
//!
//! Pushing an entry writes into the open chunk, which no reader holds. Its memory is reused for the next open chunk, so
//! it stays in the cache: a closed chunk is moved as a whole into the memory of a chunk that was pushed out, which
//! costs less than many small writes to uncached memory. A publication copies the open chunk, once, if something was
//! pushed since the last one, and the list of the segments of closed chunks. Chunks that a reader holds live beyond the
//! bound for as long as it reads.

use std::collections::VecDeque;
use std::sync::Arc;

use pellucid_model::collections::{FxHashMap, Lasting};
use pellucid_model::{GangKey, NodeIdx, PodId, PodKey};

use super::chunk::{Chunk, ENTRIES};
use super::closed::Closed;
use super::entry::{Entry, FlightEvent, Numbers, Repeat};
use super::line::Line;
use super::names::Slot;
use super::sameness::is_same;

/// Minimum number of chunks that the bound is divided into, so that little is pushed out at a time.
const PARTS: usize = 16;
/// Upper bound of the first id, so that JSON readers can represent ids exactly (below 2^53).
const HIGHEST_FIRST: u64 = 1 << 52;

/// An event of a pod, to be recorded.
pub struct PodEvent<'a> {
    /// The pod's id in the state.
    pub id: PodId,
    /// Namespace and name of the pod.
    pub key: &'a PodKey,
    /// Name of the node that the event concerns, or empty.
    pub node: &'a str,
    /// The event.
    pub event: FlightEvent,
}

/// Time of a record: number of the attempt, and wall time in nanoseconds since 1970.
pub type RecordedAt = (u64, u64);

/// The flight recorder, owned by the scheduling thread.
#[derive(Debug, Default)]
pub struct FlightRecorder {
    closed: Closed,
    /// Replaced entries of each closed chunk, one bit each.
    dead: VecDeque<u128>,
    /// Size of the closed chunks, in bytes.
    bytes: usize,
    limit: usize,
    open: Chunk,
    open_dead: u128,
    /// Number of placements that the open chunk can take before [`Self::make_room`] is called.
    room: usize,
    /// Chunks that were pushed out, oldest first. Their memory is reused when no reader holds them any more.
    spare: VecDeque<Arc<Chunk>>,
    /// The open chunk as last published.
    shown: Option<Arc<Chunk>>,
    first: u64,
    next: u64,
    pushed_out: u64,
    dropped: u64,
    replaced: u64,
    /// Entry of the last failed attempt at the pod in each slot; 0 once something else happened to the pod.
    of_pod: Vec<u64>,
    /// The same of each gang. Before the table grows, gangs whose entry was pushed out are forgotten.
    of_gang: FxHashMap<GangKey, u64>,
    /// Number of events since the switch was turned off, and when the first happened.
    unrecorded: (u32, u64),
}

/// The published flight log, which readers hold.
#[derive(Clone, Debug)]
pub struct FlightLog {
    chunks: Closed,
    open: Arc<Chunk>,
    /// Id of this process's first entry, even if that was pushed out; no entry has a lower id.
    pub first: u64,
    /// The highest id that was pushed out; `first - 1` when none was.
    pub pushed_out: u64,
    /// Number of entries that were pushed out.
    pub dropped: u64,
    /// Number of entries that replaced an earlier one.
    pub replaced: u64,
    /// The newest id; `first - 1` when there is none.
    pub newest: u64,
    /// Size of the log, in bytes.
    pub bytes: usize,
    /// Upper bound of the size, in bytes.
    pub limit: usize,
}

impl FlightRecorder {
    /// Creates an empty recorder with a size limit in bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, first: 1, next: 1, ..Self::default() }
    }

    /// Sets the id of the first entry, at least 1. Must be called before anything is recorded.
    #[inline]
    pub fn numbered_from(self, first: u64) -> Self {
        let first = first.clamp(1, HIGHEST_FIRST);
        Self { first, next: first, pushed_out: first - 1, ..self }
    }

    /// Records an event of a pod.
    pub fn record(&mut self, event: PodEvent<'_>, at: RecordedAt) {
        let PodEvent { id, key, node, event } = event;
        if self.unrecorded.0 > 0 {
            self.resume(at);
        }
        let names = [&*key.namespace, &*key.name, node];
        if matches!(event, FlightEvent::Gated(_) | FlightEvent::Refused(_)) {
            return self.record_refusal(id, event, names, at);
        }
        let is_of_attempt = matches!(event, FlightEvent::Released);
        if !is_of_attempt && let Some(last) = self.of_pod.get_mut(id.index()).filter(|last| **last != 0) {
            *last = 0;
        }
        self.push(event, names, at, None);
    }

    /// Records a placement and returns its entry id. Like [`record`](Self::record), but without the work that only
    /// other events need, because every decision records a placement.
    #[inline]
    pub fn record_placement(&mut self, pod: PodId, node: NodeIdx, numbers: Numbers, at: RecordedAt) -> u64 {
        if let Some(last) = self.of_pod.get_mut(pod.index()).filter(|last| **last != 0) {
            *last = 0;
        }
        if self.room == 0 {
            self.make_room(at);
        }
        self.open.push_line(Line::placed(pod, node, numbers), at);
        self.room = self.room.saturating_sub(1);
        self.next += 1;
        self.next - 1
    }

    /// Records the name of a pod whose last placement is `entry`. Call it before the pod's slot is reused.
    #[inline]
    pub fn name_pod(&mut self, pod: PodId, entry: u64, key: &PodKey) {
        if entry > self.pushed_out {
            self.push_former(Slot::Pod(pod), [&*key.namespace, &*key.name]);
        }
    }

    /// Records the name of a node. Call it before the node's slot is reused.
    #[inline]
    pub fn name_node(&mut self, node: NodeIdx, name: &str) {
        self.push_former(Slot::Node(node), ["", name]);
    }

    /// Records the name of a slot's occupant, unless every entry that could refer to it was pushed out.
    fn push_former(&mut self, slot: Slot, names: [&str; 2]) {
        if self.next - 1 <= self.pushed_out {
            return;
        }
        if !self.open.is_open(self.limit / PARTS) {
            self.close();
        }
        (self.shown, self.room) = (None, 0);
        if self.open.is_empty() {
            self.open.begin(self.next, (0, 0));
        }
        self.open.push_former(slot, self.next, names);
    }

    /// Makes room for a placement.
    #[inline(never)]
    fn make_room(&mut self, at: RecordedAt) {
        if self.unrecorded.0 > 0 {
            self.resume(at);
        }
        self.prepare(at);
        self.room = self.open.room(self.limit / PARTS);
    }

    #[inline(never)]
    fn record_refusal(&mut self, id: PodId, event: FlightEvent, names: [&str; 3], at: RecordedAt) {
        let before = self.of_pod.get(id.index()).copied().unwrap_or(0);
        let last = self.record_attempt(before, event, names, at);
        if self.of_pod.len() <= id.index() {
            self.of_pod.resize(id.index() + 1, 0);
        }
        self.of_pod[id.index()] = last;
    }

    /// Records the outcome of an attempt at a gang group, under its first gang.
    pub fn record_gang(&mut self, gang: &GangKey, event: FlightEvent, at: RecordedAt) {
        if self.unrecorded.0 > 0 {
            self.resume(at);
        }
        let before = self.of_gang.get(gang).copied().unwrap_or(0);
        let last = self.record_attempt(before, event, [&gang.namespace, &gang.name, ""], at);
        if self.of_gang.len() == self.of_gang.capacity() {
            let pushed_out = self.pushed_out;
            self.of_gang.retain(|_, last| *last > pushed_out);
            self.of_gang.make_room();
        }
        self.of_gang.insert(gang.clone(), last);
    }

    /// Counts an event that is not recorded because the switch is off.
    #[inline]
    pub fn count_unrecorded(&mut self, wall_nanos: u64) {
        self.room = 0;
        if self.unrecorded.0 == 0 {
            self.unrecorded.1 = wall_nanos;
        }
        self.unrecorded.0 = self.unrecorded.0.saturating_add(1);
    }

    /// Publishes the log for readers.
    pub fn publish(&mut self) -> FlightLog {
        self.room = 0;
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

    /// Records the outcome of an attempt. An entry with the same outcome as the last one replaces it. Returns the id.
    fn record_attempt(&mut self, before: u64, event: FlightEvent, names: [&str; 3], at: RecordedAt) -> u64 {
        let Some((chunk, entry)) = self.get(before) else { return self.push(event, names, at, None) };
        let last = chunk.event(&entry);
        if !is_same(&last, &event) {
            return self.push(event, names, at, None);
        }
        // A verdict that is stored twice for one attempt is one event.
        if entry.cycle == at.0 && is_identical(&last, &event) {
            return before;
        }
        let count = chunk.count(&entry).saturating_add(1);
        let repeat = Repeat { replaces: before, first: chunk.first(&entry), count };
        self.replaced += 1;
        let id = self.push(event, names, at, Some(repeat));
        self.mark_replaced(before);
        id
    }

    fn push(&mut self, event: FlightEvent, names: [&str; 3], at: RecordedAt, repeat: Option<Repeat>) -> u64 {
        self.prepare(at);
        let id = self.next;
        self.next += 1;
        let line = self.open.line_of(event);
        if let Some(repeat) = repeat {
            self.open.repeat(id, repeat);
        }
        self.open.push(line, at, names);
        self.room = 0;
        id
    }

    /// Makes room for any entry.
    #[inline]
    fn prepare(&mut self, at: RecordedAt) {
        if !self.open.is_open(self.limit / PARTS) {
            self.close();
        }
        self.shown = None;
        if self.open.is_empty() {
            self.open.begin(self.next, at);
        }
    }

    /// Records how many events are missing, now that the switch is on again.
    #[cold]
    fn resume(&mut self, at: RecordedAt) {
        let (count, first) = std::mem::take(&mut self.unrecorded);
        if !self.open.is_blank() {
            self.close();
        }
        // The remembered entries of pods and gangs may be long outdated.
        self.of_pod.clear();
        self.of_gang.clear();
        let repeat = Repeat { replaces: 0, first, count };
        self.push(FlightEvent::NotRecorded, [""; 3], at, Some(repeat));
    }

    /// Returns an entry that was not pushed out, with its chunk.
    #[inline]
    pub fn get(&self, id: u64) -> Option<(&Chunk, Entry)> {
        let (_, chunk) = self.find(id)?;
        Some((chunk, chunk.find(id)?))
    }

    /// Returns the chunk that would hold an entry, with its number, which is `None` for the open chunk.
    fn find(&self, id: u64) -> Option<(Option<usize>, &Chunk)> {
        if id <= self.pushed_out {
            return None;
        }
        if self.open.first_id().is_some_and(|first| first <= id) {
            return Some((None, &self.open));
        }
        let number = self.closed.partition_point(|c| c.last_id().is_some_and(|last| last < id));
        Some((Some(number), self.closed.get(number)?))
    }

    /// Marks an entry as replaced. Looks it up again, because the new entry may have closed its chunk.
    fn mark_replaced(&mut self, id: u64) {
        let Some((place, chunk)) = self.find(id) else { return };
        let Some(bit) = chunk.number_of(id).map(|number| 1u128 << number) else { return };
        let entries = chunk.len();
        match place {
            None => self.open_dead |= bit,
            Some(number) => {
                self.dead[number] |= bit;
                if self.dead[number].count_ones() as usize * 2 > entries {
                    self.compact(number);
                }
            }
        }
    }

    /// Rebuilds a closed chunk without its replaced entries, merging it with a small chunk before it.
    fn compact(&mut self, number: usize) {
        let Some(old) = self.closed.get(number).cloned() else { return };
        let alive = old.len() - self.dead[number].count_ones() as usize;
        let before = number.checked_sub(1).and_then(|n| Some((n, self.closed.get(n)?.clone())));
        let before = before.filter(|(_, c)| c.len() + alive <= ENTRIES / 2 && c.can_append(&old));
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
        let fresh = (!fresh.is_blank()).then(|| Arc::new(fresh));
        if let Some(fresh) = &fresh {
            self.bytes += fresh.weight();
            self.dead.insert(from, 0);
        }
        self.closed.replace(from..number + 1, fresh);
    }

    /// Returns an empty chunk, with the memory of a spare chunk if one is free. Allocating that much at a time would
    /// make the allocator coalesce everything that was freed in small pieces.
    #[inline]
    fn take_spare(&mut self) -> Chunk {
        let is_free = self.spare.front().is_some_and(|oldest| Arc::strong_count(oldest) == 1);
        let spare = if is_free { self.spare.pop_front() } else { None };
        spare.and_then(Arc::into_inner).unwrap_or_default()
    }

    /// Closes the open chunk and pushes out the oldest chunks beyond the bound.
    #[cold]
    fn close(&mut self) {
        let entries = self.open.len();
        let spare = self.take_spare();
        let mut full = self.open.move_out(spare);
        let dead = std::mem::take(&mut self.open_dead);
        if dead.count_ones() as usize * 2 > entries {
            let mut alive = Chunk::default();
            alive.append(&full, dead);
            full = alive;
        }
        if full.is_blank() {
            return;
        }
        let is_cleared = full.len() < entries;
        self.bytes += full.weight();
        self.closed.push_back(Arc::new(full));
        self.dead.push_back(if is_cleared { 0 } else { dead });
        // One part is for the open chunk, and one for the spare chunks.
        while self.bytes > self.limit - 2 * (self.limit / PARTS) {
            let Some(oldest) = self.closed.pop_front() else { break };
            let dead = self.dead.pop_front().unwrap_or_default();
            self.bytes -= oldest.weight();
            // Replaced entries are not lost, because newer entries took their place.
            self.dropped += oldest.len() as u64 - u64::from(dead.count_ones());
            self.pushed_out = oldest.last_id().unwrap_or(self.pushed_out);
            let is_spare =
                oldest.is_plain() && (self.spare.len() + 1) * oldest.weight() <= self.limit / PARTS;
            if is_spare {
                self.spare.push_back(oldest);
            }
        }
    }
}

fn is_identical(before: &FlightEvent, now: &FlightEvent) -> bool {
    match (before.refusal(), now.refusal()) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

impl FlightLog {
    /// Returns the number of ids that this process assigned.
    #[inline]
    pub fn given(&self) -> u64 {
        self.newest + 1 - self.first
    }

    /// Returns the oldest id in the log, or `newest + 1` when the log is empty.
    #[inline]
    pub fn lowest(&self) -> u64 {
        let mut chunks = self.chunks.iter().chain([&self.open]);
        chunks.find_map(|c| c.first_id()).unwrap_or(self.newest + 1)
    }

    /// Returns an entry that was not pushed out, with its chunk.
    #[inline]
    pub fn get(&self, id: u64) -> Option<(&Chunk, Entry)> {
        let number = self.chunks.partition_point(|c| c.last_id().is_none_or(|last| last < id));
        let chunk: &Chunk = self.chunks.get(number).unwrap_or(&self.open);
        Some((chunk, chunk.find(id)?))
    }

    /// Iterates over the entries after an id, in order, each with its chunk.
    #[inline]
    pub fn since(&self, id: u64) -> impl Iterator<Item = (&Chunk, Entry)> {
        self.chunks_behind(id).flat_map(move |chunk| chunk.behind(id).map(move |entry| (chunk, entry)))
    }

    /// Iterates over the chunks with entries after an id, and over all later chunks.
    pub(super) fn chunks_behind(&self, id: u64) -> impl Iterator<Item = &Chunk> {
        let from = self.chunks.partition_point(|c| c.last_id().is_none_or(|last| last <= id));
        self.chunks.since(from).chain([&self.open]).map(|chunk| &**chunk)
    }
}
