//! Checks that hold once nothing fails any more and everything has had its time.

use std::time::Duration;

use pellucid::cluster::{NominatedBy, ResourceIdx};
use pellucid::cycle::Scheduler;
use pellucid::model::{Name, NodeIdx, PodId, PodKey};

use crate::api::{Stream, takes_room, waits};
use crate::common::driver::Core;
use crate::common::seen::seen;
use crate::nature::LONG;
use crate::world::World;

impl World {
    /// Checks the calm state after a round.
    pub(crate) fn look_around(&self) {
        self.nothing_is_under_way();
        self.summary_is_written();
        // So far no timeout woke a pod: the events that made a pod fit also woke it.
        self.what_fits_is_bound();
    }

    /// Ends a run, in the calm after the last round.
    pub(crate) fn end(&mut self) {
        self.calm_down();
        // Lost writes are made up for when the pod is tried again.
        self.note(|_| "--- everything is tried again".to_owned());
        self.relist(Stream::Pods);
        let until = self.now() + LONG + Duration::from_secs(1);
        while self.turn(until) {}
        self.settle();
        self.look_around();
        self.nominations_are_told();
        self.state_is_what_the_server_holds();
        self.state_is_as_made_from_scratch();
        self.everybody_goes();
    }

    fn nothing_is_under_way(&self) {
        let scheduler = &self.core.scheduler;
        let cluster = scheduler.cluster();
        assert_eq!(scheduler.n_in_flight(), 0, "placements are under way");
        assert_eq!(scheduler.n_unsettled(), 0, "orders are not settled");
        assert_eq!(self.checks.open_evictions(), 0, "evictions are not settled");
        let counts = scheduler.queue().counts();
        assert_eq!(
            (counts.active, counts.backoff, counts.gated, counts.in_flight),
            (0, 0, 0, 0),
            "{counts:?}"
        );
        for (_, record) in cluster.pods() {
            assert!(!record.stage.is_assumed(), "{} is {}", record.pod.key, record.stage.as_str());
            assert!(record.holds.is_empty(), "{} holds something", record.pod.key);
        }
        for (node, pods) in cluster.nominator().nodes() {
            for pod in pods {
                let (record, nomination) = (cluster.pod(*pod), cluster.nominator().of(*pod));
                let key = record.map(|r| r.pod.key.to_string());
                let by = nomination.map(|n| n.by);
                assert_eq!(by, Some(NominatedBy::Others), "{key:?} is still nominated to {node}");
            }
        }
        let open: Vec<String> = cluster.preemptions().open().map(|(_, p)| p.preemptor.to_string()).collect();
        assert!(open.is_empty(), "preemptions of {open:?} are open");
    }

    /// Checks that the server has what the plugin's state says, whatever became of its writes before.
    fn summary_is_written(&self) {
        let cluster = self.core.scheduler.cluster();
        let placed = cluster.pods().filter(|(_, record)| record.node.is_some()).count();
        let summary = self.api.notices.get(&(Name::from("ns"), Name::from("summary")));
        assert_eq!(summary.map(|s| &s["spec"]["pods"]), Some(&serde_json::json!(placed)), "{summary:?}");
    }

    /// Makes a scheduler that knows only the objects of the API server.
    fn made_from_scratch(&self) -> Core {
        let mut fresh = crate::under_test::core(&self.nature);
        for stream in [Stream::Nodes, Stream::Objects, Stream::Pods] {
            for input in self.api.list(stream) {
                fresh.apply(input);
            }
        }
        fresh
    }

    /// Checks that everything plugins derive incrementally equals what they derive from scratch.
    fn state_is_as_made_from_scratch(&self) {
        let (live, fresh) =
            (seen(self.core.scheduler.cluster()), seen(self.made_from_scratch().scheduler.cluster()));
        for (what, have) in &live {
            assert_eq!(Some(have), fresh.get(what), "{what}");
        }
        assert_eq!(live.len(), fresh.len());
    }

    /// Checks that a scheduler that knows only the objects of the API server would place no pod.
    fn what_fits_is_bound(&self) {
        let mut fresh = self.made_from_scratch();
        let nominations = |s: &Scheduler| -> Vec<(Name, Vec<PodId>)> {
            s.cluster().nominator().nodes().map(|(name, pods)| (name.clone(), pods.to_vec())).collect()
        };
        let before = nominations(&fresh.scheduler);
        while let Some(step) = fresh.step() {
            // From here on, room of a nominated pod is free or taken: the states differ.
            if nominations(&fresh.scheduler) != before {
                return;
            }
            if let Some(node) = fresh.scheduler.chosen(&step.verdict) {
                let ours = self.core.scheduler.cluster().find_pod(&step.pod.key);
                let verdict = ours.and_then(|id| self.core.scheduler.verdict(id)).map(|v| v.outcome);
                panic!("{} fits on {node} and is left behind with {verdict:?}", step.pod.key);
            }
        }
    }

    /// Checks that the API server shows exactly the existing nominations.
    fn nominations_are_told(&self) {
        let cluster = self.core.scheduler.cluster();
        for stored in self.api.pods.values().filter(|s| !s.pod.phase.is_terminal()) {
            let (pod, id) = (&stored.pod, cluster.find_pod(&stored.pod.key));
            let known = id.and_then(|id| cluster.nominator().of(id)).map(|n| &n.node);
            assert_eq!(pod.nominated_node.as_ref(), known, "{} (node {:?})", pod.key, pod.node_name);
        }
    }

    fn state_is_what_the_server_holds(&self) {
        let cluster = self.core.scheduler.cluster();
        let relevant =
            |p: &pellucid::model::Pod| takes_room(p) || (waits(p) && cluster.is_ours(&p.scheduler_name));
        let mut n = 0;
        for pod in self.api.pods.values().map(|s| &s.pod).filter(|p| relevant(p)) {
            let record = cluster.find_pod(&pod.key).and_then(|id| cluster.pod(id));
            let record = record.unwrap_or_else(|| panic!("{} is not in the state", pod.key));
            let node = record.node.map(|node| cluster.node_name(node));
            assert_eq!((&record.pod.uid, node), (&pod.uid, pod.node_name.as_ref()), "{}", pod.key);
            n += 1;
        }
        assert_eq!(cluster.pods().count(), n, "the state holds pods that are not there");
        assert_eq!(cluster.present().len(), self.api.nodes.len());
    }

    /// Deletes all pods: nothing may be left of them.
    fn everybody_goes(&mut self) {
        let keys: Vec<PodKey> = self.api.pods.keys().cloned().collect();
        for key in keys {
            self.api.remove(&key);
        }
        self.drain_api();
        self.settle();
        let cluster = self.core.scheduler.cluster();
        assert_eq!((cluster.pods().count(), cluster.shapes().len()), (0, 0));
        assert_eq!(self.core.scheduler.queue().units().count(), 0);
        assert!(cluster.nominator().is_empty(), "nominations outlive their pods");
        assert_eq!(cluster.preemptions().open().count(), 0, "preemptions outlive their pods");
        for slot in (0..cluster.n_slots() as u32).map(NodeIdx) {
            for resource in (0..cluster.columns().n_resources()).map(|i| ResourceIdx(i as u16)) {
                assert_eq!(cluster.columns().requested(slot, resource), 0);
            }
        }
        let named = (0..cluster.n_slots() as u32).map(NodeIdx).filter(|n| !cluster.node_name(*n).is_empty());
        assert_eq!(named.count(), cluster.present().len(), "no slot is kept for a node that is gone");
        self.checks.count_preemptions(cluster);
        assert!(self.statuses.is_empty(), "status orders wait for nobody");
    }
}
