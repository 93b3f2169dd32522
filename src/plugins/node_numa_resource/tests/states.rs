//! What pods hold and how it comes back, scores, wake-ups, and what is shown of bad input.

use super::*;

#[test]
fn amounts_are_split_and_cpus_picked_where_the_split_says() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "p", single(pinned(2, "")), Some(0b01));
    let wide = pinned(4, "");
    assert_eq!(
        bind(&plugin, &mut cluster, "q", wide, Some(0b11)),
        r#"{"cpuset":"1-2,5-6","numaNodeResources":[{"node":0,"resources":{"cpu":"2","memory":"512Mi"}},{"node":1,"resources":{"cpu":"2","memory":"512Mi"}}]}"#
    );
    let on = state(&cluster);
    assert_eq!((on.single, on.shared), (NumaMask(0), NumaMask(0b11)), "a NUMA node with both is shared");
}

#[test]
fn nothing_is_lost_whichever_of_pod_and_topology_comes_first() {
    let plugin = plugin(json!({}));
    let mut known = cluster(&plugin, &[]);
    let text = bind(&plugin, &mut known, "p", pinned(4, ""), Some(0b01));
    let pod = Pod { key: PodKey::new("d", "p"), uid: "p".into(), ..pod_with(pinned(4, "")) };
    // The pod, then the topology, then the node.
    let mut late = TestCluster::with(std::slice::from_ref(&plugin), []);
    bound(&mut late, &pod, &text);
    report(&mut late, "a", &topology(&[]));
    late.apply(labelled("a", &[]));
    let own = |cluster: &TestCluster| {
        let on = state(cluster);
        (on.taken.clone(), on.used.clone(), on.free.clone(), on.single, on.zones.clone())
    };
    assert_eq!(own(&late), own(&known));
    // The topology goes and comes back.
    let old = object("a", &topology(&[]), "1");
    late.cluster.delete_custom(old.kind, &(Name::default(), "a".into()), &mut Vec::new());
    assert_eq!((state(&late).free.len(), state(&late).taken.len()), (0, 4));
    report(&mut late, "a", &topology(&[]));
    assert_eq!(own(&late), own(&known));
}

#[test]
fn an_annotation_that_changes_changes_what_is_held() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "p", pinned(2, ""), None);
    let pod = Pod { key: PodKey::new("d", "p"), uid: "p".into(), ..pod_with(pinned(2, "")) };
    bound(&mut cluster, &pod, r#"{"cpuset":"6-7"}"#);
    assert_eq!(state(&cluster).taken.to_string(), "6-7");
    cluster.cluster.apply_pod(Arc::new(Pod { node_name: Some("a".into()), ..pod.clone() }), &mut Vec::new());
    assert_eq!(
        state(&cluster).taken.to_string(),
        "6-7",
        "an object without marks may be older than the Binding"
    );
    cluster.cluster.delete_pod(&pod.key, &mut Vec::new());
    assert!(state(&cluster).taken.is_empty());
}

#[test]
fn a_refused_pod_is_woken_by_what_helps_it() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "p", pinned(6, ""), None);
    let asked = pod_with(pinned(4, ""));
    assert!(refused(&plugin, &cluster, &asked.spec).is_some());
    let hints = plugin.hints().expect("it hints");
    let event = report(&mut cluster, "a", &topology(&[(keys::RESERVATION, json!({"reservedCPUs": "7"}))]));
    assert!(hints.events().any(event.kinds()));
    assert_eq!(hints.hint(cluster.view(), &asked, &event), Hint::Skip);
    let mut events = Vec::new();
    cluster.cluster.delete_pod(&PodKey::new("d", "p"), &mut events);
    let released = events.iter().find(|event| matches!(event, ClusterEvent::PodReleased { .. }));
    let released = released.expect("the pod gives its node up");
    assert_eq!(hints.hint(cluster.view(), &asked, released), Hint::Queue);
}

#[test]
fn scores_count_numa_nodes_under_a_policy_and_the_node_without() {
    let plugin = plugin(json!({"scoringStrategy": {"type": "MostAllocated"}}));
    let mut cluster = cluster(&plugin, &[]);
    let score = |cluster: &TestCluster, spec: &PodSpec| {
        pellucid_plugin_helper::testing::raw_scores(&*plugin, cluster, spec)
    };
    // 2 of 8 CPUs and 1 of 8 GiB.
    assert_eq!(score(&cluster, &spec(2000, 1, &[])), Some(vec![(25 + 12) / 2]));
    // 2 of 4 CPUs and 1 of 4 GiB.
    assert_eq!(score(&cluster, &single(spec(2000, 1, &[]))), Some(vec![(50 + 25) / 2]));
    let old = object("a", &topology(&[]), "1");
    cluster.cluster.delete_custom(old.kind, &(Name::default(), "a".into()), &mut Vec::new());
    assert_eq!(
        score(&cluster, &spec(2000, 1, &[])),
        None,
        "without NodeResourceTopologies nothing is scored"
    );
}

