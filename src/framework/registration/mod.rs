//! Registrations: a plugin's entry in the registry as a value, made of the plugin's parts.
//!
//! Not here: whether the plugins of a process get along, which [`registry`](crate::registry) checks.

pub mod controllers;

use std::sync::Arc;

use pellucid_api::reason::PluginReason;
use pellucid_model::custom::CustomKind;
use serde_json::Value;

use self::controllers::Controller;
use super::advice::{Grouping, PodRead};
use super::args;
use super::endpoint::Endpoint;
use super::gauges::GaugeFamily;
use super::plugin::{ArgsError, DeclaredKeys, Plugin, PluginFactory};

/// Makes the plugin for a profile, as [`PluginFactory::make`].
type Make = dyn Fn(&Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>> + Send + Sync;

/// A plugin's entry in the registry. Without further calls the plugin is enabled by default, scores with weight 0, and
/// has no keys, kinds, reasons and endpoints of its own.
pub struct Registration {
    name: &'static str,
    summary: &'static str,
    args_schema: fn() -> Value,
    make: Box<Make>,
    weight: i64,
    is_default: bool,
    keys: DeclaredKeys,
    resource_aliases: &'static [(&'static str, &'static str)],
    kinds: Vec<&'static CustomKind>,
    reasons: Vec<&'static PluginReason>,
    endpoints: Vec<Endpoint>,
    pod_read: Option<PodRead>,
    groups: Option<Grouping>,
    gauges: &'static [GaugeFamily],
    controllers: &'static [Controller],
}

impl Registration {
    /// Registers a plugin with arguments. `summary` says in one sentence what the plugin decides, `args_schema` returns
    /// the JSON schema of its arguments, and `make` makes it as [`PluginFactory::make`] does.
    pub fn new<P: Plugin + 'static>(
        name: &'static str,
        summary: &'static str,
        args_schema: fn() -> Value,
        make: impl Fn(&Value) -> Result<P, Vec<ArgsError>> + Send + Sync + 'static,
    ) -> Self {
        let make =
            move |args: &Value| -> Result<Arc<dyn Plugin>, Vec<ArgsError>> { Ok(Arc::new(make(args)?)) };
        Self {
            name,
            summary,
            args_schema,
            make: Box::new(make),
            weight: 0,
            is_default: true,
            keys: DeclaredKeys::default(),
            resource_aliases: &[],
            kinds: Vec::new(),
            reasons: Vec::new(),
            endpoints: Vec::new(),
            pod_read: None,
            groups: None,
            gauges: &[],
            controllers: &[],
        }
    }

    /// Registers a plugin without arguments. Arguments in a configuration are refused.
    pub fn without_args<P: Plugin + 'static>(
        name: &'static str,
        summary: &'static str,
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, summary, args::no_args_schema, move |given| args::no_args(given).map(|()| make()))
    }

    /// Sets the weight of the plugin's scores in the default configuration.
    pub fn with_weight(mut self, weight: i64) -> Self {
        self.weight = weight;
        self
    }

    /// Leaves the plugin out of an empty configuration.
    pub fn off_by_default(mut self) -> Self {
        self.is_default = false;
        self
    }

    /// Declares the labels and annotations that the plugin reads besides those that selectors name.
    pub fn with_keys(mut self, keys: DeclaredKeys) -> Self {
        self.keys = keys;
        self
    }

    /// Declares old names of resources, each with the name that counts instead.
    pub fn with_resource_aliases(mut self, aliases: &'static [(&'static str, &'static str)]) -> Self {
        self.resource_aliases = aliases;
        self
    }

    /// Adds kinds that the plugin brings.
    pub fn with_kinds(mut self, kinds: impl IntoIterator<Item = &'static CustomKind>) -> Self {
        self.kinds.extend(kinds);
        self
    }

    /// Adds reasons of the plugin's own.
    pub fn with_reasons(mut self, reasons: impl IntoIterator<Item = &'static PluginReason>) -> Self {
        self.reasons.extend(reasons);
        self
    }

    /// Adds endpoints, `state` first.
    pub fn with_endpoints(mut self, endpoints: impl IntoIterator<Item = Endpoint>) -> Self {
        self.endpoints.extend(endpoints);
        self
    }

    /// Adds a read about one pod, which the plugin's [`Advice`](super::Advice) answers.
    pub fn with_pod_read(mut self, read: PodRead) -> Self {
        self.pod_read = Some(read);
        self
    }

    /// Adds gauges to `/metrics`.
    pub fn with_gauges(mut self, gauges: &'static [GaugeFamily]) -> Self {
        self.gauges = gauges;
        self
    }

    /// Brings controllers, which stay off unless somebody names them.
    pub fn with_controllers(mut self, controllers: &'static [Controller]) -> Self {
        self.controllers = controllers;
        self
    }

    /// Says what the groups of pods are called that the plugin knows ([`PodGroups`](super::PodGroups)).
    pub fn with_groups(mut self, grouping: Grouping) -> Self {
        self.groups = Some(grouping);
        self
    }
}

