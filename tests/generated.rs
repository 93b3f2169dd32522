//! Generated files: each is generated again and compared with the checked-in version.
//!
//! `UPDATE=1 cargo test --test generated` writes them. A change in one of them affects its readers: note it in
//! CHANGELOG.md.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use pellucid::framework::controllers;
use pellucid::kubernetes::rights::{Rule, cluster_rules, controller_rules};
use pellucid_api::reason::{REGISTRY, ReasonCode, ReasonEntry, STATES};

/// Compares a file with its expected content, or writes it with `UPDATE=1`.
fn check(path: &str, fresh: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, fresh).unwrap();
        return;
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    let differs = stored.lines().zip(fresh.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or_else(|| stored.lines().count().min(fresh.lines().count()));
    assert!(
        stored == fresh,
        "{path}:{}: not what the code says; `UPDATE=1 cargo test --test generated` writes it\n  stored {:?}\n  fresh  {:?}",
        line + 1,
        stored.lines().nth(line),
        fresh.lines().nth(line),
    );
}

#[test]
fn openapi_json_is_fresh() {
    let routes = pellucid::app::rest::routes::routes(&pellucid::plugins::registry());
    let version = pellucid::app::instance::version("").git_version;
    let document = pellucid::http::openapi(&routes, &version).unwrap();
    check("openapi/openapi.json", &(serde_json::to_string_pretty(&document).unwrap() + "\n"));
}

#[test]
fn reasons_md_is_fresh() {
    let mut text = String::from(
        "# Reasons\n\n\
         Why a pod is not placed. Every refusal carries a registered code, and a program can rely on them. The built-in\n\
         ones are below; a plugin from outside may register its own. The messages are kube-scheduler's where it has\n\
         them; `{}` stands for what it is about, such as a resource. `GET /apis/v1/reasons` serves the same table, and the\n\
         reasons of all plugins. A reason is the last word on one node, on the pod as a whole or on its gang, until\n\
         something changes. The names in the examples are made up.\n\n\
         This file is made of `api/src/reason.rs` and of what plugins register; `UPDATE=1 cargo test --test generated` writes it.\n\n\
         | code | given by | last word on | message |\n|---|---|---|---|\n",
    );
    let entries = all_reasons();
    for entry in &entries {
        let (code, anchor) = (entry.code.as_str(), entry.code.as_str().to_lowercase());
        let terminal = entry.code.terminal_for().as_str();
        writeln!(text, "| [{code}](#{anchor}) | {} | {terminal} | `{}` |", entry.plugin, entry.message)
            .unwrap();
    }
    for entry in &entries {
        let code = entry.code.as_str();
        writeln!(text, "\n## {code}\n\n{}\n", entry.meaning).unwrap();
        writeln!(text, "- Message: `{}`", entry.message).unwrap();
        writeln!(text, "- Given by: {}", entry.plugin).unwrap();
        writeln!(text, "- What helps: {}", entry.remedy).unwrap();
        if entry.never != entry.remedy {
            writeln!(text, "- What helps where the end of no pod would: {}", entry.never).unwrap();
        }
        writeln!(text, "- Who can do that: {}", entry.resolver.as_str()).unwrap();
        writeln!(text, "- Last word on: the {}", entry.code.terminal_for().as_str()).unwrap();
        let example = entry.code.example();
        writeln!(text, "- Example: `{}` {}", example.message, example.situation).unwrap();
    }
    text += "\n# Other codes\n\n\
        Codes that say how something stands, in verdicts and in the bodies of refused requests; the latter are in\n\
        [errors.md](errors.md) with their status.\n\n\
        | code | stands in | meaning |\n|---|---|---|\n";
    for entry in STATES {
        writeln!(text, "| {} | {} | {} |", entry.code, entry.where_seen, entry.meaning).unwrap();
    }
    check("docs/reasons.md", &text);
}

/// Returns the built-in reasons, then those that the plugins of this repository register.
fn all_reasons() -> Vec<ReasonEntry> {
    let plugins = pellucid::plugins::registry();
    let registered = plugins.iter().flat_map(|factory| factory.reasons());
    REGISTRY.iter().copied().chain(registered.map(|reason| ReasonCode::Plugin(reason).entry())).collect()
}

