//! Where a pod stands with devices: on how many nodes it finds them, on which most of them, what each node lacks, and how
//! much of the cluster's GPUs is in parts of cards.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pellucid_api::rest::device_share::{DevicesOnNode, PodDevices, RequestedDevices, WantedOnNode};
use pellucid_framework::View;
use pellucid_model::{NodeIdx, Pod, PodSpec};

use super::super::DeviceShare;
use super::super::allocator::{Lack, Terms, allocate, name};
use super::super::device::DeviceType;
use super::super::explain::{counted, lacking, share, words};
use super::super::fragmentation::{self, free};
use super::super::node_devices::NodeDevices;
use super::super::reasons;
use super::super::request::{Part, Request};
use super::super::row::Row;
use pellucid_plugin_helper::listing::MAX_ROWS;

/// How a type that a pod requests stands on all nodes.
struct PartStanding<'a> {
    part: &'a Part,
    /// Nodes with as many devices as are wanted, each with enough free.
    enough: usize,
    /// Nodes that would have them without any pods.
    empty: usize,
    /// The node with the most such devices, and how many.
    best: Option<(NodeIdx, usize)>,
}

impl DeviceShare {
    /// Iterates over the nodes with a Device, by name.
    fn rows<'a>(view: View<'a>) -> impl Iterator<Item = (NodeIdx, &'a Row)> + use<'a> {
        let devices = view.state::<NodeDevices>();
        let nodes = view.cluster().by_name().iter();
        nodes.filter_map(move |node| Some((*node, devices?.row(*node)?)))
    }

    fn part_standing<'a>(
        &self,
        view: View<'_>,
        request: &'a Request,
        part: &'a Part,
    ) -> (PartStanding<'a>, usize) {
        let (mut made, mut total) = (PartStanding { part, enough: 0, empty: 0, best: None }, 0);
        for (node, row) in Self::rows(view) {
            let (fits, wanted) = self.fitting(row, request, part, false);
            total += 1;
            made.enough += usize::from(fits >= wanted);
            let (all, wanted) = self.fitting(row, request, part, true);
            made.empty += usize::from(all >= wanted);
            if made.best.is_none_or(|(_, most)| fits > most) {
                made.best = Some((node, fits));
            }
        }
        (made, total)
    }

    /// Says on how many nodes a pod finds its devices, and how much of the GPUs is in parts; `None` for pods that no node
    /// with a Device refuses for its devices.
    pub(super) fn standing_sentence(&self, view: View<'_>, spec: &PodSpec) -> Option<String> {
        let request = Request::of(spec).ok()??;
        let is_refused = |(_, row): (NodeIdx, &Row)| self.allocate(row, &request, None, None).is_err();
        if !Self::rows(view).any(is_refused) {
            return None;
        }
        let (mut texts, mut least) = (Vec::new(), usize::MAX);
        for part in &request.parts {
            let (standing, total) = self.part_standing(view, &request, part);
            least = least.min(standing.enough);
            texts.push(of_part(view, &standing, total));
            if part.kind == DeviceType::Gpu {
                texts.extend(fragments(view, part));
            }
        }
        // Each device alone may do, and not all of them together, or not as the pod's hints demand.
        let takes =
            Self::rows(view).filter(|(_, row)| self.allocate(row, &request, None, None).is_ok()).count();
        if takes < least {
            let has = if takes == 0 { "none has".to_owned() } else { format!("{takes} {}", has(takes)) };
            texts.push(format!("{has} them together as the pod demands"));
        }
        Some(texts.join("; "))
    }

    /// Returns the body of the read about a pod.
    pub(super) fn of_pod(&self, view: View<'_>, pod: &Pod) -> PodDevices {
        let mut made = PodDevices {
            namespace: pod.key.namespace.to_string(),
            name: pod.key.name.to_string(),
            text: self.standing_sentence(view, &pod.spec),
            ..PodDevices::default()
        };
        let request = match Request::of(&pod.spec) {
            Ok(Some(request)) => request,
            Ok(None) => return made,
            Err(invalid) => {
                let cause = reasons::refusal(&invalid);
                made.text = Some(cause.message());
                made.code = cause.reasons.first().map(|reason| reason.code.as_str().to_owned());
                return made;
            }
        };
        for part in &request.parts {
            let (standing, total) = self.part_standing(view, &request, part);
            made.total_nodes = total;
            made.requests.push(RequestedDevices {
                device_type: part.kind.to_string(),
                count: part.count,
                each: part.each.iter().map(|(r, n)| (r.name().to_owned(), r.format(n))).collect(),
                nodes_with_enough: standing.enough,
                nodes_with_enough_if_empty: standing.empty,
                best_node: standing.best.map(|(node, _)| view.name(node).to_string()),
                best_count: standing.best.map_or(0, |(_, most)| most),
            });
        }
        let mut nodes: Vec<DevicesOnNode> =
            Self::rows(view).map(|(node, row)| self.on_node(view, node, row, &request)).collect();
        made.accepting_nodes = nodes.iter().filter(|node| node.accepts).count();
        nodes.sort_by_key(|node| (Reverse(node.accepts), Reverse(nearness(node)), node.node_name.clone()));
        made.truncated = nodes.len() > MAX_ROWS;
        nodes.truncate(MAX_ROWS);
        made.code = nodes.first().filter(|node| !node.accepts).and_then(|node| node.code.clone());
        made.nodes = nodes;
        made
    }

    fn on_node(&self, view: View<'_>, node: NodeIdx, row: &Row, request: &Request) -> DevicesOnNode {
        let terms = Terms { scoring: &self.args.scoring, numa: None, is_empty: false, prospect: None };
        let attempt = self.attempt(row, request, &terms);
        let lack: Option<Lack> = allocate(row, request, &terms).err();
        let wanted = |part: &Part| {
            let mut lacks: BTreeMap<String, usize> = BTreeMap::new();
            for at in row.of(&part.kind) {
                if let Some(why) = lacking(&attempt, part, at as u16) {
                    *lacks.entry(why.code().to_owned()).or_default() += 1;
                }
            }
            WantedOnNode {
                device_type: part.kind.to_string(),
                wanted: attempt.count(part).max(1),
                fitting: self.fitting(row, request, part, false).0,
                devices: row.of(&part.kind).len(),
                lacking: lacks,
            }
        };
        DevicesOnNode {
            node_name: view.name(node).to_string(),
            accepts: lack.is_none(),
            code: lack.map(|lack| reasons::reason(lack).code.as_str().to_owned()),
            if_empty: allocate(row, request, &Terms { is_empty: true, ..terms }).is_ok(),
            text: lack.and_then(|lack| words(&attempt, lack)),
            requests: request.parts.iter().map(wanted).collect(),
        }
    }
}

