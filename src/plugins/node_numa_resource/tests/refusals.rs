//! Every refusal with its numbers and words.

use super::*;

#[test]
fn a_pod_that_cannot_be_served_anywhere_is_refused_as_a_whole() {
    let plugin = plugin(json!({}));
    let cluster = cluster(&plugin, &[]);
    let why = |spec: &PodSpec| pre_filter(&*plugin, &cluster, spec).err().unwrap_or_default();
    let half = PodSpec { labels: Labels::new([(QOS_CLASS.into(), "LSE".into())]), ..spec(1500, 1, &[]) };
    assert_eq!(why(&half), "the requested CPUs must be integer");
    let bad = spec(1000, 1, &[(keys::RESOURCE_SPEC, "x")]);
    assert!(why(&bad).starts_with("pod asks for CPUs or NUMA nodes in a way that cannot be read: "));
    assert!(matches!(pre_filter(&*plugin, &cluster, &PodSpec::default()), Ok(None)), "nothing is requested");
}

#[test]
fn nodes_say_why_they_refuse() {
    let plugin = plugin(json!({}));
    let plain = cluster(&plugin, &[]);
    let forced = cluster(&plugin, &[(keys::CPU_BIND_POLICY, "FullPCPUsOnly")]);
    let aligned = cluster(&plugin, &[(keys::NUMA_TOPOLOGY_POLICY, "Restricted")]);
    for (cluster, spec, code, words) in [
        (&forced, spec(1500, 1, &[]), "CpusNotInteger", "it forces FullPCPUs, and the pod requests 1.5 CPUs"),
        (
            &forced,
            spec(1000, 1, &[]),
            "CpusNotWholeCores",
            "its cores have 2 threads, and the pod asks for 1 CPU",
        ),
        (
            &forced,
            pinned(2, SPREAD),
            "CpuBindPolicyConflict",
            "it forces FullPCPUs, and the pod requires SpreadByPCPUs",
        ),
        (
            &plain,
            pinned(3, FULL),
            "CpusNotWholeCores",
            "its cores have 2 threads, and the pod asks for 3 CPUs",
        ),
        (
            &plain,
            pinned(6, SPREAD),
            "NotEnoughCpus",
            "the pod asks for 6 CPUs under SpreadByPCPUs; NUMA 0: 2 of 2 cores have a free CPU; NUMA 1: 2 of 2 cores have a free CPU",
        ),
        (
            &aligned,
            single(spec(1000, 1, &[])),
            "NumaPolicyMismatch",
            "its NUMA topology policy is Restricted, and the pod asks for SingleNUMANode",
        ),
    ] {
        assert_eq!(refused(&plugin, cluster, &spec), Some((code, words.to_owned())));
    }
    assert_eq!(refused(&plugin, &plain, &pinned(4, FULL)), None);
    assert_eq!(refused(&plugin, &forced, &spec(2000, 1, &[])), None);
}

#[test]
fn half_used_cores_are_told_with_their_pods() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    bind(&plugin, &mut cluster, "web-3", pinned(1, SPREAD), None);
    let asked = pinned(8, FULL);
    let (code, words) = refused(&plugin, &cluster, &asked).expect("7 CPUs are left");
    assert_eq!(code, "NotEnoughCpus");
    assert_eq!(
        words,
        "the pod asks for 8 CPUs under FullPCPUs; NUMA 0: 1 of 2 cores free in whole, 1 core half used by web-3; NUMA 1: 2 of 2 cores free in whole"
    );
    assert_eq!(
        measures(&*plugin, &cluster, &asked),
        [("CPUs of its own free".to_owned(), 8, 6, "a".to_owned())]
    );
}

#[test]
fn a_node_without_a_usable_topology_refuses_only_pods_with_cpus_of_their_own() {
    let plugin = plugin(json!({}));
    let mut cluster = TestCluster::with(std::slice::from_ref(&plugin), [labelled("a", &[])]);
    let asked = pinned(2, "");
    let words = |cluster: &TestCluster| refused(&plugin, cluster, &asked).expect("the CPUs are not known");
    assert_eq!(words(&cluster), ("InvalidCpuTopology", "it has no NodeResourceTopology".to_owned()));
    let twice = json!({"detail": [{"id": 0}, {"id": 0}]});
    report(&mut cluster, "a", &topology(&[(keys::CPU_TOPOLOGY, twice)]));
    let (code, said) = words(&cluster);
    assert_eq!(code, "InvalidCpuTopology");
    assert!(said.ends_with("cpu-topology of its NodeResourceTopology: CPU 0 is named twice"), "{said}");
    report(&mut cluster, "a", &json!({}));
    assert!(words(&cluster).1.ends_with("has no annotation node.koordinator.sh/cpu-topology"));
    assert_eq!(refused(&plugin, &cluster, &spec(2000, 1, &[])), None);
    let missing = refused(&plugin, &cluster, &single(spec(2000, 1, &[])));
    assert_eq!(missing.map(|(code, _)| code), Some("NumaResourcesMissing"));
}

