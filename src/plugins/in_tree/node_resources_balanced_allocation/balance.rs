//! Balance of resource utilisation, 0 to 100. Invariant: the order of the floating-point operations is
//! kube-scheduler's, so that scores are equal bit for bit before truncation.

use pellucid_framework::plugin::MAX_SCORE;

/// Returns the utilised fraction of a resource, at most 1. `allocatable` must not be 0.
#[inline]
pub(super) fn fraction(used: i64, allocatable: i64) -> f64 {
    let fraction = used as f64 / allocatable as f64;
    if fraction > 1.0 { 1.0 } else { fraction }
}

/// Returns the balance of a deviation between 0 and 1.
#[inline]
fn of_deviation(deviation: f64) -> i64 {
    i64::from(((1.0 - deviation) * MAX_SCORE as f64) as u32)
}

/// Returns the balance of two fractions.
#[inline]
pub(super) fn balance_of_two(a: f64, b: f64) -> i64 {
    of_deviation(((a - b) / 2.0).abs())
}

/// Returns the balance of any number of fractions: 100 for none or one.
pub(super) fn balance(fractions: &[f64]) -> i64 {
    match fractions {
        [] | [_] => of_deviation(0.0),
        [a, b] => balance_of_two(*a, *b),
        _ => {
            let mut total = 0.0;
            for fraction in fractions {
                total += fraction;
            }
            let mean = total / fractions.len() as f64;
            let mut sum = 0.0;
            for fraction in fractions {
                sum += (fraction - mean) * (fraction - mean);
            }
            of_deviation((sum / fractions.len() as f64).sqrt())
        }
    }
}

/// Returns the score from the balance with and without the pod; 75 when nothing changes.
#[inline]
pub(super) fn combine(with: i64, without: i64) -> i64 {
    const HALF: i64 = MAX_SCORE / 2;
    HALF + (HALF + with - without) / 2
}
