//! Runs credential plugins: the command of `users[].user.exec` in a kubeconfig, which prints a token or a certificate.
//!
//! kube runs such a command without a time limit and cannot stop one. This module kills a command that takes too long,
//! and the error names it. Neither its output nor its environment is ever shown. The command gets no terminal, because
//! a scheduler has no user to ask.
//!
//! Not here: when a token is asked for again (`bearer_token`).

use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::ByteString;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;

/// Time limit of the command. It is shorter than that of most requests, so that they fail with the plugin's error.
pub(crate) const LIMIT: Duration = Duration::from_secs(8);

/// Why a plugin gave no credential. Never contains its output.
#[derive(Debug, thiserror::Error)]
#[error("users[].user.exec: {0}")]
pub(crate) struct PluginError(pub(crate) String);

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<Credential>,
}

/// What a plugin printed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Credential {
    pub(crate) expiration_timestamp: Option<String>,
    pub(crate) token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

impl Credential {
    /// Moves the certificate into the user, if there is one with its key. Returns whether there is.
    pub(crate) fn give_certificate(&mut self, user: &mut AuthInfo) -> bool {
        let (Some(certificate), Some(key)) =
            (self.client_certificate_data.take(), self.client_key_data.take())
        else {
            return false;
        };
        // A kubeconfig holds PEM data in base64.
        user.client_certificate_data = Some(base64(certificate.as_bytes()));
        user.client_key_data = Some(base64(key.as_bytes()).into());
        true
    }
}

pub(crate) fn failed(exec: &ExecConfig, what: &str) -> PluginError {
    PluginError(format!("{:?} {what}", exec.command.as_deref().unwrap_or_default()))
}

/// Runs the command and parses its output.
pub(crate) async fn run(exec: &ExecConfig, limit: Duration) -> Result<Credential, PluginError> {
    let Some(program) = exec.command.as_deref().filter(|command| !command.is_empty()) else {
        return Err(PluginError("command is not set".into()));
    };
    if exec.interactive_mode == Some(ExecInteractiveMode::Always) {
        return Err(PluginError("interactiveMode is Always, and there is no terminal to ask on".into()));
    }
    let mut spec = json!({"interactive": false});
    if let Some(cluster) = exec.cluster.as_ref().filter(|_| exec.provide_cluster_info) {
        spec["cluster"] = serde_json::to_value(cluster).map_err(|e| failed(exec, &e.to_string()))?;
    }
    let info = json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec});
    let mut command = Command::new(program);
    let pairs = exec.env.iter().flatten().filter_map(|pair| Some((pair.get("name")?, pair.get("value")?)));
    command
        .args(exec.args.iter().flatten())
        .envs(pairs)
        .env("KUBERNETES_EXEC_INFO", info.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .kill_on_drop(true);
    let output = match tokio::time::timeout(limit, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(failed(exec, &format!("cannot be run: {error}"))),
        Err(_) => return Err(failed(exec, &format!("printed no credential within {limit:?}"))),
    };
    if !output.status.success() {
        return Err(failed(exec, &format!("failed: {}", output.status)));
    }
    // The parser's error is dropped, because it may quote the input.
    serde_saphyr::from_slice::<ExecCredential>(&output.stdout)
        .ok()
        .and_then(|credential| credential.status)
        .ok_or_else(|| failed(exec, "printed no ExecCredential with a status"))
}

/// Encodes bytes in base64.
fn base64(bytes: &[u8]) -> String {
    json!(ByteString(bytes.to_vec())).as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(script: &str) -> AuthInfo {
        let exec = ExecConfig {
            command: Some("sh".into()),
            args: Some(vec!["-c".into(), script.into()]),
            ..ExecConfig::default()
        };
        AuthInfo { exec: Some(exec), ..AuthInfo::default() }
    }

    #[tokio::test]
    async fn a_plugin_that_hangs_is_given_up_and_killed() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().display();
        let exec = user(&format!("echo $$ > {path}; exec sleep 1000")).exec.expect("a plugin");
        let error = run(&exec, Duration::from_millis(500)).await.err().expect("a limit");
        assert_eq!(error.to_string(), "users[].user.exec: \"sh\" printed no credential within 500ms");
        let pid = std::fs::read_to_string(file.path()).expect("a pid");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let begun = tokio::time::Instant::now();
        // The process is gone, or a zombie until the runtime reaps it.
        while !(state().is_empty() || state().contains(") Z ")) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{}", state());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[test]
    fn base64_is_padded() {
        assert_eq!([base64(b""), base64(b"a"), base64(b"ab"), base64(b"abc")], ["", "YQ==", "YWI=", "YWJj"]);
    }
}
