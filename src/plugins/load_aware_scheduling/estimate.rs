//! What a pod is estimated to use before its node reports it (Koordinator's default estimator).

use pellucid_model::requests::ResourceList;
use pellucid_model::{Name, PodSpec};
use smallvec::SmallVec;

use super::args::LoadAwareArgs;
pub(super) use pellucid_plugin_helper::koordinator::{PRIORITY_CLASS, PriorityClass, QOS_CLASS};
use pellucid_plugin_helper::scored::amount;

/// Amounts in the order of [`LoadAwareArgs::resources`]: CPU in thousandths of a core, the rest in units.
pub(super) type Amounts = SmallVec<[i64; 2]>;

/// Annotation with a pod's own scaling factors, a JSON object of percents.
pub(super) const SCALING_FACTORS: &str = "scheduling.koordinator.sh/load-estimated-scaling-factors";
/// Annotation with a pod's own `estimatedSecondsAfterPodScheduled`.
pub(super) const AFTER_SCHEDULED: &str =
    "scheduling.koordinator.sh/load-estimated-seconds-after-pod-scheduled";
/// Annotation with a pod's own `estimatedSecondsAfterInitialized`.
pub(super) const AFTER_INITIALIZED: &str =
    "scheduling.koordinator.sh/load-estimated-seconds-after-initialized";

/// CPU of a pod that requests none, in thousandths of a core.
const DEFAULT_MILLI_CPU: i64 = 250;
/// Memory of a pod that requests none, in bytes.
const DEFAULT_MEMORY: i64 = 200 << 20;

/// The greatest amount that is added up. Thousands of them fit into an `i64`, so no object can make a sum overflow.
pub(super) const MOST: i64 = 1 << 50;

/// Returns the name under which pods of a class request a resource; `None` when they cannot.
fn requests_as(class: PriorityClass, resource: &str) -> Option<&str> {
    match (class, resource) {
        (PriorityClass::Prod, _) => Some(resource),
        (PriorityClass::Batch, "cpu") => Some("kubernetes.io/batch-cpu"),
        (PriorityClass::Batch, "memory") => Some("kubernetes.io/batch-memory"),
        (PriorityClass::Mid, "cpu") => Some("kubernetes.io/mid-cpu"),
        (PriorityClass::Mid, "memory") => Some("kubernetes.io/mid-memory"),
        _ => None,
    }
}

/// What is known of a pod before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Estimate {
    pub(super) amounts: Amounts,
    pub(super) is_prod: bool,
    /// Seconds after scheduling during which reports do not show yet what the pod will use.
    pub(super) after_scheduled: Option<i64>,
    /// The same after initialization, in place of `after_scheduled` once the pod is initialized.
    pub(super) after_initialized: Option<i64>,
}

impl Estimate {
    /// Estimates a pod.
    pub(super) fn of(args: &LoadAwareArgs, spec: &PodSpec) -> Self {
        let class = PriorityClass::of(spec);
        let own = |key: &str| spec.annotations.text(key).filter(|_| args.allow_custom);
        let factors = own(SCALING_FACTORS).and_then(|text| serde_json::from_str(text).ok());
        let factors: Option<std::collections::BTreeMap<String, i64>> = factors;
        let seconds = |key: &str, default: Option<i64>| {
            own(key).and_then(|text| text.parse().ok()).filter(|seconds| *seconds >= 0).or(default)
        };
        let amount = |resource: &Name| {
            let own = factors.as_ref().and_then(|own| own.get(resource.as_str())).copied();
            // Nothing is estimated of a resource without a factor.
            let Some(factor) = own.or_else(|| args.factors.get(resource).copied()) else { return 0 };
            estimate(class, resource, (&spec.requests.list, &spec.limits), factor).clamp(0, MOST)
        };
        Self {
            amounts: args.resources.iter().map(amount).collect(),
            is_prod: class == PriorityClass::Prod,
            after_scheduled: seconds(AFTER_SCHEDULED, args.after_scheduled),
            after_initialized: seconds(AFTER_INITIALIZED, args.after_initialized),
        }
    }
}

