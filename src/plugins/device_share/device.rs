//! Device (`scheduling.koordinator.sh/v1alpha1`): the cards of one node, as koordlet reports them. The object has the
//! node's name.
//!
//! A part that cannot be read is left out and becomes a [`problem`](Device::problems); the rest counts. Not here: what is
//! allocated, which stands on the pods.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pellucid_framework::manifest::{Field, FieldError};
use pellucid_model::selector::Labels;
use pellucid_model::{Name, quantity};
use serde_json::{Value, json};

use super::amounts::{Amounts, Resource};

/// Annotation of a Device: the sets of GPUs that may be allocated together, by size.
const PARTITIONS: &str = "scheduling.koordinator.sh/gpu-partitions";
/// Label of a Device or a Node: whether partitions must be kept.
pub(super) const PARTITION_POLICY: &str = "node.koordinator.sh/gpu-partition-policy";
/// Label of a Device: secondary devices do not take part in the node's score.
const WELL_PLANNED: &str = "node.koordinator.sh/secondary-device-well-planned";
/// Label of a Device or a Node: who made the GPUs.
pub(super) const GPU_VENDOR: &str = "node.koordinator.sh/gpu-vendor";
/// Label of a Device or a Node: the model of the GPUs.
pub(super) const GPU_MODEL: &str = "node.koordinator.sh/gpu-model";
/// Label of a Device or a Node: the version of the GPUs' driver.
const GPU_DRIVER: &str = "node.koordinator.sh/gpu-driver-version";
/// Labels of a Device that its node gets too.
pub(super) const GPU_LABELS: [&str; 3] = [GPU_VENDOR, GPU_MODEL, GPU_DRIVER];
/// Maximum number of devices of one node.
const MAX_DEVICES: usize = 1024;

/// A type of devices. The order is that in which they are allocated.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum DeviceType {
    /// GPUs, and other accelerators with memory.
    Gpu,
    /// RDMA adapters.
    Rdma,
    /// FPGAs.
    Fpga,
    /// Shown, and never requested.
    Other(Name),
}

impl DeviceType {
    /// Reads a type.
    pub(super) fn read(text: &str) -> Self {
        match text {
            "gpu" => Self::Gpu,
            "rdma" => Self::Rdma,
            "fpga" => Self::Fpga,
            other => Self::Other(other.into()),
        }
    }

    /// Returns the type as it is written.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Gpu => "gpu",
            Self::Rdma => "rdma",
            Self::Fpga => "fpga",
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where a device is in its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Topology {
    pub(super) socket: i64,
    /// Number of the NUMA node.
    pub(super) numa: i64,
    pub(super) pcie: Name,
    pub(super) bus: Name,
}

/// A virtual function of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VirtualFunction {
    pub(super) minor: i64,
    /// Bus address, by which it is known among those of its device.
    pub(super) bus: Name,
}

/// Virtual functions with equal labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VfGroup {
    pub(super) labels: Labels,
    pub(super) functions: Vec<VirtualFunction>,
}

/// A condition of a device, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

/// One device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DeviceInfo {
    pub(super) kind: DeviceType,
    pub(super) minor: i64,
    pub(super) id: Name,
    pub(super) healthy: bool,
    pub(super) resources: Amounts,
    /// Resources that no pod can request of a device. They are shown alone.
    pub(super) others: Vec<(Name, i64)>,
    pub(super) labels: Labels,
    pub(super) topology: Option<Topology>,
    pub(super) vf_groups: Vec<VfGroup>,
    pub(super) conditions: Vec<Condition>,
}

/// GPUs that may be allocated together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    pub(super) minors: Vec<i64>,
    /// Entries with the least score are taken first, as Koordinator does.
    pub(super) score: i64,
    /// Ring bus bandwidth in bytes per second, 0 when it is not given.
    pub(super) bandwidth: i64,
}

/// Entries by number of GPUs.
pub(super) type PartitionTable = BTreeMap<usize, Vec<Partition>>;

/// Whether the partition table of a node must be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartitionPolicy {
    /// Pods that want whole GPUs get an entry of the table, or nothing.
    Honor,
    /// An entry is taken where one is free.
    Prefer,
}

impl PartitionPolicy {
    /// Reads a policy; `None` when there is no such policy.
    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "Honor" => Some(Self::Honor),
            "Prefer" => Some(Self::Prefer),
            _ => None,
        }
    }
}

/// The devices of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// By type, then minor; each pair once.
    pub(super) devices: Vec<DeviceInfo>,
    pub(super) partitions: Option<PartitionTable>,
    pub(super) policy: Option<PartitionPolicy>,
    pub(super) is_well_planned: bool,
    /// Those of [`GPU_LABELS`] that it has.
    pub(super) gpu_labels: Labels,
    /// What cannot be read, and what contradicts itself.
    pub(super) problems: Vec<FieldError>,
    /// The parts of the manifest that are read, as JSON.
    source: Box<str>,
}

