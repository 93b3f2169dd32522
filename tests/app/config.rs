//! Configuration files: what they parse to, and the errors for those that are rejected.
//!
//! Each file of `tests/data/config/{accepted,refused}` has a text beside it with the expected result.
//! `PELLUCID_BLESS=1` rewrites the texts; review the difference before keeping it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pellucid::config::{self, Configuration};
use pellucid::framework::PluginFactory;
use serde_json::{Value, json};

mod binary;
mod fakes;
mod random;

use fakes::{Fake, registry};

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/config").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml" || e == "json"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn parse(file: &Path) -> Result<Configuration, config::Problems> {
    parse_with(file, &registry())
}

fn parse_with(file: &Path, registry: &[Box<dyn PluginFactory>]) -> Result<Configuration, config::Problems> {
    let name = file.file_name().unwrap().to_str().unwrap();
    config::parse(&std::fs::read_to_string(file).unwrap(), name, registry)
}

fn check(file: &Path, actual: &str) {
    check_as(file, "txt", actual);
}

fn check_as(file: &Path, extension: &str, actual: &str) {
    let expected = file.with_extension(extension);
    if std::env::var_os("PELLUCID_BLESS").is_some() {
        std::fs::write(&expected, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&expected).unwrap_or_default();
    assert_eq!(actual, expected, "{}", file.display());
}

/// Checks that a text made of the configuration of a file has the same meaning.
fn gives_itself(file: &Path, first: &Configuration, text: &str, registry: &[Box<dyn PluginFactory>]) {
    let again = config::parse(text, "again", registry);
    let again = again.unwrap_or_else(|problems| panic!("{}: {problems}\n{text}", file.display()));
    assert_eq!(first.effective, again.effective, "{}", file.display());
}

/// Renders the relevant settings as lines.
fn rendered(configuration: &Configuration) -> String {
    let mut out = String::new();
    let c = configuration;
    let (initial, max) = (c.initial_backoff.as_secs(), c.max_backoff.as_secs());
    writeln!(out, "backoff {initial} to {max} s, qps {}, burst {}", c.client.qps, c.client.burst).unwrap();
    if let Some(path) = &c.client.kubeconfig {
        writeln!(out, "kubeconfig {}", path.display()).unwrap();
    }
    for profile in &c.profiles {
        let percentage = profile.percentage_of_nodes_to_score;
        writeln!(out, "profile {}, percentage {percentage}", profile.scheduler_name.as_str()).unwrap();
        for (point, enabled) in profile.points().into_iter().filter(|(_, enabled)| !enabled.is_empty()) {
            let entry = |e: &pellucid::framework::profile::Enabled| {
                assert_eq!(profile.plugins[e.index].name(), e.plugin.name());
                if e.weight == 0 {
                    e.plugin.name().to_owned()
                } else {
                    format!("{}*{}", e.plugin.name(), e.weight)
                }
            };
            let entries: Vec<String> = enabled.iter().map(entry).collect();
            writeln!(out, "  {point}: {}", entries.join(" ")).unwrap();
        }
        for plugin in profile.plugins.iter().filter(|plugin| plugin.args() != json!({})) {
            writeln!(out, "  {} {}", plugin.name(), plugin.args()).unwrap();
        }
    }
    for note in &c.notes {
        writeln!(out, "note: {note}").unwrap();
    }
    out
}

#[test]
fn accepted_files_give_the_expected_profiles() {
    for file in files("accepted") {
        let configuration = parse(&file).unwrap_or_else(|problems| panic!("{problems}"));
        check(&file, &rendered(&configuration));
    }
}

#[test]
fn refused_files_name_every_problem_with_its_place() {
    for file in files("refused") {
        let Err(problems) = parse(&file) else { panic!("{} was accepted", file.display()) };
        check(&file, &format!("{problems}\n"));
    }
}

#[test]
fn the_effective_document_read_again_gives_itself() {
    for file in files("accepted") {
        let first = parse(&file).unwrap();
        gives_itself(&file, &first, &first.effective.to_string(), &registry());
    }
}

#[test]
fn the_effective_document_as_a_file_gives_itself() {
    for file in files("accepted") {
        let first = parse(&file).unwrap();
        let yaml = first.to_yaml().unwrap();
        assert_eq!(yaml.lines().filter(|line| line.starts_with("# ")).count(), first.notes.len(), "{yaml}");
        gives_itself(&file, &first, &yaml, &registry());
    }
}

#[test]
fn what_configz_shows_can_be_read_again() {
    for file in files("accepted") {
        let first = parse(&file).unwrap();
        let shown = first.configz();
        assert_eq!(shown.get("notes").is_some(), !first.notes.is_empty());
        for note in &first.notes {
            assert!(shown["notes"].as_array().unwrap().contains(&json!(note)), "{shown}");
        }
        gives_itself(&file, &first, &shown.to_string(), &registry());
    }
}

/// Files named `NAME.VERSION.yaml` differ only in their API version.
#[test]
fn files_of_all_versions_that_say_the_same_mean_the_same() {
    let mut groups: BTreeMap<String, Vec<(PathBuf, Value)>> = BTreeMap::new();
    for file in files("equivalent") {
        let configuration = parse(&file).unwrap_or_else(|problems| panic!("{problems}"));
        let name = file.file_name().unwrap().to_str().unwrap();
        let group = name.split('.').next().unwrap().to_owned();
        groups.entry(group).or_default().push((file, configuration.effective));
    }
    for (group, members) in groups {
        assert!(members.len() > 1, "{group} stands alone");
        for (file, effective) in &members[1..] {
            assert_eq!(*effective, members[0].1, "{} and {}", file.display(), members[0].0.display());
        }
    }
}

/// Returns a registry with Coscheduling as the only real plugin, so that new plugins do not change what is expected
/// of gangs.
fn with_gangs() -> Vec<Box<dyn PluginFactory>> {
    let gangs = pellucid::plugins::registry().into_iter().filter(|factory| factory.name() == "Coscheduling");
    registry().into_iter().chain(gangs).collect()
}

/// Covers the file of an article on coscheduling, written for v1beta2, the plugin of another article under its own
/// name, and other gang settings.
#[test]
fn files_about_gangs_give_the_expected_profiles() {
    for file in files("gangs") {
        let configuration = parse_with(&file, &with_gangs()).unwrap_or_else(|problems| panic!("{problems}"));
        check(&file, &rendered(&configuration));
        gives_itself(&file, &configuration, &configuration.effective.to_string(), &with_gangs());
    }
}

#[test]
fn the_file_of_an_article_is_a_configuration_of_this_binary() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/config/gangs/article.yaml");
    let configuration =
        parse_with(&file, &pellucid::plugins::registry()).unwrap_or_else(|problems| panic!("{problems}"));
    let [profile] = &configuration.profiles[..] else { panic!("one profile") };
    let names = |list: &[pellucid::framework::profile::Enabled]| {
        list.iter().map(|e| e.plugin.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&profile.queue_sort), ["Coscheduling"]);
    assert_eq!(names(&profile.permit), ["Coscheduling"]);
    assert!(profile.gang_rules().is_some());
    let args = &configuration.configz()["profiles"][0]["pluginConfig"];
    let own = args.as_array().unwrap().iter().find(|a| a["name"] == "Coscheduling").unwrap();
    assert_eq!(own["args"]["permitWaitingTimeSeconds"], 60, "{own}");
    assert_eq!(own["args"]["podGroupRejectPercentage"], 10, "{own}");
}

