//! A running `pellucid demo`.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::client::{self, Reply, address_in};
use super::process::Process;

/// The process and its addresses.
pub(crate) struct Demo {
    pub(crate) process: Process,
    pub(crate) rest: SocketAddr,
    pub(crate) api: SocketAddr,
}

impl Demo {
    pub(crate) fn start(more: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", more)
    }

    /// Does the same with the address of its reads.
    pub(crate) fn start_at(listen: &str, more: &[&str]) -> Self {
        let process =
            Process::start(&[&["demo", "--listen", listen, "--api-listen", "127.0.0.1:0"], more].concat());
        let api = address_in(&process.wait_for_stdout("API server"));
        let rest = address_in(&process.wait_for_stdout("scheduler"));
        process.wait_for_stdout("Try");
        Self { process, rest, api }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        client::get(self.rest, path)
    }

    /// Creates a pod with these fields in its spec, beside what every pod has.
    pub(crate) fn create_pod(&self, name: &str, spec: &Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "demo"},
            "spec": {"schedulerName": "pellucid", "containers": [{"name": "c", "image": "i"}]},
        });
        for (field, value) in spec.as_object().into_iter().flatten() {
            pod["spec"][field] = value.clone();
        }
        let reply = client::post(self.api, "/api/v1/namespaces/demo/pods", &pod);
        assert_eq!(reply.status, 201, "{}", reply.text());
    }

    /// Repeats a read until its body satisfies a condition.
    pub(crate) fn wait(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        client::wait(self.rest, path, "what is wanted", wanted)
    }
}
