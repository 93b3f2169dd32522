//! Amounts of resources that queues request, hold and deserve.
//!
//! CPU counts in thousandths of a core and memory in bytes. Countable resources such as GPUs count in thousandths, so
//! that three of them can be shared out among five queues; pods are placed on whole ones all the same.

use pellucid_model::Name;
use pellucid_model::quantity::format_amount;
use pellucid_model::requests::ResourceList;

/// Amounts by resource, sorted by name, without zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts(Vec<(Name, i128)>);

impl Amounts {
    /// Returns the amount of a resource, 0 when absent.
    pub(super) fn get(&self, resource: &Name) -> i128 {
        self.0.iter().find(|(known, _)| known == resource).map_or(0, |(_, amount)| *amount)
    }

    /// Adds to the amount of a resource.
    pub(super) fn add(&mut self, resource: &Name, amount: i128) {
        match self.0.binary_search_by(|(known, _)| known.cmp(resource)) {
            Ok(at) => {
                self.0[at].1 += amount;
                if self.0[at].1 == 0 {
                    self.0.remove(at);
                }
            }
            Err(at) if amount != 0 => self.0.insert(at, (resource.clone(), amount)),
            Err(_) => {}
        }
    }

    /// Adds another list, multiplied by `times`.
    pub(super) fn add_all(&mut self, other: &Self, times: i128) {
        for (resource, amount) in &other.0 {
            self.add(resource, amount * times);
        }
    }

    /// Sets the amount of a resource. Returns whether it was another one.
    pub(super) fn set(&mut self, resource: &Name, amount: i128) -> bool {
        let change = amount - self.get(resource);
        self.add(resource, change);
        change != 0
    }

    /// Iterates over the amounts, by name of the resource.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(Name, i128)> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns how many units there are in one unit of the model.
fn factor(resource: &str) -> i128 {
    match resource {
        "cpu" | "memory" | "ephemeral-storage" | "pods" => 1,
        name if name.starts_with("hugepages-") => 1,
        _ => 1000,
    }
}

/// Converts an amount of the model.
pub(super) fn of_model(resource: &str, amount: i64) -> i128 {
    i128::from(amount) * factor(resource)
}

/// Converts back to an amount of the model, rounded down.
pub(super) fn to_model(resource: &str, amount: i128) -> i64 {
    clamp(amount.div_euclid(factor(resource)))
}

/// Iterates over the positive amounts of a list.
pub(super) fn of_list(list: &ResourceList) -> impl Iterator<Item = (Name, i128)> {
    list.named().map(|(resource, amount)| {
        let units = of_model(&resource, amount);
        (resource, units)
    })
}

/// Converts an amount to cores, bytes or units, for metrics.
pub(super) fn units(resource: &str, amount: i128) -> f64 {
    let thousandths = resource == "cpu" || factor(resource) != 1;
    clamp(amount) as f64 / if thousandths { 1000.0 } else { 1.0 }
}

/// Saturates to 64 bits.
pub(super) fn clamp(amount: i128) -> i64 {
    amount.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// Writes an amount as a quantity.
pub(super) fn text(resource: &str, amount: i128) -> String {
    // Thousandths are written like those of cores.
    format_amount(if factor(resource) == 1 { resource } else { "cpu" }, clamp(amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_sorted_and_without_zeros_in_whatever_order_they_came() {
        let (cpu, memory) = (Name::new("cpu"), Name::new("memory"));
        let (mut one, mut other) = (Amounts::default(), Amounts::default());
        one.add(&memory, 5);
        one.add(&cpu, 2);
        other.add(&cpu, 3);
        other.add(&memory, 5);
        other.add(&cpu, -1);
        assert_eq!(one, other);
        other.add_all(&one, -1);
        assert!(other.is_empty());
        assert!(other.set(&cpu, 4) && !other.set(&cpu, 4) && other.set(&cpu, 0) && other.is_empty());
    }

    #[test]
    fn amounts_read_as_quantities() {
        let gpu = "nvidia.com/gpu";
        assert_eq!(text(gpu, of_model(gpu, 3)), "3");
        assert_eq!(text(gpu, 600), "600m");
        assert_eq!(text("cpu", 1500), "1500m");
        assert_eq!(text("memory", 1 << 30), "1Gi");
        assert_eq!(text("pods", of_model("pods", 7)), "7");
        assert_eq!((to_model(gpu, 2999), to_model("cpu", 1500)), (2, 1500));
        assert_eq!((units(gpu, 600), units("cpu", 1500), units("memory", 7)), (0.6, 1.5, 7.0));
    }
}
