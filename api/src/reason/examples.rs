//! An example of each reason: a subject, the rendered message, and the situation behind it with numbers.
//!
//! One line per code. A code without a line does not compile, and a test renders every message.

use super::ReasonCode;

/// What a reason settles until something changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalFor {
    /// Refuses one node; others may take the pod.
    Node,
    /// Refuses the pod as a whole.
    Pod,
    /// Refuses all members of the gang.
    Gang,
    /// Refuses nothing: the code only says how far the pod is.
    Nothing,
}

impl TerminalFor {
    /// Returns the name used in the REST API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Pod => "pod",
            Self::Gang => "gang",
            Self::Nothing => "nothing",
        }
    }
}

/// An example of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The subject of the message; empty when it has none.
    pub subject: &'static str,
    /// The rendered message.
    pub message: &'static str,
    /// The situation that led to it, with numbers.
    pub situation: &'static str,
}

macro_rules! examples {
    ($($code:ident: $terminal:ident, $subject:literal => $message:literal, $situation:literal;)*) => {
        impl ReasonCode {
            /// Returns an example of the reason.
            pub fn example(self) -> Example {
                match self {
                    $(Self::$code => Example { subject: $subject, message: $message, situation: $situation },)*
                    Self::Plugin(reason) => reason.example,
                }
            }

            /// Returns what the reason settles.
            pub fn terminal_for(self) -> TerminalFor {
                match self {
                    $(Self::$code => TerminalFor::$terminal,)*
                    Self::Plugin(reason) => reason.terminal_for,
                }
            }
        }
    };
}

