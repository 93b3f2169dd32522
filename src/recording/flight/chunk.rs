//! A run of entries with the bytes of their names: what is shared, pushed out and cleared away as one.

use super::entry::{Entry, Repeat, What};
use super::line::{About, Line, Text};
use super::names::{Former, Number};
use super::ring::Recorded;
use crate::{GangOutcome, GangVerdict};
use crate::{Group, GroupMeasure, Refusal};

/// Entries per chunk, so that a word has a bit for each.
pub(super) const ENTRIES: usize = 128;
/// Names of numbers that were given up per chunk, so that a publication copies few.
const NAMES: usize = 1024;
/// Unused bytes that a closed chunk may have of each kind.
const SLACK: usize = 256;
/// Bytes of text for which the open chunk keeps room.
const KEPT: usize = 64 << 10;

/// A run of entries, ids rising.
#[derive(Debug, Default)]
pub struct Chunk {
    lines: Vec<Line>,
    text: Vec<u8>,
    /// The id of the first line.
    first: u64,
    /// The ids of all lines, when they are not one by one.
    ids: Vec<u64>,
    /// The attempt of the first line; 0 without one.
    cycle: u64,
    /// Names that numbers had until they were given up, in their order.
    former: Vec<Former>,
    /// What is more than numbers, in the order of the lines that point at it.
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
    /// Whether there is room for an entry.
    pub(super) fn is_open(&self, bytes: usize) -> bool {
        self.len() < ENTRIES && self.former.len() < NAMES && self.weight() < bytes
    }

    /// Returns for how many more entries of nothing but numbers there is room, when it may take so many bytes.
    pub(super) fn room(&self, bytes: usize) -> usize {
        let bytes = bytes.saturating_sub(self.weight());
        (ENTRIES - self.len()).min(bytes / size_of::<Line>())
    }

    /// Says what the first entry will be.
    pub(super) fn begin(&mut self, id: u64, (cycle, _): Recorded) {
        (self.first, self.cycle) = (id, cycle);
    }

    /// Adds an entry with its names: namespace, name, node.
    pub(super) fn push(&mut self, mut line: Line, at: Recorded, names: [&str; 3]) {
        line.set_text(self.write(names));
        self.push_line(line, at);
    }

    /// Adds an entry.
    #[inline(always)]
    pub(super) fn push_line(&mut self, mut line: Line, (cycle, last): Recorded) {
        // Attempts are recorded one after the other; after a pause there is a new chunk.
        line.cycle = cycle.wrapping_sub(self.cycle) as u32;
        line.last = last;
        self.lines.push(line);
    }

