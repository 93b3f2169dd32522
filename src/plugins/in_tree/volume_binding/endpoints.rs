//! The endpoints: what is held for which pod, and all volumes.

use pellucid_api::rest::volumes::{HeldClaim, VolumeBindingState, VolumeBindingVolumes, VolumeView};
use pellucid_cluster::PodRecord;
use pellucid_framework::View;
use pellucid_framework::endpoint::{ReadContext, ReadError};
use pellucid_model::storage::PersistentVolume;
use pellucid_model::{Object, ObjectKind};
use serde_json::{Value, json};

use super::pod_claims::is_fully_bound;
use super::progress::{self, Progress};
use super::{Assumed, Held, NAME};
use pellucid_plugin_helper::listing::{MAX_ROWS, cut};

fn rows_of(view: View<'_>, record: &PodRecord) -> Vec<HeldClaim> {
    let ours = record.holds.iter().filter(|r| r.plugin == NAME);
    let held = ours.filter_map(|r| r.what.downcast_ref::<Held>());
    let node = record.node.and_then(|n| view.cluster().node(n)).map(|node| &**node);
    let rows = held.flat_map(|held| {
        progress::of(view, node, held).into_iter().map(move |(claim, progress)| {
            let volume = held.bindings.iter().find(|b| b.claim == claim).map(|b| b.volume.to_string());
            HeldClaim {
                pod: record.pod.key.to_string(),
                claim: claim.to_string(),
                node_name: held.node.to_string(),
                volume,
                waits_for: match progress {
                    Progress::Write(_) => "write".to_owned(),
                    Progress::Wait => "bind".to_owned(),
                    Progress::Done => "done".to_owned(),
                    Progress::Failed(why) => format!("failed: {why}"),
                },
            }
        })
    });
    rows.collect()
}

fn volumes<'a>(view: View<'a>) -> impl Iterator<Item = &'a PersistentVolume> {
    let objects = view.cluster().objects().iter(ObjectKind::PersistentVolume);
    objects.filter_map(|o| if let Object::PersistentVolume(volume) = &**o { Some(volume) } else { None })
}

pub(super) fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut held: Vec<_> = cx.view.cluster().pods().flat_map(|(_, r)| rows_of(cx.view, r)).collect();
    held.sort();
    let claims = cx.view.cluster().objects().iter(ObjectKind::PersistentVolumeClaim);
    let is_unbound = |o: &&_| matches!(&**o, Object::PersistentVolumeClaim(claim) if !is_fully_bound(claim));
    let unbound_claims = claims.map(|o| &**o).filter(is_unbound).count();
    let assumed = cx.view.state::<Assumed>();
    let is_held = |v: &PersistentVolume| assumed.is_some_and(|a| a.claim_of(&v.name).is_some());
    let is_free = |v: &&PersistentVolume| v.is_free && v.claim.is_none() && !v.deleting && !is_held(v);
    let free_volumes = volumes(cx.view).filter(is_free).count();
    let (held, truncated) = cut(held, MAX_ROWS);
    Ok(json!(VolumeBindingState { held, unbound_claims, free_volumes, truncated }))
}

pub(super) fn read_volumes(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let assumed = cx.view.state::<Assumed>();
    let row = |volume: &PersistentVolume| {
        let bound = volume.claim.as_ref().map(|c| format!("{}/{}", c.namespace, c.name));
        let held = assumed.and_then(|a| a.claim_of(&volume.name));
        let held = held.map(|((namespace, name), _)| format!("{namespace}/{name}"));
        VolumeView {
            volume: volume.name.to_string(),
            storage_class: volume.class.to_string(),
            capacity_bytes: volume.capacity,
            free: volume.is_free && !volume.deleting && bound.is_none() && held.is_none(),
            assumed: bound.is_none() && held.is_some(),
            claim: bound.or(held),
            limited_to_nodes: volume.node_affinity.is_some(),
        }
    };
    let mut rows: Vec<_> = volumes(cx.view).map(row).collect();
    rows.sort_by(|a, b| a.volume.cmp(&b.volume));
    let (volumes, truncated) = cut(rows, MAX_ROWS);
    Ok(json!(VolumeBindingVolumes { volumes, truncated }))
}
