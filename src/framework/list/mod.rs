//! Lists of answers: which items a request asks for, in which order, and on which page.
//!
//! Every list takes the same query parameters ([`params`]). A list says of each item what can be filtered and sorted by
//! ([`Facts`]), and makes the bodies of one page only. It holds no snapshot: a walk from page to page reads the
//! snapshot whose generation its token names, which the server keeps for a while.

mod facts;
pub mod fields;
pub mod params;
mod token;

use std::cmp::Ordering;
use std::time::Duration;

use pellucid_api::rest::Meta;
use pellucid_model::Now;
use pellucid_model::selector::LabelSelector;

pub use facts::{Attribute, Facts};
pub use token::generation_of;

use crate::endpoint::{PathParams, ReadError};
use token::Token;

/// Items on a page when the request gives no `limit`, as kubectl asks for.
pub const DEFAULT_LIMIT: usize = 500;

/// What a request asks of a list.
#[derive(Debug, Default)]
pub struct List {
    filters: Filters,
    /// Attributes to sort by, the most significant first; the flag means descending.
    sort: Vec<(Attribute, bool)>,
    /// Items on a page; `None` for all.
    limit: Option<usize>,
    /// Where this page begins, and what the walk is about.
    token: Token,
}

/// What an item must be to be listed. An empty list of texts admits everything.
#[derive(Debug, Default)]
struct Filters {
    texts: Vec<(Attribute, Vec<String>)>,
    selector: Option<LabelSelector>,
    older_than: Option<Duration>,
    younger_than: Option<Duration>,
    min_priority: Option<i64>,
    max_priority: Option<i64>,
}

/// One page of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// The items of the page, in order.
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: usize,
    /// Number of items after this page.
    remaining: usize,
    /// Token of the next page, if there is one.
    next: Option<String>,
}

impl List {
    /// Reads the parameters of a request to a list that has these attributes. `generation` is that of the snapshot
    /// which is read. Fails with the name and the value of a parameter that cannot be used.
    pub fn of(
        params: &PathParams,
        attributes: &[Attribute],
        generation: u64,
        now: Now,
    ) -> Result<Self, ReadError> {
        let token = Token::of(params, generation, now)?;
        params::list(params, attributes, token)
    }

    /// Asks for the first items of everything.
    pub fn first(limit: usize) -> Self {
        Self { limit: Some(limit), ..Self::default() }
    }

    /// Returns whether a filter or the order reads an attribute, so that its facts are needed.
    pub fn reads(&self, attribute: Attribute) -> bool {
        let sorts = self.sort.iter().any(|(by, _)| *by == attribute);
        sorts || self.filters.texts.iter().any(|(by, _)| *by == attribute)
    }

    /// Returns whether an item can be left out or moved, so that facts are needed.
    fn looks_at_items(&self) -> bool {
        !self.sort.is_empty() || !self.filters.admit_all()
    }

    /// Cuts a page out of all items. They come in the order that the list has without `sort`.
    pub fn page<'a, T>(
        &self,
        items: impl IntoIterator<Item = T>,
        facts: impl Fn(&T) -> Facts<'a>,
    ) -> Page<T> {
        self.cut(self.filtered(items, facts))
    }

    /// Returns the items that the filters admit, on all pages, in order.
    pub fn filtered<'a, T>(
        &self,
        items: impl IntoIterator<Item = T>,
        facts: impl Fn(&T) -> Facts<'a>,
    ) -> Vec<T> {
        let items = items.into_iter();
        if !self.looks_at_items() {
            return items.collect();
        }
        let mut known: Vec<(Facts<'a>, T)> = items.map(|item| (facts(&item), item)).collect();
        known.retain(|(facts, _)| self.filters.admit(facts, self.token.started));
        known.sort_by(|(a, _), (b, _)| self.order(a, b));
        known.into_iter().map(|(_, item)| item).collect()
    }

    /// Returns items in the order that the request asks for, equal ones as they come. No filter is heeded.
    pub fn sorted<'a, T>(&self, items: Vec<T>, facts: impl Fn(&T) -> Facts<'a>) -> Vec<T> {
        if self.sort.is_empty() {
            return items;
        }
        let mut known: Vec<(Facts<'a>, T)> = items.into_iter().map(|item| (facts(&item), item)).collect();
        known.sort_by(|(a, _), (b, _)| self.order(a, b));
        known.into_iter().map(|(_, item)| item).collect()
    }

    /// Cuts a page out of items that are filtered and in order.
    pub fn cut<T>(&self, mut items: Vec<T>) -> Page<T> {
        let total = items.len();
        let from = self.token.offset.min(total);
        let until = self.limit.map_or(total, |limit| from.saturating_add(limit).min(total));
        items.truncate(until);
        items.drain(..from);
        let next = (until < total).then(|| self.token.at(until).to_string());
        Page { items, total, remaining: total - until, next }
    }

    fn order(&self, a: &Facts<'_>, b: &Facts<'_>) -> Ordering {
        let each = self.sort.iter().map(|(attribute, descending)| {
            let order = a.compare(b, *attribute);
            if *descending { order.reverse() } else { order }
        });
        each.fold(Ordering::Equal, Ordering::then)
    }
}

impl Filters {
    fn admit_all(&self) -> bool {
        let has_bounds = [self.min_priority, self.max_priority].iter().any(Option::is_some);
        let has_ages = [self.older_than, self.younger_than].iter().any(Option::is_some);
        self.texts.is_empty() && self.selector.is_none() && !has_bounds && !has_ages
    }

    /// Returns whether an item is listed. Ages are those at `now`, the wall time at which the walk began.
    fn admit(&self, facts: &Facts<'_>, now: Duration) -> bool {
        let age = || facts.created.map(|created| now.saturating_sub(created));
        let priority = || facts.priority.map(i64::from);
        self.texts.iter().all(|(attribute, wanted)| wanted.iter().any(|text| facts.is(*attribute, text)))
            && self.selector.as_ref().is_none_or(|s| facts.labels.is_some_and(|labels| s.matches(labels)))
            && self.older_than.is_none_or(|bound| age().is_some_and(|age| age > bound))
            && self.younger_than.is_none_or(|bound| age().is_some_and(|age| age < bound))
            && self.min_priority.is_none_or(|bound| priority().is_some_and(|priority| priority >= bound))
            && self.max_priority.is_none_or(|bound| priority().is_some_and(|priority| priority <= bound))
    }
}

impl<T> Page<T> {
    /// Returns whether there are items after this page.
    pub fn is_cut(&self) -> bool {
        self.next.is_some()
    }

    /// Adds to a meta how the list goes on.
    pub fn meta(&self, meta: Meta) -> Meta {
        let remaining_item_count = self.next.is_some().then_some(self.remaining);
        Meta { r#continue: self.next.clone(), remaining_item_count, ..meta }
    }
}

#[cfg(test)]
mod tests;
