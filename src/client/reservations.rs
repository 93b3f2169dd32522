//! `pellucid reservations`: what each reservation holds and has left, or one with who uses it, who could, and why it waits.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use pellucid_api::rest::explain::PodExplanation;
use pellucid_api::rest::history::PodHistory;
use pellucid_api::rest::reservation::{ReservationDetail, ReservationList, ReservationRow};

use super::filters::encoded;
use super::out::{Paint, Style, fitted, width};
use super::server::ServerArgs;
use super::table::Table;
use super::text::{clean, count, next, one, table};
use super::{explain_text, fix_text, history};

const RESERVATIONS: &str = "/apis/v1/plugins/Reservation/reservations";
const HISTORY: &str = "/apis/v1/history/objects/Reservation";
/// Rows without `--all`: with the lines below them they fit 60 lines.
const ROWS: usize = 54;
/// Most rows that a page of the API has.
const PAGE: usize = 1000;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pellucid reservations --phase Available\n  pellucid reservations web\n  pellucid reservations web --history"
)]
pub struct ReservationsArgs {
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Reservation to explain
    #[arg(value_name = "RESERVATION")]
    reservation: Option<String>,
    /// Say what happened to the reservation, also after it is gone
    #[arg(long, requires = "reservation")]
    history: bool,
    /// Only reservations in this phase
    #[arg(long, value_name = "PHASE", ignore_case = true, conflicts_with = "reservation")]
    phase: Option<Phase>,
    /// Up to 1,000 rows
    #[arg(long, conflicts_with = "reservation")]
    all: bool,
}

/// The phases of a reservation.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Phase {
    Pending,
    Available,
    Succeeded,
    Failed,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Available => "Available",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }
}

pub(crate) fn run(args: &ReservationsArgs) -> anyhow::Result<String> {
    let (server, paint) = (&args.server, Paint::for_stdout());
    let Some(name) = &args.reservation else {
        let phase = args.phase.map(|phase| format!("&stage={}", phase.name())).unwrap_or_default();
        let rows = if args.all { PAGE } else { ROWS };
        let path = format!("{RESERVATIONS}?limit={rows}{phase}");
        return server.show(&path, |body: &ReservationList| listed(body, paint));
    };
    if args.history {
        let path = format!("{HISTORY}/{}", encoded(name));
        return server.show(&path, |body: &PodHistory| history::entries(body, paint));
    }
    let path = format!("{RESERVATIONS}/{}", encoded(name));
    let mut body = server.body(&path)?;
    let explained = body["explanation"].as_str().map(str::to_owned);
    let explanation = explained.as_deref().map(|path| server.body(path)).transpose()?;
    if server.is_for_programs() {
        if let (Some(body), Some(explanation)) = (body.as_object_mut(), explanation) {
            body.insert("verdict".to_owned(), explanation);
        }
        return server.value(&body);
    }
    let detail: ReservationDetail = server.understood(&path, body)?;
    let mut text = described(&detail, paint);
    if let (Some(at), Some(explanation)) = (explained, explanation) {
        let explanation: PodExplanation = server.understood(&at, explanation)?;
        text +=
            &format!("\n\n{}\n{}", explain_text::pod(&explanation, paint), fix_text::of(server, &at, paint));
    }
    Ok(text)
}

