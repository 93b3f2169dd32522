//! The registry of reasons: why a pod is not placed.
//!
//! One entry per code: what it means, what resolves it, who can do that, and the message in kube-scheduler's grammar.
//! `GET /apis/v1/reasons` serves this table, and `docs/reasons.md` is generated from it. A new way to refuse a pod
//! starts with an entry here and an example in `examples`, or with a [`PluginReason`] that a plugin registers.

mod entry;
mod examples;
mod plugin;
mod states;

pub use entry::{ReasonEntry, Resolver};
pub use examples::{Example, TerminalFor};
pub use plugin::PluginReason;
pub use states::{STATES, StateEntry};

macro_rules! last {
    ($first:literal) => {
        $first
    };
    ($first:literal, $second:literal) => {
        $second
    };
}

macro_rules! reasons {
    ($($code:ident { plugin: $plugin:literal, message: $message:literal, resolver: $resolver:ident,
        meaning: $meaning:literal, remedy: $remedy:literal $(, never: $never:literal)? })*) => {
        /// A reason code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ReasonCode {
            $(#[doc = $meaning] $code,)*
            /// A reason that a plugin registers.
            Plugin(&'static PluginReason),
        }

        /// All built-in reasons, in the order of the documentation.
        pub const REGISTRY: &[ReasonEntry] = &[$(ReasonCode::$code.entry(),)*];

        impl ReasonCode {
            /// Returns the code as it appears in bodies and metrics.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => stringify!($code),)*
                    Self::Plugin(reason) => reason.code,
                }
            }

            /// Returns the code's entry in the registry.
            pub const fn entry(self) -> ReasonEntry {
                match self {
                    $(Self::$code => ReasonEntry {
                        code: self, plugin: $plugin, meaning: $meaning, remedy: $remedy,
                        never: last!($remedy $(, $never)?), resolver: Resolver::$resolver, message: $message,
                    },)*
                    Self::Plugin(reason) => reason.entry(),
                }
            }
        }
    };
}

