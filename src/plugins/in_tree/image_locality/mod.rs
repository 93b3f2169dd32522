//! ImageLocality: prefers nodes that already have the pod's images. Large images count more, and so do images that many
//! nodes have, so that pods do not pile up on the first node with an image.

use pellucid_api::rest::plugins::{ImageLocalityImages, ImageLocalityState, ImageUse};
use pellucid_cluster::DerivedState;
use pellucid_framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid_framework::plugin::{CycleValue, MAX_SCORE, Plugin, Reads, Score};
use pellucid_framework::{Registration, View, points};
use pellucid_model::{NodeIdx, PodSpec};
use serde_json::{Value, json};
use smallvec::SmallVec;

use pellucid_plugin_helper::listing::{MAX_ROWS, cut};

mod images;
#[cfg(test)]
mod tests;

pub use images::Images;

/// Plugin name in the scheduler configuration.
pub const NAME: &str = "ImageLocality";

const MIB: i64 = 1 << 20;
/// Images on a node that add up to less than this count for nothing.
const LOW: i64 = 23 * MIB;
/// The score is capped at this size times the number of containers.
const HIGH: i64 = 1000 * MIB;
/// Maximum number of images listed by `state`.
const MAX_SPREAD: usize = 20;

/// Returns the plugin's entry in [`crate::registry`].
pub fn registration() -> Registration {
    let (state, images) =
        ("The images that most nodes have", "The images on nodes, with size and number of nodes");
    Registration::without_args(NAME, "Prefers nodes that have the pod's images", || ImageLocality)
        .with_weight(1)
        .with_endpoints([
            Endpoint::of::<ImageLocalityState>("state", state, read_state).with_rows("mostSpread"),
            Endpoint::of::<ImageLocalityImages>("images", images, read_images).with_rows("images"),
        ])
}

struct ImageLocality;

impl Plugin for ImageLocality {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { score }
    fn derived_states(&self) -> Vec<Box<dyn DerivedState>> {
        vec![Box::new(Images::default())]
    }
}

/// Returns what an image adds to a node that has it: its size times the share of nodes that have it.
fn scaled(size: i64, nodes: usize, total: usize) -> i64 {
    let spread = nodes as f64 / total as f64;
    (size as f64 * spread) as i64
}

/// Returns the score of a node with images of `sum` bytes for a pod with `n_containers` containers.
fn of_sum(sum: i64, n_containers: i64) -> i64 {
    let high = HIGH * n_containers;
    let within = if sum < LOW { LOW } else { sum.min(high) };
    MAX_SCORE * (within - LOW) / (high - LOW)
}

impl Score for ImageLocality {
    fn reads(&self) -> Reads {
        Reads::NodeSet
    }

    fn score(&self, view: View<'_>, spec: &PodSpec, _value: &CycleValue, nodes: &[NodeIdx], out: &mut [i64]) {
        out.fill(0);
        let Some(images) = view.state::<Images>() else { return };
        let total = view.nodes().len();
        let known = spec.images.iter().filter_map(|name| images.get(name));
        let wanted: SmallVec<[_; 8]> =
            known.map(|image| (image, scaled(image.size(), image.n_nodes(), total))).collect();
        if wanted.is_empty() {
            return;
        }
        for (node, score) in nodes.iter().zip(out) {
            let there = wanted.iter().filter(|(image, _)| image.is_on(*node));
            let sum = there.fold(0i64, |sum, (_, adds)| sum.saturating_add(*adds));
            *score = if sum <= LOW { 0 } else { of_sum(sum, i64::from(spec.n_containers)) };
        }
    }
}

fn all_images(view: View<'_>) -> Vec<ImageUse> {
    let total = view.nodes().len();
    let mut rows: Vec<ImageUse> = view
        .state::<Images>()
        .into_iter()
        .flat_map(Images::iter)
        .map(|(name, image)| ImageUse {
            image: name.to_string(),
            size_bytes: image.size(),
            nodes: image.n_nodes(),
            scaled_bytes: scaled(image.size(), image.n_nodes(), total),
        })
        .collect();
    rows.sort_by(|a, b| a.image.cmp(&b.image));
    rows
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut rows = all_images(cx.view);
    let total_images = rows.len();
    rows.sort_by_key(|row| std::cmp::Reverse(row.nodes));
    let (most_spread, truncated) = cut(rows, MAX_SPREAD);
    let total_nodes = cx.view.nodes().len();
    Ok(json!(ImageLocalityState { total_images, total_nodes, most_spread, truncated }))
}

fn read_images(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let (images, truncated) = cut(all_images(cx.view), MAX_ROWS);
    Ok(json!(ImageLocalityImages { images, truncated }))
}
