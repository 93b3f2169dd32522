//! What `deploy/` says agrees with itself and with an API server: the kustomize base is the chart rendered, and both are
//! accepted as they are.
//!
//! `UPDATE=1 cargo test --test served kubectl::deploy` writes the base and the golden file anew. Without helm (`$HELM`, else what `.ci/run` installs
//! under `target/`, else the PATH) or kubectl the tests report that and pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::process::finish;
use crate::kubectl::{Kubectl, PATIENCE, contains, kubectl_is_there, with_kubectl};

const CHART: &str = "deploy/chart";
/// Settings of a chart with the webhook of quotas.
const WEBHOOK: [&str; 4] =
    ["--set", "webhook.enabled=true,webhook.tlsSecret=certificate", "--api-versions", POLICIES];
/// The kind of the policy that the chart has where the cluster knows it.
const POLICIES: &str = "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy";
const BASE: &str = "deploy/base";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns helm, or reports that there is none.
fn helm() -> Option<PathBuf> {
    let known = [
        std::env::var_os("HELM").map(PathBuf::from),
        Some(root().join("target/helm/bin/helm")),
        Some(PathBuf::from("helm")),
    ];
    let answers =
        |tool: &PathBuf| Command::new(tool).arg("version").output().is_ok_and(|o| o.status.success());
    let found = known.into_iter().flatten().find(answers);
    if found.is_none() {
        println!(
            "\n*** NOT RUN: there is no helm (.ci/run installs it), so the chart was not rendered ***\n"
        );
    }
    found
}

/// Runs helm in a home of its own.
fn run(helm: &Path, arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(helm);
    command.env_clear().env("HOME", home.path()).current_dir(root()).args(arguments);
    finish(command, PATIENCE)
}

fn says(helm: &Path, arguments: &[&str]) -> String {
    let output = run(helm, arguments);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "helm {arguments:?} failed:\n{out}\n{err}");
    out.into_owned()
}

/// Renders the chart as the base has it, and returns the text of each file of `templates/`.
fn rendered(helm: &Path) -> BTreeMap<String, String> {
    let settings = ["--namespace", "pellucid", "--set", "existingConfigMap=pellucid-config"];
    let text = says(helm, &[&["template", "pellucid", CHART][..], &settings].concat());
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for document in text.split("---\n").filter(|document| !document.is_empty()) {
        let (source, body) = document.split_once('\n').expect("a first line");
        let name = source.trim_start_matches("# Source: pellucid/templates/");
        let file = files.entry(name.to_owned()).or_insert_with(|| {
            "# Rendered from deploy/chart; `UPDATE=1 cargo test --test served kubectl::deploy` writes it.\n"
                .to_owned()
        });
        *file += &format!("---\n{body}");
    }
    files
}

#[test]
fn the_kustomize_base_is_the_chart_rendered() {
    let Some(helm) = helm() else { return };
    let files = rendered(&helm);
    for (name, text) in &files {
        let path = root().join(BASE).join(name);
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, text).expect("written");
        }
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            &stored, text,
            "{BASE}/{name}: `UPDATE=1 cargo test --test served kubectl::deploy` writes it"
        );
    }
    let kustomization = fs::read_to_string(root().join(BASE).join("kustomization.yaml")).expect("read");
    let listed: Vec<&str> = kustomization.lines().filter_map(|line| line.strip_prefix("  - ")).collect();
    for name in files.keys() {
        assert!(listed.contains(&name.as_str()), "{BASE}/kustomization.yaml does not list {name}");
    }
}

#[test]
fn the_configuration_of_base_and_chart_is_the_same() {
    let read = |path: &str| {
        let text = fs::read_to_string(root().join(path)).expect("read");
        serde_saphyr::from_str::<serde_json::Value>(&text).expect("YAML")
    };
    assert_eq!(read("deploy/base/config.yaml"), read("deploy/chart/values.yaml")["config"]);
}

