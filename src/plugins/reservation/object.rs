//! What is read of a Reservation.
//!
//! Owners that cannot be read do not make the object unreadable: the problem is told in its status.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use pellucid_api::keys::reservation as keys;
use pellucid_framework::manifest::{Field, FieldError};
use pellucid_model::Name;
use pellucid_model::quantity::format_amount;
use pellucid_model::requests::ResourceList;
use pellucid_model::selector::Labels;
use pellucid_model::taint::{Taint, TaintEffect};
use serde_json::{Value, json};

use super::owners::{self, OwnerTerm};

/// Amounts by resource name, in the model's units.
pub(super) type Amounts = BTreeMap<Name, i64>;

/// Annotation of nodes, and of reservations: what is kept back.
const KEPT_BACK: &str = "node.koordinator.sh/reservation";

/// Time that a reservation lasts when nothing is said.
const TTL: Duration = Duration::from_secs(24 * 3600);

/// How pods may use a reservation's room (`spec.allocatePolicy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Policy {
    /// Room of the reservation and of its node, on a node without reservations of another policy.
    #[default]
    Default,
    /// As `Default`.
    Aligned,
    /// Of the restricted resources the reservation's room alone.
    Restricted,
}

impl Policy {
    /// Returns the word of the API; empty for the default.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Default => "",
            Self::Aligned => "Aligned",
            Self::Restricted => "Restricted",
        }
    }

    /// Returns whether reservations of both policies may share a node.
    pub(super) fn agrees_with(self, other: Self) -> bool {
        (self == Self::Default) == (other == Self::Default)
    }
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing was written yet.
    #[default]
    New,
    Pending,
    /// Placed; pods may use it.
    Available,
    /// Used up.
    Succeeded,
    /// Expired, or its node is gone.
    Failed,
}

impl Phase {
    /// Returns the word of the API; `Pending` for one that was never written.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::New | Self::Pending => "Pending",
            Self::Available => "Available",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Returns whether the reservation holds nothing any more.
    /// Whether it is not placed yet.
    pub(super) fn is_waiting(self) -> bool {
        matches!(self, Self::New | Self::Pending)
    }

    pub(super) fn has_ended(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The part of the status that the scheduler compares with what should stand there.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Status {
    pub(super) phase: Phase,
    pub(super) node: Option<Name>,
    pub(super) allocated: Amounts,
    /// `namespace/name` of the current owners, sorted.
    pub(super) owners: Vec<String>,
    /// The conditions as they stand.
    pub(super) conditions: Vec<Value>,
}

/// How a reservation is placed over pods that are bound already (`spec.preAllocation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PreAllocation {
    /// Whether it may be over several.
    pub(super) is_multiple: bool,
    /// Whether it must be over one.
    pub(super) is_required: bool,
}

/// A Reservation.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    /// `metadata.labels`, which affinities select by.
    pub(super) labels: Labels,
    /// Seconds since 1970 at which the object was created.
    pub(super) created: i64,
    /// The owners, or what is wrong with them.
    pub(super) owners: Result<Arc<[OwnerTerm]>, String>,
    /// The text of the owners, by which reservations for the same ones are known.
    pub(super) owners_text: Name,
    /// Seconds since 1970 at which it expires; `None`: never.
    pub(super) expires: Option<i64>,
    /// Whether one owner uses it up.
    pub(super) once: bool,
    pub(super) policy: Policy,
    /// The resources that [`Policy::Restricted`] is about, also such as it does not hold; `None`: all that it holds.
    restricted: Option<Vec<Name>>,
    /// What owners get nothing of.
    kept_back: Amounts,
    /// `None`: it takes free room alone.
    pub(super) pre_allocation: Option<PreAllocation>,
    /// The node that the template names; no other will do.
    pub(super) wanted_node: Option<Name>,
    pub(super) unschedulable: bool,
    pub(super) taints: Vec<Taint>,
    /// Rank among the reservations of which one is taken; the least comes first. `None`: after those that have one.
    pub(super) order: Option<i64>,
    pub(super) status: Status,
    /// What was read, for dumps and answers.
    manifest: Value,
}

fn phase(field: &Field<'_>) -> Result<Phase, FieldError> {
    Ok(match field.text()?.unwrap_or_default() {
        "" => Phase::New,
        "Pending" => Phase::Pending,
        // Koordinator declares Waiting, and nothing sets it.
        "Available" | "Waiting" => Phase::Available,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        _ => return Err(field.error("must be Pending, Available, Succeeded or Failed")),
    })
}

