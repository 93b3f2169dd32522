//! A chunk: a run of entries with the bytes of their names, shared, pushed out and compacted as one.

use pellucid_cluster::derived::Told;
use pellucid_cluster::preemptions::{Candidate, Lack, Plan, Preemption, Rejected, Victim, VictimChoice};
use pellucid_model::Name;

use super::entry::{Entry, FlightEvent, Repeat};
use super::line::{About, Line, Text};
use super::names::{FormerName, Slot};
use super::ring::RecordedAt;
use crate::{GangOutcome, GangVerdict, Group, GroupMeasure, Refusal};

/// Maximum number of entries per chunk, so that a word has a bit for each.
pub(super) const ENTRIES: usize = 128;
/// Maximum number of former names per chunk, so that a publication copies few.
const NAMES: usize = 1024;
/// Maximum unused bytes in each vector of a closed chunk.
const SLACK: usize = 256;
/// Maximum bytes of text memory that the open chunk retains.
const KEPT: usize = 64 << 10;

/// A run of entries with ascending ids.
#[derive(Debug, Default)]
pub struct Chunk {
    lines: Vec<Line>,
    text: Vec<u8>,
    /// Id of the first line.
    first: u64,
    /// Ids of all lines; empty when they are consecutive.
    ids: Vec<u64>,
    /// Number of the attempt of the first line, 0 when there is none.
    cycle: u64,
    /// Names of pods and nodes whose slots were freed while the chunk was open, in order.
    former: Vec<FormerName>,
    /// Events that do not fit into a line, in the order of the lines that refer to them.
    held: Vec<FlightEvent>,
    /// Repeats of the entries that stand for several events, ordered by entry id.
    repeats: Vec<(u64, Repeat)>,
    /// Bytes that `held` refers to; successive references to one refusal count once.
    weight_held: usize,
    /// Address of the shared value that was counted last.
    last_held: usize,
}

impl Clone for Chunk {
    /// Copies the chunk with its spare capacity, because a copy may grow.
    fn clone(&self) -> Self {
        let mut copy = Self {
            first: self.first,
            ids: self.ids.clone(),
            former: self.former.clone(),
            cycle: self.cycle,
            held: self.held.clone(),
            repeats: self.repeats.clone(),
            weight_held: self.weight_held,
            ..Self::default()
        };
        copy.lines.reserve_exact(self.lines.capacity());
        copy.lines.extend_from_slice(&self.lines);
        copy.text.reserve_exact(self.text.capacity());
        copy.text.extend_from_slice(&self.text);
        copy
    }
}

impl Chunk {
    /// Returns whether the chunk can take another entry when it may take `bytes`.
    pub(super) fn is_open(&self, bytes: usize) -> bool {
        self.len() < ENTRIES && self.former.len() < NAMES && self.weight() < bytes
    }

    /// Returns how many more placements fit when the chunk may take `bytes`.
    pub(super) fn room(&self, bytes: usize) -> usize {
        let bytes = bytes.saturating_sub(self.weight());
        (ENTRIES - self.len()).min(bytes / size_of::<Line>())
    }

    /// Sets the id and the attempt of the first entry.
    pub(super) fn begin(&mut self, id: u64, (cycle, _): RecordedAt) {
        (self.first, self.cycle) = (id, cycle);
    }

    /// Adds an entry with its names: namespace, name, node.
    pub(super) fn push(&mut self, mut line: Line, at: RecordedAt, names: [&str; 3]) {
        line.set_text(self.write(names));
        self.push_line(line, at);
    }

    /// Adds an entry without names.
    #[inline(always)]
    pub(super) fn push_line(&mut self, mut line: Line, (cycle, last): RecordedAt) {
        // Attempts are recorded in order, and a new chunk starts after a pause, so the difference fits.
        line.cycle = cycle.wrapping_sub(self.cycle) as u32;
        line.last = last;
        self.lines.push(line);
    }

    /// Adds the name of a slot's occupant in the entries before id `before`.
    pub(super) fn push_former(&mut self, slot: Slot, before: u64, names: [&str; 2]) {
        let text = self.write([names[0], names[1], ""]);
        self.former.push(FormerName { slot, before, text });
    }

    fn write(&mut self, [namespace, name, node]: [&str; 3]) -> Text {
        let short = |text: &str| text.len().min(usize::from(u8::MAX)) as u8;
        let text = Text {
            at: self.text.len() as u32,
            name: name.len().min(usize::from(u16::MAX)) as u16,
            namespace: short(namespace),
            node: short(node),
        };
        self.text.extend_from_slice(&namespace.as_bytes()[..usize::from(text.namespace)]);
        self.text.extend_from_slice(&name.as_bytes()[..usize::from(text.name)]);
        self.text.extend_from_slice(&node.as_bytes()[..usize::from(text.node)]);
        text
    }

