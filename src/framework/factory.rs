//! A plugin's entry in the registry: what it declares, and how a profile's plugin is made of arguments.

use std::sync::Arc;

use pellucid_api::reason::PluginReason;
use pellucid_cluster::DerivedState;
use pellucid_cluster::derived::add_state;
use pellucid_model::custom::CustomKind;

use super::advice::{Grouping, PodRead};
use super::controllers::Controller;
use super::endpoint::Endpoint;
use super::gauges::GaugeFamily;
use super::plugin::Plugin;

/// Why an argument of a plugin was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}, got {value}")]
pub struct ArgsError {
    /// Path within the arguments, such as `scoringStrategy.type`.
    pub field: String,
    /// What is wrong with the value.
    pub problem: String,
    /// The value as given.
    pub value: String,
}

/// The keys of labels and annotations that a plugin reads. A key that ends in `*` stands for all that begin so.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeclaredKeys {
    /// Labels of pods. They are part of the shape, as if a selector named them.
    pub pod_labels: &'static [&'static str],
    /// Annotations of pods ([`PodSpec::annotations`](pellucid_model::PodSpec::annotations)). They are part of the shape.
    pub pod_annotations: &'static [&'static str],
    /// Labels of pods that say nothing about nodes, such as a quota's name. They are part of the shape, but pods that differ
    /// in them alone share what is known about nodes; only plugins asked at every attempt
    /// ([`Reads::Everything`](crate::plugin::Reads::Everything)), hints and states may read them.
    pub pod_wide_labels: &'static [&'static str],
    /// Annotations of pods that say nothing about nodes, as `pod_wide_labels`.
    pub pod_wide_annotations: &'static [&'static str],
    /// Annotations of pods with which its Bindings say what is held ([`Pod::marks`](pellucid_model::Pod::marks)). They are not part of the shape.
    pub binding_annotations: &'static [&'static str],
    /// Annotations of nodes ([`Node::annotations`](pellucid_model::Node::annotations)).
    pub node_annotations: &'static [&'static str],
}

impl DeclaredKeys {
    /// No keys, for constants that name some.
    pub const NONE: Self = Self {
        pod_labels: &[],
        pod_annotations: &[],
        pod_wide_labels: &[],
        pod_wide_annotations: &[],
        binding_annotations: &[],
        node_annotations: &[],
    };

    /// Iterates over the annotations of pods that are read, but for those of holds.
    pub fn annotations_of_pods(&self) -> impl Iterator<Item = &'static &'static str> + use<> {
        self.pod_annotations.iter().chain(self.pod_wide_annotations)
    }
}

/// Returns the derived states of plugins, one of each type, in their order.
pub fn derived_states<'a>(
    plugins: impl IntoIterator<Item = &'a Arc<dyn Plugin>>,
) -> Vec<Box<dyn DerivedState>> {
    let mut states = Vec::new();
    for state in plugins.into_iter().flat_map(|plugin| plugin.derived_states()) {
        add_state(&mut states, state);
    }
    states
}

/// A plugin's entry in the registry.
pub trait PluginFactory: Send + Sync {
    /// Returns the plugin's name in the configuration.
    fn name(&self) -> &'static str;
    /// Returns what the plugin decides, in one sentence.
    fn summary(&self) -> &'static str;
    /// Returns the weight of its scores in the default configuration, 0 when it does not score.
    #[inline]
    fn default_weight(&self) -> i64 {
        0
    }
    /// Makes the plugin for a profile. `args` is the profile's `pluginConfig` entry, `Null` when absent. Fails with all
    /// problems of the arguments at once.
    fn make(&self, args: &serde_json::Value) -> Result<Arc<dyn Plugin>, Vec<ArgsError>>;
    /// Returns the JSON schema of the arguments, for the `schema` endpoint.
    #[inline]
    fn args_schema(&self) -> serde_json::Value {
        super::args::no_args_schema()
    }
    /// Returns whether an empty configuration enables the plugin.
    #[inline]
    fn is_default(&self) -> bool {
        true
    }
    /// Returns the labels and annotations that the plugin reads besides those that selectors name.
    #[inline]
    fn keys(&self) -> DeclaredKeys {
        DeclaredKeys::default()
    }
    /// Returns old names of resources, each with the name that counts instead in requests of pods and amounts of nodes.
    /// Where a list has both, the old one is left out.
    #[inline]
    fn resource_aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    /// Returns the kinds that the plugin brings. They are watched where the API server has them.
    #[inline]
    fn kinds(&self) -> Vec<&'static CustomKind> {
        Vec::new()
    }
    /// Returns the plugin's own reasons. A cause may only name these and the built-in ones. Invariant: no other reason
    /// of the process has their codes ([`registry::check`](crate::registry::check)).
    #[inline]
    fn reasons(&self) -> Vec<&'static PluginReason> {
        Vec::new()
    }
    /// Returns the read about one pod, if the plugin has one.
    #[inline]
    fn pod_read(&self) -> Option<PodRead> {
        None
    }
    /// Returns what the groups of pods are called ([`PodGroups`](super::advice::PodGroups)), if the plugin has groups.
    #[inline]
    fn groups(&self) -> Option<Grouping> {
        None
    }
    /// Returns the controllers that the plugin brings.
    #[inline]
    fn controllers(&self) -> &'static [Controller] {
        &[]
    }
    /// Returns the plugin's gauges in `/metrics`.
    #[inline]
    fn gauges(&self) -> &'static [GaugeFamily] {
        &[]
    }
    /// Returns the endpoints besides `config`, `stats` and `schema`, including `state`.
    fn endpoints(&self) -> Vec<Endpoint>;
}

/// Writes the accessors of the named extension points in an `impl Plugin` whose type implements their traits itself:
/// `points! { filter, score, hints }`.
#[macro_export]
macro_rules! points {
    ($($name:ident),* $(,)?) => { $($crate::point!($name);)* };
}

/// Writes one accessor for [`points!`].
#[doc(hidden)]
#[macro_export]
macro_rules! point {
    (pre_enqueue) => { $crate::point!(pre_enqueue -> PreEnqueue); };
    (queue_sort) => { $crate::point!(queue_sort -> QueueSort); };
    (pre_filter) => { $crate::point!(pre_filter -> PreFilter); };
    (filter) => { $crate::point!(filter -> Filter); };
    (pre_score) => { $crate::point!(pre_score -> PreScore); };
    (score) => { $crate::point!(score -> Score); };
    (post_filter) => { $crate::point!(post_filter -> PostFilter); };
    (reserve) => { $crate::point!(reserve -> Reserve); };
    (pre_bind) => { $crate::point!(pre_bind -> PreBind); };
    (permit) => { $crate::point!(permit -> Permit); };
    (bind) => { $crate::point!(bind -> Bind); };
    (post_bind) => { $crate::point!(post_bind -> PostBind); };
    (hints) => { $crate::point!(hints -> Hints); };
    (topology_hints) => { $crate::point!(topology_hints -> TopologyHints); };
    (concern) => { $crate::point!(concern -> Concern); };
    (node_overrides) => { $crate::point!(node_overrides -> NodeOverrides); };
    (gangs) => { $crate::point!(gangs -> GangPolicy); };
    (victim_guard) => { $crate::point!(victim_guard -> VictimGuard); };
    (advice) => { $crate::point!(advice -> Advice); };
    (pod_groups) => { $crate::point!(pod_groups -> PodGroups); };
    ($name:ident -> $point:ident) => {
        fn $name(&self) -> Option<&dyn $crate::$point> {
            Some(self)
        }
    };
}
