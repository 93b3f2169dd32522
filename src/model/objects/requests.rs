//! Resource requests of pods and amounts of nodes, as integers: CPU in thousandths of a core, the rest in units (memory
//! and ephemeral storage in bytes).

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::collections::FxHashMap;

/// CPU that scoring assumes for a container without a CPU request (kube-scheduler's
/// `DefaultMilliCPURequest`), in thousandths of a core.
pub const DEFAULT_MILLI_CPU: i64 = 100;
/// Memory that scoring assumes for a container without a memory request (kube-scheduler's
/// `DefaultMemoryRequest`), in bytes.
pub const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts of resources, requested or allocatable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ResourceList {
    /// CPU, in thousandths of a core.
    pub milli_cpu: i64,
    /// Memory, in bytes.
    pub memory: i64,
    /// Ephemeral storage, in bytes.
    pub ephemeral_storage: i64,
    /// Number of pods; only nodes have one.
    pub pods: i64,
    /// Extended resources, huge pages and attachable volumes, sorted by name; zero amounts are included.
    pub scalars: Box<[(Name, i64)]>,
}

/// Names of the amounts that are fields. They are asked for at every attempt, so they are not looked up by text.
static FIXED: LazyLock<[Name; 3]> = LazyLock::new(|| ["cpu", "memory", "ephemeral-storage"].map(Name::new));

impl ResourceList {
    /// Iterates over the positive amounts: CPU, memory, ephemeral storage, then scalar resources by name.
    #[inline]
    pub fn named(&self) -> impl Iterator<Item = (Name, i64)> {
        let fixed = FIXED.iter().zip([self.milli_cpu, self.memory, self.ephemeral_storage]);
        let fixed = fixed.filter(|(_, amount)| *amount > 0);
        let scalars = self.scalars.iter().filter(|(_, amount)| *amount > 0);
        fixed.map(|(name, amount)| (name.clone(), amount)).chain(scalars.cloned())
    }

    /// Returns the amount of a resource by name, 0 when absent. `pods` is none of them.
    #[inline]
    pub fn amount(&self, name: &Name) -> i64 {
        match name.as_str() {
            "cpu" => self.milli_cpu,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral_storage,
            _ => self.scalar(name),
        }
    }

    /// Returns the amount of a scalar resource, 0 when absent.
    #[inline]
    pub fn scalar(&self, name: &Name) -> i64 {
        self.scalars.iter().find(|(n, _)| n == name).map_or(0, |(_, amount)| *amount)
    }
}

/// Amounts as they are written, in thousandths: what several containers request is added up before it is rounded.
pub type Exact = Vec<(Name, i128)>;

/// Returns an exact amount in the model's unit: rounded away from zero and capped at the largest 64-bit value.
pub fn rounded(name: &str, thousandths: i128) -> i64 {
    let each = if name == "cpu" { 1 } else { 1000 };
    let up = thousandths / each + (thousandths % each).signum();
    i64::try_from(up).unwrap_or(if up < 0 { i64::MIN } else { i64::MAX })
}

/// The requests of one container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerRequests {
    /// Amounts by resource name. For in-place resize the decoder has already taken the maximum of spec, allocated and
    /// actual amounts.
    pub amounts: Exact,
    /// Whether it is an init container with `restartPolicy: Always` (a sidecar).
    pub is_sidecar: bool,
}

impl ContainerRequests {
    /// Makes the requests of a container that is no sidecar. The amounts are in the model's units: thousandths for `cpu`,
    /// whole units for the rest.
    pub fn of(amounts: Vec<(Name, i64)>) -> Self {
        let amounts = amounts.into_iter().map(|(name, amount)| {
            let each = if &*name == "cpu" { 1 } else { 1000 };
            (name, i128::from(amount) * each)
        });
        Self { amounts: amounts.collect(), is_sidecar: false }
    }
}

