//! Decodes the requests of a pod: containers, sidecars, pod level, overhead, in-place resize.

use pellucid_model::Name;
use pellucid_model::pod::{Qos, RequestField};
use pellucid_model::quantity::{self, QuantityError};
use pellucid_model::requests::{ContainerRequests, Exact, PodRequests, RequestInputs, ResourceList, rounded};

use crate::decode::containers::is_sidecar;
use crate::decode::decoder::rename_resources;
use crate::decode::fields::name;
use crate::decode::lenient::{Fault, Lenient, List, Map, QuantityText};
use crate::decode::wire;

type Amounts = Vec<(Name, i64)>;

/// Reads the requests of a pod. Faults have the whole path.
pub(crate) fn requests(spec: &wire::PodSpec, status: &wire::PodStatus) -> Result<PodRequests, Fault> {
    let under_status = |fault: Fault| fault.under("status");
    let infeasible = resize_is_infeasible(status).map_err(under_status)?;
    let running = statuses(&status.container_statuses, "containerStatuses").map_err(under_status)?;
    let running_init =
        statuses(&status.init_container_statuses, "initContainerStatuses").map_err(under_status)?;
    let running_pod = in_use(&status.allocated_resources, &status.resources).map_err(under_status)?;
    let read = || {
        let wanted = filled_in(pod_level(spec)?, spec)?;
        let mut pod_level = wanted.clone();
        if let Some(running_pod) = running_pod {
            // Only what the spec names counts for the pod as a whole.
            let counts = resized(wanted, Some(running_pod), infeasible);
            let of = |name: &Name| counts.iter().find(|(known, _)| known == name).map_or(0, |(_, a)| *a);
            pod_level.iter_mut().for_each(|(name, amount)| *amount = of(name));
        }
        Ok(RequestInputs {
            containers: spec.containers.each("containers", |c| container(c, &running, infeasible, false))?,
            init_containers: spec.init_containers.each("initContainers", |c| {
                let sidecar = is_sidecar(c)?;
                // A plain init container cannot be resized.
                container(c, if sidecar { &running_init } else { &[] }, infeasible, sidecar)
            })?,
            overhead: exact(&spec.overhead, "overhead")?,
            pod_level,
        })
    };
    read().map(|inputs| PodRequests::compute(&inputs)).map_err(|fault: Fault| fault.under("spec"))
}

/// Reads the requests of a pod as a whole: of CPU, memory and huge pages. As API servers fill in, a resource that has only a
/// limit there, and that no container requests, requests the limit.
fn pod_level(spec: &wire::PodSpec) -> Result<Exact, Fault> {
    let read = |own: &wire::Resources| Ok((exact(&own.requests, "requests")?, exact(&own.limits, "limits")?));
    let (mut wanted, limits) = spec.resources.within("resources", read)?;
    wanted.retain(|(name, _)| is_pod_level(name));
    if limits.is_empty() {
        return Ok(wanted);
    }
    let of_all = of_all_containers(spec)?;
    for (resource, limit) in limits {
        let names = |(known, _): &(Name, i128)| *known == resource;
        // Huge pages are not shared, so what containers request of them does not stand for the pod's.
        let is_shared = matches!(resource.as_str(), "cpu" | "memory");
        let is_set = wanted.iter().any(names) || (is_shared && of_all.iter().any(names));
        if !is_set && is_pod_level(&resource) {
            wanted.push((resource, limit));
        }
    }
    Ok(wanted)
}

/// Returns whether a pod as a whole can request a resource.
fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Reads what each container requests.
fn of_all_containers(spec: &wire::PodSpec) -> Result<Exact, Fault> {
    let containers = spec.containers.each("containers", wanted)?;
    let init_containers = spec.init_containers.each("initContainers", wanted)?;
    Ok(containers.into_iter().chain(init_containers).flatten().collect())
}

