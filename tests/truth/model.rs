//! What keeps a pod off each node, worked out from the objects as the documentation of Kubernetes says it, without any
//! code of a scheduler but for amounts.

use std::collections::{BTreeMap, BTreeSet};

use pellucid::model::quantity;
use serde_json::Value;

use crate::edits::CLOSED;
use crate::objects::{Objects, list, node_of, text};

/// A code, with its subject where one belongs to it: a resource, or a taint as `key=value:effect`.
pub(crate) type Causes = BTreeSet<(String, String)>;

/// Returns an amount in base units: thousandths of a core for cpu.
pub(crate) fn amount(resource: &str, value: &Value) -> i64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let read = if resource == "cpu" { quantity::milli(&text) } else { quantity::units(&text) };
    read.unwrap_or_else(|_| panic!("an amount: {text}"))
}

/// Returns what a pod requests, by resource.
pub(crate) fn requests(pod: &Value) -> BTreeMap<String, i64> {
    let mut sum = BTreeMap::new();
    for container in list(&pod["spec"]["containers"]) {
        for (resource, value) in container["resources"]["requests"].as_object().into_iter().flatten() {
            *sum.entry(resource.clone()).or_default() += amount(resource, value);
        }
    }
    sum
}

/// Returns what a node offers of a resource.
pub(crate) fn allocatable(node: &Value, resource: &str) -> i64 {
    let value = &node["status"]["allocatable"][resource];
    if value.is_null() { 0 } else { amount(resource, value) }
}

/// Returns what of a resource the reservations of a node keep for owners that are not there yet.
fn kept(objects: &Objects, node: &str, resource: &str) -> i64 {
    let here = |of: &&Value| of["status"]["nodeName"] == node && of["status"]["phase"] == "Available";
    let left = |of: &Value| {
        let all = &of["status"]["allocatable"][resource];
        let all = if all.is_null() { 0 } else { amount(resource, all) };
        let stands_in_it = |pod: &Value| {
            let key = "scheduling.koordinator.sh/reservation-allocated";
            text(&pod["metadata"]["annotations"][key])
                .contains(&format!("\"{}\"", text(&of["metadata"]["name"])))
        };
        let owners = objects.on(node).filter(|(_, pod)| stands_in_it(pod));
        let used: i64 = owners.filter_map(|(_, pod)| requests(pod).get(resource).copied()).sum();
        (all - used).max(0)
    };
    objects.of_kind("Reservation").filter(here).map(left).sum()
}

/// Returns what of a resource a node has left. Negative when it is overcommitted.
pub(crate) fn free(objects: &Objects, node: &str, resource: &str) -> i64 {
    let used: i64 = objects.on(node).filter_map(|(_, pod)| requests(pod).get(resource).copied()).sum();
    allocatable(objects.node(node), resource) - used - kept(objects, node, resource)
}

fn tolerates(pod: &Value, taint: &Value) -> bool {
    list(&pod["spec"]["tolerations"]).iter().any(|toleration| {
        let (key, effect) = (text(&toleration["key"]), text(&toleration["effect"]));
        let fits_effect = effect.is_empty() || taint["effect"] == effect;
        let is_any = toleration["operator"] == "Exists";
        let fits_key = if key.is_empty() { is_any } else { taint["key"] == key };
        let fits_value = is_any || text(&toleration["value"]) == text(&taint["value"]);
        fits_effect && fits_key && fits_value
    })
}

/// Returns the taints of a node that keep a pod away.
fn untolerated<'a>(pod: &'a Value, node: &'a Value) -> impl Iterator<Item = &'a Value> {
    let keeps_away = |taint: &&Value| taint["effect"] != "PreferNoSchedule";
    list(&node["spec"]["taints"]).iter().filter(keeps_away).filter(|taint| !tolerates(pod, taint))
}

fn label<'a>(node: &'a Value, key: &str) -> Option<&'a str> {
    node["metadata"]["labels"][key].as_str()
}

