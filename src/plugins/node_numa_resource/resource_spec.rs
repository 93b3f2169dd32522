//! What a pod asks for: its amounts, whether it wants CPUs of its own, and its NUMA policy. Depends on the spec alone.

use pellucid_framework::topology::NumaPolicy;
use pellucid_model::{Name, PodSpec};
use serde_json::Value;
use smallvec::SmallVec;

use super::cpus::accumulator::{BindPolicy, ExclusivePolicy};
use super::keys;
use pellucid_plugin_helper::koordinator::{PriorityClass, QOS_CLASS};

/// What a pod asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PodRequest {
    /// Amounts that are requested, all above 0.
    pub(super) amounts: SmallVec<[(Name, i64); 4]>,
    /// Requested CPU, in thousandths of a core.
    pub(super) milli_cpu: i64,
    /// Whether the pod itself asks for CPUs of its own. Nodes may give it some nevertheless.
    pub(super) wants_cpus: bool,
    /// The bind policy that must hold. Only of pods that want CPUs.
    pub(super) required: Option<BindPolicy>,
    /// The bind policy that is preferred. Only of pods that want CPUs.
    pub(super) preferred: Option<BindPolicy>,
    /// Only of pods that want CPUs.
    pub(super) exclusive: ExclusivePolicy,
    /// The exclusive policy that the pod's annotation names.
    pub(super) named_exclusive: Option<ExclusivePolicy>,
    /// The pod's NUMA policy.
    pub(super) policy: NumaPolicy,
    /// Whether the pod shares no NUMA node between pods that have one and pods that have several.
    pub(super) is_alone: bool,
}

/// Why no node can take a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PodProblem {
    /// An annotation cannot be read.
    Unreadable(String),
    /// The pod wants CPUs of its own, and requests a fraction.
    NotInteger,
}

impl PodRequest {
    /// Reads what a pod asks for. `default` is the bind policy of pods that leave it to the scheduler.
    pub(super) fn of(spec: &PodSpec, default: BindPolicy) -> Result<Self, PodProblem> {
        let amounts = spec.requests.list.named().collect();
        Ok(Self { amounts, ..Self::without_amounts(spec, default)? })
    }

    /// Reads the same but for the amounts.
    pub(super) fn without_amounts(spec: &PodSpec, default: BindPolicy) -> Result<Self, PodProblem> {
        let resource = annotation(spec, keys::RESOURCE_SPEC)?;
        let numa = annotation(spec, keys::NUMA_TOPOLOGY_SPEC)?;
        let milli_cpu = spec.requests.list.milli_cpu;
        let mut made = Self {
            amounts: SmallVec::new(),
            milli_cpu,
            wants_cpus: false,
            required: None,
            preferred: None,
            exclusive: ExclusivePolicy::None,
            named_exclusive: None,
            policy: NumaPolicy::None,
            is_alone: false,
        };
        // Most pods say nothing in annotations.
        if resource.is_null() && numa.is_null() {
            made.want_cpus(spec, (None, None), default)?;
            return Ok(made);
        }
        let policy = word(&numa, keys::NUMA_TOPOLOGY_SPEC, "numaTopologyPolicy", NumaPolicy::read)?;
        made.policy = policy.unwrap_or_default();
        let sharing = |text: &str| match text {
            "" => Some(None),
            "Required" => Some(Some(true)),
            "Preferred" => Some(Some(false)),
            _ => None,
        };
        let sharing = word(&numa, keys::NUMA_TOPOLOGY_SPEC, "singleNUMANodeExclusive", sharing)?.flatten();
        made.is_alone = sharing.unwrap_or(made.policy != NumaPolicy::None);
        made.named_exclusive = exclusive_of(&resource)?;
        let bind = |name| word(&resource, keys::RESOURCE_SPEC, name, |text| bind_policy(text, default));
        let (required, preferred) = (bind("requiredCPUBindPolicy")?, bind("preferredCPUBindPolicy")?);
        // Only the required policy tells absent from the default.
        made.want_cpus(spec, (required.flatten(), preferred.flatten()), default)?;
        if made.wants_cpus {
            made.exclusive = made.named_exclusive.unwrap_or_default();
        }
        Ok(made)
    }

