//! PodGroups of every API group. The writer of their status (`writes::group_status`) reads those first whose conditions
//! others write too.
//!
//! A PodGroup with an unusable spec is still a PodGroup: the error becomes a problem of the gang, so that the gang
//! says why its pods wait. The object is quarantined only when its identity (`metadata`) cannot be read.
//!
//! Native PodGroups are read as Kubernetes 1.36 (v1alpha2) and 1.37 (v1alpha3, v1beta1) write them. kube-batch's
//! `priorityClassName` is not read: PriorityClasses are not watched, and such a gang has the highest priority of its
//! members, which the API server filled in.

use std::time::Duration;

use pellucid_model::gang::{GangProblem, GangTerms, PodGroup};
use pellucid_model::requests::ResourceList;
use pellucid_model::{GangKey, Name, Object, ObjectKind};

use crate::decode::Item;
use crate::decode::fields::{filled, text};
use crate::decode::gangs::terms::{self, Annotations, At, fatal, warning};
use crate::decode::lenient::{Fault, Lenient, List, Map, QuantityText};
use crate::decode::objects::{bodies, object, own_key};
use crate::decode::requests::{amounts, resource_list};
use crate::decode::wire::{EmptySource, Meta, wire_types};
use crate::kinds::gangs::group_status::{GroupStatusBody, status};
use crate::kinds::resource::{BuiltIn, Resource};

/// Those of scheduler-plugins.
pub(crate) static X: BuiltIn = BuiltIn {
    resource: Resource {
        verbs: &["status/patch"],
        ..Resource::new("scheduling.x-k8s.io", "v1alpha1", "podgroups")
    },
    read: |text| read(ObjectKind::PodGroupX, text),
};

/// Those of earlier versions of scheduler-plugins, and of Koordinator.
pub(crate) static SIGS: BuiltIn = BuiltIn {
    resource: Resource {
        verbs: &["status/patch"],
        ..Resource::new("scheduling.sigs.k8s.io", "v1alpha1", "podgroups")
    },
    read: |text| read(ObjectKind::PodGroupSigs, text),
};

/// Those of earlier versions of kube-batch.
pub(crate) static INCUBATOR: BuiltIn = BuiltIn {
    resource: Resource {
        verbs: &["get", "status/patch"],
        ..Resource::new("scheduling.incubator.k8s.io", "v1alpha1", "podgroups")
    },
    read: |text| read(ObjectKind::PodGroupIncubator, text),
};

/// Those of kube-batch.
pub(crate) static SIGS_DEV: BuiltIn = BuiltIn {
    resource: Resource {
        verbs: &["get", "status/patch"],
        ..Resource::new("scheduling.sigs.dev", "v1alpha2", "podgroups")
    },
    read: |text| read(ObjectKind::PodGroupSigsDev, text),
};

/// Those of Kubernetes.
pub(crate) static NATIVE: BuiltIn = BuiltIn {
    resource: Resource {
        is_discovered: true,
        verbs: &["get", "status/patch"],
        ..Resource::new("scheduling.k8s.io", "v1alpha2", "podgroups")
    },
    read: |text| read(ObjectKind::PodGroupNative, text),
};

wire_types! {
    /// A PodGroup of any API group.
    struct GroupBody {
        metadata: Lenient<Meta>,
        spec: Lenient<GroupSpec>,
        status: Lenient<GroupStatusBody>,
    }
    /// `spec` of a PodGroup: the fields of all API groups.
    struct GroupSpec {
        min_member: Lenient<i64>,
        min_resources: Map<QuantityText>,
        schedule_timeout_seconds: Lenient<i64>,
        queue: Lenient<Name>,
        priority: Lenient<i64>,
        scheduling_policy: Lenient<GroupPolicy>,
        scheduling_constraints: Lenient<GroupConstraints>,
        parent_composite_pod_group_name: Lenient<Name>,
        pod_group_template_ref: Lenient<GroupTemplate>,
        workload_ref: Lenient<WorkloadReference>,
    }
    /// `spec.schedulingPolicy` of a native PodGroup.
    struct GroupPolicy {
        basic: Lenient<EmptySource>,
        gang: Lenient<GangPolicy>,
    }
    /// `spec.schedulingPolicy.gang` of a native PodGroup.
    struct GangPolicy {
        min_count: Lenient<i64>,
    }
    /// `spec.schedulingConstraints` of a native PodGroup; only their presence matters.
    struct GroupConstraints {
        topology: List<EmptySource>,
    }
    /// `spec.podGroupTemplateRef` of a native PodGroup.
    struct GroupTemplate {
        workload: Lenient<WorkloadReference>,
    }
    /// A reference to the Workload that a native PodGroup was made from.
    struct WorkloadReference {
        workload_name: Lenient<Name>,
    }
}

