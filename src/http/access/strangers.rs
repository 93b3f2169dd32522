//! What unknown tokens may cost: a token that nobody has vouched for yet takes a question to the API server, and anybody
//! may send one.
//!
//! Such questions have a few places of their own, a rate for each address and one for all, and a list of their own of tokens
//! that were refused, so that strangers take neither places nor memory from users. A good token gives its part of the rates
//! back: they bound wrong ones.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::collections::HashMap;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::access::bucket::{Bucket, Rate};
use crate::access::cache::Cache;
use crate::access::digest::Digest;
use crate::error::ReadError;

/// Largest number of such questions at once.
const PLACES: usize = 8;
/// How long a request waits for a place.
const PATIENCE: Duration = Duration::from_secs(1);
/// Wrong tokens from one address.
const OF_PEER: Rate = Rate { per_second: 5.0, burst: 50.0 };
/// Wrong tokens from all addresses.
const OF_ALL: Rate = Rate { per_second: 20.0, burst: 200.0 };
/// Largest number of addresses that are kept count of. Beyond it, new ones share one bucket.
const MOST_PEERS: usize = 4096;
/// Largest number of refused tokens that are remembered.
const MOST_REFUSED: usize = 1024;

pub(crate) struct Strangers {
    refused: Cache<Digest, ()>,
    places: Semaphore,
    taken: Mutex<Taken>,
}

/// What is left of the rates.
struct Taken {
    all: Bucket,
    peers: HashMap<IpAddr, Bucket>,
}

/// A question about an unknown token that may be asked. Dropping it gives its place back.
pub(crate) struct Turn<'s> {
    strangers: &'s Strangers,
    peer: IpAddr,
    _place: SemaphorePermit<'s>,
}

impl Turn<'_> {
    /// Gives back what was taken of the rates: the token is somebody's.
    pub(crate) fn was_good(self) {
        let mut taken = self.strangers.taken.lock();
        let now = Instant::now();
        taken.all.give_back(OF_ALL, now);
        if let Some(bucket) = taken.peers.get_mut(&self.peer) {
            bucket.give_back(OF_PEER, now);
        }
    }
}

impl Strangers {
    /// Creates the bounds. A refused token is remembered for `trust`.
    pub(crate) fn new(trust: Duration) -> Self {
        let taken = Taken { all: Bucket::full(OF_ALL, Instant::now()), peers: HashMap::default() };
        Self {
            refused: Cache::new(trust, MOST_REFUSED),
            places: Semaphore::new(PLACES),
            taken: Mutex::new(taken),
        }
    }

    /// Returns whether a token was refused just now.
    pub(crate) fn were_refused(&self, token: &Digest) -> bool {
        self.refused.get(token).is_some()
    }

    /// Remembers that a token is nobody's.
    pub(crate) fn refuse(&self, token: Digest) {
        self.refused.put(token, ());
    }

    /// Waits a moment for a place, and takes a part of the rates. Fails when there is none.
    pub(crate) async fn turn(&self, peer: Option<IpAddr>) -> Result<Turn<'_>, ReadError> {
        let place = timeout(PATIENCE, self.places.acquire()).await;
        let Ok(Ok(place)) = place else {
            return Err(too_many("so many unknown tokens are asked about that this one has no turn"));
        };
        let peer = network(peer.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
        self.taken.lock().take(peer, Instant::now())?;
        Ok(Turn { strangers: self, peer, _place: place })
    }
}

impl Taken {
    fn take(&mut self, peer: IpAddr, now: Instant) -> Result<(), ReadError> {
        if self.peers.len() >= MOST_PEERS && !self.peers.contains_key(&peer) {
            self.peers.retain(|_, bucket| !bucket.is_full(OF_PEER, now));
        }
        let is_known = self.peers.len() < MOST_PEERS || self.peers.contains_key(&peer);
        let peer = if is_known { peer } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let bucket = self.peers.entry(peer).or_insert_with(|| Bucket::full(OF_PEER, now));
        if bucket.wait(OF_PEER, now).is_some() {
            let message = format!(
                "this address sends more than {} tokens per second that are not valid here",
                OF_PEER.per_second
            );
            return Err(too_many(&message));
        }
        if self.all.wait(OF_ALL, now).is_some() {
            let message =
                format!("more than {} tokens per second come that are not valid here", OF_ALL.per_second);
            return Err(too_many(&message));
        }
        bucket.take(OF_PEER, now);
        self.all.take(OF_ALL, now);
        Ok(())
    }
}

/// Returns what stands for an address: of version 6 its network, of which one machine has all addresses.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

fn too_many(message: &str) -> ReadError {
    ReadError::TooMany("TooManyRequests", format!("{message}; ask again in a second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(n.into()))
    }

    /// Sends wrong tokens until one is not asked about, and returns how many were.
    async fn asked(strangers: &Strangers, peer: impl Fn(u32) -> Option<IpAddr>) -> usize {
        let mut n_asked = 0;
        while strangers.turn(peer(n_asked)).await.is_ok() {
            n_asked += 1;
        }
        n_asked as usize
    }

    #[tokio::test(start_paused = true)]
    async fn wrong_tokens_have_a_rate_per_address_and_one_together() {
        let strangers = Strangers::new(Duration::from_secs(10));
        assert_eq!(asked(&strangers, |_| address(1)).await, 50);
        let Err(ReadError::TooMany(code, message)) = strangers.turn(address(1)).await.map(drop) else {
            panic!("it is refused")
        };
        assert_eq!(code, "TooManyRequests");
        assert!(message.contains("this address sends more than 5 tokens per second"), "{message}");
        assert_eq!(asked(&strangers, |n| address(n + 2)).await, 150, "of 200 together");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(asked(&strangers, |_| address(1)).await, 5, "five more after a second");
        assert_eq!(asked(&strangers, |n| address(1000 + n)).await, 15, "and twenty of all");
    }

    #[tokio::test(start_paused = true)]
    async fn good_tokens_take_nothing_of_the_rates() {
        let strangers = Strangers::new(Duration::from_secs(10));
        for _ in 0..1000 {
            strangers.turn(address(1)).await.unwrap().was_good();
        }
        assert_eq!(asked(&strangers, |_| address(1)).await, 50);
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_of_one_network_are_one_and_their_number_is_bounded() {
        let strangers = Strangers::new(Duration::from_secs(10));
        let of_network = |n: u32| Some(IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8 << 96) + u128::from(n))));
        assert_eq!(asked(&strangers, of_network).await, 50);
        for n in 0..2 * MOST_PEERS as u32 {
            tokio::time::advance(Duration::from_millis(50)).await;
            let _ = strangers.turn(address(n)).await;
        }
        assert!(strangers.taken.lock().peers.len() <= MOST_PEERS + 1);
    }
}
