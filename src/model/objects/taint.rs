//! Taints and tolerations, matched as in `k8s.io/component-helpers`.

use serde::{Deserialize, Serialize};

use crate::Name;

crate::named! {
    /// What a taint does to pods that do not tolerate it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum TaintEffect {
        /// New pods are not scheduled on the node.
        NoSchedule = "NoSchedule",
        /// New pods avoid the node if they can.
        PreferNoSchedule = "PreferNoSchedule",
        /// New pods are not scheduled on the node, and running ones are evicted.
        NoExecute = "NoExecute",
    }
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Taint {
    /// Key of the taint.
    pub key: Name,
    /// Value; empty when absent.
    pub value: Name,
    /// What the taint does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// The operator of a [`Toleration`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TolerationOperator {
    /// The value must be equal; also the meaning of an absent operator.
    Equal,
    /// Any value matches.
    Exists,
    /// An operator that this version does not know, which tolerates nothing.
    Unknown,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Toleration {
    /// Key; empty with `Exists` matches every key.
    pub key: Name,
    /// How key and value are compared.
    pub operator: TolerationOperator,
    /// Value to compare with, for `Equal`.
    pub value: Name,
    /// Effect; `None` matches every effect.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Returns whether this toleration tolerates the taint.
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

/// Returns whether any of the tolerations tolerates the taint.
#[inline]
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