reasons! {
    SchedulingGated {
        plugin: "SchedulingGates", message: "waiting for scheduling gates: [{}]", resolver: PodOwner,
        meaning: "The pod lists scheduling gates; nothing is tried until they are removed.",
        remedy: "Remove the listed entries of spec.schedulingGates; the controller that set them normally does."
    }
    GangQuorumMissing {
        plugin: "Coscheduling", message: "waiting for the pods of gang {}", resolver: PodOwner,
        meaning: "Fewer pods of the gang exist than its quorum; none is placed before the others are there.",
        remedy: "Create the missing pods, or lower the gang's quorum (minMember, min-available, available-count)."
    }
    GangQuorumOverdue {
        plugin: "Coscheduling", message: "waited too long for the pods of gang {}", resolver: PodOwner,
        meaning: "The gang has been short of pods for longer than it may wait.",
        remedy: "Create the missing pods; the gang is then tried at once. Raise its wait if they simply take longer."
    }
    GangGroupMissing {
        plugin: "Coscheduling", message: "waiting for PodGroup {}", resolver: PodOwner,
        meaning: "The pod names a PodGroup that was not created yet.",
        remedy: "Create the PodGroup in the pod's namespace, or correct the name on the pod."
    }
    GangGroupGone {
        plugin: "Coscheduling", message: "PodGroup {} was deleted", resolver: PodOwner,
        meaning: "The gang's PodGroup was deleted while pods of it wait.",
        remedy: "Create the PodGroup again, or delete the pods."
    }
    GangInvalid {
        plugin: "Coscheduling", message: "the gang is not defined: {}", resolver: PodOwner,
        meaning: "A field that defines the gang cannot be used, or the pod names two gangs.",
        remedy: "Correct the field that the message names."
    }
    GangDialectsMixed {
        plugin: "Coscheduling", message: "the pods of one gang declare it in two dialects: {}", resolver: PodOwner,
        meaning: "Pods with the same namespace and gang name use keys of different gang schedulers.",
        remedy: "Use the keys of one dialect on all pods of the gang, or give the gangs different names."
    }
    GangQueueMissing {
        plugin: "Coscheduling", message: "queue {} does not exist", resolver: ClusterAdmin,
        meaning: "The PodGroup is in a kube-batch queue that does not exist.",
        remedy: "Create the Queue, or take spec.queue out of the PodGroup to use the default queue."
    }
    GangNeverComplete {
        plugin: "Coscheduling", message: "the gang can never have its quorum: {}", resolver: PodOwner,
        meaning: "All pods of the gang come from one controller, which makes fewer of them than the quorum.",
        remedy: "Scale the controller up, or lower the gang's quorum."
    }
    GangPartnerMissing {
        plugin: "Coscheduling", message: "the gang group waits for {}", resolver: PodOwner,
        meaning: "The gang names gangs as its group that do not exist, or that do not name it in turn.",
        remedy: "Create the gangs that are named, and let each of them name the whole group."
    }
    GangPartnerShort {
        plugin: "Coscheduling", message: "another gang of the group is not ready: {}", resolver: PodOwner,
        meaning: "All gangs of a group reach their quorum together, and another one cannot be planned yet.",
        remedy: "Look at the gang that the message names."
    }
    GangGroupTooLarge {
        plugin: "Coscheduling", message: "the gang group is too large: {}", resolver: PodOwner,
        meaning: "More gangs name each other as one group than maxGroupGangs, or the group has more pods than maxGroupMembers (arguments of Coscheduling). A group is planned as a whole, so its size is bounded. Pods of other gangs are not affected.",
        remedy: "Name fewer gangs in gang.scheduling.koordinator.sh/groups, or make fewer pods; the group is tried as soon as it is small enough. If it has to be that large, raise the argument that the message names."
    }
    GangMinResources {
        plugin: "Coscheduling", message: "the cluster has less free than the minResources of gang {}", resolver: Time,
        meaning: "What the PodGroup's spec.minResources asks for is not free in the whole cluster; nothing was planned.",
        remedy: "Wait for pods to end, add nodes, or lower spec.minResources.",
        never: "Add nodes, or lower spec.minResources."
    }
    GangInsufficientCapacity {
        plugin: "Coscheduling", message: "gang {}", resolver: Time,
        meaning: "A quorum of the gang does not fit at once: a member found too little room beside the others.",
        remedy: "Wait for pods to end, add nodes, lower the requests of the member that is named, or lower the quorum.",
        never: "Add nodes, lower the requests of the member that is named, or lower the quorum."
    }
    GangMemberUnschedulable {
        plugin: "Coscheduling", message: "gang {}", resolver: PodOwner,
        meaning: "A quorum of the gang cannot be placed: a member is refused for another reason than room.",
        remedy: "Look at the reasons of the member that is named."
    }
    GangSiblingUnschedulable {
        plugin: "Coscheduling", message: "gang {}", resolver: PodOwner,
        meaning: "This pod was not placed because another member of its gang could not be.",
        remedy: "Look at the member that is named; the explanation of its gang says what would help."
    }
    GangWaitTimeout {
        plugin: "Coscheduling", message: "gang {}", resolver: Time,
        meaning: "The pod had a place and waited for the other members until the wait ran out; the place was given up.",
        remedy: "Raise the gang's wait, or make room for the missing members.", never: "Add nodes, lower the requests of the members, or lower the gang's quorum."
    }
    GangRejected {
        plugin: "Coscheduling", message: "gang {}", resolver: Time,
        meaning: "A member failed while too much of the quorum was missing (podGroupRejectPercentage); places that were held were given up.",
        remedy: "Make room for the missing members, or raise podGroupRejectPercentage."
    }
    GangQuorumBroken {
        plugin: "Coscheduling", message: "gang {}", resolver: Time,
        meaning: "A member of the quorum was lost before the first Binding; the places of the others were given up.",
        remedy: "Nothing to do: the gang is planned again when it has its quorum. If a PreBind failed, look at that member."
    }
    NodeUnschedulable {
        plugin: "NodeUnschedulable", message: "node(s) were unschedulable", resolver: ClusterAdmin,
        meaning: "The node is cordoned and the pod does not tolerate node.kubernetes.io/unschedulable.",
        remedy: "kubectl uncordon the node, or wait for its maintenance to end.",
        never: "kubectl uncordon the node."
    }
    NodeNameMismatch {
        plugin: "NodeName", message: "node(s) didn't match the requested node name", resolver: PodOwner,
        meaning: "The pod asks for another node by name.",
        remedy: "Correct or remove spec.nodeName."
    }
    UntoleratedTaint {
        plugin: "TaintToleration", message: "node(s) had untolerated taint(s)", resolver: PodOwner,
        meaning: "The node has a NoSchedule or NoExecute taint that the pod does not tolerate.",
        remedy: "Add a toleration to the pod, or remove the taint from the node."
    }
    NodeAffinityMismatch {
        plugin: "NodeAffinity", message: "node(s) didn't match Pod's node affinity/selector", resolver: PodOwner,
        meaning: "The node's labels or name do not satisfy the pod's nodeSelector or required node affinity.",
        remedy: "Relax the pod's nodeSelector or affinity, or label nodes accordingly."
    }
    AddedAffinityMismatch {
        plugin: "NodeAffinity", message: "node(s) didn't match scheduler-enforced node affinity", resolver: SchedulerAdmin,
        meaning: "The node does not satisfy the affinity that the profile adds (NodeAffinityArgs.addedAffinity).",
        remedy: "Use another profile, or change addedAffinity in the scheduler's configuration."
    }
    AffinityTermsConflict {
        plugin: "NodeAffinity", message: "pod affinity terms conflict", resolver: PodOwner,
        meaning: "Every required term asks for nodes by name, and no name satisfies one of them.",
        remedy: "Correct the matchFields of the pod's node affinity."
    }
    HostPortConflict {
        plugin: "NodePorts", message: "node(s) didn't have free ports for the requested pod ports", resolver: Time,
        meaning: "Another pod on the node holds a host port that this pod asks for.",
        remedy: "Wait for the other pod to end, use another host port, or use a Service instead.",
        never: "Use another host port, add nodes, or use a Service instead."
    }
    TooManyPods {
        plugin: "NodeResourcesFit", message: "Too many pods", resolver: Time,
        meaning: "The node runs as many pods as it allows.",
        remedy: "Wait for pods to end, add nodes, or raise the kubelet's maxPods.",
        never: "Add nodes, or raise the kubelet's maxPods."
    }
    InsufficientResource {
        plugin: "NodeResourcesFit", message: "Insufficient {}", resolver: Time,
        meaning: "What the pod requests of the resource is more than the node has left.",
        remedy: "Wait for pods to end, add nodes, or lower the request.",
        never: "Lower the request, or add nodes that have as much to give."
    }
    ResourceLeftOut {
        plugin: "NodeResourcesFit", message: "node(s) had extended resource left out: {}", resolver: ClusterAdmin,
        meaning: "Nodes offer more different resources than the scheduler keeps at a time (1024 beside CPU, memory, ephemeral storage and pods). What was offered beyond that is not counted, so no pod that requests it can be placed.",
        remedy: "Take extended resources that nobody requests off the nodes; the one that is left out counts as soon as there is room for it. GET /apis/v1/nodes names on each node what is left out."
    }
    SpreadLabelMissing {
        plugin: "PodTopologySpread", message: "node(s) didn't match pod topology spread constraints (missing required label)", resolver: ClusterAdmin,
        meaning: "The node lacks the label over whose values the pod must be spread (topologyKey of a DoNotSchedule constraint).",
        remedy: "Label the node, or correct topologyKey in the pod's topologySpreadConstraints."
    }
    SpreadSkewTooLarge {
        plugin: "PodTopologySpread", message: "node(s) didn't match pod topology spread constraints", resolver: PodOwner,
        meaning: "With this pod the node's domain would hold over maxSkew more matching pods than the domain with the fewest.",
        remedy: "Make room in the domains with fewer matching pods, raise maxSkew, or use whenUnsatisfiable: ScheduleAnyway."
    }
    PodAffinityMismatch {
        plugin: "InterPodAffinity", message: "node(s) didn't match pod affinity rules", resolver: PodOwner,
        meaning: "A required podAffinity term finds no matching pod in the node's domain, or the node lacks its topologyKey.",
        remedy: "Start the pods it wants to be near, correct selector, namespaces or topologyKey, or make the term a preference."
    }
    PodAntiAffinityConflict {
        plugin: "InterPodAffinity", message: "node(s) didn't match pod anti-affinity rules", resolver: PodOwner,
        meaning: "A pod in the node's domain matches a required podAntiAffinity term of this pod.",
        remedy: "Add nodes in other domains, wait for the other pods to end, or make the term a preference.",
        never: "Add nodes in other domains, or make the term a preference."
    }
    ExistingAntiAffinityConflict {
        plugin: "InterPodAffinity", message: "node(s) didn't satisfy existing pods anti-affinity rules", resolver: PodOwner,
        meaning: "A pod in the node's domain has a required podAntiAffinity term that this pod matches.",
        remedy: "Add nodes in other domains, wait for those pods to end, or change the labels by which they keep this pod away.",
        never: "Add nodes in other domains, or change the labels by which those pods keep this pod away."
    }
    DiskConflict {
        plugin: "VolumeRestrictions", message: "node(s) had no available disk", resolver: Time,
        meaning: "A pod on the node mounts the same disk in a way that excludes a second pod.",
        remedy: "Wait for the other pod to end, or mount the disk read-only in both pods where its kind allows that.",
        never: "Mount the disk read-only in both pods where its kind allows that, or use another disk."
    }
    ClaimInUse {
        plugin: "VolumeRestrictions", message: "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod", resolver: Time,
        meaning: "A claim of the pod has access mode ReadWriteOncePod, and another pod uses it, on whichever node.",
        remedy: "Wait for the other pod to end, or give each pod a claim of its own.",
        never: "Give each pod a claim of its own."
    }
    TooManyVolumes {
        plugin: "NodeVolumeLimits", message: "node(s) exceed max volume count", resolver: Time,
        meaning: "With the pod's volumes the node would have more volumes of a CSI driver than its CSINode allows.",
        remedy: "Wait for pods with volumes to end, add nodes, or use nodes to which more volumes can be attached.",
        never: "Add nodes, use fewer volumes, or use nodes to which more volumes can be attached."
    }
    DriverMissing {
        plugin: "NodeVolumeLimits", message: "{} CSI driver is not installed on the node", resolver: ClusterAdmin,
        meaning: "The pod needs a volume of a CSI driver that the node lacks, and the CSIDriver says preventPodSchedulingIfMissing.",
        remedy: "Wait until the driver's node plugin runs on the node and is in its CSINode, or install it there.",
        never: "Install the driver's node plugin on the node, so that it is in its CSINode."
    }
    ClaimNotFound {
        plugin: "VolumeBinding", message: "persistentvolumeclaim \"{}\" not found", resolver: PodOwner,
        meaning: "The pod mounts a PersistentVolumeClaim that does not exist.",
        remedy: "Create the claim in the pod's namespace, or correct its name in the pod."
    }
    EphemeralClaimMissing {
        plugin: "VolumeBinding", message: "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"", resolver: Time,
        meaning: "The claim of a generic ephemeral volume is not there yet; normal for a moment after the pod was made.",
        remedy: "Wait; if it lasts, look at the ephemeral volume controller in kube-controller-manager."
    }
    ClaimLost {
        plugin: "VolumeBinding", message: "persistentvolumeclaim {}", resolver: PodOwner,
        meaning: "The volume to which a claim of the pod was bound is gone, and the data with it.",
        remedy: "Delete the claim and make a new one, or restore the PersistentVolume from a backup."
    }
    ClaimDeleting {
        plugin: "VolumeBinding", message: "persistentvolumeclaim \"{}\" is being deleted", resolver: PodOwner,
        meaning: "A claim of the pod is being deleted.",
        remedy: "Wait until it is gone and create it anew, or use another claim."
    }
    ClaimNotForPod {
        plugin: "VolumeBinding", message: "PVC {} (pod is not owner)", resolver: PodOwner,
        meaning: "A claim with the name of the pod's generic ephemeral volume exists, but was not made for this pod.",
        remedy: "Rename or delete that claim, or rename the pod or its volume."
    }
    UnboundImmediateClaims {
        plugin: "VolumeBinding", message: "pod has unbound immediate PersistentVolumeClaims", resolver: ClusterAdmin,
        meaning: "A claim of the pod is not bound, and its storage class does not wait for a pod, or does not exist.",
        remedy: "See the claim's events: a volume must be made or provisioned for it, or its storage class corrected."
    }
    VolumeNodeAffinityConflict {
        plugin: "VolumeBinding", message: "node(s) didn't match PersistentVolume's node affinity", resolver: ClusterAdmin,
        meaning: "A volume to which a claim of the pod is bound cannot be reached from the node.",
        remedy: "Make room on the nodes that the volume's nodeAffinity names, or move the data to another volume."
    }
    NoVolumeToBind {
        plugin: "VolumeBinding", message: "node(s) didn't find available persistent volumes to bind", resolver: ClusterAdmin,
        meaning: "For a claim of the pod there is no free volume that the node can reach, and none can be provisioned for it.",
        remedy: "Add volumes that fit the claim, or correct the provisioner or allowedTopologies of its storage class."
    }
    NotEnoughStorage {
        plugin: "VolumeBinding", message: "node(s) did not have enough free storage", resolver: ClusterAdmin,
        meaning: "No CSIStorageCapacity that the node can reach has room for a volume that must be provisioned.",
        remedy: "Free or add storage where the node can reach it, or lower the size of the claim."
    }
    VolumeGone {
        plugin: "VolumeBinding", message: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", resolver: ClusterAdmin,
        meaning: "A claim of the pod is bound to a volume that does not exist.",
        remedy: "Restore the PersistentVolume, or delete the claim and make a new one."
    }
    VolumeBindingFailed {
        plugin: "VolumeBinding", message: "binding volumes: {}", resolver: ClusterAdmin,
        meaning: "A node was chosen, but the pod's volumes could not be bound for it; the pod is tried again.",
        remedy: "See the claim's events: usually the provisioner says why it failed."
    }
    VolumeZoneConflict {
        plugin: "VolumeZone", message: "node(s) had no available volume zone", resolver: ClusterAdmin,
        meaning: "A volume of the pod is in a zone or region in which the node is not.",
        remedy: "Make room in the zone of the volume, or move the data to another volume."
    }
    ClaimWithoutClass {
        plugin: "VolumeZone", message: "PersistentVolumeClaim had no pv name and storageClass name", resolver: PodOwner,
        meaning: "A claim of the pod is not bound and names no storage class.",
        remedy: "Bind the claim to a volume, or make it anew with a storage class."
    }
    ClassNotFound {
        plugin: "VolumeZone", message: "storageclass.storage.k8s.io \"{}\" not found", resolver: ClusterAdmin,
        meaning: "The storage class of an unbound claim of the pod does not exist.",
        remedy: "Create the StorageClass, or make the claim anew with another one."
    }
    ClaimWithoutVolume {
        plugin: "VolumeZone", message: "PersistentVolume had no name", resolver: ClusterAdmin,
        meaning: "A claim of the pod is not bound, and its storage class does not wait for a pod.",
        remedy: "See the claim's events: a volume must be made or provisioned for it."
    }
    VolumeNotFound {
        plugin: "VolumeZone", message: "persistentvolume \"{}\" not found", resolver: ClusterAdmin,
        meaning: "A claim of the pod names a volume that does not exist.",
        remedy: "Restore the PersistentVolume, or delete the claim and make a new one."
    }
    DynamicResourcesUnsupported {
        plugin: "DynamicResources", message: "dynamic resource allocation is not supported; the pod uses resource claims [{}]", resolver: SchedulerAdmin,
        meaning: "The pod lists spec.resourceClaims, and this scheduler does not allocate devices to claims.",
        remedy: "Give the pod to a scheduler that does (spec.schedulerName), or request the devices as extended resources."
    }
    FeaturesMissing {
        plugin: "NodeDeclaredFeatures", message: "node(s) didn't match Pod's required features", resolver: ClusterAdmin,
        meaning: "The pod uses a feature that the node does not list in status.declaredFeatures.",
        remedy: "Upgrade or configure the kubelet on nodes for the pod, or do without the feature."
    }
    UsageExceeded {
        plugin: "LoadAwareScheduling", message: "node(s) {} usage exceed threshold", resolver: Time,
        meaning: "With the pod, the node's usage of this resource, as its NodeMetric reports it and as estimated for pods that came since, would be above the node's threshold.",
        remedy: "Wait for usage to fall, add nodes, or raise usageThresholds or prodUsageThresholds (arguments of LoadAwareScheduling, or annotation usage-thresholds of the node).",
        never: "Add nodes, request less, or raise usageThresholds or prodUsageThresholds (arguments of LoadAwareScheduling, or annotation usage-thresholds of the node)."
    }
    AggregatedUsageExceeded {
        plugin: "LoadAwareScheduling", message: "node(s) {} aggregated usage exceed threshold", resolver: Time,
        meaning: "With the pod, the node's usage of this resource over a period, as its NodeMetric reports it and as estimated for pods that came since, would be above the node's threshold.",
        remedy: "Wait for usage to fall, add nodes, or raise the aggregated usageThresholds (arguments of LoadAwareScheduling, or annotation usage-thresholds of the node).",
        never: "Add nodes, request less, or raise the aggregated usageThresholds (arguments of LoadAwareScheduling, or annotation usage-thresholds of the node)."
    }
    NodeMetricExpired {
        plugin: "LoadAwareScheduling", message: "node(s) nodeMetric expired", resolver: ClusterAdmin,
        meaning: "The node's NodeMetric was last updated longer ago than nodeMetricExpirationSeconds, so its usage is unknown.",
        remedy: "See why koordlet on the node does not report, or set filterExpiredNodeMetrics to false."
    }
    NumaTopologyMismatch {
        plugin: "Scheduler", message: "node(s) NUMA Topology affinity error", resolver: Time,
        meaning: "The node has what the pod requests, but no set of its NUMA nodes offers all of it together as the topology policy demands. The plugin named is the one that knows the policy.",
        remedy: "Wait for pods to end there, request less, or relax the topology policy of the node or of the pod.",
        never: "Request less, or relax the topology policy of the node or of the pod."
    }
    PluginsDisagree {
        plugin: "Scheduler", message: "node(s) didn't satisfy plugin(s) [{}] simultaneously", resolver: PodOwner,
        meaning: "Plugins that each restrict the pod to a set of nodes by name have no node in common.",
        remedy: "Bring the pod's constraints by node name into agreement."
    }
    NamedNodesMissing {
        plugin: "Scheduler", message: "node(s) didn't satisfy plugin(s) [{}]", resolver: PodOwner,
        meaning: "Plugins restrict the pod to nodes by name, and none of these is in the cluster.",
        remedy: "Nothing if the node comes back; else delete the pod or name another node. A DaemonSet's pod of a deleted node goes by itself."
    }
    NotTried {
        plugin: "Scheduler", message: "not tried yet", resolver: Time,
        meaning: "The pod is in the queue and has not been tried since it entered or lost its place.",
        remedy: "Nothing is wrong; GET /apis/v1/queue?position=namespace/name says who is ahead of it."
    }
    Placed {
        plugin: "Scheduler", message: "placed; its Binding is under way", resolver: Time,
        meaning: "The pod has a node, and the API server has not confirmed its Binding yet.",
        remedy: "Nothing is wrong; if it stays so, see what PreBind waits for, and the lanes in /metrics."
    }
    WaitingAtPermit {
        plugin: "Coscheduling", message: "holds a place and waits at Permit", resolver: Time,
        meaning: "The pod has a place on a node and waits until a deadline: in a NonStrict gang for the quorum, else for a plugin.",
        remedy: "See the gang's explanation for the members that have no place yet, or the pod's for the plugin."
    }
    NodeLeftOut {
        plugin: "Scheduler", message: "node(s) were not looked at: PreFilter left them out", resolver: PodOwner,
        meaning: "A plugin restricted the pod to other nodes by name before any filter was asked.",
        remedy: "See the pod's node affinity to names, or where its volumes can be reached."
    }
    NodeGone {
        plugin: "Scheduler", message: "the node does not exist any more", resolver: ClusterAdmin,
        meaning: "The pod is on a node whose object was deleted.",
        remedy: "Bring the node back, or delete the pod."
    }
    NoNodes {
        plugin: "Scheduler", message: "no nodes available to schedule pods", resolver: ClusterAdmin,
        meaning: "The cluster has no nodes.",
        remedy: "Add nodes."
    }
    BindRefused {
        plugin: "DefaultBinder", message: "binding refused: {}", resolver: ClusterAdmin,
        meaning: "The API server refused the binding; the pod is tried again after a backoff.",
        remedy: "Read the server's message; often another writer bound or changed the pod, or the node is gone."
    }
    Unreadable {
        plugin: "Scheduler", message: "cannot read {}", resolver: PodOwner,
        meaning: "The API server accepted the object but the scheduler cannot read one of its fields.",
        remedy: "Correct the field; everything else goes on meanwhile."
    }
    PluginRefused {
        plugin: "Scheduler", message: "{}", resolver: SchedulerAdmin,
        meaning: "A plugin that is not part of the scheduler refused the node; the message is its own.",
        remedy: "See the documentation of the plugin."
    }
    PreBindFailed {
        plugin: "Scheduler", message: "running PreBind failed: {}", resolver: Time,
        meaning: "What had to be done before the pod is bound, such as binding its volumes, did not come about.",
        remedy: "The pod is tried again after a backoff; see the events of its claims."
    }
    PermitTimedOut {
        plugin: "Scheduler", message: "waited too long at Permit for {}", resolver: Time,
        meaning: "The pod held a place, and a plugin did not let it go on to its Binding in time.", remedy: "The pod is tried again after a backoff; see what the plugin waits for."
    }
    PlacementTakenBack {
        plugin: "DefaultPreemption", message: "lost its place on {} to a pod of higher priority", resolver: Time,
        meaning: "The pod was placed but its Binding was not ordered yet when a pod of higher priority needed the room.",
        remedy: "The pod is tried again after a backoff; give it a higher priority, or add nodes."
    }
    PreemptionNotHelpful {
        plugin: "DefaultPreemption", message: "Preemption is not helpful for scheduling", resolver: PodOwner,
        meaning: "The node refuses the pod for something that no other pod's going would change.",
        remedy: "Change what the pod asks of the node, or the node."
    }
    NoPreemptionVictims {
        plugin: "DefaultPreemption", message: "No preemption victims found for incoming pod", resolver: PodOwner,
        meaning: "No pod of lower priority is on the node.",
        remedy: "Give the pod a higher priority, free the node, or add nodes."
    }
    PreemptionPolicyNever {
        plugin: "DefaultPreemption", message: "not eligible due to preemptionPolicy=Never.", resolver: PodOwner,
        meaning: "The pod's priority class says that it never evicts others.",
        remedy: "Wait for room, or use a priority class with preemptionPolicy PreemptLowerPriority."
    }
    PreemptionUnderWay {
        plugin: "DefaultPreemption", message: "not eligible due to a terminating pod on the nominated node.", resolver: Time,
        meaning: "The pod has evicted others already and waits until they are gone.",
        remedy: "Wait for the victims' grace periods to end."
    }
    InternalError {
        plugin: "Scheduler", message: "internal error: {}", resolver: SchedulerAdmin,
        meaning: "The program met a defect: a plugin failed where it must not, and the pod is tried again after a backoff; or a request could not be answered.",
        remedy: "Report it with the body of explain."
    }
}

impl ReasonCode {
    /// Returns the message with a subject filled in.
    pub fn message(self, subject: &str) -> String {
        self.entry().message.replacen("{}", subject, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_that_of_its_code() {
        for entry in REGISTRY {
            assert_eq!(entry.code.entry().code, entry.code);
            assert!(entry.meaning.ends_with('.') && entry.remedy.ends_with('.'), "{:?}", entry.code);
        }
    }

    #[test]
    fn messages_name_their_subject() {
        assert_eq!(ReasonCode::InsufficientResource.message("cpu"), "Insufficient cpu");
        assert_eq!(ReasonCode::TooManyPods.message(""), "Too many pods");
    }
}
