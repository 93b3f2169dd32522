//! Replays through the binary: directly into the core and through the HTTP API, with equal decisions.

#[path = "../common/mod.rs"]
mod common;

mod gangs;

use std::path::{Path, PathBuf};

use common::process::run;

/// Replays both ways and compares the decisions; returns the output of each.
fn replay(folder: &Path, nodes: &Path, pods: &Path, limit: &str) -> [String; 2] {
    let (nodes, pods) = (nodes.display().to_string(), pods.display().to_string());
    let one = |through: Option<&str>| {
        let file = folder.join(format!("decisions{}", through.unwrap_or("-straight"))).display().to_string();
        let mut args = vec!["replay", "--format", "openb", "--nodes", &nodes, "--pods", &pods];
        args.extend(["--decisions", &file, "--seed", "7", "--limit", limit]);
        args.extend(through);
        let output = run(&args);
        let text = String::from_utf8_lossy(&output.stdout).to_string();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("No node is over its allocatable"), "{text}");
        (text, std::fs::read(file).expect("decisions"))
    };
    let texts = std::thread::scope(|scope| {
        let straight = scope.spawn(|| one(None));
        let through = one(Some("--through-api"));
        [straight.join().expect("it replays"), through]
    });
    assert!(texts[0].1 == texts[1].1, "decisions differ with and without the API");
    assert!(!texts[0].1.is_empty());
    texts.map(|(text, _)| text)
}

#[test]
fn a_small_trace_both_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let (nodes, pods) = (folder.path().join("nodes.csv"), folder.path().join("pods.csv"));
    std::fs::write(&nodes, "sn,cpu_milli,memory_mib,gpu,model\na,4000,8192,0,\nb,8000,8192,2,T4\n")
        .expect("written");
    let mut text = String::from(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n",
    );
    for n in 0..12 {
        let gpus = if n % 3 == 0 { "1,500,T4" } else { "0,0," };
        text += &format!("p{n},1100,512,{gpus},LS,Running,{n},99,{n}\n");
    }
    std::fs::write(&pods, text).expect("written");
    let printed = replay(folder.path(), &nodes, &pods, "100");
    // 12 CPUs minus the remainders: 3 pods on a, 7 on b; two are pending.
    for text in printed {
        assert!(text.contains("12 pods: 10 bound, 2 pending, 0 quarantined."), "{text}");
    }
}

#[test]
fn the_production_trace_both_ways() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/traces");
    let traces =
        PathBuf::from(std::env::var("PELLUCID_TRACES").unwrap_or_else(|_| default.into())).join("openb");
    let (nodes, pods) =
        (traces.join("openb_node_list_all_node.csv"), traces.join("openb_pod_list_default.csv"));
    if !nodes.exists() || !pods.exists() {
        eprintln!(
            "NOT RUN: there is no openb trace under {}; PELLUCID_TRACES names another place",
            traces.display()
        );
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let printed = replay(folder.path(), &nodes, &pods, "8152");
    for text in printed {
        let last = text.lines().rfind(|line| line.starts_with("8152 pods: ")).expect("a last line");
        let numbers = last.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<usize>().ok());
        let [all, bound, pending, quarantined] = numbers.collect::<Vec<_>>()[..] else { panic!("{last}") };
        assert_eq!(bound + pending + quarantined, all);
        assert!(bound > 8_000, "{last}");
    }
}

/// Runs a study of the small trace and returns its report without times.
fn packing(more: &[&str]) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/packing");
    let (nodes, pods) =
        (data.join("nodes.csv").display().to_string(), data.join("pods.csv").display().to_string());
    let mut args = vec!["replay", "--format", "openb", "--nodes", &nodes, "--pods", &pods, "--seeds", "3"];
    args.extend(more);
    let output = run(&args);
    let text = String::from_utf8_lossy(&output.stdout).to_string();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let lines = text.lines().filter(|line| !line.contains("decisions/s"));
    // Times are one column; the width of the others depends on them.
    let timeless = lines.map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_time = |at: usize| words[at] == "µs" || words.get(at + 1) == Some(&"µs");
        let kept = (0..words.len()).filter(|at| !is_time(*at)).map(|at| words[at]);
        kept.collect::<Vec<_>>().join(" ")
    });
    timeless.collect::<Vec<_>>().join("\n")
}

/// The reports of all strategies and switches on a small trace; `UPDATE=1` writes them anew.
#[test]
fn strategies_pack_a_small_trace_as_before() {
    let gradient = ["--strategy", "fragmentation-gradient"];
    let all: [&[&str]; 6] = [
        &["--strategy", "least"],
        &["--strategy", "most", "--arrival", "100"],
        &gradient,
        &[&gradient[..], &["--count-typical"]].concat(),
        &[&gradient[..], &["--lookahead", "100", "--best-fit"]].concat(),
        &[&gradient[..], &["--lookahead", "100", "--rate", "50"]].concat(),
    ];
    let said: Vec<String> =
        all.iter().map(|more| format!("{}\n{}\n", more.join(" "), packing(more))).collect();
    let said = said.join("\n");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/packing/reports.txt");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &said).expect("written");
    }
    let known = std::fs::read_to_string(&file).expect("tests/data/packing/reports.txt");
    assert!(said == known, "the reports changed; UPDATE=1 writes them anew:\n{said}");
    assert!(!said.contains("GIVEN TWICE"), "{said}");
}

#[test]
fn options_of_a_study_need_a_strategy_and_gpus() {
    let folder = tempfile::tempdir().expect("a folder");
    let (nodes, pods) = (folder.path().join("nodes.csv"), folder.path().join("pods.csv"));
    std::fs::write(&nodes, "sn,cpu_milli,memory_mib,gpu,model\na,4000,8192,0,\n").expect("written");
    let header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";
    std::fs::write(&pods, format!("{header}\np,100,512,0,0,,LS,Running,1,9,1\n")).expect("written");
    let (nodes, pods) = (nodes.display().to_string(), pods.display().to_string());
    for (more, said) in [
        (&["--arrival", "100"][..], "--strategy"),
        (&["--strategy", "most"], "no pod requests a GPU"),
        (&["--strategy", "most", "--arrival", "0"], "0 is not in 1..=1000"),
        (&["--strategy", "best"], "invalid value 'best'"),
    ] {
        let mut args = vec!["replay", "--format", "openb", "--nodes", &nodes, "--pods", &pods];
        args.extend(more);
        let output = run(&args);
        let text = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(!output.status.success() && text.contains(said), "{more:?}: {text}");
    }
}
