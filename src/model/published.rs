//! What readers get: a state at one generation. The trait stands here because the server of reads does not know what it
//! serves, and what is served does not know the server.

/// Something published in generations, of which readers may ask for one not older than theirs.
pub trait Published {
    /// Returns the number of this publication. It never goes back.
    fn generation(&self) -> u64;
}
