//! A vector in pages that are copied on write while a reader still holds them.
//!
//! Cloning costs one reference count per page and writing copies at most one page, so publishing a snapshot costs only
//! what changed. Not a general container: whoever owns the numbering reuses the slots.

use std::any::Any;
use std::sync::Arc;

use prefetch_index::prefetch_index;

/// Elements per page. Equal to the bits of a mask word, so page `p` corresponds to word `p` of a node mask.
pub const PAGE: usize = 64;

/// An element and the page that it lies in. Taking one counts a user of the page and does not touch what the element owns,
/// which may lie far away.
#[derive(Clone, Debug)]
pub struct InPage<T> {
    page: Arc<[T; PAGE]>,
    at: usize,
}

/// An element and the page that it lies in, of a type that only its owner knows.
#[derive(Clone, Debug)]
pub struct AnyInPage {
    page: Arc<dyn Any + Send + Sync>,
    at: usize,
}

impl AnyInPage {
    /// Returns the element, if it is of this type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.page.downcast_ref::<[T; PAGE]>()?.get(self.at)
    }
}

impl<T: Send + Sync + 'static> InPage<T> {
    /// Returns the same for somebody who does not know the type.
    pub fn erased(self) -> AnyInPage {
        AnyInPage { page: self.page, at: self.at }
    }
}

impl<T: std::fmt::Display> std::fmt::Display for InPage<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> std::ops::Deref for InPage<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.page[self.at]
    }
}

/// A growable array of `T` in copy-on-write pages.
#[derive(Clone, Debug, Default)]
pub struct Pages<T> {
    pages: Vec<Arc<[T; PAGE]>>,
    len: usize,
}

/// Returns a page for writing, copied if somebody else holds it.
#[inline]
fn own<T: Clone>(page: &mut Arc<[T; PAGE]>) -> &mut [T; PAGE] {
    if Arc::strong_count(page) > 1 {
        copy(page);
    }
    Arc::get_mut(page).expect("a page has no weak pointers, and nobody shares it while it is borrowed")
}

/// Copies a page, element by element to where it stays: `Arc::make_mut` would make the whole page on the stack first, and make
/// room for it at every write.
#[cold]
#[inline(never)]
fn copy<T: Clone>(page: &mut Arc<[T; PAGE]>) {
    let copied: Arc<[T]> = page.iter().cloned().collect();
    if let Ok(copied) = copied.try_into() {
        *page = copied;
    }
}

impl<T: Clone + Default> Pages<T> {
    /// Returns the number of slots, used or free.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the array has no slot.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the element at `i`, or `None` beyond the end.
    #[inline]
    pub fn get(&self, i: usize) -> Option<&T> {
        if i < self.len { Some(&self.pages[i / PAGE][i % PAGE]) } else { None }
    }

    /// Returns the element at `i` for writing, copying its page when a reader holds it.
    #[inline]
    pub fn get_mut(&mut self, i: usize) -> Option<&mut T> {
        if i < self.len { Some(&mut own(&mut self.pages[i / PAGE])[i % PAGE]) } else { None }
    }

    /// Has the processor fetch the element at `i`: the line of its cache that the element starts in.
    #[inline]
    pub fn prefetch(&self, i: usize) {
        if let Some(page) = self.pages.get(i / PAGE) {
            prefetch_index(&**page, i % PAGE);
        }
    }

    /// Returns the element at `i` with its page. Panics beyond the end. The page is copied when it is written to while the
    /// element is in use, so this is for elements that hardly ever change.
    #[inline]
    pub fn in_page(&self, i: usize) -> InPage<T> {
        InPage { page: self.pages[i / PAGE].clone(), at: i % PAGE }
    }

    /// Makes the array at least `len` long; new slots hold the default value.
    #[inline]
    pub fn grow(&mut self, len: usize) {
        while self.pages.len() * PAGE < len {
            self.pages.push(Arc::new(std::array::from_fn(|_| T::default())));
        }
        self.len = self.len.max(len);
    }

    /// Makes the array at most `len` long. The slots behind must hold the default value. One page more is kept, so that a
    /// length that goes up and down costs nothing.
    #[inline]
    pub fn shorten(&mut self, len: usize) {
        self.len = self.len.min(len);
        self.pages.truncate(self.len.div_ceil(PAGE) + 1);
    }

    /// Sets slot `i`, growing the array when needed.
    #[inline]
    pub fn set(&mut self, i: usize, value: T) {
        self.grow(i + 1);
        own(&mut self.pages[i / PAGE])[i % PAGE] = value;
    }

    /// Iterates over all slots in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flat_map(|p| p.iter()).take(self.len)
    }

    /// Replaces page `p`, growing the array when needed, and returns the previous page.
    pub(crate) fn replace_page(&mut self, p: usize, page: Arc<[T; PAGE]>) -> Arc<[T; PAGE]> {
        self.grow((p + 1) * PAGE);
        std::mem::replace(&mut self.pages[p], page)
    }
}

impl<T: Clone + Default> std::ops::Index<usize> for Pages<T> {
    type Output = T;
    #[inline]
    fn index(&self, i: usize) -> &T {
        &self.pages[i / PAGE][i % PAGE]
    }
}

impl<T: Clone + Default> std::ops::IndexMut<usize> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, i: usize) -> &mut T {
        &mut own(&mut self.pages[i / PAGE])[i % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_it_saw_and_shares_the_rest() {
        let mut live = Pages::default();
        live.grow(3 * PAGE);
        live[5] = 1;
        let seen = live.clone();
        live[5] = 2;
        assert_eq!((seen[5], live[5]), (1, 2));
        assert!(!Arc::ptr_eq(&seen.pages[0], &live.pages[0]));
        assert!(Arc::ptr_eq(&seen.pages[1], &live.pages[1]));
        let kept = live.in_page(5);
        live[5] = 3;
        assert_eq!((*kept, live[5]), (2, 3));
    }

    #[test]
    fn beyond_the_end_is_none() {
        let mut p: Pages<u8> = Pages::default();
        assert!(p.get(0).is_none());
        p.set(70, 9);
        assert_eq!((p.len(), p.get(70), p.get(71)), (71, Some(&9), None));
        p.prefetch(7_000);
        assert_eq!(p.iter().count(), 71);
    }

    #[test]
    fn a_short_array_gives_its_pages_back() {
        let mut p: Pages<u8> = Pages::default();
        p.grow(10 * PAGE);
        p.set(3, 9);
        p.shorten(4);
        assert_eq!((p.len(), p.pages.len(), p.get(4)), (4, 2, None));
        p.grow(5 * PAGE);
        assert_eq!((p.get(3), p.get(4), p.pages.len()), (Some(&9), Some(&0), 5));
    }
}