/// Changes one character of one annotation, or an amount of a zone.
fn mangled(random: &mut Random) -> Value {
    let allocs = json!([{"uid": "k", "name": "k", "cpuset": "1,5", "managedByKubelet": true}]);
    let mut made = topology(&[
        (keys::POD_CPU_ALLOCS, allocs),
        (keys::CPU_MANAGER_POLICY, json!({"policy": "static", "options": {}, "reservedCPUs": "0-1"})),
        (keys::RESERVATION, json!({"reservedCPUs": "2"})),
        (keys::SYSTEM_QOS_RESOURCE, json!({"cpuset": "3", "cpusetExclusive": true})),
        (keys::CPU_SHARED_POOLS, json!([{"socket": 0, "node": 1, "cpuset": "4-7"}])),
        (keys::AMPLIFICATION_RATIO, json!({"cpu": 1.5})),
    ]);
    let texts = made["metadata"]["annotations"].as_object_mut().expect("annotations");
    let at = random.below(texts.len() as u64) as usize;
    if let Some(text) = texts.values_mut().nth(at) {
        let mut bytes = text.as_str().expect("a text").as_bytes().to_vec();
        for _ in 0..=random.below(2) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = b"0919-,{}[]\":xn e"[random.below(16) as usize];
        }
        *text = String::from_utf8(bytes).expect("it is ASCII").into();
    }
    if random.is(4) {
        let amount = ["-5", "9223372036854775807", "1e30", "0"][random.below(4) as usize];
        made["zones"][0]["resources"][random.below(2) as usize]["allocatable"] = amount.into();
    }
    made
}

#[test]
fn what_is_mangled_is_read_or_told_and_never_panics() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[(keys::NUMA_TOPOLOGY_POLICY, "Restricted")]);
    let mut random = Random(11);
    let (mut told, mut taken) = (0, 0);
    for round in 0..2_000 {
        let manifest = mangled(&mut random);
        let Ok(read) = NodeTopology::read(&manifest) else { continue };
        assert_eq!(NodeTopology::read(&read.manifest()).as_ref(), Ok(&read), "round {round}");
        told += usize::from(!read.problems.is_empty());
        report(&mut cluster, "a", &manifest);
        for spec in [pinned(2, FULL), pinned(3, ""), spec(500, 2, &[])] {
            let is_refused = refused(&plugin, &cluster, &spec).is_some();
            let aligned = unaligned(&plugin, &cluster, &spec);
            taken += usize::from(!is_refused && aligned.is_none());
            pellucid_plugin_helper::testing::raw_scores(&*plugin, &cluster, &spec);
        }
    }
    assert!(told > 100 && taken > 1_000, "{told} {taken}");
}

#[test]
fn what_is_wrong_with_a_node_is_shown() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[(keys::CPU_BIND_POLICY, "Full")]);
    report(&mut cluster, "a", &topology(&[(keys::RESERVATION, json!({"reservedCPUs": "1,99"}))]));
    for (name, status) in [("p", r#"{"cpuset":"0-1"}"#), ("q", r#"{"cpuset":"0"}"#), ("r", "x")] {
        let pod = Pod { key: PodKey::new("d", name), uid: name.into(), ..pod_with(pinned(1, "")) };
        bound(&mut cluster, &pod, status);
    }
    let all = endpoints::all();
    let read = |path: &str| {
        let endpoint = all.iter().find(|endpoint| endpoint.path == path).expect("it is registered");
        let params = [("nodeName".to_owned(), "a".to_owned())].into();
        let list = pellucid_framework::list::List::default();
        let cx = pellucid_framework::endpoint::ReadContext {
            view: cluster.view(),
            params: &params,
            now: Now::default(),
            list: &list,
        };
        (endpoint.read)(&cx).expect("an answer")
    };
    let body = read("nodes/:nodeName");
    let problems: Vec<String> = body["problems"]
        .as_array()
        .expect("problems")
        .iter()
        .map(|problem| {
            format!(
                "{} {}",
                problem["value"].as_str().unwrap_or(""),
                problem["problem"].as_str().unwrap_or("")
            )
        })
        .collect();
    assert_eq!(
        problems,
        [
            "Full must be None, FullPCPUsOnly or SpreadByPCPUs",
            "99 the node does not have these CPUs, so they count for nothing",
            "0-1 the system has its CPUs 1 too",
            "0 another pod has its CPUs 0 too",
            "x no JSON: expected value at line 1 column 1; the pod counts as holding nothing",
        ]
    );
    assert_eq!((&body["availableCPUs"], &body["allocatedCPUs"]["0"]["refCount"]), (&json!("2-7"), &json!(2)));
    let state = read("state");
    assert_eq!((&state["withProblems"], &state["nodes"][0]["problems"]), (&json!(1), &json!(2)));
}
