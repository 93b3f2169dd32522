//! Digests by which answers of the authority are remembered: of one size whatever a request names, and no token is kept.

use ring::digest::{Context, SHA256};

use crate::authority::{Right, User};

/// SHA-256 of a question to the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of the question whose token this is.
    pub(crate) fn of_token(token: &str) -> Self {
        let mut parts = Parts::new();
        parts.text(token);
        parts.finish()
    }

    /// Returns the digest of the question whether a user has a right. All that is known of the user is part of it.
    pub(crate) fn of_right(user: &User, right: &Right) -> Self {
        let mut parts = Parts::new();
        let User { name, uid, groups, extra } = user;
        parts.text(name);
        parts.text(uid);
        parts.texts(groups);
        parts.number(extra.len());
        for (key, values) in extra {
            parts.text(key);
            parts.texts(values);
        }
        let (kind, verb, about) = match right {
            Right::Path { verb, path } => ("path", verb, path),
            Right::Pods { verb, namespace } => ("pods", verb, namespace),
        };
        parts.text(kind);
        parts.text(verb);
        parts.text(about);
        parts.finish()
    }
}

/// Texts one after the other, each behind its length, so that no two lists of texts are one sequence of bytes.
struct Parts(Context);

impl Parts {
    fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    fn number(&mut self, number: usize) {
        self.0.update(&(number as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.0.update(text.as_bytes());
    }

    fn texts(&mut self, texts: &[String]) {
        self.number(texts.len());
        texts.iter().for_each(|text| self.text(text));
    }

    fn finish(self) -> Digest {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.finish().as_ref());
        Digest(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_that_differ_in_anything_have_digests_of_their_own() {
        let user = |name: &str, groups: &[&str], extra: &[(&str, &[&str])]| User {
            name: name.into(),
            uid: String::new(),
            groups: groups.iter().map(ToString::to_string).collect(),
            extra: extra
                .iter()
                .map(|(key, values)| ((*key).into(), values.iter().map(ToString::to_string).collect()))
                .collect(),
        };
        let path = |verb, path: &str| Right::Path { verb, path: path.into() };
        let pods = |verb, namespace: &str| Right::Pods { verb, namespace: namespace.into() };
        let ann = user("ann", &["a", "b"], &[]);
        let questions = [
            Digest::of_right(&ann, &path("get", "/a")),
            Digest::of_right(&ann, &path("update", "/a")),
            Digest::of_right(&ann, &path("get", "/ab")),
            Digest::of_right(&ann, &pods("get", "/a")),
            Digest::of_right(&user("ann", &["ab"], &[]), &path("get", "/a")),
            Digest::of_right(&user("ann", &["a"], &[]), &path("get", "/a")),
            Digest::of_right(&user("ann", &["a"], &[("b", &[])]), &path("get", "/a")),
            Digest::of_right(&user("ann", &["a"], &[("b", &["c"])]), &path("get", "/a")),
            Digest::of_right(&user("anna", &["b"], &[]), &path("get", "/a")),
            Digest::of_token("ann"),
        ];
        for (at, one) in questions.iter().enumerate() {
            assert_eq!(questions.iter().filter(|other| *other == one).count(), 1, "question {at}");
        }
        assert_eq!(questions[0], Digest::of_right(&ann.clone(), &path("get", "/a")));
    }
}
