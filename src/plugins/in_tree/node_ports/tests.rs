//! Tests conflicts between ports, and the events that free a port.

use pellucid_model::pod::Protocol::{self, Tcp, Udp};

use super::*;
use crate::testing::{cluster_of, filter_all, node, pod_with, pre_filter};

fn with_ports(ports: &[(Protocol, &str, u16)]) -> PodSpec {
    let port = |(protocol, ip, port): &(Protocol, &str, u16)| HostPort {
        protocol: *protocol,
        ip: (*ip).into(),
        port: *port,
    };
    PodSpec { host_ports: ports.iter().map(port).collect(), ..PodSpec::default() }
}

#[test]
fn conflicts() {
    let all = "0.0.0.0";
    for (held, asked, want) in [
        ((Tcp, all, 80), (Tcp, all, 80), true),
        ((Tcp, all, 80), (Tcp, "10.0.0.1", 80), true),
        ((Tcp, "10.0.0.1", 80), (Tcp, all, 80), true),
        ((Tcp, "10.0.0.1", 80), (Tcp, "10.0.0.1", 80), true),
        ((Tcp, "10.0.0.1", 80), (Tcp, "10.0.0.2", 80), false),
        ((Tcp, all, 80), (Udp, all, 80), false),
        ((Tcp, all, 80), (Tcp, all, 81), false),
    ] {
        let mut cluster = cluster_of([node("a"), node("b")]);
        cluster.place(with_ports(&[(Tcp, all, 9), held]), "a");
        let refused = filter_all(&NodePorts, &cluster, &with_ports(&[(Udp, all, 1), asked]));
        assert_eq!(refused.contains_key("a"), want, "{held:?} {asked:?}");
        assert!(!refused.contains_key("b"));
        let message = "node(s) didn't have free ports for the requested pod ports";
        assert!(refused.values().all(|text| text == message));
    }
    let cluster = cluster_of([node("a")]);
    assert!(matches!(pre_filter(&NodePorts, &cluster, &PodSpec::default()), Ok(None)));
}

#[test]
fn a_port_that_two_pods_hold_is_taken_until_both_are_gone() {
    let mut cluster = cluster_of([node("a")]);
    let spec = with_ports(&[(Tcp, "0.0.0.0", 80)]);
    let pods = [cluster.place(spec.clone(), "a"), cluster.place(spec.clone(), "a")];
    for (pod, left) in pods.iter().zip([1, 0]) {
        let mut events = Vec::new();
        cluster.cluster.delete_pod(&pod.key, &mut events);
        assert_eq!(filter_all(&NodePorts, &cluster, &spec).len(), left);
        let waiting = pod_with(spec.clone());
        assert_eq!(NodePorts.hint(cluster.view(), &waiting, &events[0]), Hint::Queue);
        let other = pod_with(with_ports(&[(Tcp, "0.0.0.0", 81)]));
        assert_eq!(NodePorts.hint(cluster.view(), &other, &events[0]), Hint::Skip);
    }
}
