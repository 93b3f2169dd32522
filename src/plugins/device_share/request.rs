//! What a pod requests of devices: which combinations of resources are valid, and what they mean per device.
//!
//! The combinations are Koordinator's. A whole card is 100 of `gpu-core` and 100 of `gpu-memory-ratio`; the amount of
//! memory follows from the card that is chosen.

use pellucid_model::{Name, PodSpec};
use smallvec::SmallVec;

use super::allocation::SharedAllocations;
use super::allocator::Scoring;
use super::amounts::{Amounts, CORE, FPGA, MEMORY, NPU_CORE, NPU_CPU, NPU_DVPP, RATIO, RDMA, Resource};
use super::device::DeviceType;
use super::hints::{Exclusive, Hint, Hints, ISOLATION_PROVIDER, Strategy, Unreadable};
use super::row::Weighed;

/// Whole cards, by vendor.
pub(super) const WHOLE: [&str; 3] = ["nvidia.com/gpu", "amd.com/gpu", "dcu.com/gpu"];
/// Percent of cards, core and memory alike.
pub(super) const PERCENT: &str = "koordinator.sh/gpu";
/// Number of cards that are shared.
const SHARED: &str = "koordinator.sh/gpu.shared";

/// A request for devices of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) kind: DeviceType,
    /// Amounts per device.
    pub(super) each: Amounts,
    /// Number of devices; not that of [`Strategy::ApplyForAll`], which depends on the node.
    pub(super) count: usize,
    /// Whether the pod may share its GPUs with others.
    pub(super) is_shared: bool,
    pub(super) hint: Hint,
}

/// A request for a percentage of any GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plain {
    /// Of the memory of each, and at most of its computing power.
    pub(super) percent: u8,
    pub(super) count: usize,
    pub(super) is_shared: bool,
    /// Whether as much computing power as memory is requested.
    pub(super) is_even: bool,
}

/// The request of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// By type, in the order of [`DeviceType`].
    pub(super) parts: SmallVec<[Part; 1]>,
    pub(super) hints: Hints,
    /// What keeps the shares of a GPU apart, which the node must have; of pods that share GPUs alone.
    pub(super) isolation: Option<Name>,
    /// What all of this comes to, if that is all it says.
    plain: Option<Plain>,
    /// By what GPUs and nodes are scored, once the request is [prepared](Self::prepared).
    weighed: Option<Weighed>,
    pub(super) shared: SharedAllocations,
}

/// Why a request is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Invalid {
    /// Resources that do not go together, sorted.
    Combination(Vec<Name>),
    /// An amount above 100 that is no multiple of 100.
    Unit(Name, i64),
    /// An annotation.
    Unreadable(Unreadable),
}

impl Part {
    /// Distributes the amount as the hint says. GPUs are distributed by their amounts alone, and so is what is several whole
    /// devices already.
    fn distribute(&mut self) {
        if self.kind == DeviceType::Gpu || self.count > 1 {
            self.hint.strategy = Strategy::ByAmount;
        }
        let first = self.each.iter().next();
        if let (Strategy::RequestsAsCount, Some((resource, amount))) = (self.hint.strategy, first) {
            // Who does not share the device takes it whole.
            let each = if self.hint.exclusive == Some(Exclusive::Device) { 100 } else { 1 };
            self.count = usize::try_from(amount).unwrap_or(usize::MAX);
            self.each = Amounts::of([(resource, each)]);
        }
    }

    /// Returns which part of a GPU is requested of each, in percent; `None` when memory is requested in bytes, whose part of
    /// a card depends on the card.
    pub(super) fn percent(&self) -> Option<u8> {
        let percent = self.each.get(CORE).max(self.each.get(RATIO));
        (!self.each.has(MEMORY) && (1..=100).contains(&percent)).then_some(percent as u8)
    }
}

impl Request {
    /// Returns the one part of a request for GPUs that says nothing of them but amounts and number, and requests no other device.
    #[inline]
    fn only_gpus(&self) -> Option<&Part> {
        let [part] = &self.parts[..] else { return None };
        let is_any = part.kind == DeviceType::Gpu
            && part.hint.is_default()
            && self.hints.joint.is_none()
            && self.hints.partition.is_none()
            && self.isolation.is_none();
        is_any.then_some(part)
    }

    /// Returns the part of a request for GPUs whatever their labels, and for no other device.
    pub(super) fn gpus_of_any_label(&self) -> Option<&Part> {
        let [part] = &self.parts[..] else { return None };
        (part.kind == DeviceType::Gpu && part.hint.selector.is_none() && self.hints.joint.is_none())
            .then_some(part)
    }

