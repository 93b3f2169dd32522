//! Random clusters, as the objects of an API server: what users have, with the mistakes that users make.

mod gangs;
mod koordinator;
mod load;
mod nodes;
mod pods;
mod queues;
mod reservations;
mod volumes;

use serde_json::{Value, json};

use crate::objects::{Objects, Plugins};
use crate::random::Rng;

pub(crate) use koordinator::{card, topology};
pub(crate) use load::report_anew;
pub(crate) use pods::pod;
pub(crate) use volumes::DRIVER;

/// What a cluster has, drawn once per seed.
pub(crate) struct Theme {
    /// Most pods without a node.
    pods: usize,
    has_gangs: bool,
    has_volumes: bool,
    /// How often a pod has each of the rarer features, in per cent.
    rare: usize,
    priorities: Vec<i64>,
}

/// Makes the objects of a cluster. Everything in it follows from the seed.
pub(crate) fn cluster(seed: u64) -> Objects {
    let rng = &mut Rng::new(seed, 1);
    let theme = Theme {
        pods: rng.between(14, 30),
        has_gangs: rng.chance(55),
        has_volumes: rng.chance(40),
        rare: rng.pick(&[4, 8, 8, 14]),
        priorities: if rng.chance(60) { vec![0] } else { vec![0, 0, 0, 10, 100, -5] },
    };
    let mut objects = Objects::default();
    for namespace in ["default", "team"] {
        let labels = json!({"kubernetes.io/metadata.name": namespace});
        objects.put(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}
        }));
    }
    let n = if rng.chance(70) { rng.between(3, 6) } else { rng.between(7, 12) };
    nodes::add(rng, &mut objects, n);
    nodes::add_fixtures(rng, &mut objects);
    let claims = if theme.has_volumes { volumes::add(rng, &mut objects) } else { Vec::new() };
    pods::add_placed(rng, &mut objects, &theme);
    pods::add_pending(rng, &mut objects, &theme, &claims);
    if theme.has_gangs {
        gangs::add(rng, &mut objects, &theme);
    }
    objects
}

/// Makes the objects of a cluster on which Koordinator's plugins decide too.
pub(crate) fn koordinator_cluster(seed: u64) -> Objects {
    let mut objects = cluster(seed);
    objects.plugins =
        if seed.is_multiple_of(3) { Plugins::KoordinatorEvicting } else { Plugins::Koordinator };
    koordinator::add(&mut Rng::new(seed, 3), &mut objects);
    load::add(&mut Rng::new(seed, 5), &mut objects);
    reservations::add(&mut Rng::new(seed, 6), &mut objects);
    queues::add(&mut Rng::new(seed, 7), &mut objects);
    objects
}

/// Makes the owner reference of a controller.
fn owned_by(kind: &str, name: &str) -> Value {
    let version = match kind {
        "Job" => "batch/v1",
        "Node" => "v1",
        _ => "apps/v1",
    };
    json!([{"apiVersion": version, "kind": kind, "name": name, "uid": format!("uid-{kind}-{name}"), "controller": true}])
}
