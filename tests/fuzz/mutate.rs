//! Makes inputs from good ones: a text loses, repeats and exchanges pieces; a tree of JSON gets values that nobody expects.

use serde_json::{Map, Value};

/// Pieces that readers trip over.
const PIECES: &[&str] = &[
    "",
    "0",
    "-1",
    "+",
    "-",
    ".",
    "e",
    "E",
    "1e999",
    "1E-999",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "99999999999999999999999999999999",
    "0.0000000000000000001",
    "Ki",
    "Ei",
    "m",
    "n",
    "u",
    "\0",
    "\n",
    "\r\n",
    "\t",
    "\u{feff}",
    "\u{202e}",
    "é",
    "💥",
    "\"",
    "'",
    "\\",
    "\\u0000",
    ",",
    ";",
    ":",
    "=",
    "!",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "{}",
    "[]",
    "null",
    "true",
    "~",
    "- ",
    "---\n",
    "&a ",
    "*a",
    "<<: *a",
    "#",
    "|",
    ">",
    "%",
    "in",
    "notin",
    "/",
    "//",
    "..",
    "NaN",
    "inf",
    "0x10",
    "1_000",
    "2026-01-01T00:00:00Z",
    "1h",
    "-1s",
];

/// A stream of numbers that follows from its seed (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below a bound, or 0 if the bound is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Returns a good text with up to four changes; at times with none.
pub(crate) fn text(seed: u64, good: &[String]) -> String {
    let mut random = Random::new(seed);
    let mut text: Vec<char> = random.pick(good).chars().collect();
    for _ in 0..random.below(5) {
        let (from, to) = (random.below(text.len() + 1), random.below(text.len() + 1));
        let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 40));
        match random.below(5) {
            0 => drop(text.splice(from..from, random.pick(PIECES).chars())),
            1 => drop(text.splice(from..to, random.pick(PIECES).chars())),
            2 => drop(text.drain(from..to)),
            3 => {
                let piece: Vec<char> = text[from..to].to_vec();
                text.splice(from..from, piece);
            }
            _ => {
                let other: Vec<char> = random.pick(good).chars().collect();
                let start = random.below(other.len() + 1);
                text.splice(from..to, other[start..].iter().take(40).copied());
            }
        }
    }
    text.into_iter().collect()
}

/// Returns a good tree with up to four changes; at times with none.
pub(crate) fn tree(seed: u64, good: &[Value]) -> Value {
    let mut random = Random::new(seed);
    let mut tree = random.pick(good).clone();
    for _ in 0..random.below(5) {
        change(&mut tree, &mut random);
    }
    tree
}

/// Changes one place of a tree: walks down at random, and stops at random.
fn change(value: &mut Value, random: &mut Random) {
    let goes_on = random.below(6) != 0;
    match value {
        Value::Object(fields) if goes_on && !fields.is_empty() => {
            let key = fields.keys().nth(random.below(fields.len())).cloned().unwrap_or_default();
            match random.below(12) {
                0 => drop(fields.remove(&key)),
                1 => {
                    let moved = fields.remove(&key).unwrap_or_default();
                    fields.insert((*random.pick(PIECES)).to_owned(), moved);
                }
                _ => change(&mut fields[&key], random),
            }
        }
        Value::Array(items) if goes_on && !items.is_empty() => {
            let index = random.below(items.len());
            match random.below(12) {
                0 => drop(items.remove(index)),
                1 => items.push(items[index].clone()),
                _ => change(&mut items[index], random),
            }
        }
        other => *other = unexpected(random),
    }
}

fn unexpected(random: &mut Random) -> Value {
    match random.below(10) {
        0 => Value::Null,
        1 => Value::Bool(true),
        2 => Value::from(i64::MIN),
        3 => Value::from(u64::MAX),
        4 => Value::from(-1),
        5 => Value::from(1e300),
        6 => Value::Array(vec![Value::Null, Value::from("x")]),
        7 => Value::Object(Map::from_iter([("x".to_owned(), Value::Null)])),
        8 => Value::from("x".repeat(10_000)),
        _ => Value::from(*random.pick(PIECES)),
    }
}
