//! Fragmentation: how much of the GPUs is free, and how much of that is parts of cards on which no whole card fits, or of no
//! use to typical pods.

use pellucid_api::rest::device_share::{FragmentationRow, GpuFragmentation, GpuRoom};
use pellucid_framework::endpoint::{ReadContext, ReadError};
use serde_json::{Value, json};

use super::amounts::{CORE, RATIO};
use super::gradient::of_typical;
use super::node_devices::NodeDevices;
use super::row::{CardInUse, Row};
use pellucid_plugin_helper::listing::MAX_ROWS;

/// Sizes of requests for which room is counted, in percent of a card.
const SIZES: [i64; 6] = [25, 50, 100, 200, 400, 800];

/// Returns what is free of a card, in percent: the less of computing power and memory.
pub(super) fn free(card: &CardInUse<'_>) -> i64 {
    let left = card.free();
    left.get(CORE).min(left.get(RATIO)).clamp(0, 100)
}

/// Returns how many pods of a size fit on a node: each on cards of its own when it wants whole ones.
fn room(row: &Row, size: i64) -> usize {
    let cards = || row.gpus().filter(|card| card.healthy);
    if size < 100 {
        return cards().map(|card| (free(&card) / size) as usize).sum();
    }
    cards().filter(|card| card.taken.pods == 0 && free(card) == 100).count() / (size / 100) as usize
}

pub(super) fn row_of(name: &str, row: &Row) -> FragmentationRow {
    let mut made = FragmentationRow { node_name: name.to_owned(), ..FragmentationRow::default() };
    for card in row.gpus() {
        if card.info.is_none() {
            continue;
        }
        made.cards += 1;
        if !card.healthy {
            made.unhealthy += 1;
            continue;
        }
        let free = free(&card);
        made.free_percent += free;
        match card.taken.pods {
            0 => made.unused += 1,
            _ if free > 0 => {
                made.shared += 1;
                made.fragment_percent += free;
            }
            _ => made.full += 1,
        }
    }
    made
}

pub(super) fn read(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let mut made = GpuFragmentation::default();
    let mut room_of: Vec<GpuRoom> =
        SIZES.iter().map(|size| GpuRoom { percent: *size, ..GpuRoom::default() }).collect();
    for node in cx.view.cluster().by_name() {
        let Some(row) = NodeDevices::row_in(cx.view, *node) else {
            continue;
        };
        let of = row_of(cx.view.name(*node), row);
        if of.cards == 0 {
            continue;
        }
        made.nodes += 1;
        let total = &mut made.total;
        total.cards += of.cards;
        total.unhealthy += of.unhealthy;
        total.unused += of.unused;
        total.shared += of.shared;
        total.full += of.full;
        total.free_percent += of.free_percent;
        total.fragment_percent += of.fragment_percent;
        for room_of in &mut room_of {
            let pods = room(row, room_of.percent);
            room_of.pods += pods;
            room_of.nodes += usize::from(pods > 0);
        }
        if made.rows.len() < MAX_ROWS {
            made.rows.push(of);
        } else {
            made.truncated = true;
        }
    }
    made.room = room_of;
    let (typical, from) = of_typical(cx.view);
    (made.typical, made.typical_from) = (typical, from.to_owned());
    Ok(json!(made))
}
