//! Label keys start and stop being read by selectors. Pods that no selector distinguishes have one shape again, and
//! decisions equal those without selectors that select nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use pellucid::cluster::Input;
use pellucid::model::object::Workload;
use pellucid::model::relations::{PodAffinityTerm, PodTerms};
use pellucid::model::selector::{LabelSelector, Labels};
use pellucid::model::{Name, Node, Object, ObjectKind, Pod, PodSpec};
use proptest::prelude::*;

use crate::common::cluster::config;
use crate::common::driver::Core;
use crate::common::made::{core_with, node, pod};

fn labelled(pod: Pod, labels: &[(&str, &str)]) -> Pod {
    Pod { labels: Labels::new(labels.iter().map(|(k, v)| ((*k).into(), (*v).into()))), ..pod }
}

/// Returns a pod with required anti-affinity to pods with these labels, or a preference for nodes with them.
fn selecting(pod: Pod, pairs: &[(Name, Name)], is_required: bool) -> Pod {
    let term = PodAffinityTerm {
        topology_key: "zone".into(),
        selector: Some(LabelSelector::of_pairs(pairs)),
        ..PodAffinityTerm::default()
    };
    let terms = match is_required {
        true => PodTerms { required: Box::new([term]), ..PodTerms::default() },
        false => PodTerms {
            preferred: Box::new([pellucid::model::relations::WeightedTerm { weight: 50, term }]),
            ..PodTerms::default()
        },
    };
    let (pod_affinity, pod_anti_affinity) =
        if is_required { Default::default() } else { (terms.clone(), PodTerms::default()) };
    let pod_anti_affinity = if is_required { terms } else { pod_anti_affinity };
    Pod { spec: Arc::new(PodSpec { pod_affinity, pod_anti_affinity, ..(*pod.spec).clone() }), ..pod }
}

fn service(name: &str, key: &str, value: &str) -> Object {
    let selector = Some(LabelSelector::of_pairs(&[(key.into(), value.into())]));
    Object::Service(Workload {
        namespace: "ns".into(),
        name: name.into(),
        selector,
        replicas: None,
        controller: None,
    })
}

fn worker(i: usize) -> Pod {
    labelled(pod(&format!("worker-{i}"), 1), &[("app", "job"), ("index", &i.to_string())])
}

#[test]
fn a_pod_with_many_selectors_does_no_harm_and_what_it_did_goes_with_it() {
    let mut core = core_with(&[node("n0", 1)]);
    let shapes = |core: &Core| core.scheduler.cluster().shapes().len();
    (0..200).for_each(|i| core.see(&worker(i)));
    assert_eq!(shapes(&core), 1);
    let pairs: Vec<(Name, Name)> =
        (0..300).map(|i| (format!("key-{i}").as_str().into(), "x".into())).collect();
    let greedy = labelled(selecting(pod("greedy", 1), &pairs, true), &[("key-7", "x")]);
    core.see(&greedy);
    assert_eq!(shapes(&core), 2, "none of the others carries one of its keys");
    let pairs = [&pairs[..], &[("index".into(), "x".into())]].concat();
    let greedier = Pod { uid: "other".into(), ..selecting(greedy, &pairs, true) };
    core.see(&greedier);
    assert_eq!(shapes(&core), 201, "their index tells them apart");
    core.delete(&greedier);
    // There are as many changes as pods.
    for i in 0..201 {
        core.see(&worker(i % 200));
    }
    assert_eq!((shapes(&core), core.scheduler.cluster().selected_keys().len()), (1, 0));
}

