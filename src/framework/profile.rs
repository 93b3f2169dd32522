//! A profile: the plugins enabled at each extension point, in order, with weights.

use std::sync::Arc;

use pellucid_model::{Name, Pod, PodSpec};

use super::gangs::GangRules;
use super::plugin::Plugin;
use super::view::View;

/// A plugin enabled at an extension point.
#[derive(Clone)]
pub struct Enabled {
    /// The plugin, as made for this profile.
    pub plugin: Arc<dyn Plugin>,
    /// Weight of its scores, 1 or more; 0 at points that do not score.
    pub weight: i64,
    /// Index in [`Profile::plugins`], by which statistics are stored.
    pub index: usize,
}

/// A scheduler name and how its pods are scheduled. Immutable.
#[derive(Clone, Default)]
pub struct Profile {
    /// The `spec.schedulerName` of its pods.
    pub scheduler_name: Name,
    /// As in kube-scheduler, 1 to 100; 0 scores all nodes.
    pub percentage_of_nodes_to_score: u8,
    /// Every plugin that is enabled at some extension point.
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// Plugins at PreEnqueue.
    pub pre_enqueue: Vec<Enabled>,
    /// The plugin at QueueSort; exactly one.
    pub queue_sort: Vec<Enabled>,
    /// Plugins at PreFilter.
    pub pre_filter: Vec<Enabled>,
    /// Plugins at Filter, in the order in which they run.
    pub filter: Vec<Enabled>,
    /// Plugins at PostFilter.
    pub post_filter: Vec<Enabled>,
    /// Plugins at PreScore.
    pub pre_score: Vec<Enabled>,
    /// Plugins at Score.
    pub score: Vec<Enabled>,
    /// Plugins at Reserve.
    pub reserve: Vec<Enabled>,
    /// Plugins at Permit.
    pub permit: Vec<Enabled>,
    /// Plugins at PreBind.
    pub pre_bind: Vec<Enabled>,
    /// Plugins at Bind.
    pub bind: Vec<Enabled>,
    /// Plugins at PostBind.
    pub post_bind: Vec<Enabled>,
    /// Those of `plugins` that provide topology hints. The configuration has no such point.
    pub topology_hints: Vec<Enabled>,
    /// Those of `plugins` that say which pods concern them. The configuration has no such point.
    pub concerns: Vec<Enabled>,
    /// Those of `plugins` that override nodes. The configuration has no such point.
    pub node_overrides: Vec<Enabled>,
    /// Those of `plugins` that protect pods from eviction. The configuration has no such point.
    pub victim_guards: Vec<Enabled>,
}

/// The plugins of a profile that a pod does not concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside(u64);

impl Aside {
    /// Whether a plugin is among them.
    #[inline]
    pub fn has(self, enabled: &Enabled) -> bool {
        self.0 != 0 && self.0.unbounded_shr(enabled.index as u32) & 1 != 0
    }

    /// Returns the plugins that are in either.
    #[inline]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Profile {
    /// Returns the plugins that a pod does not concern.
    #[inline]
    pub fn aside(&self, view: View<'_>, spec: &PodSpec, pod: &Pod) -> Aside {
        let mut aside = Aside::default();
        for enabled in self.concerns.iter().filter(|enabled| enabled.index < 64) {
            let is_concerned = enabled.plugin.concern().is_none_or(|of| of.concerns(view, spec, pod));
            aside.0 |= u64::from(!is_concerned) << enabled.index;
        }
        aside
    }

    /// Returns the plugins that hold nothing for pods with this spec at Reserve.
    pub fn idle_at_reserve(&self, view: View<'_>, spec: &PodSpec) -> Aside {
        let mut aside = Aside::default();
        for enabled in self.reserve.iter().filter(|enabled| enabled.index < 64) {
            let may_hold = enabled.plugin.reserve().is_none_or(|of| of.may_hold(view, spec));
            aside.0 |= u64::from(!may_hold) << enabled.index;
        }
        aside
    }

    /// Returns the rules for its gangs, or `None` when their pods are scheduled one by one.
    pub fn gang_rules(&self) -> Option<GangRules> {
        self.permit.iter().find_map(|enabled| Some(enabled.plugin.gangs()?.rules()))
    }

    /// Returns the extension points under kube-scheduler's names, with their plugins and weights.
    pub fn points(&self) -> [(&'static str, &[Enabled]); 12] {
        [
            ("preEnqueue", &self.pre_enqueue),
            ("queueSort", &self.queue_sort),
            ("preFilter", &self.pre_filter),
            ("filter", &self.filter),
            ("postFilter", &self.post_filter),
            ("preScore", &self.pre_score),
            ("score", &self.score),
            ("reserve", &self.reserve),
            ("permit", &self.permit),
            ("preBind", &self.pre_bind),
            ("bind", &self.bind),
            ("postBind", &self.post_bind),
        ]
    }
}
