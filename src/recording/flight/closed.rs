//! The list of closed chunks, in segments. Every publication shares the list with readers; its ends change in between.
//!
//! A change copies one segment if readers hold it. With a single list, the first chunk closed after each publication
//! incremented the reference counts of a thousand chunks, each in cold memory, and dropping the publication decremented
//! them: that was most of the recorder's cost. The list sets no bound:
//! [`FlightRecorder`](super::FlightRecorder) decides what is pushed out and when.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::chunk::Chunk;

/// Number of chunks per segment.
const SEGMENT: usize = 32;

/// A list of chunks, oldest first. Invariant: no segment is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Closed {
    segments: VecDeque<Arc<Vec<Arc<Chunk>>>>,
}

impl Closed {
    /// Adds the newest chunk.
    pub(super) fn push_back(&mut self, chunk: Arc<Chunk>) {
        match self.segments.back_mut().filter(|last| last.len() < SEGMENT) {
            Some(last) => Arc::make_mut(last).push(chunk),
            None => self.segments.push_back(Arc::new(vec![chunk])),
        }
    }

    /// Removes the oldest chunk and returns it.
    pub(super) fn pop_front(&mut self) -> Option<Arc<Chunk>> {
        let first = self.get(0)?.clone();
        self.replace(0..1, None);
        Some(first)
    }

    /// Replaces a range of chunks with one chunk, or removes them.
    pub(super) fn replace(&mut self, numbers: Range<usize>, with: Option<Arc<Chunk>>) {
        let mut with = with;
        for number in numbers.rev() {
            let Some((segment, at)) = self.place(number) else { continue };
            let chunks = Arc::make_mut(&mut self.segments[segment]);
            match with.take() {
                // The last chunk of the range is replaced, the others are removed.
                Some(chunk) => chunks[at] = chunk,
                None => drop(chunks.remove(at)),
            }
            if chunks.is_empty() {
                self.segments.remove(segment);
            }
        }
    }

    /// Returns a chunk by its number; 0 is the oldest.
    pub(super) fn get(&self, number: usize) -> Option<&Arc<Chunk>> {
        let (segment, at) = self.place(number)?;
        self.segments[segment].get(at)
    }

    /// Returns the number of leading chunks that satisfy `is_such`. No later chunk may satisfy it.
    pub(super) fn partition_point(&self, is_such: impl Fn(&Chunk) -> bool) -> usize {
        let whole = self.segments.partition_point(|segment| segment.last().is_none_or(|last| is_such(last)));
        let part = self.segments.get(whole).map_or(0, |segment| segment.partition_point(|c| is_such(c)));
        self.segments.range(..whole).map(|segment| segment.len()).sum::<usize>() + part
    }

    /// Iterates over the chunks, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.since(0)
    }

    /// Iterates over the chunks from a number on.
    pub(super) fn since(&self, number: usize) -> impl Iterator<Item = &Arc<Chunk>> {
        let (segment, at) = self.place(number).unwrap_or((self.segments.len(), 0));
        self.segments.range(segment..).flat_map(|segment| segment.iter()).skip(at)
    }

    fn place(&self, number: usize) -> Option<(usize, usize)> {
        let mut at = number;
        for (segment, chunks) in self.segments.iter().enumerate() {
            if at < chunks.len() {
                return Some((segment, at));
            }
            at -= chunks.len();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// The segmented list holds the same chunks as a plain one, and what a reader holds does not change.
        #[test]
        fn it_is_a_list(steps in prop::collection::vec((0..6u8, 0..200usize), 0..400)) {
            let mut closed = Closed::default();
            let mut list: VecDeque<Arc<Chunk>> = VecDeque::new();
            let same = |closed: &Closed, list: &VecDeque<Arc<Chunk>>| {
                closed.iter().map(Arc::as_ptr).eq(list.iter().map(Arc::as_ptr))
            };
            let mut held = Vec::new();
            for (kind, n) in steps {
                let fresh = Arc::new(Chunk::default());
                match kind {
                    0..=2 => {
                        closed.push_back(fresh.clone());
                        list.push_back(fresh);
                    }
                    3 => prop_assert_eq!(closed.pop_front().is_some(), list.pop_front().is_some()),
                    4 if n + 1 < list.len() => {
                        let with = (n % 2 == 0).then_some(fresh);
                        closed.replace(n..n + 1 + n % 2, with.clone());
                        list.drain(n..n + 1 + n % 2);
                        with.into_iter().for_each(|chunk| list.insert(n, chunk));
                    }
                    _ => held.push((closed.clone(), list.clone())),
                }
                prop_assert!(same(&closed, &list));
                prop_assert!(closed.since(n).map(Arc::as_ptr).eq(list.iter().skip(n).map(Arc::as_ptr)));
                prop_assert_eq!(closed.get(n).map(Arc::as_ptr), list.get(n).map(Arc::as_ptr));
                let is_before = |chunk: &Chunk| list.iter().take(n).any(|c| std::ptr::eq(&**c, chunk));
                prop_assert_eq!(closed.partition_point(is_before), n.min(list.len()));
            }
            for (closed, list) in held {
                prop_assert!(same(&closed, &list));
            }
        }
    }
}