impl PluginFactory for Registration {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn default_weight(&self) -> i64 {
        self.weight
    }

    fn make(&self, args: &Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>> {
        (self.make)(args)
    }

    fn args_schema(&self) -> Value {
        (self.args_schema)()
    }

    fn is_default(&self) -> bool {
        self.is_default
    }

    fn keys(&self) -> DeclaredKeys {
        self.keys
    }

    fn resource_aliases(&self) -> &'static [(&'static str, &'static str)] {
        self.resource_aliases
    }

    fn kinds(&self) -> Vec<&'static CustomKind> {
        self.kinds.clone()
    }

    fn reasons(&self) -> Vec<&'static PluginReason> {
        self.reasons.clone()
    }

    fn endpoints(&self) -> Vec<Endpoint> {
        self.endpoints.clone()
    }

    fn controllers(&self) -> &'static [Controller] {
        self.controllers
    }

    fn gauges(&self) -> &'static [GaugeFamily] {
        self.gauges
    }

    fn pod_read(&self) -> Option<PodRead> {
        self.pod_read
    }

    fn groups(&self) -> Option<Grouping> {
        self.groups
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Plain;

    impl Plugin for Plain {
        fn name(&self) -> &'static str {
            "Plain"
        }
    }

    fn plain() -> Registration {
        Registration::without_args("Plain", "Does nothing", || Plain)
    }

    #[test]
    fn a_plugin_without_arguments_refuses_them_all_at_once() {
        for none in [Value::Null, json!({}), json!({"kind": "PlainArgs"})] {
            assert!(plain().make(&none).is_ok(), "{none}");
        }
        for (given, want) in [
            (json!([1]), vec!["args: must be an object, got [1]"]),
            (
                json!({"a": 1, "b": {}}),
                vec!["a: there is no such argument, got 1", "b: there is no such argument, got {}"],
            ),
        ] {
            let Err(problems) = plain().make(&given) else { panic!("{given} is refused") };
            assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), want);
        }
        assert_eq!(plain().args_schema(), json!({"type": "object", "additionalProperties": false}));
    }

    #[test]
    fn a_plugin_has_what_is_registered_and_nothing_else() {
        let bare = plain();
        assert_eq!((bare.default_weight(), bare.is_default()), (0, true));
        assert!(bare.reasons().is_empty() && bare.kinds().is_empty() && bare.endpoints().is_empty());
        let read = Endpoint::of::<Value>("state", "Nothing", |_| Ok(Value::Null));
        let full = plain().with_weight(3).off_by_default().with_endpoints([read]);
        assert_eq!((full.default_weight(), full.is_default()), (3, false));
        assert_eq!(full.endpoints().iter().map(|e| e.path).collect::<Vec<_>>(), ["state"]);
    }
}
