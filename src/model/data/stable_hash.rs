//! A hash of texts that is the same in every process, for numbers that people compare and for orders that must not be
//! random. Tie-breaks between nodes, hashes of decisions and the hash of the state use it.
//!
//! 64-bit FNV-1a with the finaliser of splitmix64. It does not resist deliberate collisions and is not for hash tables:
//! those use `collections`.

use std::fmt::{self, Write};

/// Returns the hash of one text with a seed. Invariant: it never changes, because decisions depend on it and recorded
/// hashes are compared with those of later versions.
pub fn seeded(seed: u64, text: &str) -> u64 {
    let mut hash = StableHash(StableHash::default().0 ^ seed);
    let _ = hash.write_str(text);
    hash.finish()
}

/// A hasher of texts; their order matters. Writing to it cannot fail.
#[derive(Clone, Debug)]
pub struct StableHash(u64);

impl Default for StableHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl StableHash {
    /// Adds a value as its `Debug` form, followed by a separator. The `Debug` forms of model types contain only their
    /// texts and numbers, and nothing that differs between processes.
    pub fn add(&mut self, value: &dyn fmt::Debug) {
        let _ = write!(self, "{value:?}\u{1f}");
    }

    /// Adds a text, followed by a separator.
    pub fn add_text(&mut self, text: &str) {
        let _ = self.write_str(text);
        let _ = self.write_str("\u{1f}");
    }

    /// Adds a number, byte by byte.
    pub fn add_number(&mut self, number: u64) {
        for byte in number.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Returns the hash of everything added so far.
    pub fn finish(&self) -> u64 {
        let hash = self.0;
        let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    }
}

impl Write for StableHash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn it_is_a_fixed_number_and_borders_count() {
        let hash = |parts: &[&str]| {
            let mut hash = StableHash::default();
            parts.iter().for_each(|part| hash.add(&Name::new(part)));
            hash.finish()
        };
        assert_eq!(hash(&["a", "b"]), 0x4080_0e39_7aa5_9947);
        assert_eq!(seeded(7, "node-1"), 0x81b9_b700_3592_82ae);
        assert_ne!(hash(&["a", "b"]), hash(&["ab"]));
        assert_ne!(hash(&["a", "b"]), hash(&["b", "a"]));
    }
}
