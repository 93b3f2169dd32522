//! FragmentationGradient: prefers the node, and on it the card, on which a pod makes the least of the idle GPUs useless
//! for typical pods. The score is that of FGD ("Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
//! Fragmentation Gradient Descent", USENIX ATC 2023).
//!
//! `typical` is what pods typically request, `window` counts it over the pods that were seen, `table` knows the fragments
//! of a card at a glance, `future` fills a node up, `state` keeps both in step with the cluster, `score` rates nodes, and `room`
//! says what is of no use to whom. All arithmetic is of
//! integers. Not here: which cards fit, which `allocator` knows.

mod future;
mod room;
mod score;
mod state;
mod table;
mod typical;
mod window;

#[cfg(test)]
mod tests;

pub(super) use room::of_typical;
pub(super) use state::TypicalPods;
pub(super) use table::Prospect;
pub(super) use typical::GradientArgs;
