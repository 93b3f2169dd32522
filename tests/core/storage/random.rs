//! Properties over random histories of claims, volumes, classes, attachments and pods.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::cluster::{Cluster, ClusterEvent};
use pellucid::framework::View;
use pellucid::framework::endpoint::{PathParams, ReadContext};
use pellucid::framework::list::List;
use pellucid::model::{Name, Now, ObjectKind, PodKey};
use pellucid::plugins::volume_binding::{Held, NAME};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use super::ask::{Answer, ask, lines, plugin};
use super::binding::reserve;
use super::wakes::wakes;
use super::world::{NAMESPACE, apply, empty, object, pod};

const PLUGINS: [&str; 4] = ["VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"];

fn config() -> ProptestConfig {
    let cases = 128;
    ProptestConfig { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(36), ..Default::default() }
}

fn pick(pool: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(pool)
}

/// Generates a line of `world.rs`; names come from small pools, so that objects often refer to each other.
fn line() -> impl Strategy<Value = String> {
    let claim = (0..4, pick(&["", "class=k", "class=t"]), pick(&["", "volume=v0", "volume=v1 bound"]));
    let claim = (claim, pick(&["", "owner=uid-p0", "modes=RWOP", "node=n1"]))
        .prop_map(|((i, class, volume), more)| format!("claim c{i} size={i} {class} {volume} {more}"));
    let csi = pick(&["", "csi=d:h0", "csi=d:h1", "csi=ebs.csi.aws.com:h0:kubernetes.io/aws-ebs", "csi=d:"]);
    let zone = pick(&["", "labels=topology.kubernetes.io/zone:z0", "reach=host:n0", "claim=c1"]);
    let volume = (0..3, csi, zone, pick(&["", "class=k"]))
        .prop_map(|(i, csi, zone, class)| format!("pv v{i} size=2 {csi} {zone} {class}"));
    let class = (pick(&["k", "t"]), pick(&["d", "e", "kubernetes.io/aws-ebs"]), pick(&["", "wait"]))
        .prop_map(|(name, provisioner, mode)| format!("class {name} provisioner={provisioner} {mode}"));
    let attachment = (0..3, pick(&["n0", "n1", "later"]), 0..3, pick(&["d", "e"]))
        .prop_map(|(i, node, v, driver)| format!("attachment t{i} driver={driver} node={node} pv=v{v}"));
    let csi_node = (0..2, pick(&["", "drivers=d:1,e:1", "drivers=d:2,ebs.csi.aws.com:1"]))
        .prop_map(|(i, drivers)| format!("csinode n{i} {drivers}"));
    let claims = pick(&["", "claims=c0", "claims=c0,c1", "claims=c1!uid-p0", "claims=c2,c2", "claims=c3"]);
    let pod = (0..4, pick(&["n0", "n1"]), claims, pick(&["", "disks=ebs:h0", "disks=gce:x"]))
        .prop_map(|(i, node, claims, disks)| format!("pod p{i} on={node} {claims} {disks}"));
    let node = (0..2, pick(&["", ",topology.kubernetes.io/zone:z0"]))
        .prop_map(|(i, zone)| format!("node n{i} labels=host:n{i}{zone}"));
    prop_oneof![4 => claim, 3 => volume, 1 => class, 2 => attachment, 1 => csi_node, 4 => pod, 1 => node]
}

/// Returns kind and name of a line.
fn key(line: &str) -> (String, String) {
    let mut words = line.split_whitespace();
    (words.next().unwrap().to_owned(), words.next().unwrap().to_owned())
}

fn delete(cluster: &mut Cluster, line: &str) -> Vec<ClusterEvent> {
    let ((kind, name), mut events) = (key(line), Vec::new());
    match object(line) {
        Some(object) => cluster.delete_object(object.kind(), &object.key(), &mut events),
        None if kind == "node" => cluster.delete_node(&Name::new(&name), &mut events),
        None => cluster.delete_pod(&PodKey::new(NAMESPACE, &name), &mut events),
    }
    events
}