/// Returns how much of what is wanted a node has, in thousandths.
fn nearness(node: &DevicesOnNode) -> usize {
    node.requests.iter().map(|of| of.fitting.min(of.wanted) * 1000 / of.wanted.max(1)).min().unwrap_or(0)
}

/// Says on how many nodes there are enough devices.
fn of_part(view: View<'_>, standing: &PartStanding<'_>, total: usize) -> String {
    let part = standing.part;
    let kind = name(&part.kind);
    let what = format!("{} with {} free", counted(part.count, kind), share(part));
    let have = match standing.enough {
        0 => format!("none of {}", nodes_word(total)),
        n => format!("{n} of {} {}", nodes_word(total), has(n)),
    };
    let have = if standing.enough == 0 { format!("{have} has") } else { have };
    let them = if part.count == 1 { "it" } else { "them" };
    let most = match standing.best {
        Some((node, most)) if most > 0 && most < part.count => {
            format!(", {most} of them on {}", view.name(node))
        }
        _ => String::new(),
    };
    format!("{what}: {have} {them}{most}")
}

/// Says how much of the GPUs is free, and how much of that is in parts of cards, with the nodes that have half a card for a
/// pod that wants whole ones.
fn fragments(view: View<'_>, part: &Part) -> Option<String> {
    let (mut total, mut parts, mut halves, mut wholes) = (0, 0, 0, 0);
    for (_, row) in DeviceShare::rows(view) {
        let of = fragmentation::row_of("", row);
        total += of.free_percent;
        parts += of.fragment_percent;
        let healthy = || row.gpus().filter(|card| card.healthy);
        halves += usize::from(healthy().any(|card| free(&card) >= 50));
        wholes += usize::from(healthy().any(|card| free(&card) == 100 && card.taken.pods == 0));
    }
    if parts == 0 {
        return None;
    }
    let fragments = format!("{} of {} free cards are fragments", cards(parts), cards(total));
    let on = |n: usize| if n == 0 { "none".to_owned() } else { nodes_word(n) };
    Some(match part.is_shared {
        true => fragments,
        false => format!("half a card is free on {}, a whole one on {}: {fragments}", on(halves), on(wholes)),
    })
}

/// Writes percent of a card as a number of cards, with up to two decimals.
pub(super) fn cards(percent: i64) -> String {
    let text = format!("{}.{:02}", percent / 100, percent % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn nodes_word(n: usize) -> String {
    if n == 1 { "1 node".to_owned() } else { format!("{n} nodes") }
}

fn has(n: usize) -> &'static str {
    if n == 1 { "has" } else { "have" }
}
