//! What explanations say of refusals: the numbers behind them, what each node lacks, and how many nodes have enough.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pellucid_api::rest::requirements::RequirementDetail;
use pellucid_framework::plugin::Measure;
use pellucid_framework::{Cause, View};
use pellucid_model::{Name, NodeIdx, PodSpec};

use super::allocator::{Attempt, Lack, Terms, allocate, name};
use super::hints::Exclusive;
use super::node_devices::NodeDevices;
use super::reasons;
use super::request::{Part, Request};
use super::row::{CardList, Row};
use super::{DeviceShare, NAME};
use pellucid_plugin_helper::describing::detail;

/// Maximum number of scopes that a sentence names.
const MAX_SCOPES: usize = 4;

impl DeviceShare {
    pub(super) fn attempt<'a>(
        &'a self,
        row: &'a Row,
        request: &'a Request,
        terms: &'a Terms<'a>,
    ) -> Attempt<'a> {
        Attempt { row, request, terms }
    }

    /// Returns how many devices of a node have what one device's part of the request is, and how many are wanted there.
    pub(super) fn fitting(
        &self,
        row: &Row,
        request: &Request,
        part: &Part,
        is_empty: bool,
    ) -> (usize, usize) {
        let plain = request.plain().filter(|_| !is_empty);
        if let Some((plain, left)) = plain.and_then(|plain| Some((plain, row.left_for(plain)?))) {
            return (left.iter().filter(|left| **left >= plain.percent).count(), part.count.max(1));
        }
        let terms = Terms { scoring: &self.args.scoring, numa: None, is_empty, prospect: None };
        let attempt = self.attempt(row, request, &terms);
        let candidates: CardList = attempt.candidates(part);
        let does = |at: &&u16| attempt.fits(part, **at) && attempt.has_function(part, **at);
        (candidates.iter().filter(does).count(), attempt.count(part).max(1))
    }

    /// Returns the number of devices that are wanted and the most that a node has, for causes that are about numbers.
    pub(super) fn measures(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        cause: &Cause,
        nodes: &[NodeIdx],
    ) -> Vec<Measure> {
        let (Ok(Some(request)), Some(devices)) = (Request::of(spec), view.state::<NodeDevices>()) else {
            return Vec::new();
        };
        let is_about = |part: &&Part| {
            let kind = name(&part.kind);
            let gpus = [Lack::Gpus, Lack::ScopedGpus, Lack::Partition].map(reasons::reason);
            cause.reasons.iter().any(|reason| {
                *reason == reasons::reason(Lack::Devices(kind)) || (kind == "gpu" && gpus.contains(reason))
            })
        };
        let measure = |part: &Part| {
            let count = |node: &NodeIdx| {
                let (fits, wanted) = self.fitting(devices.row(*node)?, &request, part, false);
                Some((fits, wanted, *node))
            };
            // The first of equal nodes, which are sorted by name.
            let (fits, wanted, best_node) =
                nodes.iter().filter_map(count).min_by_key(|(fits, ..)| Reverse(*fits))?;
            let resource = Name::new(&format!("{} devices with {} free", name(&part.kind), share(part)));
            Some(Measure { resource, requested: wanted as i64, available: fits as i64, best_node })
        };
        request.parts.iter().filter(is_about).filter_map(measure).collect()
    }

    /// Returns why a node refuses a pod for a cause, if it does.
    pub(super) fn words(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        cause: &Cause,
        node: NodeIdx,
    ) -> Option<String> {
        let row = view.state::<NodeDevices>()?.row(node)?;
        let request = Request::of(spec).ok()??;
        let terms = Terms { scoring: &self.args.scoring, numa: None, is_empty: false, prospect: None };
        let lack = allocate(row, &request, &terms).err()?;
        if !cause.reasons.contains(&reasons::reason(lack)) {
            return None;
        }
        words(&self.attempt(row, &request, &terms), lack)
    }

    /// Describes each type of devices of which some refusing node has too few.
    pub(super) fn describe(
        &self,
        view: View<'_>,
        spec: &PodSpec,
        refused: &[NodeIdx],
    ) -> Vec<RequirementDetail> {
        let (Ok(Some(request)), Some(devices)) = (Request::of(spec), view.state::<NodeDevices>()) else {
            return Vec::new();
        };
        let has = |part: &Part, node: NodeIdx, is_empty| {
            devices.row(node).map(|row| self.fitting(row, &request, part, is_empty))
        };
        let is_lacking = |part: &&Part| {
            refused.iter().any(|node| has(part, *node, false).is_some_and(|(fits, wanted)| fits < wanted))
        };
        let describe = |part: &Part| {
            let code = reasons::reason(Lack::Devices(name(&part.kind))).code;
            let (mut nodes, mut empty, mut best) = (0, 0, None);
            for node in view.cluster().by_name() {
                let Some((fits, wanted)) = has(part, *node, false) else { continue };
                nodes += usize::from(fits >= wanted);
                empty += usize::from(has(part, *node, true).is_some_and(|(fits, wanted)| fits >= wanted));
                if best.is_none_or(|(most, _)| fits > most) {
                    best = Some((fits, *node));
                }
            }
            let what = format!("{} with {} free", counted(part.count, name(&part.kind)), share(part));
            let of = detail(view, NAME, code, what.clone());
            let most = best.map_or_else(String::new, |(most, node)| {
                format!(" (the most is {most} on {})", view.name(node))
            });
            let total = of.total_nodes;
            let text =
                format!("{what}: {nodes} of {total} nodes have them{most}, {empty} would without any pods");
            RequirementDetail { text, nodes, ..of }
        };
        request.parts.iter().filter(is_lacking).map(describe).collect()
    }
}

