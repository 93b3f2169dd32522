//! Finds the reservations of a pod without a look at all others.
//!
//! Reservations whose `spec.owners` are written alike are one group, whose terms are compared with a pod once. A group is
//! found by a key that every pod which one of its terms matches has: a uid, a name, a label, a namespace. A pod looks up
//! the keys that it has, of the sorts that are in use. Only reservations that pods may use are in the index.

use std::hash::Hash;
use std::sync::Arc;

use pellucid_model::selector::Operator;
use pellucid_model::{CowMap, Name, Pod};
use smallvec::{SmallVec, smallvec};

use super::owners::{self, OwnerTerm};

/// What a pod must have for a term to match it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Uid(Arc<str>),
    Name(Arc<str>),
    ControllerUid(Arc<str>),
    ControllerName(Arc<str>),
    Label(Name, Name),
    /// A label of any value.
    HasLabel(Name),
    Namespace(Name),
    /// Nothing that could be looked up.
    Any,
}

impl Key {
    fn sort(&self) -> Sort {
        match self {
            Self::Uid(_) => Sort::Uid,
            Self::Name(_) => Sort::Name,
            Self::ControllerUid(_) => Sort::ControllerUid,
            Self::ControllerName(_) => Sort::ControllerName,
            Self::Label(..) | Self::HasLabel(_) => Sort::Label,
            Self::Namespace(_) => Sort::Namespace,
            Self::Any => Sort::Any,
        }
    }
}

/// Sorts of keys.
#[derive(Clone, Copy, Debug)]
enum Sort {
    Uid,
    Name,
    ControllerUid,
    ControllerName,
    Label,
    Namespace,
    Any,
}

/// Texts of groups, in no particular order.
type Texts = Arc<Vec<Name>>;

/// The groups with keys of one label.
#[derive(Clone, Debug, Default)]
struct LabelKeys {
    by_value: CowMap<Name, Texts>,
    of_any: Texts,
}

/// The reservations that are written for the same owners.
#[derive(Clone, Debug)]
pub(super) struct Group {
    terms: Arc<[OwnerTerm]>,
    /// Names of those that pods may use, sorted.
    pub(super) open: Vec<Name>,
}

impl Group {
    /// Returns the reservation with this name, if pods may use it.
    pub(super) fn find(&self, name: &Name) -> Option<&Name> {
        self.open.binary_search(name).ok().map(|at| &self.open[at])
    }
}

/// The index.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// By the text of `spec.owners`.
    groups: CowMap<Name, Arc<Group>>,
    by_key: CowMap<Key, Texts>,
    /// How many groups have keys of each sort.
    sorts: [u32; 7],
    /// By label, so that a pod's labels are looked up as they stand.
    labels: Arc<Vec<(Name, LabelKeys)>>,
}

impl Index {
    /// Adds a reservation that pods may use.
    pub(super) fn open(&mut self, owners: &Name, terms: &Arc<[OwnerTerm]>, name: &Name) {
        if let Some(group) = self.groups.get_mut(owners) {
            let open = &mut Arc::make_mut(group).open;
            if let Err(at) = open.binary_search(name) {
                open.insert(at, name.clone());
            }
            return;
        }
        let group = Group { terms: terms.clone(), open: vec![name.clone()] };
        self.groups.insert(owners.clone(), Arc::new(group));
        self.each_key(terms, |index, key| {
            index.sorts[key.sort() as usize] += 1;
            index.change(&key, |texts| texts.push(owners.clone()));
        });
    }

    /// Removes a reservation. The last one takes its group along.
    pub(super) fn close(&mut self, owners: &Name, name: &Name) {
        let Some(group) = self.groups.get_mut(owners) else { return };
        let group = Arc::make_mut(group);
        if let Ok(at) = group.open.binary_search(name) {
            group.open.remove(at);
        }
        if !group.open.is_empty() {
            return;
        }
        let terms = group.terms.clone();
        self.groups.remove(owners);
        self.each_key(&terms, |index, key| {
            let n = &mut index.sorts[key.sort() as usize];
            *n = n.saturating_sub(1);
            index.change(&key, |texts| texts.retain(|known| known != owners));
        });
    }

    fn each_key(&mut self, terms: &[OwnerTerm], mut change: impl FnMut(&mut Self, Key)) {
        let mut keys: SmallVec<[Key; 4]> = SmallVec::new();
        for key in terms.iter().flat_map(OwnerTerm::keys) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys.into_iter().for_each(|key| change(self, key));
    }

