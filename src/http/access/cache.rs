//! Answers that are remembered for a fixed time, in a bounded number.
//!
//! Questions should be of a fixed size, so that the number bounds the memory (`digest`).
//! All answers live equally long, so the oldest is the first to expire, and is what goes when there is no room.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_model::collections::HashMap;
use tokio::time::Instant;

/// A cache of answers by question.
pub(crate) struct Cache<K, V> {
    time: Duration,
    most: usize,
    kept: Mutex<Kept<K, V>>,
}

struct Kept<K, V> {
    answers: HashMap<K, (V, Instant)>,
    /// Questions with the time of their answers, the oldest first.
    order: VecDeque<(K, Instant)>,
}

impl<K: Hash + Eq + Clone, V: Clone> Cache<K, V> {
    /// Creates a cache of at most `most` answers, each of which is used for `time`.
    pub(crate) fn new(time: Duration, most: usize) -> Self {
        let kept = Kept { answers: HashMap::default(), order: VecDeque::new() };
        Self { time, most: most.max(1), kept: Mutex::new(kept) }
    }

    /// Returns the answer to a question, unless it is too old or forgotten.
    pub(crate) fn get(&self, question: &K) -> Option<V> {
        let kept = self.kept.lock();
        let (answer, at) = kept.answers.get(question)?;
        (at.elapsed() < self.time).then(|| answer.clone())
    }

    /// Forgets an answer before its time.
    pub(crate) fn forget(&self, question: &K) {
        self.kept.lock().answers.remove(question);
    }

    /// Remembers an answer, in place of an earlier one to the same question.
    pub(crate) fn put(&self, question: K, answer: V) {
        let mut kept = self.kept.lock();
        let now = Instant::now();
        // A question that was asked again is in the order twice; only the place of its newest answer counts.
        while let Some((oldest, at)) = kept.order.front() {
            let is_current = kept.answers.get(oldest).is_some_and(|(_, newest)| newest == at);
            let is_due = now.duration_since(*at) >= self.time || kept.order.len() >= self.most;
            if is_current && !is_due {
                break;
            }
            let Some((oldest, _)) = kept.order.pop_front() else { break };
            if is_current {
                kept.answers.remove(&oldest);
            }
        }
        kept.order.push_back((question.clone(), now));
        kept.answers.insert(question, (answer, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_expire_and_the_oldest_makes_room() {
        let cache = Cache::new(Duration::from_secs(10), 3);
        for n in 0..5 {
            cache.put(n, n);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let known = |cache: &Cache<i32, i32>| (0..5).filter(|n| cache.get(n).is_some()).collect::<Vec<_>>();
        assert_eq!(known(&cache), [2, 3, 4]);
        tokio::time::advance(Duration::from_secs(8)).await;
        assert_eq!(known(&cache), [4], "2 was put 11 s ago, 3 just 10 s ago");
        cache.put(4, 9);
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(cache.get(&4), Some(9), "an answer that is given again lives from then");
        assert!(cache.kept.lock().order.len() <= 3);
        cache.forget(&4);
        assert_eq!(cache.get(&4), None);
    }
}
