//! What a pod's annotations say about the devices it wants: `device-allocate-hint`, `device-joint-allocate` and
//! `gpu-partition-spec`.

use pellucid_framework::manifest::{Field, FieldError};
use pellucid_model::selector::{LabelSelector, Labels};
use smallvec::SmallVec;

use super::device::{DeviceType, read_json, units};

/// Annotation of a pod: which devices of a type it takes.
pub(super) const ALLOCATE_HINT: &str = "scheduling.koordinator.sh/device-allocate-hint";
/// Annotation of a pod: which types are allocated beside each other.
pub(super) const JOINT_ALLOCATE: &str = "scheduling.koordinator.sh/device-joint-allocate";
/// Annotation of a pod: it takes an entry of the partition table.
pub(super) const PARTITION_SPEC: &str = "scheduling.koordinator.sh/gpu-partition-spec";

/// Label of pods and nodes: what keeps the shares of a GPU apart, such as `HAMi-core`.
pub(super) const ISOLATION_PROVIDER: &str = "koordinator.sh/gpu-isolation-provider";

/// How a request for RDMA or FPGAs is distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Strategy {
    /// As many devices as the amount fills.
    #[default]
    ByAmount,
    /// The amount of every device that is selected.
    ApplyForAll,
    /// The amount is the number of devices.
    RequestsAsCount,
}

/// A scope within which all GPUs of a pod must lie, from narrow to wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Device,
    Pcie,
    NumaNode,
    Node,
}

/// What a pod does not share with other pods that say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exclusive {
    /// The device.
    Device,
    /// The PCIe switch.
    Pcie,
}

/// Which devices of a type a pod takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hint {
    /// By the labels of the device.
    pub(super) selector: Option<LabelSelector>,
    /// A virtual function is taken, by the labels of its group.
    pub(super) functions: Option<LabelSelector>,
    pub(super) strategy: Strategy,
    pub(super) scope: Option<Scope>,
    pub(super) exclusive: Option<Exclusive>,
}

impl Hint {
    /// Returns whether it says nothing.
    #[inline]
    pub(super) fn is_default(&self) -> bool {
        let Self { selector, functions, strategy, scope, exclusive } = self;
        selector.is_none()
            && functions.is_none()
            && *strategy == Strategy::default()
            && scope.is_none()
            && exclusive.is_none()
    }
}

/// Types that are allocated beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Joint {
    /// The first is allocated first, and the others near it.
    pub(super) types: SmallVec<[DeviceType; 2]>,
    /// Whether all must be on the same PCIe switches.
    pub(super) same_pcie: bool,
}

/// Which entries of the partition table a pod takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionSpec {
    /// Least ring bus bandwidth, in bytes per second.
    pub(super) bandwidth: i64,
    /// Whether only those with the least allocation score of their size will do, which are the best.
    pub(super) is_restricted: bool,
}

/// What the annotations of a pod say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hints {
    by_type: Vec<(DeviceType, Hint)>,
    pub(super) joint: Option<Joint>,
    /// `None` when the pod asks for no partition.
    pub(super) partition: Option<PartitionSpec>,
}

