//! A profile: the plugins enabled at each extension point, in order, with weights.

use std::sync::Arc;

use pellucid_model::Name;

use super::gangs::GangRules;
use super::plugin::Plugin;

/// A plugin at an extension point.
#[derive(Clone)]
pub struct Enabled {
    /// The plugin.
    pub plugin: Arc<dyn Plugin>,
    /// Weight of its scores, 1 or more; 0 at points that do not score.
    pub weight: i64,
    /// Its place in [`Profile::plugins`]: statistics are kept by it.
    pub index: usize,
}

/// A scheduler name and how its pods are scheduled. Immutable.
#[derive(Clone, Default)]
pub struct Profile {
    /// `spec.schedulerName` of its pods.
    pub scheduler_name: Name,
    /// 0 means all nodes are scored; 1 to 100 as upstream.
    pub percentage_of_nodes_to_score: u8,
    /// Every plugin that is enabled at some point.
    pub plugins: Vec<Arc<dyn Plugin>>,
    /// PreEnqueue.
    pub pre_enqueue: Vec<Enabled>,
    /// QueueSort; exactly one.
    pub queue_sort: Vec<Enabled>,
    /// PreFilter.
    pub pre_filter: Vec<Enabled>,
    /// Filter, in the order in which causes are found.
    pub filter: Vec<Enabled>,
    /// PostFilter.
    pub post_filter: Vec<Enabled>,
    /// PreScore.
    pub pre_score: Vec<Enabled>,
    /// Score.
    pub score: Vec<Enabled>,
    /// Reserve.
    pub reserve: Vec<Enabled>,
    /// Permit.
    pub permit: Vec<Enabled>,
    /// PreBind.
    pub pre_bind: Vec<Enabled>,
    /// Bind.
    pub bind: Vec<Enabled>,
}

impl Profile {
    /// Returns how its gangs are scheduled; `None`: their pods are scheduled one by one.
    pub fn gang_rules(&self) -> Option<GangRules> {
        self.permit.iter().find_map(|enabled| enabled.plugin.gang_rules())
    }

    /// Returns the points with their plugins and weights, under kube-scheduler's names.
    pub fn points(&self) -> [(&'static str, &[Enabled]); 11] {
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
        ]
    }
}
