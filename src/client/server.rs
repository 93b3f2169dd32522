//! What all commands about a running scheduler share: its address and the output format.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::client::{self, Method, Target};
use super::out;
use super::trust::Trust;

/// Where the scheduler is and how to print its answers.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// REST address of the scheduler
    #[arg(long, value_name = "URL", env = "PELLUCID_SERVER", default_value = "http://127.0.0.1:10251")]
    pub(crate) server: String,
    /// Bearer token, for an https address or behind the API server
    #[arg(long, value_name = "TOKEN", env = "PELLUCID_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Authority that signed the certificate of an https address, PEM
    #[arg(long, value_name = "FILE", conflicts_with = "fingerprint")]
    pub(crate) certificate_authority: Option<PathBuf>,
    /// SHA-256 fingerprint of the certificate of an https address, as the scheduler logs it at its start
    #[arg(long, value_name = "SHA256")]
    pub(crate) fingerprint: Option<String>,
    /// Reach the scheduler through the API server of this kubeconfig, with its credentials
    #[arg(long, value_name = "FILE", conflicts_with_all = ["server", "certificate_authority", "fingerprint"])]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Service of the scheduler for --kubeconfig, NAMESPACE/NAME:PORT
    #[arg(long, value_name = "SERVICE", default_value = "pellucid/pellucid:https", requires = "kubeconfig")]
    pub(crate) service: String,
    /// Namespace of names that come without one (else default); lists show this one only (else all)
    #[arg(short, long, value_name = "NAMESPACE", value_parser = namespace)]
    pub(crate) namespace: Option<String>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs: the body as the server sent it
    Json,
    /// The same as YAML
    Yaml,
}

impl ServerArgs {
    /// Requests a body and returns it in the form that was asked for; `render` formats it for the output `table`.
    pub(crate) fn show<T: DeserializeOwned>(
        &self,
        path: &str,
        render: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<String> {
        self.shown(path, self.body(path)?, render)
    }

    /// Posts a JSON question and returns the body of the answer.
    pub(crate) fn ask(&self, path: &str, question: &Value) -> anyhow::Result<Value> {
        let text = self.send(Method::Post(question.to_string()), path)?;
        serde_json::from_str(&text).map_err(|error| self.unclear(path, &error))
    }

    /// Requests a body.
    pub(crate) fn body(&self, path: &str) -> anyhow::Result<Value> {
        serde_json::from_str(&self.get_text(path)?).map_err(|error| self.unclear(path, &error))
    }

    /// Returns a body in the form that was asked for.
    pub(crate) fn shown<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Value,
        render: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<String> {
        match self.output {
            Output::Table => Ok(render(&self.understood(path, body)?)),
            Output::Json | Output::Yaml => self.value(&body),
        }
    }

    /// Returns what a body says. Fails when it has another form.
    pub(crate) fn understood<T: DeserializeOwned>(&self, path: &str, body: Value) -> anyhow::Result<T> {
        serde_json::from_value(body).map_err(|error| self.unclear(path, &error))
    }

    /// Removes the elements of a list of a body that are outside the requested namespace.
    pub(crate) fn narrow(&self, body: &mut Value, list: &str) {
        if let Some(elements) = body.get_mut(list).and_then(Value::as_array_mut) {
            elements.retain(|element| {
                let namespace = element.get("namespace").and_then(Value::as_str).unwrap_or_default();
                self.wants(&format!("{namespace}/"))
            });
        }
    }

    /// Returns a value as JSON or YAML.
    pub(crate) fn value(&self, value: &Value) -> anyhow::Result<String> {
        match self.output {
            Output::Yaml => Ok(serde_saphyr::to_string(value)?),
            Output::Table | Output::Json => Ok(serde_json::to_string_pretty(value)?),
        }
    }

    /// Prints what a command says.
    pub(crate) fn print(&self, text: &str) -> anyhow::Result<()> {
        out::page(text, !self.is_for_programs()).map(drop)
    }

    /// Returns whether the answer is for programs, which want it whole.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.output != Output::Table
    }

    fn unclear(&self, path: &str, error: &serde_json::Error) -> anyhow::Error {
        anyhow::anyhow!(
            "the answer of {}{path} is not understood; is it another version's? {error}",
            self.server
        )
    }

    pub(crate) fn get_text(&self, path: &str) -> anyhow::Result<String> {
        self.send(Method::Get, path)
    }

    pub(crate) fn put_text(&self, path: &str, body: &str) -> anyhow::Result<String> {
        self.send(Method::Put(body.to_owned()), path)
    }