#[test]
fn arguments_about_gangs_out_of_range_are_named_with_path_and_value() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/config/refused_gangs/arguments.yaml");
    let Err(problems) = parse_with(&file, &with_gangs()) else { panic!("accepted") };
    check(&file, &format!("{problems}\n"));
}

/// Uses the plugins of this binary: the arguments of each are checked, and all errors are reported at once.
#[test]
fn wrong_arguments_of_every_plugin_are_named_at_once() {
    let registry = pellucid::plugins::registry();
    for file in files("refused_arguments") {
        let Err(problems) = parse_with(&file, &registry) else { panic!("{} was accepted", file.display()) };
        check(&file, &format!("{problems}\n"));
        let text = std::fs::read_to_string(&file).unwrap();
        for factory in &registry {
            let (schema, name) = (factory.args_schema(), factory.name());
            let takes_some = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
            assert!(!takes_some || text.contains(&format!("- name: {name}\n")), "{name} takes arguments too");
        }
    }
}

/// Adding a plugin to the registry needs no change in the configuration code.
#[test]
fn whether_a_plugin_is_there_follows_from_the_registry() {
    let text = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: one
    plugins:
      score:
        enabled:
          - name: InterPodAffinity
            weight: 4
    pluginConfig:
      - name: InterPodAffinity
";
    let Err(problems) = config::parse(text, "text", &registry()) else { panic!("accepted") };
    assert_eq!(problems.problems.len(), 2, "{problems}");
    assert!(problems.to_string().contains("does not have yet"), "{problems}");
    let mut with = registry();
    let points = &["filter", "score"];
    with.push(Box::new(Fake { name: "InterPodAffinity", points, weight: 2, args: json!({}) }));
    let configuration = config::parse(text, "text", &with).unwrap_or_else(|problems| panic!("{problems}"));
    let scores = &configuration.profiles[0].score;
    let score = scores.iter().find(|e| e.plugin.name() == "InterPodAffinity").unwrap();
    assert_eq!(score.weight, 4);
}

