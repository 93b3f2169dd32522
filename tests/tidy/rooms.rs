//! Rules 1 and 2 of the project: what the dependency tables of the rooms may list, and what their code may refer to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::imports::{Import, imports};
use super::source::{Source, files_below, root, sources};

/// Rooms without I/O, clock, randomness and logging.
const PURE: &[&str] =
    &["model", "cluster", "queue", "framework", "plugins", "recording", "cycle", "diagnosis", "config"];

/// Dependencies that a pure room may list. A new one needs a reason.
const PURE_DEPENDENCIES: &[&str] = &["pellucid-api", "serde", "serde_json", "smallvec", "thiserror"];

/// Further dependencies of single pure rooms, each with its reason.
const PURE_EXCEPTIONS: &[(&str, &str)] = &[
    ("model", "parking_lot"),     // the table of interned names; its order decides nothing
    ("model", "foldhash"),        // the map types of the project, and their random seed
    ("model", "rustc-hash"),      // the same
    ("model", "hashbrown"),       // a table of numbers by what they stand for, which std has not
    ("model", "prefetch-index"),  // has the processor fetch what is needed soon; no answer depends on it
    ("model", "jiff"),            // reads and writes the times of manifests
    ("recording", "jiff"),        // writes a wall time that came as an argument
    ("recording", "parking_lot"), // the list of recordings, set by requests while the thread runs
    ("config", "serde-saphyr"),   // reads YAML text that came as an argument
];

/// Parts of `std` that a pure room may not use.
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

/// Parts of `std` that single pure files may use nevertheless, each with its reason.
const IMPURE_STD_EXCEPTIONS: &[(&str, &str)] = &[
    ("src/model/data/name.rs", "std::hash::RandomState"), // spreads names over shards, decides nothing
    ("src/model/data/cow_map.rs", "std::hash::RandomState"), // spreads keys over shards, decides nothing
];

/// Modules of `pellucid-api` that a pure room may use.
const PURE_API: &[&str] = &["reason", "rest", "keys"];

/// Dependencies that only some rooms may list: wire types, HTTP, logs, terminals, and all plugins. `pellucid` is the
/// package of `cli/`, `demo/` and `playback/`.
const GUARDED: &[(&str, &[&str])] = &[
    ("kube", &["kubernetes", "sandbox", "app", "pellucid"]),
    ("k8s-openapi", &["kubernetes", "sandbox"]),
    ("axum", &["http", "sandbox"]),
    ("utoipa-swagger-ui", &["http"]),
    ("hyper", &["http", "sandbox", "client", "app"]),
    ("hyper-util", &["kubernetes", "http", "sandbox", "client", "app"]),
    ("opentelemetry", &["app"]),
    ("opentelemetry-http", &["app"]),
    ("opentelemetry-otlp", &["app"]),
    ("opentelemetry_sdk", &["app"]),
    ("tracing-subscriber", &["app"]),
    ("tracing-appender", &["app"]),
    ("prometheus-client", &["app"]),
    ("clap", &["client", "app", "pellucid"]),
    ("flate2", &["app"]),
    ("pellucid-plugins", &["pellucid"]),
];

/// Rooms that may depend on these other rooms only.
const NARROW: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("cluster", &["model"]),
    ("http", &["model"]),
    ("sandbox", &["model"]),
    ("replay", &["model"]),
    ("client", &["model", "kubernetes"]),
];

/// Files that may use `kube` outside `kubernetes/`, each with its reason.
const KUBE_FILES: &[&str] = &[
    "src/app/bench/",                 // measures a scheduler as an ordinary API client
    "src/app/client.rs", // plain calls of bench, demo and playback, which are ordinary API clients
    "src/app/object_watch.rs", // their watch
    "src/demo/",         // creates the demo's objects through that client
    "src/playback/",     // creates the trace's objects through that client
    "src/sandbox/handle.rs", // hands out the client configuration that reaches it
    "src/sandbox/webhooks/client.rs", // calls webhooks over HTTPS
];

