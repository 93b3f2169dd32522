//! The few facts of a node that most decisions read, in eight bytes: what it demands of pods, and how many CPUs are free.
//!
//! They lie in pages beside each other, so that a pod with CPUs of its own is checked against thousands of nodes without
//! a look at their CPUs, and a pod without is hardly checked at all. They say yes; why a node says no is worked out on
//! [`OnNode`].

use pellucid_framework::topology::NumaPolicy;

use super::amounts::CPU;
use super::cpus::accumulator::BindPolicy;
use super::on_node::OnNode;
use super::resource_spec::PodRequest;

/// What most decisions read of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether the node has a NUMA policy.
    pub(super) has_policy: bool,
    /// Whether the node demands something of pods that ask for nothing: a NUMA policy, a bind policy, or CPU counted by a
    /// ratio.
    pub(super) is_demanding: bool,
    /// Threads per core; 0 while the CPUs are not known.
    pub(super) threads: u16,
    pub(super) free: Free,
}

/// How many CPUs of a machine are free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Free {
    pub(super) cpus: u16,
    /// Of them those in cores that are free in whole.
    pub(super) in_whole_cores: u16,
    /// Cores with a free CPU.
    pub(super) cores: u16,
}

impl Facts {
    pub(super) fn of(on: &OnNode) -> Self {
        let has_policy = on.policy() != NumaPolicy::None;
        let of_node = on.settings.as_deref();
        let counts_by_ratio =
            of_node.is_some_and(|settings| settings.has_bad_ratios || settings.ratios.of(CPU) > 1.0);
        let is_demanding =
            has_policy || on.forced_bind().is_some() || counts_by_ratio || on.cpu_ratio() > 1.0;
        let threads = on.machine().map_or(0, |machine| machine.cpus_per_core as u16);
        Self { has_policy, is_demanding, threads, free: on.free_counts }
    }

    /// Returns whether the node takes a pod, as far as can be seen here. Every node is taken that is not demanding by a
    /// pod that asks for nothing; where this says no, the node itself says whether and why.
    #[inline]
    pub(super) fn take(self, pod: &PodRequest) -> bool {
        if self.is_demanding || pod.policy != NumaPolicy::None {
            return false;
        }
        if !pod.wants_cpus {
            return true;
        }
        let n = pod.n_cpus();
        let enough = |free: u16| self.threads > 0 && usize::from(free) >= n;
        match pod.required {
            Some(BindPolicy::FullPcpus) => {
                enough(self.free.in_whole_cores) && n.is_multiple_of(usize::from(self.threads))
            }
            Some(_) => enough(self.free.cores),
            None => enough(self.free.cpus),
        }
    }
}