    /// Creates the line of an event, and stores the event if it does not fit into a line. The caller pushes the line
    /// next.
    pub(super) fn line_of(&mut self, event: FlightEvent) -> Line {
        if let Some(line) = Line::plain(&event) {
            return line;
        }
        match &event {
            FlightEvent::Gated(refusal) | FlightEvent::Refused(refusal) => {
                self.hold(std::sync::Arc::as_ptr(refusal) as usize, || weight_of_refusal(refusal));
            }
            FlightEvent::Gang(verdict) => {
                self.hold(std::sync::Arc::as_ptr(verdict) as usize, || weight_of_gang(verdict));
            }
            FlightEvent::Evicted(eviction) => {
                self.weight_held += 300 + eviction.lack.as_deref().map_or(0, weight_of_lack);
            }
            FlightEvent::PreemptionEnded(ended) => self.weight_held += weight_of_preemption(ended),
            FlightEvent::Told(told) => self.weight_held += size_of::<Told>() + told.text.len(),
            _ => {}
        }
        self.held.push(event);
        Line::held(self.held.len() - 1)
    }

    /// Adds the repeat of the entry with this id, which is pushed next.
    pub(super) fn repeat(&mut self, id: u64, repeat: Repeat) {
        self.repeats.push((id, repeat));
    }

    /// Counts the bytes of a shared value, unless the previous entry refers to it too, as for equal pods.
    fn hold(&mut self, address: usize, weight: impl FnOnce() -> usize) {
        if self.last_held != address {
            self.last_held = address;
            self.weight_held += weight();
        }
    }

    /// Returns whether the chunk holds only numbers and names.
    pub(super) fn is_plain(&self) -> bool {
        self.held.is_empty() && self.repeats.is_empty()
    }

    /// Moves the contents into `out`, a chunk that no reader holds, and shrinks it to fit. This chunk is then empty and
    /// retains its own memory.
    pub(super) fn move_out(&mut self, mut out: Self) -> Self {
        (out.first, out.cycle, out.weight_held) = (self.first, self.cycle, self.weight_held);
        out.ids = std::mem::take(&mut self.ids);
        (out.held, out.repeats) = (std::mem::take(&mut self.held), std::mem::take(&mut self.repeats));
        (self.weight_held, self.last_held) = (0, 0);
        refill(&mut out.lines, &mut self.lines);
        refill(&mut out.text, &mut self.text);
        refill(&mut out.former, &mut self.former);
        // The text may have grown when many names came at once.
        self.text.shrink_to(KEPT);
        out
    }

    /// Releases unused memory.
    pub(super) fn close(&mut self) {
        self.lines.shrink_to_fit();
        self.text.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.former.shrink_to_fit();
        self.held.shrink_to_fit();
        self.repeats.shrink_to_fit();
    }

