//! Tests scores by size and spread, and which node's size applies.

use pellucid_model::node::NodeImage;
use pellucid_model::{Name, Node};

use super::*;
use crate::testing::{TestCluster, cluster_of, names, node, raw_scores};

fn with_images(name: &str, created: i64, images: &[(&str, i64)]) -> Node {
    let image = |(name, mib): &(&str, i64)| NodeImage { names: names(&[name]), size: mib * MIB };
    Node { images: images.iter().map(image).collect(), created, ..node(name) }
}

fn using(images: &[&str], n_containers: u32) -> PodSpec {
    PodSpec { images: names(images), n_containers, ..PodSpec::default() }
}

fn image_of(cluster: &TestCluster, name: &str) -> Option<(i64, usize)> {
    let images = cluster.view().state::<Images>().expect("it is registered");
    images.get(&Name::new(name)).map(|image| (image.size() / MIB, image.n_nodes()))
}

#[test]
fn sums_are_clamped_and_scaled() {
    for (mib, n_containers, want) in
        [(0, 1, 0), (23, 1, 0), (24, 1, 0), (511, 1, 49), (1000, 1, 100), (9000, 1, 100), (1000, 2, 49)]
    {
        assert_eq!(of_sum(mib * MIB, n_containers), want, "{mib} {n_containers}");
    }
}

#[test]
fn big_and_widely_spread_images_attract() {
    let cluster = cluster_of([
        with_images("both", 1, &[("a", 1000), ("b", 500)]),
        with_images("one", 2, &[("a", 1000)]),
        with_images("none", 3, &[]),
        with_images("other", 4, &[("c", 1000)]),
    ]);
    // a is on half of the nodes: 500 MiB; b on a quarter: 125 MiB.
    assert_eq!(raw_scores(&ImageLocality, &cluster, &using(&["a", "b"], 1)), Some(vec![61, 48, 0, 0]));
    // An image that two containers use counts twice, but so does the scale.
    assert_eq!(raw_scores(&ImageLocality, &cluster, &using(&["a", "a"], 2)), Some(vec![49, 49, 0, 0]));
    assert_eq!(raw_scores(&ImageLocality, &cluster, &using(&["unknown"], 1)), Some(vec![0; 4]));
}

#[test]
fn the_size_on_the_oldest_node_counts() {
    let mut cluster = cluster_of([
        with_images("young", 20, &[("a", 200), ("a", 7)]),
        with_images("old", 10, &[("a", 100)]),
        with_images("same-age", 20, &[("a", 300)]),
    ]);
    assert_eq!(image_of(&cluster, "a"), Some((100, 3)));
    cluster.apply(with_images("old", 10, &[("b", 50)]));
    assert_eq!(image_of(&cluster, "a"), Some((200, 2)));
    cluster.cluster.delete_node(&"young".into(), &mut Vec::new());
    assert_eq!((image_of(&cluster, "a"), image_of(&cluster, "b")), (Some((300, 1)), Some((50, 1))));
    cluster.cluster.delete_node(&"same-age".into(), &mut Vec::new());
    assert_eq!(image_of(&cluster, "a"), None);
}