/// The parts of a pod from which its requests are computed.
#[derive(Clone, Debug, Default)]
pub struct RequestInputs {
    /// `spec.containers`.
    pub containers: Vec<ContainerRequests>,
    /// `spec.initContainers`, in order.
    pub init_containers: Vec<ContainerRequests>,
    /// `spec.overhead`.
    pub overhead: Exact,
    /// `spec.resources.requests`, which override the containers for the resources they name.
    pub pod_level: Exact,
}

impl RequestInputs {
    /// Returns what the pod requests of each resource, not rounded.
    pub fn sums(&self) -> Exact {
        aggregate(self, &[], true).into_iter().collect()
    }
}

/// The requests of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PodRequests {
    /// Amounts; `pods` is unused.
    pub list: ResourceList,
    /// CPU for scoring: a container without a request counts as [`DEFAULT_MILLI_CPU`]. In a pod with requests as a whole
    /// it does so if neither the pod nor any container requests CPU.
    pub non_zero_milli_cpu: i64,
    /// Memory for scoring, likewise: a container without a request counts as [`DEFAULT_MEMORY`].
    pub non_zero_memory: i64,
    /// Of a pod with requests as a whole, what its containers request, with the defaults for scoring. NodeResourcesFit
    /// scores the pod by it while it is placed.
    pub by_containers: Option<Box<ResourceList>>,
}

impl PodRequests {
    /// Returns these requests without those in `given`, which are part of them; `pods` is taken over from `given`.
    #[must_use]
    pub fn less(&self, given: &Self) -> Self {
        let (own, part) = (&self.list, &given.list);
        let scalars = own.scalars.iter();
        Self {
            list: ResourceList {
                milli_cpu: own.milli_cpu - part.milli_cpu,
                memory: own.memory - part.memory,
                ephemeral_storage: own.ephemeral_storage - part.ephemeral_storage,
                pods: part.pods,
                scalars: scalars.map(|(name, amount)| (name.clone(), amount - part.scalar(name))).collect(),
            },
            non_zero_milli_cpu: self.non_zero_milli_cpu - given.non_zero_milli_cpu,
            non_zero_memory: self.non_zero_memory - given.non_zero_memory,
            by_containers: self.by_containers.clone(),
        }
    }

    /// Computes the requests of a pod. Per resource it takes the larger of two sums, the containers with all sidecars
    /// and the peak of the init sequence, and adds overhead. Pod-level requests replace the larger sum for the
    /// resources they name (KEP-2837); overhead is added to them as well.
    pub fn compute(inputs: &RequestInputs) -> Self {
        let real = aggregate(inputs, &[], true);
        let mut defaults =
            vec![("cpu", i128::from(DEFAULT_MILLI_CPU)), ("memory", i128::from(DEFAULT_MEMORY) * 1000)];
        let has_pod_level = !inputs.pod_level.is_empty();
        let by_containers =
            has_pod_level.then(|| Box::new(resource_list(&aggregate(inputs, &defaults, false))));
        if has_pod_level {
            defaults.retain(|(name, _)| !real.contains_key(&Name::new(name)));
        }
        let non_zero = aggregate(inputs, &defaults, true);
        let amount = |name: &str| rounded(name, non_zero.get(&Name::new(name)).copied().unwrap_or(0));
        Self {
            list: resource_list(&real),
            non_zero_milli_cpu: amount("cpu"),
            non_zero_memory: amount("memory"),
            by_containers,
        }
    }
}

/// Rounds sums to a list; `pods` is unused.
fn resource_list(sums: &FxHashMap<Name, i128>) -> ResourceList {
    let amount = |name: &str| rounded(name, sums.get(&Name::new(name)).copied().unwrap_or(0));
    let is_scalar = |name: &Name| !matches!(&**name, "cpu" | "memory" | "ephemeral-storage" | "pods");
    let scalars = sums.iter().filter(|(name, _)| is_scalar(name));
    let mut scalars: Vec<(Name, i64)> =
        scalars.map(|(name, amount)| (name.clone(), rounded(name, *amount))).collect();
    scalars.sort();
    ResourceList {
        milli_cpu: amount("cpu"),
        memory: amount("memory"),
        ephemeral_storage: amount("ephemeral-storage"),
        pods: 0,
        scalars: scalars.into(),
    }
}