/// Returns `max(request, limit) * factor / 100`, rounded half up and not above the limit. Where nothing is requested, a
/// prod or batch pod counts with a default.
fn estimate(
    class: PriorityClass,
    resource: &str,
    (requests, limits): (&ResourceList, &ResourceList),
    factor: i64,
) -> i64 {
    let Some(name) = requests_as(class, resource) else { return 0 };
    let (request, limit) = (amount(requests, name), amount(limits, name));
    let base = request.max(limit);
    if base <= 0 {
        return match (class, resource) {
            (PriorityClass::Mid, _) => 0,
            (_, "cpu") => DEFAULT_MILLI_CPU,
            (_, "memory") => DEFAULT_MEMORY,
            _ => 0,
        };
    }
    let scaled = match base.checked_mul(factor).and_then(|product| product.checked_add(50)) {
        Some(product) => product / 100,
        None => i64::try_from((i128::from(base) * i128::from(factor) + 50) / 100).unwrap_or(i64::MAX),
    };
    if limit > 0 { scaled.min(limit) } else { scaled }
}

#[cfg(test)]
mod tests {
    use pellucid_model::pod::Qos;
    use pellucid_model::requests::PodRequests;
    use pellucid_model::selector::Labels;

    use super::*;

    fn spec(cpu: i64, limit: i64) -> PodSpec {
        PodSpec {
            requests: PodRequests {
                list: ResourceList { milli_cpu: cpu, ..ResourceList::default() },
                ..PodRequests::default()
            },
            limits: ResourceList { milli_cpu: limit, ..ResourceList::default() },
            qos: Qos::Burstable,
            ..PodSpec::default()
        }
    }

    fn labelled(mut spec: PodSpec, key: &str, value: &str) -> PodSpec {
        spec.labels = Labels::new([(key.into(), value.into())]);
        spec
    }

    #[test]
    fn the_larger_of_request_and_limit_is_scaled_and_capped_by_the_limit() {
        let args = LoadAwareArgs::default();
        let cpu = |spec: &PodSpec| Estimate::of(&args, spec).amounts[0];
        assert_eq!(cpu(&spec(1000, 0)), 850);
        assert_eq!(cpu(&spec(1000, 2000)), 1700);
        assert_eq!(cpu(&spec(0, 0)), DEFAULT_MILLI_CPU);
        assert_eq!(cpu(&spec(1, 0)), 1);
        assert_eq!(cpu(&labelled(spec(1000, 0), PRIORITY_CLASS, "koord-mid")), 0);
        assert_eq!(cpu(&labelled(spec(1000, 0), PRIORITY_CLASS, "koord-free")), 0);
        assert_eq!(cpu(&labelled(spec(1000, 0), PRIORITY_CLASS, "koord-batch")), DEFAULT_MILLI_CPU);
    }

    #[test]
    fn a_resource_without_a_factor_is_not_estimated_and_no_amount_is_without_bound() {
        let args = LoadAwareArgs::read(&serde_json::json!({"usageThresholds": {"ephemeral-storage": 50}}));
        let args = args.expect("arguments");
        let list = ResourceList { ephemeral_storage: 1 << 30, memory: 7 << 60, ..ResourceList::default() };
        let pod = PodSpec {
            requests: PodRequests { list, ..PodRequests::default() },
            qos: Qos::Burstable,
            ..PodSpec::default()
        };
        assert_eq!(Estimate::of(&args, &pod).amounts[..], [DEFAULT_MILLI_CPU, MOST, 0]);
    }

    #[test]
    fn annotations_replace_factors_only_where_they_may() {
        let mut pod = spec(1000, 0);
        pod.annotations = Labels::new([(SCALING_FACTORS.into(), r#"{"cpu": 30}"#.into())]);
        let cpu = |allow_custom| {
            let args = LoadAwareArgs { allow_custom, ..LoadAwareArgs::default() };
            Estimate::of(&args, &pod).amounts[0]
        };
        assert_eq!((cpu(false), cpu(true)), (850, 300));
    }
}