#[test]
fn leader_election_and_the_client_connection_are_kept() {
    let text = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  leaseDuration: 1m30s
  renewDeadline: 1m
  retryPeriod: 1500ms
  resourceName: one-of-us
clientConnection:
  acceptContentTypes: application/json
  qps: -1
  burst: 0
";
    let configuration = config::parse(text, "text", &registry()).unwrap();
    let leader = &configuration.leader_election;
    assert_eq!(leader.leader_elect, Some(true));
    assert_eq!((leader.lease_duration.as_secs(), leader.renew_deadline.as_secs()), (90, 60));
    assert_eq!(leader.retry_period.as_millis(), 1500);
    let shown = &configuration.effective["leaderElection"];
    assert_eq!((&shown["leaseDuration"], &shown["renewDeadline"]), (&json!("1m30s"), &json!("1m0s")));
    assert_eq!((&shown["leaderElect"], &shown["resourceName"]), (&json!(true), &json!("one-of-us")));
    let client = &configuration.client;
    assert_eq!((client.qps, client.burst, client.kubeconfig.as_deref()), (-1.0, 100, None));

    let mut other = configuration.clone();
    other.set_kubeconfig(Path::new("/etc/other.conf"));
    assert_eq!(other.effective["clientConnection"]["kubeconfig"], "/etc/other.conf");
    assert_eq!(other.effective["clientConnection"]["qps"], -1.0);
}

#[test]
fn a_merge_key_is_not_a_repeated_field() {
    let text = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - &first
    schedulerName: first
    percentageOfNodesToScore: 7
  - <<: *first
    schedulerName: second
";
    let configuration = config::parse(text, "text", &registry()).unwrap_or_else(|p| panic!("{p}"));
    let second = &configuration.profiles[1];
    assert_eq!((second.scheduler_name.as_str(), second.percentage_of_nodes_to_score), ("second", 7));
}

#[test]
fn without_a_file_there_is_one_profile_with_everything() {
    let configuration = config::default(&registry()).unwrap();
    assert!(configuration.notes.is_empty());
    let empty = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let from_empty_file = config::parse(empty, "empty", &registry()).unwrap();
    assert_eq!(configuration.effective, from_empty_file.effective);
    assert_eq!(configuration.profiles[0].scheduler_name.as_str(), "pellucid");
    let effective = &configuration.effective;
    assert_eq!(effective["podMaxBackoffSeconds"], 10);
    assert_eq!(effective["clientConnection"]["qps"], 50.0);
    assert_eq!(effective["leaderElection"]["leaderElect"], false);
    let plugins = &effective["profiles"][0]["plugins"];
    assert_eq!(plugins["score"]["enabled"][0], json!({ "name": "TaintToleration", "weight": 3 }));
    let args = &effective["profiles"][0]["pluginConfig"][0];
    assert_eq!(args["name"], "NodeResourcesFit");
    assert_eq!(args["args"]["strategy"], "LeastAllocated");
}

#[test]
fn a_registry_that_cannot_schedule_has_no_default() {
    let few: Vec<Box<dyn PluginFactory>> = registry().into_iter().skip(2).take(3).collect();
    let Err(problems) = config::default(&few) else { panic!("accepted") };
    let text = problems.to_string();
    assert!(text.contains("exactly one plugin sorts the queue, got none"), "{text}");
    assert!(text.contains("at least one plugin must bind, got none"), "{text}");
}

#[test]
fn the_plugins_of_this_binary_make_a_default_profile() {
    let registry = pellucid::plugins::registry();
    if registry.iter().any(|factory| factory.name() == "DefaultBinder") {
        let configuration = config::default(&registry).unwrap_or_else(|problems| panic!("{problems}"));
        let default = registry.iter().filter(|factory| factory.is_default()).count();
        assert_eq!(configuration.profiles[0].plugins.len(), default);
    }
}