fn expression_holds(node: &Value, expression: &Value) -> bool {
    let own = label(node, text(&expression["key"]));
    let values = list(&expression["values"]);
    let is_listed = || own.is_some_and(|own| values.iter().any(|value| value == own));
    let number = |holds: fn(i64, i64) -> bool| {
        let bound = values.first().and_then(Value::as_str).and_then(|v| v.parse().ok());
        own.and_then(|own| own.parse().ok()).zip(bound).is_some_and(|(own, bound)| holds(own, bound))
    };
    match text(&expression["operator"]) {
        "In" => is_listed(),
        "NotIn" => !is_listed(),
        "Exists" => own.is_some(),
        "DoesNotExist" => own.is_none(),
        "Gt" => number(|own, bound| own > bound),
        "Lt" => number(|own, bound| own < bound),
        other => panic!("the operator {other}"),
    }
}

fn terms_hold(node: &Value, terms: &Value) -> bool {
    let holds = |term: &Value| list(&term["matchExpressions"]).iter().all(|e| expression_holds(node, e));
    list(terms).iter().any(holds)
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Returns whether a node has the labels that a pod requires.
pub(crate) fn fits_labels(pod: &Value, node: &Value) -> bool {
    let selector = pod["spec"]["nodeSelector"].as_object().into_iter().flatten();
    let terms = &pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"];
    let has = |(key, value): (&String, &Value)| label(node, key).is_some_and(|own| value == own);
    selector.into_iter().all(has) && (terms.is_null() || terms_hold(node, terms))
}

fn selects(selector: &Value, pod: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    wanted.into_iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value)
}

/// Returns whether a term of affinity or anti-affinity of `owner` is about `pod`.
pub(crate) fn term_matches(owner: &Value, term: &Value, pod: &Value) -> bool {
    let namespace = &pod["metadata"]["namespace"];
    let in_namespace = match list(&term["namespaces"]) {
        [] => owner["metadata"]["namespace"] == *namespace,
        listed => listed.contains(namespace),
    };
    in_namespace && selects(&term["labelSelector"], pod)
}

/// Returns the required terms of a pod's `podAffinity` or `podAntiAffinity`.
pub(crate) fn terms<'a>(pod: &'a Value, which: &str) -> &'a [Value] {
    list(&pod["spec"]["affinity"][which][REQUIRED])
}

fn ports(pod: &Value) -> BTreeSet<i64> {
    let containers = list(&pod["spec"]["containers"]).iter();
    containers.flat_map(|c| list(&c["ports"])).filter_map(|port| port["hostPort"].as_i64()).collect()
}

/// The pods of a cluster and their nodes, to ask many questions of.
pub(crate) struct Model<'a> {
    objects: &'a Objects,
    pod: &'a Value,
    /// Pods on nodes, each with its node.
    placed: Vec<(&'a Value, &'a Value)>,
}

impl<'a> Model<'a> {
    pub(crate) fn new(objects: &'a Objects, key: &str) -> Self {
        let node = |pod: &Value| node_of(pod).and_then(|name| objects.nodes.get(name));
        let placed = objects.placed().filter_map(|(_, pod)| Some((pod, &*node(pod)?.json))).collect();
        Self { objects, pod: objects.pod(key), placed }
    }

