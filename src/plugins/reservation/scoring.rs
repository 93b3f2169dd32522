//! PreScore and Score: nodes on which the pod can use a reservation come first, by how much of it is in use then.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_framework::plugin::{CycleValue, Normalize, PreScore, PreScored, Reads, Score};
use pellucid_model::{Name, NodeIdx, PodSpec};

use super::ReservationPlugin;
use super::affinity::ignores_all;
use super::choosing::{Stand, choose, score};
use super::matching::{Match, Seeker};
use super::reservations::reservation_of;
use super::taking_over::Taker;

/// What counts as the score of the node whose reservation has the least order: ten times the greatest of the others.
const FIRST: i64 = 1000;

/// The node with the reservation of the least order, if any has one.
struct Preferred(Option<NodeIdx>);

/// The reservation that may be placed over pods.
struct Taking(Name);

impl PreScore for ReservationPlugin {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_score(&self, view: View<'_>, spec: &PodSpec, nodes: &[NodeIdx]) -> PreScored {
        if let Some(name) = view.pod().and_then(reservation_of) {
            return match Taker::of(view, name) {
                Some(taker) if !taker.is_multiple() => PreScored::Ready(Arc::new(Taking(name.clone()))),
                // As in Koordinator, one that may be over several pods has no score.
                _ => PreScored::Skip,
            };
        }
        let seeker = view.pod().map(|pod| Seeker::of(view, pod, spec));
        let Some(Ok(Some(seeker))) = seeker.filter(|_| !ignores_all(spec)) else { return PreScored::Skip };
        if !seeker.has_match() {
            return PreScored::Skip;
        }
        // In a trial the raw score is asked for alone.
        if !seeker.all.has_order() || !view.absent().is_empty() {
            return PreScored::Ready(Arc::new(Preferred(None)));
        }
        // As in Koordinator, also of a reservation that the pod does not fit in.
        let matches = seeker.matches();
        let asked = matches.into_iter().filter(|(node, _)| nodes.binary_search(node).is_ok());
        let order = |(node, all): (NodeIdx, Vec<Match<'_>>)| {
            let least = all.iter().filter_map(|of| of.known.spec.order).min();
            least.map(|order| (order, node))
        };
        let least = asked.filter_map(order).min();
        PreScored::Ready(Arc::new(Preferred(least.map(|(_, node)| node))))
    }
}

impl Score for ReservationPlugin {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn score(&self, view: View<'_>, spec: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        if let Some(Taking(name)) = value.downcast_ref() {
            // Nodes with pods to take over are scored in trials.
            let score = Taker::of(view, name).map_or(0, |taker| taker.score());
            return out.fill(score);
        }
        let seeker = view.pod().map(|pod| Seeker::of(view, pod, spec));
        let Some(Ok(Some(seeker))) = seeker else { return };
        // The scores of the other nodes with reservations that match come from trials.
        let away = seeker.away();
        for (node, score_of_node) in nodes.iter().zip(out) {
            *score_of_node = 0;
            if away.contains(node) {
                let choice = choose(&seeker, *node, Stand::Outside);
                *score_of_node = choice.taken.map_or(0, |taken| score(taken.entry, &seeker.wanted));
            }
        }
    }

    fn scores_overridden_alone(&self) -> bool {
        true
    }

    fn normalize(&self) -> Normalize {
        Normalize::Proportional
    }

    fn normalize_all(&self, _view: View<'_>, value: &CycleValue, nodes: &[NodeIdx], scores: &mut [i64]) {
        // Shares of a reservation that takes pods over count as they are.
        if value.is::<Taking>() {
            return;
        }
        if let Some(Preferred(Some(first))) = value.downcast_ref()
            && let Some(at) = nodes.iter().position(|node| node == first)
        {
            scores[at] = FIRST;
        }
        let max = scores.iter().copied().max().unwrap_or(0);
        scores.iter_mut().for_each(|score| *score = self.normalize().apply(*score, max));
    }
}
