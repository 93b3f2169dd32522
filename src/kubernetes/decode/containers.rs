//! Decodes what containers need from a node besides resources: ports, images, features.

use pellucid_model::Name;
use pellucid_model::pod::{HostPort, Protocol};

use crate::decode::fields::{filled, flag, name};
use crate::decode::lenient::Fault;
use crate::decode::wire;

/// Returns the host ports of containers and sidecars, sorted and without duplicates.
pub(crate) fn host_ports(spec: &wire::PodSpec) -> Result<Box<[HostPort]>, Fault> {
    let on_host = flag(&spec.host_network, "hostNetwork")?;
    let ports = |container: &wire::Container| container.ports.each("ports", |p| host_port(p, on_host));
    let containers = spec.containers.each("containers", ports)?;
    let sidecars = spec.init_containers.each("initContainers", |container| {
        if is_sidecar(container)? { ports(container) } else { Ok(Vec::new()) }
    })?;
    let mut all: Vec<_> = containers.into_iter().chain(sidecars).flatten().flatten().collect();
    all.sort();
    all.dedup();
    Ok(all.into())
}

/// Returns whether an init container is a sidecar (`restartPolicy: Always`).
pub(crate) fn is_sidecar(container: &wire::Container) -> Result<bool, Fault> {
    Ok(container.restart_policy.read("restartPolicy")?.is_some_and(|p| p.as_str() == "Always"))
}

fn host_port(port: &wire::Port, on_host: bool) -> Result<Option<HostPort>, Fault> {
    let mut host = port.host_port.read("hostPort")?.copied().unwrap_or(0);
    let mut field = "hostPort";
    if host == 0 && on_host {
        host = port.container_port.read("containerPort")?.copied().unwrap_or(0);
        field = "containerPort";
    }
    if host == 0 {
        return Ok(None);
    }
    let number = u16::try_from(host).map_err(|_| Fault::new(field, &host.to_string(), "not a port"))?;
    let protocol = match name(&port.protocol, "protocol")?.as_str() {
        "" | "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        "SCTP" => Protocol::Sctp,
        other => return Err(Fault::new("protocol", other, "unknown protocol")),
    };
    let ip = filled(&port.host_ip, "hostIP")?.unwrap_or_else(|| "0.0.0.0".into());
    Ok(Some(HostPort { protocol, ip, port: number }))
}

/// Returns the images of init containers, containers and image volumes.
pub(crate) fn images(spec: &wire::PodSpec) -> Result<Box<[Name]>, Fault> {
    let image = |container: &wire::Container| Ok(normalised(&name(&container.image, "image")?));
    let mut all = spec.init_containers.each("initContainers", image)?;
    all.extend(spec.containers.each("containers", image)?);
    let volumes = spec.volumes.each("volumes", |volume| {
        volume.image.within("image", |image| filled(&image.reference, "reference"))
    })?;
    all.extend(volumes.iter().flatten().map(normalised));
    Ok(all.into())
}

/// Appends `:latest` to an image without tag or digest. A colon before the last slash belongs to a registry's port.
pub(crate) fn normalised(image: &Name) -> Name {
    if image.rfind(':') <= image.rfind('/') { Name::new(&format!("{image}:latest")) } else { image.clone() }
}

/// Returns the node features that the pod requires: those that kube-scheduler 1.36 infers for new pods.
pub(crate) fn required_features(spec: &wire::PodSpec) -> Result<Box<[Name]>, Fault> {
    let restarts_all = |container: &wire::Container| {
        let rules = container.restart_policy_rules.each("restartPolicyRules", |rule| {
            Ok(name(&rule.action, "action")?.as_str() == "RestartAllContainers")
        })?;
        Ok(rules.contains(&true))
    };
    let mut features = Vec::new();
    let containers = spec.containers.each("containers", restarts_all)?;
    let init_containers = spec.init_containers.each("initContainers", restarts_all)?;
    if containers.contains(&true) || init_containers.contains(&true) {
        features.push("RestartAllContainersOnContainerExits".into());
    }
    let has_own_users = spec.host_users.read("hostUsers")? == Some(&false);
    if has_own_users && flag(&spec.host_network, "hostNetwork")? {
        features.push("UserNamespacesHostNetworkSupport".into());
    }
    Ok(features.into())
}
