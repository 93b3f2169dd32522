//! `docs/writing-a-plugin.md` against the sources: its code is that of the examples, its versions are ours, and it names
//! every hook and every extension point.

use std::fs;

use super::source::root;

const GUIDE: &str = "docs/writing-a-plugin.md";

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the blocks of the guide in a language, each with the number of its first line. A block in `rust,ignore` is no
/// excerpt.
fn blocks(language: &str) -> Vec<(usize, Vec<String>)> {
    let (text, mut found) = (read(GUIDE), Vec::new());
    let mut open: Option<(String, usize, Vec<String>)> = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(named) = line.strip_prefix("```") {
            match open.take() {
                Some(block) => found.push(block),
                None => open = Some((named.to_owned(), number + 2, Vec::new())),
            }
        } else if let Some((_, _, lines)) = &mut open {
            lines.push(line.to_owned());
        }
    }
    let wanted = found.into_iter().filter(|(named, ..)| named == language);
    wanted.map(|(_, number, lines)| (number, lines)).collect()
}

/// Returns a text without indentation, each line between two line breaks.
fn flush<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().fold("\n".to_owned(), |text, line| text + line.trim() + "\n")
}

#[test]
fn the_code_of_the_guide_stands_in_an_example() {
    let examples = ["examples/favourite_node.rs", "examples/licence_seats.rs"].map(read);
    let examples = examples.each_ref().map(|text| flush(text.lines()));
    let excerpts = blocks("rust");
    assert!(excerpts.len() > 6, "only {} excerpts", excerpts.len());
    for (number, lines) in excerpts {
        let excerpt = flush(lines.iter().map(String::as_str));
        let is_there = examples.iter().any(|example| example.contains(&excerpt));
        assert!(is_there, "{GUIDE}:{number}: in no example:{excerpt}");
    }
}

/// Returns the version of a dependency, as in `serde = "1"` or `serde = { version = "1" }`.
fn version(dependency: &str) -> Option<&str> {
    let (_, given) = dependency.split_once(" = ")?;
    let given = given.split_once("version = ").map_or(given, |(_, version)| version);
    given.strip_prefix('"')?.split('"').next()
}

#[test]
fn the_versions_of_the_guide_are_ours() {
    let manifest = read("Cargo.toml");
    let manifests = blocks("toml");
    let shown = manifests.iter().flat_map(|(_, lines)| lines);
    let shown = shown.skip_while(|line| *line != "[dependencies]").skip(1);
    let mut n = 0;
    for line in shown.filter(|line| !line.contains("path = ")) {
        let name = line.split(' ').next().unwrap();
        let begin = format!("{name} = ");
        let ours = manifest.lines().filter(|line| line.starts_with(&begin)).find_map(version);
        assert_eq!(version(line), ours, "{GUIDE}: {line}");
        n += 1;
    }
    assert!(n >= 4, "only {n} dependencies are shown");
}

/// Returns the part of a file between two texts.
fn between(path: &str, begin: &str, end: &str) -> String {
    let text = read(path);
    let (_, rest) = text.split_once(begin).unwrap();
    rest.split_once(end).unwrap().0.to_owned()
}

#[test]
fn the_guide_names_every_hook_and_every_extension_point() {
    let guide = read(GUIDE);
    let hooks = between("src/cluster/derived.rs", "pub trait DerivedState", "\n}\n");
    let hooks = hooks.lines().filter_map(|line| line.strip_prefix("    fn ")?.split('(').next());
    let points = between("src/framework/plugin.rs", "\n    accessors! {", "\n    }\n");
    let points = points.lines().filter_map(|line| line.trim().trim_end_matches(';').split_once(" -> "));
    let named: Vec<&str> = hooks.chain(points.map(|(_, point)| point)).collect();
    assert!(named.len() > 30, "only {} are found: {named:?}", named.len());
    let missing: Vec<&&str> = named.iter().filter(|name| !guide.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "{GUIDE} does not name {missing:?}");
}
