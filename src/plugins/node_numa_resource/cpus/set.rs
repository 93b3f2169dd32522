//! Sets of logical CPUs as bits, in the text form of Linux' cpuset lists.
//!
//! Not here: which core or NUMA node a CPU belongs to; that is `cpu_topology`.

use std::fmt;

/// Number of CPUs that a set can hold: ids from 0 to 1,023.
pub const MAX_CPUS: usize = 1024;

const WORDS: usize = MAX_CPUS / 64;

/// A set of logical CPUs by their ids.
///
/// *Invariant:* the words from `end` on are 0, so that sets of the CPUs of most machines are joined in a few words.
#[derive(Clone, Copy, Default)]
pub struct CpuSet {
    words: [u64; WORDS],
    end: usize,
}

impl PartialEq for CpuSet {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for CpuSet {}

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
        if let Some(word) = self.words.get_mut(id / 64) {
            *word |= 1 << (id % 64);
            self.end = self.end.max(id / 64 + 1);
        }
    }

    /// Takes a CPU out.
    #[inline]
    pub fn remove(&mut self, id: usize) {
        if let Some(word) = self.words.get_mut(id / 64) {
            *word &= !(1 << (id % 64));
        }
    }

    /// Returns whether a CPU is in the set.
    #[inline]
    pub fn contains(&self, id: usize) -> bool {
        self.words.get(id / 64).is_some_and(|word| word & (1 << (id % 64)) != 0)
    }

    /// Returns the number of CPUs.
    #[inline]
    pub fn len(&self) -> usize {
        self.words().map(|(_, word)| word.count_ones() as usize).sum()
    }

    /// Returns whether no CPU is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.used().iter().all(|word| *word == 0)
    }

    /// Returns whether a CPU is in both sets.
    #[inline]
    pub fn meets(&self, other: &Self) -> bool {
        self.used().iter().zip(other.used()).any(|(own, other)| own & other != 0)
    }

    /// Returns the CPUs that are in both sets.
    #[inline]
    pub fn and(&self, other: &Self) -> Self {
        self.with(other, self.end.min(other.end), |own, other| own & other)
    }

    /// Returns the number of CPUs that are in both sets.
    #[inline]
    pub fn count_in(&self, other: &Self) -> usize {
        let both = self.used().iter().zip(other.used()).map(|(own, other)| own & other);
        both.filter(|word| *word != 0).map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the CPUs that are in one of the sets.
    #[inline]
    pub fn or(&self, other: &Self) -> Self {
        self.with(other, self.end.max(other.end), |own, other| own | other)
    }

    /// Returns the CPUs of this set that are not in the other one.
    #[inline]
    pub fn without(&self, other: &Self) -> Self {
        self.with(other, self.end, |own, other| own & !other)
    }

    /// Adds the ids of one word, each greater by some number; ids beyond [`MAX_CPUS`] are left out.
    #[inline]
    pub(super) fn add_word_up(&mut self, at: usize, by: usize, word: u64) {
        let lower = at + by / 64;
        // In two steps, as a shift by all 64 bits is none.
        for (to, part) in [(lower, word << (by % 64)), (lower + 1, word >> 1 >> (63 - by % 64))] {
            if let Some(own) = self.words.get_mut(to).filter(|_| part != 0) {
                *own |= part;
                self.end = self.end.max(to + 1);
            }
        }
    }

    /// Returns one word of the set with each id less by some number.
    #[inline]
    pub(super) fn word_down(&self, at: usize, by: usize) -> u64 {
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        word(at + by / 64) >> (by % 64) | word(at + by / 64 + 1) << 1 << (63 - by % 64)
    }

    /// Iterates over the words that are not 0, each with its index. Few are used, and without the instruction even counting
    /// bits takes longer than a look.
    #[inline]
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.used().iter().copied().enumerate().filter(|(_, word)| *word != 0)
    }

    /// Joins two sets word by word, up to the word at `end`.
    #[inline(always)]
    fn with(&self, other: &Self, end: usize, join: impl Fn(u64, u64) -> u64) -> Self {
        let mut made = Self { end, ..Self::default() };
        let words = made.words.iter_mut().zip(&self.words).zip(&other.words).take(end);
        words.for_each(|((made, own), other)| *made = join(*own, *other));
        made
    }

    /// Returns the words that may be other than 0.
    #[inline]
    fn used(&self) -> &[u64] {
        self.words.get(..self.end).unwrap_or(&self.words)
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
        let (words, end) = (self.words, self.end);
        words.into_iter().take(end).enumerate().flat_map(|(at, mut word)| {
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

/// Words of a set that are kept in place.
const NEAR: usize = 4;

/// A set as it is kept for each node and pod, a quarter of a [`CpuSet`]: CPUs with an id of 256 or more lie elsewhere, which
/// few machines have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptCpus {
    near: [u64; NEAR],
    /// *Invariant:* `None` for a set without such CPUs.
    far: Option<Box<[u64; WORDS - NEAR]>>,
}

impl From<CpuSet> for KeptCpus {
    #[inline]
    fn from(set: CpuSet) -> Self {
        let (mut near, mut far) = ([0; NEAR], None);
        near.copy_from_slice(&set.words[..NEAR]);
        if set.used().iter().skip(NEAR).any(|word| *word != 0) {
            let mut words = [0; WORDS - NEAR];
            words.copy_from_slice(&set.words[NEAR..]);
            far = Some(Box::new(words));
        }
        Self { near, far }
    }
}

impl KeptCpus {
    /// Returns the set.
    #[inline]
    pub fn get(&self) -> CpuSet {
        let mut words = [0; WORDS];
        words[..NEAR].copy_from_slice(&self.near);
        let Some(far) = &self.far else {
            let end = self.near.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
            return CpuSet { words, end };
        };
        words[NEAR..].copy_from_slice(&far[..]);
        CpuSet { words, end: WORDS }
    }

    /// Returns the number of CPUs.
    #[inline]
    pub fn len(&self) -> usize {
        self.get().len()
    }

    /// Returns whether no CPU is in the set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.far.is_none() && self.near == [0; NEAR]
    }

    /// Adds the CPUs of another set.
    #[inline]
    pub fn add(&mut self, other: &CpuSet) {
        *self = self.get().or(other).into();
    }
}

impl fmt::Display for KeptCpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
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

    fn up_by(set: &CpuSet, by: usize) -> CpuSet {
        let mut made = CpuSet::default();
        set.words().for_each(|(at, word)| made.add_word_up(at, by, word));
        made
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
            let words: Vec<u64> = (0..WORDS).map(|at| a.word_down(at, by)).collect();
            assert_eq!(words, CpuSet::of(down).words, "{by}");
            assert_eq!(up_by(&a, by), CpuSet::of(up), "{by}");
        }
        assert_eq!((a.count_in(&b), a.count_in(&a), b.count_in(&CpuSet::default())), (2, 4, 0));
        // What is joined ends where its last word may be.
        let (low, high) = (a.and(&CpuSet::of(0..64)), a.without(&CpuSet::of(0..64)));
        assert_eq!((low, low.or(&high), high.and(&low)), (CpuSet::of([0, 1]), a, CpuSet::default()));
        assert_eq!(up_by(&low, 1000).iter().collect::<Vec<_>>(), [1000, 1001]);
        for set in [a, b, low, high, CpuSet::default(), CpuSet::of([255]), CpuSet::of([256])] {
            let kept = KeptCpus::from(set);
            assert_eq!((kept.get(), kept.len(), kept.is_empty()), (set, set.len(), set.is_empty()), "{set}");
            assert_eq!((KeptCpus::from(kept.get()), kept.to_string()), (kept.clone(), set.to_string()));
            let mut sum = kept;
            sum.add(&b);
            assert_eq!(sum.get(), set.or(&b));
        }
        let mut set = a;
        set.remove(0);
        set.remove(5000);
        set.insert(5000);
        assert!(!set.contains(0) && set.contains(1023) && !set.contains(5000) && !set.is_empty());
        assert!(CpuSet::default().is_empty());
    }
}
