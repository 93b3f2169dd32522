//! The cards of one node as the allocator sees them: a flat array by type and minor, with what is used of each.
//!
//! A row is made of a Device and of the allocations of the pods on the node. A card that only an allocation names is part
//! of it, without anything to give. Invariant: what is used of a card is the sum of the allocations. A decision about a part of an
//! ordinary GPU, which has the main amounts alone, reads and writes what lies in the row itself: the `glance`, which says what is
//! asked of the node, the `gpus` with their `loads`, and the first pods. Everything else is in the `inventory`, far away; `card` is a
//! card of it as the Device describes it, with what pods have of it.

use std::sync::Arc;

use pellucid_framework::View;
use pellucid_model::{Name, PodId, PodKey, prefetch_index};
use smallvec::SmallVec;

use super::allocation::{Allocation, Given};
use super::amounts::Amounts;
use super::device::{Device, DeviceInfo, DeviceType};

mod card;
mod glance;
mod gpu;
mod inventory;
mod loads;
#[cfg(test)]
mod tests;

use card::Taken;
pub(super) use card::{Card, CardInUse};
pub(super) use glance::{Glance, Sums};
use gpu::Gpu;
pub(super) use gpu::turns;
use inventory::Inventory;
pub(super) use inventory::{Entry, NodeFacts};
pub(super) use loads::{ByPair, Pair, Weighed};

/// Length of a line of the processor's cache, in bytes.
const LINE: usize = 64;

/// A set of PCIe switches of a node, by number.
pub(super) type Switches = u128;

/// An allocation of a pod on the node. The pod's name is in its record ([`key`](Self::key)): a copy would cost a look at the
/// name, which lies far away, at every decision.
#[derive(Clone, Debug)]
pub(super) struct PodOnCards {
    pub(super) id: PodId,
    pub(super) what: Arc<Allocation>,
}

impl PodOnCards {
    /// Returns the pod's name, which every pod with a hold has.
    pub(super) fn key(&self, view: View<'_>) -> PodKey {
        view.cluster().pod(self.id).map(|record| record.pod.key.clone()).unwrap_or_default()
    }
}

/// The cards of a node. Rows lie beside each other in pages, each on cache lines of its own; the first line is what is asked about
/// many nodes.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Row {
    glance: Glance,
    inventory: Arc<Inventory>,
    /// What is left of each GPU, in percent: a request for no more of its computing power and memory fits. In the order
    /// of the GPUs; 0 of those that are not healthy.
    pub(super) left: SmallVec<[u8; 8]>,
    /// The main amounts of the GPUs, if `has_loads`: of each, or one for all where they are equal.
    totals: SmallVec<[[f64; 3]; 1]>,
    /// Number of GPUs whose memory alone is what they have too little of.
    short_of_memory: u16,
    /// Number of GPUs that take whole requests when no pod is on them.
    whole: u16,
    /// Whether `left`, the loads, the turns and the glance are those of the cards as they are, and can be kept in step with them.
    is_noted: bool,
    /// Whether the main amounts are all that the GPUs have, and all that is used of them.
    has_loads: bool,
    /// Whether every GPU has some of all main amounts.
    each_has_all: bool,
    /// Whether the turns of the GPUs are known without the pod.
    are_turns_known: bool,
    /// Whether the GPUs are those of the Device, and stand at their minors.
    is_in_order: bool,
    /// Whether the places of all GPUs are known.
    pub(super) has_gpu_topology: bool,
    /// Whether the GPUs' switches and NUMA nodes are told apart by number.
    pub(super) has_numbers: bool,
    /// Whether there are cards that the Device does not name.
    has_unknown: bool,
    gpus: SmallVec<[Gpu; 8]>,
    pub(super) pods: SmallVec<[PodOnCards; 8]>,
}

impl Row {
    /// Has the processor fetch all lines of the row, which a decision is about to need.
    pub(super) fn prefetch(&self) {
        let in_first_line = std::slice::from_ref(&self.glance.most);
        // An index beyond a slice is an address like any other.
        (0..size_of::<Self>()).step_by(LINE).for_each(|bytes| prefetch_index(in_first_line, bytes));
    }

