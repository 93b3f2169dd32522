//! What the commands that ask a running scheduler have in common: where it is and how to print.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::client::{self, Method};
use super::out;

/// Where the scheduler is and how to print its answers.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// REST address of the scheduler
    #[arg(long, value_name = "URL", env = "PELLUCID_SERVER", default_value = "http://127.0.0.1:10251")]
    pub server: String,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Seconds to wait for an answer
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
}

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people
    Table,
    /// For programs: the body as the server sent it
    Json,
}

/// What to do with an answer.
pub(super) enum Answer<T> {
    /// Print this.
    Json(String),
    /// Lay this out for a person.
    Body(T),
}

impl ServerArgs {
    fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Asks for a body, in the form that the person wants to see.
    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Answer<T>> {
        let text = self.get_text(path)?;
        let unclear = |error| {
            anyhow::anyhow!(
                "the answer of {}{path} is not understood; is it another version's? {error}",
                self.server
            )
        };
        match self.output {
            Output::Json => {
                let body: Value = serde_json::from_str(&text).map_err(unclear)?;
                Ok(Answer::Json(serde_json::to_string_pretty(&body)?))
            }
            Output::Table => Ok(Answer::Body(serde_json::from_str(&text).map_err(unclear)?)),
        }
    }

    /// Asks for a body and prints it as JSON, or as the text that `render` makes of it.
    pub(super) fn show<T: DeserializeOwned>(
        &self,
        path: &str,
        render: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        match self.get(path)? {
            Answer::Json(text) => out::line(&text),
            Answer::Body(body) => out::line(render(&body).trim_end()),
        }
    }

    /// Asks for text.
    pub(super) fn get_text(&self, path: &str) -> anyhow::Result<String> {
        Ok(client::request(Method::Get, &self.server, path, self.timeout())?.accepted()?)
    }

    /// Sends a text and returns the answer.
    pub(super) fn put_text(&self, path: &str, body: &str) -> anyhow::Result<String> {
        let method = Method::Put(body.to_owned());
        Ok(client::request(method, &self.server, path, self.timeout())?.accepted()?)
    }
}

/// A pod, or a gang, as people write it: `namespace/name`, or the name alone in namespace `default`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodName {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::str::FromStr for PodName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
        let is_name = |part: &str| {
            let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
            !part.is_empty() && part.chars().all(is_inner) && !part.starts_with('.')
        };
        if is_name(namespace) && is_name(name) {
            Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
        } else {
            Err("it must be NAMESPACE/NAME, or NAME in namespace default".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_named_as_people_do() {
        let pod = |namespace: &str, name: &str| PodName { namespace: namespace.into(), name: name.into() };
        assert_eq!("web".parse(), Ok(pod("default", "web")));
        assert_eq!("kube-system/web-0.a".parse(), Ok(pod("kube-system", "web-0.a")));
        for text in ["", "/", "a/", "/a", "a/b/c", "a/..", "A/b", "a/b?c", "a/%2e"] {
            assert!(text.parse::<PodName>().is_err(), "{text}");
        }
    }
}
