//! Changes by others: users, controllers, nodes, other schedulers.

use std::sync::Arc;
use std::time::Duration;

use pellucid::model::effect::PodRef;
use pellucid::model::pod::PodPhase;
use pellucid::model::selector::Labels;
use pellucid::model::taint::{Taint, TaintEffect};
use pellucid::model::{Name, Node, Pod, PodId, PodKey};

use crate::api::{Stream, waits};
use crate::world::{Action, World};

impl World {
    /// Makes a random change.
    pub(crate) fn happen(&mut self) {
        match self.rng.below(100) {
            0..24 => self.pods_come(),
            24..30 => self.pod_is_deleted(|_| true),
            30..34 => self.pod_is_deleted(waits),
            34..38 => self.assumed_pod_is_deleted(),
            38..42 => self.preemptor_is_deleted(),
            42..53 => self.pods_end(),
            53..56 => self.pod_is_made_anew(),
            56..59 => self.gate_opens(),
            59..64 => self.watch_restarts(),
            64..70 if self.nature.flapping => self.node_goes(None),
            70..76 if self.nature.flapping => self.nominated_node_goes(),
            76..79 => self.node_is_tainted(),
            79..81 => self.node_moves(),
            81..100 if self.nature.others => self.others_interfere(),
            _ => self.pods_come(),
        }
    }

    fn others_interfere(&mut self) {
        match self.rng.below(10) {
            0 => self.foreign_pod_comes(),
            1 => self.our_pod_is_placed_by_others(),
            2 | 3 => self.foreign_nomination(),
            4 | 5 => self.pod_is_resized(),
            6 => self.pod_is_relabelled(),
            7 => self.node_offers_otherwise(),
            8 => self.pod_is_unreadable(),
            _ => self.budget_changes(),
        }
    }