    /// Changes the groups with a key.
    fn change(&mut self, key: &Key, change: impl FnOnce(&mut Vec<Name>)) {
        let (Key::Label(label, _) | Key::HasLabel(label)) = key else {
            return change_texts(&mut self.by_key, key, change);
        };
        let labels = Arc::make_mut(&mut self.labels);
        let at = labels.iter().position(|(known, _)| known == label).unwrap_or_else(|| {
            labels.push((label.clone(), LabelKeys::default()));
            labels.len() - 1
        });
        let keys = &mut labels[at].1;
        match key {
            Key::Label(_, value) => change_texts(&mut keys.by_value, value, change),
            _ => change(Arc::make_mut(&mut keys.of_any)),
        }
        if keys.of_any.is_empty() && keys.by_value.is_empty() {
            labels.swap_remove(at);
        }
    }

    /// Returns whether a pod may be an owner of any. Never a wrong no.
    pub(super) fn has_owner(&self, pod: &Pod) -> bool {
        self.sorts.iter().any(|n| *n > 0) && !self.of_pod(pod).is_empty()
    }

    /// Returns the groups that have a pod as an owner, each once.
    pub(super) fn of_pod(&self, pod: &Pod) -> SmallVec<[&Group; 2]> {
        let mut found = Found { index: self, pod, groups: smallvec![] };
        let has = |sort: Sort| self.sorts[sort as usize] > 0;
        if has(Sort::Uid) {
            found.add(self.by_key.get(&Key::Uid(pod.uid.clone())));
        }
        if has(Sort::Name) {
            found.add(self.by_key.get(&Key::Name(pod.key.name.clone())));
        }
        if let Some(of) = &pod.controller {
            if has(Sort::ControllerUid) {
                found.add(self.by_key.get(&Key::ControllerUid(of.uid.clone())));
            }
            if has(Sort::ControllerName) {
                found.add(self.by_key.get(&Key::ControllerName(of.name.clone())));
            }
        }
        for (label, keys) in self.labels.iter() {
            if let Some(value) = pod.labels.get(label) {
                found.add(keys.by_value.get(value));
                found.add(Some(&keys.of_any));
            }
        }
        if has(Sort::Namespace) {
            found.add(self.by_key.get(&Key::Namespace(pod.key.namespace.clone())));
        }
        if has(Sort::Any) {
            found.add(self.by_key.get(&Key::Any));
        }
        found.groups
    }
}

/// The groups found for a pod.
struct Found<'a, 'p> {
    index: &'a Index,
    pod: &'p Pod,
    groups: SmallVec<[&'a Group; 2]>,
}

impl Found<'_, '_> {
    fn add(&mut self, texts: Option<&Texts>) {
        for text in texts.into_iter().flat_map(|texts| texts.iter()) {
            let Some(group) = self.index.groups.get(text) else { continue };
            let is_new = !self.groups.iter().any(|known| std::ptr::eq(*known, &**group));
            if is_new && owners::matches(&group.terms, self.pod) {
                self.groups.push(group);
            }
        }
    }
}

fn change_texts<K: Clone + Eq + Hash>(
    all: &mut CowMap<K, Texts>,
    key: &K,
    change: impl FnOnce(&mut Vec<Name>),
) {
    let mut texts = all.remove(key).unwrap_or_default();
    change(Arc::make_mut(&mut texts));
    if !texts.is_empty() {
        all.insert(key.clone(), texts);
    }
}

impl OwnerTerm {
    /// Returns the keys of which every pod that the term matches has one. A uid or a name tells most pods apart, then the
    /// label with the fewest values.
    fn keys(&self) -> Vec<Key> {
        let text = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        let (object, controller) = (self.object.as_ref(), self.controller.as_ref());
        let single = object
            .and_then(|of| text(&of.uid).map(Key::Uid).or(text(&of.name).map(Key::Name)))
            .or_else(|| controller.and_then(|of| text(&of.uid).map(Key::ControllerUid)))
            .or_else(|| controller.and_then(|of| text(&of.name).map(Key::ControllerName)));
        if let Some(key) = single {
            return vec![key];
        }
        let requirements = self.selector.iter().flat_map(|selector| selector.requirements());
        let listed = requirements.clone().filter(|of| of.operator == Operator::In);
        if let Some(least) = listed.min_by_key(|of| of.values.len()) {
            return least.values.iter().map(|value| Key::Label(least.key.clone(), value.clone())).collect();
        }
        let must_be_there = |operator| matches!(operator, Operator::Exists | Operator::Gt | Operator::Lt);
        if let Some(there) = requirements.clone().find(|of| must_be_there(of.operator)) {
            return vec![Key::HasLabel(there.key.clone())];
        }
        let namespace = object.into_iter().chain(controller).find(|of| !of.namespace.is_empty());
        vec![namespace.map_or(Key::Any, |of| Key::Namespace(Name::new(&of.namespace)))]
    }
}

#[cfg(test)]
mod tests {
    use pellucid_framework::manifest::Field;
    use pellucid_model::PodKey;
    use pellucid_model::gang::Controller;
    use pellucid_model::selector::Labels;
    use serde_json::{Value, json};

