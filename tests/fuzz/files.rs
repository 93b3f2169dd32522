//! Configuration, traces and dumps.

use std::path::Path;
use std::sync::Arc;

use pellucid::diagnosis::dump::Dump;
use pellucid::diagnosis::dump::restore::{Rewind, restore};
use pellucid::plugins::registry;
use serde_json::Value;

use crate::common::cluster::SCHEDULER;
use crate::common::driver::default_profile;
use crate::common::{dumps, made};
use crate::fuzz::fuzz;
use crate::fuzz::mutate::{text, tree};

fn read(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|f| f.expect("a file").path()).collect();
    files.sort();
    let is_source = |file: &&std::path::PathBuf| file.extension().is_some_and(|end| end != "txt");
    files.iter().filter(is_source).map(|file| std::fs::read_to_string(file).expect("read")).collect()
}

/// A configuration that is accepted is accepted again as it is shown.
#[test]
fn configurations() {
    let (good, registry) = (read("tests/data/config/accepted"), registry());
    fuzz(
        "configurations",
        |seed| text(seed, &good),
        |text| {
            let Ok(read) = pellucid::config::parse(text, "f", &registry) else { return false };
            let shown = read.to_yaml().expect("it can be shown");
            let again = pellucid::config::parse(&shown, "f", &registry);
            assert!(
                again.is_ok(),
                "it is refused as it is shown:\n{shown}\n{}",
                again.err().expect("problems")
            );
            true
        },
    );
}

#[test]
fn traces() {
    let nodes =
        vec!["sn,cpu_milli,memory_mib,gpu,model\nn-1,64000,262144,2,P100\nn-2,32000,65536,0,\n".to_owned()];
    let pods = vec![
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
         p-1,12000,16384,1,1000,,LS,Running,0,12537496,0\np-2,6000,12288,1,460,V100|P100,LS,Running,427061,12902960,427061\n"
            .to_owned(),
    ];
    let jobs = vec![
        "job,submit_seconds,gpus,steps,model\nj-1,0,2,100,Net\nj-2,60,8,9,Net\n".to_owned(),
        read_jobs(),
    ];
    let folder = tempfile::tempdir().expect("a directory");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    fuzz(
        "openb",
        |seed| (text(seed, &nodes), text(seed / 2, &pods)),
        |(nodes, pods)| pellucid::replay::read_openb(&file("nodes", nodes), &file("pods", pods)).is_ok(),
    );
    fuzz("philly", |seed| text(seed, &jobs), |text| pellucid::replay::read_jobs(&file("jobs", text)).is_ok());
}

fn read_jobs() -> String {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/replay/gangs.csv");
    std::fs::read_to_string(file).expect("the jobs")
}

/// A dump that somebody changed is refused with a reason, or gives a scheduler that goes on.
#[test]
fn dumps_of_others() {
    let mut core = made::core_with(&[made::node("a", 1_000), made::node("b", 2_000)]);
    for n in 0..4 {
        core.attempt(&made::in_gang(made::pod(&format!("g{n}"), 300), "gang", 2));
        core.attempt(&made::ranked(&format!("p{n}"), 900, n));
    }
    let good = dumps::dump(&mut core.scheduler, core.now, false).to_json().expect("written");
    let good: Vec<Value> = vec![serde_json::from_slice(good.as_ref()).expect("JSON")];
    fuzz(
        "dumps",
        |seed| tree(seed, &good),
        |value| {
            let Ok(dump) = Dump::from_json(value.to_string().as_bytes()) else { return false };
            let profiles = vec![default_profile(SCHEDULER)];
            restore(&dump, profiles, Arc::new(registry()), &Rewind::default()).is_ok()
        },
    );
}
