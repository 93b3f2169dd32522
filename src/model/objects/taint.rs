//! Taints and tolerations, as `k8s.io/component-helpers` matches them.

use serde::{Deserialize, Serialize};

use crate::Name;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TaintEffect {
    /// Keeps new pods away.
    NoSchedule,
    /// Keeps new pods away when there is another node.
    PreferNoSchedule,
    /// Keeps new pods away and evicts running ones.
    NoExecute,
}

impl TaintEffect {
    /// Returns the API's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Taint {
    /// Key.
    pub key: Name,
    /// Value, empty when absent.
    pub value: Name,
    /// Effect.
    pub effect: TaintEffect,
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// Value must be equal (also the meaning of an absent operator).
    Equal,
    /// Any value.
    Exists,
    /// An operator this version does not know: tolerates nothing.
    Unknown,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Toleration {
    /// Key; empty with `Exists` matches every key.
    pub key: Name,
    /// Operator.
    pub operator: TolerationOperator,
    /// Value, for `Equal`.
    pub value: Name,
    /// Effect; `None` matches every effect.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether this toleration tolerates the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|e| e != taint.effect) {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => !self.key.is_empty() && self.value == taint.value,
            TolerationOperator::Unknown => false,
        }
    }
}

/// Whether any of the tolerations tolerates the taint.
pub fn tolerated(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|t| t.tolerates(taint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toleration(key: &str, operator: TolerationOperator, value: &str) -> Toleration {
        Toleration { key: key.into(), operator, value: value.into(), effect: None }
    }

    #[test]
    fn operators() {
        let taint = Taint { key: "k".into(), value: "v".into(), effect: TaintEffect::NoSchedule };
        use TolerationOperator::*;
        for (key, operator, value, want) in [
            ("k", Equal, "v", true),
            ("k", Equal, "w", false),
            ("k", Exists, "", true),
            ("", Exists, "", true),
            ("", Equal, "v", false),
            ("j", Exists, "", false),
            ("k", Unknown, "v", false),
        ] {
            assert_eq!(
                toleration(key, operator, value).tolerates(&taint),
                want,
                "{key} {operator:?} {value}"
            );
        }
        let other_effect = Toleration { effect: Some(TaintEffect::NoExecute), ..toleration("k", Exists, "") };
        assert!(!other_effect.tolerates(&taint));
    }
}
