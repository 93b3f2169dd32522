//! What of a node's devices no pending pod can use, device by device.

use std::collections::BTreeMap;

use pellucid_framework::View;
use pellucid_framework::advice::IdlePart;
use pellucid_model::{NodeIdx, PodSpec};

use super::super::DeviceShare;
use super::super::allocator::{Terms, allocate};
use super::super::amounts::Amounts;
use super::super::explain::lacking;
use super::super::node_devices::NodeDevices;
use super::super::reasons;
use super::super::request::Request;

impl DeviceShare {
    /// Returns the devices of a node with something free that none of the pods which ask for its type can use.
    pub(super) fn idle_devices(&self, view: View<'_>, node: NodeIdx, pending: &[&PodSpec]) -> Vec<IdlePart> {
        let Some(row) = NodeDevices::row_in(view, node) else {
            return Vec::new();
        };
        // Equal requests are tried once.
        let mut requests: Vec<(Request, usize)> = Vec::new();
        for request in pending.iter().filter_map(|spec| Request::of(spec).ok().flatten()) {
            match requests.iter_mut().find(|(known, _)| *known == request) {
                Some((_, pods)) => *pods += 1,
                None => requests.push((request, 1)),
            }
        }
        let terms = Terms { scoring: &self.args.scoring, numa: None, is_empty: false, prospect: None };
        let lacks: Vec<_> =
            requests.iter().map(|(request, _)| allocate(row, request, &terms).err()).collect();
        let mut all = Vec::new();
        for (at, card) in row.cards().enumerate().filter(|(_, card)| card.healthy) {
            let left = card.free();
            let (mut pods, mut is_used, mut blocked) = (0, false, BTreeMap::<String, usize>::new());
            for ((request, n), lack) in requests.iter().zip(&lacks) {
                let Some(part) = request.parts.iter().find(|part| part.kind == card.kind) else { continue };
                pods += n;
                let why = lacking(&self.attempt(row, request, &terms), part, at as u16);
                match (why, lack) {
                    (None, None) => is_used = true,
                    (Some(why), _) => *blocked.entry(why.code().to_owned()).or_default() += n,
                    // The device would do, and there are too few like it.
                    (None, Some(lack)) => {
                        let code = reasons::reason(*lack).code.as_str().to_owned();
                        *blocked.entry(code).or_default() += n;
                    }
                }
            }
            let most = blocked.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
            let Some((blocked_by, _)) = most.filter(|_| !is_used) else { continue };
            let part = format!("{} {}", card.kind, card.minor);
            let idle = |(resource, amount)| IdlePart {
                part: part.clone(),
                resource,
                amount,
                blocked_by: blocked_by.clone(),
                pods,
            };
            all.extend(first_free(&left).map(idle));
        }
        all
    }
}

/// Returns the first resource of a device of which something is free, and how much, if something is free of all that it has.
fn first_free(left: &Amounts) -> Option<(pellucid_model::Name, i64)> {
    if left.iter().any(|(_, amount)| amount == 0) {
        return None;
    }
    left.iter().next().map(|(resource, amount)| (resource.name().into(), amount))
}
