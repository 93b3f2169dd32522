//! What all lists share: which items are asked for, in which order, and how many of them are shown.

use clap::Args;
use serde_json::Value;

use super::server::ServerArgs;
use super::text::count;
use super::watch::{self, WatchArgs};

/// Rows of a table when nothing says how many: with its head and foot it fits 60 lines.
const ROWS: usize = 45;
/// Items that are asked for at once in a walk through all pages.
const PAGE: usize = 500;

/// The arguments of a command that prints a list: who is asked, whether again, and which items.
#[derive(Debug, Args)]
pub(crate) struct AskedList {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) watch: WatchArgs,
    #[command(flatten)]
    pub(crate) list: ListArgs,
}

impl AskedList {
    /// Prints what `page` makes of the list, again and again with `--watch`. What is empty only among what the filters admit
    /// says so.
    pub(crate) fn run(
        &self,
        page: impl Fn(&ListArgs, &ServerArgs) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let Self { server, watch, list } = self;
        watch::run(watch, server, || Ok(list.said(server, page(list, server)?)))
    }
}

/// The filters of the REST API. A list that cannot be filtered by one of them says which it knows.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filters (several values with commas)")]
pub(crate) struct ListArgs {
    /// Only names that begin so
    #[arg(long, value_name = "PREFIX")]
    pub(crate) name: Option<String>,
    /// Only pods of this controller
    #[arg(long, value_name = "KIND/NAME")]
    pub(crate) owner: Option<String>,
    /// Only those with this reason code
    #[arg(long, value_name = "CODE")]
    pub(crate) reason: Option<String>,
    /// Only those of this gang
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(crate) gang: Option<String>,
    /// Only pods of this ElasticQuota
    #[arg(long, value_name = "NAME")]
    pub(crate) quota: Option<String>,
    /// Only pods of this Queue of kube-batch
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
    /// Only those on this node, or nominated to it
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Only those in this stage, such as backoff
    #[arg(long, value_name = "STAGE")]
    pub(crate) stage: Option<String>,
    /// Only those whose labels it selects
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
    /// Only those created longer ago than this
    #[arg(long, value_name = "5m")]
    pub(crate) older_than: Option<String>,
    /// Only those created less long ago than this
    #[arg(long, value_name = "5m")]
    pub(crate) younger_than: Option<String>,
    /// Only those of at least this priority
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) min_priority: Option<i64>,
    /// Only those of at most this priority
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) max_priority: Option<i64>,
    /// Sort each item by these, `-` for the reverse: -priority,age
    #[arg(long, value_name = "ATTRIBUTES", allow_hyphen_values = true)]
    pub(crate) sort: Option<String>,
    /// Rows at most; 45 without it and without --all
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// A row for each item instead of groups, and all of them; so do -o json and yaml
    #[arg(long)]
    pub(crate) all: bool,
}

impl ListArgs {
    /// Returns whether each item has a row, instead of groups.
    pub(crate) fn wants_items(&self, server: &ServerArgs) -> bool {
        self.all || self.sort.is_some() || self.node.is_some() || server.is_for_programs()
    }

    /// Returns how many rows are shown at most; `None` for all.
    pub(crate) fn rows(&self, server: &ServerArgs) -> Option<usize> {
        let is_all = self.all || server.is_for_programs();
        let limit = self.limit.and_then(|limit| usize::try_from(limit).ok());
        limit.or((!is_all).then_some(ROWS))
    }

    /// Returns what is said of a list. A single sentence says that it is empty, which with filters is true of what they admit.
    pub(crate) fn said(&self, server: &ServerArgs, text: String) -> String {
        let unsorted = Self { sort: None, ..self.clone() };
        let is_narrowed = !unsorted.query(server, &[]).is_empty();
        match text.strip_suffix('.').filter(|text| is_narrowed && !text.contains('\n')) {
            Some(nothing) if !server.is_for_programs() => {
                format!("{nothing} among those that the filters admit.")
            }
            _ => text,
        }
    }

