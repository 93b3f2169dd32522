//! The objects of a settled cluster: to explain, and to change and decide again from scratch.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid::cycle::Snapshot;
use pellucid::diagnosis::reads::reads;
use pellucid::framework::endpoint::PathParams;
use pellucid::model::relations::{PodTerms, WeightedTerm};
use pellucid::model::requests::PodRequests;
use pellucid::model::selector::{Labels, NodeAffinity};
use pellucid::model::taint::{Toleration, TolerationOperator};
use pellucid::model::{Name, Node, Object, Pod, PodKey, PodSpec, quantity};
use pellucid::plugins::registry;
use pellucid::recording::Outcome;
use serde_json::Value;

use crate::common::cluster::{SCHEDULER, World, reads_all_labels};
use crate::common::driver::Core;
use crate::common::made::core;

/// The objects of a cluster.
#[derive(Clone, Default)]
pub(crate) struct Objects {
    pub(crate) nodes: BTreeMap<Name, Node>,
    pub(crate) objects: Vec<Object>,
    /// Pods on a node.
    pub(crate) placed: BTreeMap<PodKey, Pod>,
    /// Refused pods.
    pub(crate) pending: BTreeMap<PodKey, Pod>,
}

/// Makes what a pod requires of other pods a preference.
fn prefer(terms: &mut PodTerms) {
    let wanted = terms.required.iter().map(|term| WeightedTerm { weight: 100, term: term.clone() });
    terms.preferred = terms.preferred.iter().cloned().chain(wanted).collect();
    terms.required = Box::default();
}

impl Objects {
    /// Lets a scheduler place what fits, and returns the resulting objects and snapshot.
    pub(crate) fn settled(world: World) -> (Self, Snapshot) {
        let mut objects = Self { objects: world.objects, ..Self::default() };
        objects.nodes = world.nodes.into_iter().map(|node| (node.name.clone(), node)).collect();
        // Preemption would change the cluster while it is being explained.
        let plain = |pod: Pod| Pod { never_preempts: true, scheduler_name: SCHEDULER.into(), ..pod };
        objects.placed = world.placed.into_iter().map(|pod| (pod.key.clone(), pod)).collect();
        objects.pending = world.pending.into_iter().map(|pod| (pod.key.clone(), plain(pod))).collect();
        let mut core = objects.core();
        // A pod may need one that is placed later beside it.
        for _ in 0..8 {
            core.run();
            core.wait(std::time::Duration::from_secs(60));
        }
        let cluster = core.scheduler.cluster();
        let keys: Vec<PodKey> = objects.pending.keys().cloned().collect();
        for key in keys {
            let node = cluster.find_pod(&key).and_then(|id| cluster.pod(id)?.node);
            if let Some(node) = node
                && let Some(pod) = objects.pending.remove(&key)
            {
                let node_name = Some(cluster.node_name(node).clone());
                objects.placed.insert(key, Pod { node_name, ..pod });
            }
        }
        let snapshot = core.scheduler.publish(core.now);
        (objects, snapshot)
    }

    /// Makes a scheduler with these objects.
    pub(crate) fn core(&self) -> Core {
        let mut core = core();
        let reads_all = reads_all_labels();
        self.objects.iter().chain([&reads_all]).for_each(|object| core.see_object(object.clone()));
        self.nodes.values().for_each(|node| core.see_node(node));
        self.placed.values().chain(self.pending.values()).for_each(|pod| core.see(pod));
        core
    }

    /// Returns whether the kubelet of a pod's node is there to end the pod.
    pub(crate) fn is_reached(&self, pod: &Pod) -> bool {
        let node = pod.node_name.as_ref().and_then(|name| self.nodes.get(name));
        node.is_some_and(|node| {
            node.taints.iter().all(|taint| &*taint.key != "node.kubernetes.io/unreachable")
        })
    }

    /// Returns whether a pod is placed when it is the only pending one.
    pub(crate) fn places(&self, key: &PodKey) -> bool {
        let alone = self.pending.get(key).map(|pod| (key.clone(), pod.clone()));
        let objects = Self { pending: alone.into_iter().collect(), ..self.clone() };
        let mut core = objects.core();
        core.run().iter().any(|step| matches!(step.verdict.outcome, Outcome::Placed(_)))
    }

    /// Returns how many copies of a pod fit one after another.
    pub(crate) fn copies(&self, pod: &Pod, most: usize) -> usize {
        let mut core = Self { pending: BTreeMap::new(), ..self.clone() }.core();
        for number in 0..most {
            let key = PodKey { namespace: pod.key.namespace.clone(), name: format!("{number}").into() };
            core.see(&Pod { key, uid: format!("{number}").into(), ..pod.clone() });
            if !core.run().iter().any(|step| matches!(step.verdict.outcome, Outcome::Placed(_))) {
                return number;
            }
        }
        most
    }

