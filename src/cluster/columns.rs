//! Node columns: what nodes offer and what is taken, as dense integers indexed by node number.
//!
//! Columns live in pages of 64 nodes, one array per resource and amount, so a scan is a walk through
//! memory and a published root shares every page that did not change. Amounts taken may exceed the
//! allocatable (others may overcommit, nodes may shrink), so free amounts are signed.

use std::sync::Arc;

use crate::model::pages::PAGE;
use crate::model::requests::{PodRequests, ResourceList};
use crate::model::{Name, NodeIdx};

/// The number of a resource column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceIdx(pub u16);

/// CPU, thousandths of a core.
pub const CPU: ResourceIdx = ResourceIdx(0);
/// Memory, bytes.
pub const MEMORY: ResourceIdx = ResourceIdx(1);
/// Ephemeral storage, bytes.
pub const EPHEMERAL_STORAGE: ResourceIdx = ResourceIdx(2);
/// Pods.
pub const PODS: ResourceIdx = ResourceIdx(3);
const FIXED: usize = 4;
/// Scalar columns at most. Only nodes make columns, so pods cannot fill the table; a resource beyond it is
/// treated as one that no node offers.
const SCALARS_MOST: usize = 1024;

/// One resource on the nodes of a page.
#[derive(Clone, Debug)]
pub struct ResourceColumn {
    /// Allocatable amount per node.
    pub allocatable: [i64; PAGE],
    /// Amount requested by the pods on the node, in every stage.
    pub requested: [i64; PAGE],
}

impl Default for ResourceColumn {
    fn default() -> Self {
        Self { allocatable: [0; PAGE], requested: [0; PAGE] }
    }
}

/// The columns of 64 nodes.
#[derive(Clone, Debug)]
pub struct ColumnPage {
    fixed: [ResourceColumn; FIXED],
    scalars: Vec<ResourceColumn>,
    /// CPU as scoring counts it: a container without a request as 100m.
    pub non_zero_cpu: [i64; PAGE],
    /// Memory as scoring counts it: a container without a request as 200 MiB.
    pub non_zero_memory: [i64; PAGE],
}

impl Default for ColumnPage {
    fn default() -> Self {
        Self {
            fixed: std::array::from_fn(|_| ResourceColumn::default()),
            scalars: Vec::new(),
            non_zero_cpu: [0; PAGE],
            non_zero_memory: [0; PAGE],
        }
    }
}

/// The most that counts of one amount: 2^53, nine petabytes. A node offers no more and a pod takes no more,
/// so that the sum over a thousand pods is exact, whatever somebody wrote into a manifest. A pod that
/// requests more fits nowhere.
const MOST: i64 = 1 << 53;

static EMPTY: ResourceColumn = ResourceColumn { allocatable: [0; PAGE], requested: [0; PAGE] };

impl ColumnPage {
    /// Returns the column of a resource; one that no node of the page has is all zero.
    pub fn resource(&self, resource: ResourceIdx) -> &ResourceColumn {
        let i = usize::from(resource.0);
        if i < FIXED { &self.fixed[i] } else { self.scalars.get(i - FIXED).unwrap_or(&EMPTY) }
    }

    fn resource_mut(&mut self, resource: ResourceIdx) -> &mut ResourceColumn {
        let i = usize::from(resource.0);
        if i < FIXED {
            return &mut self.fixed[i];
        }
        if self.scalars.len() <= i - FIXED {
            self.scalars.resize_with(i - FIXED + 1, ResourceColumn::default);
        }
        &mut self.scalars[i - FIXED]
    }
}

/// The columns of all nodes.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pages: Vec<Arc<ColumnPage>>,
    /// Names of the scalar columns, in the order they were first offered.
    scalars: Arc<Vec<Name>>,
    /// Per scalar column, how many nodes offer some of it. A column outlives its last offer.
    offers: Arc<Vec<u32>>,
}

impl Columns {
    /// Returns the column number of a resource name, or `None` when no node has offered it.
    pub fn find(&self, name: &Name) -> Option<ResourceIdx> {
        match &**name {
            "cpu" => Some(CPU),
            "memory" => Some(MEMORY),
            "ephemeral-storage" => Some(EPHEMERAL_STORAGE),
            "pods" => Some(PODS),
            _ => self.scalars.iter().position(|n| n == name).map(|i| ResourceIdx((i + FIXED) as u16)),
        }
    }

    /// Returns the name of a column.
    pub fn name(&self, resource: ResourceIdx) -> Name {
        match resource {
            CPU => "cpu".into(),
            MEMORY => "memory".into(),
            EPHEMERAL_STORAGE => "ephemeral-storage".into(),
            PODS => "pods".into(),
            ResourceIdx(i) => self.scalars[usize::from(i) - FIXED].clone(),
        }
    }

    /// Returns how many columns there are; their numbers are below it.
    pub fn n_resources(&self) -> usize {
        FIXED + self.scalars.len()
    }

