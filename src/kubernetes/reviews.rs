//! Asks the API server who users are and what they may: TokenReview and SubjectAccessReview; and reads the certificate
//! authority of clients that the cluster publishes.
//!
//! Nothing is kept: whoever asks keeps the answers. A request has a time limit and is not repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::time::timeout;

use crate::connection::client::chain;

/// Time limit of one question.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where a cluster publishes how clients prove who they are.
const CONFIG_MAP: (&str, &str) = ("kube-system", "extension-apiserver-authentication");
/// Key of the certificate authority of clients in it.
const CLIENT_CA: &str = "client-ca-file";

/// What a TokenReview says of a user, and a SubjectAccessReview asks about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reviewed {
    /// Name of the user.
    pub name: String,
    /// Uid; empty when there is none.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else is known of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What a user wants to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// A verb on a path that is no resource.
    Path {
        /// The verb.
        verb: String,
        /// The path.
        path: String,
    },
    /// A verb on all pods of a namespace.
    Pods {
        /// The verb.
        verb: String,
        /// The namespace.
        namespace: String,
    },
}

/// Why there is no answer: what was asked, and what the server said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {cause}")]
pub struct ReviewError {
    what: &'static str,
    cause: String,
}

/// The questions, on one client.
#[derive(Clone)]
pub struct Reviews {
    client: Client,
}

impl Reviews {
    /// Asks through a client.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// Returns whose token this is, or `None` when it is nobody's.
    pub async fn user_of(&self, token: String) -> Result<Option<Reviewed>, ReviewError> {
        let spec = TokenReviewSpec { token, ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let params = PostParams::default();
        let answer = within("a TokenReview", reviews.create(&params, &review)).await?;
        let status = answer.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        Ok(user.map(|user| Reviewed {
            name: user.username.unwrap_or_default(),
            uid: user.uid.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default(),
        }))
    }

    /// Returns whether a user may do something.
    pub async fn allows(&self, user: &Reviewed, access: &Access) -> Result<bool, ReviewError> {
        let mut spec = SubjectAccessReviewSpec {
            user: Some(user.name.clone()),
            uid: Some(user.uid.clone()).filter(|uid| !uid.is_empty()),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
            ..SubjectAccessReviewSpec::default()
        };
        match access.clone() {
            Access::Path { verb, path } => {
                let attributes = NonResourceAttributes { path: Some(path), verb: Some(verb) };
                spec.non_resource_attributes = Some(attributes);
            }
            Access::Pods { verb, namespace } => {
                spec.resource_attributes = Some(ResourceAttributes {
                    namespace: Some(namespace),
                    resource: Some("pods".to_owned()),
                    verb: Some(verb),
                    version: Some("v1".to_owned()),
                    ..ResourceAttributes::default()
                });
            }
        }
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let params = PostParams::default();
        let answer = within("a SubjectAccessReview", reviews.create(&params, &review)).await?;
        let status = answer.status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }

    /// Returns the certificate authority of clients as PEM; empty when the cluster publishes none.
    pub async fn client_ca(&self) -> Result<String, ReviewError> {
        let (namespace, name) = CONFIG_MAP;
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let map = within("the config map of client authentication", maps.get_opt(name)).await?;
        Ok(map.and_then(|map| map.data?.remove(CLIENT_CA)).unwrap_or_default())
    }
}

async fn within<T>(
    what: &'static str,
    question: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, ReviewError> {
    match timeout(PATIENCE, question).await {
        Ok(answer) => answer.map_err(|error| ReviewError { what, cause: chain(&error) }),
        Err(_) => Err(ReviewError { what, cause: format!("no answer within {} s", PATIENCE.as_secs()) }),
    }
}
