//! Koordinator's classes of pods, which several plugins read from labels.

use pellucid_model::PodSpec;
use pellucid_model::pod::Qos;

/// Label with a pod's priority class.
pub const PRIORITY_CLASS: &str = "koordinator.sh/priority-class";
/// Label with a pod's QoS class.
pub const QOS_CLASS: &str = "koordinator.sh/qosClass";

/// Koordinator's priority class of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityClass {
    /// `koord-prod`: production.
    Prod,
    /// `koord-mid`: what production does not use for long.
    Mid,
    /// `koord-batch`: what production does not use right now.
    Batch,
    /// `koord-free`: no guarantee at all.
    Free,
}

impl PriorityClass {
    /// Parses the class of a label or of a NodeMetric; `None` when unknown.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "koord-prod" => Some(Self::Prod),
            "koord-mid" => Some(Self::Mid),
            "koord-batch" => Some(Self::Batch),
            "koord-free" => Some(Self::Free),
            _ => None,
        }
    }

    /// Returns the class of a pod: by its label, else by its priority, else by its QoS. A label with an unknown value
    /// leaves only the QoS.
    pub fn of(spec: &PodSpec) -> Self {
        let by_priority = || match spec.priority {
            9000..=9999 => Some(Self::Prod),
            7000..=7999 => Some(Self::Mid),
            5000..=5999 => Some(Self::Batch),
            3000..=3999 => Some(Self::Free),
            _ => None,
        };
        let label = spec.labels.text(PRIORITY_CLASS);
        let class = label.map_or_else(by_priority, Self::parse);
        class.unwrap_or_else(|| Self::by_qos(spec))
    }

    fn by_qos(spec: &PodSpec) -> Self {
        match spec.labels.text(QOS_CLASS) {
            Some("BE") => Self::Batch,
            Some("LSE" | "LSR" | "LS" | "SYSTEM") => Self::Prod,
            _ if spec.qos == Qos::BestEffort => Self::Batch,
            _ => Self::Prod,
        }
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::selector::Labels;

    use super::*;

    fn labelled(mut spec: PodSpec, key: &str, value: &str) -> PodSpec {
        spec.labels = Labels::new([(key.into(), value.into())]);
        spec
    }

    #[test]
    fn the_class_comes_from_label_priority_or_qos() {
        use PriorityClass::{Batch, Free, Mid, Prod};
        let with_priority = |priority| PodSpec { priority, qos: Qos::Burstable, ..PodSpec::default() };
        assert_eq!(PriorityClass::of(&with_priority(7500)), Mid);
        assert_eq!(PriorityClass::of(&with_priority(3000)), Free);
        assert_eq!(PriorityClass::of(&with_priority(10_000)), Prod);
        assert_eq!(PriorityClass::of(&PodSpec { qos: Qos::BestEffort, ..PodSpec::default() }), Batch);
        assert_eq!(PriorityClass::of(&labelled(with_priority(7500), PRIORITY_CLASS, "koord-batch")), Batch);
        assert_eq!(PriorityClass::of(&labelled(with_priority(7500), PRIORITY_CLASS, "other")), Prod);
        assert_eq!(PriorityClass::of(&labelled(with_priority(0), QOS_CLASS, "BE")), Batch);
    }
}