    fn pods_come(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            let pod = self.workload.waiting(&mut self.api, &mut self.rng);
            let line = format!("api: {} ({}) comes, never {}", pod.key, pod.priority, pod.never_preempts);
            self.note(|_| line);
            if !self.api.pods.contains_key(&pod.key) {
                self.api.create(pod);
            }
        }
    }

    fn some_pod(&mut self, of: impl Fn(&Pod) -> bool) -> Option<PodKey> {
        let keys = self.api.pods.values().filter(|s| of(&s.pod)).map(|s| s.pod.key.clone());
        let keys: Vec<PodKey> = keys.collect();
        self.rng.pick(&keys).cloned()
    }

    fn delete(&mut self, key: &PodKey) {
        self.note(|_| format!("api: {key} is deleted"));
        if let Some(uid) = self.api.pods.get(key).map(|s| s.pod.uid.clone()) {
            self.api.delete(&PodRef { key: key.clone(), uid });
        }
    }

    fn pod_is_deleted(&mut self, of: impl Fn(&Pod) -> bool) {
        if let Some(key) = self.some_pod(of) {
            self.delete(&key);
        }
    }

    fn key_of(&self, id: PodId) -> Option<PodKey> {
        self.core.scheduler.cluster().pod(id).map(|r| r.pod.key.clone())
    }

    fn assumed_pod_is_deleted(&mut self) {
        let cluster = self.core.scheduler.cluster();
        let assumed = cluster.pods().filter(|(_, r)| r.stage.is_assumed()).map(|(_, r)| r.pod.key.clone());
        let mut assumed: Vec<PodKey> = assumed.collect();
        assumed.sort();
        if let Some(key) = self.rng.pick(&assumed).cloned() {
            self.delete(&key);
        }
    }

    fn preemptor_is_deleted(&mut self) {
        let mut open: Vec<PodKey> = self
            .core
            .scheduler
            .cluster()
            .preemptions()
            .open()
            .filter_map(|(id, _)| self.key_of(id))
            .collect();
        open.sort();
        if let Some(key) = self.rng.pick(&open).cloned() {
            self.delete(&key);
        }
    }

    fn pods_end(&mut self) {
        for _ in 0..1 + self.rng.below(3) {
            if let Some(key) = self.some_pod(|p| p.phase == PodPhase::Running) {
                self.note(|_| format!("api: {key} ends"));
                self.api.change(&key, |s| s.pod.phase = PodPhase::Succeeded);
            }
        }
    }

    /// Recreates a pod under the same name with a new UID.
    fn pod_is_made_anew(&mut self) {
        let Some(key) = self.some_pod(|_| true) else { return };
        self.note(|_| format!("api: {key} is made anew"));
        let Some(old) = self.api.pods.get(&key).map(|s| s.pod.clone()) else { return };
        self.api.remove(&key);
        self.api.create(Pod {
            node_name: None,
            nominated_node: None,
            phase: PodPhase::Pending,
            deleting: false,
            is_preempted: false,
            started: None,
            scheduled: None,
            scheduler_name: crate::SCHEDULER.into(),
            ..old
        });
    }

    fn gate_opens(&mut self) {
        if let Some(key) = self.some_pod(|p| !p.gates.is_empty()) {
            self.api.change(&key, |s| s.pod.gates = [].into());
        }
    }

    fn watch_restarts(&mut self) {
        let stream = *self.rng.pick(&Stream::ALL).expect("not empty");
        self.relist(stream);
    }

    fn some_node(&mut self) -> Option<Node> {
        let names: Vec<Name> = self.api.nodes.keys().cloned().collect();
        let name = self.rng.pick(&names)?;
        self.api.nodes.get(name).cloned()
    }

    fn node_goes(&mut self, which: Option<Name>) {
        let node = match which {
            Some(name) => self.api.nodes.get(&name).cloned(),
            None => self.some_node(),
        };
        let Some(node) = node else { return };
        self.note(|_| format!("api: node {} goes", node.name));
        self.api.delete_node(&node.name);
        if self.rng.chance(70) {
            let later =
                if self.rng.chance(50) { self.rng.millis(1, 300) } else { self.rng.millis(300, 30_000) };
            self.put(later, Action::NodeReturns(Box::new(node)));
        }
    }

    fn nominated_node_goes(&mut self) {
        let nominated: Vec<Name> =
            self.core.scheduler.cluster().nominator().nodes().map(|(name, _)| name.clone()).collect();
        if let Some(name) = self.rng.pick(&nominated).cloned() {
            self.node_goes(Some(name));
        }
    }

    fn node_is_tainted(&mut self) {
        let Some(mut node) = self.some_node() else { return };
        match self.rng.below(3) {
            0 => node.unschedulable = !node.unschedulable,
            1 => node.taints = Arc::from([]),
            _ if self.rng.chance(50) => node.taints = Arc::from([]),
            _ => {
                let effect = TaintEffect::NoSchedule;
                node.taints = [Taint { key: "dedicated".into(), value: "web".into(), effect }].into();
            }
        }
        self.api.put_node(node);
    }

    fn node_moves(&mut self) {
        let Some(mut node) = self.some_node() else { return };
        let zone = Name::new(self.rng.pick(&["za", "zb", "zc"]).expect("not empty"));
        let labels = node.labels.iter().cloned().chain([("topology.kubernetes.io/zone".into(), zone)]);
        node.labels = Labels::new(labels);
        self.api.put_node(node);
    }

    // === others ===

    fn foreign_pod_comes(&mut self) {
        let pod = self.workload.low(&mut self.api, &mut self.rng);
        let name = self.some_node().map(|n| n.name);
        // Sometimes the node does not exist.
        let name = name.unwrap_or_else(|| "n99".into());
        self.note(|_| format!("api: {} comes on {name}", pod.key));
        self.workload.run_on(&mut self.api, &mut self.rng, pod, &name, false);
    }

    fn our_pod_is_placed_by_others(&mut self) {
        let Some(key) = self.some_pod(|p| waits(p) && p.gates.is_empty()) else { return };
        let Some(node) = self.some_node() else { return };
        self.note(|_| format!("api: others place {key} on {}", node.name));
        let Some(uid) = self.api.pods.get(&key).map(|s| s.pod.uid.clone()) else { return };
        let _ = self.api.bind(&PodRef { key, uid }, &node.name);
    }

    fn foreign_nomination(&mut self) {
        let Some(key) = self.some_pod(waits) else { return };
        let node = self.some_node().map(|n| n.name);
        let node = if self.rng.chance(15) { Some("n99".into()) } else { node };
        let node = if self.rng.chance(25) { None } else { node };
        self.note(|_| format!("api: others nominate {key} to {node:?}"));
        self.api.change(&key, |s| s.pod.nominated_node = node);
    }

    fn pod_is_resized(&mut self) {
        let Some(key) = self.some_pod(|p| !p.phase.is_terminal()) else { return };
        let requests =
            crate::workload::requests(self.rng.between(1, 12) * 250, 1 << self.rng.between(28, 31), 0);
        self.note(|_| format!("api: {key} is resized to {:?}", requests.list));
        self.api.change(&key, |s| Arc::make_mut(&mut s.pod.spec).requests = requests);
    }

    fn pod_is_relabelled(&mut self) {
        let Some(key) = self.some_pod(|_| true) else { return };
        let app = Name::new(self.rng.pick(&["web", "db", "cache"]).expect("not empty"));
        self.note(|_| format!("api: {key} is app={app}"));
        self.api.change(&key, |s| {
            s.pod.labels = Labels::new([("app".into(), app)]);
            Arc::make_mut(&mut s.pod.spec).labels = s.pod.labels.clone();
        });
    }

    fn node_offers_otherwise(&mut self) {
        let Some(mut node) = self.some_node() else { return };
        let list = &mut node.allocatable;
        list.milli_cpu = (list.milli_cpu + self.rng.between(-2, 2) * 500).max(0);
        list.pods = (list.pods + self.rng.between(-2, 2)).max(0);
        self.note(|_| format!("api: node {} offers {:?}", node.name, node.allocatable));
        self.api.put_node(node);
    }

    fn pod_is_unreadable(&mut self) {
        let Some(key) = self.some_pod(|_| true) else { return };
        self.note(|_| format!("api: {key} cannot be read"));
        self.api.change(&key, |s| s.is_unreadable = true);
        let later = self.rng.millis(10, 20_000);
        self.put(later, Action::ReadableAgain(key));
    }

    fn budget_changes(&mut self) {
        let keys: Vec<_> = self.api.budgets.keys().cloned().collect();
        let Some(key) = self.rng.pick(&keys).cloned() else { return };
        let Some(mut guarded) = self.api.budgets.get(&key).cloned() else { return };
        guarded.min_available = self.rng.between(0, 4) as i32;
        guarded.budget.allowed = self.rng.between(0, 3) as i32;
        self.api.put_budget(guarded);
    }

    /// Ends all failures and interference, opens gates, and lets stubborn pods terminate.
    pub(crate) fn calm_down(&mut self) {
        self.note(|_| "--- calm".to_owned());
        self.nature.faults = 0;
        self.nature.stubborn = 0;
        self.nature.slow = 0;
        let keys: Vec<PodKey> = self.api.pods.keys().cloned().collect();
        for key in keys {
            let Some(stored) = self.api.pods.get_mut(&key) else { continue };
            let (was_stubborn, uid) = (std::mem::take(&mut stored.is_stubborn), stored.pod.uid.clone());
            let is_held = stored.is_unreadable || !stored.pod.gates.is_empty();
            if is_held {
                self.api.change(&key, |s| {
                    s.is_unreadable = false;
                    s.pod.gates = [].into();
                });
            }
            let is_leaving = self.api.pods.get(&key).is_some_and(|s| s.pod.deleting);
            let node = self.api.pods.get(&key).and_then(|s| s.pod.node_name.clone());
            let is_lost = node.is_some_and(|n| !self.api.nodes.contains_key(&n));
            if was_stubborn && (is_leaving || is_lost) {
                let later = self.rng.millis(10, 5000);
                self.put(later, Action::Follow(crate::api::FollowUp::End(key, uid)));
            }
        }
        self.drain_api();
    }

    /// Runs until nothing is in progress and nothing is due for a long time.
    pub(crate) fn settle(&mut self) {
        loop {
            let until = self.now() + Duration::from_secs(60);
            if !self.turn(until) {
                assert!(self.is_agenda_empty(), "the agenda is within reach");
                return;
            }
        }
    }
}
