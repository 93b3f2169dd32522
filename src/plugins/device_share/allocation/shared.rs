//! Allocations that pods of one shape share: many pods have the same of a node, a share of its GPU with a certain minor. A pod that
//! needs no allocation of its own needs no memory, which would lie far away.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::Allocation;

/// GPUs with minors below this count.
const MINORS: usize = 16;

/// The allocations of one GPU that a request has led to, by minor. They follow from the request, so requests with and without are equal.
#[derive(Default)]
pub(in super::super) struct SharedAllocations {
    /// With the memory of the GPU, in bytes.
    known: [OnceLock<(i64, Arc<Allocation>)>; MINORS],
}

impl SharedAllocations {
    /// Returns the allocation of the GPU with a minor and so much memory, made by `make` the first time; `None` for a GPU with another
    /// amount of memory than the first one with that minor.
    pub(in super::super) fn get(
        &self,
        (minor, memory): (usize, i64),
        make: impl FnOnce() -> Allocation,
    ) -> Option<Arc<Allocation>> {
        let (of, known) = self.known.get(minor)?.get_or_init(|| (memory, Arc::new(make())));
        (*of == memory).then(|| known.clone())
    }
}

impl Clone for SharedAllocations {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for SharedAllocations {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for SharedAllocations {}

impl fmt::Debug for SharedAllocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedAllocations")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gpus_of_equal_memory_share_and_equal_requests_stay_equal() {
        let shared = SharedAllocations::default();
        let first = shared.get((3, 80), Allocation::default).expect("the first one is kept");
        let again = shared.get((3, 80), || panic!("it is known")).expect("the same one");
        assert!(Arc::ptr_eq(&first, &again));
        assert!(shared.get((3, 40), Allocation::default).is_none(), "a smaller GPU on another node");
        assert!(shared.get((4, 40), Allocation::default).is_some());
        assert!(shared.get((MINORS, 80), Allocation::default).is_none());
        assert_eq!((&shared, &shared.clone()), (&SharedAllocations::default(), &shared));
    }
}