#[test]
fn a_key_stays_while_one_of_its_selectors_is_there() {
    let mut core = core_with(&[node("n0", 1)]);
    (0..3).for_each(|i| core.see(&worker(i)));
    for name in ["a", "b"] {
        core.see_object(service(name, "index", "1"));
    }
    let settle = |core: &mut Core| (0..8).for_each(|i| core.see(&worker(i % 3)));
    let shapes = |core: &Core| core.scheduler.cluster().shapes().len();
    assert_eq!(shapes(&core), 3);
    core.apply(Input::ObjectDeleted(ObjectKind::Service, ("ns".into(), "a".into())));
    settle(&mut core);
    assert_eq!(shapes(&core), 3);
    core.see_object(service("b", "app", "job"));
    settle(&mut core);
    assert_eq!(shapes(&core), 1, "the other one selects by another key now");
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Happening {
    /// A pod appears or is recreated: its labels as bits, the key that it selects by, and how.
    Pod(usize, usize, Option<(usize, bool)>),
    PodGone(usize),
    /// A Service that selects no pod.
    Service(usize, usize),
    ServiceGone(usize),
    /// A pending pod of another scheduler.
    Foreign(usize),
    Steps,
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop_oneof![
        6 => (0..8usize, 0..16usize, prop::option::of((0..4usize, any::<bool>()))).prop_map(|(i, l, s)| Pod(i, l, s)),
        3 => (0..8usize).prop_map(PodGone),
        3 => (0..3usize, 0..4usize).prop_map(|(i, key)| Service(i, key)),
        3 => (0..3usize).prop_map(ServiceGone),
        1 => (0..4usize).prop_map(Foreign),
        4 => Just(Steps),
    ]
}

struct Life {
    core: Core,
    /// Whether selectors that select nothing are added too.
    is_busy: bool,
    pods: Vec<Option<Pod>>,
    services: [Option<usize>; 3],
    uids: usize,
}

impl Life {
    fn new(is_busy: bool) -> Self {
        let zoned = |i: usize| Node {
            labels: Labels::new([("zone".into(), format!("z{}", i % 3).as_str().into())]),
            ..node(&format!("n{i}"), 3)
        };
        let core = core_with(&(0..5).map(zoned).collect::<Vec<_>>());
        Self { core, is_busy, pods: vec![None; 8], services: [None; 3], uids: 0 }
    }

    fn happen(&mut self, what: &Happening) {
        match *what {
            Happening::Pod(i, labels, selects) => {
                self.uids += 1;
                let value = (i % 2).to_string();
                let labels: Vec<(&str, &str)> = (0..4)
                    .filter(|bit| labels & (1 << bit) != 0)
                    .map(|bit| (KEYS[bit], value.as_str()))
                    .collect();
                let made = labelled(pod(&format!("p{i}"), 1), &labels);
                let made = match selects {
                    Some((key, required)) => selecting(made, &[(KEYS[key].into(), "1".into())], required),
                    None => made,
                };
                let made = Pod { uid: format!("uid-{}", self.uids).into(), ..made };
                self.core.see(&made);
                self.pods[i] = Some(made);
            }
            Happening::PodGone(i) => {
                if let Some(pod) = self.pods[i].take() {
                    self.core.delete(&pod);
                }
            }
            Happening::Service(i, key) if self.is_busy => {
                self.services[i] = Some(key);
                self.core.see_object(service(&format!("s{i}"), KEYS[key], "nobody"));
            }
            Happening::ServiceGone(i) if self.is_busy => {
                self.services[i] = None;
                let at = ("ns".into(), format!("s{i}").as_str().into());
                self.core.apply(Input::ObjectDeleted(ObjectKind::Service, at));
            }
            Happening::Foreign(key) if self.is_busy => {
                let foreign = selecting(pod("foreign", 1), &[(KEYS[key].into(), "0".into())], true);
                self.core.see(&Pod { scheduler_name: "other".into(), ..foreign });
            }
            Happening::Steps => drop(self.core.run()),
            _ => {}
        }
        let used = self.used();
        let selected = self.core.scheduler.cluster().selected_keys();
        assert!(used.iter().all(|key| selected.contains(&(*key).into())));
        assert_eq!(selected.len(), used.len());
    }

    /// Returns the keys that some selector reads.
    fn used(&self) -> BTreeSet<&'static str> {
        let of_pod = |pod: &Pod| {
            let keys = pod.spec.pod_selectors().flat_map(LabelSelector::keys).map(Name::to_string);
            keys.collect::<Vec<_>>()
        };
        let of_pods: BTreeSet<String> = self.pods.iter().flatten().flat_map(of_pod).collect();
        let of_services = self.services.iter().flatten().map(|key| KEYS[*key]);
        KEYS.into_iter().filter(|key| of_pods.contains(*key)).chain(of_services).collect()
    }

    fn decisions(&self) -> Vec<Option<String>> {
        self.pods.iter().map(|pod| self.core.node_of(pod.as_ref()?)).collect()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn selectors_that_select_nothing_change_no_decision_and_leave_nothing_behind(
        happenings in prop::collection::vec(happening(), 1..80),
    ) {
        let (mut plain, mut busy) = (Life::new(false), Life::new(true));
        for what in &happenings {
            plain.happen(what);
            busy.happen(what);
            prop_assert_eq!(plain.decisions(), busy.decisions(), "after {:?}", what);
        }
        // There are as many changes as there may be pods.
        for _ in 0..10 {
            busy.core.see(&Pod { scheduler_name: "other".into(), ..pod("foreign", 1) });
        }
        let used = busy.used();
        for pod in busy.pods.iter().flatten() {
            let id = busy.core.id(pod).expect("it is there");
            let spec = busy.core.scheduler.cluster().pod(id).expect("it is there").pod.spec.clone();
            let expected = pod.labels.iter().filter(|(key, _)| used.contains(&**key));
            prop_assert!(spec.labels.iter().eq(expected), "{:?} of {:?} by {:?}", spec.labels, pod.labels, used);
        }
    }
}
