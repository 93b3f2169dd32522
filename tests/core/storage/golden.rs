//! Golden tables: `tests/data/volumes/<Plugin>.txt`.
//!
//! A case begins with `case`, followed by objects as in `world.rs`. `ask` is the pod; the lines after it are the
//! expected results: `<node> ok`, `<node> U <message>`, `<node> UAU <message>`, or `*` for the pod as a whole. Lines
//! before the first case belong to every case.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use pellucid_api::reason::ReasonCode;

use super::ask::{Answer, ask, lines, plugin};
use super::world;

/// Reasons that the tables contain, each at least once.
const SHOWN: [ReasonCode; 21] = [
    ReasonCode::DiskConflict,
    ReasonCode::ClaimInUse,
    ReasonCode::TooManyVolumes,
    ReasonCode::DriverMissing,
    ReasonCode::ClaimNotFound,
    ReasonCode::EphemeralClaimMissing,
    ReasonCode::ClaimLost,
    ReasonCode::ClaimDeleting,
    ReasonCode::ClaimNotForPod,
    ReasonCode::UnboundImmediateClaims,
    ReasonCode::VolumeNodeAffinityConflict,
    ReasonCode::NoVolumeToBind,
    ReasonCode::NotEnoughStorage,
    ReasonCode::VolumeGone,
    ReasonCode::VolumeZoneConflict,
    ReasonCode::ClaimWithoutClass,
    ReasonCode::ClassNotFound,
    ReasonCode::ClaimWithoutVolume,
    ReasonCode::VolumeNotFound,
    ReasonCode::DynamicResourcesUnsupported,
    ReasonCode::FeaturesMissing,
];

fn codes(answer: &Answer) -> Vec<ReasonCode> {
    let causes: Vec<_> = match answer {
        Answer::Skip => Vec::new(),
        Answer::Refused(cause) => vec![cause],
        Answer::PerNode(nodes) => nodes.iter().filter_map(|(_, cause)| cause.as_ref()).collect(),
    };
    causes.into_iter().flat_map(|cause| cause.reasons.iter().map(|r| r.code)).collect()
}

struct Case<'a> {
    name: &'a str,
    objects: Vec<&'a str>,
    asked: &'a str,
    want: Vec<&'a str>,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let mut common = Vec::new();
    let mut all: Vec<Case<'_>> = Vec::new();
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        if let Some(name) = line.strip_prefix("case ") {
            all.push(Case { name, objects: Vec::new(), asked: "", want: Vec::new() });
            continue;
        }
        match all.last_mut() {
            None => common.push(line),
            Some(case) if line.starts_with("ask ") => case.asked = line,
            Some(case) if case.asked.is_empty() => case.objects.push(line),
            Some(case) => case.want.push(line),
        }
    }
    for case in &mut all {
        case.objects.splice(0..0, common.iter().copied());
    }
    all
}

#[test]
fn plugins_say_what_kube_scheduler_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/volumes");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let (mut n, mut wrong, mut seen) = (0, Vec::new(), BTreeSet::new());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let plugin = plugin(&name);
        for case in cases(&fs::read_to_string(&file).unwrap()) {
            n += 1;
            let cluster = world::cluster(&case.objects);
            let pod = world::pod(case.asked);
            let answer = ask(&*plugin, &cluster, &pod.spec);
            seen.extend(codes(&answer));
            let got = lines(&cluster, &answer);
            if got != case.want {
                let (got, want) = (got.join("\n    "), case.want.join("\n    "));
                wrong.push(format!("{name}: {}\n  want\n    {want}\n  got\n    {got}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {n} cases:\n{}", wrong.len(), wrong.join("\n"));
    assert!(n > 60, "only {n} cases");
    assert_eq!(seen, SHOWN.into_iter().collect::<BTreeSet<_>>());
}
