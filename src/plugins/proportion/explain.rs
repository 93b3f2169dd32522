//! Explains a queue: how what it deserves comes about, round by round, who borrows from whom, and what keeps it from more.
//!
//! The numbers are worked out from what queues request now, as the state does before the next decision.

use std::collections::BTreeMap;

use pellucid_api::rest::proportion::{QueueClaim, QueueExplanation, QueueShare};
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_model::Name;
use pellucid_plugin_helper::loans::Loans;
use serde_json::{Value, json};

use super::amounts::{Amounts, clamp, text};
use super::endpoints::named;
use super::queues::{Queues, Tenant};
use super::shares::Rounds;

/// Answers `explain/queues/:name`.
pub(super) fn read(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let (queues, name) = named(cx)?;
    Ok(json!(queues.explain(&name)))
}

impl Queues {
    fn explain(&self, queue: &Name) -> QueueExplanation {
        let at = self.existing.binary_search(queue).ok();
        let resources = at.map(|_| self.resources()).unwrap_or_default();
        let shares: Vec<QueueShare> = at
            .map(|at| resources.iter().map(|resource| self.share(at, resource)).collect())
            .unwrap_or_default();
        let sentences = match at {
            Some(_) => shares.iter().map(|share| sentence(queue, share)).collect(),
            None => {
                vec!["there is no Queue, so nothing is shared out and no pod is refused for it".to_owned()]
            }
        };
        QueueExplanation {
            name: queue.to_string(),
            api_groups: self.api_groups(queue),
            sentences,
            resources: shares,
            problems: self.problems(queue),
        }
    }

    fn share(&self, at: usize, resource: &Name) -> QueueShare {
        let queue = &self.existing[at];
        let Rounds { claims, shares, rounds } = self.rounds(resource);
        let parts = self.parts(resource);
        let loans = Loans::of(&parts, &shares);
        let of = |amount: i64| text(resource, amount.into());
        let name = |i: usize| self.existing[i].to_string();
        let sum = |queue: &Name, amounts: fn(&Tenant) -> &Amounts| {
            self.tenants.get(queue).map_or(0, |tenant| amounts(tenant).get(resource))
        };
        let requested = sum(queue, |tenant| &tenant.sums.requested);
        let allocated = sum(queue, |tenant| &tenant.sums.allocated);
        let capability = |queue: &Name| self.capability(queue, resource).map(|most| text(resource, most));
        let claim = |(i, queue): (usize, &Name)| QueueClaim {
            queue: queue.to_string(),
            weight: claims[i].weight,
            part: of(parts[i]),
            request: text(resource, sum(queue, |tenant| &tenant.sums.requested)),
            capability: capability(queue),
            deserved: of(shares[i]),
            allocated: text(resource, sum(queue, |tenant| &tenant.sums.allocated)),
        };
        let from = loans.from(at).into_iter().filter_map(|(lender, amount)| Some((lender?, amount)));
        let named = |all: Vec<(usize, i64)>| -> BTreeMap<String, String> {
            all.into_iter().map(|(i, amount)| (name(i), of(amount))).collect()
        };
        let weights: i128 = claims.iter().map(|claim| i128::from(claim.weight)).sum();
        let limited_by = match i128::from(shares[at]) {
            deserved if deserved >= requested => None,
            _ if self.total.get(resource) <= 0 && claims[at].weight > 0 => Some("total"),
            deserved if self.capability(queue, resource).is_some_and(|most| deserved >= most) => {
                Some("capability")
            }
            _ if claims[at].weight == 0 => Some("weight"),
            _ => Some("share"),
        };
        QueueShare {
            resource: resource.to_string(),
            weight: claims[at].weight,
            weights: clamp(weights),
            total: text(resource, self.total.get(resource)),
            part: of(parts[at]),
            request: text(resource, requested),
            capability: capability(queue),
            deserved: of(shares[at]),
            allocated: text(resource, allocated),
            borrowed: of(loans.borrowed[at]),
            lent: of(loans.lent[at]),
            borrows_from: named(from.collect()),
            lends_to: named(loans.to(at)),
            limited_by: limited_by.map(str::to_owned),
            is_overused: requested > allocated && allocated >= i128::from(shares[at]),
            queues: self.existing.iter().enumerate().map(claim).collect(),
            rounds: rounds.iter().map(|round| round.show(name, of)).collect(),
        }
    }
}

fn sentence(name: &str, share: &QueueShare) -> String {
    let QueueShare { resource, allocated, deserved, request, weight, weights, part, total, .. } = share;
    let mut text = format!(
        "{resource}: {name} holds {allocated} and deserves {deserved}, requests {request}; by its weight {weight} of \
         {weights} its part is {part} of {total}"
    );
    for (from, amount) in &share.borrows_from {
        text.push_str(&format!("; it borrows {amount} of the part of {from}"));
    }
    for (to, amount) in &share.lends_to {
        text.push_str(&format!("; {to} borrows {amount} of its part"));
    }
    text.push_str(match share.limited_by.as_deref() {
        None => "",
        Some("total") => "; no node offers any",
        Some("capability") => "; its capability keeps it from more",
        Some("weight") => "; with weight 0 it deserves nothing",
        Some(_) => "; the requests of the others keep it from more",
    });
    text
}