    /// Iterates over the columns that are worth showing: the fixed ones, and what some node offers. What was
    /// offered once and is no more does not show that it was.
    pub fn offered(&self) -> impl Iterator<Item = ResourceIdx> {
        let scalars = self.offers.iter().enumerate().filter(|(_, n)| **n > 0).map(|(i, _)| i + FIXED);
        (0..FIXED).chain(scalars).map(|i| ResourceIdx(i as u16))
    }

    /// Returns the page of a node.
    pub fn page(&self, node: NodeIdx) -> &ColumnPage {
        &self.pages[node.index() / PAGE]
    }

    /// Returns all pages.
    pub fn pages(&self) -> &[Arc<ColumnPage>] {
        &self.pages
    }

    /// Returns a node's allocatable amount.
    pub fn allocatable(&self, node: NodeIdx, resource: ResourceIdx) -> i64 {
        self.page(node).resource(resource).allocatable[node.index() % PAGE]
    }

    /// Returns the amount that pods on the node request.
    pub fn requested(&self, node: NodeIdx, resource: ResourceIdx) -> i64 {
        self.page(node).resource(resource).requested[node.index() % PAGE]
    }

    /// Returns what is left on a node; negative when it is overcommitted.
    pub fn free(&self, node: NodeIdx, resource: ResourceIdx) -> i64 {
        self.allocatable(node, resource).saturating_sub(self.requested(node, resource))
    }

    pub(super) fn grow(&mut self, n_nodes: usize) {
        while self.pages.len() * PAGE < n_nodes {
            self.pages.push(Arc::default());
        }
    }

    /// Returns the column of a resource that a node offers, making it when there is room for one more.
    fn find_or_add(&mut self, name: &Name) -> Option<ResourceIdx> {
        self.find(name).or_else(|| {
            if self.scalars.len() >= SCALARS_MOST {
                return None;
            }
            Arc::make_mut(&mut self.scalars).push(name.clone());
            Arc::make_mut(&mut self.offers).push(0);
            Some(ResourceIdx((FIXED + self.scalars.len() - 1) as u16))
        })
    }

    /// Sets what a node offers. A resource that no node has offered before gets a column; the caller counts
    /// what pods already request of it with [`Columns::take_new`].
    pub(super) fn set_allocatable(&mut self, node: NodeIdx, list: &ResourceList) {
        let offered = list.scalars.iter();
        let offered = offered.filter(|(_, v)| *v != 0);
        let scalars: Vec<_> = offered.filter_map(|(n, v)| Some((self.find_or_add(n)?, *v))).collect();
        let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
        let at = node.index() % PAGE;
        for (i, column) in page.scalars.iter_mut().enumerate() {
            if column.allocatable[at] != 0 {
                Arc::make_mut(&mut self.offers)[i] -= 1;
                column.allocatable[at] = 0;
            }
        }
        page.fixed[0].allocatable[at] = list.milli_cpu.min(MOST);
        page.fixed[1].allocatable[at] = list.memory.min(MOST);
        page.fixed[2].allocatable[at] = list.ephemeral_storage.min(MOST);
        page.fixed[3].allocatable[at] = list.pods.min(MOST);
        for (resource, amount) in scalars {
            page.resource_mut(resource).allocatable[at] = amount.min(MOST);
            Arc::make_mut(&mut self.offers)[usize::from(resource.0) - FIXED] += 1;
        }
    }

    /// Counts what a pod on a node requests of the columns from number `first` on, which are new.
    pub(super) fn take_new(&mut self, node: NodeIdx, requests: &PodRequests, first: usize) {
        for (name, amount) in &requests.list.scalars {
            if let Some(resource) = self.find(name).filter(|r| usize::from(r.0) >= first) {
                let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
                let to = &mut page.resource_mut(resource).requested[node.index() % PAGE];
                *to = to.wrapping_add((*amount).clamp(-MOST, MOST));
            }
        }
    }

    /// Adds (`sign` 1) or removes (`sign` -1) what a pod takes.
    pub(super) fn take(&mut self, node: NodeIdx, requests: &PodRequests, sign: i64) {
        let scalars: smallvec::SmallVec<[(ResourceIdx, i64); 4]> =
            requests.list.scalars.iter().filter_map(|(n, v)| Some((self.find(n)?, *v))).collect();
        let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
        let at = node.index() % PAGE;
        let add = |to: &mut i64, amount: i64| *to = to.wrapping_add(sign * amount.clamp(-MOST, MOST));
        add(&mut page.fixed[0].requested[at], requests.list.milli_cpu);
        add(&mut page.fixed[1].requested[at], requests.list.memory);
        add(&mut page.fixed[2].requested[at], requests.list.ephemeral_storage);
        add(&mut page.fixed[3].requested[at], 1);
        add(&mut page.non_zero_cpu[at], requests.non_zero_milli_cpu);
        add(&mut page.non_zero_memory[at], requests.non_zero_memory);
        for (resource, amount) in scalars {
            add(&mut page.resource_mut(resource).requested[at], amount);
        }
    }
}
