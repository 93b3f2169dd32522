//! The stored form of an entry: plain numbers, because every decision writes one line and most lines are dropped
//! unread.
//!
//! Ids follow from a line's position in its [`Chunk`](super::Chunk), and attempts are relative to the chunk's first.
//! The chunk also holds the names and everything else that is not a number. Placements have no names, only the numbers
//! of their pod and node, which [`Names`](super::Names) resolves.

use pellucid_model::{NodeIdx, PodId};

use super::entry::{Departure, FlightEvent, Numbers};

/// One stored entry, 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Wall time of the last event, in nanoseconds since 1970.
    pub(super) last: u64,
    /// Attempts since the first line of the chunk.
    pub(super) cycle: u32,
    // The fields of `Numbers`, flattened: as a struct they would take more memory.
    attempts: U24,
    kind: Kind,
    score: i64,
    changes: u32,
    feasible: u32,
    evaluated: u32,
    total: u32,
    /// For a placement the numbers of pod and node, else the position of the names.
    about: [u32; 2],
}

/// The kind of event; other fields hold its details.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// The chunk holds the event, under the index stored in `changes`.
    Held,
    Placed,
    Added,
    Bound,
    Released,
    NotRecorded,
    Left(Departure),
}

/// A number of attempts in 24 bits. Saturates at the maximum.
#[derive(Clone, Copy, Debug, Default)]
struct U24([u8; 3]);

impl U24 {
    #[inline(always)]
    fn of(number: u32) -> Self {
        let [a, b, c, _] = number.min(0xFF_FFFF).to_le_bytes();
        Self([a, b, c])
    }

    fn get(self) -> u32 {
        let [a, b, c] = self.0;
        u32::from_le_bytes([a, b, c, 0])
    }
}

/// Position of a line's names in the text of its chunk: namespace, name and node, without separators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) at: u32,
    /// Length of the name in bytes. Names of gangs, declared in annotations, may be long.
    pub(super) name: u16,
    pub(super) namespace: u8,
    pub(super) node: u8,
}

/// The names of a line, or the numbers of its pod and node.
pub(super) enum About {
    Names(Text),
    Placement(PodId, NodeIdx),
}

impl Line {
    #[inline(always)]
    fn of(kind: Kind, numbers: Numbers) -> Self {
        let Numbers { score, changes, attempts, feasible, evaluated, total } = numbers;
        let (last, cycle, attempts, about) = (0, 0, U24::of(attempts), [0; 2]);
        Self { last, cycle, attempts, kind, score, changes, feasible, evaluated, total, about }
    }

    #[inline(always)]
    pub(super) fn placed(pod: PodId, node: NodeIdx, numbers: Numbers) -> Self {
        Self { about: [pod.0, node.0], ..Self::of(Kind::Placed, numbers) }
    }

    /// Creates a line that refers to an event held by its chunk.
    pub(super) fn held(number: usize) -> Self {
        Self::of(Kind::Held, Numbers { changes: number as u32, ..Numbers::default() })
    }

    /// Creates the line of an event that needs only names; returns `None` for other events.
    pub(super) fn plain(event: &FlightEvent) -> Option<Self> {
        let kind = match event {
            FlightEvent::Added => Kind::Added,
            FlightEvent::Bound => Kind::Bound,
            FlightEvent::Released => Kind::Released,
            FlightEvent::NotRecorded => Kind::NotRecorded,
            FlightEvent::Left(departure) => Kind::Left(*departure),
            _ => return None,
        };
        Some(Self::of(kind, Numbers::default()))
    }

    /// Returns the event, or its index in the chunk if the chunk holds it.
    pub(super) fn event(&self) -> Result<FlightEvent, usize> {
        let Self { score, changes, feasible, evaluated, total, .. } = *self;
        Ok(match self.kind {
            Kind::Held => return Err(changes as usize),
            Kind::Placed => {
                let attempts = self.attempts.get();
                FlightEvent::Placed(Numbers { score, changes, attempts, feasible, evaluated, total })
            }
            Kind::Added => FlightEvent::Added,
            Kind::Bound => FlightEvent::Bound,
            Kind::Released => FlightEvent::Released,
            Kind::NotRecorded => FlightEvent::NotRecorded,
            Kind::Left(departure) => FlightEvent::Left(departure),
        })
    }

    /// Sets the position of the names. Not for placements.
    pub(super) fn set_text(&mut self, text: Text) {
        let [a, b] = text.name.to_le_bytes();
        self.about = [text.at, u32::from_le_bytes([a, b, text.namespace, text.node])];
    }

    pub(super) fn about(&self) -> About {
        let [first, second] = self.about;
        if let Kind::Placed = self.kind {
            return About::Placement(PodId(first), NodeIdx(second));
        }
        let [a, b, namespace, node] = second.to_le_bytes();
        About::Names(Text { at: first, name: u16::from_le_bytes([a, b]), namespace, node })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_six_words() {
        assert_eq!(size_of::<Line>(), 48);
    }

    #[test]
    fn a_line_tells_what_it_was_made_of() {
        let numbers = Numbers {
            score: i64::MIN,
            changes: u32::MAX,
            attempts: 0xFF_FFFE,
            feasible: 1,
            evaluated: 2,
            total: u32::MAX,
        };
        let line = |numbers| Line::placed(PodId(7), NodeIdx(u32::MAX), numbers);
        let told = |of| if let Ok(FlightEvent::Placed(told)) = line(of).event() { Some(told) } else { None };
        assert_eq!(told(numbers), Some(numbers));
        assert!(matches!(line(numbers).about(), About::Placement(PodId(7), NodeIdx(u32::MAX))));
        let most = Numbers { attempts: u32::MAX, ..numbers };
        assert_eq!(told(most).map(|n| n.attempts), Some(0xFF_FFFF), "the most there is");
        let mut line = Line::held(9);
        assert!(matches!(line.event(), Err(9)));
        let text = Text { at: u32::MAX, name: 0x1234, namespace: 1, node: 255 };
        line.set_text(text);
        assert!(matches!(line.about(), About::Names(told) if told == text));
    }
}
