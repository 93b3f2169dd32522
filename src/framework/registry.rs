//! Checks the registry: the list of plugin factories that a process is started with.
//!
//! Names and reason codes must be unique among all plugins, so no plugin can check them alone. Not here: arguments of
//! plugins, which the configuration checks.

use std::collections::BTreeMap;
use std::fmt;

use pellucid_api::reason::{PluginReason, REGISTRY, ReasonCode, STATES};

use super::plugin::PluginFactory;

/// Something that a plugin registers and that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plugin {plugin}: {field}: {problem}, got {value:?}")]
pub struct RegistryProblem {
    /// Name of the plugin.
    pub plugin: &'static str,
    /// `name`, or a field of a reason, such as `reasons[0].code`.
    pub field: String,
    /// What is wrong with the value.
    pub problem: String,
    /// The value as registered.
    pub value: String,
}

/// All problems of a registry, in its order. Invariant: never empty when returned as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryProblems(pub Vec<RegistryProblem>);

impl fmt::Display for RegistryProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let line_break = if index > 0 { "\n" } else { "" };
            write!(f, "{line_break}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RegistryProblems {}

/// Checks that every plugin name and every reason code stands once, and that the reasons can be served. Fails with all
/// problems at once.
pub fn check(registry: &[Box<dyn PluginFactory>]) -> Result<(), RegistryProblems> {
    let mut problems = Vec::new();
    // Where each code stands. Bodies contain codes of both tables, so a code may stand in one of them only.
    let mut codes: BTreeMap<&str, &str> = STATES.iter().map(|e| (e.code, e.where_seen)).collect();
    codes.extend(REGISTRY.iter().map(|e| (e.code.as_str(), e.plugin)));
    for (index, factory) in registry.iter().enumerate() {
        let plugin = factory.name();
        let mut add = |field: String, problem: String, value: &str| {
            problems.push(RegistryProblem { plugin, field, problem, value: value.to_owned() });
        };
        if registry.iter().take(index).any(|earlier| earlier.name() == plugin) {
            add("name".to_owned(), "another plugin has this name".to_owned(), plugin);
        }
        for (at, reason) in factory.reasons().into_iter().enumerate() {
            for (field, problem, value) in reason_problems(plugin, reason, &codes) {
                add(format!("reasons[{at}].{field}"), problem, value);
            }
            codes.entry(reason.code).or_insert(plugin);
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(RegistryProblems(problems)) }
}

/// Returns what is wrong with a reason: field, problem and value. `codes` has the codes that are taken, each with the
/// place where it stands.
fn reason_problems(
    plugin: &str,
    reason: &'static PluginReason,
    codes: &BTreeMap<&str, &str>,
) -> Vec<(&'static str, String, &'static str)> {
    let mut found = Vec::new();
    if !is_camel_case(reason.code) {
        let problem = "must be CamelCase: a capital, then letters and digits of ASCII".to_owned();
        found.push(("code", problem, reason.code));
    } else if let Some(taken_by) = codes.get(reason.code) {
        found.push(("code", format!("stands in the registry already ({taken_by})"), reason.code));
    }
    if reason.plugin != plugin {
        found.push(("plugin", format!("must be the plugin's name, {plugin:?}"), reason.plugin));
    }
    let texts = [("message", reason.message), ("meaning", reason.meaning), ("remedy", reason.remedy)];
    for (field, text) in texts.into_iter().filter(|(_, text)| text.trim().is_empty()) {
        found.push((field, "must not be empty".to_owned(), text));
    }
    let rendered = ReasonCode::Plugin(reason).message(reason.example.subject);
    if rendered != reason.example.message {
        let problem = format!("must be the message about the example's subject, {rendered:?}");
        found.push(("example.message", problem, reason.example.message));
    }
    found
}

fn is_camel_case(code: &str) -> bool {
    code.starts_with(|c: char| c.is_ascii_uppercase())
        && code.contains(|c: char| c.is_ascii_lowercase())
        && code.chars().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pellucid_api::reason::{Example, Resolver, TerminalFor};
    use serde_json::Value;

    use super::super::endpoint::Endpoint;
    use super::super::plugin::{ArgsError, Plugin};
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
    static GOOD: PluginReason = COLD;
    static OF_ANOTHER: PluginReason = PluginReason { plugin: "Climate", ..COLD };
    static BUILT_IN: PluginReason = PluginReason { code: "TooManyPods", ..COLD };
    static A_STATE: PluginReason = PluginReason { code: "GangRunning", ..COLD };
    static SPACED: PluginReason = PluginReason { code: "Too cold", ..COLD };
    static SHOUTED: PluginReason = PluginReason { code: "COLD", ..COLD };
    static SMALL: PluginReason = PluginReason { code: "tooCold", ..COLD };
    static NAMELESS: PluginReason = PluginReason { code: "", ..COLD };
    static SILENT: PluginReason = PluginReason { code: "TooQuiet", message: "", remedy: " ", ..COLD };

    struct Registered(&'static str, Vec<&'static PluginReason>);

    impl PluginFactory for Registered {
        fn name(&self) -> &'static str {
            self.0
        }
        fn summary(&self) -> &'static str {
            "Registers reasons"
        }
        fn make(&self, _args: &Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>> {
            Err(Vec::new())
        }
        fn args_schema(&self) -> Value {
            Value::Null
        }
        fn reasons(&self) -> Vec<&'static PluginReason> {
            self.1.clone()
        }
        fn endpoints(&self) -> Vec<Endpoint> {
            Vec::new()
        }
    }

    /// Returns the problems of some plugins, one a line.
    fn said(plugins: &[(&'static str, &[&'static PluginReason])]) -> Vec<String> {
        let factory = |(name, reasons): &(&'static str, &[&'static PluginReason])| {
            let made: Box<dyn PluginFactory> = Box::new(Registered(name, reasons.to_vec()));
            made
        };
        let registry: Vec<Box<dyn PluginFactory>> = plugins.iter().map(factory).collect();
        let problems = check(&registry).err();
        problems.iter().flat_map(|all| all.0.iter().map(ToString::to_string)).collect()
    }

    #[test]
    fn plugins_with_names_and_codes_of_their_own_are_accepted() {
        assert_eq!(said(&[("Weather", &[&GOOD]), ("Plain", &[])]), [""; 0]);
    }

    #[test]
    fn a_name_stands_once() {
        assert_eq!(
            said(&[("Weather", &[]), ("Plain", &[]), ("Weather", &[])]),
            ["plugin Weather: name: another plugin has this name, got \"Weather\""]
        );
    }

    #[test]
    fn a_code_stands_once() {
        let taken = |plugin: &str, code: &str, by: &str| {
            format!("plugin {plugin}: reasons[0].code: stands in the registry already ({by}), got \"{code}\"")
        };
        assert_eq!(
            said(&[("Weather", &[&GOOD]), ("Climate", &[&OF_ANOTHER])]),
            [taken("Climate", "TooCold", "Weather")]
        );
        assert_eq!(said(&[("Weather", &[&BUILT_IN])]), [taken("Weather", "TooManyPods", "NodeResourcesFit")]);
        assert_eq!(said(&[("Weather", &[&A_STATE])]), [taken("Weather", "GangRunning", "verdict of a gang")]);
        let twice = said(&[("Weather", &[&GOOD, &GOOD])]);
        assert_eq!(
            twice,
            [taken("Weather", "TooCold", "Weather").replace("reasons[0]", "reasons[1]")],
            "one plugin lists it twice"
        );
    }

    #[test]
    fn a_code_is_a_camel_case_identifier() {
        for reason in [&SPACED, &SHOUTED, &SMALL, &NAMELESS] {
            let want = format!(
                "plugin Weather: reasons[0].code: must be CamelCase: a capital, then letters and digits of \
                 ASCII, got {:?}",
                reason.code
            );
            assert_eq!(said(&[("Weather", &[reason])]), [want]);
        }
    }

    #[test]
    fn all_problems_of_a_reason_are_said_at_once() {
        assert_eq!(
            said(&[("Plain", &[&SILENT])]),
            [
                "plugin Plain: reasons[0].plugin: must be the plugin's name, \"Plain\", got \"Weather\"",
                "plugin Plain: reasons[0].message: must not be empty, got \"\"",
                "plugin Plain: reasons[0].remedy: must not be empty, got \" \"",
                "plugin Plain: reasons[0].example.message: must be the message about the example's subject, \
                 \"\", got \"node(s) were below 5 degrees\"",
            ]
        );
        let refused = check(&[Box::new(Registered("Plain", vec![&SILENT]))]).expect_err("it is refused");
        assert_eq!(refused.to_string().lines().count(), 4);
    }
}
