//! Serving beyond loopback: TLS, and the cluster as the authority on users.
//!
//! Joins what `kubernetes::reviews` asks to what `http` wants to know, and the names of a snapshot to its redaction. Nothing
//! is decided here.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pellucid_cycle::Snapshot;
use pellucid_diagnosis::tenants::Foreign;
use pellucid_http::{
    Asked, Authority, Certificate, ClientCa, HIDDEN, Names, NoAnswer, Redact, Right, Tls, TlsError, User,
};
use pellucid_kubernetes::Connection;
use pellucid_kubernetes::reviews::{Access, ReviewError, Reviewed, Reviews};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Pause between two looks at the certificate authority that the cluster publishes.
const CLIENT_CA_PAUSE: Duration = Duration::from_secs(60);

/// How to serve HTTPS to users of the cluster.
#[derive(Clone, Debug)]
pub struct SecureServing {
    /// Address to listen on; port 0 takes any free one.
    pub address: SocketAddr,
    /// Certificate of the server.
    pub certificate: Certificate,
    /// Further authority of client certificates, beside the one that the cluster publishes.
    pub client_ca_file: Option<PathBuf>,
}

/// The cluster as the authority.
struct ClusterAuthority(Reviews);

impl Authority for ClusterAuthority {
    fn user_of(&self, token: String) -> Asked<Option<User>> {
        let reviews = self.0.clone();
        Box::pin(async move {
            let user = reviews.user_of(token).await.map_err(|error| no_answer(&error))?;
            Ok(user.map(|Reviewed { name, uid, groups, extra }| User { name, uid, groups, extra }))
        })
    }

    fn grants(&self, user: Arc<User>, right: Right) -> Asked<bool> {
        let reviews = self.0.clone();
        Box::pin(async move {
            let User { name, uid, groups, extra } = User::clone(&user);
            let access = match right {
                Right::Path { verb, path } => Access::Path { verb: verb.to_owned(), path },
                Right::Pods { verb, namespace } => Access::Pods { verb: verb.to_owned(), namespace },
            };
            let user = Reviewed { name, uid, groups, extra };
            reviews.allows(&user, &access).await.map_err(|error| no_answer(&error))
        })
    }
}

fn no_answer(error: &ReviewError) -> NoAnswer {
    NoAnswer(error.to_string())
}

/// Returns the cluster behind a connection as the authority on users.
pub(crate) fn authority(connection: &Connection) -> Arc<dyn Authority> {
    Arc::new(ClusterAuthority(Reviews::new(connection.write.clone())))
}

impl SecureServing {
    /// Reads or makes the certificate, and follows the authority of clients that the cluster publishes until `stop`. Fails when the
    /// certificate or the file of an authority cannot be used. Without an answer of the cluster, client certificates of
    /// its users are not known until it has answered.
    pub(crate) async fn tls(
        &self,
        connection: &Connection,
        stop: CancellationToken,
    ) -> Result<Tls, TlsError> {
        let reviews = Reviews::new(connection.write.clone());
        let (published, cluster) = watch::channel(String::new());
        read_client_ca(&reviews, &published).await;
        let client_ca = ClientCa { file: self.client_ca_file.clone(), cluster: Some(cluster) };
        let tls = Tls::new(self.certificate.clone(), client_ca)?;
        tokio::spawn(async move {
            let following = async {
                loop {
                    tokio::time::sleep(CLIENT_CA_PAUSE).await;
                    read_client_ca(&reviews, &published).await;
                }
            };
            stop.run_until_cancelled(following).await;
        });
        Ok(tls)
    }
}

async fn read_client_ca(reviews: &Reviews, published: &watch::Sender<String>) {
    match reviews.client_ca().await {
        Ok(pem) => {
            published.send_if_modified(|known| {
                let is_new = *known != pem;
                *known = pem;
                is_new
            });
        }
        Err(error) => {
            let problem = error.to_string();
            tracing::warn!(problem, "certificate authority of clients not read");
        }
    }
}

struct OfSnapshot(Foreign);

impl Names for OfSnapshot {
    fn without(&self, text: &str) -> Option<String> {
        self.0.hide(text, HIDDEN)
    }
}

/// Returns what takes names out of bodies that a viewer may not see.
pub fn redact() -> Redact<Snapshot> {
    Arc::new(|snapshot, viewer| Arc::new(OfSnapshot(Foreign::of(snapshot, viewer))))
}
