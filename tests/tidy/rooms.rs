//! Rules 1 and 2 of the house, and who may know whom.

use std::collections::BTreeSet;

use super::imports::{Import, imports};
use super::source::{Source, root, sources};

/// Rooms without I/O, clock, randomness and logging.
const PURE: &[&str] = &["model", "cluster", "queue", "framework", "plugins", "cycle", "diagnosis", "config"];

/// The dependencies a pure room may use. A new one must be argued for here.
const PURE_DEPENDENCIES: &[&str] = &["pellucid_api", "serde", "serde_json", "smallvec", "thiserror"];

/// More of them for single files of pure rooms, each with its reason.
const PURE_EXCEPTIONS: &[(&str, &str)] = &[
    ("src/model/name.rs", "parking_lot"), // the table of interned names; its order decides nothing
    ("src/model/collections.rs", "rustc_hash"), // the map types of the house
    ("src/diagnosis/meta.rs", "jiff"),    // writes a wall time that came as an argument
    ("src/diagnosis/switches/mod.rs", "parking_lot"), // the list of recordings, set by requests while the thread runs
    ("src/config/", "serde_saphyr"),                  // reads YAML text that came as an argument
];

/// What a pure room may not name of `std`.
const IMPURE_STD: &[&str] = &[
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::*",
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::sync::mpsc",
    "std::hash::RandomState",
];

/// Parts of `std` that single pure files may name all the same, each with its reason.
const IMPURE_STD_EXCEPTIONS: &[(&str, &str)] = &[
    ("src/model/name.rs", "std::hash::RandomState"), // spreads names over shards, decides nothing
    ("src/model/cow_map.rs", "std::hash::RandomState"), // spreads keys over shards, decides nothing
];

/// The modules of `pellucid-api` a pure room may name.
const PURE_API: &[&str] = &["reason", "rest", "keys"];

/// Dependencies that only some rooms may use: wire types, HTTP, logs, terminals.
const GUARDED: &[(&str, &[&str])] = &[
    ("kube", &["kubernetes", "sandbox", "app"]),
    ("k8s_openapi", &["kubernetes", "sandbox"]),
    ("axum", &["http", "sandbox"]),
    ("utoipa_swagger_ui", &["http"]),
    ("hyper", &["http", "sandbox", "cli", "app"]),
    ("hyper_util", &["kubernetes", "http", "sandbox", "cli", "app"]),
    ("opentelemetry", &["app"]),
    ("opentelemetry_http", &["app"]),
    ("opentelemetry_otlp", &["app"]),
    ("opentelemetry_sdk", &["app"]),
    ("tracing_subscriber", &["app"]),
    ("tracing_appender", &["app"]),
    ("prometheus_client", &["app"]),
    ("clap", &["cli"]),
    ("flate2", &["app"]),
];

/// Files that may use `kube` outside `kubernetes/`, each with its reason.
const KUBE_FILES: &[&str] = &[
    "src/app/client.rs",     // plain calls of demo and replay, which are ordinary API clients
    "src/app/demo/",         // creates the demo's objects through that client
    "src/app/replay",        // creates the trace's objects through that client
    "src/sandbox/handle.rs", // hands out the client configuration that reaches it
];

/// Where the clock of the machine may be read. Credential plugins tell the end of a token in wall time.
const CLOCKS: &[&str] = &["src/app/clock.rs", "src/sandbox/clock.rs", "src/kubernetes/exec_plugin.rs"];

/// Which rooms each room may name.
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("model", &[]),
    // An input is a watch event or the report on an effect, and effects are the framework's.
    ("cluster", &["model", "framework"]),
    ("queue", &["model", "cluster"]),
    ("framework", &["model", "cluster"]),
    ("config", &["model", "framework"]),
    ("plugins", &["model", "cluster", "framework"]),
    ("cycle", &["model", "cluster", "queue", "framework", "diagnosis"]),
    ("diagnosis", &["model", "cluster", "queue", "framework", "cycle"]),
    ("kubernetes", &["model", "cluster", "framework"]),
    ("http", &["model"]),
    ("sandbox", &["model"]),
    ("replay", &["model"]),
];

fn room_sources() -> Vec<Source> {
    sources(&["src"]).into_iter().filter(|s| !s.is_test_file()).collect()
}