/// Returns what a node lacks for a request, with its numbers.
pub(super) fn words(attempt: &Attempt<'_>, lack: Lack) -> Option<String> {
    let (row, request) = (attempt.row, attempt.request);
    let part_of = |kind: &str| request.parts.iter().find(|part| name(&part.kind) == kind);
    match lack {
        Lack::Devices(kind) => Some(with_switches(attempt, cards(attempt, part_of(kind)?))),
        Lack::Gpus => Some(with_switches(attempt, cards(attempt, part_of("gpu")?))),
        Lack::ScopedGpus => {
            let part = part_of("gpu")?;
            let text = format!("{}; by PCIe switch: {}", cards(attempt, part), by_switch(attempt, part));
            Some(with_switches(attempt, text))
        }
        Lack::Joint => Some(switches(attempt)),
        Lack::Functions(kind) => {
            let wanted = counted(part_of(kind)?.count, kind);
            Some(format!("{wanted} with a virtual function wanted, and no {kind} device of the node has any"))
        }
        Lack::Partition => Some(partitions(attempt, part_of("gpu")?)),
        Lack::PartitionSize => {
            let mut sizes: Vec<String> =
                row.partitions().into_iter().flatten().map(|entry| entry.size.to_string()).collect();
            sizes.dedup();
            Some(format!(
                "{} GPUs are requested, and there are partitions of {}",
                part_of("gpu")?.count,
                sizes.join(", ")
            ))
        }
        Lack::Isolation | Lack::PartitionTable | Lack::Topology | Lack::SharedScope => None,
    }
}

/// Returns a number of devices, for people.
pub(super) fn counted(n: usize, kind: &str) -> String {
    if n == 1 { format!("1 {kind} device") } else { format!("{n} {kind} devices, each") }
}

/// Returns one device's part of a request, for people: `gpu-core 50 and gpu-memory 4Gi`.
pub(super) fn share(part: &Part) -> String {
    let named = part
        .each
        .iter()
        .map(|(resource, amount)| format!("{} {}", short(resource.name()), resource.format(amount)));
    named.collect::<Vec<_>>().join(" and ")
}

/// Returns the name of a resource without its prefix.
pub(super) fn short(resource: &str) -> &str {
    resource.rsplit('/').next().unwrap_or(resource)
}

/// Why a device does not do for one device's part of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unfit {
    /// Only an allocation names it.
    Gone,
    Unhealthy,
    /// The pod's selector leaves it out.
    NotSelected,
    /// Too little of this resource is free.
    Short(&'static str),
    /// None of the virtual functions that the pod's selector selects is free.
    NoFunction,
    /// A pod does not share it.
    Kept,
}

impl Unfit {
    /// Returns what is lacking, as one word.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Unhealthy => "health",
            Self::NotSelected => "selection",
            Self::Short(resource) => short(resource),
            Self::NoFunction => "virtual-function",
            Self::Kept => "exclusive",
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Gone => "no longer there".to_owned(),
            Self::Unhealthy => "not healthy".to_owned(),
            Self::NotSelected => "not selected".to_owned(),
            Self::Short(resource) => format!("short of {}", short(resource)),
            Self::NoFunction => "without a free virtual function".to_owned(),
            Self::Kept => "kept by a pod of its own".to_owned(),
        }
    }
}

/// Returns why a device does not do, if it does not.
pub(super) fn lacking(attempt: &Attempt<'_>, part: &Part, at: u16) -> Option<Unfit> {
    let card = attempt.card(at);
    let info = attempt.row.info(&card);
    let selects = |labels| part.hint.selector.as_ref().is_none_or(|selector| selector.matches(labels));
    if info.is_none() {
        return Some(Unfit::Gone);
    }
    if !card.healthy {
        return Some(Unfit::Unhealthy);
    }
    if !info.is_some_and(|info| selects(&info.labels)) {
        return Some(Unfit::NotSelected);
    }
    let free = attempt.free(at);
    let short_of = part.each.iter().find(|(resource, amount)| *amount > free.get(*resource));
    if let Some((resource, _)) = short_of {
        return Some(Unfit::Short(resource.name()));
    }
    if !attempt.has_function(part, at) {
        return Some(Unfit::NoFunction);
    }
    let is_kept = || [Exclusive::Device, Exclusive::Pcie].iter().any(|policy| card.exclusive(*policy) > 0);
    (part.hint.exclusive.is_some() && is_kept()).then_some(Unfit::Kept)
}