fn policy(field: &Field<'_>) -> Result<Policy, FieldError> {
    Ok(match field.text()?.unwrap_or_default() {
        "" => Policy::Default,
        "Aligned" => Policy::Aligned,
        "Restricted" => Policy::Restricted,
        _ => return Err(field.error("must be empty, Aligned or Restricted")),
    })
}

fn taint(field: &Field<'_>) -> Result<Taint, FieldError> {
    let text = |name| Ok::<Name, FieldError>(field.get(name)?.text()?.unwrap_or_default().into());
    let effect = field.get("effect")?;
    let parsed =
        TaintEffect::ALL.into_iter().find(|known| Some(known.as_str()) == effect.text().ok().flatten());
    let parsed = parsed.ok_or_else(|| effect.error("must be NoSchedule, PreferNoSchedule or NoExecute"))?;
    Ok(Taint { key: text("key")?, value: text("value")?, effect: parsed })
}

/// Reads a resource list, which is empty when absent.
fn amounts(field: &Field<'_>) -> Result<Amounts, FieldError> {
    let read = |(name, field): (&str, Field<'_>)| Ok((name.into(), field.quantity(name)?.unwrap_or(0)));
    field.entries()?.into_iter().map(read).collect()
}

/// Returns a resource list as the API has it.
pub(super) fn resource_list(amounts: &Amounts) -> Value {
    let named = amounts.iter().map(|(name, amount)| (name.to_string(), json!(format_amount(name, *amount))));
    Value::Object(named.collect())
}

/// The resources that have fields of their own in a list.
static FIXED: LazyLock<[Name; 3]> = LazyLock::new(|| ["cpu", "memory", "ephemeral-storage"].map(Name::new));

/// Iterates over the amounts of a list that are not 0.
pub(super) fn amounts_of(list: &ResourceList) -> impl Iterator<Item = (Name, i64)> {
    let fixed = FIXED.iter().cloned().zip([list.milli_cpu, list.memory, list.ephemeral_storage]);
    fixed.chain(list.scalars.iter().cloned()).filter(|(_, amount)| *amount != 0)
}

/// Returns the amounts of a list that are not 0, by name.
pub(super) fn named(list: &ResourceList) -> Amounts {
    amounts_of(list).collect()
}

fn status(field: &Field<'_>) -> Result<Status, FieldError> {
    let node = field.get("nodeName")?.text()?.filter(|name| !name.is_empty());
    let owner = |owner: Field<'_>| {
        let text = |name| Ok::<String, FieldError>(owner.get(name)?.text()?.unwrap_or_default().to_owned());
        Ok(format!("{}/{}", text("namespace")?, text("name")?))
    };
    let owners = field.get("currentOwners")?.elements()?.into_iter().map(owner);
    let mut owners: Vec<String> = owners.collect::<Result<_, FieldError>>()?;
    owners.sort();
    Ok(Status {
        phase: phase(&field.get("phase")?)?,
        node: node.map(Name::new),
        allocated: amounts(&field.get("allocated")?)?,
        owners,
        conditions: Vec::new(),
    })
}

/// Returns when a reservation expires, as in Koordinator: at the earlier of `expires` and `ttl`, and never with a `ttl` of 0.
fn expires(spec: &Field<'_>, created: i64) -> Result<Option<i64>, FieldError> {
    let (at, ttl) = (spec.get("expires")?.moment()?, spec.get("ttl")?.duration()?);
    let after = |ttl: Duration| created.saturating_add_unsigned(ttl.as_secs());
    Ok(match ttl {
        Some(ttl) if ttl.is_zero() => None,
        Some(ttl) => Some(at.map_or(after(ttl), |at| at.min(after(ttl)))),
        None => at.or(Some(after(TTL))),
    })
}

/// Reads what a reservation keeps back from its owners, by an annotation that nodes have too.
fn kept_back(annotation: &Field<'_>) -> Result<Amounts, FieldError> {
    let Some(value) = json_of(annotation)? else { return Ok(Amounts::new()) };
    let read = || {
        let value = Field::root(&value);
        let mut made = amounts(&value.get("resources")?)?;
        let cpus = value.get("reservedCPUs")?;
        if let Some(text) = cpus.text()?.filter(|text| !text.is_empty()) {
            let n = n_cpus(text).ok_or_else(|| cpus.error("is no list of CPUs such as 0-3,8"))?;
            made.insert(FIXED[0].clone(), n * 1000);
        }
        Ok(made)
    };
    read().map_err(|e: FieldError| annotation.error(e))
}

