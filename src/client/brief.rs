//! `--brief`: a pod or gang in three lines: the verdict, never or not now, and the best fix.

use pellucid_api::rest::explain::{Outlook, PodExplanation};
use pellucid_api::rest::gang_explain::GangExplanation;
use pellucid_api::rest::suggestions::Suggestions;

use super::fix_text;
use super::text::clean;

/// Formats a pod. `help` is what would help it, asked for a pending pod only.
pub(crate) fn pod(body: &PodExplanation, help: Option<anyhow::Result<Suggestions>>) -> String {
    let why = if body.summary.is_empty() { &body.message } else { &body.summary };
    let verdict = format!("{}/{}: {}. {why}", body.namespace, body.name, body.verdict);
    lines(&verdict, body.outlook.as_ref(), help)
}

/// Formats a gang. `help` is what would help it, asked for one that lacks something.
pub(crate) fn gang(body: &GangExplanation, help: Option<anyhow::Result<Suggestions>>) -> String {
    let verdict = format!("{}/{}: {}. {}", body.namespace, body.name, body.state, body.verdict.message);
    lines(&verdict, body.outlook.as_ref(), help)
}

fn lines(verdict: &str, outlook: Option<&Outlook>, help: Option<anyhow::Result<Suggestions>>) -> String {
    let mut lines = vec![verdict.trim_end_matches([' ', '.']).to_owned()];
    if let Some(help) = help {
        lines.push(match outlook {
            Some(outlook) => format!("Outlook: {}. {}", outlook.code, outlook.message),
            None => "Outlook: NotKnown.".to_owned(),
        });
        lines.push(best(&help));
    }
    lines.iter().map(|line| clean(line)).collect::<Vec<_>>().join("\n")
}

fn best(help: &anyhow::Result<Suggestions>) -> String {
    let help = match help {
        Ok(help) => help,
        Err(error) => return fix_text::unknown(error),
    };
    match help.fixes.first() {
        _ if help.fits_now => "Nothing is to be mended.".to_owned(),
        None => help.note.clone().unwrap_or_else(|| "No fix was found.".to_owned()),
        Some(fix) => {
            let command = fix.parts.iter().find_map(|part| part.command.as_deref());
            let command = command.map(|command| format!(": {command}")).unwrap_or_default();
            format!("Best fix: {}{command}", fix.text)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pending_pod_has_three_lines_and_a_placed_one_has_one() {
        let outlook =
            Outlook { code: "NotNow".into(), message: "It fits later.".into(), ..Outlook::default() };
        let body = PodExplanation {
            namespace: "a".into(),
            name: "p".into(),
            verdict: "refused".into(),
            summary: "No node\nfits.".into(),
            outlook: Some(outlook),
            ..PodExplanation::default()
        };
        let part = json!({"text": "open it", "edit": {"uncordon": "n"}, "command": "kubectl uncordon n",
            "recreate": false, "resolver": "", "cost": 1});
        let fix = json!({"text": "open node n", "cost": 1, "verified": true, "edits": [], "parts": [part]});
        let fix = serde_json::from_value(fix).unwrap();
        let help = Suggestions { fixes: vec![fix], ..Suggestions::default() };
        let expected = "a/p: refused. No node fits\nOutlook: NotNow. It fits later.\n\
                        Best fix: open node n: kubectl uncordon n";
        assert_eq!(pod(&body, Some(Ok(help))), expected);
        assert_eq!(pod(&body, None), "a/p: refused. No node fits");
        let unknown = pod(&body, Some(Err(anyhow::anyhow!("gone"))));
        assert!(unknown.ends_with("\nWhat would help is not known: gone"), "{unknown}");
    }
}
