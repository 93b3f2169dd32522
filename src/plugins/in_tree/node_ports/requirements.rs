//! Words for host ports that are taken, with the pods that hold them.

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::View;
use pellucid_model::pod::HostPort;
use pellucid_model::{NodeIdx, Pod, PodSpec};

use super::{ALL_IPS, NAME, TakenPorts, is_taken};
use pellucid_plugin_helper::describing::{
    MAX_REQUIREMENTS, add_pods, detail, first_by_name, pods_on, pods_text,
};

/// Returns a port as `443/TCP`, with its address unless that is the wildcard.
pub(super) fn text(port: &HostPort) -> String {
    let ip = if port.ip == *ALL_IPS { String::new() } else { format!("{}:", port.ip) };
    format!("{ip}{}/{}", port.port, port.protocol.as_str())
}

fn holds(port: &HostPort) -> impl Fn(&Pod) -> bool {
    move |pod| is_taken(port, &pod.spec.host_ports)
}

/// Describes each requested port that is taken on some refusing node.
pub(super) fn of(view: View<'_>, spec: &PodSpec, refused: &[NodeIdx]) -> Vec<RequirementDetail> {
    let Some(taken) = view.state::<TakenPorts>() else { return Vec::new() };
    let describe = |port: &HostPort| {
        let on: Vec<NodeIdx> = refused.iter().copied().filter(|n| is_taken(port, taken.on(*n))).collect();
        if on.is_empty() {
            return None;
        }
        let mut of = detail(view, NAME, ReasonCode::HostPortConflict, format!("host port {}", text(port)));
        of.nodes = of.total_nodes - on.len();
        for node in first_by_name(view, on.iter().copied()) {
            add_pods(&mut of, view, node, holds(port));
        }
        let (n, total, pods) = (on.len(), of.total_nodes, pods_text(&of.pods));
        of.text = format!("host port {}: taken on {n} of {total} nodes: {pods}", text(port));
        Some(of)
    };
    spec.host_ports.iter().take(MAX_REQUIREMENTS).filter_map(describe).collect()
}

/// Describes the requested ports that are taken on one node.
pub(super) fn on_node(view: View<'_>, spec: &PodSpec, node: NodeIdx) -> Option<String> {
    let word = |port: &HostPort| {
        let (pods, _) = pods_on(view, node, holds(port));
        (!pods.is_empty()).then(|| format!("host port {} is held by {}", text(port), pods.join(", ")))
    };
    let all: Vec<String> = spec.host_ports.iter().take(MAX_REQUIREMENTS).filter_map(word).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

#[cfg(test)]
mod tests {
    use pellucid_model::pod::Protocol;

    use super::*;
    use crate::testing::{cluster_of, node};

    #[test]
    fn a_taken_port_is_named_with_the_pods_that_hold_it() {
        let port = |port, ip: &str| HostPort { protocol: Protocol::Tcp, ip: ip.into(), port };
        let with = |ports: &[HostPort]| PodSpec { host_ports: ports.into(), ..PodSpec::default() };
        let mut cluster = cluster_of([node("a"), node("b"), node("c")]);
        cluster.place(with(&[port(443, "0.0.0.0")]), "a");
        cluster.place(with(&[port(443, "10.0.0.1")]), "b");
        let spec = with(&[port(80, "0.0.0.0"), port(443, "0.0.0.0")]);
        let refused = [cluster.idx("a"), cluster.idx("b")];
        let [of] = &of(cluster.view(), &spec, &refused)[..] else { panic!("one port is taken") };
        assert_eq!(of.text, "host port 443/TCP: taken on 2 of 3 nodes: on a d/p1; on b d/p2");
        assert_eq!((of.nodes, of.pods.len()), (1, 2));
        let on_a = on_node(cluster.view(), &spec, cluster.idx("a"));
        assert_eq!(on_a.as_deref(), Some("host port 443/TCP is held by d/p1"));
        assert_eq!(on_node(cluster.view(), &spec, cluster.idx("c")), None);
        assert_eq!(text(&port(53, "10.0.0.1")), "10.0.0.1:53/TCP");
    }
}