/// Counts the CPUs of a list such as `0-3,8`, each once.
fn n_cpus(text: &str) -> Option<i64> {
    let mut all = BTreeSet::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u16>().ok()?, last.trim().parse::<u16>().ok()?);
        all.extend((first <= last).then_some(first..=last)?);
    }
    i64::try_from(all.len()).ok()
}

/// Reads an annotation that holds JSON; `None` when it is absent or empty.
fn json_of(annotation: &Field<'_>) -> Result<Option<Value>, FieldError> {
    let Some(text) = annotation.text()?.filter(|text| !text.is_empty()) else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|e| annotation.error(format_args!("no JSON: {e}")))
}

/// Returns the node that the template names.
fn wanted_node(manifest: &Value) -> Option<Name> {
    let named = manifest["spec"]["template"]["spec"]["nodeName"].as_str();
    named.filter(|name| !name.is_empty()).map(Name::new)
}

fn pre_allocation(spec: &Field<'_>, labels: &Labels) -> Result<Option<PreAllocation>, FieldError> {
    let is_multiple = spec.at(&["preAllocationPolicy", "enableMultiple"])?.boolean()?.unwrap_or(false);
    let is_required = labels.text(keys::PRE_ALLOCATION_REQUIRED) == Some("true");
    let is_set = spec.get("preAllocation")?.boolean()?.unwrap_or(false);
    Ok(is_set.then_some(PreAllocation { is_multiple, is_required }))
}

fn restricted(annotation: &Field<'_>) -> Result<Option<Vec<Name>>, FieldError> {
    let Some(options) = json_of(annotation)? else { return Ok(None) };
    let names = Field::root(&options).get("resources").and_then(|field| field.elements());
    let names = names.and_then(|all| {
        all.iter()
            .map(|name| Ok(Name::new(name.text()?.unwrap_or_default())))
            .collect::<Result<_, FieldError>>()
    });
    names.map(|names: Vec<Name>| (!names.is_empty()).then_some(names)).map_err(|e| annotation.error(e))
}

impl Reservation {
    /// Reads a manifest.
    pub(super) fn read(manifest: &Value) -> Result<Self, FieldError> {
        let root = Field::root(manifest);
        let (meta, spec) = (root.get("metadata")?, root.get("spec")?);
        let pairs = meta.get("labels")?.entries()?.into_iter();
        let pairs = pairs.map(|(key, value)| Ok((key.into(), value.text()?.unwrap_or_default().into())));
        let labels = Labels::new(pairs.collect::<Result<Vec<(Name, Name)>, FieldError>>()?);
        let created = meta.get("creationTimestamp")?.moment()?.unwrap_or(0);
        let order = labels.text(keys::RESERVATION_ORDER).and_then(|text| text.parse().ok());
        let conditions = manifest["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let annotations = meta.get("annotations")?;
        Ok(Self {
            created,
            owners: owners::read(&spec.get("owners")?).map(Arc::from).map_err(|e| e.to_string()),
            owners_text: Name::new(&manifest["spec"]["owners"].to_string()),
            expires: expires(&spec, created)?,
            once: spec.get("allocateOnce")?.boolean()?.unwrap_or(true),
            policy: policy(&spec.get("allocatePolicy")?)?,
            restricted: restricted(&annotations.get(keys::RESERVATION_RESTRICTED_OPTIONS)?)?,
            kept_back: kept_back(&annotations.get(KEPT_BACK)?)?,
            pre_allocation: pre_allocation(&spec, &labels)?,
            wanted_node: wanted_node(manifest),
            unschedulable: spec.get("unschedulable")?.boolean()?.unwrap_or(false),
            taints: spec.get("taints")?.elements()?.iter().map(taint).collect::<Result<_, FieldError>>()?,
            order: order.filter(|order: &i64| *order != 0),
            status: Status { conditions, ..status(&root.get("status")?)? },
            labels,
            manifest: kept(manifest),
        })
    }

    /// Writes what was read.
    pub(super) fn manifest(&self) -> Value {
        self.manifest.clone()
    }

    /// Returns `spec.owners` as it stands.
    pub(super) fn owners_as_written(&self) -> Value {
        self.manifest["spec"]["owners"].clone()
    }

    /// Returns the text of an annotation.
    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.manifest["metadata"]["annotations"][key].as_str()
    }

