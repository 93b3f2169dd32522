//! Escapes untrusted text for a line of a log or table.
//!
//! Control characters end lines and control terminals, and some invisible characters reorder the displayed text. They
//! are written as in a Rust literal. Other text is unchanged, backslashes included.

use std::borrow::Cow;

/// Returns a text with control characters, line separators and directional characters escaped.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    Cow::Owned(safe)
}

/// Returns whether a character could end a line, control a terminal, or change how its neighbours are displayed.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' // Arabic letter mark
            | '\u{200b}'..='\u{200f}' // zero width, marks of direction
            | '\u{2028}'..='\u{202e}' // separators, embeddings and overrides
            | '\u{2060}'..='\u{206f}' // invisible operators, isolates
            | '\u{feff}' // byte order mark
            | '\u{fff9}'..='\u{fffb}' // annotations
            | '\u{e0000}'..='\u{e007f}') // tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_escaped_and_the_rest_is_not() {
        for (text, expected) in [
            ("default/web-1", "default/web-1"),
            ("Zürich ☃ \\n", "Zürich ☃ \\n"),
            ("a\nlevel=info", "a\\nlevel=info"),
            ("a\r\t\u{7f}", "a\\r\\t\\u{7f}"),
            ("\u{1b}[2J\u{9b}2J", "\\u{1b}[2J\\u{9b}2J"),
            ("a\u{202e}b\u{2066}c\u{2028}d", "a\\u{202e}b\\u{2066}c\\u{2028}d"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }
}