/// Collects `file:line: message` for every import that a check complains about.
fn complain(check: impl Fn(&Source, &Import) -> Option<String>) {
    let mut complaints = Vec::new();
    for source in room_sources() {
        for import in imports(&source) {
            if let Some(message) = check(&source, &import) {
                complaints.push(format!("{}:{}: {message}", source.path, import.line));
            }
        }
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

fn is_pure(source: &Source) -> bool {
    source.room().is_some_and(|room| PURE.contains(&room))
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn first(path: &str) -> &str {
    path.split("::").next().unwrap_or(path)
}

/// Returns the names of the dependencies in Cargo.toml, as code writes them.
fn dependencies() -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = text.split("[dependencies]\n").nth(1).unwrap();
    let lines = section.lines().take_while(|l| !l.starts_with('['));
    let names = lines.filter(|l| !l.starts_with('#')).filter_map(|l| l.split_once(" = "));
    names.map(|(name, _)| name.trim().replace('-', "_")).collect()
}

#[test]
fn pure_rooms_use_few_dependencies() {
    let dependencies = dependencies();
    assert!(dependencies.contains("kube") && dependencies.contains("tokio"), "{dependencies:?}");
    complain(|source, import| {
        let name = first(&import.path);
        let foreign = dependencies.contains(name) || ["log", "rand"].contains(&name);
        let allowed = PURE_DEPENDENCIES.contains(&name)
            || PURE_EXCEPTIONS.iter().any(|(file, d)| source.path.starts_with(file) && *d == name);
        (is_pure(source) && foreign && !allowed)
            .then(|| format!("a pure room does not use `{name}` (here `{}`)", import.path))
    });
}

#[test]
fn pure_rooms_do_no_io_and_read_no_clock() {
    complain(|source, import| {
        let banned = IMPURE_STD.iter().find(|b| is_below(&import.path, b))?;
        let excepted = IMPURE_STD_EXCEPTIONS.iter().any(|(file, b)| source.path == *file && b == banned);
        (is_pure(source) && !excepted).then(|| format!("a pure room does not use `{banned}`"))
    });
}

#[test]
fn pure_rooms_know_only_bodies_reasons_and_keys_of_the_api() {
    complain(|source, import| {
        let module = import.path.strip_prefix("pellucid_api::")?;
        (is_pure(source) && !PURE_API.contains(&first(module)))
            .then(|| format!("a pure room uses `pellucid_api::{{{}}}` alone", PURE_API.join(", ")))
    });
}

#[test]
fn wire_types_http_logs_and_terminals_stay_in_their_rooms() {
    complain(|source, import| {
        let (name, rooms) = GUARDED.iter().find(|(name, _)| *name == first(&import.path))?;
        let room = source.room()?;
        (!rooms.contains(&room) && !["main", "lib"].contains(&room))
            .then(|| format!("`{name}` belongs to {}", rooms.join(", ")))
    });
}

#[test]
fn the_scheduler_reaches_the_cluster_through_its_edge_alone() {
    complain(|source, import| {
        let is_allowed = source.room() == Some("kubernetes")
            || KUBE_FILES.iter().any(|file| source.path.starts_with(file));
        (first(&import.path) == "kube" && !is_allowed)
            .then(|| format!("`kube` outside kubernetes/ is for {}", KUBE_FILES.join(", ")))
    });
}

#[test]
fn the_clock_is_read_in_one_place() {
    complain(|source, import| {
        let reads = ["std::time::Instant", "std::time::SystemTime", "jiff::Timestamp::now", "Timestamp::now"];
        let reads = reads.iter().any(|clock| is_below(&import.path, clock));
        (reads && !CLOCKS.contains(&source.path.as_str()))
            .then(|| format!("`{}`: the clock is read in {}", import.path, CLOCKS.join(" and ")))
    });
}

#[test]
fn rooms_know_only_those_below_them() {
    complain(|source, import| {
        let room = source.room()?;
        let (_, known) = MAY_KNOW.iter().find(|(name, _)| *name == room)?;
        let other = first(import.path.strip_prefix("crate::")?);
        let is_room = root().join("src").join(other).is_dir();
        (is_room && other != room && !known.contains(&other))
            .then(|| format!("{room}/ does not know {other}/, only {}", known.join(", ")))
    });
}

#[test]
fn every_room_has_its_rule() {
    let ruled: BTreeSet<&str> = MAY_KNOW.iter().map(|(room, _)| *room).chain(["app", "cli"]).collect();
    let folders = std::fs::read_dir(root().join("src")).unwrap().map(|e| e.unwrap().path());
    for folder in folders.filter(|p| p.is_dir()) {
        let room = folder.file_name().unwrap().to_str().unwrap();
        assert!(
            ruled.contains(room),
            "src/{room}/ is a new room: give it a line in MAY_KNOW, tests/tidy/rooms.rs"
        );
    }
}