bodies!(GroupBody);

fn read(kind: ObjectKind, text: &[u8]) -> serde_json::Result<Item<Object>> {
    object(kind, text, |body: &GroupBody, meta: &Meta| pod_group(kind, body, meta).map(Object::PodGroup))
}

fn pod_group(kind: ObjectKind, body: &GroupBody, meta: &Meta) -> Result<PodGroup, Fault> {
    let (namespace, name) = own_key(meta)?;
    let mut group = PodGroup { kind, key: GangKey { namespace, name }, ..PodGroup::default() };
    identify(&mut group, meta).map_err(|f| f.under("metadata"))?;
    let annotations = Annotations::of(meta)?;
    let mut problems = Vec::new();
    let mut spec = SpecReader { problems: &mut problems };
    match body.spec.read("spec") {
        Ok(Some(own)) => spec.read(&mut group, own),
        Ok(None) => spec.read(&mut group, &GroupSpec::default()),
        Err(fault) => problems.push(of_fault(fault)),
    }
    add_annotations(&mut group, annotations, &mut problems);
    group.status = body.status.good().map(|own| status(kind, own)).unwrap_or_default();
    group.problems = problems.into();
    Ok(group)
}

fn identify(group: &mut PodGroup, meta: &Meta) -> Result<(), Fault> {
    group.uid = text(&meta.uid, "uid")?;
    group.created = meta.creation_timestamp.read("creationTimestamp")?.map_or(0, |m| m.0);
    group.deleting = meta.deletion_timestamp.read("deletionTimestamp")?.is_some();
    Ok(())
}

/// Applies Koordinator's annotations. The native scheduler ignores them, so native PodGroups ignore them here, too.
fn add_annotations(group: &mut PodGroup, all: Annotations<'_>, problems: &mut Vec<GangProblem>) {
    if all.is_empty() || group.kind == ObjectKind::PodGroupNative {
        return;
    }
    let said = terms::koordinator(all, &group.key, group.terms.min, problems);
    // `scheduleTimeoutSeconds` takes precedence over the annotation.
    group.terms = GangTerms { wait: group.terms.wait.or(said.wait), ..said };
}

/// Turns a fault with its whole path into a fatal problem.
fn of_fault(fault: Fault) -> GangProblem {
    let Fault { field, value, problem } = fault;
    GangProblem { field: field.into(), value: value.into(), problem: problem.into(), is_fatal: true }
}

struct SpecReader<'p> {
    problems: &'p mut Vec<GangProblem>,
}