    /// Keeps the name that a number had in entries before an id.
    pub(super) fn push_former(&mut self, number: Number, before: u64, names: [&str; 2]) {
        let text = self.write([names[0], names[1], ""]);
        self.former.push(Former { number, before, text });
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

    /// Makes a line of what happened, and room for what is more than numbers; it is pushed next.
    pub(super) fn line_of(&mut self, what: What) -> Line {
        if let Some(line) = Line::plain(&what) {
            return line;
        }
        match &what {
            What::Gated(refusal) | What::Refused(refusal) => {
                self.hold(std::sync::Arc::as_ptr(refusal) as usize, || weight_of_refusal(refusal));
            }
            What::Gang(verdict) => {
                self.hold(std::sync::Arc::as_ptr(verdict) as usize, || weight_of_gang(verdict));
            }
            What::Evicted(_) => self.weight_held += 300,
            _ => {}
        }
        self.held.push(what);
        Line::held(self.held.len() - 1)
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

    /// Returns a chunk of what this one holds, in the room of one that nobody reads any more, made to fit. This one is
    /// empty then and keeps its room.
    pub(super) fn move_out(&mut self, mut out: Self) -> Self {
        (out.first, out.cycle, out.weight_held) = (self.first, self.cycle, self.weight_held);
        out.ids = std::mem::take(&mut self.ids);
        (out.held, out.repeats) = (std::mem::take(&mut self.held), std::mem::take(&mut self.repeats));
        (self.weight_held, self.last_held) = (0, 0);
        refill(&mut out.lines, &mut self.lines);
        refill(&mut out.text, &mut self.text);
        refill(&mut out.former, &mut self.former);
        // Many names may have come at once.
        self.text.shrink_to(KEPT);
        out
    }

    /// Gives unused room back.
    pub(super) fn close(&mut self) {
        self.lines.shrink_to_fit();
        self.text.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.former.shrink_to_fit();
        self.held.shrink_to_fit();
        self.repeats.shrink_to_fit();
    }

    /// Returns the bytes it takes.
    #[inline]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + self.lines.len() * size_of::<Line>()
            + self.text.len()
            + self.ids.len() * size_of::<u64>()
            + self.former.len() * size_of::<Former>()
            + self.held.len() * size_of::<What>()
            + self.repeats.len() * size_of::<(u64, Repeat)>()
            + self.weight_held
    }

    /// Adds those entries of another chunk that are not in `dead`, to none or to some that were added so, and all names.
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
                        let line = self.line_of(other.what(&entry));
                        self.push(line, at, other.text(text));
                    }
                }
                self.ids.push(entry.id);
            }
        }
        if self.is_empty() {
            self.begin(other.last_id().map_or(1, |last| last + 1), (other.cycle, 0));
        }
        for Former { number, before, text } in &other.former {
            let [namespace, name, _] = other.text(*text);
            self.push_former(*number, *before, [namespace, name]);
        }
    }

    /// Whether a later chunk can be appended: the attempts are near enough, the names few enough.
    pub(super) fn can_append(&self, later: &Self) -> bool {
        let is_near = later.cycle.saturating_sub(self.cycle) < u64::from(u32::MAX / 2);
        is_near && self.former.len() + later.former.len() <= NAMES
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether there is nothing in it, not even a name.
    pub(super) fn is_blank(&self) -> bool {
        self.lines.is_empty() && self.former.is_empty()
    }

    /// Returns the id of the first entry.
    pub(super) fn first_id(&self) -> Option<u64> {
        self.entry(0).map(|entry| entry.id)
    }

    /// Returns the id of the last entry, of the one before it when it has none.
    pub(super) fn last_id(&self) -> Option<u64> {
        match self.len().checked_sub(1) {
            Some(last) => self.entry(last).map(|entry| entry.id),
            None => self.first.checked_sub(1),
        }
    }

    /// Returns an entry by its number among those of the chunk.
    fn entry(&self, number: usize) -> Option<Entry> {
        let line = *self.lines.get(number)?;
        Some(Entry {
            id: self.ids.get(number).copied().unwrap_or(self.first + number as u64),
            last: line.last,
            cycle: self.cycle + u64::from(line.cycle),
            line,
        })
    }

    /// Returns the entries.
    pub fn entries(&self) -> impl Iterator<Item = Entry> {
        self.behind(0)
    }

    /// Returns the entries behind an id.
    pub(super) fn behind(&self, id: u64) -> impl Iterator<Item = Entry> {
        (self.number_behind(id)..self.len()).filter_map(|number| self.entry(number))
    }

    /// Returns how many entries are not behind an id.
    fn number_behind(&self, id: u64) -> usize {
        match self.ids.is_empty() {
            true => id.saturating_add(1).saturating_sub(self.first).min(self.len() as u64) as usize,
            false => self.ids.partition_point(|known| *known <= id),
        }
    }

    /// Returns the number of the entry of an id.
    pub(super) fn number_of(&self, id: u64) -> Option<usize> {
        let number = self.number_behind(id).checked_sub(1)?;
        self.entry(number).filter(|entry| entry.id == id).map(|_| number)
    }

    /// Returns the entry of an id.
    pub(super) fn find(&self, id: u64) -> Option<Entry> {
        self.entry(self.number_of(id)?)
    }

    /// Returns what happened.
    pub fn what(&self, entry: &Entry) -> What {
        entry.line.what().unwrap_or_else(|held| self.held[held].clone())
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

    /// Returns the names that numbers had which were given up while it was open.
    pub(super) fn former(&self) -> &[Former] {
        &self.former
    }

    /// Returns namespace, name and node.
    pub(super) fn text(&self, text: Text) -> [&str; 3] {
        let mut at = text.at as usize;
        [text.namespace.into(), text.name, text.node.into()].map(|length| {
            let from = at;
            at += usize::from(length);
            // Names are whole texts; only one beyond 255 bytes, of a gang beyond 64 KiB, was cut.
            std::str::from_utf8(self.text.get(from..at).unwrap_or_default()).unwrap_or_default()
        })
    }
}

/// Moves all items into the room of others, made to fit.
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
