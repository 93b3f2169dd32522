//! Computes the enabled plugins of an extension point and their order: kube-scheduler's merge rules, applied to names.
//!
//! There are two steps. First, the file's `multiPoint` is merged into the defaults: a default plugin that is enabled
//! again stays in its position and uses the file's entry, a disabled plugin is removed, and new plugins are appended.
//! Second, each extension point takes the plugins named there explicitly, followed by the `multiPoint` plugins that
//! implement the point and are not disabled there. An explicit entry always overrides `multiPoint`, and enabled
//! overrides disabled.
//!
//! v1beta2 has no `multiPoint`: there, only the first step applies, to each point's set and the point's defaults.

use super::file::{Entry, PluginSet};

/// Merges a plugin set into the default plugins.
pub(super) fn into_defaults(defaults: &[Entry], set: &PluginSet) -> Vec<Entry> {
    let enabled_again = |name: &str| set.enabled.iter().find(|entry| entry.name == name);
    let kept = defaults.iter().filter(|entry| !set.disables(&entry.name));
    let mut merged: Vec<Entry> =
        kept.map(|entry| enabled_again(&entry.name).unwrap_or(entry).clone()).collect();
    for entry in &set.enabled {
        if !merged.iter().any(|have| have.name == entry.name) {
            merged.push(entry.clone());
        }
    }
    merged
}

/// Returns the plugins at one point in the order in which they run: first explicit plugins that are also in `multi`, in
/// the explicit order; then the rest of `multi`; then the other explicit ones.
pub(super) fn at_point(
    explicit: &PluginSet,
    multi: &[Entry],
    works_here: impl Fn(&str) -> bool,
) -> Vec<Entry> {
    let is_explicit = |name: &str| explicit.enabled.iter().any(|entry| entry.name == name);
    let from_multi: Vec<&Entry> = match explicit.disabled.iter().any(|entry| entry.name == "*") {
        true => Vec::new(),
        false => multi.iter().filter(|e| works_here(&e.name) && !explicit.disables(&e.name)).collect(),
    };
    let is_override = |name: &str| from_multi.iter().any(|entry| entry.name == name);
    let (first, last): (Vec<&Entry>, Vec<&Entry>) =
        explicit.enabled.iter().partition(|entry| is_override(&entry.name));
    let middle = from_multi.iter().copied().filter(|entry| !is_explicit(&entry.name));
    first.into_iter().chain(middle).chain(last).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &str) -> Vec<Entry> {
        let names = names.split_whitespace();
        names.map(|name| Entry { name: name.into(), ..Entry::default() }).collect()
    }

    fn set(enabled: &str, disabled: &str) -> PluginSet {
        PluginSet { enabled: entries(enabled), disabled: entries(disabled) }
    }

    fn names(entries: &[Entry]) -> String {
        entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_set_keeps_the_default_order() {
        for (enabled, disabled, expected) in [
            ("", "", "A B C"),
            ("X", "", "A B C X"),
            ("B X", "", "A B C X"),
            ("", "B", "A C"),
            ("B", "B", "A C B"),
            ("C A", "*", "C A"),
            ("", "*", ""),
        ] {
            let merged = into_defaults(&entries("A B C"), &set(enabled, disabled));
            assert_eq!(names(&merged), expected, "enabled {enabled:?}, disabled {disabled:?}");
        }
    }

    #[test]
    fn a_point_takes_overrides_then_multi_point_then_the_rest() {
        for (enabled, disabled, expected) in [
            ("", "", "A B C"),
            ("C", "", "C A B"),
            ("X", "", "A B C X"),
            ("X C", "", "C A B X"),
            ("", "B", "A C"),
            ("B", "B", "A C B"),
            ("X", "*", "X"),
            ("B X", "*", "B X"),
        ] {
            let multi = entries("A B C elsewhere");
            let merged = at_point(&set(enabled, disabled), &multi, |name| name != "elsewhere");
            assert_eq!(names(&merged), expected, "enabled {enabled:?}, disabled {disabled:?}");
        }
    }

    #[test]
    fn an_explicit_weight_beats_the_one_of_multi_point() {
        let weigh = |weight| Entry { name: "A".into(), weight: Some(weight), ..Entry::default() };
        let multi = into_defaults(&[weigh(3)], &PluginSet { enabled: vec![weigh(5)], disabled: vec![] });
        assert_eq!(multi[0].weight, Some(5));
        let point = PluginSet { enabled: vec![weigh(7)], disabled: vec![] };
        assert_eq!(at_point(&point, &multi, |_| true)[0].weight, Some(7));
    }
}