    /// Returns the part of a request for any GPU, and for nothing else.
    #[inline]
    pub(super) fn single(&self) -> Option<&Part> {
        self.only_gpus().filter(|part| part.count == 1)
    }

    /// Returns the request as percent of each GPU, if that is all it says.
    #[inline]
    pub(super) fn plain(&self) -> Option<Plain> {
        self.plain
    }

    /// Prepares the request for many nodes of a profile that scores like this.
    pub(super) fn prepared(mut self, scoring: &Scoring) -> Self {
        self.weighed = self.gpus_of_any_label().map(|part| Weighed::new(scoring, &part.each));
        self
    }

    /// Returns by what GPUs and nodes are scored, of a prepared request for GPUs whatever their labels, and for nothing else.
    #[inline]
    pub(super) fn weighed(&self) -> Option<&Weighed> {
        self.weighed.as_ref()
    }

    /// Works out [`plain`](Self::plain).
    fn as_plain(&self) -> Option<Plain> {
        let part = self.only_gpus()?;
        let (core, ratio) = (part.each.get(CORE), part.each.get(RATIO));
        let is_plain = core <= ratio && part.each.iter().all(|(named, _)| matches!(named, CORE | RATIO));
        let percent = part.percent().filter(|_| is_plain)?;
        Some(Plain { percent, count: part.count, is_shared: part.is_shared, is_even: core == ratio })
    }

    /// Returns the requested GPUs in percent of one card; of memory in bytes, a card for each.
    pub(super) fn gpu_percent(&self) -> i64 {
        let gpus = self.parts.iter().filter(|part| part.kind == DeviceType::Gpu);
        gpus.map(|part| i64::from(part.percent().unwrap_or(100)).saturating_mul(part.count as i64)).sum()
    }

    /// Reads the request of a pod; `None` when it requests no device.
    pub(super) fn of(spec: &PodSpec) -> Result<Option<Self>, Invalid> {
        let wanted = spec.requests.list.scalars.iter().filter(|(_, amount)| *amount > 0);
        let (mut gpu, mut others): (Wanted<'_>, Wanted<'_>) = Default::default();
        for (name, amount) in wanted {
            let is_gpu = || WHOLE.contains(&name.as_str()) || [PERCENT, SHARED].contains(&name.as_str());
            match Resource::of(name) {
                Some(RDMA | FPGA) => others.push((name, *amount)),
                Some(_) => gpu.push((name, *amount)),
                None if is_gpu() => gpu.push((name, *amount)),
                None => {}
            }
        }
        if gpu.is_empty() && others.is_empty() {
            return Ok(None);
        }
        let mut parts: SmallVec<[Part; 1]> = SmallVec::new();
        if !gpu.is_empty() {
            parts.push(gpus(&gpu)?);
        }
        for (resource, kind) in [(RDMA, DeviceType::Rdma), (FPGA, DeviceType::Fpga)] {
            if let Some((name, amount)) = others.iter().find(|(name, _)| Resource::of(name) == Some(resource))
            {
                percent(name, *amount)?;
                parts.push(plain(kind, resource, *amount));
            }
        }
        let mut hints = Hints::read(&spec.annotations).map_err(Invalid::Unreadable)?;
        hints.join_only(|kind| parts.iter().any(|part| part.kind == *kind));
        for part in &mut parts {
            part.hint = hints.of(&part.kind).cloned().unwrap_or_default();
            part.distribute();
        }
        let is_shared = parts.iter().any(|part| part.is_shared);
        let isolation = is_shared.then(|| spec.labels.text(ISOLATION_PROVIDER)).flatten();
        let isolation = isolation.filter(|name| !name.is_empty()).map(Name::new);
        let mut made = Self {
            parts,
            hints,
            isolation,
            plain: None,
            weighed: None,
            shared: SharedAllocations::default(),
        };
        made.plain = made.as_plain();
        Ok(Some(made))
    }

    /// Returns the type of devices that a resource is about, if it is about any.
    pub(super) fn kind_of(name: &str) -> Option<DeviceType> {
        match Resource::find(name) {
            Some(RDMA) => Some(DeviceType::Rdma),
            Some(FPGA) => Some(DeviceType::Fpga),
            Some(_) => Some(DeviceType::Gpu),
            None if WHOLE.contains(&name) || [PERCENT, SHARED].contains(&name) => Some(DeviceType::Gpu),
            None => None,
        }
    }

