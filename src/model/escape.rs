//! Text that may have come from anybody, on its way to a line of a log or table.
//!
//! Control characters end lines and drive terminals, and some invisible ones turn the order of what is shown. They are
//! written as Rust writes them in a literal. Text without them is left as it is, backslashes included.

use std::borrow::Cow;

/// Returns a text with control characters, line separators and characters of direction escaped.
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

/// Says whether a character could end a line, drive a terminal, or change how its neighbours are shown.
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
