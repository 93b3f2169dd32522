//! What lists are filtered and sorted by.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::time::Duration;

use pellucid_model::Name;
use pellucid_model::selector::Labels;

use crate::advice::Grouping;

/// What a list can be filtered and sorted by. Each list declares which of them its items have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// Namespace: `namespace=a,b`.
    Namespace,
    /// Name, filtered by prefix: `name=web-`.
    Name,
    /// Code of a reason: `reason=InsufficientResource`.
    Reason,
    /// Controller: `owner=Deployment/web`, or its name alone.
    Owner,
    /// Node: `node=n1`.
    Node,
    /// Gang: `gang=namespace/name`, or its name alone.
    Gang,
    /// Stage of the queue or of a gang: `stage=active`.
    Stage,
    /// What a decision of another scheduler is to us: `judgement=Infeasible`.
    Judgement,
    /// Labels: `selector=app=web,tier!=db`.
    Labels,
    /// Time since creation: `olderThan=5m`, `youngerThan=1h`.
    Age,
    /// Priority: `minPriority=0`, `maxPriority=1000`.
    Priority,
    /// A group of pods that a plugin knows.
    Group(Grouping),
}

impl Attribute {
    /// Returns the name by which `sort` calls the attribute; also the parameter that filters by it, where it is one text.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Name => "name",
            Self::Reason => "reason",
            Self::Owner => "owner",
            Self::Node => "node",
            Self::Gang => "gang",
            Self::Stage => "stage",
            Self::Judgement => "judgement",
            Self::Labels => "selector",
            Self::Age => "age",
            Self::Priority => "priority",
            Self::Group(grouping) => grouping.name,
        }
    }

    /// Returns whether items are filtered by comparing one text.
    pub(super) const fn is_text(self) -> bool {
        !matches!(self, Self::Labels | Self::Age | Self::Priority)
    }
}

/// What a list knows of one item. What an item does not have is empty, and no filter on it admits the item.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// Namespace; empty for what has none.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Codes of its reasons, the one that it is sorted by first.
    pub reasons: Vec<Cow<'a, str>>,
    /// Kind and name of its controller.
    pub owner: Option<(String, String)>,
    /// Its node, or the nodes of its parts.
    pub nodes: Vec<&'a str>,
    /// Namespace and name of its gang, or of the gangs of its group.
    pub gangs: Vec<(&'a str, &'a str)>,
    /// Stage.
    pub stage: &'a str,
    /// What it is to us, of a decision of another scheduler.
    pub judgement: &'a str,
    /// Labels.
    pub labels: Option<&'a Labels>,
    /// When it was created, since 1970.
    pub created: Option<Duration>,
    /// Priority.
    pub priority: Option<i32>,
    /// Its groups that plugins know, by what they are called.
    pub groups: Vec<(&'static str, Name)>,
}

impl Facts<'_> {
    fn group(&self, grouping: Grouping) -> Option<&Name> {
        self.groups.iter().find(|(name, _)| *name == grouping.name).map(|(_, group)| group)
    }

    /// Returns whether an attribute is what a filter asks for.
    pub(super) fn is(&self, attribute: Attribute, wanted: &str) -> bool {
        // A qualified name is compared whole, a plain one with the name.
        let is_named = |above: &str, name: &str| match wanted.split_once('/') {
            Some((wanted_above, wanted)) => wanted_above.eq_ignore_ascii_case(above) && wanted == name,
            None => wanted == name,
        };
        match attribute {
            Attribute::Namespace => self.namespace == wanted,
            Attribute::Name => self.name.starts_with(wanted),
            Attribute::Reason => self.reasons.iter().any(|reason| reason == wanted),
            Attribute::Owner => self.owner.as_ref().is_some_and(|(kind, name)| is_named(kind, name)),
            Attribute::Node => self.nodes.contains(&wanted),
            Attribute::Gang => self.gangs.iter().any(|(namespace, name)| is_named(namespace, name)),
            Attribute::Stage => self.stage == wanted,
            Attribute::Judgement => self.judgement == wanted,
            Attribute::Group(grouping) => self.group(grouping).is_some_and(|group| &**group == wanted),
            Attribute::Labels | Attribute::Age | Attribute::Priority => false,
        }
    }

    /// Compares by one attribute. What has none comes first; the youngest has the least age.
    pub(super) fn compare(&self, other: &Self, attribute: Attribute) -> Ordering {
        match attribute {
            Attribute::Namespace => self.namespace.cmp(other.namespace),
            Attribute::Name => self.name.cmp(other.name),
            Attribute::Reason => self.reasons.first().cmp(&other.reasons.first()),
            Attribute::Owner => self.owner.cmp(&other.owner),
            Attribute::Node => self.nodes.first().cmp(&other.nodes.first()),
            Attribute::Gang => self.gangs.first().cmp(&other.gangs.first()),
            Attribute::Stage => self.stage.cmp(other.stage),
            Attribute::Judgement => self.judgement.cmp(other.judgement),
            Attribute::Labels => Ordering::Equal,
            Attribute::Age => other.created.cmp(&self.created),
            Attribute::Priority => self.priority.cmp(&other.priority),
            Attribute::Group(grouping) => self.group(grouping).cmp(&other.group(grouping)),
        }
    }
}