/// Files that may read the machine's clock. Credential plugins and token files state the expiry of a token in wall time.
const CLOCKS: &[&str] =
    &["src/app/clock.rs", "src/sandbox/clock.rs", "src/kubernetes/connection/bearer_token.rs"];

/// The crate that plugins share.
const HELPER: &str = "pellucid-plugin-helper";

/// Files of a folder, beyond which it needs an inner order.
const MOST_FILES: usize = 18;
/// Folders with more, each with its reason.
const LARGER: &[&str] = &[
    "src/client", // one file per command
];

fn room_sources() -> Vec<Source> {
    sources(&["src"]).into_iter().filter(|s| !s.is_test_file()).collect()
}

/// Collects `file:line: message` for every import that a check rejects.
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

/// Returns the dependency table of each package: rooms by the path of their folder below `src/`, such as `model` and
/// `plugins/helper`, `app/` and `cli/` as `pellucid`.
fn tables() -> BTreeMap<String, BTreeSet<String>> {
    let files = files_below(&["src"]);
    let rooms = files.iter().filter_map(|f| f.strip_prefix("src/")?.strip_suffix("/Cargo.toml"));
    let all = rooms.map(|room| (room.to_owned(), root().join("src").join(room)));
    let all = all.chain([("pellucid".to_owned(), root())]);
    all.map(|(name, folder)| (name, dependencies(&folder.join("Cargo.toml")))).collect()
}

/// Returns whether a room, or the room that its folder is in, is pure.
fn is_pure_room(room: &str) -> bool {
    PURE.contains(&room.split('/').next().unwrap_or(room))
}

