//! A ring of samples, bounded in number and in bytes. It reads no clock and counts nothing itself.

use std::collections::VecDeque;
use std::time::Duration;

use pellucid_api::rest::trends::{TrendReason, TrendSample};
use pellucid_recording::rfc3339;

/// Samples that are kept: one hour of them.
pub const SAMPLES: usize = 360;
/// Most reasons of a sample; the pods of the others are one number.
const MOST_REASONS: usize = 12;

/// Bytes that the ring takes when every sample has the most reasons.
const MOST_BYTES: usize = SAMPLES * (size_of::<Sample>() + MOST_REASONS * size_of::<(&str, u32)>());
const _: () = assert!(MOST_BYTES <= 256 << 10, "the ring takes more than 256 KiB");

/// Pending pods by reason code, the most common first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reasons {
    listed: Box<[(&'static str, u32)]>,
    others: u32,
    is_truncated: bool,
}

impl Reasons {
    /// Keeps the most common of these counts. Of equal ones the first by code comes first.
    pub(super) fn of(counts: impl IntoIterator<Item = (&'static str, u32)>, is_truncated: bool) -> Self {
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|(code, n)| (std::cmp::Reverse(*n), *code));
        let others = counts.iter().skip(MOST_REASONS).map(|(_, n)| n).sum();
        counts.truncate(MOST_REASONS);
        Self { listed: counts.into(), others, is_truncated }
    }
}

/// What happened since the sample before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rates {
    pub(super) since: Duration,
    pub(super) bound: u64,
    pub(super) attempts: u64,
    pub(super) wait_p99: Option<f64>,
}

/// What was read at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// Wall time since 1970.
    pub(super) at: Duration,
    pub(super) pending: u32,
    pub(super) reasons: Option<Reasons>,
    pub(super) rates: Option<Rates>,
}

impl Sample {
    fn body(&self) -> TrendSample {
        let per_second = |n: u64, rates: &Rates| rounded(n as f64 / rates.since.as_secs_f64());
        let (reasons, rates) = (self.reasons.as_ref(), self.rates.as_ref());
        let listed = |one: &Reasons| {
            let each = one.listed.iter();
            each.map(|(code, n)| TrendReason { code: (*code).to_owned(), pods: *n as usize }).collect()
        };
        TrendSample {
            at: rfc3339(self.at),
            seconds: rates.map(|rates| rounded(rates.since.as_secs_f64())),
            pending: self.pending as usize,
            reasons: reasons.map(listed),
            other_reasons: reasons.map_or(0, |one| one.others as usize),
            truncated: reasons.is_some_and(|one| one.is_truncated),
            binds_per_second: rates.map(|rates| per_second(rates.bound, rates)),
            attempts_per_second: rates.map(|rates| per_second(rates.attempts, rates)),
            wait_p99_seconds: rates.and_then(|rates| rates.wait_p99).map(rounded),
        }
    }
}

/// Rounds to a ten-thousandth.
fn rounded(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}

/// The newest samples, the oldest first.
#[derive(Default)]
pub(super) struct Ring(VecDeque<Sample>);

impl Ring {
    /// Adds a sample, and drops the oldest when there are too many.
    pub(super) fn push(&mut self, sample: Sample) {
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// Returns the samples as bodies.
    pub(super) fn bodies(&self) -> Vec<TrendSample> {
        self.0.iter().map(Sample::body).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: u32) -> Sample {
        Sample { at: Duration::from_secs(n.into()), pending: n, reasons: None, rates: None }
    }

    #[test]
    fn the_oldest_goes_when_an_hour_is_full() {
        let mut ring = Ring::default();
        for n in 0..SAMPLES as u32 + 5 {
            ring.push(sample(n));
        }
        let bodies = ring.bodies();
        assert_eq!((bodies.len(), bodies[0].pending, bodies[SAMPLES - 1].pending), (SAMPLES, 5, 364));
        assert_eq!((&*bodies[0].at, bodies[0].seconds), ("1970-01-01T00:00:05.000Z", None));
    }

    #[test]
    fn many_reasons_are_cut_and_still_add_up() {
        const CODES: [&str; 15] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o"];
        let counts = CODES.iter().enumerate().map(|(at, code)| (*code, at as u32 / 2 + 1));
        let of = Sample { reasons: Some(Reasons::of(counts, false)), ..sample(64) }.body();
        let listed = of.reasons.expect("reasons");
        assert_eq!((listed.len(), &*listed[0].code, listed[0].pods), (MOST_REASONS, "o", 8));
        assert_eq!((&*listed[1].code, &*listed[2].code), ("m", "n"), "equal counts go by code");
        assert_eq!(listed.iter().map(|one| one.pods).sum::<usize>() + of.other_reasons, 64);
    }

    #[test]
    fn rates_are_of_the_time_that_passed() {
        let since = Duration::from_millis(12_500);
        let rates = Rates { since, bound: 5, attempts: 100, wait_p99: Some(0.012_345_6) };
        let body = Sample { rates: Some(rates), ..sample(0) }.body();
        assert_eq!((body.binds_per_second, body.attempts_per_second), (Some(0.4), Some(8.0)));
        assert_eq!((body.seconds, body.wait_p99_seconds), (Some(12.5), Some(0.0123)));
    }
}