#[test]
fn cpus_of_the_system_and_of_the_kubelet_are_given_to_nobody() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    report(
        &mut cluster,
        "a",
        &topology(&[
            (keys::CPU_MANAGER_POLICY, json!({"policy": "static", "reservedCPUs": "0"})),
            (
                keys::POD_CPU_ALLOCS,
                json!([{"uid": "k", "name": "k", "cpuset": "1,5", "managedByKubelet": true}]),
            ),
            (keys::RESERVATION, json!({"reservedCPUs": "2"})),
            (keys::SYSTEM_QOS_RESOURCE, json!({"cpuset": "3"})),
        ]),
    );
    let on = state(&cluster);
    assert_eq!((on.free.to_string(), on.reserved.to_string()), ("4,6-7".to_owned(), "0-3,5".to_owned()));
    assert_eq!(on.zones[0].amounts.get("cpu"), Some(1000), "4 CPUs without 0, 1 and 5");
    assert_eq!(refused(&plugin, &cluster, &pinned(4, "")).map(|(code, _)| code), Some("NotEnoughCpus"));
    assert_eq!(bind(&plugin, &mut cluster, "p", pinned(3, ""), None), r#"{"cpuset":"4,6-7"}"#);
}

#[test]
fn amplified_nodes_count_cpus_as_they_really_are() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    let amplified = |ratio: &str, milli_cpu| Node {
        annotations: Labels::new([(keys::AMPLIFICATION_RATIO.into(), ratio.into())]),
        allocatable: ResourceList { milli_cpu, ..labelled("a", &[]).allocatable },
        ..labelled("a", &[])
    };
    cluster.apply(amplified(r#"{"cpu": 1.5}"#, 12_000));
    bind(&plugin, &mut cluster, "p", pinned(4, ""), None);
    // 4 CPUs of its own count as 6 of 12; 5 more would count as 7.5, and 6 others as 6.
    let asked = pinned(5, SPREAD.replace("required", "preferred").as_str());
    let (code, words) = refused(&plugin, &cluster, &asked).expect("too much");
    assert_eq!(code, "InsufficientAmplifiedCpu");
    assert_eq!(
        words,
        "amplified by 1.5, 6 CPUs are left; the pod asks for 5 CPUs of its own, which count as 7.5 CPUs; 4 CPUs that pods have of their own count as 6 CPUs"
    );
    assert_eq!(
        measures(&*plugin, &cluster, &asked),
        [("amplified cpu free".to_owned(), 7500, 6000, "a".to_owned())]
    );
    assert_eq!(refused(&plugin, &cluster, &spec(6000, 1, &[])), None);
    cluster.apply(amplified(r#"{"cpu": "1.5"}"#, 12_000));
    let bad = refused(&plugin, &cluster, &spec(1000, 1, &[]));
    assert_eq!(bad.map(|(code, _)| code), Some("InvalidAmplificationRatio"));
}

#[test]
fn numa_nodes_that_cannot_serve_are_told_apart() {
    let plugin = plugin(json!({}));
    let mut cluster = cluster(&plugin, &[]);
    let asked = single(spec(3000, 3, &[]));
    assert_eq!(unaligned(&plugin, &cluster, &asked), None);
    assert_eq!(
        bind(&plugin, &mut cluster, "p", asked.clone(), Some(0b01)),
        r#"{"numaNodeResources":[{"node":0,"resources":{"cpu":"3","memory":"3Gi"}}]}"#
    );
    bind(&plugin, &mut cluster, "q", asked.clone(), Some(0b10));
    let wide = single(spec(2000, 4, &[]));
    let cause = unaligned(&plugin, &cluster, &wide).expect("2 GiB are left in all");
    assert_eq!(cause.message(), "Unsatisfied NUMA cpu, Unsatisfied NUMA memory");
    assert_eq!(
        said(&plugin, &cluster, &wide, &cause),
        "under SingleNUMANode the pod asks for 2 cpu and 4Gi memory; NUMA 0: 1 of 4 cpu, too little alone, 1Gi of 4Gi memory, too little alone; \
         NUMA 1: 1 of 4 cpu, too little alone, 1Gi of 4Gi memory, too little alone"
    );
    let filter = plugin.filter().expect("it filters");
    let measured = filter.measure(cluster.view(), &wide, &cause, &[cluster.idx("a")]);
    let measured: Vec<_> = measured.iter().map(|m| (m.resource.as_str(), m.requested, m.available)).collect();
    assert_eq!(measured, [("NUMA cpu free", 2000, 1000), ("NUMA memory free", 4 << 30, 1 << 30)]);
    let lax = spec(2000, 4, &[(keys::NUMA_TOPOLOGY_SPEC, r#"{"numaTopologyPolicy": "BestEffort"}"#)]);
    let cause =
        unaligned(&plugin, &cluster, &lax).expect("a node that cannot serve is left before it is chosen");
    assert_eq!(cause.message(), "Insufficient NUMA memory");
}

#[test]
fn reasons_have_their_plugin() {
    for reason in reasons::all() {
        assert_eq!(ReasonCode::Plugin(reason).entry().plugin, NAME);
    }
    assert_eq!(Holding::default().status(), "{}");
}
