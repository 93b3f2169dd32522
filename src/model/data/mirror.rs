//! A vector that one thread writes, with a copy in shared pages for readers.
//!
//! Writing sets a mark for the page and does not check whether a reader holds it. [`Pages`] checks with a locked
//! instruction, which waits until all earlier writes have left the processor. Publishing copies the marked pages, as
//! many as `Pages` would have copied at the writes, and reuses the pages that the previous publication replaced once
//! nobody reads them. A mirror therefore suits data that is written with every decision and is small enough to exist
//! three times.

use std::sync::Arc;

use crate::pages::{PAGE, Pages};

/// A vector with a published copy. See the module.
#[derive(Debug, Default)]
pub struct Mirror<T> {
    live: Vec<T>,
    shown: Pages<T>,
    /// Pages written since the last publication, one bit each.
    marked: Vec<u64>,
    /// Pages that the last publication replaced.
    spare: Vec<Arc<[T; PAGE]>>,
}

impl<T: Clone + Default> Mirror<T> {
    /// Returns the element at `i`, or `None` beyond the end.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&T> {
        self.live.get(i)
    }

    /// Sets slot `i`, growing the vector when needed.
    #[inline(always)]
    pub fn set(&mut self, i: usize, value: T) {
        if i >= self.live.len() {
            self.grow(i);
        }
        self.live[i] = value;
        let page = i / PAGE;
        self.marked[page / 64] |= 1 << (page % 64);
    }

    /// Grows by whole pages until slot `i` exists.
    #[cold]
    #[inline]
    fn grow(&mut self, i: usize) {
        let pages = i / PAGE + 1;
        self.live.resize_with(pages * PAGE, T::default);
        self.marked.resize(pages.div_ceil(64), 0);
    }

    /// Publishes the current contents. Costs what was written since the last publication.
    pub fn publish(&mut self) -> Pages<T> {
        let mut spare = std::mem::take(&mut self.spare);
        for (word, marked) in self.marked.iter_mut().enumerate() {
            let mut left = std::mem::take(marked);
            while left != 0 {
                let page = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let copy = copied(&self.live[page * PAGE..(page + 1) * PAGE], spare.pop());
                self.spare.push(self.shown.replace_page(page, copy));
            }
        }
        self.shown.clone()
    }
}

/// Copies a page, into the spare one if nobody reads it.
fn copied<T: Clone>(from: &[T], spare: Option<Arc<[T; PAGE]>>) -> Arc<[T; PAGE]> {
    if let Some(mut page) = spare
        && let Some(to) = Arc::get_mut(&mut page)
    {
        to.clone_from_slice(from);
        return page;
    }
    Arc::new(std::array::from_fn(|i| from[i].clone()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Published pages never change, and the next publication holds everything written so far.
        #[test]
        fn it_shows_what_was_written(steps in prop::collection::vec((0..9_000usize, 0..10u8), 0..300)) {
            let (mut mirror, mut plain) = (Mirror::default(), Vec::new());
            let mut held: Vec<(Pages<u32>, Vec<u32>)> = Vec::new();
            for (n, (i, kind)) in steps.into_iter().enumerate() {
                if kind == 0 {
                    held.push((mirror.publish(), plain.clone()));
                    continue;
                }
                mirror.set(i, n as u32);
                plain.resize(plain.len().max(i + 1), 0);
                plain[i] = n as u32;
                prop_assert_eq!(mirror.get(i), Some(&(n as u32)));
            }
            held.push((mirror.publish(), plain));
            for (pages, plain) in held {
                prop_assert!(plain.iter().enumerate().all(|(i, value)| pages.get(i) == Some(value)));
                prop_assert!(pages.iter().skip(plain.len()).all(|value| *value == 0));
            }
        }
    }
}
