//! `/apis/v1/explain/gangs/:namespace/:name/topology`: whether one domain of a topology key has room for a gang.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Meta;
use super::nodes::Amounts;

/// The nodes that share one value of a topology key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyDomain {
    /// Value of the label.
    pub value: String,
    /// Number of nodes with it.
    pub nodes: usize,
    /// Members of the gang that are on them.
    pub members: usize,
    /// How many of the required members have places together now if all of them had this value of the key in their
    /// `nodeSelector`, at most `required`. Planned, not estimated.
    pub slots: u32,
    /// What its nodes have free, added up. Nodes that refuse the members count as well.
    pub free: Amounts,
}

/// The domain with the most slots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BestDomain {
    /// Value of the label.
    pub domain: String,
    /// Its slots.
    pub slots: u32,
    /// Required members without a place there: `required` less `slots`.
    pub missing: u32,
}

/// What the domains of a key come to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopologyVerdict {
    /// `TopologyFits`, `TopologyFragmented`, `TopologyShort` or `TopologyNotKnown`; the code of the gang's own verdict when it
    /// is not planned.
    pub code: String,
    /// In words.
    pub message: String,
}

/// The domains of one topology key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyFit {
    /// Node label whose values are the domains.
    pub key: String,
    /// Why it is looked at: `asked`, `podAffinity`, `podAntiAffinity`, `topologySpread` or `default`.
    pub origin: String,
    /// What all that comes to, if all required members had to be in one domain of this key.
    pub verdict: TopologyVerdict,
    /// The domain with the most slots; absent when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<BestDomain>,
    /// Number of domains. At most 100 are planned and listed, those with the most CPU free.
    pub domain_count: usize,
    /// The domains, those with the most slots first. None when the gang is not planned.
    pub domains: Vec<TopologyDomain>,
    /// Nodes that do not have the label.
    pub nodes_without: usize,
}

/// `GET /apis/v1/explain/gangs/:namespace/:name/topology`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangTopology {
    /// What state this was computed on; `truncated` when not all domains are listed, or not all keys.
    pub meta: Meta,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Members that the quorum still needs places for.
    pub required: u32,
    /// How many of them have places together now, in any domains and with their own terms only; absent when the gang is
    /// not planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_now: Option<u32>,
    /// The first key.
    #[serde(flatten)]
    pub first: TopologyFit,
    /// The other keys.
    pub others: Vec<TopologyFit>,
}