    /// Returns what a pod does not share, by type.
    pub(super) fn exclusives(spec: &PodSpec) -> SmallVec<[(DeviceType, Exclusive); 1]> {
        let Ok(hints) = Hints::read(&spec.annotations) else { return SmallVec::new() };
        let kinds = [DeviceType::Gpu, DeviceType::Rdma, DeviceType::Fpga].into_iter();
        kinds.filter_map(|kind| Some((kind.clone(), hints.of(&kind)?.exclusive?))).collect()
    }
}

/// Requested resources of one type, with their names.
type Wanted<'a> = SmallVec<[(&'a Name, i64); 4]>;

fn percent(name: &Name, amount: i64) -> Result<(), Invalid> {
    match is_percent(amount) {
        true => Ok(()),
        false => Err(Invalid::Unit(name.clone(), amount)),
    }
}

fn is_percent(amount: i64) -> bool {
    amount <= 100 || amount % 100 == 0
}

fn plain(kind: DeviceType, resource: Resource, amount: i64) -> Part {
    let count = (amount / 100).max(1);
    let each = Amounts::of([(resource, amount / count)]);
    Part { kind, each, count: count as usize, is_shared: false, hint: Hint::default() }
}

fn gpus(wanted: &[(&Name, i64)]) -> Result<Part, Invalid> {
    let invalid = || {
        let mut names: Vec<Name> = wanted.iter().map(|(name, _)| (*name).clone()).collect();
        names.sort();
        Invalid::Combination(names)
    };
    if let Some((name, amount)) = wanted.iter().find(|(name, _)| name.as_str() == PERCENT) {
        percent(name, *amount)?;
    }
    if let [(name, amount)] = wanted {
        if WHOLE.contains(&name.as_str()) {
            let amount = amount.saturating_mul(100);
            return Ok(part(Amounts::of([(CORE, amount), (RATIO, amount)]), None));
        }
        if name.as_str() == PERCENT {
            return Ok(part(Amounts::of([(CORE, *amount), (RATIO, *amount)]), None));
        }
    }
    let shared = wanted.iter().find(|(name, _)| name.as_str() == SHARED).map(|(_, count)| *count);
    let mut amounts = Amounts::default();
    for (name, amount) in wanted.iter().filter(|(name, _)| name.as_str() != SHARED) {
        amounts.set(Resource::of(name).ok_or_else(invalid)?, *amount);
    }
    if !is_combination(&amounts, shared.is_some()) {
        return Err(invalid());
    }
    let is_even = |resource| match shared {
        Some(count) => amounts.get(resource) % count == 0 && amounts.get(resource) / count <= 100,
        None => is_percent(amounts.get(resource)),
    };
    if !is_even(CORE) || !is_even(RATIO) || (shared > Some(1) && amounts.has(NPU_CORE)) {
        return Err(invalid());
    }
    Ok(part(amounts, shared))
}

/// Returns whether resources of a GPU go together.
fn is_combination(amounts: &Amounts, is_shared: bool) -> bool {
    let named: SmallVec<[Resource; 8]> = amounts.iter().map(|(resource, _)| resource).collect();
    let valid: &[&[Resource]] = match is_shared {
        true => &[
            &[MEMORY],
            &[RATIO],
            &[CORE, MEMORY],
            &[CORE, RATIO],
            &[MEMORY, NPU_CORE, NPU_CPU],
            &[MEMORY, NPU_CORE, NPU_CPU, NPU_DVPP],
        ],
        false => &[&[MEMORY], &[RATIO], &[CORE, MEMORY], &[CORE, RATIO], &[RATIO, NPU_CORE]],
    };
    valid.contains(&&*named)
}

