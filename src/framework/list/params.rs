//! The query parameters of lists: their declarations, and how they are read.

use std::time::Duration;

use pellucid_model::duration;
use pellucid_model::selector::LabelSelector;

use super::token::Token;
use super::{Attribute, DEFAULT_LIMIT, Filters, List};
use crate::endpoint::{PathParams, Query, QueryKind, ReadError};

/// Name of the parameter that asks for the page after one.
pub const CONTINUE: &str = "continue";
/// Name of the parameter that chooses the fields of items.
pub const FIELDS: &str = "fields";

/// Returns the parameters of a list whose items have these attributes.
pub fn queries(attributes: &[Attribute]) -> Vec<Query> {
    let text = |name, description| Query::new(name, QueryKind::Text, description);
    let mut all = vec![
        Query::new("limit", QueryKind::Integer, "Items on a page; 500 without it, 0 for all"),
        text(CONTINUE, "`meta.continue` of the page before: the page after it, of the same state"),
        text(
            "sort",
            "Attributes to sort by, with commas, `-` before one for the reverse: `-priority,age`. Those that can be \
             filtered by, `age` and `priority`",
        ),
        text(FIELDS, "Fields of the items to return, with commas, dots for inner ones: `name,free.cpu`"),
    ];
    for attribute in attributes {
        match attribute {
            Attribute::Group(grouping) => all.push(text(grouping.name, grouping.filter)),
            other => all.extend(filters(*other).iter().map(|(name, description)| text(name, description))),
        }
    }
    all
}

/// Returns the parameters that filter by an attribute.
const fn filters(attribute: Attribute) -> &'static [(&'static str, &'static str)] {
    match attribute {
        Attribute::Namespace => &[("namespace", "Only items of this namespace; several with commas")],
        Attribute::Name => &[("name", "Only items whose name begins so; several with commas")],
        Attribute::Reason => &[("reason", "Only items with this reason code; several with commas")],
        Attribute::Owner => {
            &[("owner", "Only pods of this controller, `Kind/name` or its name; several with commas")]
        }
        Attribute::Node => &[("node", "Only items on this node; several with commas")],
        Attribute::Gang => {
            &[("gang", "Only items of this gang, `namespace/name` or its name; several with commas")]
        }
        Attribute::Stage => &[("stage", "Only items in this stage; several with commas")],
        Attribute::Judgement => &[(
            "judgement",
            "Only decisions that are this to us: `LowerScore`, `Infeasible`, `RefusedByThem`; several with commas",
        )],
        Attribute::Labels => {
            &[("selector", "Only items whose labels it selects, as in kubectl: `app=web,tier!=db`")]
        }
        Attribute::Age => &[
            ("olderThan", "Only items created longer ago than this: `90s`, `5m`, `1h30m`"),
            ("youngerThan", "Only items created less long ago than this: `90s`, `5m`, `1h30m`"),
        ],
        Attribute::Priority => &[
            ("minPriority", "Only items of at least this priority"),
            ("maxPriority", "Only items of at most this priority"),
        ],
        Attribute::Group(_) => &[],
    }
}

/// Reads the parameters of a list.
pub(super) fn list(params: &PathParams, attributes: &[Attribute], token: Token) -> Result<List, ReadError> {
    let limit = parsed::<usize>(params, "limit", "a whole number")?.unwrap_or(DEFAULT_LIMIT);
    let texts = attributes.iter().filter(|attribute| attribute.is_text()).filter_map(|attribute| {
        let wanted = words(params, attribute.as_str()).transpose()?;
        Some(wanted.map(|words| (*attribute, words.into_iter().map(str::to_owned).collect())))
    });
    let priority = |name| parsed::<i64>(params, name, "a whole number");
    let filters = Filters {
        texts: texts.collect::<Result<_, _>>()?,
        selector: selector(params)?,
        older_than: age(params, "olderThan")?,
        younger_than: age(params, "youngerThan")?,
        min_priority: priority("minPriority")?,
        max_priority: priority("maxPriority")?,
    };
    Ok(List { filters, sort: sort(params, attributes)?, limit: (limit > 0).then_some(limit), token })
}

/// Returns the words of a parameter with commas. Fails when one is empty.
pub(super) fn words<'p>(params: &'p PathParams, name: &str) -> Result<Option<Vec<&'p str>>, ReadError> {
    let Some(text) = params.get(name) else { return Ok(None) };
    let words: Vec<&str> = text.split(',').map(str::trim).collect();
    if words.contains(&"") {
        return Err(invalid(name, text, "it must be words with commas between them, none of them empty"));
    }
    Ok(Some(words))
}

fn sort(params: &PathParams, attributes: &[Attribute]) -> Result<Vec<(Attribute, bool)>, ReadError> {
    let known = || attributes.iter().filter(|attribute| **attribute != Attribute::Labels);
    let each = words(params, "sort")?.unwrap_or_default().into_iter().map(|word| {
        let (name, descending) = word.strip_prefix('-').map_or((word, false), |name| (name, true));
        let attribute = known().find(|attribute| attribute.as_str() == name).ok_or_else(|| {
            let names: Vec<&str> = known().map(|attribute| attribute.as_str()).collect();
            invalid("sort", word, &format!("known: {}, each also with `-` before it", names.join(", ")))
        })?;
        Ok((*attribute, descending))
    });
    each.collect()
}

fn selector(params: &PathParams) -> Result<Option<LabelSelector>, ReadError> {
    let Some(text) = params.get(Attribute::Labels.as_str()) else { return Ok(None) };
    LabelSelector::parse(text).map(Some).map_err(|problem| invalid("selector", text, &problem))
}

fn age(params: &PathParams, name: &str) -> Result<Option<Duration>, ReadError> {
    let Some(text) = params.get(name) else { return Ok(None) };
    let what = "it must be a duration such as 90s, 5m or 1h30m";
    duration::parse(text).map(Some).ok_or_else(|| invalid(name, text, what))
}

fn parsed<T: std::str::FromStr>(params: &PathParams, name: &str, what: &str) -> Result<Option<T>, ReadError> {
    let Some(text) = params.get(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| invalid(name, text, &format!("it must be {what}")))
}

pub(super) fn invalid(name: &str, value: &str, problem: &str) -> ReadError {
    let shown: String = value.chars().take(100).collect();
    let message = format!("parameter `{name}` has the value `{shown}`: {problem}");
    ReadError::BadRequest { code: "InvalidParameter", message }
}
