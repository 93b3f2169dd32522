//! Finds and reads the configuration of a cluster, and reports errors by file and field.
//!
//! kube parses the file. What kube accepts and only fails on later, or would show with secrets in it, is rejected
//! here. Errors contain no secrets: for a field that may hold one, they name the field and not its value.

use std::path::{Path, PathBuf};

use http::Uri;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::connection::client::{ConnectError, chain};

/// A configuration and its source.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) source_name: String,
}

fn default_path() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.join(".kube").join("config"))
}

/// Names the kubeconfig that is used; `None` when in-cluster credentials are.
fn source_name(path: Option<&Path>) -> Option<String> {
    match (path, std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty())) {
        (Some(path), _) => Some(path.display().to_string()),
        (None, Some(value)) => Some(format!("KUBECONFIG={}", PathBuf::from(value).display())),
        (None, None) => default_path().filter(|path| path.exists()).map(|path| path.display().to_string()),
    }
}

/// Returns whether a process with this kubeconfig talks to the cluster that it runs in, as one of its pods.
pub fn is_in_cluster(path: Option<&Path>) -> bool {
    source_name(path).is_none() && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// Loads the given kubeconfig, else that of `KUBECONFIG` or the default one, else in-cluster credentials. Fails when
/// the chosen source cannot be used.
pub(crate) async fn load(path: Option<&Path>) -> Result<Loaded, ConnectError> {
    let Some(source_name) = source_name(path) else {
        let config = Config::incluster().map_err(|e| ConnectError::Nowhere {
            default_path: default_path().map_or("~/.kube/config".into(), |path| path.display().to_string()),
            cause: chain(&e),
        })?;
        return Ok(Loaded { config, source_name: "in-cluster credentials".into() });
    };
    let bad = |cause: String| ConnectError::Kubeconfig { source_name: source_name.clone(), cause };
    let read = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let file = read.map_err(|e| bad(describe(&e)))?;
    check(&file).map_err(bad)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    Ok(Loaded { config: config.map_err(|e| bad(describe(&e)))?, source_name })
}

/// Formats an error of kube's parser, whose text quotes the surrounding lines, which may hold a token.
fn describe(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(parse) => {
            let text = parse.without_snippet().to_string();
            format!("not a kubeconfig: {}", without_quotes(text.lines().next().unwrap_or_default()))
        }
        _ => chain(error),
    }
}

/// Replaces text between quotes, which is a value of the file.
fn without_quotes(text: &str) -> String {
    let parts = text.split('"').enumerate();
    parts.map(|(n, part)| if n % 2 == 0 { part } else { "(a value)" }).collect()
}

/// Checks the context and cluster that `current-context` refers to. The error names the field.
fn check(file: &Kubeconfig) -> Result<(), String> {
    let Some(current) = &file.current_context else {
        return Err("current-context is not set".into());
    };
    let context = file.contexts.iter().find(|context| context.name == *current);
    let Some(context) = context.and_then(|named| named.context.as_ref()) else {
        return Err(format!("current-context: there is no context {current:?}"));
    };
    let found = file.clusters.iter().enumerate().find(|(_, cluster)| cluster.name == context.cluster);
    let Some((n, cluster)) = found.and_then(|(n, named)| Some((n, named.cluster.as_ref()?))) else {
        return Err(format!(
            "contexts[{current:?}].context.cluster: there is no cluster {:?}",
            context.cluster
        ));
    };
    let field = format!("clusters[{n}].cluster.server (of cluster {:?})", context.cluster);
    match cluster.server.as_deref() {
        None | Some("") => return Err(format!("{field}: is not set")),
        Some(server) => check_server(server).map_err(|why| format!("{field}: {why}"))?,
    }
    if cluster.proxy_url.as_ref().is_some_and(|url| !url.is_empty()) {
        return Err(format!("clusters[{n}].cluster.proxy-url: proxies are not supported"));
    }
    Ok(())
}

/// Checks the URL of a server. The error says what is wrong.
fn check_server(server: &str) -> Result<(), String> {
    let wanted = "must be a URL such as https://example.com:6443";
    let Ok(uri) = server.parse::<Uri>() else { return Err(format!("{wanted}, got {:?}", redacted(server))) };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        // kube would silently omit them from its requests.
        return Err("must not have a user or password in it; they belong to users[].user".into());
    }
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if !is_http || uri.host().is_none_or(str::is_empty) {
        return Err(format!("{wanted}, got {:?}", redacted(server)));
    }
    Ok(())
}

/// Returns a URL with user and password redacted.
pub(crate) fn redacted(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A password may contain an unescaped slash, so everything before any `@` is hidden.
    let end = if rest.contains('@') { rest.len() } else { end };
    let authority = &rest[..end];
    let shown = match authority.rsplit_once('@') {
        Some((_, host)) => format!("(redacted)@{host}{}", &rest[end..]),
        None => rest.to_owned(),
    };
    if scheme.is_empty() { shown } else { format!("{scheme}://{shown}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_user_and_password() {
        for (url, shown) in [
            ("https://a:6443/", "https://a:6443/"),
            ("https://me:secret@a:6443/path", "https://(redacted)@a:6443/path"),
            ("https://me:se/cr@et@a", "https://(redacted)@a"),
            ("me:secret@a", "(redacted)@a"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(redacted(url), shown, "{url}");
        }
    }

    #[test]
    fn a_server_must_be_a_url() {
        for good in ["https://a", "http://127.0.0.1:8080/path", "https://[::1]:6443"] {
            assert_eq!(check_server(good), Ok(()));
        }
        for bad in ["nonsense", "10.0.0.1:6443", "/path", "ftp://a", "https://", "https://a b", "a:secret@b"]
        {
            let error = check_server(bad).expect_err(bad);
            assert!(error.contains("must ") && !error.contains("secret"), "{bad}: {error}");
        }
        let error = check_server("https://me:secret@a").expect_err("a password");
        assert_eq!(error, "must not have a user or password in it; they belong to users[].user");
    }
}