fn amounts(of: &BTreeMap<String, String>) -> String {
    let all: Vec<String> = of.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

fn listed(body: &ReservationList, paint: Paint) -> String {
    if body.items.is_empty() {
        return "There are no reservations.".to_owned();
    }
    let header = ["RESERVATION", "PHASE", "NODE", "HOLDS", "LEFT", "OWNERS", "EXPIRES", "MESSAGE"];
    let mut table = Table::new(&header, 5..6).elided(0..8).sparing([7, 6]);
    for row in &body.items {
        let or_none = |text: &Option<String>| clean(text.as_deref().unwrap_or("-"));
        table.add_row([
            one(clean(&row.name)),
            one(&row.phase),
            one(or_none(&row.node)),
            one(amounts(&row.allocatable)),
            one(amounts(&row.left)),
            one(row.owners),
            one(or_none(&row.expires)),
            one(or_none(&row.message)),
        ]);
    }
    let shown = paint.apply(Style::Bold, &format!("{}.", count(body.items.len(), "reservation")));
    let more = if body.truncated { "\nThere are more: --all, --phase" } else { "" };
    let is_telling = |row: &&ReservationRow| row.message.is_some();
    let example = body.items.iter().find(is_telling).or(body.items.first()).map_or("", |row| &row.name);
    format!("{}\n\n{shown}{more}\n{}", table.text(), next(&format!("reservations {example}")))
}

fn described(body: &ReservationDetail, paint: Paint) -> String {
    let row = &body.row;
    let at = row.node.as_deref().map(|node| format!(" on {node}")).unwrap_or_default();
    let style = if row.phase == "Available" { Style::Green } else { Style::Yellow };
    let mut lines = vec![paint.apply(style, &clean(&format!("{}: {}{at}", row.name, row.phase)))];
    let mut say = |text: String| lines.push(fitted(&clean(&text), width()));
    say(format!("holds {}; left {}", amounts(&row.allocatable), amounts(&row.left)));
    let policy = if body.allocate_policy.is_empty() { "Default" } else { &body.allocate_policy };
    let once = if body.allocate_once { "one owner uses it up" } else { "owners come and go" };
    let expires = row.expires.as_deref().map_or("never expires".to_owned(), |at| format!("expires {at}"));
    say(format!("allocatePolicy {policy}; {once}; {expires}"));
    if let Some(message) = row.message.as_deref().filter(|_| body.explanation.is_none()) {
        say(format!("cannot be placed: {message}"));
    }
    let mut text = lines.join("\n");
    if !body.current_owners.is_empty() {
        let mut owners = table(&["OWNER", "REQUESTS"], []);
        for pod in &body.current_owners {
            owners.add_row([
                one(clean(&format!("{}/{}", pod.namespace, pod.name))),
                one(amounts(&pod.requests)),
            ]);
        }
        text += &format!("\n\n{}", owners.text());
    }
    if !body.candidates.is_empty() {
        let mut waiting = table(&["OWNER THAT WAITS", "WHAT KEEPS IT FROM THE RESERVATION"], []);
        for candidate in &body.candidates {
            waiting.add_row([one(clean(&candidate.pod)), one(clean(&candidate.reason))]);
        }
        text += &format!("\n\n{}", waiting.text());
        text += &format!("\n{}", next(&format!("explain pod {}", body.candidates[0].pod)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::text::testing::assert_in_order;
    use super::*;
    use pellucid_api::rest::reservation::ReservationCandidate;

    fn row(name: &str, phase: &str) -> ReservationRow {
        let amounts = BTreeMap::from([("cpu".to_owned(), "2".to_owned())]);
        let message = (phase == "Pending").then(|| "0/1 nodes are available: 1 Insufficient cpu.".to_owned());
        let node = (phase == "Available").then(|| "n1".to_owned());
        ReservationRow {
            name: name.into(),
            phase: phase.into(),
            node,
            allocatable: amounts.clone(),
            left: amounts,
            message,
            ..ReservationRow::default()
        }
    }

    #[test]
    fn a_list_leads_to_the_reservation_that_waits() {
        let items = vec![row("a", "Available"), row("b", "Pending")];
        let body = ReservationList { items, ..ReservationList::default() };
        let text = listed(&body, Paint::plain());
        assert_in_order(&text, &["a", "Available", "n1", "cpu 2", "b", "Pending", "2 reservations."]);
        assert!(text.ends_with("pellucid reservations b"), "{text}");
    }

    #[test]
    fn one_says_who_could_use_it() {
        let candidates =
            vec![ReservationCandidate { pod: "team/web".into(), reason: "too little cpu left".into() }];
        let body =
            ReservationDetail { row: row("a", "Available"), candidates, ..ReservationDetail::default() };
        let text = described(&body, Paint::plain());
        let said = [
            "a: Available on n1",
            "holds cpu 2; left cpu 2",
            "never expires",
            "team/web",
            "too little cpu left",
        ];
        assert_in_order(&text, &said);
    }
}