/// Returns the names in the section `[dependencies]`.
fn dependencies(file: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(file).unwrap();
    let section = text.split("\n[dependencies]\n").nth(1).unwrap();
    let lines = section.lines().take_while(|l| !l.starts_with('[')).filter(|l| !l.starts_with('#'));
    let names = lines.filter_map(|l| l.split([' ', '.', '=']).next()).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// Collects a complaint for every dependency of a room that a check rejects.
fn complain_of_tables(check: impl Fn(&str, &str) -> Option<String>) {
    let tables = tables();
    assert!(tables["kubernetes"].contains("kube") && tables["pellucid"].contains("tokio"), "{tables:?}");
    let all = tables.iter().flat_map(|(room, table)| table.iter().map(move |name| (room, name)));
    let complaints: Vec<String> = all.filter_map(|(room, name)| check(room, name)).collect();
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn pure_rooms_list_few_dependencies() {
    let plugins = plugin_crates();
    complain_of_tables(|room, name| {
        let is_allowed = match name.strip_prefix("pellucid-").filter(|_| name != "pellucid-api") {
            Some(other) => PURE.contains(&other) || plugins.contains(name),
            None => PURE_DEPENDENCIES.contains(&name) || PURE_EXCEPTIONS.contains(&(room, name)),
        };
        (is_pure_room(room) && !is_allowed)
            .then(|| format!("src/{room}/Cargo.toml: a pure room does not list `{name}`"))
    });
}

/// Returns the names of the packages in the folders of `src/plugins`.
fn plugin_crates() -> BTreeSet<String> {
    let files = files_below(&["src/plugins"]);
    let tables = files.iter().filter(|f| f.ends_with("/Cargo.toml") && *f != "src/plugins/Cargo.toml");
    let name = |file: &String| {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        text.lines()
            .find_map(|l| l.strip_prefix("name = "))
            .expect("a package has a name")
            .trim_matches('"')
            .to_owned()
    };
    tables.map(name).collect()
}

#[test]
fn plugins_know_no_other_plugin_and_only_the_registry_knows_them() {
    let plugins = plugin_crates();
    assert!(plugins.len() > 5, "{plugins:?}");
    complain_of_tables(|room, name| {
        let is_plugin = plugins.contains(name) && name != HELPER;
        let may = ["plugins", "webhook"].contains(&room) || !is_plugin && room.starts_with("plugins/");
        (plugins.contains(name) && !may)
            .then(|| format!("src/{room}/Cargo.toml: `{name}` is known to the registry alone"))
    });
}

#[test]
fn wire_types_http_logs_and_terminals_stay_in_their_rooms() {
    complain_of_tables(|room, name| {
        let (_, rooms) = GUARDED.iter().find(|(guarded, _)| *guarded == name)?;
        (!rooms.contains(&room)).then(|| format!("{room}: `{name}` belongs to {}", rooms.join(", ")))
    });
}

#[test]
fn some_rooms_know_little() {
    complain_of_tables(|room, name| {
        let (_, known) = NARROW.iter().find(|(narrow, _)| *narrow == room)?;
        let other = name.strip_prefix("pellucid-").filter(|other| *other != "api")?;
        (!known.contains(&other)).then(|| format!("src/{room}/Cargo.toml: {room}/ does not know {other}/"))
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
fn the_scheduler_reaches_the_cluster_through_one_room_alone() {
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

/// Returns the folders directly below one.
fn folders(parent: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(parent)).unwrap().map(|e| e.unwrap().path());
    let names = entries.filter(|p| p.is_dir()).map(|p| p.file_name().unwrap().to_str().unwrap().to_owned());
    names.collect()
}

/// Folders beside each other, each with those of them that its files name.
fn neighbours(parent: &str) -> BTreeMap<String, BTreeSet<String>> {
    // The path of a module begins at the folder of its crate; that of `src/app` and `src/cli` is `src`.
    let is_crate = |folder: &&Path| folder.join("Cargo.toml").is_file();
    let home = Path::new(parent).ancestors().find(|folder| is_crate(&root().join(folder).as_path()));
    let home = home.filter(|folder| folder.starts_with("src")).unwrap_or(Path::new("src"));
    let own = Path::new(parent).strip_prefix(home).unwrap().to_str().unwrap();
    let module = own
        .split('/')
        .filter(|part| !part.is_empty())
        .fold("crate".to_owned(), |path, part| path + "::" + part);
    let names = folders(parent);
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for source in sources(&[parent]).into_iter().filter(|s| !s.is_test_file()) {
        let below = source.path.strip_prefix(parent).unwrap().trim_start_matches('/');
        let Some(folder) = below.split('/').next().filter(|name| names.iter().any(|n| n == name)) else {
            continue;
        };
        for import in imports(&source) {
            let path = import.path.strip_prefix(&module).and_then(|rest| rest.strip_prefix("::"));
            let other = path.map(first).filter(|other| *other != folder && names.iter().any(|n| n == other));
            if let Some(other) = other {
                known.entry(folder.to_owned()).or_default().insert(other.to_owned());
            }
        }
    }
    known
}

/// Returns whether a folder reaches another one.
fn reaches(known: &BTreeMap<String, BTreeSet<String>>, from: &str, to: &str) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(folder) = open.pop() {
        for next in known.get(folder).into_iter().flatten() {
            if next == to {
                return true;
            }
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    false
}

#[test]
fn folders_beside_each_other_know_each_other_one_way() {
    let mut complaints = Vec::new();
    let mut open = vec!["src".to_owned()];
    let mut arrows = 0;
    while let Some(parent) = open.pop() {
        open.extend(folders(&parent).into_iter().map(|name| format!("{parent}/{name}")));
        let known = neighbours(&parent);
        arrows += known.values().map(BTreeSet::len).sum::<usize>();
        for folder in known.keys().filter(|folder| reaches(&known, folder, folder)) {
            complaints.push(format!("{parent}/{folder} is on a circle: {:?}", known[folder]));
        }
    }
    assert!(arrows > 20, "only {arrows} arrows were found: the imports are not read");
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn no_folder_is_a_heap() {
    let mut open = vec!["src".to_owned()];
    let mut complaints = Vec::new();
    while let Some(parent) = open.pop() {
        open.extend(folders(&parent).into_iter().map(|name| format!("{parent}/{name}")));
        let files = std::fs::read_dir(root().join(&parent)).unwrap().map(|e| e.unwrap().path());
        let files = files.filter(|p| p.extension().is_some_and(|e| e == "rs")).count();
        if files > MOST_FILES && !LARGER.contains(&parent.as_str()) {
            complaints.push(format!("{parent}: {files} files, over {MOST_FILES}: give it folders"));
        }
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
