//! Loans: who has how much of what is another's part, once an amount was shared out.
//!
//! What a claimant has beyond its own part it borrows from those that have less than theirs, or it is nobody's. Every
//! borrower has the same part of what each lender lends. Not here: how the amount is shared out (`water_filling`).

use crate::water_filling::{Claim, fill};

/// Who borrows from whom. Amounts are in the unit of what was shared out and never negative.
pub struct Loans {
    /// Of each, what it has beyond its own part.
    pub borrowed: Vec<i64>,
    /// Of each, what others have of its own part.
    pub lent: Vec<i64>,
}

impl Loans {
    /// Works out the loans among claimants of which each has an own part and what it has in the end, in one order.
    pub fn of(parts: &[i64], has: &[i64]) -> Self {
        let pairs = || parts.iter().zip(has);
        let beyond = |a: i64, b: i64| a.saturating_sub(b).max(0);
        let borrowed: Vec<i64> = pairs().map(|(part, has)| beyond(*has, *part)).collect();
        let open: Vec<i64> = pairs().map(|(part, has)| beyond(*part, *has)).collect();
        // No more is lent than is borrowed; the rest lies idle.
        let all: i128 = borrowed.iter().copied().map(i128::from).sum();
        let lent = split(i64::try_from(all).unwrap_or(i64::MAX), &open);
        Self { borrowed, lent }
    }

    /// Returns from whom one borrows how much, `None` for what is nobody's.
    pub fn from(&self, i: usize) -> Vec<(Option<usize>, i64)> {
        let own: Vec<i64> = self.lent.iter().map(|lent| split(*lent, &self.borrowed)[i]).collect();
        let lent: i64 = own.iter().sum();
        let mut all: Vec<(Option<usize>, i64)> =
            own.into_iter().enumerate().map(|(lender, amount)| (Some(lender), amount)).collect();
        all.push((None, self.borrowed[i] - lent));
        all.retain(|(_, amount)| *amount > 0);
        all
    }

    /// Returns who borrows how much from one.
    pub fn to(&self, i: usize) -> Vec<(usize, i64)> {
        let mut all: Vec<(usize, i64)> =
            split(self.lent[i], &self.borrowed).into_iter().enumerate().collect();
        all.retain(|(_, amount)| *amount > 0);
        all
    }
}

/// Splits an amount by what each can take, in proportion to it.
fn split(amount: i64, can_take: &[i64]) -> Vec<i64> {
    let claim = |most: &i64| Claim { weight: *most, request: *most, guaranteed: 0, lends: true };
    fill(amount, &can_take.iter().map(claim).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loans_add_up_and_the_rest_is_nobodys() {
        // The article: mins 10, 15, 20, 15 of 100, runtimes 5, 20, 35, 40.
        let loans = Loans::of(&[10, 15, 20, 15], &[5, 20, 35, 40]);
        assert_eq!((&loans.borrowed[..], &loans.lent[..]), (&[0, 5, 15, 25][..], &[5, 0, 0, 0][..]));
        assert_eq!(loans.to(0).iter().map(|(_, amount)| amount).sum::<i64>(), 5);
        for i in 1..4 {
            assert_eq!(loans.from(i).iter().map(|(_, amount)| amount).sum::<i64>(), loans.borrowed[i]);
        }
        assert_eq!(loans.from(0), []);
    }
}
