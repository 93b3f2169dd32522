//! Water filling: how an amount is shared among claimants with a guaranteed part, a weight and a request.
//!
//! Each claimant first gets its guaranteed part, at most what it requests. What is left over goes by weight to those
//! that request more; what one of them does not need goes to the others in further rounds. Amounts are integers and are
//! shared out exactly, by largest remainder. The algorithm is Koordinator's (`RuntimeQuotaCalculator`), for one
//! resource. Not here: trees, resources, and what a claimant is.

use pellucid_api::rest::sharing::SharingRound;

/// What one claimant asks for. Amounts are not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// Share of what is left over, relative to the other weights. With 0 it gets none of it.
    pub weight: i64,
    /// What it can use.
    pub request: i64,
    /// What it gets, if it requests that much, however little there is.
    pub guaranteed: i64,
    /// Whether others may use what it does not request of its guaranteed part.
    pub lends: bool,
}

/// One round of the distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// The amount that the round shares out.
    pub amount: i64,
    /// Sum of the weights of those that take part.
    pub weights: i128,
    /// Those that take part, by position, each with its share, before what it does not need is taken back.
    pub shares: Vec<(usize, i64)>,
    /// What was taken back from those whose requests are met, for the next round.
    pub excess: i64,
}

impl Round {
    /// Shows the round. `name` is what a claimant is called, and `text` writes an amount.
    pub fn show(&self, name: impl Fn(usize) -> String, text: impl Fn(i64) -> String) -> SharingRound {
        SharingRound {
            amount: text(self.amount),
            weights: self.weights.to_string(),
            shares: self.shares.iter().map(|(i, share)| (name(*i), text(*share))).collect(),
            excess: text(self.excess),
        }
    }
}

/// Shares out `total` and returns what each claimant gets. Of two equal remainders the earlier claimant's is larger, so
/// the order of the claims must not change by chance.
///
/// The sum exceeds `total` only when the guaranteed parts do.
pub fn fill(total: i64, claims: &[Claim]) -> Vec<i64> {
    fill_in_rounds(total, claims, |_| {})
}

/// Like [`fill`], and tells each round.
pub fn fill_in_rounds(total: i64, claims: &[Claim], mut told: impl FnMut(Round)) -> Vec<i64> {
    let mut given: Vec<i64> = claims.iter().map(at_first).collect();
    let spent: i128 = given.iter().copied().map(i128::from).sum();
    let mut amount = i64::try_from((i128::from(total) - spent).max(0)).unwrap_or(i64::MAX);
    let wants_more = |i: &usize| claims[*i].request > claims[*i].guaranteed;
    let mut contenders: Vec<usize> = (0..claims.len()).filter(wants_more).collect();
    let mut shares = Vec::new();
    while amount > 0 && !contenders.is_empty() {
        let weights = contenders.iter().map(|i| i128::from(claims[*i].weight)).sum();
        if weights <= 0 {
            break;
        }
        share_out(amount, weights, claims, &contenders, &mut shares);
        let round = Round { amount, weights, shares: shares.clone(), excess: 0 };
        let mut excess = 0;
        contenders.clear();
        for (i, share) in shares.drain(..) {
            let reached = i128::from(given[i]) + i128::from(share);
            let over = reached - i128::from(claims[i].request);
            if over >= 0 {
                excess += over;
                given[i] = claims[i].request;
            } else {
                given[i] += share;
                contenders.push(i);
            }
        }
        // What is taken back was given in this round, so it fits.
        amount = i64::try_from(excess).unwrap_or(i64::MAX);
        told(Round { excess: amount, ..round });
    }
    given
}

/// Returns what a claimant gets before anything is shared out.
fn at_first(claim: &Claim) -> i64 {
    if claim.request > claim.guaranteed || !claim.lends { claim.guaranteed } else { claim.request }
}