impl Device {
    /// Decodes a manifest. Fails when `metadata` or `spec` are no objects or `spec.devices` is no list.
    pub fn read(manifest: &Value) -> Result<Self, FieldError> {
        let root = Field::root(manifest);
        let metadata = root.get("metadata")?;
        let (labels, annotations) = (metadata.get("labels")?, metadata.get("annotations")?);
        let spec = root.at(&["spec", "devices"])?;
        let mut made = Self {
            devices: Vec::new(),
            partitions: None,
            policy: None,
            is_well_planned: labels.get(WELL_PLANNED)?.text()? == Some("true"),
            gpu_labels: Labels::default(),
            problems: Vec::new(),
            source: source(manifest),
        };
        let mut own = Vec::new();
        for key in GPU_LABELS {
            own.extend(labels.get(key)?.text()?.map(|text| (key.into(), text.into())));
        }
        made.gpu_labels = Labels::new(own);
        let policy = labels.get(PARTITION_POLICY)?;
        if let Some(text) = policy.text()?.filter(|text| !text.is_empty()) {
            made.policy = PartitionPolicy::read(text);
            if made.policy.is_none() {
                made.problems.push(policy.error("must be Honor or Prefer; it counts as Prefer"));
            }
        }
        match within(&annotations.get(PARTITIONS)?, partitions) {
            Ok(read) => made.partitions = read,
            Err(problem) => made.problems.push(problem),
        }
        made.read_devices(&spec)?;
        Ok(made)
    }

    fn read_devices(&mut self, spec: &Field<'_>) -> Result<(), FieldError> {
        let mut known = BTreeSet::new();
        for field in spec.elements()? {
            if self.devices.len() == MAX_DEVICES {
                self.problems.push(spec.error(format_args!("only the first {MAX_DEVICES} devices count")));
                break;
            }
            match device(&field, &mut self.problems) {
                Ok(device) if known.insert((device.kind.clone(), device.minor)) => self.devices.push(device),
                Ok(device) => {
                    let problem =
                        format!("{} {} is there already; this one does not count", device.kind, device.minor);
                    self.problems.push(field.error(problem));
                }
                Err(problem) => self.problems.push(problem),
            }
        }
        self.devices.sort_by(|a, b| (&a.kind, a.minor).cmp(&(&b.kind, b.minor)));
        Ok(())
    }

    /// Returns the device of a type with a minor.
    pub(super) fn find(&self, kind: &DeviceType, minor: i64) -> Option<&DeviceInfo> {
        let at = self.devices.binary_search_by(|info| (&info.kind, info.minor).cmp(&(kind, minor))).ok()?;
        self.devices.get(at)
    }

    /// Writes the manifest that [`Self::read`] reads alike.
    pub fn manifest(&self) -> Value {
        serde_json::from_str(&self.source).unwrap_or_default()
    }
}

/// Returns the parts of a manifest that are read.
fn source(manifest: &Value) -> Box<str> {
    let metadata = &manifest["metadata"];
    let only = |part: &str, keys: &[&str]| match &metadata[part] {
        Value::Object(all) => Value::Object(
            keys.iter().filter_map(|key| Some(((*key).to_owned(), all.get(*key)?.clone()))).collect(),
        ),
        other => other.clone(),
    };
    let kept = json!({
        "metadata": {
            "labels": only("labels", &[&[PARTITION_POLICY, WELL_PLANNED][..], &GPU_LABELS].concat()),
            "annotations": only("annotations", &[PARTITIONS]),
        },
        "spec": {"devices": manifest["spec"]["devices"]},
    });
    kept.to_string().into()
}

fn device(field: &Field<'_>, problems: &mut Vec<FieldError>) -> Result<DeviceInfo, FieldError> {
    let kind = field.get("type")?;
    let kind_text =
        kind.text()?.filter(|text| !text.is_empty()).ok_or_else(|| kind.error("must be given"))?;
    let minor = field.get("minor")?;
    let number = minor.integer()?.unwrap_or(0);
    if number < 0 {
        return Err(minor.error("must not be negative"));
    }
    let (mut resources, mut others) = (Amounts::default(), Vec::new());
    for (name, entry) in field.get("resources")?.entries()? {
        let amount = entry.quantity(name)?.unwrap_or(0);
        if amount < 0 {
            problems.push(entry.error("must not be negative; it counts as 0"));
        }
        match Resource::find(name) {
            Some(resource) => resources.set(resource, amount.max(0)),
            None => others.push((name.into(), amount.max(0))),
        }
    }
    let place = field.get("topology")?;
    let topology = match place.is_absent() {
        true => None,
        false => Some(Topology {
            socket: place.get("socketID")?.integer()?.unwrap_or(-1),
            numa: place.get("nodeID")?.integer()?.unwrap_or(-1),
            pcie: place.get("pcieID")?.text()?.unwrap_or_default().into(),
            bus: place.get("busID")?.text()?.unwrap_or_default().into(),
        }),
    };
    let words = |field: &Field<'_>, name| {
        Ok::<_, FieldError>(field.get(name)?.text()?.unwrap_or_default().to_owned())
    };
    let condition = |field: Field<'_>| {
        Ok(Condition {
            kind: words(&field, "type")?,
            status: words(&field, "status")?,
            reason: words(&field, "reason")?,
            message: words(&field, "message")?,
        })
    };
    let conditions = field.get("conditions")?.elements()?.into_iter().map(condition);
    // They are for people, so the device counts without them.
    let conditions = conditions.collect::<Result<_, FieldError>>().unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    Ok(DeviceInfo {
        kind: DeviceType::read(kind_text),
        minor: number,
        id: field.get("id")?.text()?.unwrap_or_default().into(),
        healthy: field.get("health")?.boolean()?.unwrap_or(false),
        resources,
        others,
        labels: labels(&field.get("labels")?)?,
        topology,
        vf_groups: field.get("vfGroups")?.elements()?.iter().map(vf_group).collect::<Result<_, _>>()?,
        conditions,
    })
}