    /// Reads whether a pod that names these bind policies wants CPUs of its own, and how.
    fn want_cpus(
        &mut self,
        spec: &PodSpec,
        (required, preferred): (Option<BindPolicy>, Option<BindPolicy>),
        default: BindPolicy,
    ) -> Result<(), PodProblem> {
        let chosen = required.or(preferred).unwrap_or(default);
        if !may_have_cpus(spec) || chosen == BindPolicy::ConstrainedBurst {
            return Ok(());
        }
        if self.milli_cpu % 1000 != 0 {
            return Err(PodProblem::NotInteger);
        }
        if self.milli_cpu > 0 {
            (self.wants_cpus, self.required, self.preferred) = (true, required, Some(chosen));
        }
        Ok(())
    }

    /// Returns whether the pod gets CPUs of its own, and NUMA nodes, only where a node demands it.
    pub(super) fn asks_for_nothing(&self) -> bool {
        !self.wants_cpus && self.policy == NumaPolicy::None
    }

    /// Returns the requested CPUs; of a fraction the whole ones.
    pub(super) fn n_cpus(&self) -> usize {
        usize::try_from(self.milli_cpu / 1000).unwrap_or(0)
    }
}

/// Returns whether a pod may have CPUs of its own: QoS class LSE or LSR, and priority class koord-prod.
pub(super) fn may_have_cpus(spec: &PodSpec) -> bool {
    matches!(spec.labels.text(QOS_CLASS), Some("LSE" | "LSR"))
        && PriorityClass::of(spec) == PriorityClass::Prod
}

/// Returns the exclusive policy that a pod's annotation names; `None` when it names none or cannot be read.
pub(super) fn exclusive_policy(spec: &PodSpec) -> Option<ExclusivePolicy> {
    exclusive_of(&annotation(spec, keys::RESOURCE_SPEC).ok()?).ok()?
}

fn exclusive_of(resource: &Value) -> Result<Option<ExclusivePolicy>, PodProblem> {
    let read = |text: &str| match text {
        "" => Some(None),
        text => ExclusivePolicy::ALL.into_iter().find(|policy| policy.as_str() == text).map(Some),
    };
    Ok(word(resource, keys::RESOURCE_SPEC, "preferredCPUExclusivePolicy", read)?.flatten())
}

/// Reads a bind policy: `Some(None)` when absent, `None` when unknown.
fn bind_policy(text: &str, default: BindPolicy) -> Option<Option<BindPolicy>> {
    match text {
        "" => Some(None),
        "Default" => Some(Some(default)),
        text => BindPolicy::ALL.into_iter().find(|policy| policy.as_str() == text).map(Some),
    }
}

/// Returns the JSON object of an annotation, `null` when absent.
fn annotation(spec: &PodSpec, key: &str) -> Result<Value, PodProblem> {
    let Some(text) = spec.annotations.text(key) else { return Ok(Value::Null) };
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let parsed = parsed.filter(|value| value.is_object() || value.is_null());
    parsed.ok_or_else(|| PodProblem::Unreadable(format!("{key}: {text}")))
}