impl SpecReader<'_> {
    fn read(&mut self, group: &mut PodGroup, spec: &GroupSpec) {
        if group.kind == ObjectKind::PodGroupNative {
            return self.native(group, spec);
        }
        let least = if group.kind == ObjectKind::PodGroupX { 1 } else { 0 };
        group.terms.min = self.members(&spec.min_member, "spec.minMember", least);
        group.terms.wait = self.timeout(spec);
        group.min_resources = self.min_resources(spec);
        group.queue = self.good(filled(&spec.queue, "queue")).flatten().unwrap_or_default();
    }

    fn native(&mut self, group: &mut PodGroup, spec: &GroupSpec) {
        let path = "spec.schedulingPolicy";
        let Some(policy) = self.good(spec.scheduling_policy.read("schedulingPolicy")) else { return };
        let policy = policy.cloned().unwrap_or_default();
        let mut wrong = |path, value: &str, why: &str| self.problems.push(fatal(At::Field(path), value, why));
        match (&policy.basic, &policy.gang) {
            (Lenient::Good(_), Lenient::Absent) => group.is_basic = true,
            (Lenient::Absent, Lenient::Good(gang)) => {
                group.terms.min = self.members(&gang.min_count, "spec.schedulingPolicy.gang.minCount", 1);
            }
            (Lenient::Absent, Lenient::Absent) => wrong(path, "", "has neither basic nor gang"),
            (Lenient::Bad(value), _) => wrong("spec.schedulingPolicy.basic", value, "not an object"),
            (_, Lenient::Bad(value)) => wrong("spec.schedulingPolicy.gang", value, "not an object"),
            (Lenient::Good(_), Lenient::Good(_)) => wrong(path, "(object)", "has both basic and gang"),
        }
        group.priority = self.priority(spec);
        group.workload = self.workload(spec);
        self.note_what_is_not_looked_at(spec);
    }

    /// Reads a required number of members. Otherwise records a fatal problem.
    fn members(&mut self, value: &Lenient<i64>, path: &'static str, least: u32) -> Option<u32> {
        let (text, problem) = match value {
            Lenient::Absent => (String::new(), "missing".to_owned()),
            Lenient::Bad(text) => (text.to_string(), "not a number of members".to_owned()),
            Lenient::Good(n) => match u32::try_from(*n) {
                Ok(n) if n >= least && i32::try_from(n).is_ok() => return Some(n),
                _ => (n.to_string(), format!("must be {least} or more, and at most {}", i32::MAX)),
            },
        };
        self.problems.push(fatal(At::Field(path), &text, problem));
        None
    }

    fn timeout(&mut self, spec: &GroupSpec) -> Option<Duration> {
        let (text, problem) = match &spec.schedule_timeout_seconds {
            Lenient::Absent | Lenient::Good(0) => return None,
            Lenient::Good(seconds) => match u32::try_from(*seconds) {
                Ok(seconds) => return Some(Duration::from_secs(seconds.into())),
                Err(_) => (seconds.to_string(), "not a 32-bit number above zero, the default is taken"),
            },
            Lenient::Bad(text) => (text.to_string(), "not an integer, the default is taken"),
        };
        self.problems.push(warning(At::Field("spec.scheduleTimeoutSeconds"), &text, problem));
        None
    }

    fn min_resources(&mut self, spec: &GroupSpec) -> Option<ResourceList> {
        let read = self.good(amounts(&spec.min_resources, "minResources"))?;
        if let Some((name, amount)) = read.iter().find(|(_, amount)| *amount < 0) {
            let fault = Fault::new(name, &amount.to_string(), "must not be negative");
            self.problems.push(of_fault(fault.under("minResources").under("spec")));
            return None;
        }
        (!read.is_empty()).then(|| resource_list(read))
    }

    fn priority(&mut self, spec: &GroupSpec) -> Option<i32> {
        let &priority = self.good(spec.priority.read("priority"))??;
        let fault = || Fault::new("priority", &priority.to_string(), "not a 32-bit integer");
        self.good(i32::try_from(priority).map_err(|_| fault()))
    }

    /// Returns the Workload that the group was made from: `podGroupTemplateRef.workload` in 1.36, `workloadRef` in
    /// 1.37. It is shown to people and decides nothing, so an unreadable reference is ignored.
    fn workload(&mut self, spec: &GroupSpec) -> Option<Name> {
        let name = |reference: &WorkloadReference| reference.workload_name.good().cloned();
        let template = spec.pod_group_template_ref.good().and_then(|of| of.workload.good());
        spec.workload_ref.good().or(template).and_then(name).filter(|name| !name.is_empty())
    }

    fn note_what_is_not_looked_at(&mut self, spec: &GroupSpec) {
        let constraints = spec.scheduling_constraints.good();
        let topology = constraints.and_then(|c| c.topology.good()).is_some_and(|t| !t.is_empty());
        if topology {
            let at = At::Field("spec.schedulingConstraints.topology");
            self.problems.push(warning(at, "(list)", "not looked at by this scheduler"));
        }
        if let Some(parent) = spec.parent_composite_pod_group_name.good().filter(|name| !name.is_empty()) {
            let at = At::Field("spec.parentCompositePodGroupName");
            self.problems.push(warning(at, parent, "not looked at by this scheduler"));
        }
    }

    /// Returns a value of `spec`, or records its fault as a problem.
    fn good<T>(&mut self, read: Result<T, Fault>) -> Option<T> {
        read.map_err(|fault| self.problems.push(of_fault(fault.under("spec")))).ok()
    }
}
