//! Decides which events are written, and whether as a new event or as a series. State of the event writer, without I/O.
//!
//! Repeats of the same note about the same pod form one event with a series count; a changed note is a new event.
//! Repeats that arrive while the event is being written are sent together as one series patch. Each pod has a budget:
//! a burst, then one write per interval. Occurrences beyond the budget are counted, and join the next write of their
//! event.

use std::sync::Arc;
use std::time::Duration;

use pellucid_model::collections::HashMap;
use pellucid_model::effect::{EventOrder, EventType};
use pellucid_model::pod::StandsFor;
use pellucid_model::{Now, PodKey};

/// Writes that a pod's full budget allows at once.
pub(crate) const BURST: u32 = 25;
/// Time in which a pod's budget regains one write.
pub(crate) const INTERVAL: Duration = Duration::from_secs(300);
/// Limit on remembered events, and on pods with a budget.
const REMEMBERED: usize = 8192;

/// Identity of an event: occurrences with equal keys form a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EventKey {
    pub(crate) uid: Arc<str>,
    pub(crate) kind: EventType,
    pub(crate) reason: &'static str,
    pub(crate) action: &'static str,
    pub(crate) note: Arc<str>,
}

/// One write of an event: a create or a series patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventWrite {
    pub(crate) key: EventKey,
    pub(crate) pod: PodKey,
    /// The object that it regards, for a pod that stands for one.
    pub(crate) object: Option<Arc<StandsFor>>,
    /// Name of the event object.
    pub(crate) name: String,
    /// Whether to create the object; otherwise only its series is patched.
    pub(crate) create: bool,
    /// Occurrences so far.
    pub(crate) count: u32,
    /// Time of the last occurrence.
    pub(crate) last: Now,
}

/// Outcome of the write of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventOutcome {
    /// The API server has the event.
    Written,
    /// The event to patch no longer exists (events expire).
    Missing,
    /// The write was given up.
    Failed,
}

struct Entry {
    pod: PodKey,
    object: Option<Arc<StandsFor>>,
    name: String,
    created: bool,
    seen: u32,
    written: u32,
    in_flight: bool,
    last: Now,
}

/// Holds the remembered events and the budgets of pods. Owned by the event writer.
#[derive(Default)]
pub(crate) struct EventCorrelator {
    entries: HashMap<EventKey, Entry>,
    /// Monotonic time at which each pod's budget is full again, by uid.
    budgets: HashMap<Arc<str>, Duration>,
    n_named: u64,
}

impl EventCorrelator {
    /// Records an occurrence `at` a time. Returns the write that is due now, if any.
    pub(crate) fn record(&mut self, order: EventOrder, at: Now, now: Now) -> Option<EventWrite> {
        let EventOrder { pod, object, kind, reason, action, note } = order;
        let key = EventKey { uid: pod.uid, kind, reason, action, note };
        if !self.entries.contains_key(&key) {
            self.make_room(now);
            let name = self.name(object.as_ref().map_or(&*pod.key.name, |of| &of.name), now);
            let (created, seen, written, in_flight) = (false, 0, 0, false);
            let entry = Entry { pod: pod.key, object, name, created, seen, written, in_flight, last: at };
            self.entries.insert(key.clone(), entry);
        }
        let entry = self.entries.get_mut(&key)?;
        entry.seen = entry.seen.saturating_add(1);
        entry.last = at;
        if entry.in_flight { None } else { self.write(key, now) }
    }

    /// Records the outcome of a write. Returns the next write of the same event, if one is due.
    pub(crate) fn settle(
        &mut self,
        write: EventWrite,
        outcome: EventOutcome,
        now: Now,
    ) -> Option<EventWrite> {
        let fresh_name = self.name(write.object.as_ref().map_or(&*write.pod.name, |of| &of.name), now);
        let entry = self.entries.get_mut(&write.key)?;
        entry.in_flight = false;
        match outcome {
            EventOutcome::Written => {
                entry.created = true;
                entry.written = write.count;
            }
            EventOutcome::Missing => {
                // The new object counts only the occurrences that were not written yet.
                entry.created = false;
                entry.name = fresh_name;
                entry.seen = entry.seen.saturating_sub(entry.written);
                entry.written = 0;
            }
            EventOutcome::Failed if entry.created => entry.written = write.count,
            EventOutcome::Failed => {
                self.entries.remove(&write.key);
                return None;
            }
        }
        if entry.seen > entry.written { self.write(write.key, now) } else { None }
    }

    fn write(&mut self, key: EventKey, now: Now) -> Option<EventWrite> {
        if !spend(&mut self.budgets, &key.uid, now.monotonic) {
            return None;
        }
        let entry = self.entries.get_mut(&key)?;
        entry.in_flight = true;
        Some(EventWrite {
            pod: entry.pod.clone(),
            object: entry.object.clone(),
            name: entry.name.clone(),
            create: !entry.created,
            count: entry.seen,
            last: entry.last,
            key,
        })
    }

    /// Returns a unique name for an event object: the name of what it regards and a number.
    fn name(&mut self, regards: &str, now: Now) -> String {
        self.n_named += 1;
        let unique = u64::try_from(now.wall.as_nanos()).unwrap_or_default().wrapping_add(self.n_named);
        // Object names have at most 253 characters, which are ASCII.
        let stem = regards.get(..regards.len().min(230)).unwrap_or_default();
        format!("{stem}.{unique:x}")
    }

