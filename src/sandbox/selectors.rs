//! Label and field selectors.
//!
//! They are parsed from query strings or JSON and matched against labels and field values as slices; nothing here
//! depends on objects or kinds. The errors for malformed selectors are those that clients show to people.

use crate::errors::{ApiError, ApiResult};
use crate::fields::{list, text};

/// A parsed label selector; all requirements must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Parses the query parameter `labelSelector`.
    pub(crate) fn parse(text: &str) -> ApiResult<Self> {
        let mut parser = Parser { tokens: tokenize(text), at: 0 };
        parser.selector().map(Self).map_err(ApiError::bad_request)
    }

    /// Parses `matchLabels` and `matchExpressions`. Returns `None` if the selector is absent, which matches nothing.
    pub(crate) fn from_object(selector: &serde_json::Value) -> Option<Self> {
        let selector = selector.as_object()?;
        let mut all = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(|l| l.as_object()) {
            for (key, value) in labels {
                let test = Test::In(vec![text(value).to_owned()]);
                all.push(Requirement { key: key.clone(), test });
            }
        }
        for expression in selector.get("matchExpressions").map_or(&[][..], list) {
            let key = text(&expression["key"]).to_owned();
            let values =
                list(&expression["values"]).iter().filter_map(|v| v.as_str()).map(str::to_owned).collect();
            let test = match text(&expression["operator"]) {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                _ => Test::Absent,
            };
            all.push(Requirement { key, test });
        }
        Some(Self(all))
    }

    /// Returns whether there are no requirements, so that everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the labels meet all requirements.
    pub(crate) fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.0.iter().all(|requirement| {
            let found = labels.iter().find(|(k, _)| **k == *requirement.key).map(|(_, v)| v.as_ref());
            let number = || found.and_then(|v| v.parse::<i64>().ok());
            match &requirement.test {
                Test::In(values) => found.is_some_and(|v| values.iter().any(|w| w == v)),
                Test::NotIn(values) => !found.is_some_and(|v| values.iter().any(|w| w == v)),
                Test::Exists => found.is_some(),
                Test::Absent => found.is_none(),
                Test::Greater(bound) => number().is_some_and(|n| n > *bound),
                Test::Less(bound) => number().is_some_and(|n| n < *bound),
            }
        })
    }
}

const SYMBOLS: [&str; 9] = ["!=", "==", "=", "!", "(", ")", ",", ">", "<"];

/// Splits a selector into symbols and words.
fn tokenize(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let symbol = SYMBOLS.into_iter().find(|s| rest.starts_with(s));
        let word = || rest.find(|c: char| c.is_whitespace() || "=!(),<>".contains(c)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(symbol.map_or_else(word, str::len));
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<&'a str>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.at).copied()
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.peek() == Some(symbol);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> Option<&'a str> {
        let word = self.peek().filter(|token| !SYMBOLS.contains(token))?;
        self.at += 1;
        Some(word)
    }

    fn refuse<T>(&self, expected: &str) -> Result<T, String> {
        let found = self.peek().unwrap_or_default();
        Err(format!("unable to parse requirement: found '{found}', expected: {expected}"))
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, String> {
        let mut all = Vec::new();
        while self.peek().is_some() {
            all.push(self.requirement()?);
            if self.peek().is_some() && !self.take(",") {
                return self.refuse("',' or 'end of string'");
            }
        }
        Ok(all)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.take("!");
        let Some(key) = self.word().map(str::to_owned) else { return self.refuse("!, identifier, or ','") };
        if !key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
            let why = "name part must consist of alphanumeric characters, '-', '_' or '.'";
            return Err(format!("unable to parse requirement: key: Invalid value: \"{key}\": {why}"));
        }
        if absent {
            return Ok(Requirement { key, test: Test::Absent });
        }
        let test = if self.take("=") || self.take("==") {
            Test::In(vec![self.word().unwrap_or_default().to_owned()])
        } else if self.take("!=") {
            Test::NotIn(vec![self.word().unwrap_or_default().to_owned()])
        } else if self.take(">") {
            Test::Greater(self.number()?)
        } else if self.take("<") {
            Test::Less(self.number()?)
        } else {
            match self.word() {
                Some("in") => Test::In(self.values()?),
                Some("notin") => Test::NotIn(self.values()?),
                Some(_) => {
                    self.at -= 1;
                    return self.refuse("in, notin, =, ==, !=, gt, lt");
                }
                None => Test::Exists,
            }
        };
        Ok(Requirement { key, test })
    }

    fn number(&mut self) -> Result<i64, String> {
        let word = self.word().unwrap_or_default();
        word.parse().map_err(|_| {
            format!(
                "values[0]: Invalid value: \"{word}\": for 'Gt', 'Lt' operators, the value must be an integer"
            )
        })
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        if !self.take("(") {
            return self.refuse("'('");
        }
        let mut values = Vec::new();
        loop {
            match self.word() {
                Some(value) => values.push(value.to_owned()),
                None if self.peek().is_none() => return self.refuse("',', ')' or identifier"),
                None => values.push(String::new()),
            }
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return self.refuse("',' or ')'");
            }
        }
    }
}

