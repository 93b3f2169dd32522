//! Parses label selectors in kubectl's grammar: `app=web,tier in (front,back),!canary`.
//!
//! Does not check whether keys and values are valid labels, beyond telling words from operators: a label that no pod
//! can have selects none.

use crate::Name;
use crate::selector::{LabelSelector, Operator, Requirement};

/// Maximum number of requirements; nobody types more.
const MOST: usize = 32;

impl LabelSelector {
    /// Parses a selector. An empty text selects everything. The error says what was expected, and where.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rest = Rest(text.trim());
        let mut all = Vec::new();
        while !rest.0.is_empty() {
            all.push(rest.requirement()?);
            if !rest.0.is_empty() && !rest.take(",") {
                return rest.expected("`,`");
            }
            if all.len() > MOST {
                return Err(format!("has more than {MOST} requirements"));
            }
        }
        Ok(Self::new(all))
    }
}

/// The text that is not parsed yet.
struct Rest<'t>(&'t str);

impl<'t> Rest<'t> {
    fn requirement(&mut self) -> Result<Requirement, String> {
        if self.take("!") {
            return Ok(made(self.key()?, Operator::DoesNotExist, Vec::new()));
        }
        let key = self.key()?;
        for (mark, operator) in [
            ("!=", Operator::NotIn),
            ("==", Operator::In),
            ("=", Operator::In),
            (">", Operator::Gt),
            ("<", Operator::Lt),
        ] {
            if self.take(mark) {
                let value = self.word();
                if matches!(operator, Operator::Gt | Operator::Lt) && value.parse::<i64>().is_err() {
                    return Err(format!("`{key}{mark}` wants an integer, not `{value}`"));
                }
                return Ok(made(key, operator, vec![Name::new(value)]));
            }
        }
        match self.word() {
            "" => Ok(made(key, Operator::Exists, Vec::new())),
            "in" => Ok(made(key, Operator::In, self.values()?)),
            "notin" => Ok(made(key, Operator::NotIn, self.values()?)),
            other => Err(format!("`{key} {other}`: expected in, notin, =, ==, !=, > or <")),
        }
    }

    fn values(&mut self) -> Result<Vec<Name>, String> {
        if !self.take("(") {
            return self.expected("`(`");
        }
        let mut values = Vec::new();
        loop {
            values.push(Name::new(self.word()));
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return self.expected("`,` or `)`");
            }
        }
    }

    fn key(&mut self) -> Result<&'t str, String> {
        match self.word() {
            "" => self.expected("the key of a label"),
            key => Ok(key),
        }
    }

    /// Takes a word, which may be empty, and the space after it.
    fn word(&mut self) -> &'t str {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let end = self.0.find(|c| !is_word(c)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        word
    }

    /// Takes an operator or punctuation mark and the space after it. Returns whether it was next.
    fn take(&mut self, mark: &str) -> bool {
        let rest = self.0.strip_prefix(mark);
        if let Some(rest) = rest {
            self.0 = rest.trim_start();
        }
        rest.is_some()
    }

    fn expected<T>(&self, what: &str) -> Result<T, String> {
        match self.0 {
            "" => Err(format!("ends where {what} was expected")),
            at => Err(format!("has `{at}` where {what} was expected")),
        }
    }
}

fn made(key: &str, operator: Operator, values: Vec<Name>) -> Requirement {
    Requirement { key: Name::new(key), operator, values: values.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::Labels;

    #[test]
    fn kubectls_grammar_selects() {
        let web = Labels::new([("app".into(), "web".into()), ("gen".into(), "5".into())]);
        for (text, want) in [
            ("", true),
            ("app=web", true),
            ("app == web , gen", true),
            ("app!=web", false),
            ("none!=web", true),
            ("app in (db, web)", true),
            ("app in(db),gen", false),
            ("app notin (db)", true),
            ("!app", false),
            ("! none", true),
            ("gen>4,gen<6", true),
            ("gen>5", false),
            ("app=", false),
        ] {
            let selector = LabelSelector::parse(text).unwrap_or_else(|e| panic!("{text:?}: {e}"));
            assert_eq!(selector.matches(&web), want, "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let many = (0..40).map(|i| format!("k{i},")).collect::<String>();
        for (text, says) in [
            ("=web", "has `=web` where the key"),
            ("app web", "`app web`: expected in"),
            ("app in web", "where `(` was expected"),
            ("app in (a", "ends where `,` or `)`"),
            ("gen>x", "wants an integer, not `x`"),
            ("app=web;x", "has `;x` where `,`"),
            (&many, "more than 32"),
        ] {
            let error = LabelSelector::parse(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
