//! Resource amounts for scoring: the resources that count, and how much of each a pod and the pods of a node request.

use pellucid_cluster::ResourceIdx;
use pellucid_cluster::columns::{CPU, ColumnPage, EPHEMERAL_STORAGE, MEMORY, MOST};
use pellucid_framework::View;
use pellucid_model::pages::PAGE;
use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::{Name, NodeIdx, PodSpec};
use serde_json::{Value, json};
use smallvec::SmallVec;

use pellucid_framework::args::{Problems, field, is_qualified_name};

/// A resource considered by a score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoredResource {
    /// Name of the resource.
    pub name: Name,
    /// Weight relative to the other resources.
    pub weight: i64,
}

/// Returns CPU and memory with equal weight, kube-scheduler's default.
pub fn cpu_and_memory() -> Vec<ScoredResource> {
    ["cpu", "memory"].map(|name| ScoredResource { name: name.into(), weight: 1 }).to_vec()
}

/// Parses `resources: [{name, weight}]`; returns CPU and memory when the list is absent or empty. A weight of 0 or an
/// absent weight means 1.
pub fn read_resources(problems: &mut Problems, path: &str, value: &Value) -> Vec<ScoredResource> {
    let mut all = Vec::new();
    for (i, element) in problems.list(path, value).iter().enumerate() {
        let at = format!("{path}[{i}]");
        let Some(fields) = problems.object(&at, element, &["name", "weight"]) else {
            if element.is_null() {
                problems.add(at, "must be an object", element);
            }
            continue;
        };
        let name = problems.text(&format!("{at}.name"), field(fields, "name")).unwrap_or("");
        if !is_qualified_name(name) {
            problems.add(format!("{at}.name"), "must be the name of a resource", field(fields, "name"));
        }
        let weight = problems.integer(&format!("{at}.weight"), field(fields, "weight")).unwrap_or(0);
        all.push(ScoredResource { name: name.into(), weight: if weight == 0 { 1 } else { weight } });
    }
    if all.is_empty() { cpu_and_memory() } else { all }
}

/// Returns the resources in the form of the plugin arguments.
pub fn show_resources(resources: &[ScoredResource]) -> Value {
    resources.iter().map(|r| json!({"name": r.name.as_str(), "weight": r.weight})).collect()
}

/// How CPU and memory requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// A container without a request counts as 100m CPU and 200 MiB, and what a pod requests as a whole does not count.
    WithDefaults,
    /// Requests count as declared.
    Real,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Used {
    Column,
    NonZeroCpu,
    NonZeroMemory,
}

/// A resource of a score, resolved for one pod.
#[derive(Clone, Copy, Debug)]
pub struct Scored {
    resource: ResourceIdx,
    used: Used,
    /// Amount the pod requests, as columns count it.
    pub pod: i64,
    /// Weight relative to the other resources.
    pub weight: i64,
}

impl Scored {
    /// Returns how requests are counted, if this is CPU or memory, as asked.
    pub(crate) fn counting_of(&self, resource: ResourceIdx) -> Option<Counting> {
        let counting = if self.used == Used::Column { Counting::Real } else { Counting::WithDefaults };
        (self.resource == resource).then_some(counting)
    }

    /// Returns the allocatable and the requested amounts of the nodes of a page.
    #[inline(always)]
    pub fn amounts<'a>(&self, page: &'a ColumnPage) -> (&'a [i64; PAGE], &'a [i64; PAGE]) {
        let column = page.resource(self.resource);
        let used = match self.used {
            Used::Column => &column.requested,
            Used::NonZeroCpu => &page.non_zero_cpu,
            Used::NonZeroMemory => &page.non_zero_memory,
        };
        (&column.allocatable, used)
    }
}

/// The resources of a score, resolved for one pod. A resource that no node offers is left out.
#[derive(Clone, Debug)]
pub struct ScoredSet {
    all: SmallVec<[Scored; 4]>,
    /// Whether a resource name was unknown. It may become known before the next call.
    has_unknown: bool,
}

impl ScoredSet {
    /// Resolves resource names to columns. Skips scalar resources that the pod does not request.
    pub fn resolve(view: View<'_>, resources: &[ScoredResource], spec: &PodSpec, counting: Counting) -> Self {
        let mut set = Self { all: SmallVec::new(), has_unknown: false };
        for ScoredResource { name, weight } in resources {
            let with_defaults = counting == Counting::WithDefaults;
            let (resource, used) = match &**name {
                "cpu" if with_defaults => (Some(CPU), Used::NonZeroCpu),
                "memory" if with_defaults => (Some(MEMORY), Used::NonZeroMemory),
                "cpu" => (Some(CPU), Used::Column),
                "memory" => (Some(MEMORY), Used::Column),
                "ephemeral-storage" => (Some(EPHEMERAL_STORAGE), Used::Column),
                scalar if is_scalar(scalar) && pod_amount(&spec.requests, name, counting) != 0 => {
                    (view.columns().find(name), Used::Column)
                }
                _ => continue,
            };
            let pod = pod_amount(&spec.requests, name, counting).clamp(-MOST, MOST);
            match resource {
                Some(resource) => set.all.push(Scored { resource, used, pod, weight: *weight }),
                None => set.has_unknown = true,
            }
        }
        set
    }