    /// Returns whether nothing is known of the node's devices.
    pub(super) fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.device().is_none() && self.node().is_none()
    }

    /// Returns the node's Device; `None` while it has none, or no Node object.
    pub(super) fn device(&self) -> Option<&Arc<Device>> {
        self.inventory.device.as_ref()
    }

    /// Returns what matters of the Node object, while there is one.
    pub(super) fn node(&self) -> Option<&NodeFacts> {
        self.inventory.node.as_ref()
    }

    /// Returns the entries of the partition table by size and score, if the node has one.
    pub(super) fn partitions(&self) -> Option<&[Entry]> {
        self.inventory.partitions.as_deref()
    }

    /// Returns whether GPUs must be those of an entry of the table.
    pub(super) fn honors_partitions(&self) -> bool {
        self.inventory.honors_partitions
    }

    /// Returns whether there is such a table, or must be one.
    #[inline]
    pub(super) fn has_partitions(&self) -> bool {
        self.glance.has_partitions
    }

    /// Sets the Device and the Node. What follows from them must be computed anew.
    pub(super) fn describe(&mut self, device: Option<Arc<Device>>, node: Option<NodeFacts>) {
        let inventory = Arc::make_mut(&mut self.inventory);
        (inventory.device, inventory.node) = (device, node);
    }

    /// Computes everything anew from the Device, the Node and the allocations.
    pub(super) fn rebuild(&mut self) {
        (self.has_loads, self.is_noted) = (false, false);
        let (device, node) = (self.device().cloned(), self.node().cloned());
        self.glance.has_device = device.is_some();
        let inventory = Arc::new(Inventory::of(device, node));
        let gpus = &inventory.cards[..inventory.n_gpus()];
        self.gpus = gpus.iter().map(Gpu::of).collect();
        self.has_numbers = gpus.iter().all(Card::is_told_apart);
        self.inventory = inventory;
        self.has_unknown = false;
        self.note_cards();
        for pod in std::mem::take(&mut self.pods) {
            self.count(&pod.what, true);
            self.pods.push(pod);
        }
    }

    /// Returns whether devices that are allocated beside others take no part in the node's score.
    pub(super) fn is_well_planned(&self) -> bool {
        self.device().is_some_and(|device| device.is_well_planned)
    }

    /// Returns whether GPUs are chosen one by one, whatever their links.
    pub(super) fn is_plain(&self) -> bool {
        !self.has_partitions() && !self.has_gpu_topology
    }

    /// Returns what most decisions ask of each GPU.
    #[inline]
    pub(super) fn gpus_in_row(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Returns a card.
    #[inline]
    pub(super) fn card(&self, at: usize) -> CardInUse<'_> {
        let mut taken = self.inventory.taken[at];
        if let Some(gpu) = self.gpus.get(at) {
            taken.pods = gpu.pods;
            if self.has_loads {
                taken.used = gpu.used();
            }
        }
        CardInUse { card: &self.inventory.cards[at], taken }
    }

    /// Iterates over the cards, by type and minor.
    pub(super) fn cards(&self) -> impl Iterator<Item = CardInUse<'_>> {
        (0..self.inventory.cards.len()).map(|at| self.card(at))
    }

    /// Iterates over the cards of a type.
    pub(super) fn cards_of(&self, kind: &DeviceType) -> impl Iterator<Item = CardInUse<'_>> {
        self.of(kind).map(|at| self.card(at))
    }

    /// Iterates over the GPUs.
    pub(super) fn gpus(&self) -> impl ExactSizeIterator<Item = CardInUse<'_>> {
        (0..self.gpus.len()).map(|at| self.card(at))
    }

    /// Returns the memory of a GPU of the Device that stands at its minor, in bytes, if that is known without a look at the card.
    pub(super) fn memory_in_order(&self, at: usize) -> Option<i64> {
        let is_known = self.has_loads && self.is_in_order && at < self.gpus.len();
        is_known.then(|| self.load(at).memory())
    }

    /// Follows cards that came or went: others stand elsewhere now.
    fn note_cards(&mut self) {
        let inventory = Arc::make_mut(&mut self.inventory);
        inventory.read_partitions();
        self.glance.has_partitions = inventory.partitions.is_some() || inventory.honors_partitions;
        // Scopes would leave a GPU out whose place is not known.
        let gpus = &inventory.cards[..self.gpus.len()];
        let mut known = gpus.iter().filter(|card| card.info.is_some()).peekable();
        self.has_gpu_topology = known.peek().is_some() && known.all(|card| card.has_topology);
        let is_at = |(at, card): (usize, &Card)| {
            card.info.is_some_and(|info| usize::from(info) == at) && card.minor == at as i64
        };
        self.is_in_order = gpus.iter().enumerate().all(is_at);
    }

    /// Returns the positions of the cards of a type.
    pub(super) fn of(&self, kind: &DeviceType) -> std::ops::Range<usize> {
        if *kind == DeviceType::Gpu {
            // They come first.
            return 0..self.gpus.len();
        }
        let cards = &self.inventory.cards;
        let start = cards.partition_point(|card| card.kind < *kind);
        let end = cards.partition_point(|card| card.kind <= *kind);
        start..end
    }

    /// Returns what the Device says about a card.
    pub(super) fn info(&self, card: &Card) -> Option<&DeviceInfo> {
        self.inventory.info(card)
    }

    /// Returns whether a virtual function of a card is in use.
    pub(super) fn is_function_used(&self, card: &Card, bus: &Name) -> bool {
        let is_it = |(kind, minor, used): &(DeviceType, i64, Name)| {
            *minor == card.minor && used == bus && *kind == card.kind
        };
        self.inventory.functions.iter().any(is_it)
    }

    /// Returns how many virtual functions of a card are in use.
    pub(super) fn functions_used(&self, card: &Card) -> usize {
        let is_of = |(kind, minor, _): &&(DeviceType, i64, Name)| *minor == card.minor && *kind == card.kind;
        self.inventory.functions.iter().filter(is_of).count()
    }

    /// Adds the allocation of a pod.
    pub(super) fn add(&mut self, pod: PodOnCards) {
        self.count(&pod.what, true);
        self.pods.push(pod);
    }

    /// Removes the allocation of a pod.
    pub(super) fn remove(&mut self, id: PodId) {
        let Some(at) = self.pods.iter().rposition(|pod| pod.id == id) else { return };
        let pod = self.pods.swap_remove(at);
        self.count(&pod.what, false);
        if self.has_unknown {
            self.drop_unneeded();
        }
    }

    /// Removes the cards that were there for an allocation alone, which has gone.
    fn drop_unneeded(&mut self) {
        let unneeded = |row: &Self| row.cards().position(|card| card.info.is_none() && card.taken.pods == 0);
        while let Some(at) = unneeded(self) {
            self.forget_left();
            let inventory = Arc::make_mut(&mut self.inventory);
            inventory.cards.remove(at);
            inventory.taken.remove(at);
            self.has_unknown = inventory.cards.len() > inventory.n_known;
            if at < self.gpus.len() {
                self.gpus.remove(at);
            }
            self.note_cards();
        }
    }

    /// Returns the row as if of each card nothing were free but what is left of an allocation.
    pub(super) fn within(&self, room: &Allocation) -> Self {
        let mut row = self.clone();
        row.forget_left();
        let inventory = Arc::make_mut(&mut row.inventory);
        for (card, taken) in inventory.cards.iter().zip(&mut inventory.taken) {
            let own = room.given.iter().filter(|given| given.minor == card.minor && given.kind == card.kind);
            let mut left = Amounts::default();
            own.for_each(|given| left.add(&given.amounts));
            let free = card.total.less(&taken.used);
            let left =
                Amounts::of(free.iter().map(|(resource, free)| (resource, free.min(left.get(resource)))));
            taken.used = card.total.less(&left);
        }
        row
    }

    // Most pods have a part of a GPU and nothing else. What other pods have is counted in separate functions, so that these need no
    // registers here.
    fn count(&mut self, what: &Allocation, begins: bool) {
        for given in &what.given {
            let at = self.known_gpu(given).unwrap_or_else(|| self.find_or_insert(given));
            if !what.exclusive.is_empty() || !given.functions.is_empty() {
                self.count_uses(what, (given, at), begins);
            }
            match given.kind == DeviceType::Gpu {
                true => self.count_gpu(at, &given.amounts, begins),
                false => self.count_other(at, &given.amounts, begins),
            }
        }
    }

    #[inline(never)]
    fn count_gpu(&mut self, at: usize, amounts: &Amounts, begins: bool) {
        self.note_use(at, begins);
        match begins {
            true => self.add_used(at, amounts),
            false => self.set_used(at, self.sum_of(at)),
        }
    }

    #[inline(never)]
    fn count_other(&mut self, at: usize, amounts: &Amounts, begins: bool) {
        let left = (!begins).then(|| self.sum_of(at));
        let taken = &mut Arc::make_mut(&mut self.inventory).taken[at];
        count_one(&mut taken.pods, begins);
        match left {
            None => taken.used.add(amounts),
            Some(left) => taken.used = left,
        }
    }

    /// Counts what an allocation says of a card besides its amounts.
    #[inline(never)]
    fn count_uses(&mut self, what: &Allocation, (given, at): (&Given, usize), begins: bool) {
        let inventory = Arc::make_mut(&mut self.inventory);
        for (_, policy) in what.exclusive.iter().filter(|(kind, _)| *kind == given.kind) {
            count_one(&mut inventory.taken[at].exclusive[*policy as usize], begins);
        }
        for (_, bus) in &given.functions {
            let key = (given.kind.clone(), given.minor, bus.clone());
            if begins {
                inventory.functions.push(key);
            } else if let Some(at) = inventory.functions.iter().position(|known| *known == key) {
                inventory.functions.swap_remove(at);
            }
        }
    }

    /// Computes what is used of a card from the allocations that are left. Amounts saturate, so they cannot be
    /// subtracted.
    fn sum_of(&self, at: usize) -> Amounts {
        let (card, mut used) = (&self.inventory.cards[at], Amounts::default());
        for given in self.pods.iter().flat_map(|pod| &pod.what.given) {
            if given.minor == card.minor && given.kind == card.kind {
                used.add(&given.amounts);
            }
        }
        used
    }

    /// Returns the position of a GPU that stands at its minor.
    fn known_gpu(&self, given: &Given) -> Option<usize> {
        let minor = usize::try_from(given.minor).ok();
        minor.filter(|at| self.is_in_order && *at < self.gpus.len() && given.kind == DeviceType::Gpu)
    }

    #[inline(never)]
    fn find_or_insert(&mut self, given: &Given) -> usize {
        let order = |card: &Card| card.kind.cmp(&given.kind).then(card.minor.cmp(&given.minor));
        match self.inventory.cards.binary_search_by(order) {
            Ok(at) => at,
            Err(at) => {
                self.forget_left();
                let card = Card::new(given.kind.clone(), given.minor);
                if given.kind == DeviceType::Gpu {
                    self.gpus.insert(at, Gpu::of(&card));
                }
                let inventory = Arc::make_mut(&mut self.inventory);
                inventory.cards.insert(at, card);
                inventory.taken.insert(at, Taken::default());
                self.has_unknown = true;
                self.note_cards();
                at
            }
        }
    }
}

fn count_one(number: &mut u16, begins: bool) {
    *number = if begins { number.saturating_add(1) } else { number.saturating_sub(1) };
}

/// Positions of cards in a row.
pub(super) type CardList = SmallVec<[u16; 16]>;
