//! Users with tokens and rights, for TokenReview and SubjectAccessReview.
//!
//! They let other servers be tried with users. The sandbox itself lets everybody do everything: it answers what these users
//! may, and heeds it nowhere.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::errors::{ApiError, ApiResult};
use crate::options::Requester;

/// Group of every authenticated user.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";

/// A user that reviews know.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Name.
    pub name: String,
    /// Bearer token; without one the user comes with a certificate.
    #[serde(default)]
    pub token: Option<String>,
    /// Groups beside `system:authenticated`.
    #[serde(default)]
    pub groups: Vec<String>,
    /// What the user may do.
    #[serde(default)]
    pub rights: Vec<Right>,
}

/// Verbs that a user may use on paths, or on pods of a namespace. `*` is any verb or namespace; a path may end with it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Right {
    /// Verbs.
    pub verbs: Vec<String>,
    /// Paths that are no resources.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Namespace whose pods are meant.
    #[serde(default)]
    pub namespace: Option<String>,
}

impl Right {
    fn grants(&self, spec: &Value) -> bool {
        let (path, pods) = (&spec["nonResourceAttributes"], &spec["resourceAttributes"]);
        let has = |all: &[String], wanted: &Value| {
            let wanted = wanted.as_str().unwrap_or_default();
            all.iter().any(|one| match one.strip_suffix('*') {
                Some(start) => wanted.starts_with(start),
                None => one == wanted,
            })
        };
        if path.is_object() {
            return has(&self.verbs, &path["verb"]) && has(&self.paths, &path["path"]);
        }
        let namespace: Vec<String> = self.namespace.iter().cloned().collect();
        pods["resource"] == "pods" && has(&self.verbs, &pods["verb"]) && has(&namespace, &pods["namespace"])
    }
}

/// Returns who sends a request with an `Authorization` header: the user with that token, otherwise the administrator.
pub(crate) fn requester(users: &[User], authorization: &str) -> Requester {
    let token = authorization.strip_prefix("Bearer ").filter(|token| !token.is_empty());
    match token.and_then(|token| users.iter().find(|user| user.token.as_deref() == Some(token))) {
        Some(user) => Requester::new(&user.name, &user.groups),
        None => Requester::new("kubernetes-admin", &["system:masters".to_owned()]),
    }
}

/// Answers a review, or returns `None` for another path.
pub(crate) fn review(users: &[User], path: &str, body: &[u8]) -> Option<ApiResult<Value>> {
    let answer: fn(&[User], &Value) -> Value = match path.trim_end_matches('/') {
        "/apis/authentication.k8s.io/v1/tokenreviews" => token_status,
        "/apis/authorization.k8s.io/v1/subjectaccessreviews" => access_status,
        _ => return None,
    };
    let review = serde_json::from_slice::<Value>(body);
    Some(match review {
        Ok(mut review) if review["spec"].is_object() => {
            let status = answer(users, &review["spec"]);
            review["status"] = status;
            Ok(review)
        }
        Ok(_) => Err(ApiError::bad_request("the review has no spec")),
        Err(error) => Err(ApiError::bad_request(error.to_string())),
    })
}

fn token_status(users: &[User], spec: &Value) -> Value {
    let token = spec["token"].as_str().filter(|token| !token.is_empty());
    let Some(user) = token.and_then(|token| users.iter().find(|user| user.token.as_deref() == Some(token)))
    else {
        return json!({"user": {}, "error": "[invalid bearer token]"});
    };
    let mut groups = user.groups.clone();
    groups.push(AUTHENTICATED.to_owned());
    json!({"authenticated": true, "user": {"username": user.name, "groups": groups}})
}

fn access_status(users: &[User], spec: &Value) -> Value {
    let user = users.iter().find(|user| spec["user"] == user.name.as_str());
    let allowed = user.is_some_and(|user| user.rights.iter().any(|right| right.grants(spec)));
    json!({"allowed": allowed})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reviews_say_who_and_what() {
        let text = json!([{"name": "jane", "token": "t", "groups": ["a"], "rights": [
            {"verbs": ["get"], "paths": ["/apis/*"]}, {"verbs": ["*"], "namespace": "team"},
        ]}]);
        let users: Vec<User> = serde_json::from_value(text).unwrap();
        let asked = |path: &str, spec: Value| {
            let body = json!({"spec": spec}).to_string();
            review(&users, path, body.as_bytes()).unwrap().unwrap()["status"].clone()
        };
        let token =
            |token: &str| asked("/apis/authentication.k8s.io/v1/tokenreviews", json!({"token": token}));
        assert_eq!(token("t")["user"]["groups"], json!(["a", AUTHENTICATED]));
        assert_eq!((&token("x")["authenticated"], &token("")["authenticated"]), (&Value::Null, &Value::Null));
        let may = |mut spec: Value| {
            spec["user"] = "jane".into();
            asked("/apis/authorization.k8s.io/v1/subjectaccessreviews", spec)["allowed"] == true
        };
        let path = |verb: &str, path: &str| json!({"nonResourceAttributes": {"verb": verb, "path": path}});
        let pods = |namespace: &str| json!({"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": namespace}});
        assert!(may(path("get", "/apis/v1/queue")) && may(pods("team")));
        assert!(!may(path("put", "/apis/v1/queue")) && !may(path("get", "/metrics")) && !may(pods("other")));
        assert!(review(&users, "/apis/v1/x", b"").is_none());
    }
}
