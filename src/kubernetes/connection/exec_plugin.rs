//! Credential plugins: the command of `users[].user.exec` in a kubeconfig, which prints a token or a certificate.
//!
//! kube runs such a command without a time limit and cannot stop one. This module kills a command that takes too long,
//! and the error names it. Neither its output nor its environment is ever shown. The command gets no terminal, because
//! a scheduler has no user to ask.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use kube::client::Body;
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use tokio::process::Command;
use tokio::sync::Mutex;
use tower::BoxError;
use tower::filter::AsyncPredicate;

/// Time limit of the command. It is shorter than any request's, so that a request fails with the plugin's error.
pub(crate) const LIMIT: Duration = Duration::from_secs(8);
/// How long before its expiry a token is renewed.
const EARLY: SignedDuration = SignedDuration::from_secs(60);

/// Why a plugin gave no credential. Never contains its output.
#[derive(Debug, thiserror::Error)]
#[error("users[].user.exec: {0}")]
pub(crate) struct PluginError(String);

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<CredentialStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CredentialStatus {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// A token as a header, and its expiry if it has one.
struct Token {
    header: HeaderValue,
    end: Option<Timestamp>,
}

/// Adds the token of a plugin to requests, and renews it.
#[derive(Clone)]
pub(crate) struct ExecPlugin(Arc<Inner>);

struct Inner {
    exec: ExecConfig,
    token: Mutex<Token>,
}

impl ExecPlugin {
    /// Runs the plugin of a user, unless there is none or other credentials take precedence. Moves a certificate into
    /// the user. For a token, returns the plugin, which renews it. Fails when the command fails or prints no usable
    /// credential.
    pub(crate) async fn start(user: &mut AuthInfo) -> Result<Option<Self>, PluginError> {
        let has_other = user.auth_provider.is_some()
            || user.token.is_some()
            || user.token_file.is_some()
            || (user.username.is_some() && user.password.is_some());
        let Some(exec) = user.exec.take().filter(|_| !has_other) else { return Ok(None) };
        let status = run(&exec, LIMIT).await?;
        let token = status.token.as_deref().map(|token| bearer(token, &status)).transpose()?;
        if let (Some(certificate), Some(key)) = (status.client_certificate_data, status.client_key_data) {
            // A kubeconfig holds PEM data in base64.
            user.client_certificate_data = Some(base64(certificate.as_bytes()));
            user.client_key_data = Some(base64(key.as_bytes()).into());
        } else if token.is_none() {
            return Err(failed(&exec, "printed neither a token nor a certificate with its key"));
        }
        Ok(token.map(|token| Self(Arc::new(Inner { exec, token: Mutex::new(token) }))))
    }

    /// Returns the header, with a new token when the current one is about to expire.
    async fn header(&self) -> Result<HeaderValue, PluginError> {
        let mut token = self.0.token.lock().await;
        if token.end.is_some_and(|end| now() + EARLY >= end) {
            let status = run(&self.0.exec, LIMIT).await?;
            let Some(text) = &status.token else { return Err(failed(&self.0.exec, "printed no token")) };
            *token = bearer(text, &status)?;
        }
        Ok(token.header.clone())
    }
}

impl AsyncPredicate<Request<Body>> for ExecPlugin {
    type Future = BoxFuture<'static, Result<Request<Body>, BoxError>>;
    type Request = Request<Body>;

    fn check(&mut self, mut request: Request<Body>) -> Self::Future {
        let plugin = self.clone();
        Box::pin(async move {
            let header = plugin.header().await?;
            request.headers_mut().insert(AUTHORIZATION, header);
            Ok(request)
        })
    }
}

fn failed(exec: &ExecConfig, what: &str) -> PluginError {
    PluginError(format!("{:?} {what}", exec.command.as_deref().unwrap_or_default()))
}

/// Runs the command and parses its output.
async fn run(exec: &ExecConfig, limit: Duration) -> Result<CredentialStatus, PluginError> {
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

fn bearer(token: &str, status: &CredentialStatus) -> Result<Token, PluginError> {
    let mut header = HeaderValue::try_from(format!("Bearer {token}"))
        .map_err(|_| PluginError("the token has characters that no HTTP header may have".into()))?;
    header.set_sensitive(true);
    let end = status.expiration_timestamp.as_ref().map(|end| {
        let wrong = || PluginError(format!("expirationTimestamp {end:?} is no point in time"));
        end.parse().map_err(|_| wrong())
    });
    Ok(Token { header, end: end.transpose()? })
}

#[expect(clippy::disallowed_methods, reason = "the end of a token is given in wall time")]
fn now() -> Timestamp {
    Timestamp::now()
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

    fn printing(status: &str) -> AuthInfo {
        user(&format!("echo '{{\"kind\":\"ExecCredential\",\"status\":{status}}}'"))
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

    #[tokio::test]
    async fn a_token_is_renewed_when_it_ends_and_kept_while_it_does_not() {
        for (end, is_kept) in [("2020-01-01T00:00:00Z", false), ("2999-01-01T00:00:00Z", true)] {
            let script = format!(
                "echo '{{\"status\":{{\"expirationTimestamp\":\"{end}\",\"token\":\"'$(date +%N)'\"}}}}'"
            );
            let plugin = ExecPlugin::start(&mut user(&script)).await.expect("a token").expect("a plugin");
            let (one, two) = (plugin.header().await.expect("one"), plugin.header().await.expect("two"));
            assert_eq!(one == two, is_kept, "{end}");
            assert!(one.is_sensitive());
        }
    }

    #[tokio::test]
    async fn a_certificate_goes_to_the_user() {
        let mut user = printing(r#"{"clientCertificateData":"cert","clientKeyData":"keys"}"#);
        assert!(ExecPlugin::start(&mut user).await.expect("a certificate").is_none());
        assert_eq!(user.client_certificate_data.as_deref(), Some("Y2VydA=="));
        assert!(user.client_key_data.is_some() && user.exec.is_none());
        assert_eq!([base64(b""), base64(b"a"), base64(b"ab"), base64(b"abc")], ["", "YQ==", "YWI=", "YWJj"]);
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_plugin_is_said_without_its_output() {
        for (mut user, want) in [
            (user("echo secret; exit 3"), "\"sh\" failed: exit status: 3"),
            (user("echo '{\"status\": secret'"), "\"sh\" printed no ExecCredential with a status"),
            (printing("{}"), "\"sh\" printed neither a token nor a certificate with its key"),
            (
                printing(r#"{"token":"x","expirationTimestamp":"soon"}"#),
                "expirationTimestamp \"soon\" is no point in time",
            ),
            (AuthInfo { exec: Some(ExecConfig::default()), ..AuthInfo::default() }, "command is not set"),
        ] {
            let error = ExecPlugin::start(&mut user).await.err().expect(want).to_string();
            assert_eq!(error, format!("users[].user.exec: {want}"));
        }
    }
}
