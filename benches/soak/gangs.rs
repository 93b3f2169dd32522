//! Hostile gangs: rings, stars and cliques, gangs of hundreds, and contradictory definitions.

use serde_json::{Value, json};

use super::pods::{requesting, small};
use super::rng::Rng;
use super::state::Soak;

const NAME: &str = "gang.scheduling.koordinator.sh/name";
const MIN: &str = "gang.scheduling.koordinator.sh/min-available";
const TOTAL: &str = "gang.scheduling.koordinator.sh/total-number";
const MODE: &str = "gang.scheduling.koordinator.sh/mode";
const POLICY: &str = "gang.scheduling.koordinator.sh/match-policy";
const WAIT: &str = "gang.scheduling.koordinator.sh/waiting-time";
const GROUPS: &str = "gang.scheduling.koordinator.sh/groups";
/// Maximum number of gang names stored for readers.
const REMEMBERED: usize = 200;

/// Turns a pod into a member of a gang that needs no PodGroup.
pub(crate) fn member(mut pod: Value, gang: &str, min: usize) -> Value {
    pod["metadata"]["annotations"][NAME] = gang.into();
    pod["metadata"]["annotations"][MIN] = min.to_string().into();
    pod
}

/// Returns gangs that name each other in a ring, a star or a clique, that name only themselves, or that name an unknown
/// gang.
pub(crate) fn related(rng: &mut Rng, number: usize) -> Vec<Value> {
    let gangs = if rng.chance(10) { 20 + rng.below(20) } else { 2 + rng.below(8) };
    let (form, class) = (rng.below(5), rng.pick(&["", "", "middle", "high"]).copied().unwrap_or_default());
    let key = |i: usize| format!("default/related-{number}-{i}");
    let mut pods = Vec::new();
    for i in 0..gangs {
        let named: Vec<String> = match form {
            0 => vec![key((i + gangs - 1) % gangs), key(i), key((i + 1) % gangs)],
            1 if i > 0 => vec![key(0), key(i)],
            1 | 2 => (0..gangs).map(key).collect(),
            3 => vec![key(i)],
            _ => vec![key(i), key((i + 1) % gangs), "default/nobody".into()],
        };
        // Some members fit nowhere, and with them no gang of the group.
        let milli_cpu = if rng.chance(5) { 100_000 } else { 100 + rng.below(2_000) };
        let members = 1 + rng.below(3);
        for m in 0..members {
            let pod = requesting(&format!("related-{number}-{i}-{m}"), milli_cpu, class);
            let mut pod = member(pod, &format!("related-{number}-{i}"), members);
            pod["metadata"]["annotations"][GROUPS] = json!(named).to_string().into();
            if rng.chance(10) {
                pod["metadata"]["annotations"][MODE] = "NonStrict".into();
            }
            pods.push(pod);
        }
    }
    pods
}

/// Returns a gang of 50 to 299 equal members, which may or may not fit and preempt.
pub(crate) fn equal(rng: &mut Rng, number: usize) -> Vec<Value> {
    let (members, milli_cpu) = (50 + rng.below(250), 200 + rng.below(3_000));
    let class = rng.pick(&["", "middle", "high"]).copied().unwrap_or_default();
    let name = format!("equal-{number}");
    (0..members)
        .map(|m| member(requesting(&format!("{name}-{m}"), milli_cpu, class), &name, members))
        .collect()
}

/// Returns a gang of 30 to 179 members with different specs.
pub(crate) fn different(rng: &mut Rng, number: usize) -> Vec<Value> {
    let members = 30 + rng.below(150);
    let class = rng.pick(&["", "middle", "high"]).copied().unwrap_or_default();
    let name = format!("different-{number}");
    let pod = |m: usize| {
        let mut pod = requesting(&format!("{name}-{m}"), 100 + 7 * m + rng.below(500), class);
        pod["metadata"]["labels"][format!("member.example/{}", rng.below(1_000))] = m.to_string().into();
        if rng.chance(20) {
            pod["spec"]["nodeSelector"] =
                json!({"topology.kubernetes.io/zone": format!("zone-{}", rng.below(4))});
        }
        if rng.chance(10) {
            let selector = json!({"matchLabels": {"app": "hostile"}});
            pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1 + rng.below(50), "labelSelector": selector,
                "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}]);
        }
        member(pod, &name, members)
    };
    (0..members).map(pod).collect()
}