    /// Applies one edit of a fix, according to its REST body.
    pub(crate) fn edit(&mut self, edit: &Value) {
        let (what, how) = edit.as_object().and_then(|e| e.iter().next()).expect("an edit has one field");
        let text = |field: &str| how[field].as_str().unwrap_or_default();
        let node = |name: &str| Name::new(name);
        match what.as_str() {
            "uncordon" => uncordon(self.nodes.get_mut(&node(how.as_str().expect("a name"))).expect("a node")),
            "removeTaint" => {
                let known = self.nodes.get_mut(&node(text("node"))).expect("a node");
                let goes = |key: &str, effect: &str| key == text("key") && effect == text("effect");
                known.taints =
                    known.taints.iter().filter(|t| !goes(&t.key, t.effect.as_str())).cloned().collect();
            }
            "labelNode" => {
                let known = self.nodes.get_mut(&node(text("node"))).expect("a node");
                let rest = known.labels.iter().filter(|(k, _)| &**k != text("key")).cloned();
                known.labels = Labels::new(rest.chain([(text("key").into(), text("value").into())]));
            }
            "removeLabel" => {
                let known = self.nodes.get_mut(&node(text("node"))).expect("a node");
                assert!(known.labels.text(text("key")).is_some(), "{} is there", text("key"));
                known.labels = Labels::new(known.labels.iter().filter(|(k, _)| &**k != text("key")).cloned());
            }
            "copyNode" => {
                let mut copy = self.nodes[&node(text("node"))].clone();
                let rest = copy.labels.iter().filter(|(k, _)| &**k != "kubernetes.io/hostname").cloned();
                copy.labels =
                    Labels::new(rest.chain([("kubernetes.io/hostname".into(), text("name").into())]));
                uncordon(&mut copy);
                (copy.name, copy.uid) = (text("name").into(), "a-copy".into());
                self.nodes.insert(copy.name.clone(), copy);
            }
            "deletePod" => {
                let key = key_of(how.as_str().expect("a name"));
                assert!(self.placed.remove(&key).is_some(), "{key} is placed");
            }
            "setRequest" => self.respec(text("pod"), |spec| {
                let (resource, amount) = (text("resource"), text("amount"));
                let amount =
                    if resource == "cpu" { quantity::milli(amount) } else { quantity::units(amount) };
                request(&mut spec.requests, resource, amount.expect("it is a quantity"));
            }),
            "addToleration" => self.respec(text("pod"), |spec| {
                let taint = &how["taint"];
                let field = |name: &str| Name::new(taint[name].as_str().unwrap_or_default());
                let effects = [
                    pellucid::model::taint::TaintEffect::NoSchedule,
                    pellucid::model::taint::TaintEffect::NoExecute,
                ];
                let effect = effects.into_iter().find(|e| *e.as_str() == *field("effect"));
                let toleration = Toleration {
                    key: field("key"),
                    operator: TolerationOperator::Equal,
                    value: field("value"),
                    effect,
                };
                spec.tolerations = spec.tolerations.iter().cloned().chain([toleration]).collect();
            }),
            "dropNodeAffinity" => self.respec(text("pod"), |spec| {
                spec.affinity =
                    NodeAffinity { preferred: spec.affinity.preferred.clone(), ..Default::default() };
                spec.node_name = None;
            }),
            "dropHostPorts" => self.respec(text("pod"), |spec| spec.host_ports = Box::default()),
            "relaxSpread" => self.respec(text("pod"), |spec| {
                spec.spread.iter_mut().for_each(|constraint| constraint.is_hard = false);
            }),
            "relaxPodAffinity" => self.respec(text("pod"), |spec| prefer(&mut spec.pod_affinity)),
            "relaxPodAntiAffinity" => self.respec(text("pod"), |spec| prefer(&mut spec.pod_anti_affinity)),
            "removeGates" => {
                self.pending.get_mut(&key_of(text("pod"))).expect("it waits").gates = Box::default()
            }
            other => panic!("no test knows the edit {other}"),
        }
    }

    fn respec(&mut self, pod: &str, change: impl FnOnce(&mut PodSpec)) {
        let pod = self.pending.get_mut(&key_of(pod)).expect("fixes change the pod they are for");
        let mut spec = PodSpec::clone(&pod.spec);
        change(&mut spec);
        pod.spec = Arc::new(spec);
    }
}

fn uncordon(node: &mut Node) {
    node.unschedulable = false;
    let stays = |t: &&pellucid::model::taint::Taint| &*t.key != "node.kubernetes.io/unschedulable";
    node.taints = node.taints.iter().filter(stays).cloned().collect();
}

fn request(requests: &mut PodRequests, resource: &str, amount: i64) {
    let list = &mut requests.list;
    match resource {
        "cpu" => list.milli_cpu = amount,
        "memory" => list.memory = amount,
        "ephemeral-storage" => list.ephemeral_storage = amount,
        _ => {
            let found = list.scalars.iter_mut().find(|(name, _)| &**name == resource);
            found.expect("only what is requested is lowered").1 = amount;
        }
    }
}

pub(crate) fn key_of(text: &str) -> PodKey {
    let (namespace, name) = text.split_once('/').expect("namespace/name");
    PodKey::new(namespace, name)
}

/// Answers registered reads.
pub(crate) struct Reader(Vec<pellucid::diagnosis::reads::SnapshotRead>);

impl Reader {
    pub(crate) fn new() -> Self {
        Self(reads(&registry()))
    }

    /// Answers a read about a pod, given the end of its path and query parameters.
    pub(crate) fn of_pod(
        &self,
        snapshot: &Snapshot,
        key: &PodKey,
        end: &str,
        query: &[(&str, &str)],
    ) -> Value {
        let path = format!("/apis/v1/explain/pods/:namespace/:name{end}");
        let read = self.0.iter().find(|read| read.path == path).expect("it is registered");
        let own = [("namespace", &*key.namespace), ("name", &*key.name)];
        let params: PathParams = own
            .into_iter()
            .chain(query.iter().copied())
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        (read.read)(snapshot, &params, snapshot.published)
            .unwrap_or_else(|error| panic!("{key} {end}: {error:?}"))
    }
}