    /// Returns the filters and the order as a query, with a leading `?`; `more` comes first.
    pub(crate) fn query(&self, server: &ServerArgs, more: &[(&str, &str)]) -> String {
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let filters = [
            ("namespace", server.namespace.clone()),
            ("name", self.name.clone()),
            ("owner", self.owner.clone()),
            ("reason", self.reason.clone()),
            ("gang", self.gang.clone()),
            ("quota", self.quota.clone()),
            ("queue", self.queue.clone()),
            ("node", self.node.clone()),
            ("stage", self.stage.clone()),
            ("selector", self.selector.clone()),
            ("olderThan", self.older_than.clone()),
            ("youngerThan", self.younger_than.clone()),
            ("minPriority", number(self.min_priority)),
            ("maxPriority", number(self.max_priority)),
            ("sort", self.sort.clone()),
        ];
        let filters = filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let all = more.iter().copied().chain(filters);
        let pairs: Vec<String> = all.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }
}

/// Reads the items of a list from page to page, at most `rows` of them; the body is the first page's with all items.
/// `query` has the parameters, with a leading `?` or empty.
pub(crate) fn walk(
    server: &ServerArgs,
    path: &str,
    query: &str,
    items: &str,
    rows: Option<usize>,
) -> anyhow::Result<Value> {
    let glue = if query.is_empty() { '?' } else { '&' };
    let mut body = Value::Null;
    let mut token = String::new();
    loop {
        let known = body.get(items).and_then(Value::as_array).map_or(0, Vec::len);
        let limit = rows.map_or(PAGE, |rows| rows.saturating_sub(known).min(PAGE));
        let mut page = server.body(&format!("{path}{query}{glue}limit={limit}{token}"))?;
        let next = page.pointer("/meta/continue").and_then(Value::as_str).map(str::to_owned);
        let more = page.get_mut(items).and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        let (is_empty, reached) = (more.is_empty(), known + more.len());
        if body.is_null() {
            body = page;
        }
        if let Some(all) = body.get_mut(items).and_then(Value::as_array_mut) {
            all.extend(more);
        }
        match next.filter(|_| !is_empty && rows.is_none_or(|rows| reached < rows)) {
            Some(next) => token = format!("&continue={}", encoded(&next)),
            None => break,
        }
    }
    if let Some(meta) = body.get_mut("meta").and_then(Value::as_object_mut) {
        meta.remove("continue");
        meta.remove("remainingItemCount");
    }
    Ok(body)
}

/// Percent-encodes a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/,".contains(&byte);
    let each = text.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    each.collect()
}

/// Says how many rows a table leaves out, and how to see them; empty when it has all.
pub(crate) fn left_out(shown: usize, total: usize, thing: &str) -> String {
    match total.saturating_sub(shown) {
        0 => String::new(),
        left => format!("and {}: --limit {total} shows all\n", count(left, &format!("more {thing}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::server::testing::args;
    use super::*;

    #[test]
    fn flags_become_parameters() {
        let list = ListArgs {
            selector: Some("app in (a,b),tier!=db".into()),
            sort: Some("-priority".into()),
            min_priority: Some(-5),
            ..ListArgs::default()
        };
        let query = list.query(&args(Some("a")), &[("by", "owner,shape")]);
        let expected = "?by=owner,shape&namespace=a&selector=app%20in%20%28a,b%29,tier%21%3Ddb&minPriority=-5\
                        &sort=-priority";
        assert_eq!(query, expected);
        assert_eq!(ListArgs::default().query(&args(None), &[]), "");
    }

    #[test]
    fn an_empty_list_is_empty_of_what_the_filters_admit() {
        let list = |sort: &str| ListArgs { sort: Some(sort.into()), ..ListArgs::default() };
        let said = |namespace, text: &str| list("age").said(&args(namespace), text.to_owned());
        assert_eq!(said(None, "No pod is pending."), "No pod is pending.");
        let narrowed = "No pod is pending among those that the filters admit.";
        assert_eq!(said(Some("a"), "No pod is pending."), narrowed);
        assert_eq!(said(Some("a"), "POD\na."), "POD\na.");
    }

    #[test]
    fn groups_are_shown_unless_items_are_asked_for() {
        let (server, list) = (args(None), ListArgs::default());
        assert_eq!((list.wants_items(&server), list.rows(&server)), (false, Some(ROWS)));
        let all = ListArgs { all: true, ..ListArgs::default() };
        assert_eq!((all.wants_items(&server), all.rows(&server)), (true, None));
        let sorted = ListArgs { sort: Some("age".into()), limit: Some(3), ..ListArgs::default() };
        assert_eq!((sorted.wants_items(&server), sorted.rows(&server)), (true, Some(3)));
    }
}