/// Adds what API servers fill in: a pod with limits as a whole requests what its containers request of CPU and memory.
fn filled_in(mut pod_level: Exact, spec: &wire::PodSpec) -> Result<Exact, Fault> {
    if spec.resources.within("resources", |own| exact(&own.limits, "limits"))?.is_empty() {
        return Ok(pod_level);
    }
    let of = |c: &wire::Container| Ok(ContainerRequests { amounts: wanted(c)?, is_sidecar: is_sidecar(c)? });
    let containers = spec.containers.each("containers", of)?;
    let init_containers = spec.init_containers.each("initContainers", of)?;
    let inputs = RequestInputs { containers, init_containers, ..RequestInputs::default() };
    for (resource, amount) in inputs.sums() {
        let is_set = pod_level.iter().any(|(known, _)| *known == resource);
        if !is_set && matches!(resource.as_str(), "cpu" | "memory") {
            pod_level.push((resource, amount));
        }
    }
    Ok(pod_level)
}

/// Reads whether a pod requests just what its only container does.
pub(crate) fn are_of_one(spec: &wire::PodSpec) -> Result<bool, Fault> {
    let containers = spec.containers.each("containers", |_| Ok(()))?.len();
    let init_containers = spec.init_containers.each("initContainers", |_| Ok(()))?.len();
    let overhead = exact(&spec.overhead, "overhead")?;
    let pod_level = pod_level(spec)?;
    Ok((containers, init_containers) == (1, 0) && overhead.is_empty() && pod_level.is_empty())
}

/// Reads which fields decide what a pod with several containers requests, of each resource the one with the widest reach.
pub(crate) fn request_fields(spec: &wire::PodSpec) -> Result<Box<[RequestField]>, Fault> {
    let of = |c: &wire::Container| Ok(ContainerRequests { amounts: wanted(c)?, is_sidecar: is_sidecar(c)? });
    let all = RequestInputs {
        containers: spec.containers.each("containers", of)?,
        init_containers: spec.init_containers.each("initContainers", of)?,
        overhead: exact(&spec.overhead, "overhead")?,
        pod_level: pod_level(spec)?,
    };
    let is_of_one = all.containers.len() == 1 && all.init_containers.is_empty();
    if is_of_one && all.overhead.is_empty() && all.pod_level.is_empty() {
        return Ok(Box::default());
    }
    let init_names = spec.init_containers.each("initContainers", |c| name(&c.name, "name"))?;
    let names = spec.containers.each("containers", |c| name(&c.name, "name"))?;
    let mut fields = Fields { whole: PodRequests::compute(&all).list, best: Vec::new() };
    for (at, (resource, own)) in all.pod_level.iter().enumerate() {
        let mut others = all.clone();
        others.pod_level.remove(at);
        fields.add(&others, *own, RequestField { resource: resource.clone(), ..RequestField::default() });
    }
    for (at, container) in all.init_containers.iter().enumerate() {
        for (resource, own) in &container.amounts {
            let mut others = all.clone();
            others.init_containers[at].amounts.retain(|(of, _)| of != resource);
            let init_container = Some((at, init_names[at].clone()));
            let field =
                RequestField { resource: resource.clone(), init_container, ..RequestField::default() };
            fields.add(&others, *own, field);
        }
    }
    for (at, container) in all.containers.iter().enumerate() {
        for (resource, own) in &container.amounts {
            let mut others = all.clone();
            others.containers[at].amounts.retain(|(of, _)| of != resource);
            let container = Some((at, names[at].clone()));
            let field = RequestField { resource: resource.clone(), container, ..RequestField::default() };
            fields.add(&others, *own, field);
        }
    }
    Ok(fields.best.into())
}

/// The fields that decide what a pod requests.
struct Fields {
    whole: ResourceList,
    best: Vec<RequestField>,
}

impl Fields {
    /// Adds a field that has this amount, if the pod requests less without it and no other field reaches as far. What a pod
    /// requests is the largest of several sums, so it falls with the field until another sum is the largest.
    fn add(&mut self, others: &RequestInputs, own: i128, field: RequestField) {
        let resource = &field.resource;
        // Of an amount that is rounded it is not known what the sum becomes with another one.
        let exact = own;
        let own = rounded(resource, exact);
        if resource.as_str() != "cpu" && i128::from(own) * 1_000 != exact {
            return;
        }
        let (whole, rest) = (self.whole.amount(resource), PodRequests::compute(others).list.amount(resource));
        if rest >= whole {
            return;
        }
        let known = self.best.iter().position(|known| known.resource == *resource);
        let field = RequestField { rest, beside: whole - own, ..field };
        match known {
            None => self.best.push(field),
            Some(at) if rest < self.best[at].rest => self.best[at] = field,
            Some(_) => {}
        }
    }
}