    /// Reads a feed line by line until `take` breaks or the feed ends; `is_followed` when it goes on as things happen.
    pub(crate) fn lines(
        &self,
        path: &str,
        is_followed: bool,
        take: impl FnMut(&str) -> anyhow::Result<ControlFlow<()>>,
    ) -> anyhow::Result<ControlFlow<()>> {
        let timeout = Duration::from_secs(self.timeout);
        client::lines(self.target(), path, timeout, (!is_followed).then_some(timeout), take)
    }

    fn target(&self) -> Target<'_> {
        let pinned = self.fingerprint.as_deref().map(Trust::Fingerprint);
        Target {
            base: &self.server,
            trust: self.certificate_authority.as_deref().map(Trust::Authority).or(pinned),
            token: self.token.as_deref(),
            namespaces: self.namespace.as_deref(),
            behind: self.kubeconfig.as_deref().map(|file| (file, self.service.as_str())),
        }
    }

    fn send(&self, method: Method, path: &str) -> anyhow::Result<String> {
        let timeout = Duration::from_secs(self.timeout);
        Ok(client::request(method, self.target(), path, timeout)?.accepted()?)
    }

    /// Returns `namespace/name` for a name. Fails if it is in another namespace than `--namespace`.
    pub(crate) fn full(&self, name: &ObjectName) -> anyhow::Result<String> {
        let namespace = match (&name.namespace, &self.namespace) {
            (Some(given), Some(asked)) if given != asked => {
                anyhow::bail!(
                    "{given}/{} is not in namespace {asked}: --namespace says another one",
                    name.name
                )
            }
            (Some(given), _) => given,
            (None, Some(asked)) => asked,
            (None, None) => "default",
        };
        Ok(format!("{namespace}/{}", name.name))
    }

    /// Returns whether the namespace of `namespace/name` is the requested one, if any.
    pub(crate) fn wants(&self, key: &str) -> bool {
        let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
        self.namespace.as_deref().is_none_or(|asked| asked == namespace)
    }
}

/// The name of a pod or gang, with or without its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectName {
    /// The namespace, if it is given.
    pub(crate) namespace: Option<String>,
    /// The name within the namespace.
    pub(crate) name: String,
}

/// Returns whether a text can be a name or a namespace and appear in a path without escaping.
fn is_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    !text.is_empty() && text.chars().all(is_inner) && !text.starts_with('.')
}

fn namespace(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err("it must be the name of a namespace".to_owned()) }
}

pub(crate) fn node_name(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err("it must be the name of a node".to_owned()) }
}

impl std::str::FromStr for ObjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = match text.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, text),
        };
        if namespace.is_none_or(is_name) && is_name(name) {
            Ok(Self { namespace: namespace.map(str::to_owned), name: name.to_owned() })
        } else {
            Err("it must be NAMESPACE/NAME, or NAME with -n NAMESPACE or in namespace default".to_owned())
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::{Output, ServerArgs};

    /// Returns the arguments of a command about one namespace, or about all.
    pub(crate) fn args(namespace: Option<&str>) -> ServerArgs {
        ServerArgs {
            server: String::new(),
            token: None,
            certificate_authority: None,
            fingerprint: None,
            kubeconfig: None,
            service: String::new(),
            namespace: namespace.map(str::to_owned),
            output: Output::Table,
            timeout: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::args;
    use super::*;

    #[test]
    fn pods_are_named_as_people_do() {
        let full = |asked, text: &str| args(asked).full(&text.parse().unwrap()).map_err(|e| e.to_string());
        assert_eq!(full(None, "web").unwrap(), "default/web");
        assert_eq!(full(Some("prod"), "web").unwrap(), "prod/web");
        assert_eq!(full(None, "kube-system/web-0.a").unwrap(), "kube-system/web-0.a");
        assert_eq!(full(Some("prod"), "prod/web").unwrap(), "prod/web");
        assert!(full(Some("prod"), "test/web").unwrap_err().contains("test/web is not in namespace prod"));
        for text in ["", "/", "a/", "/a", "a/b/c", "a/..", "A/b", "a/b?c", "a/%2e"] {
            assert!(text.parse::<ObjectName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_namespace_narrows_lists() {
        assert!(args(None).wants("a/b") && args(Some("a")).wants("a/b"));
        assert!(!args(Some("a")).wants("ab/b") && !args(Some("a")).wants("a"));
    }
}