    /// Returns the resources that the cluster knows.
    pub fn all(&self) -> &[Scored] {
        &self.all
    }

    /// Returns whether a resource name was unknown when the set was resolved.
    pub fn has_unknown(&self) -> bool {
        self.has_unknown
    }
}

/// Returns how much of a resource a pod requests.
pub fn pod_amount(requests: &PodRequests, name: &Name, counting: Counting) -> i64 {
    match (&**name, counting) {
        (_, Counting::WithDefaults) if let Some(own) = &requests.by_containers => amount(own, name),
        ("cpu", Counting::WithDefaults) => requests.non_zero_milli_cpu,
        ("memory", Counting::WithDefaults) => requests.non_zero_memory,
        _ => amount(&requests.list, name),
    }
}

/// Returns the amount of a resource in a list, 0 when absent.
pub fn amount(list: &ResourceList, name: &str) -> i64 {
    match name {
        "cpu" => list.milli_cpu,
        "memory" => list.memory,
        "ephemeral-storage" => list.ephemeral_storage,
        "pods" => list.pods,
        _ => list.scalars.iter().find(|(known, _)| known.as_str() == name).map_or(0, |(_, amount)| *amount),
    }
}

/// Returns whether the name is that of an extended resource: qualified and outside Kubernetes' own domain.
pub fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// Returns whether the name is that of a scalar resource: extended, in a `kubernetes.io` domain, huge pages, or attachable
/// volumes.
pub fn is_scalar(name: &str) -> bool {
    is_extended(name)
        || name.contains("kubernetes.io/")
        || name.starts_with("hugepages-")
        || name.starts_with("attachable-volumes-")
}

/// Returns the unit of a resource's amounts.
pub fn unit(name: &str) -> &'static str {
    match name {
        "cpu" => "milliCPU",
        "memory" | "ephemeral-storage" => "bytes",
        _ if name.starts_with("hugepages-") => "bytes",
        _ => "count",
    }
}

/// Amounts below this are divided in floating point without an error.
pub const EXACT: i64 = 1 << 46;

/// Returns `part * 100 / whole`, truncated; `0 <= part <= whole`.
#[inline]
pub fn percent(part: i64, whole: i64) -> i64 {
    match whole < EXACT {
        true => percent_exact(part, whole),
        false => (i128::from(part) * 100 / i128::from(whole)) as i64,
    }
}

/// Returns the same for a `whole` below [`EXACT`].
#[inline(always)]
pub fn percent_exact(part: i64, whole: i64) -> i64 {
    quotient(part as f64, whole as f64)
}

/// Returns the same for whole numbers in floating point, `whole` below [`EXACT`]. Division is several times faster there, and exact: the
/// product has at most 53 bits, and a non-integer quotient of at most 100 differs from every integer by at least 1/whole, which is more
/// than the rounding error of 2^-46. To `u32` the quotient is converted in fewer steps than to `i64`; one below 0 becomes 0.
#[inline(always)]
pub fn quotient(part: f64, whole: f64) -> i64 {
    i64::from((part * 100.0 / whole) as u32)
}

/// Splits nodes into runs on the same page. Yields each run with its page and its slice of `out`.
pub fn by_page<'a>(
    view: View<'a>,
    nodes: &'a [NodeIdx],
    mut out: &'a mut [i64],
) -> impl Iterator<Item = (&'a ColumnPage, &'a [NodeIdx], &'a mut [i64])> {
    nodes.chunk_by(|a, b| a.index() / PAGE == b.index() / PAGE).map(move |run| {
        let (scores, rest) = std::mem::take(&mut out).split_at_mut(run.len());
        out = rest;
        (view.columns().page(run[0]), run, scores)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_agrees_with_integer_division() {
        let edge = (1i64 << 46) - 1;
        for whole in [1, 3, 7, 100, 4000, 8 << 30, edge, edge + 1, i64::MAX] {
            for part in [0, 1, whole / 3, whole / 2, whole / 100 * 29, whole - 1, whole] {
                let want = i128::from(part) * 100 / i128::from(whole);
                assert_eq!(i128::from(percent(part, whole)), want, "{part}/{whole}");
            }
        }
    }
}