/// Reads a word of an annotation; `None` when it is absent.
fn word<T>(
    object: &Value,
    key: &str,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, PodProblem> {
    let given = &object[name];
    if given.is_null() {
        return Ok(None);
    }
    let read = given.as_str().and_then(read);
    read.map(Some).ok_or_else(|| PodProblem::Unreadable(format!("{key}: {name}: {given}")))
}

#[cfg(test)]
mod tests {
    use pellucid_model::requests::{PodRequests, ResourceList};
    use pellucid_model::selector::Labels;

    use super::*;

    fn spec(qos: &str, milli: i64, resource: &str, numa: &str) -> PodSpec {
        let list = ResourceList { milli_cpu: milli, memory: 1 << 30, ..ResourceList::default() };
        let given = [(keys::RESOURCE_SPEC, resource), (keys::NUMA_TOPOLOGY_SPEC, numa)];
        let given = given.into_iter().filter(|(_, text)| !text.is_empty());
        PodSpec {
            labels: Labels::new([(QOS_CLASS.into(), qos.into())]),
            annotations: Labels::new(given.map(|(key, text)| (key.into(), text.into()))),
            requests: PodRequests { list, ..PodRequests::default() },
            ..PodSpec::default()
        }
    }

    fn read(spec: &PodSpec) -> Result<PodRequest, PodProblem> {
        PodRequest::of(spec, BindPolicy::FullPcpus)
    }

    #[test]
    fn qos_priority_and_policy_decide_who_wants_cpus() {
        let wants = |spec: &PodSpec| {
            read(spec).map(|request| (request.wants_cpus, request.required, request.preferred))
        };
        let (full, spread) = (BindPolicy::FullPcpus, BindPolicy::SpreadByPcpus);
        assert_eq!(wants(&spec("LSR", 2000, "", "")), Ok((true, None, Some(full))));
        assert_eq!(wants(&spec("LS", 2000, "", "")), Ok((false, None, None)));
        assert_eq!(wants(&PodSpec { priority: 7500, ..spec("LSR", 2000, "", "") }), Ok((false, None, None)));
        assert_eq!(wants(&spec("LSE", 0, "", "")), Ok((false, None, None)));
        assert_eq!(wants(&spec("LSE", 1500, "", "")), Err(PodProblem::NotInteger));
        let burst = r#"{"preferredCPUBindPolicy": "ConstrainedBurst"}"#;
        assert_eq!(wants(&spec("LSE", 1500, burst, "")), Ok((false, None, None)));
        let both =
            r#"{"requiredCPUBindPolicy": "SpreadByPCPUs", "preferredCPUBindPolicy": "ConstrainedBurst"}"#;
        assert_eq!(wants(&spec("LSE", 1000, both, "")), Ok((true, Some(spread), Some(spread))));
        let default = r#"{"requiredCPUBindPolicy": "Default"}"#;
        assert_eq!(wants(&spec("LSE", 1000, default, "")), Ok((true, Some(full), Some(full))));
    }

    #[test]
    fn numa_nodes_are_not_shared_unless_the_pod_says_so() {
        let of = |numa: &str| read(&spec("LS", 1000, "", numa)).map(|r| (r.policy, r.is_alone));
        assert_eq!(of(""), Ok((NumaPolicy::None, false)));
        assert_eq!(of(r#"{"numaTopologyPolicy": "Restricted"}"#), Ok((NumaPolicy::Restricted, true)));
        let preferred = r#"{"numaTopologyPolicy": "Restricted", "singleNUMANodeExclusive": "Preferred"}"#;
        assert_eq!(of(preferred), Ok((NumaPolicy::Restricted, false)));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (resource, numa) in [
            ("x", ""),
            ("[]", ""),
            (r#"{"preferredCPUBindPolicy": "Full"}"#, ""),
            (r#"{"preferredCPUExclusivePolicy": 1}"#, ""),
            ("", r#"{"numaTopologyPolicy": "Single"}"#),
            ("", r#"{"singleNUMANodeExclusive": "Never"}"#),
        ] {
            assert!(matches!(read(&spec("LS", 1000, resource, numa)), Err(PodProblem::Unreadable(_))));
        }
        let unread = spec("LS", 1000, r#"{"preferredCPUExclusivePolicy": "PCPULevel"}"#, "");
        assert_eq!(exclusive_policy(&unread), Some(ExclusivePolicy::PcpuLevel));
        assert_eq!(exclusive_policy(&spec("LS", 1000, "", "")), None);
    }
}
