//! What a node's labels and annotations say about its CPUs and NUMA nodes.

use pellucid_framework::topology::NumaPolicy;
use pellucid_model::Node;

use super::amounts::Ratios;
use super::cpus::accumulator::{AllocateStrategy, BindPolicy};
use super::cpus::set::CpuSet;
use super::keys;
use super::node_topology::{Problem, reserved_cpus, system_qos_cpus};

/// What a node's labels and annotations say. What cannot be read counts as absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeSettings {
    /// The bind policy that the node's label forces on pods with whole CPUs.
    pub(super) bind: Option<BindPolicy>,
    pub(super) strategy: Option<AllocateStrategy>,
    pub(super) policy: NumaPolicy,
    pub(super) ratios: Ratios,
    /// Whether the amplification ratios cannot be read.
    pub(super) has_bad_ratios: bool,
    /// CPUs that no pod is given.
    pub(super) reserved: CpuSet,
    pub(super) problems: Vec<Problem>,
}

impl NodeSettings {
    pub(super) fn of(node: &Node) -> Self {
        let mut made = Self::default();
        if let Some(text) = node.labels.text(keys::CPU_BIND_POLICY) {
            match text {
                "" | "None" => {}
                "FullPCPUsOnly" => made.bind = Some(BindPolicy::FullPcpus),
                "SpreadByPCPUs" => made.bind = Some(BindPolicy::SpreadByPcpus),
                _ => {
                    made.complain(keys::CPU_BIND_POLICY, text, "must be None, FullPCPUsOnly or SpreadByPCPUs")
                }
            }
        }
        if let Some(text) = node.labels.text(keys::NUMA_ALLOCATE_STRATEGY).filter(|text| !text.is_empty()) {
            made.strategy = AllocateStrategy::ALL.into_iter().find(|strategy| strategy.as_str() == text);
            if made.strategy.is_none() {
                let problem = "must be MostAllocated, LeastAllocated or DistributeEvenly";
                made.complain(keys::NUMA_ALLOCATE_STRATEGY, text, problem);
            }
        }
        if let Some(text) = node.labels.text(keys::NUMA_TOPOLOGY_POLICY) {
            match NumaPolicy::read(text) {
                Some(policy) => made.policy = policy,
                None => {
                    let problem = "must be BestEffort, Restricted or SingleNUMANode";
                    made.complain(keys::NUMA_TOPOLOGY_POLICY, text, problem);
                }
            }
        }
        if let Some(text) = node.annotations.text(keys::AMPLIFICATION_RATIO) {
            match Ratios::parse(text) {
                Ok(ratios) => made.ratios = ratios,
                Err(problem) => {
                    made.has_bad_ratios = true;
                    made.complain(keys::AMPLIFICATION_RATIO, text, &problem);
                }
            }
        }
        for (key, read) in [
            (keys::RESERVATION, reserved_cpus as fn(&str) -> Result<CpuSet, String>),
            (keys::SYSTEM_QOS_RESOURCE, system_qos_cpus),
        ] {
            let Some(text) = node.annotations.text(key).filter(|text| !text.is_empty()) else { continue };
            match read(text) {
                Ok(cpus) => made.reserved = made.reserved.or(&cpus),
                Err(problem) => made.complain(key, text, &problem),
            }
        }
        made
    }

    fn complain(&mut self, key: &str, value: &str, problem: &str) {
        self.problems.push(Problem::of(key, value, problem));
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::selector::Labels;

    use super::*;

    fn settings(labels: &[(&str, &str)], annotations: &[(&str, &str)]) -> NodeSettings {
        let of = |all: &[(&str, &str)]| Labels::new(all.iter().map(|(k, v)| ((*k).into(), (*v).into())));
        NodeSettings::of(&Node { labels: of(labels), annotations: of(annotations), ..Node::default() })
    }

    #[test]
    fn labels_and_annotations_are_read() {
        let made = settings(
            &[
                (keys::CPU_BIND_POLICY, "FullPCPUsOnly"),
                (keys::NUMA_ALLOCATE_STRATEGY, "DistributeEvenly"),
                (keys::NUMA_TOPOLOGY_POLICY, "SingleNUMANode"),
            ],
            &[
                (keys::AMPLIFICATION_RATIO, r#"{"cpu": 2}"#),
                (keys::RESERVATION, r#"{"reservedCPUs": "0-1"}"#),
                (keys::SYSTEM_QOS_RESOURCE, r#"{"cpuset": "7", "cpusetExclusive": false}"#),
            ],
        );
        assert_eq!(
            (made.bind, made.strategy),
            (Some(BindPolicy::FullPcpus), Some(AllocateStrategy::DistributeEvenly))
        );
        assert_eq!((made.policy, made.ratios.of("cpu")), (NumaPolicy::SingleNumaNode, 2.0));
        assert_eq!((made.reserved.to_string().as_str(), made.problems.len()), ("0-1", 0));
    }

    #[test]
    fn unknown_words_are_problems() {
        let made = settings(
            &[
                (keys::CPU_BIND_POLICY, "Full"),
                (keys::NUMA_ALLOCATE_STRATEGY, "Any"),
                (keys::NUMA_TOPOLOGY_POLICY, "Single"),
            ],
            &[(keys::AMPLIFICATION_RATIO, "2"), (keys::RESERVATION, "x")],
        );
        assert_eq!((made.problems.len(), made.has_bad_ratios, made.bind), (5, true, None));
    }
}
