//! Gangs of a trace through the binary and the sandbox's HTTP API, and the arguments that the command line rejects.

use std::path::{Path, PathBuf};

use crate::common::process::run;

fn own_trace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/replay/gangs.csv")
}

/// Runs the command on jobs; returns its exit code, stdout and stderr.
fn replay(jobs: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let jobs = jobs.display().to_string();
    let output = run(&[&["replay", "--format", "philly", "--pods", &jobs], more].concat());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Returns the jobs and the finished jobs in the table row for a number of workers.
fn row(printed: &str, workers: &str) -> (usize, usize) {
    let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let rows = printed.lines().skip_while(|line| !line.contains("first to quorum")).map(cells);
    let row = rows.into_iter().find(|cells| cells.first().is_some_and(|cell| cell == workers));
    let row = row.unwrap_or_else(|| panic!("no row {workers}: {printed}"));
    (row[1].parse().expect("jobs"), row[2].parse().expect("finished"))
}

/// Returns whether only time violations were found: the speed of a busy machine is not tested here. The exit code
/// must agree with the report.
fn is_clean(code: Option<i32>, printed: &str) -> bool {
    let faults = ["OVERCOMMITTED", "NO QUORUM", "LOST WORKER", "NOT FINISHED", "UNCLEAR"];
    let is_good = printed.ends_with(" Violations: 0.\n");
    code == Some(i32::from(!is_good))
        && !faults.iter().any(|fault| printed.contains(fault))
        && (is_good || printed.contains("LATE QUORUM"))
}

/// On two nodes with four GPUs, the jobs with eight workers take turns; the longest lasts 7 days of trace time.
#[test]
fn jobs_come_run_and_go() {
    let options = ["--synthetic-nodes", "2x4gpu", "--speedup", "400000", "--through-api"];
    let (code, printed, error) = replay(&own_trace(), &options);
    assert!(
        printed.starts_with(
            "8 jobs with 28 workers on 2 nodes with 4 GPUs: 15 min of arrivals takes 2.2 ms at --speedup 400000\n"
        ),
        "{printed}{error}"
    );
    assert_eq!(row(&printed, "all"), (8, 8), "{printed}");
    assert_eq!(row(&printed, "8"), (2, 2), "{printed}");
    assert!(printed.contains("Jobs finished: 8 / 8."), "{printed}");
    assert!(is_clean(code, &printed), "{printed}{error}");
}

/// Net-L is in one quota, the other models in the other; both want more than their halves at times.
#[test]
fn with_quotas_the_report_says_who_got_how_much_of_what_they_asked_for() {
    let quota = |name: &str, users: &str| {
        format!(
            "apiVersion: scheduling.sigs.k8s.io/v1alpha1\nkind: ElasticQuota\nmetadata: {{name: {name}, namespace: default, \
             annotations: {{pellucid.dev/users: '{users}'}}}}\nspec: {{min: {{nvidia.com/gpu: 4}}, max: {{nvidia.com/gpu: 8}}}}\n"
        )
    };
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), [quota("large", "Net-L"), quota("rest", "")].join("---\n")).expect("written");
    let path = file.path().display().to_string();
    let options = ["--synthetic-nodes", "2x4gpu", "--speedup", "400000", "--through-api", "--quotas", &path];
    let (code, printed, error) = replay(&own_trace(), &options);
    assert!(printed.contains("Jobs finished: 8 / 8."), "{printed}{error}");
    assert!(is_clean(code, &printed), "{printed}{error}");
    let row = |quota: &str| -> Vec<String> {
        let cells =
            printed.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let found = cells.into_iter().find(|cells| cells.last().is_some_and(|last| last == quota));
        found.unwrap_or_else(|| panic!("no row {quota}: {printed}"))
    };
    for quota in ["large", "rest"] {
        let cells = row(quota);
        let number = |at: usize| cells[at].parse::<f64>().unwrap_or_else(|_| panic!("{cells:?}"));
        assert!(number(0) == 4.0 && number(1) >= number(2) && number(2) >= 0.0, "{cells:?}");
    }
    let (_, jain) = printed.split_once("what they asked for: ").unwrap_or_else(|| panic!("{printed}"));
    let jain: f64 = jain.split_whitespace().next().and_then(|text| text.parse().ok()).expect("a number");
    assert!((0.5..=1.0).contains(&jain), "of two quotas it is at least a half: {printed}");
}

#[test]
fn a_limit_takes_the_jobs_that_were_submitted_first() {
    let options = ["--synthetic-nodes", "1x2gpu", "--speedup", "100000", "--through-api", "--limit", "2"];
    let (code, printed, error) = replay(&own_trace(), &options);
    assert!(
        printed.starts_with("2 jobs with 3 workers on 1 node with 2 GPUs: 1 min of arrivals takes 600 µs"),
        "{printed}{error}"
    );
    assert_eq!((row(&printed, "1"), row(&printed, "2")), ((1, 1), (1, 1)), "{printed}");
    assert!(is_clean(code, &printed), "{printed}{error}");
}