/// An annotation that cannot be read: the key, and what is wrong.
pub(super) type Unreadable = (&'static str, String);

impl Hints {
    /// Reads the annotations of a pod. Fails with the first that cannot be read.
    pub(super) fn read(annotations: &Labels) -> Result<Self, Unreadable> {
        let mut made = Self::default();
        made.read_own(annotations)?;
        Ok(made)
    }

    fn read_own(&mut self, annotations: &Labels) -> Result<(), Unreadable> {
        if let Some(all) = value(annotations, ALLOCATE_HINT, by_type)? {
            self.by_type = all;
        }
        self.joint = value(annotations, JOINT_ALLOCATE, joint)?.flatten();
        self.partition = value(annotations, PARTITION_SPEC, partition)?;
        Ok(())
    }

    /// Takes the types out of the joint allocation that a pod does not request, and those of which it takes all devices,
    /// which are near nothing. The first that is left is allocated first.
    pub(super) fn join_only(&mut self, is_requested: impl Fn(&DeviceType) -> bool) {
        let Some(joint) = &mut self.joint else { return };
        let takes_all = |(_, hint): &(DeviceType, Hint)| hint.strategy == Strategy::ApplyForAll;
        let all: SmallVec<[&DeviceType; 2]> =
            self.by_type.iter().filter(|known| takes_all(known)).map(|(kind, _)| kind).collect();
        joint.types.retain(|kind| is_requested(kind) && !all.contains(&&*kind));
        if joint.types.is_empty() {
            self.joint = None;
        }
    }

    /// Returns the hint about a type.
    pub(super) fn of(&self, kind: &DeviceType) -> Option<&Hint> {
        self.by_type.iter().find(|(known, _)| known == kind).map(|(_, hint)| hint)
    }
}

fn value<T>(
    annotations: &Labels,
    key: &'static str,
    read: impl FnOnce(&Field<'_>) -> Result<T, FieldError>,
) -> Result<Option<T>, Unreadable> {
    let text = annotations.text(key).filter(|text| !text.is_empty());
    text.map(|text| read_json(text, read).map_err(|problem| (key, problem))).transpose()
}

fn by_type(field: &Field<'_>) -> Result<Vec<(DeviceType, Hint)>, FieldError> {
    field.entries()?.into_iter().map(|(kind, field)| Ok((DeviceType::read(kind), hint(&field)?))).collect()
}

fn hint(field: &Field<'_>) -> Result<Hint, FieldError> {
    let strategy = one_of(
        &field.get("allocateStrategy")?,
        &[("ApplyForAll", Strategy::ApplyForAll), ("RequestsAsCount", Strategy::RequestsAsCount)],
    )?;
    let scopes = [
        ("Device", Scope::Device),
        ("PCIe", Scope::Pcie),
        ("NUMANode", Scope::NumaNode),
        ("Node", Scope::Node),
    ];
    let exclusive = [("DeviceLevel", Exclusive::Device), ("PCIeLevel", Exclusive::Pcie)];
    Ok(Hint {
        selector: field.get("selector")?.selector()?,
        functions: field.get("vfSelector")?.selector()?,
        strategy: strategy.unwrap_or_default(),
        scope: one_of(&field.get("requiredTopologyScope")?, &scopes)?,
        exclusive: one_of(&field.get("exclusivePolicy")?, &exclusive)?,
    })
}

/// Reads one of some words; `None` when the field is absent or empty.
fn one_of<T: Copy>(field: &Field<'_>, words: &[(&str, T)]) -> Result<Option<T>, FieldError> {
    let Some(text) = field.text()?.filter(|text| !text.is_empty()) else { return Ok(None) };
    let known = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    known.map(Some).ok_or_else(|| field.error(format_args!("must be one of {}", all.join(", "))))
}

fn joint(field: &Field<'_>) -> Result<Option<Joint>, FieldError> {
    let kind = |field: Field<'_>| Ok(DeviceType::read(field.text()?.unwrap_or_default()));
    let types = field.get("deviceTypes")?.elements()?.into_iter().map(kind);
    let types = types.collect::<Result<SmallVec<_>, FieldError>>()?;
    let same_pcie = one_of(&field.get("requiredScope")?, &[("SamePCIe", true)])?.unwrap_or(false);
    Ok((!types.is_empty()).then_some(Joint { types, same_pcie }))
}

fn partition(field: &Field<'_>) -> Result<PartitionSpec, FieldError> {
    // Both policies demand an entry of the table from a node that has none.
    let policy = one_of(&field.get("allocatePolicy")?, &[("Restricted", true), ("BestEffort", false)])?;
    let bandwidth = units(&field.get("ringBusBandwidth")?)?;
    Ok(PartitionSpec { bandwidth, is_restricted: policy.unwrap_or(false) })
}
