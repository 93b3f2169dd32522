//! Syntax of Kubernetes names: of objects, namespaces, labels and resources.
//!
//! Only checks; the caller words the error.

/// Returns whether a text is a DNS label, as namespace names are: at most 63 lower-case letters, digits and `-`,
/// neither starting nor ending with `-`.
pub fn is_label(text: &str) -> bool {
    text.len() <= 63 && is_part(text)
}

/// Returns whether a text is a DNS subdomain, as most object names are: DNS labels joined by dots, at most 253 long.
pub fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_part)
}

/// Returns whether a text is a qualified name, as label keys and resource names are: an optional DNS subdomain with a
/// slash, then at most 63 letters, digits, `-`, `_` and `.` that start and end with a letter or digit.
pub fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(p, n)| (Some(p), n));
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_subdomain)
}

/// Returns whether a text is a label value: empty, or like a qualified name without a prefix.
pub fn is_label_value(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.len() <= 63 && text.chars().all(is_inner) && has_ends(text, |c| c.is_ascii_alphanumeric())
}

fn is_part(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    !text.is_empty() && text.chars().all(|c| is_plain(c) || c == '-') && has_ends(text, is_plain)
}

fn has_ends(text: &str, is_end: impl Fn(char) -> bool) -> bool {
    text.chars().next().is_none_or(&is_end) && text.chars().next_back().is_none_or(&is_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names() {
        let long = "a".repeat(64);
        for (text, want) in [
            ("cpu", true),
            ("example.com/gpu", true),
            ("example.com/a_b.C", true),
            ("", false),
            ("-a", false),
            ("/x", false),
            ("x/", false),
            ("Example.com/x", false),
            ("a/b/c", false),
            (&long, false),
        ] {
            assert_eq!(is_qualified_name(text), want, "{text}");
        }
    }

    #[test]
    fn names_of_objects_and_namespaces() {
        let long = "a".repeat(64);
        for (text, subdomain, label) in [
            ("node-1", true, true),
            ("node-1.rack.example", true, false),
            (&*long, true, false),
            ("", false, false),
            ("☃ x", false, false),
            ("Node", false, false),
            ("-a", false, false),
            ("a-", false, false),
            ("a..b", false, false),
            ("a_b", false, false),
        ] {
            assert_eq!((is_subdomain(text), is_label(text)), (subdomain, label), "{text}");
        }
        assert!(!is_subdomain(&"a".repeat(254)));
    }

    #[test]
    fn values_of_labels() {
        for (text, want) in [("", true), ("a_B.9", true), ("_a", false), ("a b", false), ("a/b", false)] {
            assert_eq!(is_label_value(text), want, "{text}");
        }
    }
}