fn vf_group(field: &Field<'_>) -> Result<VfGroup, FieldError> {
    let function = |field: Field<'_>| {
        Ok(VirtualFunction {
            minor: field.get("minor")?.integer()?.unwrap_or(0),
            bus: field.get("busID")?.text()?.unwrap_or_default().into(),
        })
    };
    let functions = field.get("vfs")?.elements()?.into_iter().map(function);
    let mut functions = functions.collect::<Result<Vec<_>, FieldError>>()?;
    functions.sort_by(|a, b| (a.minor, &a.bus).cmp(&(b.minor, &b.bus)));
    Ok(VfGroup { labels: labels(&field.get("labels")?)?, functions })
}

fn labels(field: &Field<'_>) -> Result<Labels, FieldError> {
    let pair = |(key, value): (&str, Field<'_>)| Ok((key.into(), value.text()?.unwrap_or_default().into()));
    let pairs = field.entries()?.into_iter().map(pair).collect::<Result<Vec<_>, FieldError>>()?;
    Ok(Labels::new(pairs))
}

fn partitions(field: &Field<'_>) -> Result<PartitionTable, FieldError> {
    let mut table = PartitionTable::new();
    for (size, entries) in field.entries()? {
        let number = size.parse().map_err(|_| field.error(format_args!("{size:?} is no number of GPUs")))?;
        let mut all = entries.elements()?.iter().map(partition).collect::<Result<Vec<_>, _>>()?;
        all.sort_by_key(|partition| partition.score);
        if let Some(odd) = all.iter().find(|partition| partition.minors.len() != number) {
            return Err(field.error(format_args!("{:?} are not {number} GPUs", odd.minors)));
        }
        table.insert(number, all);
    }
    Ok(table)
}

fn partition(field: &Field<'_>) -> Result<Partition, FieldError> {
    let minor = |field: Field<'_>| field.integer()?.ok_or_else(|| field.error("must be a number"));
    let mut minors =
        field.get("minors")?.elements()?.into_iter().map(minor).collect::<Result<Vec<_>, _>>()?;
    minors.sort_unstable();
    minors.dedup();
    let bandwidth = field.get("ringBusBandwidth")?.quantity("ringBusBandwidth")?.unwrap_or(0);
    Ok(Partition { minors, score: field.get("allocationScore")?.integer()?.unwrap_or(0), bandwidth })
}

/// Returns the table of a GPU model whose partitions follow from its links, for nodes without a table.
pub(super) fn built_in_partitions(model: &str) -> Option<PartitionTable> {
    // Eight GPUs behind one switch, joined in pairs, fours and as a whole.
    let is_hopper = ["H100", "H800", "H20"].contains(&model);
    let of_size = |size: usize| {
        let first = (0..8).step_by(size);
        let set = |first: usize| (first..first + size).map(|minor| minor as i64).collect();
        let entries = first.map(|at| Partition { minors: set(at), score: 1, bandwidth: 0 });
        (size, entries.collect())
    };
    is_hopper.then(|| [1, 2, 4, 8].map(of_size).into())
}

/// Reads JSON that stands as text in an annotation; `None` when the annotation is absent or empty. Fails with the
/// annotation as a whole.
pub(super) fn within<T>(
    annotation: &Field<'_>,
    read: impl FnOnce(&Field<'_>) -> Result<T, FieldError>,
) -> Result<Option<T>, FieldError> {
    let Some(text) = annotation.text()?.filter(|text| !text.is_empty()) else { return Ok(None) };
    read_json(text, read).map(Some).map_err(|problem| annotation.error(problem))
}

/// Reads JSON text. Fails with what is wrong in it.
pub(super) fn read_json<T>(
    text: &str,
    read: impl FnOnce(&Field<'_>) -> Result<T, FieldError>,
) -> Result<T, String> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("not JSON: {e}"))?;
    let of = |inner: FieldError| match inner.field.is_empty() {
        true => inner.problem,
        false => format!("{}: {} ({})", inner.field, inner.problem, inner.value),
    };
    read(&Field::root(&value)).map_err(of)
}

/// Reads a quantity in whole units, such as a bandwidth.
pub(super) fn units(field: &Field<'_>) -> Result<i64, FieldError> {
    let text = field.text()?.filter(|text| !text.is_empty());
    let read = text.map(|text| quantity::units(text).map_err(|e| field.error(e.problem)));
    Ok(read.transpose()?.unwrap_or(0))
}
