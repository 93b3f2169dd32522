//! The typical pods and their tables, as derived state of the cluster.
//!
//! Profiles with different arguments have different sets of typical pods. A set that is counted is listed anew now and
//! then, and then the results of all nodes are: a compromise between being up to date and scoring little.

use std::any::Any;
use std::sync::Arc;

use pellucid_cluster::derived::{DerivedState, HookContext, Touched};
use pellucid_model::selector::{Labels, NodeAffinity};
use pellucid_model::{Name, Node, NodeIdx, Pages, Pod, PodId};

use super::table::Table;
use super::typical::{Given, GradientArgs, Wish};
use super::window::Window;

/// Which of the typical pods accept a node, a bit each.
type Accepted = Box<[u64]>;

/// The typical pods of one set of arguments.
#[derive(Clone)]
pub(in super::super) struct Set {
    args: GradientArgs,
    /// `None` when the arguments list the typical pods.
    window: Option<Window>,
    typical: Arc<[Given]>,
    /// Tables by the typical pods that accept a node.
    tables: Arc<Vec<(Accepted, Table)>>,
    /// By node: the position of its table plus 1; 0 without a Node object.
    table_of: Pages<u16>,
}

/// What is known of typical pods.
#[derive(Clone, Default)]
pub(in super::super) struct TypicalPods {
    sets: Vec<Set>,
    /// Names and labels of the nodes.
    nodes: Pages<Option<(Name, Labels)>>,
}

impl TypicalPods {
    pub(in super::super) fn new(args: GradientArgs) -> Self {
        let window = args.given.is_empty().then(|| Window::new(args.window));
        let typical = args.given.clone();
        let set = Set { args, window, typical, tables: Arc::default(), table_of: Pages::default() };
        Self { sets: vec![set], nodes: Pages::default() }
    }

    /// Returns the typical pods of the first set of arguments, the most frequent first.
    pub(super) fn typical(&self) -> &[Given] {
        self.sets.first().map_or(&[], |set| &set.typical)
    }

    /// Returns the set of these arguments.
    pub(super) fn set(&self, args: &GradientArgs) -> Option<&Set> {
        self.sets.iter().find(|set| set.args.is_same(args))
    }

    fn see(&mut self, spec: &pellucid_model::PodSpec) -> Touched {
        if self.sets.iter().all(|set| set.window.is_none()) {
            return Touched::Nothing;
        }
        let Some(wish) = Wish::of(spec) else { return Touched::Nothing };
        let mut touched = Touched::Nothing;
        for set in &mut self.sets {
            let Some(window) = &mut set.window else { continue };
            if !window.add(wish.clone()) {
                continue;
            }
            let typical = window.typical();
            if *typical != *set.typical {
                set.typical = typical.into();
                set.classify_all(&self.nodes);
                touched = Touched::All;
            }
        }
        touched
    }
}

impl Set {
    /// Returns the table of a node.
    #[inline]
    pub(super) fn table(&self, node: NodeIdx) -> Option<&Table> {
        let at = self.table_of.get(node.index())?.checked_sub(1)?;
        self.tables.get(usize::from(at)).map(|(_, table)| table)
    }

    fn classify_all(&mut self, nodes: &Pages<Option<(Name, Labels)>>) {
        self.tables = Arc::default();
        for (at, node) in nodes.iter().enumerate() {
            self.classify(at, node.as_ref());
        }
    }

    fn classify(&mut self, at: usize, node: Option<&(Name, Labels)>) {
        let number = match node {
            None => 0,
            Some((name, labels)) => self.number_of(name, labels),
        };
        if self.table_of.get(at).copied().unwrap_or(0) != number {
            self.table_of.set(at, number);
        }
    }

    fn number_of(&mut self, name: &Name, labels: &Labels) -> u16 {
        let mut accepted: Accepted = vec![0; self.typical.len().div_ceil(64)].into();
        for (at, given) in self.typical.iter().enumerate() {
            let is_any = given.wish.nodes == NodeAffinity::default();
            if is_any || given.wish.nodes.accepts(name, labels) {
                accepted[at / 64] |= 1 << (at % 64);
            }
        }
        let known = self.tables.iter().position(|(other, _)| *other == accepted);
        let at = known.unwrap_or_else(|| {
            let table =
                Table::new(&self.typical, self.args.lookahead, |at| accepted[at / 64] >> (at % 64) & 1 == 1);
            Arc::make_mut(&mut self.tables).push((accepted, table));
            self.tables.len() - 1
        });
        u16::try_from(at + 1).unwrap_or(0)
    }
}

impl DerivedState for TypicalPods {
    fn fork(&self) -> Box<dyn DerivedState> {
        Box::new(self.clone())
    }

    fn merge(&mut self, other: Box<dyn DerivedState>) {
        let other: Box<dyn Any> = other;
        let Ok(other) = other.downcast::<Self>() else { return };
        for set in other.sets {
            if self.set(&set.args).is_none() {
                self.sets.push(set);
            }
        }
    }

    fn pod_came(&mut self, _cx: &HookContext<'_>, _id: PodId, pod: &Pod) -> Touched {
        self.see(&pod.spec)
    }

    fn node_changed(&mut self, node: NodeIdx, _old: Option<&Node>, new: Option<&Node>) -> Touched {
        let now = new.map(|new| (new.name.clone(), new.labels.clone()));
        if self.nodes.get(node.index()).is_none_or(|known| *known != now) {
            self.sets.iter_mut().for_each(|set| set.classify(node.index(), now.as_ref()));
            self.nodes.set(node.index(), now);
        }
        Touched::Nothing
    }
}
