//! The web page at `/`: a few files in the binary, which use the REST API like any other client.
//!
//! `Accept` decides: browsers get the page, other clients a plain list of endpoints. There is no build step, and
//! nothing is loaded from elsewhere: the content security policy allows only this origin, no script in the markup, and
//! no text that becomes markup. The page knows nothing of this program but its paths.

use std::hash::Hasher;

use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use rustc_hash::FxHasher;

use crate::error::unknown_path;
use crate::registration::endpoint::{Answered, Endpoint, answer};
use crate::registration::need::Need;
use crate::registration::operation::{Answer, Content, Operation};
use crate::registration::params::Param;
use crate::standard::INDEX;

const FILES: &str = "/ui/:file";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const ICON: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

/// Content security policy: the page may load and read this origin only.
const POLICY: &str = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      object-src 'none'; require-trusted-types-for 'script'";

macro_rules! file {
    ($name:literal, $content_type:expr) => {
        ($name, $content_type, include_str!($name))
    };
}

/// Name, content type and text of each file.
const ASSETS: &[(&str, &str, &str)] = &[
    file!("app.css", CSS),
    file!("icon.svg", ICON),
    file!("api.js", SCRIPT),
    file!("app.js", SCRIPT),
    file!("compare.js", SCRIPT),
    file!("deadlock.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("feed.js", SCRIPT),
    file!("find.js", SCRIPT),
    file!("fixes.js", SCRIPT),
    file!("format.js", SCRIPT),
    file!("gang.js", SCRIPT),
    file!("gangs.js", SCRIPT),
    file!("groups.js", SCRIPT),
    file!("hardware.js", SCRIPT),
    file!("node.js", SCRIPT),
    file!("overview.js", SCRIPT),
    file!("owner.js", SCRIPT),
    file!("pages.js", SCRIPT),
    file!("parts.js", SCRIPT),
    file!("pending.js", SCRIPT),
    file!("pod.js", SCRIPT),
    file!("queue.js", SCRIPT),
    file!("quotas.js", SCRIPT),
    file!("reservations.js", SCRIPT),
    file!("scores.js", SCRIPT),
    file!("sign_in.js", SCRIPT),
    file!("strip.js", SCRIPT),
    file!("theme.js", SCRIPT),
    file!("trends.js", SCRIPT),
    file!("trial.js", SCRIPT),
];

const PAGE: &str = include_str!("index.html");

pub(super) fn operations() -> Vec<Operation> {
    vec![index(), file()]
}

fn index() -> Operation {
    let summary = "A page to look at (for browsers), or the main endpoints, one per line";
    let mut operation = Operation::standard(INDEX, "about", summary, Content::PLAIN);
    operation.answers[0].contents.push(Content::Text { content_type: "text/html" });
    operation.add(unchanged());
    operation.needing(Need::Nothing)
}

fn file() -> Operation {
    let css = Content::Text { content_type: "text/css" };
    let mut operation = Operation::standard(FILES, "about", "Parts of the page at /", css);
    for content_type in ["text/javascript", ICON] {
        operation.answers[0].contents.push(Content::Text { content_type });
    }
    operation.params.push(Param::path("file", "The name of the part").example("app.css"));
    operation.add(unchanged());
    operation.add(Answer::refused(404, "There is no such part", None));
    operation.needing(Need::Nothing)
}

fn unchanged() -> Answer {
    Answer {
        status: 304,
        description: "It is what the request says it has (If-None-Match)",
        contents: vec![],
    }
}

/// Creates the endpoints of the page and its files. `list` is the response at `/` to clients that do not accept HTML.
pub(super) fn endpoints(list: String) -> Vec<Endpoint> {
    let list = Bytes::from(list);
    let root = Endpoint::new(index(), move |call| {
        let answered = match prefers_html(&call.headers) {
            true => asset(&call.headers, HTML, PAGE),
            false => answer(TEXT, list.clone()),
        };
        let vary = (header::VARY, HeaderValue::from_static("Accept"));
        async move { Ok(with(answered, [vary])) }
    });
    let files = Endpoint::new(file(), |call| {
        let answered = find(call.params.text("file").unwrap_or_default(), &call.headers);
        async move { answered }
    });
    vec![root, files]
}

fn find(name: &str, headers: &HeaderMap) -> Answered {
    match ASSETS.iter().find(|(known, ..)| *known == name) {
        Some((_, content_type, text)) => Ok(asset(headers, content_type, text)),
        None => Err(unknown_path(&format!("/ui/{name}"))),
    }
}

/// Responds with a file, or with 304 when the browser has it. The browser revalidates each time, so that a new version
/// of the program at the same address is seen at once.
fn asset(headers: &HeaderMap, content_type: &'static str, text: &'static str) -> Response {
    let tag = tag(text);
    let is_known = headers.get_all(header::IF_NONE_MATCH).iter().any(|value| {
        let tags = value.to_str().unwrap_or_default().split(',').map(str::trim);
        tags.map(|known| known.strip_prefix("W/").unwrap_or(known)).any(|known| known == tag || known == "*")
    });
    let mut response = match is_known {
        true => Response::new(axum::body::Body::empty()),
        false => answer(content_type, text),
    };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let plain = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
    let tag = HeaderValue::from_str(&tag).map(|value| (header::ETAG, value));
    let headers = [
        plain(header::CACHE_CONTROL, "no-cache"),
        plain(header::CONTENT_SECURITY_POLICY, POLICY),
        plain(header::REFERRER_POLICY, "no-referrer"),
        plain(HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        plain(HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    with(with(response, headers), tag)
}

/// Returns the entity tag of a text: its length and hash.
fn tag(text: &str) -> String {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    format!("\"{:x}-{:x}\"", text.len(), hasher.finish())
}

fn with(mut response: Response, headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>) -> Response {
    for (name, value) in headers {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Returns whether a request accepts HTML by name. `*/*`, which curl sends, does not count.
fn prefers_html(headers: &HeaderMap) -> bool {
    let named = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let is_html = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("text/html"));
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        is_html && weight.and_then(|text| text.parse::<f32>().ok()).is_none_or(|weight| weight > 0.0)
    };
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(value: &str) -> bool {
        prefers_html(&HeaderMap::from_iter([(
            header::ACCEPT,
            HeaderValue::from_str(value).expect("a value"),
        )]))
    }

    #[test]
    fn html_is_for_those_who_name_it() {
        assert!(accepting("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(accepting("application/json, Text/HTML; level=1; q=0.4"));
        for other in ["*/*", "", "application/json", "text/plain, */*", "text/html;q=0", "text/htmlx", ";"] {
            assert!(!accepting(other), "{other:?}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }

    #[test]
    fn every_file_is_served_that_another_one_names() {
        let all: Vec<&str> = ASSETS.iter().map(|(name, ..)| *name).collect();
        let texts = ASSETS.iter().map(|(_, _, text)| *text).chain([PAGE]);
        let mut n = 0;
        for text in texts {
            let imported = text.split("from \"./").skip(1);
            for rest in imported.chain(text.split("\"/ui/").skip(1)) {
                let name = rest.split('"').next().unwrap_or_default();
                assert!(all.contains(&name), "{name} is not among the files");
                n += 1;
            }
        }
        assert!(n > 40, "only {n} names were found");
    }

    #[test]
    fn every_script_is_named_in_the_page_so_that_none_waits_for_another() {
        let scripts = ASSETS.iter().filter(|(_, content_type, _)| *content_type == SCRIPT);
        for (name, ..) in scripts {
            assert!(
                PAGE.contains(&format!("\"/ui/{name}\"")),
                "{name} is found only once another script is read"
            );
        }
    }

    #[test]
    fn nothing_of_another_origin_and_no_markup_from_text() {
        const FORBIDDEN: [&str; 9] = [
            "//cdn",
            "https://",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "DOMParser",
            " style=",
        ];
        for (name, _, text) in ASSETS.iter().chain(&[("index.html", HTML, PAGE)]) {
            for word in FORBIDDEN {
                assert!(!text.contains(word), "{name} has {word}");
            }
            assert!(text.lines().count() <= 500, "{name} is long");
        }
    }
}
