//! Command lines of the built binary: help with examples, bad input, and commands that need no scheduler.

use crate::app::commands::{fails, pellucid, write};

#[test]
fn help_lists_the_commands_and_their_flags() {
    let ran = pellucid(&["--help"]);
    assert_eq!(ran.code, 0);
    for command in [
        "run",
        "demo",
        "sandbox",
        "replay",
        "bench",
        "explain",
        "pod",
        "gang",
        "node",
        "gangs",
        "nodes",
        "queue",
        "suggestions",
        "history",
        "events",
        "evictions",
        "wakeups",
        "scores",
        "simulate",
        "flags",
        "openapi",
        "crds",
        "probe",
    ] {
        assert!(ran.stdout.contains(&format!("  {command} ")), "no {command} in\n{}", ran.stdout);
        let help = pellucid(&[command, "--help"]).stdout;
        assert!(help.contains(&format!("\n  pellucid {command}")), "no example in\n{help}");
    }
    for (command, flags) in [
        (
            "run",
            "--kubeconfig --config --shadow-of --shadow --listen --v --leader-elect --leader-elect-lease-duration \
             --leader-elect-renew-deadline --leader-elect-retry-period --leader-elect-resource-lock \
             --leader-elect-resource-name --leader-elect-resource-namespace --otlp-endpoint",
        ),
        ("demo", "--listen --api-listen --exit-when-settled --seed --v"),
        ("sandbox", "--listen --nodes --no-kubelet --start-delay --stop-delay --node-metrics --gpus"),
        (
            "replay",
            "--format --nodes --pods --through-api --decisions --seed --limit --strategy --arrival --seeds --lookahead",
        ),
        ("scores", "--server --output PELLUCID_SERVER 127.0.0.1:10251"),
        ("flags", "--server --output"),
        ("probe", "--url"),
    ] {
        let ran = pellucid(&[command, "--help"]);
        assert_eq!(ran.code, 0, "{command}");
        for flag in flags.split_whitespace() {
            assert!(ran.stdout.contains(flag), "{command} --help has no {flag}:\n{}", ran.stdout);
        }
    }
    assert!(pellucid(&["--version"]).stdout.starts_with("pellucid 0."));
}

#[test]
fn command_lines_that_make_no_sense_are_refused() {
    fails(&[], 2, &["Usage"]);
    fails(&["schedule"], 2, &["schedule"]);
    fails(&["sandbox", "--node-metrics", "0"], 2, &["--node-metrics", "'0'"]);
    fails(&["sandbox", "--gpus", "8 cards"], 1, &["8 cards", "must be like 8 GPUs x 80Gi"]);
    fails(&["run", "--listen", "nowhere"], 2, &["nowhere", "--listen"]);
    fails(&["run", "--shadow", "--shadow-of", "x"], 2, &["--shadow-of"]);
    fails(&["explain", "pod", "a/b/c"], 2, &["must be NAMESPACE/NAME"]);
    fails(&["flags", "../v"], 2, &["a switch has a plain name"]);
    fails(&["explain", "pods", "-o", "xml"], 2, &["xml", "table, json, yaml"]);
    fails(&["explain"], 2, &["Usage"]);
    fails(&["explain", "node", "a/b"], 2, &["must be the name of a node"]);
    fails(&["gangs", "-n", "A b"], 2, &["must be the name of a namespace"]);
    fails(&["simulate"], 2, &["--filename"]);
    fails(&["explain", "pod", "a/web", "-n", "b"], 1, &["a/web is not in namespace b"]);
}

#[cfg(not(feature = "otel"))]
#[test]
fn a_binary_without_traces_says_how_to_get_one_with_them() {
    let parts = ["--otlp-endpoint http://127.0.0.1:4318", "built without traces", "--features otel"];
    fails(&["run", "--otlp-endpoint", "http://127.0.0.1:4318"], 1, &parts);
}

#[test]
fn a_bad_configuration_is_told_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 0\n\
                profiles:\n- schedulerName: a\n  plugins:\n    score:\n      enabled:\n      - name: Nonsense\n";
    let file = write(folder.path(), "scheduler.yaml", text);
    fails(
        &["run", "--config", &file],
        1,
        &[
            "scheduler.yaml:3: parallelism: must be an integer from 1 to 2147483647, got 0",
            "scheduler.yaml:9: profiles[0].plugins.score.enabled[0].name: no plugin is called \"Nonsense\"",
        ],
    );
    fails(&["run", "--config", "/nonexistent/file"], 1, &["cannot read /nonexistent/file"]);
}

#[test]
fn bad_traces_are_told_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = write(folder.path(), "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn-1,12x,1024,0,\n");
    let good = write(folder.path(), "good.csv", "sn,cpu_milli,memory_mib,gpu,model\nn-1,12,1024,0,\n");
    let replay = |format: &str, nodes: &str, pods: &str, code, part: &str| {
        fails(&["replay", "--format", format, "--nodes", nodes, "--pods", pods], code, &[part]);
    };
    replay("borg", &nodes, &nodes, 2, "no trace format is called \"borg\"; known are: openb");
    replay("openb", &nodes, &nodes, 1, "nodes.csv:2: column cpu_milli: \"12x\" is not an integer");
    replay("openb", &good, &good, 1, "good.csv:1: the header is \"sn,cpu_milli,memory_mib,gpu,model\"");
    replay("openb", "/nonexistent.csv", &good, 1, "/nonexistent.csv: No such file");
}

#[test]
fn the_custom_resources_are_printed_as_a_cluster_takes_them() {
    let ran = pellucid(&["crds"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    let documents: Vec<serde_json::Value> = serde_saphyr::from_multiple(&ran.stdout).unwrap();
    let names: Vec<&str> = documents.iter().map(|d| d["metadata"]["name"].as_str().unwrap()).collect();
    let wanted: Vec<String> =
        pellucid_api::crd::definitions().into_iter().filter_map(|d| d.metadata.name).collect();
    assert_eq!(names, wanted);
    assert!(documents.iter().all(|d| d["kind"] == "CustomResourceDefinition"), "{}", ran.stdout);
}