/// A parsed field selector. A term is (position in the kind's selectable fields, value, whether it must be equal).
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldSelector(Vec<(usize, String, bool)>);

impl FieldSelector {
    /// Parses the query parameter `fieldSelector`; `position` finds the position of a selectable field.
    pub(crate) fn parse(text: &str, position: impl Fn(&str) -> Option<usize>) -> ApiResult<Self> {
        let mut all = Vec::new();
        for term in text.split(',').filter(|t| !t.is_empty()) {
            let split = term.split_once("!=").map(|(k, v)| (k, v, false));
            let split = split.or_else(|| term.split_once("==").map(|(k, v)| (k, v, true)));
            let split = split.or_else(|| term.split_once('=').map(|(k, v)| (k, v, true)));
            let Some((field, value, equal)) = split else {
                let message = format!("invalid selector: '{text}'; can't understand '{term}'");
                return Err(ApiError::bad_request(message));
            };
            let Some(position) = position(field) else {
                return Err(ApiError::bad_request(format!("field label not supported: {field}")));
            };
            all.push((position, value.to_owned(), equal));
        }
        Ok(Self(all))
    }

    /// Returns whether there are no terms, so that everything matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the field values meet all terms.
    pub(crate) fn matches(&self, fields: &[Box<str>]) -> bool {
        let value = |position: usize| fields.get(position).map_or("", |v| v.as_ref());
        self.0.iter().all(|(position, wanted, equal)| (value(*position) == wanted) == *equal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(selector: &str, expected: &str) {
        let sets = ["a=1", "a=2,b=x", "b=x", ""];
        let parsed = LabelSelector::parse(selector).expect("a selector");
        let matching = sets.iter().filter(|set| {
            let pairs = set.split(',').filter_map(|pair| pair.split_once('='));
            let labels: Vec<_> = pairs.map(|(k, v)| (k.into(), v.into())).collect();
            parsed.matches(&labels)
        });
        assert_eq!(matching.copied().collect::<Vec<_>>().join(" | "), expected, "{selector}");
    }

    #[test]
    fn label_selectors_choose() {
        check("", "a=1 | a=2,b=x | b=x | ");
        check("a=1", "a=1");
        check("a==2,b", "a=2,b=x");
        check("a != 1", "a=2,b=x | b=x | ");
        check("a in (1, 2)", "a=1 | a=2,b=x");
        check("a notin (1),b", "a=2,b=x | b=x");
        check("!a", "b=x | ");
        check("a>1", "a=2,b=x");
    }

    #[test]
    fn bad_selectors_are_refused() {
        for text in ["a in (", "a in 1", "=1", "a b", "a,,b", "a>x", "ü=1"] {
            assert_eq!(LabelSelector::parse(text).expect_err(text).code, 400, "{text}");
        }
        assert!(FieldSelector::parse("metadata.name", |_| Some(0)).is_err());
        assert!(FieldSelector::parse("x=1", |_| None).is_err());
    }
}
