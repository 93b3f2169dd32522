//! What a pod holds of a node: its CPUs and its amounts on NUMA nodes, and how they stand on the pod.
//!
//! Annotation `resource-status` has Koordinator's form, so that koordlet applies it. It is written by the Binding and read
//! back from whoever bound the pod.

use pellucid_model::{Name, Pod, quantity};
use serde_json::{Map, Value, json};

use super::amounts::Amounts;
use super::cpus::accumulator::ExclusivePolicy;
use super::cpus::set::{CpuSet, KeptCpus};
use super::keys;
use super::resource_spec::exclusive_policy;

/// What a pod holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Holding {
    pub(super) cpus: KeptCpus,
    /// The exclusive policy that the pod's annotation names.
    pub(super) exclusive: Option<ExclusivePolicy>,
    /// Amounts by NUMA node, ascending.
    pub(super) zones: Vec<(u16, Amounts)>,
}

impl Holding {
    /// Reads what stands on a pod; `None` when nothing does, or nothing that can be read.
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        Self::read(pod).ok().flatten()
    }

    /// Reads what stands on a pod; `None` when nothing does. Fails with what cannot be read.
    pub(super) fn read(pod: &Pod) -> Result<Option<Self>, String> {
        let Some(text) = pod.marks.text(keys::RESOURCE_STATUS) else { return Ok(None) };
        let status: Value = serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))?;
        let cpus = CpuSet::parse(status["cpuset"].as_str().unwrap_or(""))?;
        let mut zones: Vec<(u16, Amounts)> = Vec::new();
        for zone in status["numaNodeResources"].as_array().into_iter().flatten() {
            let node = zone["node"].as_u64().and_then(|node| u16::try_from(node).ok());
            let node = node.ok_or_else(|| format!("no NUMA node: {}", zone["node"]))?;
            zones.push((node, amounts(&zone["resources"])));
        }
        zones.sort_by_key(|(node, _)| *node);
        let made = Self { cpus: cpus.into(), exclusive: exclusive_policy(&pod.spec), zones };
        Ok((!made.cpus.is_empty() || !made.zones.is_empty()).then_some(made))
    }

    /// Returns what is left beside a part of it that another pod has.
    pub(super) fn less(&self, other: &Self) -> Self {
        let left = |(node, amounts): &(u16, Amounts)| {
            let taken = other.zones.iter().find(|(known, _)| known == node).map(|(_, taken)| taken);
            let less = |(name, amount): &(Name, i64)| {
                let taken = taken.and_then(|taken| taken.get(name)).unwrap_or(0);
                (name.clone(), amount.saturating_sub(taken).max(0))
            };
            (*node, amounts.iter().map(less).collect())
        };
        let zones = self.zones.iter().map(left).collect();
        let cpus = self.cpus.get().without(&other.cpus.get()).into();
        Self { cpus, exclusive: self.exclusive, zones }
    }

    /// Returns the annotation's text.
    pub(super) fn status(&self) -> String {
        if self.zones.is_empty() && !self.cpus.is_empty() {
            // Most pods; a list of CPUs needs no escapes.
            let mut text = String::with_capacity(64);
            text.push_str(r#"{"cpuset":""#);
            self.cpus.get().write_to(&mut text);
            text.push_str(r#""}"#);
            return text;
        }
        let mut status = Map::new();
        if !self.cpus.is_empty() {
            status.insert("cpuset".to_owned(), json!(self.cpus.to_string()));
        }
        let zone =
            |(node, amounts): &(u16, Amounts)| json!({"node": node, "resources": amounts.quantities()});
        if !self.zones.is_empty() {
            status.insert("numaNodeResources".to_owned(), self.zones.iter().map(zone).collect());
        }
        Value::Object(status).to_string()
    }
}

/// Reads a resource list; what is no quantity is left out.
fn amounts(list: &Value) -> Amounts {
    let read = |(name, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let amount = if name == "cpu" { quantity::milli(&text) } else { quantity::units(&text) };
        Some((Name::new(name), amount.ok()?.max(0)))
    };
    list.as_object().into_iter().flatten().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use pellucid_model::selector::Labels;

    use super::*;

    fn pod(status: &str) -> Pod {
        let marks = Labels::new([(keys::RESOURCE_STATUS.into(), status.into())]);
        Pod { marks, ..Pod::default() }
    }

    #[test]
    fn what_is_written_is_read_alike() {
        let amounts = |cpu: i64| [("cpu".into(), cpu), ("memory".into(), 2 << 30)].into_iter().collect();
        let zones = [(0, amounts(1500)), (3, amounts(2000))].into_iter().collect();
        let holding = Holding { cpus: CpuSet::of([0, 1, 7]).into(), exclusive: None, zones };
        assert_eq!(
            holding.status(),
            r#"{"cpuset":"0-1,7","numaNodeResources":[{"node":0,"resources":{"cpu":"1500m","memory":"2Gi"}},{"node":3,"resources":{"cpu":"2","memory":"2Gi"}}]}"#
        );
        assert_eq!(Holding::of(&pod(&holding.status())), Some(holding));
    }

    #[test]
    fn a_pod_with_nothing_or_with_nonsense_holds_nothing() {
        for text in
            ["{}", "x", r#"{"cpuset": "a"}"#, r#"{"cpuset": ""}"#, r#"{"numaNodeResources": [{"node": -1}]}"#]
        {
            assert_eq!(Holding::of(&pod(text)), None, "{text}");
        }
        assert_eq!(Holding::read(&pod("{}")), Ok(None));
        assert!(Holding::read(&pod(r#"{"cpuset": "a"}"#)).is_err_and(|problem| problem.contains("\"a\"")));
        assert_eq!(Holding::of(&Pod::default()), None);
    }
}
