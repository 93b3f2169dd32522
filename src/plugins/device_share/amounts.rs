//! Amounts of the resources that devices have, as a flat array: one slot per resource, and which slots are named.
//!
//! A resource that is named with 0 differs from one that is not named: an allocation of GPU memory alone names no
//! `gpu-core`. Cards are compared slot by slot in the filter, so this type is `Copy` and allocates nothing.

use std::sync::LazyLock;

use pellucid_model::Name;
use pellucid_model::quantity::format_bytes;

/// Number of resources.
const RESOURCES: usize = 8;

/// A resource of a device, by its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resource(pub(super) u8);

/// Computing power of a GPU; 100 is one card.
pub(super) const CORE: Resource = Resource(0);
/// Memory of a GPU, in bytes.
pub(super) const MEMORY: Resource = Resource(1);
/// Memory of a GPU, in percent of one card.
pub(super) const RATIO: Resource = Resource(2);
/// RDMA bandwidth; 100 is one device.
pub(super) const RDMA: Resource = Resource(3);
/// FPGA; 100 is one device.
pub(super) const FPGA: Resource = Resource(4);
/// AI cores of a Huawei NPU.
pub(super) const NPU_CORE: Resource = Resource(5);
/// AI CPUs of a Huawei NPU.
pub(super) const NPU_CPU: Resource = Resource(6);
/// Video units of a Huawei NPU.
pub(super) const NPU_DVPP: Resource = Resource(7);

/// Names by slot.
const NAMES: [&str; RESOURCES] = [
    "koordinator.sh/gpu-core",
    "koordinator.sh/gpu-memory",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/rdma",
    "koordinator.sh/fpga",
    "huawei.com/npu-core",
    "huawei.com/npu-cpu",
    "huawei.com/npu-dvpp",
];

/// Names of Koordinator 0.7, each with the one that counts instead.
pub(super) const OLD_NAMES: [(&str, &str); 6] = [
    ("kubernetes.io/gpu", "koordinator.sh/gpu"),
    ("kubernetes.io/gpu-core", "koordinator.sh/gpu-core"),
    ("kubernetes.io/gpu-memory", "koordinator.sh/gpu-memory"),
    ("kubernetes.io/gpu-memory-ratio", "koordinator.sh/gpu-memory-ratio"),
    ("kubernetes.io/rdma", "koordinator.sh/rdma"),
    ("kubernetes.io/fpga", "koordinator.sh/fpga"),
];

impl Resource {
    /// Finds a resource by its name, or by that of Koordinator 0.7.
    pub(super) fn find(name: &str) -> Option<Self> {
        let name = OLD_NAMES.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
        NAMES.iter().position(|known| *known == name).map(|at| Self(at as u8))
    }

    /// Does the same for a name that is interned already: names are compared, not their texts.
    pub(super) fn of(name: &Name) -> Option<Self> {
        static KNOWN: LazyLock<Vec<(Name, Resource)>> = LazyLock::new(|| {
            let all = NAMES.into_iter().chain(OLD_NAMES.into_iter().map(|(old, _)| old));
            all.filter_map(|name| Some((Name::new(name), Resource::find(name)?))).collect()
        });
        KNOWN.iter().find(|(known, _)| known == name).map(|(_, resource)| *resource)
    }

    /// Returns the resource's name.
    pub(super) fn name(self) -> &'static str {
        NAMES[self.slot()]
    }

    /// Iterates over all resources.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..RESOURCES as u8).map(Self)
    }

    /// Writes an amount as a quantity: memory with a binary suffix.
    pub(super) fn format(self, amount: i64) -> String {
        if self == MEMORY { format_bytes(amount) } else { amount.to_string() }
    }

    fn slot(self) -> usize {
        usize::from(self.0) % RESOURCES
    }

    fn bit(self) -> u8 {
        1 << self.slot()
    }
}

/// Amounts by resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    named: u8,
    of: [i64; RESOURCES],
}

impl Amounts {
    /// Makes amounts of these resources.
    pub(super) fn of(all: impl IntoIterator<Item = (Resource, i64)>) -> Self {
        let mut made = Self::default();
        for (resource, amount) in all {
            made.set(resource, amount);
        }
        made
    }

    /// Makes amounts of the first resources. `named` has a bit for each that is named.
    pub(super) fn first<const N: usize>(named: u8, first: [i64; N]) -> Self {
        let mut made = Self { named, ..Self::default() };
        made.of[..N].copy_from_slice(&first);
        made
    }

    /// Returns which resources are named, a bit for each.
    #[inline]
    pub(super) fn named(&self) -> u8 {
        self.named
    }

    /// Returns the amount of a resource, 0 when it is not named.
    #[inline]
    pub(super) fn get(&self, resource: Resource) -> i64 {
        self.of[resource.slot()]
    }

    /// Returns whether a resource is named.
    #[inline]
    pub(super) fn has(&self, resource: Resource) -> bool {
        self.named & resource.bit() != 0
    }

    /// Names a resource with an amount.
    #[inline]
    pub(super) fn set(&mut self, resource: Resource, amount: i64) {
        self.named |= resource.bit();
        self.of[resource.slot()] = amount;
    }