/// Returns how many devices would do, and what the others lack.
fn cards(attempt: &Attempt<'_>, part: &Part) -> String {
    let range = attempt.row.of(&part.kind);
    let (total, mut able) = (range.len(), 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for at in range {
        match lacking(attempt, part, at as u16) {
            None => able += 1,
            Some(reason) => *reasons.entry(reason.words()).or_default() += 1,
        }
    }
    let kind = name(&part.kind);
    let others: Vec<String> = reasons.into_iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    let others = if others.is_empty() { String::new() } else { format!(": {}", others.join(", ")) };
    let wanted = counted(attempt.count(part), kind);
    format!("{wanted} with {} free wanted; {able} of {total} do{others}", share(part))
}

/// Returns how many devices would do by PCIe switch.
fn by_switch(attempt: &Attempt<'_>, part: &Part) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for at in attempt.row.of(&part.kind) {
        let does = lacking(attempt, part, at as u16).is_none();
        *counts.entry(switch_of(attempt, at as u16)).or_default() += usize::from(does);
    }
    let more = counts.len() > MAX_SCOPES;
    let mut all: Vec<(String, usize)> = counts.into_iter().collect();
    all.sort_by_key(|(switch, n)| (Reverse(*n), switch.clone()));
    let all = all.iter().take(MAX_SCOPES).map(|(switch, n)| format!("{n} on {switch}"));
    format!("{}{}", all.collect::<Vec<_>>().join(", "), if more { ", …" } else { "" })
}

/// Adds how the devices of joint types lie on the switches.
fn with_switches(attempt: &Attempt<'_>, text: String) -> String {
    match &attempt.request.hints.joint {
        Some(_) if attempt.request.parts.len() > 1 => format!("{text}; {}", switches(attempt)),
        _ => text,
    }
}

/// Returns for each PCIe switch how many devices of each type would do, those with the most first.
fn switches(attempt: &Attempt<'_>) -> String {
    let parts = &attempt.request.parts;
    let mut counts: BTreeMap<String, Vec<(usize, usize)>> = BTreeMap::new();
    for (n, part) in parts.iter().enumerate() {
        for at in attempt.row.of(&part.kind) {
            let (able, all) = &mut counts
                .entry(switch_of(attempt, at as u16))
                .or_insert_with(|| vec![(0, 0); parts.len()])[n];
            *able += usize::from(lacking(attempt, part, at as u16).is_none());
            *all += 1;
        }
    }
    let mut listed: Vec<(String, Vec<(usize, usize)>)> = counts.into_iter().collect();
    let able = |of: &[(usize, usize)]| of.iter().map(|(able, _)| *able).sum::<usize>();
    listed.sort_by_key(|(switch, of)| (Reverse(able(of)), switch.clone()));
    let more = listed.len() > MAX_SCOPES;
    let one = |(switch, of): &(String, Vec<(usize, usize)>)| {
        let of = parts.iter().zip(of).map(|(part, (able, all))| match all {
            0 => format!("no {}", name(&part.kind)),
            _ => format!("{able} of {all} {}", name(&part.kind)),
        });
        format!("{switch} {}", of.collect::<Vec<_>>().join(" and "))
    };
    let all = listed.iter().take(MAX_SCOPES).map(one);
    format!("free by PCIe switch: {}{}", all.collect::<Vec<_>>().join("; "), if more { "; …" } else { "" })
}

/// Returns the id of a device's PCIe switch.
fn switch_of(attempt: &Attempt<'_>, at: u16) -> String {
    let info = attempt.row.info(&attempt.card(at));
    info.and_then(|info| info.topology.as_ref()).map_or("none", |topology| &*topology.pcie).to_owned()
}

/// Returns what the entries of the partition table lack.
fn partitions(attempt: &Attempt<'_>, part: &Part) -> String {
    let of_size = || attempt.row.partitions().into_iter().flatten().filter(|entry| entry.size == part.count);
    let least = of_size().map(|entry| entry.score).min();
    let spec = attempt.request.hints.partition;
    let (mut total, mut worse, mut slow, mut missing, mut busy) = (0, 0, 0, 0, 0);
    for entry in of_size() {
        total += 1;
        let gpus = attempt.row.gpus().enumerate();
        let mut own = gpus.filter(|(at, _)| *at < 64 && entry.cards >> at & 1 == 1).map(|(_, card)| card);
        match entry.is_there {
            _ if spec.is_some_and(|spec| spec.is_restricted && Some(entry.score) != least) => worse += 1,
            _ if spec.is_some_and(|spec| entry.bandwidth < spec.bandwidth) => slow += 1,
            false => missing += 1,
            true if own.any(|card| card.taken.pods > 0) => busy += 1,
            true => {}
        }
    }
    let rest = total - worse - slow - missing - busy;
    let all = [
        (busy, "with a GPU in use"),
        (worse, "not of the least allocation score, which Restricted demands"),
        (slow, "with too little bandwidth"),
        (missing, "with a GPU that is not there"),
        (rest, "with a GPU that is not healthy, not selected or too small"),
    ];
    let all = all.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    format!("of {total} partitions of {} GPUs: {}", part.count, all.collect::<Vec<_>>().join(", "))
}