/// Divides an amount by weight (largest remainder), exactly. `weights` is the sum of the contenders' weights.
fn share_out(
    amount: i64,
    weights: i128,
    claims: &[Claim],
    contenders: &[usize],
    shares: &mut Vec<(usize, i64)>,
) {
    // Products of two amounts are below 2^126.
    let part = |i: usize| i128::from(amount) * i128::from(claims[i].weight);
    shares.clear();
    shares.extend(contenders.iter().map(|i| (*i, (part(*i) / weights) as i64)));
    let shared: i128 = shares.iter().map(|(_, share)| i128::from(*share)).sum();
    // Less than one unit per contender is left.
    let left = (i128::from(amount) - shared) as usize;
    if left == 0 {
        return;
    }
    let mut by_remainder: Vec<(i128, usize)> =
        contenders.iter().enumerate().map(|(at, i)| (-(part(*i) % weights), at)).collect();
    by_remainder.sort_unstable();
    for (_, at) in by_remainder.into_iter().take(left) {
        shares[at].1 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    /// The claims of article 001 on Koordinator, with C's request as given; `unit` is 1 for cores, 1000 for millicores.
    fn article(c_request: i64, unit: i64) -> Vec<Claim> {
        let of = |weight, guaranteed, request| Claim {
            weight: weight * unit,
            request: request * unit,
            guaranteed: guaranteed * unit,
            lends: true,
        };
        vec![of(40, 10, 5), of(60, 15, 20), of(50, 20, c_request), of(80, 15, 70)]
    }

    #[test]
    fn the_example_of_the_article() {
        assert_eq!(fill(100, &article(40, 1)), [5, 20, 35, 40]);
        assert_eq!(fill(100_000, &article(40, 1000)), [5000, 20_000, 35_385, 39_615]);
        assert_eq!(fill(100, &article(30, 1)), [5, 20, 30, 45]);
        assert_eq!(fill(100_000, &article(30, 1000)), [5000, 20_000, 30_000, 45_000]);
    }

    #[test]
    fn the_rounds_of_the_article_are_told() {
        let mut rounds = Vec::new();
        fill_in_rounds(100, &article(40, 1), |round| rounds.push(round));
        assert_eq!(rounds.len(), 2);
        assert_eq!((rounds[0].amount, rounds[0].weights), (45, 190));
        assert_eq!(rounds[0].shares, [(1, 14), (2, 12), (3, 19)]);
        assert_eq!((rounds[0].excess, rounds[1].amount), (9, 9));
        assert_eq!(rounds[1].shares, [(2, 3), (3, 6)]);
        assert_eq!(rounds[1].excess, 0);
    }

    #[test]
    fn units_that_do_not_divide_go_to_the_first() {
        let equal = Claim { weight: 1, request: 10, guaranteed: 0, lends: true };
        assert_eq!(fill(10, &[equal; 3]), [4, 3, 3]);
        assert_eq!(fill(1, &[equal; 2]), [1, 0]);
    }

    #[test]
    fn what_is_not_lent_stays_and_what_is_guaranteed_is_given() {
        let claim = |request, lends| Claim { weight: 1, request, guaranteed: 60, lends };
        assert_eq!(fill(100, &[claim(10, true), claim(90, true)]), [10, 90]);
        assert_eq!(fill(100, &[claim(10, false), claim(90, true)]), [60, 60], "more than there is");
        assert_eq!(fill(-5, &[claim(10, true)]), [10]);
        let none = Claim { weight: 0, ..claim(90, true) };
        assert_eq!(fill(100, &[none]), [60]);
        assert_eq!(fill(100, &[]), [0i64; 0]);
    }

    /// Makes a total and up to eight claims.
    fn case(random: &mut Random) -> (i64, Vec<Claim>) {
        let top = [10, 1000, i64::MAX as u64][random.below(3) as usize];
        let amount = |r: &mut Random| if r.below(5) == 0 { 0 } else { r.below(top) as i64 };
        let n = 1 + random.below(8);
        let total = amount(random);
        let claim = |r: &mut Random| Claim {
            weight: amount(r),
            request: amount(r),
            guaranteed: amount(r) / 4,
            lends: r.below(4) > 0,
        };
        (total, (0..n).map(|_| claim(random)).collect())
    }

    fn sum(all: &[i64]) -> i128 {
        all.iter().copied().map(i128::from).sum()
    }

    #[test]
    fn nothing_is_given_twice_and_nothing_that_is_wanted_is_kept_back() {
        let mut random = Random(7);
        for _ in 0..20_000 {
            let (total, claims) = case(&mut random);
            let given = fill(total, &claims);
            let least = sum(&claims.iter().map(at_first).collect::<Vec<_>>());
            let at = || format!("{total} {claims:?} {given:?}");
            assert!(sum(&given) <= i128::from(total).max(least), "{}", at());
            let is_open = |(claim, got): (&Claim, &i64)| claim.weight > 0 && *got < claim.request;
            if sum(&given) < i128::from(total) {
                assert!(!claims.iter().zip(&given).any(is_open), "{}", at());
            }
            for (claim, got) in claims.iter().zip(&given) {
                assert!(*got >= at_first(claim) && *got <= claim.request.max(at_first(claim)), "{}", at());
            }
        }
    }

    #[test]
    fn the_order_of_claims_matters_by_one_unit_a_round_at_most() {
        let mut random = Random(11);
        for _ in 0..5_000 {
            let (total, claims) = case(&mut random);
            let mut backwards = claims.clone();
            backwards.reverse();
            let mut other = fill(total, &backwards);
            other.reverse();
            let rounds = claims.len() as i64;
            for (a, b) in fill(total, &claims).into_iter().zip(other) {
                assert!((i128::from(a) - i128::from(b)).abs() <= i128::from(rounds), "{total} {claims:?}");
            }
        }
    }

    #[test]
    fn nobody_loses_by_a_greater_guarantee_of_his_own() {
        let mut random = Random(13);
        for _ in 0..20_000 {
            let (total, mut claims) = case(&mut random);
            let before = fill(total, &claims);
            let i = random.below(claims.len() as u64) as usize;
            let more = 1 + random.below(1 + (claims[i].request / 2).unsigned_abs()) as i64;
            claims[i].guaranteed = claims[i].guaranteed.saturating_add(more);
            let after = fill(total, &claims);
            // Each round rounds; what a remainder gives or takes is one unit.
            let rounding = claims.len() as i64;
            assert!(
                after[i] >= before[i].saturating_sub(rounding),
                "{i} {total} {claims:?} {before:?} {after:?}"
            );
        }
    }
}