    /// Iterates over the named resources.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Resource, i64)> + '_ {
        Resource::all().filter(|resource| self.has(*resource)).map(|resource| (resource, self.get(resource)))
    }

    /// Iterates over the named resources in the order of their names.
    pub(super) fn by_name(&self) -> impl Iterator<Item = (Resource, i64)> + '_ {
        const BY_NAME: [Resource; RESOURCES] = [NPU_CORE, NPU_CPU, NPU_DVPP, FPGA, CORE, MEMORY, RATIO, RDMA];
        let named = BY_NAME.into_iter().filter(|resource| self.has(*resource));
        named.map(|resource| (resource, self.get(resource)))
    }

    /// Adds other amounts. Saturates.
    pub(super) fn add(&mut self, other: &Self) {
        self.named |= other.named;
        for at in other.slots() {
            self.of[at] = self.of[at].saturating_add(other.of[at]);
        }
    }

    /// Returns the part of the named amounts that is left when others are taken, never negative.
    pub(super) fn less(&self, taken: &Self) -> Self {
        let mut made = *self;
        for (own, taken) in made.of.iter_mut().zip(taken.of) {
            *own = left(*own, taken);
        }
        made
    }

    /// Returns whether each named amount is at most what is left of a total beside what is used.
    #[inline]
    pub(super) fn fits_beside(&self, total: &Self, used: &Self) -> bool {
        self.slots().all(|at| self.of[at] <= left(total.of[at], used.of[at]))
    }

    /// Adds what is taken of a total: all that is used of it, but no more than there is.
    #[inline]
    pub(super) fn add_taken(&mut self, total: &Self, used: &Self) {
        self.named |= total.named;
        for at in total.slots() {
            self.of[at] = self.of[at].saturating_add(taken(total.of[at], used.of[at]));
        }
    }

    /// Iterates over the slots of the named resources. The others are 0.
    #[inline]
    fn slots(&self) -> impl Iterator<Item = usize> + use<> {
        let mut named = self.named;
        std::iter::from_fn(move || {
            let slot = named.trailing_zeros() as usize;
            named &= named.wrapping_sub(1);
            (slot < RESOURCES).then_some(slot)
        })
    }

    /// Returns what is left of a resource when other amounts are taken, never negative.
    #[inline]
    pub(super) fn left_of(&self, resource: Resource, taken: &Self) -> i64 {
        left(self.get(resource), taken.get(resource))
    }

    /// Returns the amounts divided by a count.
    pub(super) fn each(&self, count: i64) -> Self {
        let mut made = *self;
        for own in &mut made.of {
            *own /= count.max(1);
        }
        made
    }
}

/// Returns what is taken of a total where this much is used.
#[inline]
fn taken(total: i64, used: i64) -> i64 {
    used.min(total).max(0)
}

/// Returns what is left of an amount, never negative.
#[inline]
fn left(total: i64, taken: i64) -> i64 {
    total.saturating_sub(taken).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_that_is_not_named_is_none() {
        let mut amounts = Amounts::of([(MEMORY, 1 << 30), (RATIO, 0)]);
        assert!(!amounts.has(CORE) && amounts.has(RATIO));
        assert_eq!(
            amounts.iter().map(|(resource, n)| (resource.name(), resource.format(n))).collect::<Vec<_>>(),
            [
                ("koordinator.sh/gpu-memory", "1Gi".to_owned()),
                ("koordinator.sh/gpu-memory-ratio", "0".to_owned()),
            ]
        );
        let (total, none) = (Amounts::of([(MEMORY, 1 << 30)]), Amounts::default());
        assert!(amounts.fits_beside(&total, &none));
        assert!(!amounts.fits_beside(&total, &Amounts::of([(MEMORY, 1)])));
        amounts.set(CORE, 1);
        assert!(!amounts.fits_beside(&total, &none));
        let left = Amounts::of([(CORE, 100)]).less(&Amounts::of([(CORE, 130), (RATIO, 5)]));
        assert_eq!(left.iter().collect::<Vec<_>>(), [(CORE, 0)]);
        let mut taken = Amounts::of([(CORE, 10)]);
        taken.add_taken(&Amounts::of([(CORE, 100)]), &Amounts::of([(CORE, 130), (RATIO, 5)]));
        taken.add_taken(&Amounts::of([(CORE, 100)]), &Amounts::of([(CORE, 20)]));
        assert_eq!(taken.iter().collect::<Vec<_>>(), [(CORE, 130)]);
    }

    #[test]
    fn old_names_stand_for_the_new_ones() {
        assert_eq!(Resource::find("kubernetes.io/gpu-core"), Some(CORE));
        assert_eq!(Resource::find("koordinator.sh/gpu-core"), Some(CORE));
        assert_eq!(Resource::find("kubernetes.io/gpu"), None, "it is no resource of a card");
        assert!(Resource::all().all(|resource| Resource::find(resource.name()) == Some(resource)));
        for name in NAMES.into_iter().chain(OLD_NAMES.map(|(old, _)| old)).chain(["cpu"]) {
            assert_eq!(Resource::of(&name.into()), Resource::find(name), "{name}");
        }
        let all = Amounts::of(Resource::all().map(|resource| (resource, 1)));
        assert!(all.by_name().map(|(resource, _)| resource.name()).is_sorted());
        assert_eq!(all.by_name().count(), RESOURCES);
    }
}