/// Pending pods.
const WAITING: [&str; 5] = ["claims=c0", "claims=c1", "claims=c2,c3", "disks=ebs:h1", "claims=c1!uid-p0"];

/// Returns which nodes a plugin accepts for a pod.
fn accepted(name: &str, cluster: &Cluster, waiting: &str) -> BTreeMap<Name, bool> {
    let spec = pod(&format!("pod w {waiting}")).spec;
    let names = || cluster.by_name().iter().map(|n| cluster.node_name(*n).clone());
    match ask(&*plugin(name), cluster, &spec) {
        Answer::Skip => names().map(|name| (name, true)).collect(),
        Answer::Refused(_) => names().map(|name| (name, false)).collect(),
        Answer::PerNode(nodes) => names().zip(nodes.iter().map(|(_, cause)| cause.is_none())).collect(),
    }
}

/// Returns everything visible of the volume plugins.
fn seen(cluster: &Cluster) -> Vec<Value> {
    let mut all = Vec::new();
    for factory in pellucid::plugins::registry().iter().filter(|f| PLUGINS.contains(&f.name())) {
        for endpoint in factory.endpoints() {
            let by_node = endpoint.path.contains(":nodeName");
            let names =
                cluster.by_name().iter().filter(|_| by_node).map(|n| cluster.node_name(*n).to_string());
            let mut params: Vec<_> = names.map(|n| PathParams::from([("nodeName".to_owned(), n)])).collect();
            if !endpoint.path.contains(':') {
                params.push(PathParams::new());
            }
            for params in &params {
                let cx = ReadContext {
                    view: View::new(cluster),
                    params,
                    now: Now::default(),
                    list: &List::default(),
                };
                all.push((endpoint.read)(&cx).unwrap());
            }
        }
    }
    for waiting in WAITING {
        let spec = pod(&format!("pod w {waiting}")).spec;
        for name in PLUGINS {
            all.push(lines(cluster, &ask(&*plugin(name), cluster, &spec)).into());
        }
    }
    all
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_derived_step_by_step_equals_what_is_derived_from_scratch(
        steps in prop::collection::vec((line(), prop::bool::weighted(0.2)), 1..40),
    ) {
        let mut live = empty();
        let mut there: BTreeMap<(String, String), String> = BTreeMap::new();
        let mut kept = Vec::new();
        for (line, is_gone) in &steps {
            if *is_gone {
                drop(delete(&mut live, line));
                there.remove(&key(line));
            } else {
                apply(&mut live, line);
                there.insert(key(line), line.clone());
            }
            // Holds published snapshots while the state goes on changing.
            kept.push(live.fork());
        }
        let mut scratch = empty();
        there.values().for_each(|line| drop(apply(&mut scratch, line)));
        prop_assert_eq!(seen(&live), seen(&scratch));
        prop_assert_eq!(seen(kept.last().unwrap()), seen(&live));
        let mut backwards = empty();
        there.values().rev().for_each(|line| drop(apply(&mut backwards, line)));
        prop_assert_eq!(seen(&backwards), seen(&live));
    }

    /// Objects are created; nodes and their CSINodes change; pods, nodes and attachments are deleted. The table in
    /// `wakes` covers other changes of claims, volumes and classes.
    #[test]
    fn what_makes_a_plugin_accept_a_node_is_welcome_to_it(
        steps in prop::collection::vec((line(), prop::bool::weighted(0.2)), 1..40),
    ) {
        let mut live = empty();
        let asked = PLUGINS.iter().flat_map(|plugin| WAITING.map(|waiting| (*plugin, waiting)));
        let asked: Vec<_> = asked.collect();
        let mut there = BTreeSet::new();
        for (line, is_gone) in &steps {
            let changes = ["node", "csinode"].contains(&&*key(line).0);
            let goes = ["pod", "node", "attachment"].contains(&&*key(line).0);
            if *is_gone {
                if !goes || !there.remove(&key(line)) {
                    continue;
                }
            } else if !there.insert(key(line)) && !changes {
                continue;
            }
            let before: Vec<_> = asked.iter().map(|(name, waiting)| accepted(name, &live, waiting)).collect();
            let events = if *is_gone { delete(&mut live, line) } else { apply(&mut live, line) };
            for ((name, waiting), before) in asked.iter().zip(&before) {
                let keeps_out = before.values().any(|accepts| !accepts);
                let after = accepted(name, &live, waiting);
                let mut gained = after.iter().filter(|(_, accepts)| **accepts).map(|(node, _)| node);
                let gained = gained.find(|node| before.get(*node).map_or(keeps_out, |accepted| !accepted));
                let waits = pod(&format!("pod w {waiting}"));
                prop_assert!(
                    gained.is_none() || wakes(name, &live, &waits, &events),
                    "{name} accepts {gained:?} for {waiting} after {line} (gone: {is_gone}), which it does not wait for"
                );
            }
        }
    }

    #[test]
    fn no_volume_is_ever_held_for_two_claims(
        volumes in prop::collection::vec((1..9i64, pick(&["", "reach=host:n0", "reach=host:n0|n1"])), 0..6),
        claims in prop::collection::vec(1..9i64, 1..6),
        pods in prop::collection::vec((prop::collection::vec(0..6usize, 1..3), any::<bool>()), 1..12),
    ) {
        let mut cluster = empty();
        apply(&mut cluster, "class k provisioner=kubernetes.io/no-provisioner wait");
        apply(&mut cluster, "node n0 labels=host:n0");
        apply(&mut cluster, "node n1 labels=host:n1");
        for (i, (size, reach)) in volumes.iter().enumerate() {
            apply(&mut cluster, &format!("pv v{i} class=k size={size} {reach}"));
        }
        for (i, size) in claims.iter().enumerate() {
            apply(&mut cluster, &format!("claim c{i} class=k size={size}"));
        }
        for (i, (wanted, gives_up)) in pods.iter().enumerate() {
            let wanted: Vec<String> = wanted.iter().map(|c| format!("c{}", c % claims.len())).collect();
            apply(&mut cluster, &format!("pod p{i} claims={}", wanted.join(",")));
            let id = cluster.find_pod(&PodKey::new(NAMESPACE, &format!("p{i}"))).unwrap();
            let spec = cluster.pod(id).unwrap().pod.spec.clone();
            let Answer::PerNode(answers) = ask(&*plugin(NAME), &cluster, &spec) else { panic!("claims exist") };
            let Some((node, _)) = answers.into_iter().find(|(_, cause)| cause.is_none()) else { continue };
            let node = cluster.node_name(node).to_string();
            prop_assert!(reserve(&mut cluster, id, &node).is_ok(), "what Filter found, Reserve finds");
            check(&cluster)?;
            if *gives_up {
                cluster.release(id);
            }
        }
    }
}

/// Checks that each volume has one claim, each claim one volume, and each volume is large enough.
fn check(cluster: &Cluster) -> Result<(), TestCaseError> {
    let (mut by_volume, mut by_claim) = (BTreeMap::new(), BTreeMap::new());
    for (_, record) in cluster.pods() {
        for held in record.holds.iter().filter_map(|r| r.what.downcast_ref::<Held>()) {
            for binding in &held.bindings {
                let volume = by_volume.entry(binding.volume.clone()).or_insert(binding.claim.clone());
                prop_assert_eq!(volume, &binding.claim);
                let claim = by_claim.entry(binding.claim.clone()).or_insert(binding.volume.clone());
                prop_assert_eq!(claim, &binding.volume);
                let objects = cluster.objects();
                let claim = objects.claim(&NAMESPACE.into(), &binding.claim).unwrap();
                prop_assert!(objects.volume(&binding.volume).unwrap().capacity >= claim.requested);
            }
        }
    }
    prop_assert!(cluster.objects().iter(ObjectKind::PersistentVolume).count() >= by_volume.len());
    Ok(())
}
