//! What a pod could ask for instead: fewer devices, a smaller part of one, or hints that demand less.

use pellucid_framework::advice::{Change, Exchange, Proposal};
use pellucid_model::{Name, NodeIdx, PodSpec};
use serde_json::Value;

use super::super::DeviceShare;
use super::super::amounts::{Amounts, CORE, RATIO, Resource};
use super::super::device::DeviceType;
use super::super::hints::{ALLOCATE_HINT, JOINT_ALLOCATE, PARTITION_SPEC};
use super::super::node_devices::NodeDevices;
use super::super::request::{PERCENT, Part, Request, WHOLE};
use super::super::row::Row;

/// Fields of a hint that demand something, with what a pod gives up without them.
const DEMANDS: [(&str, &str); 4] = [
    ("selector", "take any of the devices"),
    ("vfSelector", "take no virtual function"),
    ("requiredTopologyScope", "take devices of any topology scope"),
    ("exclusivePolicy", "share devices with pods that want their own"),
];
/// Cost of a hint that demands less.
const LOOSEN: u32 = 35;
/// Cost of a share of a card instead of a whole one, to which what is given up adds up to 40.
const SHARE: u32 = 40;

impl DeviceShare {
    /// Returns the largest smaller requests that one of the nodes has the devices for: fewer whole ones, and less of each.
    pub(super) fn other_requests(
        &self,
        devices: &NodeDevices,
        spec: &PodSpec,
        nodes: &[NodeIdx],
    ) -> Vec<Proposal> {
        let Ok(Some(request)) = Request::of(spec) else { return Vec::new() };
        let rows: Vec<&Row> = nodes.iter().filter_map(|node| devices.row(*node)).collect();
        let takes = |amounts: &[(Name, i64)]| {
            let spec = with_amounts(spec, amounts);
            let Ok(Some(request)) = Request::of(&spec) else { return false };
            rows.iter().any(|row| self.allocate(row, &request, None, None).is_ok())
        };
        let (mut all, mut shares) = (Vec::new(), Vec::new());
        for part in &request.parts {
            let fewer = (1..part.count.min(1024)).rev().map(|n| scaled(spec, part, n as i64));
            let fewer = fewer.into_iter().find(|amounts| takes(amounts));
            let fits = if part.count == 1 { self.largest_of_one(&request, part, &rows) } else { None };
            let less = fits.and_then(|fits| less_of_one(spec, part, &fits));
            shares.extend(fits.and_then(|fits| share_of_one(spec, &fits)).filter(|(share, whole)| {
                takes(&[(share.resource.clone(), share.amount), (whole.clone(), 0)])
            }));
            all.extend(fewer.or(less.filter(|amounts| takes(amounts))));
        }
        let proposal = |amounts| Proposal { change: Change::Request(amounts), text: String::new(), cost: 0 };
        let all = all.into_iter().filter(|amounts| !amounts.is_empty()).map(proposal);
        all.chain(shares.into_iter().map(|(share, _)| proposed(share))).collect()
    }

    /// Returns what is left of the device that has most of what is wanted, up to that.
    fn largest_of_one(&self, request: &Request, part: &Part, rows: &[&Row]) -> Option<Amounts> {
        let terms = super::super::allocator::Terms {
            scoring: &self.args.scoring,
            numa: None,
            is_empty: false,
            prospect: None,
        };
        let mut best: Option<(i64, Amounts)> = None;
        for row in rows {
            let attempt = self.attempt(row, request, &terms);
            for at in attempt.candidates(part) {
                let left = attempt.free(at);
                let named = || part.each.iter().filter(|(_, wanted)| *wanted > 0);
                let of = |(resource, wanted): (Resource, i64)| left.get(resource).min(wanted) * 1000 / wanted;
                let share = named().map(of).min().unwrap_or(0);
                let fits = Amounts::of(named().map(|(r, wanted)| (r, left.get(r).min(wanted))));
                if share > 0 && best.as_ref().is_none_or(|(most, _)| share > *most) {
                    best = Some((share, fits));
                }
            }
        }
        best.map(|(_, fits)| fits)
    }

    /// Returns the pod's hints without one of their demands, where a node has the devices then.
    pub(super) fn looser_hints(
        &self,
        devices: &NodeDevices,
        spec: &PodSpec,
        nodes: &[NodeIdx],
    ) -> Vec<Proposal> {
        let rows: Vec<&Row> = nodes.iter().filter_map(|node| devices.row(*node)).collect();
        let takes = |key: &Name, value: &Name| {
            let spec = PodSpec {
                annotations: spec.annotations.with(key.clone(), value.clone()),
                ..PodSpec::clone(spec)
            };
            let Ok(Some(request)) = Request::of(&spec) else { return false };
            rows.iter().any(|row| self.allocate(row, &request, None, None).is_ok())
        };
        let proposal = |(key, value, text): (&str, Value, String)| {
            let (key, value) = (Name::new(key), Name::new(&value.to_string()));
            takes(&key, &value).then(|| Proposal {
                change: Change::Annotation { key, value },
                text,
                cost: LOOSEN,
            })
        };
        looser(spec).into_iter().filter_map(proposal).collect()
    }
}

