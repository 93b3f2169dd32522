//! What would help a pod or gang as text: a few fixes, each with its commands and whether it holds with the other pending
//! pods.

use std::fmt::Write as _;

use pellucid_api::rest::suggestions::{Fix, Suggestions};

use super::explain_text::line;
use super::out::{Paint, Style};
use super::server::ServerArgs;
use super::text::{clean, count};

/// Number of fixes that are shown.
const SHOWN: usize = 3;
/// Number of commands that are shown of one fix.
const COMMANDS: usize = 4;

/// Asks what would help the object that is explained at `path`, and formats it. An explanation is worth showing without
/// that, so a failure becomes a line.
pub(crate) fn of(server: &ServerArgs, path: &str, paint: Paint) -> String {
    match ask(server, path, SHOWN) {
        Ok(body) => fixes(&body, paint),
        Err(error) => format!("\n{}\n", paint.apply(Style::Dim, &unknown(&error))),
    }
}

/// Asks for at most `most` things that would help the object that is explained at `path`.
pub(crate) fn ask(server: &ServerArgs, path: &str, most: usize) -> anyhow::Result<Suggestions> {
    let asked = format!("{path}/suggestions?max={most}");
    server.understood(&asked, server.body(&asked)?)
}

/// Says that what would help could not be asked for.
pub(crate) fn unknown(error: &anyhow::Error) -> String {
    let why = error.to_string();
    clean(&format!("What would help is not known: {}", why.lines().next().unwrap_or_default()))
}

/// Formats what would help; empty for what fits as it is.
pub(crate) fn fixes(body: &Suggestions, paint: Paint) -> String {
    if body.fits_now {
        return String::new();
    }
    let mut out = String::from("\n");
    if body.fixes.is_empty() {
        if let Some(note) = &body.note {
            line(&mut out, &clean(note));
        }
        return out;
    }
    line(&mut out, &paint.apply(Style::Bold, "What would help, each tried on a copy of the cluster:"));
    for (at, fix) in body.fixes.iter().enumerate() {
        one(&mut out, at + 1, fix);
    }
    out
}

fn one(out: &mut String, number: usize, fix: &Fix) {
    let mut resolvers: Vec<&str> = fix.parts.iter().map(|part| part.resolver.as_str()).collect();
    resolvers.dedup();
    line(out, &clean(&format!("{number}. {} ({})", fix.text, resolvers.join(", "))));
    let mut commands: Vec<&str> = fix.parts.iter().filter_map(|part| part.command.as_deref()).collect();
    commands.dedup();
    for command in commands.iter().take(COMMANDS) {
        line(out, &clean(&format!("   $ {command}")));
    }
    if commands.len() > COMMANDS {
        line(out, &format!("   and {} more", count(commands.len() - COMMANDS, "command")));
    }
    let mut facts = Vec::new();
    if fix.parts.iter().any(|part| part.recreate && part.command.is_none()) {
        facts.push("made anew".to_owned());
    }
    facts.extend(place(fix));
    facts.extend(fix.gang.as_ref().map(|gang| gang.text.clone()));
    facts.extend(company(fix));
    if !facts.is_empty() {
        line(out, &clean(&format!("   {}", facts.join("; "))));
    }
}

/// Says where the pod goes: among the others if that is known.
fn place(fix: &Fix) -> Option<String> {
    let is_alone = fix.node_in_company.is_none() && fix.in_company.is_some();
    let node = fix.node_in_company.as_ref().or(fix.node.as_ref())?;
    Some(format!("{} {node}", if is_alone { "alone it goes to" } else { "it goes to" }))
}

/// Says whether a fix holds with the other pending pods.
fn company(fix: &Fix) -> Option<String> {
    let mut text = match fix.in_company.as_deref()? {
        "holds" if fix.widened => "holds with the other pending pods, whom some parts serve".to_owned(),
        "holds" => "holds with the other pending pods".to_owned(),
        "taken" => "other pending pods take the room".to_owned(),
        _ => "not known whether it holds with the other pending pods".to_owned(),
    };
    if !fix.taken_by.is_empty() {
        let _ = write!(text, ": {}", fix.taken_by.join(", "));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn body(fixes: Value) -> Suggestions {
        let meta = json!({"generatedAt": "", "snapshotGeneration": 1, "leader": true});
        let body = json!({"meta": meta, "namespace": "ns", "name": "p", "fitsNow": false, "conflicts": [],
            "fixes": fixes, "note": "Nothing helps."});
        serde_json::from_value(body).expect("a body")
    }

    fn fix(commands: &[&str], more: Value) -> Value {
        let part = |command: &&str| {
            json!({"text": "do it", "edit": {"uncordon": "n"}, "command": command, "recreate": false,
                "resolver": "cluster operator", "cost": 1})
        };
        let mut fix = json!({"text": "do it", "cost": 1, "verified": true, "edits": [],
            "parts": commands.iter().map(part).collect::<Vec<_>>()});
        for (field, value) in more.as_object().expect("fields") {
            fix[field] = value.clone();
        }
        fix
    }

    #[test]
    fn a_fix_has_its_commands_and_says_whether_it_holds() {
        let taken =
            fix(&["a", "a", "b"], json!({"node": "n", "inCompany": "taken", "takenBy": ["ns/x", "ns/y"]}));
        let holds = fix(&["a", "b", "c", "d", "e\u{1b}"], json!({"inCompany": "holds", "widened": true}));
        let text =
            fixes(&body(json!([taken, holds, fix(&[], json!({"inCompany": "unknown"}))])), Paint::plain());
        let expected = "\nWhat would help, each tried on a copy of the cluster:\n\
            1. do it (cluster operator)\n   $ a\n   $ b\n   \
            alone it goes to n; other pending pods take the room: ns/x, ns/y\n\
            2. do it (cluster operator)\n   $ a\n   $ b\n   $ c\n   $ d\n   and 1 command more\n   \
            holds with the other pending pods, whom some parts serve\n\
            3. do it ()\n   not known whether it holds with the other pending pods\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn where_nothing_helps_the_note_says_so() {
        assert_eq!(fixes(&body(json!([])), Paint::plain()), "\nNothing helps.\n");
        let fits = Suggestions { fits_now: true, ..body(json!([])) };
        assert_eq!(fixes(&fits, Paint::plain()), "");
    }
}