#[test]
fn errors_md_is_fresh() {
    let mut text = String::from(
        "# Errors\n\n\
         The body of every refused request is `{\"code\": ..., \"message\": ..., \"requestId\": ...}`. Programs read `code`:\n\
         a code is never given a second meaning, and has one status. People read `message`, whose wording may change.\n\
         `requestId` is also in the log. `GET /apis/v1/reasons` serves these codes under `states`, with `status`.\n\n\
         This file is made of `api/src/reason/states.rs`; `UPDATE=1 cargo test --test generated` writes it.\n\n\
         | status | code | meaning |\n|---:|---|---|\n",
    );
    let internal = ReasonCode::InternalError.entry();
    let of_states = STATES.iter().filter_map(|entry| Some((entry.status?, entry.code, entry.meaning)));
    let mut all: Vec<_> = of_states.chain([(500, internal.code.as_str(), internal.meaning)]).collect();
    all.sort_unstable();
    for (status, code, meaning) in all {
        writeln!(text, "| {status} | {code} | {meaning} |").unwrap();
    }
    check("docs/errors.md", &text);
}

#[test]
fn custom_resource_definitions_are_fresh() {
    let mut wanted = Vec::new();
    for definition in pellucid_api::crd::definitions() {
        let name = format!("{}_{}.yaml", definition.spec.group, definition.spec.names.plural);
        let text = serde_saphyr::to_string(&definition).unwrap();
        let head = "# Made of api/src/crd; `UPDATE=1 cargo test --test generated` writes it.\n";
        check(&format!("api/crds/{name}"), &format!("{head}{text}"));
        // Helm installs what lies in this folder, and leaves alone what is there already.
        check(&format!("deploy/chart/crds/{name}"), &format!("{head}{text}"));
        wanted.push(name);
    }
    for folder in ["api/crds", "deploy/chart/crds"] {
        let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
        // Those of Koordinator's kinds are written by hand, in a folder of their own.
        let files = entries.map(|entry| entry.unwrap()).filter(|entry| entry.path().is_file());
        for name in files.map(|entry| entry.file_name().into_string().unwrap()) {
            assert!(wanted.contains(&name), "{folder}/{name} is of no definition");
        }
    }
}

#[test]
fn definitions_of_koordinators_kinds_are_those_that_plugins_read() {
    let registry = pellucid::plugins::registry();
    let kinds: Vec<_> = registry.iter().flat_map(|factory| factory.kinds()).collect();
    for text in pellucid_api::definitions::koordinator::ALL {
        let definition = pellucid::sandbox::definition(text);
        let (spec, version) = (&definition["spec"], &definition["spec"]["versions"][0]);
        let kind =
            kinds.iter().find(|kind| spec["group"] == kind.group && spec["names"]["kind"] == kind.kind);
        let kind = kind.unwrap_or_else(|| panic!("no plugin reads {definition}"));
        assert_eq!(spec["names"]["plural"], kind.plural);
        assert_eq!(version["name"], kind.version, "{}", kind.kind);
        assert_eq!(spec["scope"] == "Namespaced", kind.is_namespaced, "{}", kind.kind);
        assert_eq!(definition["metadata"]["name"], format!("{}.{}", kind.plural, kind.group));
    }
}

#[test]
fn the_rights_of_the_webhook_are_fresh() {
    let mut text = String::from(
        "# Made of what `pellucid webhook` watches; `UPDATE=1 cargo test --test generated` writes it.\n",
    );
    for kind in pellucid::webhook::watched() {
        let resource = kind.resource();
        let (group, plural) = (resource.group, resource.plural);
        write!(text, "- apiGroups: [{group:?}]\n  resources: [{plural}]\n  verbs: [list, watch]\n").unwrap();
    }
    check("deploy/chart/files/webhook-rules.yaml", &text);
}

#[test]
fn the_rules_of_the_cluster_role_are_fresh() {
    let decoder = pellucid::kubernetes::decode::Decoder::of(&pellucid::plugins::registry());
    let mut text = String::from(
        "# Made of src/kubernetes/rights.rs and the registry of kinds; `UPDATE=1 cargo test --test generated` writes it.\n",
    );
    write_rules(&mut text, cluster_rules(decoder.kinds()));
    check("deploy/chart/files/cluster-rules.yaml", &text);
}

#[test]
fn the_rules_of_the_controllers_are_fresh() {
    let registry = pellucid::plugins::registry();
    let mut text = String::from(
        "# Made of what the controllers of the registry declare; `UPDATE=1 cargo test --test generated` writes it.\n",
    );
    write_rules(&mut text, controller_rules(&controllers::all(&registry)));
    check("deploy/chart/files/controller-rules.yaml", &text);
}

fn write_rules(text: &mut String, rules: Vec<Rule>) {
    for Rule { group, resources, verbs } in rules {
        let (group, resources, verbs) = (format!("{group:?}"), resources.join(", "), verbs.join(", "));
        write!(text, "- apiGroups: [{group}]\n  resources: [{resources}]\n  verbs: [{verbs}]\n").unwrap();
    }
}