    /// Returns the size of the chunk with everything it holds, in bytes.
    #[inline]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + self.lines.len() * size_of::<Line>()
            + self.text.len()
            + self.ids.len() * size_of::<u64>()
            + self.former.len() * size_of::<FormerName>()
            + self.held.len() * size_of::<FlightEvent>()
            + self.repeats.len() * size_of::<(u64, Repeat)>()
            + self.weight_held
    }

    /// Appends the entries of another chunk that are not in `dead`, and all its names. This chunk must be empty or
    /// built by `append` alone.
    pub(super) fn append(&mut self, other: &Self, dead: u128) {
        for (i, entry) in other.entries().enumerate() {
            if dead & (1 << i) == 0 {
                let at = (entry.cycle, entry.last);
                if self.is_empty() {
                    self.begin(entry.id, at);
                }
                self.repeats.extend(other.repeat_of(&entry).map(|repeat| (entry.id, *repeat)));
                match entry.line.about() {
                    About::Placement(..) => self.push_line(entry.line, at),
                    About::Names(text) => {
                        let line = self.line_of(other.event(&entry));
                        self.push(line, at, other.text(text));
                    }
                }
                self.ids.push(entry.id);
            }
        }
        if self.is_empty() {
            self.begin(other.last_id().map_or(1, |last| last + 1), (other.cycle, 0));
        }
        for FormerName { slot, before, text } in &other.former {
            let [namespace, name, _] = other.text(*text);
            self.push_former(*slot, *before, [namespace, name]);
        }
    }

    /// Returns whether a later chunk can be appended: attempts must be close enough and names few enough.
    pub(super) fn can_append(&self, later: &Self) -> bool {
        let is_near = later.cycle.saturating_sub(self.cycle) < u64::from(u32::MAX / 2);
        is_near && self.former.len() + later.former.len() <= NAMES
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether the chunk has no entry.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns whether the chunk has neither entries nor names.
    pub(super) fn is_blank(&self) -> bool {
        self.lines.is_empty() && self.former.is_empty()
    }

    /// Returns the id of the first entry, or `None` without entries.
    pub(super) fn first_id(&self) -> Option<u64> {
        self.entry(0).map(|entry| entry.id)
    }

    /// Returns the id of the last entry; without entries, the id before the first possible one.
    pub(super) fn last_id(&self) -> Option<u64> {
        match self.len().checked_sub(1) {
            Some(last) => self.entry(last).map(|entry| entry.id),
            None => self.first.checked_sub(1),
        }
    }

    /// Returns an entry by its index in the chunk.
    fn entry(&self, number: usize) -> Option<Entry> {
        let line = *self.lines.get(number)?;
        Some(Entry {
            id: self.ids.get(number).copied().unwrap_or(self.first + number as u64),
            last: line.last,
            cycle: self.cycle + u64::from(line.cycle),
            line,
        })
    }

    /// Iterates over the entries.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.behind(0)
    }

    /// Iterates over the entries after an id.
    pub(super) fn behind(&self, id: u64) -> impl Iterator<Item = Entry> {
        (self.number_behind(id)..self.len()).filter_map(|number| self.entry(number))
    }

    /// Returns the number of entries up to and including an id.
    fn number_behind(&self, id: u64) -> usize {
        match self.ids.is_empty() {
            true => id.saturating_add(1).saturating_sub(self.first).min(self.len() as u64) as usize,
            false => self.ids.partition_point(|known| *known <= id),
        }
    }

    /// Returns the index of the entry with an id.
    pub(super) fn number_of(&self, id: u64) -> Option<usize> {
        let number = self.number_behind(id).checked_sub(1)?;
        self.entry(number).filter(|entry| entry.id == id).map(|_| number)
    }

    /// Returns the entry with an id.
    pub(super) fn find(&self, id: u64) -> Option<Entry> {
        self.entry(self.number_of(id)?)
    }

    /// Returns the event of an entry of this chunk.
    pub fn event(&self, entry: &Entry) -> FlightEvent {
        entry.line.event().unwrap_or_else(|held| self.held[held].clone())
    }

    fn repeat_of(&self, entry: &Entry) -> Option<&Repeat> {
        let at = self.repeats.binary_search_by_key(&entry.id, |(id, _)| *id).ok()?;
        Some(&self.repeats[at].1)
    }

    /// Returns the id of the entry that an entry replaced, 0 if none.
    pub fn replaces(&self, entry: &Entry) -> u64 {
        self.repeat_of(entry).map_or(0, |repeat| repeat.replaces)
    }

    /// Returns the wall time of the first event that an entry stands for, in nanoseconds since 1970.
    pub fn first(&self, entry: &Entry) -> u64 {
        self.repeat_of(entry).map_or(entry.last, |repeat| repeat.first)
    }

    /// Returns the number of events that an entry stands for.
    pub fn count(&self, entry: &Entry) -> u32 {
        self.repeat_of(entry).map_or(1, |repeat| repeat.count)
    }

    /// Returns the names of the slots that were freed while the chunk was open.
    pub(super) fn former(&self) -> &[FormerName] {
        &self.former
    }

    /// Returns the namespace, name and node stored at a position.
    pub(super) fn text(&self, text: Text) -> [&str; 3] {
        let mut at = text.at as usize;
        [text.namespace.into(), text.name, text.node.into()].map(|length| {
            let from = at;
            at += usize::from(length);
            // Only namespaces and nodes beyond 255 bytes and names beyond 64 KiB, which gangs may have, were cut.
            std::str::from_utf8(self.text.get(from..at).unwrap_or_default()).unwrap_or_default()
        })
    }
}

/// Moves all items of `from` into the memory of `to`, shrunk to fit.
fn refill<T>(to: &mut Vec<T>, from: &mut Vec<T>) {
    to.clear();
    if to.capacity() > from.len() + SLACK / size_of::<T>() {
        to.shrink_to(from.len());
    }
    to.reserve_exact(from.len());
    to.append(from);
}

fn weight_of_refusal(refusal: &Refusal) -> usize {
    const MESSAGE: usize = 200;
    let measures: usize = refusal.groups.iter().map(|g| g.measures.len()).sum();
    size_of::<Refusal>()
        + MESSAGE
        + refusal.groups.len() * size_of::<Group>()
        + measures * size_of::<GroupMeasure>()
}

fn weight_of_lack(lack: &Lack) -> usize {
    size_of::<Lack>() + size_of_val(&*lack.amounts)
}

fn weight_of_preemption(preemption: &Preemption) -> usize {
    /// Bytes of a victim's uid and of what else is not in its struct.
    const TEXT: usize = 64;
    let plan = &preemption.plan;
    let chosen: usize = plan.candidates.iter().map(|c| c.victims.len()).sum();
    let examples: usize = plan.rejected.iter().map(|r| r.examples.len()).sum();
    size_of::<Preemption>()
        + preemption.victims.len() * (size_of::<Victim>() + TEXT)
        + size_of::<Plan>()
        + plan.candidates.len() * size_of::<Candidate>()
        + chosen * size_of::<VictimChoice>()
        + plan.rejected.len() * size_of::<Rejected>()
        + examples * size_of::<Name>()
        + plan.lack.as_deref().map_or(0, weight_of_lack)
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
