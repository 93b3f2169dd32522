//! The plugins, one folder each, in the default order of kube-scheduler.
//!
//! PURE. Adding one is a folder and a line in [`registry`].

use crate::framework::PluginFactory;
use crate::framework::plugin::ArgsError;

pub mod node_unschedulable;

/// Returns every plugin this binary knows, in the order of the default configuration: filters run, and
/// causes are found, in this order.
pub fn registry() -> Vec<Box<dyn PluginFactory>> {
    vec![Box::new(node_unschedulable::Factory)]
}

/// Accepts the arguments of a plugin that has none: absent, null or an empty object.
pub(crate) fn no_args(args: &serde_json::Value) -> Result<(), Vec<ArgsError>> {
    let Some(fields) = args.as_object() else { return Ok(()) };
    let unknown = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind"));
    let problems: Vec<ArgsError> = unknown
        .map(|(name, value)| ArgsError {
            field: name.clone(),
            problem: "the plugin has no such argument".into(),
            value: value.to_string(),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