    /// Makes room when full: forgets the older half of the events except those in flight, and the budgets that are
    /// full again, or all budgets if that is not enough.
    fn make_room(&mut self, now: Now) {
        if self.entries.len() >= REMEMBERED {
            let mut ages: Vec<_> = self.entries.values().map(|entry| entry.last).collect();
            let middle = ages.len() / 2;
            let median = *ages.select_nth_unstable(middle).1;
            self.entries.retain(|_, entry| entry.in_flight || entry.last > median);
        }
        if self.budgets.len() >= REMEMBERED {
            self.budgets.retain(|_, whole_at| *whole_at > now.monotonic);
            if self.budgets.len() >= REMEMBERED {
                self.budgets.clear();
            }
        }
    }
}

/// Spends one write of a pod's budget. Returns false when the budget is exhausted.
fn spend(budgets: &mut HashMap<Arc<str>, Duration>, uid: &Arc<str>, now: Duration) -> bool {
    let whole_at = budgets.entry(uid.clone()).or_insert(now);
    let after = (*whole_at).max(now) + INTERVAL;
    if after.saturating_sub(now) > INTERVAL * BURST {
        return false;
    }
    *whole_at = after;
    true
}

/// Cuts a note to the 1,024 bytes that the API accepts.
pub(crate) fn cut(note: &str) -> String {
    const MOST: usize = 1024;
    const MARK: &str = " ...";
    if note.len() <= MOST {
        return note.to_owned();
    }
    let mut end = MOST - MARK.len();
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &note[..end])
}

#[cfg(test)]
mod tests {
    use pellucid_model::effect::PodRef;

    use super::*;

    fn at(seconds: u64) -> Now {
        Now { monotonic: Duration::from_secs(seconds), wall: Duration::from_secs(1_000_000 + seconds) }
    }

    fn order(pod: &str, note: &str) -> EventOrder {
        EventOrder {
            object: None,
            pod: PodRef { key: PodKey::new("ns", pod), uid: pod.into() },
            kind: EventType::Warning,
            reason: "FailedScheduling",
            action: "Scheduling",
            note: note.into(),
        }
    }

    /// Records an order that is written as soon as it was given.
    fn record(book: &mut EventCorrelator, order: EventOrder, at: Now) -> Option<EventWrite> {
        book.record(order, at, at)
    }

    #[test]
    fn the_same_note_is_a_series_and_a_changed_note_a_new_event() {
        let mut book = EventCorrelator::default();
        let first = record(&mut book, order("p", "a"), at(0)).expect("a write");
        assert!(first.create && first.count == 1 && first.name.starts_with("p."));
        assert_eq!(book.settle(first.clone(), EventOutcome::Written, at(0)), None);
        let again = record(&mut book, order("p", "a"), at(1)).expect("a write");
        assert_eq!((again.create, again.count, &again.name), (false, 2, &first.name));
        let other = record(&mut book, order("p", "b"), at(1)).expect("a write");
        assert!(other.create && other.name != first.name);
    }

    #[test]
    fn repeats_during_a_write_gather_into_one_patch() {
        let mut book = EventCorrelator::default();
        let first = record(&mut book, order("p", "a"), at(0)).expect("a write");
        assert_eq!(record(&mut book, order("p", "a"), at(1)), None);
        assert_eq!(record(&mut book, order("p", "a"), at(2)), None);
        let patch = book.settle(first, EventOutcome::Written, at(3)).expect("a patch");
        assert_eq!((patch.create, patch.count, patch.last), (false, 3, at(2)));
        assert_eq!(book.settle(patch, EventOutcome::Written, at(3)), None);
    }

    #[test]
    fn an_expired_event_is_made_anew() {
        let mut book = EventCorrelator::default();
        let first = record(&mut book, order("p", "a"), at(0)).expect("a write");
        book.settle(first.clone(), EventOutcome::Written, at(0));
        let patch = record(&mut book, order("p", "a"), at(9)).expect("a patch");
        let anew = book.settle(patch, EventOutcome::Missing, at(9)).expect("a write");
        assert!(anew.create && anew.count == 1 && anew.name != first.name);
    }

    #[test]
    fn a_failed_event_is_forgotten() {
        let mut book = EventCorrelator::default();
        let first = record(&mut book, order("p", "a"), at(0)).expect("a write");
        assert_eq!(book.settle(first, EventOutcome::Failed, at(0)), None);
        assert_eq!(book.entries.len(), 0);
        assert!(record(&mut book, order("p", "a"), at(1)).expect("a write").create);
    }

    #[test]
    fn each_pod_has_a_budget_that_refills() {
        let mut book = EventCorrelator::default();
        for n in 0..BURST {
            assert!(record(&mut book, order("p", &n.to_string()), at(0)).is_some());
        }
        assert!(record(&mut book, order("p", "over"), at(0)).is_none());
        assert!(record(&mut book, order("q", "a"), at(0)).is_some());
        assert!(record(&mut book, order("p", "over"), at(299)).is_none());
        let late = record(&mut book, order("p", "over"), at(300)).expect("a write");
        assert!(late.create && late.count == 3);
        assert!(record(&mut book, order("p", "more"), at(301)).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let mut book = EventCorrelator::default();
        for n in 0..3 * REMEMBERED as u64 {
            let write = record(&mut book, order(&n.to_string(), "a"), at(n)).expect("a write");
            book.settle(write, EventOutcome::Written, at(n));
        }
        assert!(book.entries.len() <= REMEMBERED && book.budgets.len() <= REMEMBERED);
    }

    #[test]
    fn long_notes_are_cut_between_characters() {
        assert_eq!(cut(&"x".repeat(1024)).len(), 1024);
        let text = cut(&"é".repeat(600));
        assert!(text.ends_with("é ...") && text.len() <= 1024 && text.len() > 1020);
    }
}