    /// Returns why no node at all is asked.
    pub(crate) fn of_whole(&self) -> Vec<&'static str> {
        let is_gated = !list(&self.pod["spec"]["schedulingGates"]).is_empty();
        let is_missing = claims(self.pod).any(|name| self.claim(name).is_none());
        let gated = is_gated.then_some("SchedulingGated");
        gated.into_iter().chain(is_missing.then_some("ClaimNotFound")).collect()
    }

    /// Returns all that a node fails.
    pub(crate) fn causes(&self, name: &str) -> Causes {
        let node = self.objects.node(name);
        let mut causes = Causes::new();
        let mut add = |code: &str, subject: &str| _ = causes.insert((code.to_owned(), subject.to_owned()));
        let closed = serde_json::json!({"key": CLOSED, "effect": "NoSchedule"});
        if node["spec"]["unschedulable"] == true && !tolerates(self.pod, &closed) {
            add("NodeUnschedulable", "");
        }
        for taint in untolerated(self.pod, node) {
            let value = text(&taint["value"]);
            let value = if value.is_empty() { String::new() } else { format!("={value}") };
            add("UntoleratedTaint", &format!("{}{value}:{}", text(&taint["key"]), text(&taint["effect"])));
        }
        if !fits_labels(self.pod, node) {
            add("NodeAffinityMismatch", "");
        }
        let own = ports(self.pod);
        if self.objects.on(name).any(|(_, pod)| !ports(pod).is_disjoint(&own)) {
            add("HostPortConflict", "");
        }
        if self.objects.on(name).count() as i64 >= allocatable(node, "pods") {
            add("TooManyPods", "");
        }
        for (resource, requested) in requests(self.pod) {
            if requested > 0 && requested > free(self.objects, name, &resource) {
                add("InsufficientResource", &resource);
            }
        }
        for code in self.spread(node).into_iter().chain(self.relations(node)).chain(self.volumes(name, node))
        {
            add(code, "");
        }
        causes
    }

    fn spread(&self, node: &Value) -> Vec<&'static str> {
        let constraints = list(&self.pod["spec"]["topologySpreadConstraints"]).iter();
        let hard: Vec<&Value> = constraints.filter(|c| c["whenUnsatisfiable"] == "DoNotSchedule").collect();
        let mut codes = Vec::new();
        for constraint in &hard {
            let key = text(&constraint["topologyKey"]);
            let Some(domain) = label(node, key) else {
                codes.push("SpreadLabelMissing");
                continue;
            };
            let counts = self.domains(constraint, &hard);
            let least = match constraint["minDomains"].as_u64() {
                Some(wanted) if (counts.len() as u64) < wanted => 0,
                _ => counts.values().copied().min().unwrap_or(0),
            };
            let itself = i64::from(selects(&constraint["labelSelector"], self.pod));
            let here = counts.get(domain).copied().unwrap_or(0);
            if here + itself - least > constraint["maxSkew"].as_i64().expect("a skew") {
                codes.push("SpreadSkewTooLarge");
            }
        }
        codes
    }

    /// Returns the pods that a constraint counts, by domain. Nodes count that have the keys of all hard constraints and
    /// that the policies do not leave out.
    fn domains(&self, constraint: &Value, hard: &[&Value]) -> BTreeMap<&'a str, i64> {
        let key = text(&constraint["topologyKey"]);
        let counts_node = |node: &Value| {
            let honours_taints = constraint["nodeTaintsPolicy"] == "Honor";
            hard.iter().all(|c| label(node, text(&c["topologyKey"])).is_some())
                && fits_labels(self.pod, node)
                && (!honours_taints || untolerated(self.pod, node).next().is_none())
        };
        let mut counts = BTreeMap::new();
        for item in self.objects.nodes.values().filter(|item| counts_node(&item.json)) {
            counts.entry(label(&item.json, key).unwrap_or_default()).or_insert(0);
        }
        for (pod, node) in &self.placed {
            let is_counted = pod["metadata"]["namespace"] == self.pod["metadata"]["namespace"]
                && selects(&constraint["labelSelector"], pod)
                && counts_node(node);
            if is_counted {
                *counts.entry(label(node, key).unwrap_or_default()).or_insert(0) += 1;
            }
        }
        counts
    }

    fn relations(&self, node: &Value) -> Vec<&'static str> {
        let same_domain = |other: &Value, term: &Value| {
            let key = text(&term["topologyKey"]);
            label(node, key).is_some_and(|own| label(other, key) == Some(own))
        };
        let mut codes = Vec::new();
        let wanted = terms(self.pod, "podAffinity");
        let matches_all = |pod: &Value| wanted.iter().all(|term| term_matches(self.pod, term, pod));
        let beside: Vec<&Value> =
            self.placed.iter().filter(|(pod, _)| matches_all(pod)).map(|(_, node)| *node).collect();
        let has_keys = || wanted.iter().all(|term| label(node, text(&term["topologyKey"])).is_some());
        let has_all = || wanted.iter().all(|term| beside.iter().any(|other| same_domain(other, term)));
        // The first of several pods that want each other may go anywhere.
        let is_first = || self.is_first(wanted) && matches_all(self.pod);
        if !wanted.is_empty() && !(has_keys() && (has_all() || is_first())) {
            codes.push("PodAffinityMismatch");
        }
        let conflicts = |term: &Value| {
            let is_there = |(pod, other): &(&Value, &Value)| {
                term_matches(self.pod, term, pod) && same_domain(other, term)
            };
            self.placed.iter().any(is_there)
        };
        if terms(self.pod, "podAntiAffinity").iter().any(conflicts) {
            codes.push("PodAntiAffinityConflict");
        }
        let is_kept_away = |(pod, other): &(&Value, &Value)| {
            terms(pod, "podAntiAffinity")
                .iter()
                .any(|term| term_matches(pod, term, self.pod) && same_domain(other, term))
        };
        if self.placed.iter().any(is_kept_away) {
            codes.push("ExistingAntiAffinityConflict");
        }
        codes
    }

    /// Returns whether no pod anywhere is what the terms want, on a node that has the key of some term.
    fn is_first(&self, wanted: &[Value]) -> bool {
        !self.placed.iter().any(|(pod, node)| {
            wanted.iter().all(|term| term_matches(self.pod, term, pod))
                && wanted.iter().any(|term| label(node, text(&term["topologyKey"])).is_some())
        })
    }

    // === volumes ===

    fn claim(&self, name: &str) -> Option<&'a Value> {
        let key = format!("{}/{name}", text(&self.pod["metadata"]["namespace"]));
        self.objects.other("PersistentVolumeClaim", &key)
    }

    fn volumes(&self, name: &str, node: &Value) -> Vec<&'static str> {
        let mut codes = Vec::new();
        for claim in claims(self.pod).filter_map(|name| self.claim(name)) {
            let key = text(&claim["metadata"]["name"]);
            let users = self.placed.iter().filter(|(pod, _)| {
                pod["metadata"]["namespace"] == claim["metadata"]["namespace"]
                    && claims(pod).any(|c| c == key)
            });
            if claim["spec"]["accessModes"][0] == "ReadWriteOncePod" && users.count() > 0 {
                codes.push("ClaimInUse");
            }
            match self.volume_of(claim) {
                Some(volume) => {
                    let reach = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
                    if !reach.is_null() && !terms_hold(node, reach) {
                        codes.push("VolumeNodeAffinityConflict");
                    }
                    let zone = "topology.kubernetes.io/zone";
                    let of_volume = label(volume, zone);
                    let has_zones = label(node, zone).is_some();
                    if of_volume.is_some() && has_zones && of_volume != label(node, zone) {
                        codes.push("VolumeZoneConflict");
                    }
                }
                None if claim["spec"]["storageClassName"] == "local" && !self.has_free_volume(node) => {
                    codes.push("NoVolumeToBind");
                }
                None => {}
            }
        }
        if self.exceeds_limit(name) {
            codes.push("TooManyVolumes");
        }
        codes
    }

    fn volume_of(&self, claim: &Value) -> Option<&'a Value> {
        let name = claim["spec"]["volumeName"].as_str()?;
        self.objects.other("PersistentVolume", name)
    }

    fn has_free_volume(&self, node: &Value) -> bool {
        self.objects.others.iter().any(|((kind, _), item)| {
            let volume = &item.json;
            let reach = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
            *kind == "PersistentVolume"
                && volume["spec"]["storageClassName"] == "local"
                && volume["spec"]["claimRef"].is_null()
                && (reach.is_null() || terms_hold(node, reach))
        })
    }

    /// Returns the volumes of the driver that a pod uses, each by what tells it from others.
    fn handles(&self, pod: &Value) -> BTreeSet<String> {
        let namespace = text(&pod["metadata"]["namespace"]);
        let found = claims(pod).filter_map(|name| {
            let key = format!("{namespace}/{name}");
            let claim = self.objects.other("PersistentVolumeClaim", &key)?;
            match self.volume_of(claim) {
                Some(volume) => Some(volume["spec"]["csi"]["volumeHandle"].as_str()?.to_owned()),
                None if claim["spec"]["storageClassName"] == "fast" => Some(key),
                None => None,
            }
        });
        found.collect()
    }

    /// Returns how many volumes of the driver the pod would attach to a node, and for how many there is room. `None` when
    /// nothing limits them there.
    pub(crate) fn attachments(&self, name: &str) -> Option<(i64, i64)> {
        let drivers = self.objects.other("CSINode", name)?;
        let limit = drivers["spec"]["drivers"][0]["allocatable"]["count"].as_i64().expect("a count");
        let used: BTreeSet<String> = self.objects.on(name).flat_map(|(_, pod)| self.handles(pod)).collect();
        let own = self.handles(self.pod);
        Some((own.difference(&used).count() as i64, limit - used.len() as i64))
    }

    fn exceeds_limit(&self, name: &str) -> bool {
        self.attachments(name).is_some_and(|(new, left)| new > 0 && new > left)
    }
}

/// Returns the names of the claims that a pod uses.
pub(crate) fn claims(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = list(&pod["spec"]["volumes"]).iter();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}