/// Returns gang definitions that are meaningless, contradictory or extreme, with related objects.
pub(crate) fn nonsense(rng: &mut Rng, number: usize) -> Vec<(&'static str, Value)> {
    let name = format!("nonsense-{number}");
    let object = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let numbers = [-1, 0, 1, 2, 1_000, i64::from(i32::MAX), i64::from(i32::MAX) + 1, i64::MAX];
    let odd_number = rng.pick(&numbers).copied().unwrap_or_default();
    let words = ["0", "-1", "2", "99999999999999999999", "", "x", "١", "1e3", " 3", "\u{202e}3", "\u{0}"];
    let odd_word = rng.pick(&words).copied().unwrap_or_default();
    let amounts = json!({"cpu": "9223372036854775807", "memory": "8Ei", "r.example/x": "1n"});
    let group =
        json!({"minMember": odd_number, "minResources": amounts, "scheduleTimeoutSeconds": odd_number});
    let mut pod = small(&name);
    match rng.below(11) {
        0 => {
            return vec![(
                "podgroups.scheduling.x-k8s.io",
                object("scheduling.x-k8s.io/v1alpha1", "PodGroup", group),
            )];
        }
        1 => {
            return vec![(
                "podgroups.scheduling.sigs.k8s.io",
                object("scheduling.sigs.k8s.io/v1alpha1", "PodGroup", group),
            )];
        }
        2 => {
            let group = json!({"minMember": odd_number, "queue": name, "priorityClassName": "nobody"});
            let queue = json!({"weight": odd_number, "capability": {"cpu": "0"}});
            let version = "scheduling.incubator.k8s.io/v1alpha1";
            pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = name.clone().into();
            return vec![
                ("podgroups.scheduling.incubator.k8s.io", object(version, "PodGroup", group)),
                ("queues.scheduling.incubator.k8s.io", object(version, "Queue", queue)),
                ("pods", pod),
            ];
        }
        3 => {
            let spec = json!({"schedulingPolicy": {"gang": {"minCount": odd_number}}});
            pod["spec"]["schedulingGroup"] = json!({"podGroupName": name});
            let group = object("scheduling.k8s.io/v1alpha2", "PodGroup", spec);
            return vec![("podgroups.scheduling.k8s.io", group), ("pods", pod)];
        }
        4 => {
            let least =
                rng.pick(&[json!(0), json!(1), json!("100%"), json!("1000%"), json!(i32::MAX)]).cloned();
            let labels = json!({"role": format!("victim-{}", rng.below(4))});
            let spec = json!({"minAvailable": least, "selector": {"matchLabels": labels}});
            return vec![("poddisruptionbudgets.policy", object("policy/v1", "PodDisruptionBudget", spec))];
        }
        5 => {
            pod = member(pod, &format!("{name}-a"), 1);
            pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = format!("{name}-b").into();
        }
        6 => {
            pod["metadata"]["labels"]["gang.unicore.mcyou.cn/name"] = name.clone().into();
            pod["metadata"]["labels"]["gang.unicore.mcyou.cn/available-count"] = "99999".into();
        }
        7 => pod["metadata"]["annotations"][NAME] = "\u{202e}\u{0}gang\n".repeat(1 + rng.below(1_000)).into(),
        8 => {
            let odd = ["[", "null", "[1]", "[\"\"]", "[\"a/b/c\"]", "{}", "[\"default/\u{202e}\"]"];
            pod = member(pod, &name, 1);
            pod["metadata"]["annotations"][GROUPS] = rng.pick(&odd).copied().into();
        }
        9 => {
            let many: Vec<String> = (0..10_000).map(|n| format!("default/g{n}")).collect();
            pod = member(pod, &name, 1);
            pod["metadata"]["annotations"][GROUPS] = json!(many).to_string().into();
        }
        _ => {
            pod["metadata"]["annotations"] = json!({NAME: name, MIN: odd_word, TOTAL: odd_word, MODE: odd_word,
                POLICY: odd_word, WAIT: odd_word});
        }
    }
    vec![("pods", pod)]
}

/// Stores the gang name of some pods for readers.
pub(crate) fn remember(soak: &Soak, pods: &[Value]) {
    let named = pods.first().and_then(|pod| pod["metadata"]["annotations"][NAME].as_str());
    let Some(name) = named else { return };
    let mut known = soak.gangs.lock();
    if known.len() >= REMEMBERED {
        known.remove(0);
    }
    known.push(name.to_owned());
}
