//! What a request to an operation needs where users are asked for. The gate heeds it; on loopback nothing is needed.

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