fn part(amounts: Amounts, shared: Option<i64>) -> Part {
    // A request in bytes is one card's, unless its computing power is that of several.
    let percent = if amounts.has(RATIO) { amounts.get(RATIO) } else { amounts.get(CORE) };
    let count = shared.unwrap_or(percent / 100).max(1);
    let each = amounts.each(count);
    Part {
        kind: DeviceType::Gpu,
        each,
        count: usize::try_from(count).unwrap_or(usize::MAX),
        is_shared: amounts.has(MEMORY) || each.get(RATIO) < 100,
        hint: Hint::default(),
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::requests::{PodRequests, ResourceList};

    use super::*;

    fn read(wanted: &[(&str, i64)]) -> Result<Option<Request>, Invalid> {
        let scalars = wanted.iter().map(|(name, amount)| (Name::new(name), *amount)).collect();
        let list = ResourceList { scalars, ..ResourceList::default() };
        Request::of(&PodSpec {
            requests: PodRequests { list, ..PodRequests::default() },
            ..PodSpec::default()
        })
    }

    /// Returns count, amounts per device, and whether they are shared.
    fn only(wanted: &[(&str, i64)]) -> (usize, Vec<(Resource, i64)>, bool) {
        let request = read(wanted).expect("valid").expect("it requests devices");
        let [part] = &request.parts[..] else { panic!("{request:?}") };
        (part.count, part.each.iter().collect(), part.is_shared)
    }

    #[test]
    fn every_valid_combination_is_translated() {
        let (core, memory, ratio, shared) = (
            "koordinator.sh/gpu-core",
            "koordinator.sh/gpu-memory",
            "koordinator.sh/gpu-memory-ratio",
            SHARED,
        );
        for whole in WHOLE {
            assert_eq!(only(&[(whole, 2)]), (2, vec![(CORE, 100), (RATIO, 100)], false));
        }
        assert_eq!(only(&[(PERCENT, 50)]), (1, vec![(CORE, 50), (RATIO, 50)], true));
        assert_eq!(only(&[(PERCENT, 300)]), (3, vec![(CORE, 100), (RATIO, 100)], false));
        assert_eq!(only(&[(core, 50), (memory, 8)]), (1, vec![(CORE, 50), (MEMORY, 8)], true));
        assert_eq!(only(&[(core, 200), (memory, 8)]), (2, vec![(CORE, 100), (MEMORY, 4)], true));
        assert_eq!(only(&[(core, 200), (ratio, 200)]), (2, vec![(CORE, 100), (RATIO, 100)], false));
        assert_eq!(only(&[(core, 100), (ratio, 200)]), (2, vec![(CORE, 50), (RATIO, 100)], false));
        assert_eq!(only(&[(memory, 8)]), (1, vec![(MEMORY, 8)], true));
        assert_eq!(only(&[(ratio, 20)]), (1, vec![(RATIO, 20)], true));
        assert_eq!(only(&[(shared, 2), (core, 100), (ratio, 60)]), (2, vec![(CORE, 50), (RATIO, 30)], true));
        assert_eq!(only(&[(shared, 2), (memory, 8)]), (2, vec![(MEMORY, 4)], true));
        assert_eq!(only(&[("koordinator.sh/rdma", 300)]), (3, vec![(RDMA, 100)], false));
        assert_eq!(only(&[("koordinator.sh/fpga", 40)]), (1, vec![(FPGA, 40)], false));
        assert_eq!(
            only(&[("huawei.com/npu-core", 4), (ratio, 50)]),
            (1, vec![(RATIO, 50), (NPU_CORE, 4)], true)
        );
        assert_eq!(read(&[("example.com/asic", 1)]), Ok(None));
        assert_eq!(read(&[("nvidia.com/gpu", 0)]), Ok(None));
    }

    #[test]
    fn anything_else_is_refused_with_what_it_combines() {
        let (core, memory, ratio) =
            ("koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio");
        let combination =
            |names: &[&str]| Err(Invalid::Combination(names.iter().map(|name| Name::new(name)).collect()));
        assert_eq!(read(&[(core, 50)]), combination(&[core]));
        assert_eq!(read(&[(SHARED, 2)]), combination(&[SHARED]));
        assert_eq!(read(&[(PERCENT, 50), ("nvidia.com/gpu", 1)]), combination(&[PERCENT, "nvidia.com/gpu"]));
        assert_eq!(read(&[(core, 50), (memory, 1), (ratio, 50)]), combination(&[core, memory, ratio]));
        assert_eq!(read(&[(core, 150), (ratio, 150)]), combination(&[core, ratio]));
        assert_eq!(read(&[(core, 100), (ratio, 100), (SHARED, 3)]), combination(&[core, ratio, SHARED]));
        assert_eq!(read(&[(PERCENT, 250)]), Err(Invalid::Unit(PERCENT.into(), 250)));
        let both = read(&[(PERCENT, 250), ("nvidia.com/gpu", 1)]);
        assert_eq!(
            both,
            Err(Invalid::Unit(PERCENT.into(), 250)),
            "a unit is looked at before the combination"
        );
        assert_eq!(
            read(&[("koordinator.sh/rdma", 150)]),
            Err(Invalid::Unit("koordinator.sh/rdma".into(), 150))
        );
    }
}
