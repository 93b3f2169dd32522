//! Amounts of resources on NUMA nodes, by name in the model's units.

use std::collections::BTreeMap;

use pellucid_model::Name;
use pellucid_model::quantity::format_amount;
use smallvec::SmallVec;

/// Name of the CPU resource, whose amounts are thousandths of a core.
pub(super) const CPU: &str = "cpu";

/// Amounts by resource, ascending by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts(SmallVec<[(Name, i64); 2]>);

impl Amounts {
    /// Returns the amount of a resource; `None` for one that is not named.
    #[inline]
    pub(super) fn get(&self, name: &str) -> Option<i64> {
        self.0.iter().find(|(known, _)| known.as_str() == name).map(|(_, amount)| *amount)
    }

    pub(super) fn set(&mut self, name: &Name, amount: i64) {
        match self.0.binary_search_by(|(known, _)| known.cmp(name)) {
            Ok(at) => self.0[at].1 = amount,
            Err(at) => self.0.insert(at, (name.clone(), amount)),
        }
    }

    /// Adds an amount to that of a resource.
    pub(super) fn add(&mut self, name: &Name, amount: i64) {
        let sum = self.get(name).unwrap_or(0).saturating_add(amount);
        self.set(name, sum);
    }

    #[inline]
    pub(super) fn iter(&self) -> impl Iterator<Item = &(Name, i64)> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the amounts as Kubernetes writes them.
    pub(super) fn quantities(&self) -> BTreeMap<String, String> {
        self.iter().map(|(name, amount)| (name.to_string(), format_amount(name, *amount))).collect()
    }
}

impl FromIterator<(Name, i64)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (Name, i64)>>(all: I) -> Self {
        let mut made = Self::default();
        all.into_iter().for_each(|(name, amount)| made.set(&name, amount));
        made
    }
}

/// By how much the amounts of a node are larger than what it really has, by resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ratios(Vec<(Name, f64)>);

impl Ratios {
    /// Parses annotation `resource-amplification-ratio`, a JSON object of numbers. Fails with what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let given: BTreeMap<String, f64> = serde_json::from_str(text).map_err(|e| e.to_string())?;
        if let Some((name, ratio)) = given.iter().find(|(_, ratio)| !ratio.is_finite() || **ratio <= 0.0) {
            return Err(format!("the ratio of {name} is {ratio}; it must be above 0"));
        }
        Ok(Self(given.into_iter().map(|(name, ratio)| (Name::new(&name), ratio)).collect()))
    }

    /// Returns the ratio of a resource, 1 where there is none.
    #[inline]
    pub(super) fn of(&self, name: &str) -> f64 {
        self.0.iter().find(|(known, _)| known.as_str() == name).map_or(1.0, |(_, ratio)| *ratio)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, ratio)| (name.as_str(), *ratio))
    }
}

/// Returns an amount times a ratio, rounded up; a ratio of 1 or less changes nothing (Koordinator's `Amplify`).
#[inline]
pub(super) fn amplify(amount: i64, ratio: f64) -> i64 {
    if ratio <= 1.0 { amount } else { (amount as f64 * ratio).ceil() as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_kept_by_name() {
        let mut amounts: Amounts = [("memory".into(), 1 << 30), ("cpu".into(), 1500)].into_iter().collect();
        amounts.add(&"cpu".into(), 500);
        amounts.add(&"hugepages-2Mi".into(), 2 << 20);
        assert_eq!((amounts.get("cpu"), amounts.get("gpu")), (Some(2000), None));
        let texts: Vec<String> = amounts.quantities().into_iter().map(|(n, q)| format!("{n}={q}")).collect();
        assert_eq!(texts, ["cpu=2", "hugepages-2Mi=2Mi", "memory=1Gi"]);
    }

    #[test]
    fn ratios_are_read_and_round_up() {
        let ratios = Ratios::parse(r#"{"cpu": 1.5}"#).expect("ratios");
        assert_eq!((ratios.of("cpu"), ratios.of("memory")), (1.5, 1.0));
        assert_eq!((amplify(1001, 1.5), amplify(1001, 0.5)), (1502, 1001));
        for bad in ["x", r#"{"cpu": "1"}"#, r#"{"cpu": -1}"#, "[]"] {
            assert!(Ratios::parse(bad).is_err(), "{bad}");
        }
    }
}