    use super::*;

    fn pod(n: usize) -> Pod {
        let label = |key: &str, value: String| (Name::new(key), Name::new(&value));
        let (uid, name) = (format!("c{}", n % 3).into(), format!("set-{}", n % 3).into());
        Pod {
            key: PodKey::new(if n.is_multiple_of(2) { "even" } else { "odd" }, &format!("pod-{n}")),
            uid: format!("u{n}").into(),
            labels: Labels::new([
                label("app", format!("a{}", n % 4)),
                label("tier", format!("{}", n % 5)),
                label(if n.is_multiple_of(3) { "three" } else { "other" }, String::new()),
            ]),
            controller: Some(Controller { uid, kind: "ReplicaSet".into(), name }),
            ..Pod::default()
        }
    }

    fn terms() -> Vec<Value> {
        let selector = |expressions: Value| json!([{"labelSelector": {"matchExpressions": expressions}}]);
        vec![
            json!([{"object": {"uid": "u3"}}]),
            json!([{"object": {"name": "pod-4", "namespace": "even"}}]),
            json!([{"object": {"namespace": "odd"}}]),
            json!([{"controller": {"uid": "c1"}}]),
            json!([{"controller": {"name": "set-2", "kind": "ReplicaSet"}}]),
            json!([{"labelSelector": {"matchLabels": {"app": "a1", "tier": "2"}}}]),
            json!([{"labelSelector": {}}]),
            selector(json!([{"key": "app", "operator": "In", "values": ["a0", "a2"]}])),
            selector(json!([{"key": "three", "operator": "Exists"}])),
            selector(json!([{"key": "app", "operator": "NotIn", "values": ["a0"]}])),
            json!([{"labelSelector": {"matchLabels": {"app": "a3"}}}, {"object": {"uid": "u3"}}]),
        ]
    }

    #[test]
    fn every_owner_is_found_and_nobody_else() {
        let mut index = Index::default();
        let all: Vec<(Name, Arc<[OwnerTerm]>)> = terms()
            .iter()
            .map(|of| (Name::new(&of.to_string()), owners::read(&Field::root(of)).expect("owners").into()))
            .collect();
        for (at, (text, terms)) in all.iter().enumerate() {
            for member in 0..=at {
                index.open(text, terms, &Name::new(&format!("r{at}-{member}")));
            }
        }
        let found = |index: &Index, n: usize| {
            let mut found: Vec<Name> =
                index.of_pod(&pod(n)).iter().flat_map(|group| group.open.clone()).collect();
            found.sort();
            found
        };
        let expected = |from: usize, n: usize| {
            let mut all: Vec<Name> = (from..all.len())
                .filter(|at| owners::matches(&all[*at].1, &pod(n)))
                .flat_map(|at| (0..=at).map(move |member| Name::new(&format!("r{at}-{member}"))))
                .collect();
            all.sort();
            all
        };
        for gone in 0..=all.len() {
            for n in 0..60 {
                assert_eq!(found(&index, n), expected(gone, n), "pod {n} without the first {gone}");
            }
            if let Some((text, _)) = all.get(gone) {
                (0..=gone).for_each(|member| index.close(text, &Name::new(&format!("r{gone}-{member}"))));
            }
        }
        assert!(index.by_key.is_empty() && index.labels.is_empty() && index.sorts == [0; 7]);
    }
}