examples! {
    SchedulingGated: Pod, "example.com/quota example.com/review" => "waiting for scheduling gates: [example.com/quota example.com/review]", "The pod lists two gates.";
    GangQuorumMissing: Gang, "demo/crew: 2 of 3 are there" => "waiting for the pods of gang demo/crew: 2 of 3 are there", "The gang wants three pods and two were created.";
    GangQuorumOverdue: Gang, "demo/crew: 3 of 4 are there" => "waited too long for the pods of gang demo/crew: 3 of 4 are there", "The fourth pod did not come within the gang's wait.";
    GangGroupMissing: Gang, "demo/crew" => "waiting for PodGroup demo/crew", "The pods carry the label, and the PodGroup was not created.";
    GangGroupGone: Gang, "demo/crew" => "PodGroup demo/crew was deleted", "The PodGroup was deleted under four waiting pods.";
    GangInvalid: Gang, "spec.minMember: missing" => "the gang is not defined: spec.minMember: missing", "The PodGroup says no quorum.";
    GangDialectsMixed: Gang, "demo/crew in coscheduling and koordinator" => "the pods of one gang declare it in two dialects: demo/crew in coscheduling and koordinator", "One pod has a label, another one an annotation.";
    GangQueueMissing: Gang, "research" => "queue research does not exist", "spec.queue of the PodGroup names a queue that nobody made.";
    GangNeverComplete: Gang, "demo/crew wants 5 pods, Job/crew makes 3" => "the gang can never have its quorum: demo/crew wants 5 pods, Job/crew makes 3", "The quorum is 5 and the Job's parallelism 3.";
    GangPartnerMissing: Gang, "demo/servers" => "the gang group waits for demo/servers", "The gang lists demo/servers in its group, and there is no such gang.";
    GangPartnerShort: Gang, "waiting for the pods of gang demo/servers: 1 of 2 are there" => "another gang of the group is not ready: waiting for the pods of gang demo/servers: 1 of 2 are there", "Two gangs form a group, and one of them is short of a pod.";
    GangGroupTooLarge: Gang, "120 gangs name each other around demo/crew, 100 may form a group (maxGroupGangs)" => "the gang group is too large: 120 gangs name each other around demo/crew, 100 may form a group (maxGroupGangs)", "Each of 120 gangs lists all others as its group.";
    GangMinResources: Gang, "demo/crew: minResources asks for 40 of cpu, 12 are free" => "the cluster has less free than the minResources of gang demo/crew: minResources asks for 40 of cpu, 12 are free", "spec.minResources asks for 40 cores, the cluster has 12 left.";
    GangInsufficientCapacity: Gang, "demo/ranks: 1 of 3 members that its quorum needs can be placed; demo/ranks-2 cannot: 0/30 nodes are available: 30 Insufficient nvidia.com/gpu." => "gang demo/ranks: 1 of 3 members that its quorum needs can be placed; demo/ranks-2 cannot: 0/30 nodes are available: 30 Insufficient nvidia.com/gpu.", "Each member requests 8 GPUs and one node has 8 free.";
    GangMemberUnschedulable: Gang, "demo/ranks: 2 of 3 members that its quorum needs can be placed; demo/ranks-3 cannot: 0/30 nodes are available: 30 node(s) didn't match Pod's node affinity/selector." => "gang demo/ranks: 2 of 3 members that its quorum needs can be placed; demo/ranks-3 cannot: 0/30 nodes are available: 30 node(s) didn't match Pod's node affinity/selector.", "One member selects a label that no node has.";
    GangSiblingUnschedulable: Gang, "demo/ranks: 1 of 3 members that its quorum needs can be placed; demo/ranks-2 cannot: 0/30 nodes are available: 30 Insufficient nvidia.com/gpu." => "gang demo/ranks: 1 of 3 members that its quorum needs can be placed; demo/ranks-2 cannot: 0/30 nodes are available: 30 Insufficient nvidia.com/gpu.", "Said to the members other than demo/ranks-2.";
    GangWaitTimeout: Gang, "demo/crew: the wait for the other members ran out" => "gang demo/crew: the wait for the other members ran out", "Two of three NonStrict members held places for 60 s.";
    GangRejected: Gang, "demo/crew: 1 of 4 members that its quorum needs can be placed; demo/crew-2 cannot: 0/3 nodes are available: 3 Insufficient cpu." => "gang demo/crew: 1 of 4 members that its quorum needs can be placed; demo/crew-2 cannot: 0/3 nodes are available: 3 Insufficient cpu.", "Three of four members are missing, more than podGroupRejectPercentage allows.";
    GangQuorumBroken: Gang, "demo/crew: demo/crew-1 was lost before the first Binding of its quorum" => "gang demo/crew: demo/crew-1 was lost before the first Binding of its quorum", "One of four permitted members was deleted.";
    NodeUnschedulable: Node, "" => "node(s) were unschedulable", "2 of 30 nodes are cordoned.";
    NodeNameMismatch: Node, "" => "node(s) didn't match the requested node name", "spec.nodeName names one node, and the 29 others refuse.";
    UntoleratedTaint: Node, "" => "node(s) had untolerated taint(s)", "5 of 30 nodes have the taint gpu=true:NoSchedule.";
    NodeAffinityMismatch: Node, "" => "node(s) didn't match Pod's node affinity/selector", "The nodeSelector wants disk=ssd, and 27 of 30 nodes have disk=hdd.";
    AddedAffinityMismatch: Node, "" => "node(s) didn't match scheduler-enforced node affinity", "addedAffinity of the profile wants pool=batch, which 8 of 30 nodes have.";
    AffinityTermsConflict: Pod, "" => "pod affinity terms conflict", "One matchFields wants metadata.name In [a] and NotIn [a].";
    HostPortConflict: Node, "" => "node(s) didn't have free ports for the requested pod ports", "Port 443 of 2 nodes is held by other pods.";
    TooManyPods: Node, "" => "Too many pods", "The node allows 3 pods and runs 3.";
    InsufficientResource: Node, "cpu" => "Insufficient cpu", "The pod requests 500 cores; of 22 nodes the best one, memory-01, has 14 free.";
    ResourceLeftOut: Node, "example.com/card-7 (1100 are offered, 1024 are kept)" => "node(s) had extended resource left out: example.com/card-7 (1100 are offered, 1024 are kept)", "Each of 1,100 nodes offers a resource of its own, and the pod requests one of the last.";
    SpreadLabelMissing: Node, "" => "node(s) didn't match pod topology spread constraints (missing required label)", "3 of 30 nodes lack topology.kubernetes.io/zone.";
    SpreadSkewTooLarge: Node, "" => "node(s) didn't match pod topology spread constraints", "Zone a has 3 matching pods, zone b 1, and maxSkew is 1.";
    PodAffinityMismatch: Node, "" => "node(s) didn't match pod affinity rules", "No pod with app=db runs in the zones of 20 nodes.";
    PodAntiAffinityConflict: Node, "" => "node(s) didn't match pod anti-affinity rules", "A pod with app=db runs on 3 of 3 nodes.";
    ExistingAntiAffinityConflict: Node, "" => "node(s) didn't satisfy existing pods anti-affinity rules", "A pod on the node keeps pods with app=web out of its zone.";
    DiskConflict: Node, "" => "node(s) had no available disk", "Another pod on the node mounts the same disk for writing.";
    ClaimInUse: Node, "" => "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod", "Claim data is ReadWriteOncePod, and demo/writer uses it.";
    TooManyVolumes: Node, "" => "node(s) exceed max volume count", "The CSINode allows 25 volumes, and 25 are attached.";
    DriverMissing: Node, "ebs.csi.aws.com" => "ebs.csi.aws.com CSI driver is not installed on the node", "The CSINode lists no such driver yet.";
    ClaimNotFound: Pod, "data" => "persistentvolumeclaim \"data\" not found", "The pod mounts claim data, which does not exist.";
    EphemeralClaimMissing: Pod, "web-0-scratch" => "waiting for ephemeral volume controller to create the persistentvolumeclaim \"web-0-scratch\"", "The pod was created a moment ago.";
    ClaimLost: Pod, "\"data\" bound to non-existent persistentvolume \"pv-7\"" => "persistentvolumeclaim \"data\" bound to non-existent persistentvolume \"pv-7\"", "The claim's phase is Lost.";
    ClaimDeleting: Pod, "data" => "persistentvolumeclaim \"data\" is being deleted", "The claim has a deletionTimestamp.";
    ClaimNotForPod: Pod, "demo/web-0-scratch was not created for pod demo/web-0" => "PVC demo/web-0-scratch was not created for pod demo/web-0 (pod is not owner)", "Somebody made a claim of that name by hand.";
    UnboundImmediateClaims: Pod, "" => "pod has unbound immediate PersistentVolumeClaims", "The storage class provisions at once, and its provisioner has not answered.";
    VolumeNodeAffinityConflict: Node, "" => "node(s) didn't match PersistentVolume's node affinity", "The volume is local to node-3, and 29 other nodes refuse.";
    NoVolumeToBind: Node, "" => "node(s) didn't find available persistent volumes to bind", "The claim wants 10Gi, and the free volumes near these nodes have 5Gi.";
    NotEnoughStorage: Node, "" => "node(s) did not have enough free storage", "The claim wants 100Gi, and the CSIStorageCapacity of the zone is 40Gi.";
    VolumeGone: Node, "" => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", "The claim is bound to pv-7, which does not exist.";
    VolumeBindingFailed: Pod, "node \"node-2\" is gone" => "binding volumes: node \"node-2\" is gone", "The chosen node was deleted before its volumes were bound.";
    VolumeZoneConflict: Node, "" => "node(s) had no available volume zone", "The volume is in zone-a, and 20 of 30 nodes are elsewhere.";
    ClaimWithoutClass: Pod, "" => "PersistentVolumeClaim had no pv name and storageClass name", "The claim is pending without volumeName and storageClassName.";
    ClassNotFound: Pod, "fast" => "storageclass.storage.k8s.io \"fast\" not found", "The claim names storage class fast, which does not exist.";
    ClaimWithoutVolume: Pod, "" => "PersistentVolume had no name", "The class binds at once, and the claim has no volume yet.";
    VolumeNotFound: Pod, "pv-7" => "persistentvolume \"pv-7\" not found", "The claim's volumeName is pv-7, which does not exist.";
    DynamicResourcesUnsupported: Pod, "gpu" => "dynamic resource allocation is not supported; the pod uses resource claims [gpu]", "spec.resourceClaims lists one claim.";
    FeaturesMissing: Node, "" => "node(s) didn't match Pod's required features", "4 of 30 kubelets are older than the feature.";
    UsageExceeded: Node, "cpu" => "node(s) cpu usage exceed threshold", "The node uses 22.1 of 32 cores, the pod adds 0.9, and the threshold is 65 %.";
    AggregatedUsageExceeded: Node, "memory" => "node(s) memory aggregated usage exceed threshold", "In the last 5 minutes the 95th percentile was 98 % of the node's memory, and the threshold is 95 %.";
    NodeMetricExpired: Node, "" => "node(s) nodeMetric expired", "koordlet reported last 10 minutes ago, and 3 minutes are allowed.";
    NumaTopologyMismatch: Node, "" => "node(s) NUMA Topology affinity error", "The policy is single-numa-node, CPUs are free on NUMA node 0 and GPUs on NUMA node 1.";
    PluginsDisagree: Pod, "NodeAffinity VolumeBinding" => "node(s) didn't satisfy plugin(s) [NodeAffinity VolumeBinding] simultaneously", "The affinity names node-1, and the volume is on node-2.";
    NamedNodesMissing: Pod, "NodeAffinity" => "node(s) didn't satisfy plugin(s) [NodeAffinity]", "The pod of a DaemonSet names node-1, which was deleted a moment ago.";
    NotTried: Nothing, "" => "not tried yet", "A thousand pods were created at once, and this one is the nine hundredth in the queue.";
    Placed: Nothing, "" => "placed; its Binding is under way", "The pod was given gpu-01, and the API server takes its time to answer.";
    WaitingAtPermit: Nothing, "" => "holds a place and waits at Permit", "Two of the three members of a NonStrict gang have places.";
    NodeLeftOut: Node, "" => "node(s) were not looked at: PreFilter left them out", "The pod's node affinity names gpu-01 by metadata.name, so 29 other nodes were not asked.";
    NodeGone: Node, "" => "the node does not exist any more", "The node's object was deleted while the pod was on it.";
    NoNodes: Pod, "" => "no nodes available to schedule pods", "The cluster has 0 nodes.";
    BindRefused: Pod, "etcd is away (HTTP 500 InternalError)" => "binding refused: etcd is away (HTTP 500 InternalError)", "The Binding was answered with status 500.";
    Unreadable: Pod, "spec.containers[0].resources.requests[cpu]: not a quantity (ten)" => "cannot read spec.containers[0].resources.requests[cpu]: not a quantity (ten)", "The API server took the object, and the scheduler cannot.";
    PluginRefused: Node, "not a favourite node" => "not a favourite node", "A plugin of somebody else said so of 29 nodes.";
    PreBindFailed: Pod, "the object has been modified (HTTP 409)" => "running PreBind failed: the object has been modified (HTTP 409)", "A write to the pod's claim was refused.";
    PermitTimedOut: Pod, "Approval" => "waited too long at Permit for Approval", "A plugin of somebody else waits for a person, who did not come within the hour.";
    PlacementTakenBack: Pod, "node-1" => "lost its place on node-1 to a pod of higher priority", "A pod of priority 1000 needed the 2 cores on node-1.";
    PreemptionNotHelpful: Node, "" => "Preemption is not helpful for scheduling", "The node is cordoned; no pod's going would change that.";
    NoPreemptionVictims: Node, "" => "No preemption victims found for incoming pod", "The 12 pods on the node have the same priority.";
    PreemptionPolicyNever: Pod, "" => "not eligible due to preemptionPolicy=Never.", "The pod's priority class has preemptionPolicy Never.";
    PreemptionUnderWay: Pod, "" => "not eligible due to a terminating pod on the nominated node.", "A victim on node-1 has 18 of its 30 s of grace left.";
    InternalError: Pod, "Reserve of VolumeBinding found no decision" => "internal error: Reserve of VolumeBinding found no decision", "A defect; the log has more.";
}

#[cfg(test)]
mod tests {
    use super::super::REGISTRY;

    #[test]
    fn examples_are_what_is_rendered() {
        for entry in REGISTRY {
            let (code, example) = (entry.code, entry.code.example());
            assert_eq!(code.message(example.subject), example.message, "{code:?}");
            assert_eq!(
                entry.message.contains("{}"),
                !example.subject.is_empty(),
                "{code:?}: it has a subject"
            );
            assert!(example.situation.ends_with('.'), "{code:?}: {:?}", example.situation);
        }
    }
}
