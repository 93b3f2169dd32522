//! Sets of logical CPUs as bits, in the text form of Linux' cpuset lists.
//!
//! Not here: which core or NUMA node a CPU belongs to; that is `cpu_topology`.

use std::fmt;

/// Number of CPUs that a set can hold: ids from 0 to 1,023.
pub const MAX_CPUS: usize = 1024;

const WORDS: usize = MAX_CPUS / 64;

/// A set of logical CPUs by their ids.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct CpuSet([u64; WORDS]);

impl CpuSet {
    /// Returns the set of these ids. Ids beyond [`MAX_CPUS`] are left out.
    pub fn of(ids: impl IntoIterator<Item = usize>) -> Self {
        let mut set = Self::default();
        ids.into_iter().for_each(|id| set.insert(id));
        set
    }

    /// Parses a Linux cpuset list such as `0-3,8`; the empty text is the empty set. Fails with what cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut set = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<usize>().ok().filter(|id| *id < MAX_CPUS);
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(format!("{part:?} is no CPU or range of CPUs below {MAX_CPUS}"));
            };
            if first > last {
                return Err(format!("{part:?} is a range that ends before it begins"));
            }
            (first..=last).for_each(|id| set.insert(id));
        }
        Ok(set)
    }

    /// Adds a CPU; one that a set cannot hold is left out.
    #[inline]
    pub fn insert(&mut self, id: usize) {
        if let Some(word) = self.0.get_mut(id / 64) {
            *word |= 1 << (id % 64);
        }
    }

    /// Takes a CPU out.
    #[inline]
    pub fn remove(&mut self, id: usize) {
        if let Some(word) = self.0.get_mut(id / 64) {
            *word &= !(1 << (id % 64));
        }
    }

    /// Returns whether a CPU is in the set.
    #[inline]
    pub fn contains(&self, id: usize) -> bool {
        self.0.get(id / 64).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Returns the number of CPUs.
    #[inline]
    pub fn len(&self) -> usize {
        self.words().map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// Returns whether no CPU is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Returns whether a CPU is in both sets.
    #[inline]
    pub fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(own, other)| own & other != 0)
    }

    /// Returns the CPUs that are in both sets.
    #[inline]
    pub fn and(&self, other: &Self) -> Self {
        self.with(other, |own, other| own & other)
    }

    /// Returns the CPUs that are in one of the sets.
    #[inline]
    pub fn or(&self, other: &Self) -> Self {
        self.with(other, |own, other| own | other)
    }

    /// Returns the CPUs of this set that are not in the other one.
    #[inline]
    pub fn without(&self, other: &Self) -> Self {
        self.with(other, |own, other| own & !other)
    }

    /// Returns the set with each id less by some number; ids that would be negative are left out.
    #[inline]
    pub fn shifted_down(&self, by: usize) -> Self {
        let mut made = Self::default();
        for (at, word) in self.words() {
            let Some(to) = at.checked_sub(by / 64) else { continue };
            made.0[to] |= word >> (by % 64);
            if let Some(lower) = to.checked_sub(1) {
                // In two steps, as a shift by all 64 bits is none.
                made.0[lower] |= word << 1 << (63 - by % 64);
            }
        }
        made
    }

    /// Returns the set with each id greater by some number; ids beyond [`MAX_CPUS`] are left out.
    #[inline]
    pub fn shifted_up(&self, by: usize) -> Self {
        let mut made = Self::default();
        for (at, word) in self.words() {
            let (lower, upper) = (at + by / 64, at + by / 64 + 1);
            if let Some(to) = made.0.get_mut(lower) {
                *to |= word << (by % 64);
            }
            if let Some(to) = made.0.get_mut(upper) {
                *to |= word >> 1 >> (63 - by % 64);
            }
        }
        made
    }

    /// Returns one word of the set with each id less by some number.
    #[inline]
    pub(super) fn word_down(&self, at: usize, by: usize) -> u64 {
        let word = |at: usize| self.0.get(at).copied().unwrap_or(0);
        word(at + by / 64) >> (by % 64) | word(at + by / 64 + 1) << 1 << (63 - by % 64)
    }

    /// Iterates over the words that are not 0, each with its index. Few are used, and without the instruction even counting
    /// bits takes longer than a look.
    #[inline]
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, word)| *word != 0)
    }

    /// Joins two sets word by word.
    #[inline(always)]
    fn with(mut self, other: &Self, join: impl Fn(u64, u64) -> u64) -> Self {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own = join(*own, *other));
        self
    }

    /// Writes the cpuset list behind a text. Every pod with CPUs of its own has one, so no formatter is used.
    pub fn write_to(&self, text: &mut String) {
        let mut ids = self.iter().peekable();
        let mut is_first = true;
        while let Some(first) = ids.next() {
            let mut last = first;
            while let Some(next) = ids.next_if_eq(&(last + 1)) {
                last = next;
            }
            if !std::mem::take(&mut is_first) {
                text.push(',');
            }
            write_number(text, first);
            if last != first {
                text.push('-');
                write_number(text, last);
            }
        }
    }

    /// Iterates over the ids, ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let words = self.0;
        words.into_iter().enumerate().flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                (word != 0).then(|| {
                    let bit = word.trailing_zeros() as usize;
                    word &= word - 1;
                    at * 64 + bit
                })
            })
        })
    }
}

/// Writes a number below 10,000.
fn write_number(text: &mut String, number: usize) {
    let digits = [number / 1000 % 10, number / 100 % 10, number / 10 % 10, number % 10];
    let leading = digits[..3].iter().take_while(|digit| **digit == 0).count();
    text.extend(digits[leading..].iter().map(|digit| char::from(b'0' + *digit as u8)));
}

/// Writes the cpuset list, with ranges of two and more as `a-b`.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(64);
        self.write_to(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CpuSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_as_linux_does() {
        for text in ["", "0", "0-3,8", "1,3,5-6,1023", "63-64"] {
            assert_eq!(CpuSet::parse(text).expect("a list").to_string(), text);
        }
        assert_eq!(CpuSet::parse(" 3, 1-2").expect("a list").to_string(), "1-3");
        for bad in ["x", "3-1", "1024", "1-", "-1", "0-99999999999999999999"] {
            assert!(CpuSet::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn operations_are_those_of_sets() {
        let (a, b) = (CpuSet::of([0, 1, 64, 1023]), CpuSet::of([1, 64, 65]));
        assert_eq!(a.and(&b), CpuSet::of([1, 64]));
        assert!(a.meets(&b) && !a.meets(&CpuSet::of([2, 65])));
        assert_eq!(a.or(&b).len(), 5);
        assert_eq!(a.without(&b).iter().collect::<Vec<_>>(), [0, 1023]);
        for by in [0, 1, 63, 64, 65, 200, 1023] {
            let (down, up) = (a.iter().filter_map(|id| id.checked_sub(by)), a.iter().map(|id| id + by));
            assert_eq!((a.shifted_down(by), a.shifted_up(by)), (CpuSet::of(down), CpuSet::of(up)), "{by}");
        }
        let mut set = a;
        set.remove(0);
        set.remove(5000);
        set.insert(5000);
        assert!(!set.contains(0) && set.contains(1023) && !set.contains(5000) && !set.is_empty());
        assert!(CpuSet::default().is_empty());
    }
}
