//! Configuration files on the command line, and the configuration that a running scheduler reports.

use pellucid::{config, plugins};
use serde_json::json;

use crate::common::process;
use crate::common::running::start_configured;

const OLD: &str = "apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
parallelism: 4
profiles:
  - schedulerName: written-long-ago
";

#[test]
fn the_configuration_in_force_is_written_without_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let (given, written) = (folder.path().join("given.yaml"), folder.path().join("written.yaml"));
    std::fs::write(&given, OLD).unwrap();
    let (given, target) = (given.to_str().unwrap(), written.to_str().unwrap());
    let run = |target| {
        process::run(&["run", "--config", given, "--kubeconfig", "/nowhere", "--write-config-to", target])
    };
    let output = run(target);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&written).unwrap();
    assert!(text.contains("# parallelism: accepted and not used"), "{text}");
    let read = config::parse(&text, "written", &plugins::registry()).unwrap_or_else(|p| panic!("{p}"));
    assert_eq!(read.effective["apiVersion"], "kubescheduler.config.k8s.io/v1");
    assert_eq!(read.effective["clientConnection"]["kubeconfig"], "/nowhere");
    assert_eq!(read.profiles[0].scheduler_name.as_str(), "written-long-ago");

    let printed = run("-");
    assert_eq!(String::from_utf8_lossy(&printed.stdout), text);
}

#[test]
fn a_file_that_cannot_be_used_is_refused_with_every_problem() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.yaml");
    std::fs::write(&file, format!("{OLD}    percentageOfNodesToScore: 5\nparalelism: 3\n")).unwrap();
    let output = process::run(&["run", "--config", file.to_str().unwrap(), "--write-config-to", "-"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("wrong.yaml:6: profiles[0].percentageOfNodesToScore: v1beta2 has no such"),
        "{said}"
    );
    assert!(said.contains("wrong.yaml:7: paralelism: unknown field; did you mean parallelism?"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configz_shows_what_is_in_force_with_the_notes() {
    let configuration = config::parse(OLD, "old", &plugins::registry()).unwrap_or_else(|p| panic!("{p}"));
    let expected = configuration.effective.clone();
    let running = start_configured(Vec::new(), configuration, None).await;
    let mut shown = running.read("/configz");
    running.stop().await;
    let notes = shown.as_object_mut().unwrap().remove("notes").unwrap();
    assert_eq!(shown, expected);
    assert_eq!(shown["profiles"][0]["schedulerName"], json!("written-long-ago"));
    assert!(notes[0].as_str().unwrap().starts_with("apiVersion: "), "{notes}");
    assert!(notes[1].as_str().unwrap().starts_with("parallelism: "), "{notes}");
}
