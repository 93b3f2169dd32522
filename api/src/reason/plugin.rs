//! Reasons that a plugin registers beside the built-in ones.
//!
//! A plugin keeps each of its reasons in a `static` and lists them in its factory, so that `GET /apis/v1/reasons`
//! serves them. Not here: the check that every code stands once, which needs all plugins of a process.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{Example, ReasonCode, ReasonEntry, Resolver, TerminalFor};

/// A reason of a plugin. The code stands for the whole: reasons with equal codes are equal.
#[derive(Clone, Copy, Debug)]
pub struct PluginReason {
    /// The code as it appears in bodies and metrics, CamelCase.
    pub code: &'static str,
    /// The name of the plugin that gives the reason.
    pub plugin: &'static str,
    /// The message; `{}` is replaced by the subject. Worded so that a number of nodes can stand before it.
    pub message: &'static str,
    /// Who can usually apply the remedy.
    pub resolver: Resolver,
    /// What the reason settles until something changes.
    pub terminal_for: TerminalFor,
    /// What the reason means.
    pub meaning: &'static str,
    /// What would resolve it.
    pub remedy: &'static str,
    /// What would resolve it where no pod's end would; `None`: the same.
    pub never: Option<&'static str>,
    /// An example, with the message as it is rendered.
    pub example: Example,
}

impl PluginReason {
    /// Returns the reason as an entry of the registry.
    pub(super) const fn entry(&'static self) -> ReasonEntry {
        ReasonEntry {
            code: ReasonCode::Plugin(self),
            plugin: self.plugin,
            meaning: self.meaning,
            remedy: self.remedy,
            never: match self.never {
                Some(never) => never,
                None => self.remedy,
            },
            resolver: self.resolver,
            message: self.message,
        }
    }
}

impl PartialEq for PluginReason {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for PluginReason {}

impl Hash for PluginReason {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.code.hash(state);
    }
}

impl PartialOrd for PluginReason {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PluginReason {
    fn cmp(&self, other: &Self) -> Ordering {
        self.code.cmp(other.code)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::DefaultHasher;

    use super::super::REGISTRY;
    use super::*;

    const COLD: PluginReason = PluginReason {
        code: "TooCold",
        plugin: "Weather",
        message: "node(s) were below {}",
        resolver: Resolver::ClusterAdmin,
        terminal_for: TerminalFor::Node,
        meaning: "The node is colder than the pod allows.",
        remedy: "Heat the room.",
        never: None,
        example: Example {
            subject: "5 degrees",
            message: "node(s) were below 5 degrees",
            situation: "It is winter.",
        },
    };
    static FIRST: PluginReason = COLD;
    static SECOND: PluginReason = PluginReason { meaning: "The same code at another address.", ..COLD };
    static DAMP: PluginReason = PluginReason { code: "TooDamp", ..COLD };

    fn hash(code: ReasonCode) -> u64 {
        let mut hasher = DefaultHasher::new();
        code.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn equal_codes_are_one_reason_wherever_they_are_kept() {
        let (first, second) = (ReasonCode::Plugin(&FIRST), ReasonCode::Plugin(&SECOND));
        assert_eq!(first, second);
        assert_eq!(hash(first), hash(second));
        assert_ne!(first, ReasonCode::Plugin(&DAMP));
    }

    #[test]
    fn plugin_codes_stand_behind_the_built_in_ones_and_in_the_order_of_their_text() {
        assert!(REGISTRY.iter().all(|entry| entry.code < ReasonCode::Plugin(&FIRST)));
        let sorted = BTreeSet::from([
            ReasonCode::Plugin(&DAMP),
            ReasonCode::PluginRefused,
            ReasonCode::Plugin(&FIRST),
        ]);
        let texts: Vec<&str> = sorted.into_iter().map(ReasonCode::as_str).collect();
        assert_eq!(texts, ["PluginRefused", "TooCold", "TooDamp"]);
    }

    #[test]
    fn a_plugin_code_answers_as_a_built_in_one_does() {
        let code = ReasonCode::Plugin(&FIRST);
        assert_eq!(code.message("0 degrees"), "node(s) were below 0 degrees");
        assert_eq!(code.message(code.example().subject), code.example().message);
        assert_eq!(code.terminal_for(), TerminalFor::Node);
        let entry = code.entry();
        assert_eq!((entry.code, entry.plugin, entry.remedy), (code, "Weather", "Heat the room."));
        assert_eq!(entry.resolver, Resolver::ClusterAdmin);
    }
}