/// Adds up containers, with an amount for each that does not name a resource of `defaults`, requests as a whole, and overhead.
fn aggregate(inputs: &RequestInputs, defaults: &[(&str, i128)], pod_level: bool) -> FxHashMap<Name, i128> {
    let amounts_of = |container: &ContainerRequests| {
        let mut amounts = container.amounts.clone();
        for (name, default) in defaults {
            if !amounts.iter().any(|(n, _)| &**n == *name) {
                amounts.push(((*name).into(), *default));
            }
        }
        amounts
    };
    let mut total = FxHashMap::default();
    for container in &inputs.containers {
        add(&mut total, &amounts_of(container));
    }
    let mut sidecars = FxHashMap::default();
    let mut peak = FxHashMap::default();
    for container in &inputs.init_containers {
        let own = amounts_of(container);
        let mut step = sidecars.clone();
        add(&mut step, &own);
        raise(&mut peak, &step);
        if container.is_sidecar {
            add(&mut total, &own);
            sidecars = step;
        }
    }
    raise(&mut total, &peak);
    for (name, amount) in inputs.pod_level.iter().filter(|_| pod_level) {
        total.insert(name.clone(), *amount);
    }
    add(&mut total, &inputs.overhead);
    total
}

fn add(total: &mut FxHashMap<Name, i128>, amounts: &[(Name, i128)]) {
    for (name, amount) in amounts {
        let entry = total.entry(name.clone()).or_insert(0);
        *entry = entry.saturating_add(*amount);
    }
}

fn raise(total: &mut FxHashMap<Name, i128>, other: &FxHashMap<Name, i128>) {
    for (name, amount) in other {
        let entry = total.entry(name.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(cpu: i64, memory: i64, is_sidecar: bool) -> ContainerRequests {
        let own = ContainerRequests::of(vec![("cpu".into(), cpu), ("memory".into(), memory)]);
        ContainerRequests { is_sidecar, ..own }
    }

    fn cpu_and_memory(inputs: &RequestInputs) -> (i64, i64) {
        let list = PodRequests::compute(inputs).list;
        (list.milli_cpu, list.memory)
    }

    #[test]
    fn containers_add_up_and_init_containers_peak() {
        let mut inputs = RequestInputs {
            containers: vec![container(100, 10, false), container(200, 20, false)],
            init_containers: vec![container(250, 100, false)],
            ..Default::default()
        };
        assert_eq!(cpu_and_memory(&inputs), (300, 100));
        inputs.overhead = vec![("cpu".into(), 7)];
        assert_eq!(cpu_and_memory(&inputs), (307, 100));
    }

    #[test]
    fn sidecars_run_beside_later_init_containers_and_containers() {
        let inputs = RequestInputs {
            containers: vec![container(100, 10, false)],
            init_containers: vec![container(50, 5, true), container(500, 1, false), container(60, 6, true)],
            ..Default::default()
        };
        // CPU: the init sequence peaks at 50 + 500, above the running 100 + 50 + 60. Memory: the running 21 is above
        // the peak.
        assert_eq!(cpu_and_memory(&inputs), (550, 21));
    }

    #[test]
    fn pod_level_requests_replace_what_they_name() {
        let inputs = RequestInputs {
            containers: vec![container(100, 10, false)],
            overhead: vec![("cpu".into(), 1)],
            pod_level: vec![("cpu".into(), 40)],
            ..Default::default()
        };
        assert_eq!(cpu_and_memory(&inputs), (41, 10));
    }

    #[test]
    fn scoring_counts_containers_without_requests() {
        let inputs = RequestInputs {
            containers: vec![ContainerRequests::default(), container(0, 0, false)],
            ..Default::default()
        };
        let requests = PodRequests::compute(&inputs);
        assert_eq!(requests.list, ResourceList::default());
        assert_eq!(
            (requests.non_zero_milli_cpu, requests.non_zero_memory),
            (DEFAULT_MILLI_CPU, DEFAULT_MEMORY)
        );
    }
}
