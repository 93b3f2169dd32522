//! docs/gangs.md: each of its manifests makes a gang of the dialect under whose heading it stands, with the quorum and the
//! mode that are shown, and the gang runs.

use pellucid::model::gang::Dialect;

use crate::blocks::{Block, parse};
use crate::common::demo::Demo;
use crate::document::{Document, apply};

/// Path of a gang in the guide, up to its name.
const GANG: &str = "/apis/v1/plugins/Coscheduling/gang/demo/";

/// Returns what stands behind a text, up to a character that cannot be in a word.
fn behind<'a>(text: &'a str, mark: &str) -> &'a str {
    let (_, rest) = text.split_once(mark).unwrap_or_else(|| panic!("no {mark:?} in {text}"));
    rest.split([' ', ',', '(']).next().unwrap_or_default()
}

#[test]
fn every_dialect_of_the_guide_makes_a_gang() {
    let demo = Demo::start(&["--still"]);
    let guide = Document::read("docs/gangs.md");
    for dialect in Dialect::ALL {
        let name = dialect.as_str();
        let section = guide.text().split_once(&format!("\n## {name}\n")).map(|(_, rest)| rest);
        let section = section.unwrap_or_else(|| panic!("docs/gangs.md has no section {name}"));
        let section = section.split("\n## ").next().unwrap_or_default();
        let lines: Vec<&str> = section.lines().collect();
        for block in parse(&lines).unwrap_or_else(|why| panic!("{name}: {why}")) {
            match block {
                Block::Apply { text, .. } => {
                    apply(&demo, &text).unwrap_or_else(|why| panic!("{name}: {why}"))
                }
                Block::Commands(steps) => {
                    let step = &steps[0];
                    let shown = lines[step.shown.clone().expect("a sample").start];
                    let gang = behind(&step.command, GANG);
                    let body = demo.wait(&format!("{GANG}{gang}"), |body| body["state"] == "Running");
                    assert_eq!((body["dialect"].as_str(), behind(shown, "declared as ")), (Some(name), name));
                    assert_eq!(body["minRequiredNumber"].to_string(), behind(shown, "quorum "), "{name}");
                    let wait = body["waitTime"].as_u64().expect("nanoseconds") / 1_000_000_000;
                    assert_eq!(wait.to_string(), behind(shown, "wait "), "{name}");
                    assert!(shown.contains(body["mode"].as_str().expect("a mode")), "{shown}");
                }
                Block::File { .. } | Block::Elsewhere { .. } => {}
            }
        }
    }
}
