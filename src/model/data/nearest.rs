//! Finds the known name closest to a misspelt one, for "did you mean".

/// Maximum length of compared names. Longer names are never typos, and comparing costs the product of the lengths.
const LONGEST: usize = 64;

/// Returns the most similar known name: equal except for case, or within a small edit distance. Returns `None` if no
/// name is close.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = folded(name)?;
    let tolerated = (name.len() / 3).min(3);
    let near = known.into_iter().filter_map(|known| {
        let distance = distance(&name, &folded(known)?);
        (distance <= tolerated).then_some((distance, known))
    });
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

fn folded(name: &str) -> Option<Vec<char>> {
    (name.len() <= LONGEST).then(|| name.chars().flat_map(char::to_lowercase).collect())
}

/// Returns the number of characters to insert, delete or replace until the names are equal (Levenshtein distance).
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_and_another_word_does_not() {
        let known = ["schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig", "qps"];
        for (name, expected) in [
            ("schedularName", Some("schedulerName")),
            ("SCHEDULERNAME", Some("schedulerName")),
            ("plugin", Some("plugins")),
            ("pluginsConfig", Some("pluginConfig")),
            ("qs", None),
            ("", None),
            ("extenders", None),
            ("ſchedulerName", Some("schedulerName")),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!(nearest(&"s".repeat(10_000), known), None);
    }

    #[test]
    fn distances() {
        for (from, to, expected) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "axc", 1), ("abcd", "bcde", 2)]
        {
            let letters = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(distance(&letters(from), &letters(to)), expected, "{from:?} {to:?}");
        }
    }
}
