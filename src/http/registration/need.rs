//! What a request to an operation needs where users are asked for. The gate heeds it; on loopback nothing is needed.

use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};

use crate::registration::operation::Answer;

/// What a request needs to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: health, and the files of the page, which have no data.
    Nothing,
    /// To be some user: what every build of this program would answer.
    User,
    /// A verb on the path, for everything there is.
    Verb(&'static str),
    /// A verb on the path for everything; or the verbs on pods of the namespaces that the request names.
    VerbOrPods(&'static str, &'static [&'static str]),
}

impl Need {
    /// Returns how the gate refuses a request, beside what the operation itself refuses.
    pub(crate) fn refusals(self) -> Vec<Answer> {
        let mut refusals = Vec::new();
        if self != Self::Nothing {
            refusals.push(Answer::refused(401, "Nobody is named, or the token is not valid", None));
            refusals.push(Answer::refused(429, "The user has too many requests, or asks too often", None));
            refusals.push(Answer::refused(
                503,
                "The API server does not say who asks or what they may",
                None,
            ));
        }
        if matches!(self, Self::Verb(_) | Self::VerbOrPods(..)) {
            refusals.push(Answer::refused(403, "The user has no right to this", None));
        }
        refusals
    }

    /// Returns the ways to pass, one of which is enough. Plain HTTP on loopback asks nobody, so none is one of them.
    pub(crate) fn requirements(self) -> Vec<SecurityRequirement> {
        let mut ways = vec![SecurityRequirement::default()];
        let named = schemes().into_iter().filter(|_| self != Self::Nothing);
        ways.extend(named.map(|(name, _)| SecurityRequirement::new(name, [""; 0])));
        ways
    }
}

/// Returns the ways in which a request says who sends it, by name.
pub(crate) fn schemes() -> [(&'static str, SecurityScheme); 2] {
    let token = "A token of the cluster, checked by TokenReview. Only TLS asks for it";
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(token)).build();
    let certificate = SecurityScheme::MutualTls {
        description: Some("A client certificate that the cluster's authority for clients signed".to_owned()),
        deprecated: None,
        extensions: None,
    };
    [("bearerToken", SecurityScheme::Http(bearer)), ("clientCertificate", certificate)]
}