    /// Returns whether the policy is about a resource, of what is reserved. Under [`Policy::Restricted`] it is about the
    /// options that are reserved, and about all where none is.
    pub(super) fn covers(&self, reserved: &Amounts, resource: &Name) -> bool {
        let options = self.restricted.as_deref().filter(|_| self.policy == Policy::Restricted);
        let options = options.filter(|only| only.iter().any(|name| reserved.contains_key(name)));
        reserved.contains_key(resource) && options.is_none_or(|only| only.contains(resource))
    }

    /// Returns how much of a resource, of what is reserved, owners get nothing of.
    pub(super) fn kept_back(&self, reserved: &Amounts, resource: &Name) -> i64 {
        let kept = self.kept_back.get(resource).filter(|_| self.covers(reserved, resource));
        kept.copied().unwrap_or(0).max(0)
    }

    /// Returns when the reservation ended, in seconds since 1970, as its conditions say.
    pub(super) fn ended_at(&self) -> i64 {
        let ready = self.status.conditions.iter().find(|of| of["type"] == "Ready");
        let at = ready.and_then(|of| Field::root(of).get("lastTransitionTime").ok()?.moment().ok()?);
        at.unwrap_or(self.created)
    }

    /// Returns why the reservation cannot be placed as it is written, with the field.
    pub(super) fn problem(&self) -> Option<String> {
        problem(&self.manifest, self.owners.as_ref().err())
    }
}

/// Returns what is wrong with what a reservation asks for.
fn problem(manifest: &Value, owners: Option<&String>) -> Option<String> {
    let spec = &manifest["spec"];
    if let Some(problem) = owners {
        return Some(problem.clone());
    }
    if !spec["template"].is_object() {
        return Some("spec.template: must say what is reserved".into());
    }
    let mode = spec["preAllocationPolicy"]["mode"].as_str().filter(|_| spec["preAllocation"] == json!(true));
    mode.filter(|mode| !matches!(*mode, "" | "Default")).map(|mode| {
        format!(
            "spec.preAllocationPolicy.mode: must be Default, because only owners are taken over ({mode:?})"
        )
    })
}

/// Returns whether the object can be placed as it is written.
pub(super) fn is_placeable(manifest: &Value) -> bool {
    let owners = &manifest["spec"]["owners"];
    problem(manifest, owners::read(&Field::root(owners)).err().map(|e| e.to_string()).as_ref()).is_none()
}

/// Returns the parts of a manifest that are kept.
fn kept(manifest: &Value) -> Value {
    let mut meta = serde_json::Map::new();
    for field in ["name", "uid", "labels", "annotations", "creationTimestamp"] {
        if let Some(value) = manifest["metadata"].get(field) {
            meta.insert(field.to_owned(), value.clone());
        }
    }
    let mut kept = json!({"metadata": meta, "spec": manifest["spec"]});
    if manifest["status"].is_object() {
        kept["status"] = manifest["status"].clone();
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_back(text: &str) -> Result<Amounts, String> {
        let read = Reservation::read(&json!({"metadata": {"annotations": {KEPT_BACK: text}}, "spec": {}}));
        read.map(|read| read.kept_back).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_kept_back_is_read_or_named_with_its_problem() {
        let cpu = |milli| Ok(Amounts::from([(FIXED[0].clone(), milli)]));
        assert_eq!(kept_back(""), Ok(Amounts::new()));
        assert_eq!(kept_back(r#"{"resources": {"cpu": "1500m"}}"#), cpu(1500));
        assert_eq!(kept_back(r#"{"resources": {"cpu": 9}, "reservedCPUs": "0-2,2,8"}"#), cpu(4000));
        for (text, problem) in [
            ("{", "no JSON"),
            (r#"{"resources": {"cpu": "much"}}"#, "resources.cpu"),
            (r#"{"reservedCPUs": "3-1"}"#, "reservedCPUs: is no list of CPUs"),
            (r#"{"reservedCPUs": 4}"#, "reservedCPUs"),
        ] {
            let said = kept_back(text).expect_err(text);
            assert!(said.contains(KEPT_BACK) && said.contains(problem), "{text}: {said}");
        }
    }
}