/// Reads the limits of a pod, summed up like its requests. Overhead adds to what has a limit. Faults have the whole
/// path.
pub(crate) fn limits(spec: &wire::PodSpec) -> Result<ResourceList, Fault> {
    let read = || {
        let of = |c: &wire::Container| c.resources.within("resources", |own| exact(&own.limits, "limits"));
        let container =
            |c: &wire::Container| Ok(ContainerRequests { amounts: of(c)?, is_sidecar: is_sidecar(c)? });
        Ok(RequestInputs {
            containers: spec.containers.each("containers", container)?,
            init_containers: spec.init_containers.each("initContainers", container)?,
            overhead: Vec::new(),
            pod_level: spec.resources.within("resources", |own| exact(&own.limits, "limits"))?,
        })
    };
    let mut inputs: RequestInputs = read().map_err(|fault: Fault| fault.under("spec"))?;
    let list = PodRequests::compute(&inputs).list;
    let overhead = exact(&spec.overhead, "overhead").map_err(|fault| fault.under("spec"))?;
    let has_limit = |name: &Name| list.named().any(|(limited, _)| limited == *name);
    inputs.overhead = overhead.into_iter().filter(|(name, _)| has_limit(name)).collect();
    Ok(if inputs.overhead.is_empty() { list } else { PodRequests::compute(&inputs).list })
}

/// Reads the QoS class of a pod (Kubernetes' `ComputePodQOS`). Faults have the whole path.
pub(crate) fn qos(spec: &wire::PodSpec) -> Result<Qos, Fault> {
    let positive = |list: Amounts| -> Amounts {
        let counts = |(name, amount): &(Name, i64)| matches!(name.as_str(), "cpu" | "memory") && *amount > 0;
        list.into_iter().filter(counts).collect()
    };
    let mut all: Vec<(Amounts, Amounts)> = Vec::new();
    let mut add = |resources: &Lenient<wire::Resources>| {
        let requests = resources.within("resources", |own| amounts(&own.requests, "requests"))?;
        let limits = resources.within("resources", |own| amounts(&own.limits, "limits"))?;
        all.push((positive(requests), positive(limits)));
        Ok::<_, Fault>(())
    };
    let under = |fault: Fault| fault.under("spec");
    let is_pod_level = !matches!(spec.resources, Lenient::Absent);
    if is_pod_level {
        add(&spec.resources).map_err(under)?;
    } else {
        spec.containers.each("containers", |c| add(&c.resources)).map_err(under)?;
        spec.init_containers.each("initContainers", |c| add(&c.resources)).map_err(under)?;
    }
    let amount = |list: &Amounts, name: &str| list.iter().find(|(n, _)| n.as_str() == name).map(|(_, a)| *a);
    let is_guaranteed = |(requests, limits): &(Amounts, Amounts)| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(limits, name);
            limit.is_some() && amount(requests, name).or(limit) == limit
        })
    };
    Ok(match () {
        () if all.iter().all(|(requests, limits)| requests.is_empty() && limits.is_empty()) => {
            Qos::BestEffort
        }
        () if all.iter().all(is_guaranteed) => Qos::Guaranteed,
        () => Qos::Burstable,
    })
}

/// Name of a running container and the larger of its allocated and actual requests, if it reports any.
struct Running {
    name: Name,
    amounts: Option<Exact>,
}

fn statuses(list: &List<wire::ContainerStatus>, field: &str) -> Result<Vec<Running>, Fault> {
    list.each(field, |status| {
        let amounts = in_use(&status.allocated_resources, &status.resources)?;
        Ok(Running { name: name(&status.name, "name")?, amounts })
    })
}

/// Returns the larger of what a kubelet has allocated and what it says is in force. As in kube-scheduler, what is allocated
/// does not count alone.
fn in_use(allocated: &Map<QuantityText>, actual: &Lenient<wire::Resources>) -> Result<Option<Exact>, Fault> {
    let allocated = exact(allocated, "allocatedResources")?;
    let actual = actual.if_present("resources", |own| exact(&own.requests, "requests"))?;
    Ok(actual.map(|actual| maximum(allocated, actual)))
}

