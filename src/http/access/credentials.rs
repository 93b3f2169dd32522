//! What a request brings to say who sends it: a bearer token, or the user of the client's certificate.
//!
//! The API server's Service proxy takes `Authorization` out of what it forwards, so a token may also come in
//! [`FORWARDED`], which passes. Browsers send neither header by themselves, so no other page can borrow them.

use http::{HeaderMap, HeaderName, header};

/// Header with a token behind a proxy that takes `Authorization` for itself.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("x-pellucid-authorization");

/// Returns the bearer token of a request.
pub(crate) fn token(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get(header::AUTHORIZATION).or_else(|| headers.get(&FORWARDED))?;
    let (scheme, token) = given.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_in_one_of_two_headers() {
        let found = |pairs: &[(HeaderName, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
            token(&HeaderMap::from_iter(pairs)).map(str::to_owned)
        };
        assert_eq!(found(&[(header::AUTHORIZATION, "Bearer  a.b ")]), Some("a.b".into()));
        assert_eq!(found(&[(FORWARDED, "bearer x")]), Some("x".into()));
        assert_eq!(found(&[(FORWARDED, "Bearer x"), (header::AUTHORIZATION, "Bearer y")]), Some("y".into()));
        for wrong in ["Basic eA==", "Bearer", "Bearer ", "x", ""] {
            assert_eq!(found(&[(header::AUTHORIZATION, wrong)]), None, "{wrong:?}");
        }
        assert_eq!(found(&[]), None);
    }
}