#[test]
fn what_cannot_be_replayed_is_refused_by_flag_and_value() {
    let trace = own_trace();
    let through = "--through-api";
    let (nodes, speedup) = (["--synthetic-nodes", "2x4gpu"], ["--speedup", "1000"]);
    for (options, code, expected) in [
        (
            [&nodes[..], &speedup].concat(),
            1,
            "--format philly needs --through-api: its jobs end, and only an API server makes pods run and end",
        ),
        (
            [&speedup[..], &[through]].concat(),
            1,
            "--format philly needs --synthetic-nodes NxGgpu: it has no list of nodes; for example --synthetic-nodes 64x8gpu",
        ),
        (
            [&nodes[..], &[through]].concat(),
            1,
            "--format philly needs --speedup N: it is weeks long; for example --speedup 10000",
        ),
        (
            [&nodes[..], &speedup, &[through, "--nodes", "n.csv"]].concat(),
            1,
            "--nodes n.csv means nothing to --format philly",
        ),
        (
            [&nodes[..], &speedup, &[through, "--decisions", "d"]].concat(),
            1,
            "--decisions d means nothing to --format philly",
        ),
        (
            [&["--synthetic-nodes", "1x4gpu"][..], &speedup, &[through]].concat(),
            1,
            "--synthetic-nodes 1x4gpu: eight needs 8 GPUs at once, and there are 4",
        ),
        (
            [&["--synthetic-nodes", "64x8"][..], &speedup, &[through]].concat(),
            2,
            "invalid value '64x8' for '--synthetic-nodes <NxGgpu>': \"64x8\" is not of the form NxGgpu, for example 64x8gpu",
        ),
        (
            [&nodes[..], &["--speedup", "0", through]].concat(),
            2,
            "invalid value '0' for '--speedup <N>': must be above 0",
        ),
        (
            [&nodes[..], &["--speedup", "fast", through]].concat(),
            2,
            "invalid value 'fast' for '--speedup <N>': is not a number",
        ),
        (
            [&nodes[..], &["--speedup", "NaN", through]].concat(),
            2,
            "invalid value 'NaN' for '--speedup <N>': must be above 0",
        ),
        (
            [&nodes[..], &speedup, &[through, "--limit", "0"]].concat(),
            1,
            "--limit 0 leaves nothing to replay",
        ),
    ] {
        let (got, printed, error) = replay(&trace, &options);
        assert!(error.contains(expected) && printed.is_empty(), "{options:?}: {printed}{error}");
        assert_eq!(got, Some(code), "{options:?}: {error}");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "job,submit_seconds,gpus,steps,model\nj,0,eight,10,M\n").expect("written");
    let options = ["--synthetic-nodes", "2x4gpu", "--speedup", "1000", "--through-api"];
    let (code, _, error) = replay(file.path(), &options);
    assert!(error.ends_with(":2: column gpus: \"eight\" is not an integer\n"), "{error}");
    assert_eq!(code, Some(1));
}

#[test]
fn pods_that_stay_have_no_use_for_the_options_of_gangs() {
    for (options, expected) in [
        (&["--speedup", "5"][..], "--speedup 5 means nothing to --format openb"),
        (&["--synthetic-nodes", "2x4gpu"], "--synthetic-nodes 2x4gpu means nothing to --format openb"),
        (&[], "--format openb needs --nodes FILE: the list of nodes"),
    ] {
        let output = run(&[&["replay", "--format", "openb", "--pods", "p.csv"], options].concat());
        let error = String::from_utf8_lossy(&output.stderr).to_string();
        assert!(error.contains(expected), "{options:?}: {error}");
        assert_eq!(output.status.code(), Some(1));
    }
}

/// Replays the first jobs of the real trace faster than intended, so that the test ends soon.
#[test]
fn the_first_jobs_of_the_real_trace() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/traces");
    let traces = PathBuf::from(std::env::var("PELLUCID_TRACES").unwrap_or_else(|_| default.into()));
    let jobs = traces.join("philly-gangs.csv");
    if !jobs.exists() {
        eprintln!("NOT RUN: there is no {}; PELLUCID_TRACES names another folder", jobs.display());
        return;
    }
    let options = ["--synthetic-nodes", "64x8gpu", "--speedup", "200000", "--through-api", "--limit", "100"];
    let (code, printed, error) = replay(&jobs, &options);
    assert!(printed.starts_with("100 jobs with 539 workers on 64 nodes"), "{printed}{error}");
    assert_eq!(row(&printed, "all"), (100, 100), "{printed}");
    assert!(is_clean(code, &printed), "{printed}{error}");
}