/// Returns the request for what is left of a device.
fn less_of_one(spec: &PodSpec, part: &Part, fits: &Amounts) -> Option<Vec<(Name, i64)>> {
    let least = fits.iter().map(|(_, amount)| amount).min().unwrap_or(0);
    let amount = |name: &Name| match Resource::find(name) {
        Some(resource) => fits.get(resource),
        None => least,
    };
    let amounts = of_kind(spec, &part.kind).map(|(name, wanted)| (name.clone(), amount(name).min(wanted)));
    let amounts: Vec<(Name, i64)> = amounts.collect();
    amounts.iter().all(|(_, amount)| *amount > 0).then_some(amounts)
}

/// Returns the share of a card that is left for a pod which wants a whole one by its vendor's resource, and that resource.
fn share_of_one(spec: &PodSpec, fits: &Amounts) -> Option<(Exchange, Name)> {
    let (whole, _) =
        spec.requests.list.scalars.iter().find(|(name, n)| *n == 1 && WHOLE.contains(&name.as_str()))?;
    let amount = fits.get(CORE).min(fits.get(RATIO));
    let share = Exchange { resource: PERCENT.into(), amount, instead_of: whole.clone() };
    (1..100).contains(&amount).then(|| (share, whole.clone()))
}

/// Proposes a share. It costs as much as a request that is cut by the rest of the card.
fn proposed(share: Exchange) -> Proposal {
    let Exchange { resource, amount, instead_of } = &share;
    let text =
        format!("take {amount} % of a card ({resource} {amount}) instead of a whole one ({instead_of} 1)");
    let cost = SHARE + u32::try_from((100 - amount) * 40 / 100).unwrap_or(40);
    Proposal { change: Change::Exchange(share), text, cost }
}

/// Returns the annotations of a pod with one demand less each, and the change in words.
fn looser(spec: &PodSpec) -> Vec<(&'static str, Value, String)> {
    let read = |key: &str| serde_json::from_str::<Value>(spec.annotations.text(key)?).ok();
    let mut all = Vec::new();
    if let Some(Value::Object(hints)) = read(ALLOCATE_HINT) {
        for kind in hints.keys() {
            for (field, text) in DEMANDS.iter().filter(|(field, _)| hints[kind].get(field).is_some()) {
                let mut without = hints.clone();
                if let Some(of) = without[kind].as_object_mut() {
                    of.remove(*field);
                }
                let text = format!("{text} (no {field} of {kind} in its device-allocate-hint)");
                all.push((ALLOCATE_HINT, Value::Object(without), text));
            }
        }
    }
    if let Some(Value::Object(mut joint)) = read(JOINT_ALLOCATE)
        && joint.remove("requiredScope").is_some()
    {
        let text = "take devices on other PCIe switches too (no requiredScope in its device-joint-allocate)";
        all.push((JOINT_ALLOCATE, Value::Object(joint), text.to_owned()));
    }
    if let Some(Value::Object(mut partition)) = read(PARTITION_SPEC)
        && partition.remove("ringBusBandwidth").is_some()
    {
        let text = "take a partition of any bandwidth (no ringBusBandwidth in its gpu-partition-spec)";
        all.push((PARTITION_SPEC, Value::Object(partition), text.to_owned()));
    }
    all
}

/// Iterates over what a pod requests of one type of devices.
fn of_kind<'a>(spec: &'a PodSpec, kind: &'a DeviceType) -> impl Iterator<Item = (&'a Name, i64)> {
    let requested = spec.requests.list.scalars.iter().filter(|(_, amount)| *amount > 0);
    requested
        .filter(move |(name, _)| Request::kind_of(name).as_ref() == Some(kind))
        .map(|(name, n)| (name, *n))
}

/// Returns the request for fewer devices of the same size.
fn scaled(spec: &PodSpec, part: &Part, n: i64) -> Vec<(Name, i64)> {
    let count = i64::try_from(part.count).unwrap_or(i64::MAX).max(1);
    of_kind(spec, &part.kind).map(|(name, amount)| (name.clone(), amount / count * n)).collect()
}

fn with_amounts(spec: &PodSpec, amounts: &[(Name, i64)]) -> PodSpec {
    let mut spec = spec.clone();
    let of = |name: &Name, amount: i64| {
        amounts.iter().find(|(known, _)| known == name).map_or(amount, |(_, amount)| *amount)
    };
    let list = &mut spec.requests.list;
    let new = amounts.iter().filter(|(name, _)| list.scalars.iter().all(|(known, _)| known != name)).cloned();
    let known = list.scalars.iter().map(|(name, amount)| (name.clone(), of(name, *amount)));
    list.scalars = known.chain(new).collect();
    spec
}
