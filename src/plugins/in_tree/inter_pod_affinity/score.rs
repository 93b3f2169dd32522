//! Score: adds up, per domain, the weights of the pod's preferred terms and of those of placed pods.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_framework::plugin::{CycleValue, MAX_SCORE, PreScore, PreScored, Reads, Score};
use pellucid_model::{NodeIdx, PodSpec};

use super::super::relations::Relations;
use super::InterPodAffinity;
use super::sums::{Sums, for_each_about};
use super::terms::{Kind, Terms, Use};

impl PreScore for InterPodAffinity {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn pre_score(&self, view: View<'_>, spec: &PodSpec, _nodes: &[NodeIdx]) -> PreScored {
        let (Some(relations), Some(terms)) = (view.state::<Relations>(), view.state::<Terms>()) else {
            return PreScored::Skip;
        };
        let (near, far) = (&spec.pod_affinity.preferred, &spec.pod_anti_affinity.preferred);
        if self.args.ignore_preferred_of_existing && near.is_empty() && far.is_empty() {
            return PreScored::Skip;
        }
        let mut sums = Sums::default();
        for (all, sign) in [(near, 1), (far, -1)] {
            for weighted in all {
                let (term, weight) = (&weighted.term, sign * i64::from(weighted.weight));
                let key = sums.key(relations, &term.topology_key);
                for_each_about(view, relations, term, &spec.namespace, |class| {
                    sums.add(key, &class.counts, weight);
                });
            }
        }
        terms.about(view, spec, Use::Scoring, |group| {
            let weight = match group.term.kind {
                Kind::RequireNear => self.args.hard_weight,
                Kind::PreferNear => i64::from(group.term.weight),
                Kind::PreferFar => -i64::from(group.term.weight),
                Kind::RequireFar => return,
            };
            // A required term with weight 0 is ignored.
            if group.term.kind != Kind::RequireNear || weight > 0 {
                let key = sums.key(relations, &group.term.term.topology_key);
                sums.add(key, &group.counts, weight);
            }
        });
        if sums.is_empty() { PreScored::Skip } else { PreScored::Ready(Arc::new(sums)) }
    }
}

impl Score for InterPodAffinity {
    fn reads(&self) -> Reads {
        Reads::Everything
    }

    fn score(&self, _: View<'_>, _: &PodSpec, value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        let Some(sums) = value.downcast_ref::<Sums>() else { return };
        for (node, score) in nodes.iter().zip(out) {
            *score = sums.keys().iter().filter_map(|key| key.on(*node)).sum();
        }
    }

    fn normalize_all(&self, _: View<'_>, _: &CycleValue, _: &[NodeIdx], scores: &mut [i64]) {
        let (Some(least), Some(most)) = (scores.iter().copied().min(), scores.iter().copied().max()) else {
            return;
        };
        let range = (most - least) as f64;
        for score in scores {
            *score =
                if most > least { (MAX_SCORE as f64 * ((*score - least) as f64 / range)) as i64 } else { 0 };
        }
    }
}
