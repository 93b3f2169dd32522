//! Where a webhook listens.
//!
//! The sandbox has no network. A webhook with a URL is called there. A webhook behind a Service is called on this
//! machine's loopback address, at the port to which the Service sends: its `targetPort`, which is looked up in the
//! containers of the selected pods if it is a name. Either way the certificate must be for the name that a cluster would
//! use, and signed by the authorities of `caBundle`, or by one that this machine trusts if there is none.

use std::time::Duration;

use k8s_openapi::ByteString;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::Value;

use crate::api::Api;
use crate::fields::{list, text};
use crate::selectors::LabelSelector;
use crate::store::Key;

/// Where a webhook is called, and who it must be.
pub(super) struct Target {
    /// The base URL, without the path.
    pub(super) base: String,
    /// The path, empty or with its slash.
    path: String,
    /// The host of the URL that errors show, and that requests name.
    pub(super) host: String,
    /// The name in the certificate, if it is not the host of `base`.
    pub(super) server_name: Option<String>,
    /// Trusted authorities in DER, or `None` for those of this machine.
    pub(super) authorities: Option<Vec<Vec<u8>>>,
}

impl Target {
    /// Returns the URL as an API server would state it.
    pub(super) fn url(&self, timeout: Duration) -> String {
        format!("https://{}{}", self.host, self.path_and_query(timeout))
    }

    pub(super) fn path_and_query(&self, timeout: Duration) -> String {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        format!("{path}?timeout={}s", timeout.as_secs())
    }
}

/// Finds the target of a `clientConfig`.
pub(super) fn of(api: &Api, config: &Value) -> Result<Target, String> {
    let authorities = authorities(&config["caBundle"])?;
    if let Some(url) = config["url"].as_str() {
        let uri: http::Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let host = uri.authority().map_or("", |authority| authority.as_str()).to_owned();
        let path = uri.path().to_owned();
        return Ok(Target { base: format!("https://{host}"), path, host, server_name: None, authorities });
    }
    let service = &config["service"];
    let (namespace, name) = (text(&service["namespace"]), text(&service["name"]));
    let port = service["port"].as_i64().unwrap_or(443);
    let path = match text(&service["path"]) {
        "" => String::new(),
        path => format!("/{}", path.trim_start_matches('/')),
    };
    let server_name = format!("{name}.{namespace}.svc");
    let host = format!("{server_name}:{port}");
    let local = local_port(api, namespace, name, port)
        .map_err(|why| format!("Post \"https://{host}{path}\": {why}"))?;
    let base = format!("https://127.0.0.1:{local}");
    Ok(Target { base, path, host, server_name: Some(server_name), authorities })
}

fn authorities(bundle: &Value) -> Result<Option<Vec<Vec<u8>>>, String> {
    let bytes = Option::<ByteString>::deserialize(bundle).map_err(|error| error.to_string())?;
    let Some(bytes) = bytes.filter(|bytes| !bytes.0.is_empty()) else { return Ok(None) };
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes.0).collect();
    match certificates {
        Ok(found) if !found.is_empty() => {
            Ok(Some(found.into_iter().map(|certificate| certificate.to_vec()).collect()))
        }
        Ok(_) => Err("unable to load root certificates: caBundle has no PEM certificate".to_owned()),
        Err(error) => Err(format!("unable to load root certificates: {error}")),
    }
}

/// Returns the port on this machine that stands for a port of a Service.
fn local_port(api: &Api, namespace: &str, name: &str, port: i64) -> Result<i64, String> {
    let key: Key = (namespace.into(), name.into());
    let Some(service) = api.store.get("services", &key) else {
        return Err(format!("service {name:?} not found"));
    };
    let service = service.value();
    let Some(entry) = list(&service["spec"]["ports"]).iter().find(|entry| entry["port"] == port) else {
        return Err(format!("no service port {port} found for service {name:?}"));
    };
    match &entry["targetPort"] {
        Value::Number(target) => Ok(target.as_i64().unwrap_or(port)),
        Value::String(wanted) => named_port(api, namespace, &service, wanted)
            .ok_or_else(|| format!("no endpoints available for service {name:?}")),
        _ => Ok(port),
    }
}

/// Returns the number of a container's port by its name, in the first pod that a Service selects.
fn named_port(api: &Api, namespace: &str, service: &Value, wanted: &str) -> Option<i64> {
    let selector = serde_json::json!({"matchLabels": service["spec"]["selector"]});
    let selector = LabelSelector::from_object(&selector).filter(|selector| !selector.is_empty())?;
    let pods = api.store.list("pods", namespace).items;
    pods.iter().filter(|pod| selector.matches(&pod.labels)).find_map(|pod| {
        let pod = pod.value();
        let ports = list(&pod["spec"]["containers"]).iter().flat_map(|container| list(&container["ports"]));
        ports.filter(|port| port["name"] == wanted).find_map(|port| port["containerPort"].as_i64())
    })
}