#[test]
fn the_chart_is_well_formed_and_refuses_wrong_values() {
    let Some(helm) = helm() else { return };
    says(&helm, &["lint", "--strict", CHART]);
    says(&helm, &[&["lint", "--strict", CHART][..], &WEBHOOK[..2]].concat());
    for (setting, part) in [
        ("replicas=many", "replicas"),
        ("replicas=0", "replicas"),
        ("replica=2", "replica"),
        ("image=x", "image"),
    ] {
        let output = run(&helm, &["template", "pellucid", CHART, "--set", setting]);
        assert!(!output.status.success(), "{setting} was accepted");
        contains(
            &String::from_utf8_lossy(&output.stderr),
            &["don't meet the specifications of the schema", part],
        );
    }
}

#[test]
fn addresses_and_places_of_the_webhook_can_be_set() {
    let Some(helm) = helm() else { return };
    let render = |settings: &[&str]| {
        says(&helm, &[&["template", "pellucid", CHART][..], &WEBHOOK[..2], settings].concat())
    };
    contains(&render(&[]), &["\"--bind-address=::\"", "--listen=[::]:9443"]);
    let set = "serving.bindAddress=10.0.0.1,webhook.bindAddress=10.0.0.2,webhook.nodeSelector.place=edge,\
        webhook.podAnnotations.note=here,webhook.tolerations[0].key=edge-taint,webhook.resources.limits.memory=300Mi,\
        webhook.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=7";
    let text = render(&["--set", set]);
    contains(&text, &["\"--bind-address=10.0.0.1\"", "--listen=10.0.0.2:9443"]);
    let webhook = text.split("---\n").find(|part| part.contains("- webhook\n")).expect("its Deployment");
    contains(webhook, &["place: edge", "note: here", "key: edge-taint", "memory: 300Mi", "weight: 7"]);
    assert!(!webhook.contains("podAntiAffinity"), "affinity replaces it: {webhook}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_accepts_base_and_chart() {
    with_kubectl(accepted).await;
}

/// Applies the base and the chart, dry and for real.
fn accepted(kubectl: &Kubectl) {
    let base = root().join(BASE).display().to_string();
    let golden = root().join("tests/data/deploy/apply.txt");
    // A dry run does not make the namespace that the others are in.
    kubectl.says(&["apply", "-f", &format!("{base}/namespace.yaml")]);
    let dry = kubectl.says(&["apply", "--dry-run=server", "-k", &base]);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&golden, names(&dry).join("\n") + "\n").expect("written");
    }
    let golden = fs::read_to_string(golden).expect("the golden file");
    assert_eq!(names(&dry), golden.lines().collect::<Vec<_>>(), "{dry}");
    assert_eq!(kubectl.says(&["get", "deployments", "-A", "-o", "name"]), "", "a dry run made something");
    let real = kubectl.says(&["apply", "-k", &base]);
    assert_eq!(names(&real), golden.lines().collect::<Vec<_>>(), "{real}");
    let Some(helm) = helm() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("chart.yaml");
    let template = ["template", "pellucid", CHART, "--namespace", "pellucid", "--include-crds"];
    let dry = |settings: &[&str]| {
        fs::write(&file, says(&helm, &[&template[..], settings].concat())).expect("written");
        kubectl.says(&["apply", "--dry-run=server", "-f", &file.display().to_string()])
    };
    contains(&dry(&[]), &["configmap/pellucid created", "podgroups.scheduling.x-k8s.io configured"]);
    let with_webhook = [
        "deployment.apps/pellucid-webhook created",
        "mutatingwebhookconfiguration.admissionregistration.k8s.io/pellucid-webhook created",
        "validatingadmissionpolicy.admissionregistration.k8s.io/pellucid-elasticquota created",
        "validatingwebhookconfiguration.admissionregistration.k8s.io/pellucid-webhook created",
    ];
    contains(&dry(&WEBHOOK), &with_webhook);
}

/// Returns the objects that kubectl says it applied, without the hash of the configuration.
fn names(said: &str) -> Vec<&str> {
    said.lines()
        .filter_map(|line| line.split(' ').next())
        .map(|name| match name.split_once("-config-") {
            Some((before, _)) => before,
            None => name,
        })
        .collect()
}

#[test]
fn kustomize_renders_the_base() {
    if !kubectl_is_there() {
        return;
    }
    let mut command = Command::new("kubectl");
    command.args(["kustomize", BASE]).current_dir(root());
    let output = finish(command, PATIENCE);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    contains(
        &String::from_utf8_lossy(&output.stdout),
        &["name: pellucid-config-", "kind: ClusterRoleBinding"],
    );
}
