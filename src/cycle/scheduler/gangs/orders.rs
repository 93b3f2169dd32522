//! The orders in which a group's members are tried.
//!
//! Equal members fill the nodes alike in any order, so one order is enough. With different members, a greedy choice may
//! fail where another order succeeds, so a few are tried before the group is refused.

use pellucid_cluster::ShapeId;
use pellucid_model::collections::FxHashSet;

/// Maximum number of orders with the failed members in front.
pub(super) const FAILED_FIRST: usize = 4;
/// The name of such an order.
pub(super) const FAILED_IN_FRONT: &str = "failed first";

/// The name of an order, and the members by index.
pub(super) type Order = (&'static str, Vec<usize>);

/// What decides a member's position in an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordered {
    /// Profile and shape; members that agree in both are interchangeable.
    pub(super) kind: (usize, ShapeId),
    /// The greatest share of the cluster's total that the member requests of any resource, in units of 10^-12.
    pub(super) size: u128,
}

/// Returns the orders to try: the members' own, then the largest first, then the smallest first. Equal members have
/// only their own.
pub(super) fn orders(members: &[Ordered]) -> Vec<Order> {
    let own: Vec<usize> = (0..members.len()).collect();
    let is_uniform = members.windows(2).all(|pair| pair[0].kind == pair[1].kind);
    let mut all = vec![("queue order", own.clone())];
    if is_uniform {
        return all;
    }
    let mut largest = own.clone();
    largest.sort_by_key(|i| std::cmp::Reverse(members[*i].size));
    let mut smallest = own;
    smallest.sort_by_key(|i| members[*i].size);
    for (name, order) in [("largest first", largest), ("smallest first", smallest)] {
        if all.iter().all(|(_, known)| *known != order) {
            all.push((name, order));
        }
    }
    all
}

/// Returns an order with some members moved to the front.
pub(super) fn in_front(order: &[usize], first: &[usize]) -> Vec<usize> {
    let is_first: FxHashSet<usize> = first.iter().copied().collect();
    let rest = order.iter().filter(|i| !is_first.contains(i));
    first.iter().chain(rest).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(shape: u32, size: u128) -> Ordered {
        Ordered { kind: (0, ShapeId(shape)), size }
    }

    #[test]
    fn equal_members_have_one_order_and_others_a_few() {
        let equal = [member(1, 5), member(1, 5), member(1, 5)];
        assert_eq!(orders(&equal), [("queue order", vec![0, 1, 2])]);
        let mixed = [member(1, 5), member(2, 9), member(3, 1), member(1, 5)];
        let all = orders(&mixed);
        let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["queue order", "largest first", "smallest first"]);
        assert_eq!((&all[1].1, &all[2].1), (&vec![1, 0, 3, 2], &vec![2, 0, 3, 1]));
        let sorted = [member(2, 9), member(1, 5)];
        assert_eq!(orders(&sorted).len(), 2, "the largest first is the queue's order");
        assert_eq!(in_front(&[0, 1, 2, 3], &[2, 3]), [2, 3, 0, 1]);
    }
}
