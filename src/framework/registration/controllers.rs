//! Controllers: states of plugins that write objects of their own accord, each off unless somebody asks for it by name.
//!
//! A controller is no thread and no loop. Its state hears of nodes and objects as every derived state does and says what is
//! due ([`DerivedState::due_writes`]); who may write, and when, is the core's matter. It works whether or not a profile
//! enables the plugin that brings it.

use pellucid_cluster::DerivedState;
use pellucid_model::custom::CustomKind;

use crate::plugin::PluginFactory;

/// Verbs on a resource of an API group, as in a rule of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Resource or subresource, such as `nodes/status`.
    pub resource: &'static str,
    /// Verbs, sorted.
    pub verbs: &'static [&'static str],
}

/// A controller that a plugin brings.
#[derive(Clone, Copy)]
pub struct Controller {
    /// Name, in lower case; its state writes in this name ([`DerivedState::plugin`]).
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Makes its state. Each controller has a type of its own.
    pub state: fn() -> Box<dyn DerivedState>,
    /// The kinds that it must see besides nodes and pods.
    pub kinds: &'static [&'static CustomKind],
    /// What it must be allowed at the API server besides what the scheduler is allowed.
    pub rights: &'static [Right],
}

/// Returns the controllers that the plugins of a registry bring, by name.
pub fn all(registry: &[Box<dyn PluginFactory>]) -> Vec<&'static Controller> {
    let mut all: Vec<&'static Controller> =
        registry.iter().flat_map(|factory| factory.controllers()).collect();
    all.sort_by_key(|controller| controller.name);
    all
}

/// Returns the controllers of these names. Fails with the first name that none has.
pub fn named(
    registry: &[Box<dyn PluginFactory>],
    names: &[String],
) -> Result<Vec<&'static Controller>, String> {
    let all = all(registry);
    let known = || all.iter().map(|controller| controller.name).collect::<Vec<_>>().join(", ");
    if let Some(name) = names.iter().find(|name| all.iter().all(|known| known.name != **name)) {
        return Err(format!("there is no controller {name:?}; there are: {}", known()));
    }
    Ok(all.iter().copied().filter(|controller| names.iter().any(|name| name == controller.name)).collect())
}
