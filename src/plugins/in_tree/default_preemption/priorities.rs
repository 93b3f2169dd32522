//! Counts placed pods per priority. Most searches for victims end here, because no placed pod has a lower priority.

use std::collections::BTreeMap;
use std::sync::Arc;

use pellucid_cluster::DerivedState;
use pellucid_cluster::derived::Placed;
use pellucid_framework::View;

/// Number of placed pods per priority. Owned by the cluster state as derived state.
#[derive(Clone, Debug, Default)]
pub struct Priorities(Arc<BTreeMap<i32, usize>>);

impl DerivedState for Priorities {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn pod_added(&mut self, placed: &Placed<'_>) {
        let pod = placed.pod;
        *Arc::make_mut(&mut self.0).entry(pod.priority).or_default() += 1;
    }

    fn pod_removed(&mut self, placed: &Placed<'_>) {
        let pod = placed.pod;
        let counts = Arc::make_mut(&mut self.0);
        if let Some(count) = counts.get_mut(&pod.priority) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&pod.priority);
            }
        }
    }
}

/// Returns the lowest priority of a placed pod.
pub(super) fn lowest(view: View<'_>) -> Option<i32> {
    view.state::<Priorities>()?.0.keys().next().copied()
}
