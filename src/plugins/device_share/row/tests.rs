//! Where the numbers of a row lie: a decision that has to go to other memory for one of them waits longer than for all it computes.

use std::mem::offset_of;

use pellucid_model::PodId;
use smallvec::smallvec;

use super::super::amounts::{CORE, MEMORY, RATIO};
use super::super::tests::{devices, gpu};
use super::*;

fn row_of(gpus: &[serde_json::Value]) -> Row {
    let mut row = Row::default();
    let device = Device::read(&devices(gpus)).expect("a Device");
    row.describe(Some(Arc::new(device)), Some(NodeFacts::default()));
    row.rebuild();
    row.note_left();
    row
}

fn half(minor: i64) -> Arc<Allocation> {
    let amounts = Amounts::of([(CORE, 50), (MEMORY, 8 << 30), (RATIO, 50)]);
    let given = Given { kind: DeviceType::Gpu, minor, amounts, functions: SmallVec::new() };
    Arc::new(Allocation { given: smallvec![given], exclusive: SmallVec::new() })
}

#[test]
fn eight_equal_gpus_and_their_first_pods_lie_in_the_row() {
    let gpus: Vec<_> = (0..8).map(|minor| gpu(minor, minor / 2)).collect();
    let mut row = row_of(&gpus);
    let inventory = row.inventory.clone();
    for n in 0..8 {
        row.add(PodOnCards { id: PodId(n), what: half(i64::from(n)) });
    }
    assert!(row.has_loads && row.has_turns());
    assert!(!row.totals.spilled() && !row.left.spilled() && !row.gpus.spilled() && !row.pods.spilled());
    assert!(Arc::ptr_eq(&row.inventory, &inventory), "a share of a GPU changes nothing far away");
    assert_eq!(row.left[..], [50; 8]);
}

#[test]
fn gpus_of_different_memory_have_totals_of_their_own() {
    let mut large = gpu(1, 0);
    large["resources"]["koordinator.sh/gpu-memory"] = "32Gi".into();
    let row = row_of(&[gpu(0, 0), large]);
    assert_eq!([0, 1].map(|at| row.memory_in_order(at)), [Some(16 << 30), Some(32 << 30)]);
    assert_eq!(row.totals.len(), 2);
}

#[test]
fn what_is_asked_about_many_nodes_is_the_first_line_of_a_row() {
    assert_eq!((align_of::<Row>(), size_of::<Row>() / LINE), (LINE, 9));
    assert_eq!(offset_of!(Row, glance), 0);
    assert!(offset_of!(Row, inventory) + size_of::<Arc<Inventory>>() <= LINE);
}