/// Returns what counts while a resize is under way: the larger of what is wanted and in use, of an infeasible one what is in
/// use.
fn resized(wanted: Exact, in_use: Option<Exact>, infeasible: bool) -> Exact {
    match in_use {
        Some(in_use) if infeasible => in_use,
        Some(in_use) => maximum(wanted, in_use),
        None => wanted,
    }
}

/// Returns whether the kubelet reported a pending resize as infeasible: then the desired requests do not count.
fn resize_is_infeasible(status: &wire::PodStatus) -> Result<bool, Fault> {
    let infeasible = status.conditions.each("conditions", |condition| {
        let pending = name(&condition.r#type, "type")?.as_str() == "PodResizePending";
        Ok(pending && condition.reason.read("reason")?.is_some_and(|reason| &**reason == "Infeasible"))
    })?;
    Ok(infeasible.contains(&true))
}

fn container(
    container: &wire::Container,
    running: &[Running],
    infeasible: bool,
    is_sidecar: bool,
) -> Result<ContainerRequests, Fault> {
    let wanted = wanted(container)?;
    let own = container.name.read("name")?;
    let has = running.iter().find(|r| Some(&r.name) == own).and_then(|r| r.amounts.clone());
    Ok(ContainerRequests { amounts: resized(wanted, has, infeasible), is_sidecar })
}

/// Returns the requests in the spec. A resource that only has a limit requests the limit.
fn wanted(container: &wire::Container) -> Result<Exact, Fault> {
    container.resources.within("resources", |resources| {
        let mut wanted = exact(&resources.requests, "requests")?;
        for (resource, limit) in exact(&resources.limits, "limits")? {
            if !wanted.iter().any(|(known, _)| *known == resource) {
                wanted.push((resource, limit));
            }
        }
        Ok(wanted)
    })
}

/// Returns the larger amount of each resource.
fn maximum(mut one: Exact, other: Exact) -> Exact {
    for (resource, amount) in other {
        match one.iter_mut().find(|(known, _)| *known == resource) {
            Some((_, known)) => *known = (*known).max(amount),
            None => one.push((resource, amount)),
        }
    }
    one
}

/// Reads a resource list in thousandths, to be added up. API servers round to them.
fn exact(map: &Map<QuantityText>, field: &str) -> Result<Exact, Fault> {
    if matches!(map, Lenient::Absent) {
        return Ok(Vec::new());
    }
    let mut amounts = map.entries(field, |_, QuantityText(text)| read(text, quantity::thousandths))?;
    rename_resources(&mut amounts);
    Ok(amounts)
}

/// Reads a resource list in the model's units: thousandths for `cpu`, whole units for the rest.
pub(crate) fn amounts(map: &Map<QuantityText>, field: &str) -> Result<Amounts, Fault> {
    if matches!(map, Lenient::Absent) {
        return Ok(Vec::new());
    }
    let mut amounts = map.entries(field, amount)?;
    rename_resources(&mut amounts);
    Ok(amounts)
}

/// Reads one entry of a resource list. Faults lack the resource.
pub(crate) fn amount(resource: &Name, QuantityText(text): &QuantityText) -> Result<i64, Fault> {
    read(text, if resource.as_str() == "cpu" { quantity::milli } else { quantity::units })
}

fn read<T>(text: &str, as_number: fn(&str) -> Result<T, QuantityError>) -> Result<T, Fault> {
    as_number(text).map_err(|e| Fault::new("", text, format!("not a quantity: {}", e.problem)))
}

/// Builds a resource list from amounts.
pub(crate) fn resource_list(amounts: Amounts) -> ResourceList {
    let mut list = ResourceList::default();
    let mut scalars = Vec::new();
    for (resource, amount) in amounts {
        match resource.as_str() {
            "cpu" => list.milli_cpu = amount,
            "memory" => list.memory = amount,
            "ephemeral-storage" => list.ephemeral_storage = amount,
            "pods" => list.pods = amount,
            _ => scalars.push((resource, amount)),
        }
    }
    scalars.sort();
    list.scalars = scalars.into();
    list
}
