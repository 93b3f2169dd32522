//! Node columns: what nodes offer and what is taken, as dense integers indexed by node number.
//!
//! Columns live in pages of 64 nodes, one array per resource and amount, so a scan is a walk through
//! memory and a published snapshot shares every page that did not change. Amounts taken may exceed the
//! allocatable (others may overcommit, nodes may shrink), so free amounts are signed.

mod resource_table;

use std::sync::Arc;

use pellucid_model::pages::PAGE;
use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::{Name, NodeIdx};

use crate::columns::resource_table::ResourceTable;

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

fn scalar(number: usize) -> ResourceIdx {
    ResourceIdx((number + FIXED) as u16)
}

/// Iterates over what a list offers beside the fixed resources.
pub(crate) fn offers(list: &ResourceList) -> impl Iterator<Item = (&Name, i64)> {
    list.scalars.iter().filter(|(_, amount)| *amount != 0).map(|(name, amount)| (name, *amount))
}

/// The columns of all nodes.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pages: Vec<Arc<ColumnPage>>,
    /// Which resources the scalar columns are of.
    table: Arc<ResourceTable>,
}

impl Columns {
    /// Returns the column number of a resource name, or `None` when no node offers it, or it is left out. It stands for
    /// the resource as long as [`Self::version`] stays.
    pub fn find(&self, name: &Name) -> Option<ResourceIdx> {
        match &**name {
            "cpu" => Some(CPU),
            "memory" => Some(MEMORY),
            "ephemeral-storage" => Some(EPHEMERAL_STORAGE),
            "pods" => Some(PODS),
            _ => self.table.find(name).map(scalar),
        }
    }

    /// Returns the name of a column.
    pub fn name(&self, resource: ResourceIdx) -> Name {
        match resource {
            CPU => "cpu".into(),
            MEMORY => "memory".into(),
            EPHEMERAL_STORAGE => "ephemeral-storage".into(),
            PODS => "pods".into(),
            ResourceIdx(i) => self.table.name(usize::from(i) - FIXED).cloned().unwrap_or_default(),
        }
    }

    /// Returns how many columns there are; their numbers are below it.
    pub fn n_resources(&self) -> usize {
        FIXED + self.table.len()
    }

    /// Iterates over the columns of what some node offers, and the fixed ones.
    pub fn offered(&self) -> impl Iterator<Item = ResourceIdx> {
        (0..FIXED).map(|i| ResourceIdx(i as u16)).chain(self.table.offered().map(scalar))
    }

    /// Returns a number that is another one when a resource gets a column or loses it.
    pub fn version(&self) -> u64 {
        self.table.version()
    }

    /// Iterates over the resources that nodes offer and that have no column, because there are as many as there may be.
    pub fn left_out(&self) -> impl Iterator<Item = &Name> {
        self.table.left_out()
    }

    /// Whether nodes offer a resource that has no column.
    pub fn is_left_out(&self, name: &Name) -> bool {
        self.table.is_left_out(name)
    }

    /// Returns how many resources nodes offer beside the fixed ones, and how many of them have a column.
    pub fn numbers(&self) -> (usize, usize) {
        self.table.numbers()
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

    pub(crate) fn grow(&mut self, n_nodes: usize) {
        while self.pages.len() * PAGE < n_nodes {
            self.pages.push(Arc::default());
        }
    }

    /// Sets what a node offers, which was `old`. Returns the columns that are new; the caller counts what pods request
    /// of them already, with [`Columns::take_new`].
    pub(crate) fn set_allocatable(
        &mut self,
        node: NodeIdx,
        old: &ResourceList,
        list: &ResourceList,
    ) -> Vec<ResourceIdx> {
        let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
        let at = node.index() % PAGE;
        page.fixed[0].allocatable[at] = list.milli_cpu.min(MOST);
        page.fixed[1].allocatable[at] = list.memory.min(MOST);
        page.fixed[2].allocatable[at] = list.ephemeral_storage.min(MOST);
        page.fixed[3].allocatable[at] = list.pods.min(MOST);
        if old.scalars == list.scalars {
            return Vec::new();
        }
        let mut new = Vec::new();
        for (name, amount) in offers(list) {
            new.extend(self.offer(node, name, amount));
        }
        for (name, _) in offers(old) {
            self.withdraw(node, name, list.scalar(name) != 0);
        }
        new
    }

    /// A node offers a resource. Returns its column when it is new.
    pub(crate) fn offer(&mut self, node: NodeIdx, name: &Name, amount: i64) -> Option<ResourceIdx> {
        let (number, is_new) = Arc::make_mut(&mut self.table).offer(name)?;
        let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
        page.resource_mut(scalar(number)).allocatable[node.index() % PAGE] = amount.min(MOST);
        is_new.then(|| scalar(number))
    }

    /// A node does not offer a resource any more, or (`still`) offers it again by now. The column of the last offer
    /// goes with it.
    fn withdraw(&mut self, node: NodeIdx, name: &Name, still: bool) {
        let table = Arc::make_mut(&mut self.table);
        let (number, last) = (table.find(name), table.withdraw(name));
        if let Some(number) = number.filter(|_| !still) {
            let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
            page.resource_mut(scalar(number)).allocatable[node.index() % PAGE] = 0;
        }
        if let Some(number) = last.filter(|last| table.release(*last)) {
            // What pods request of it is counted anew when it is offered again.
            let has_any = |page: &&mut Arc<ColumnPage>| {
                page.scalars.get(number).is_some_and(|column| column.requested != [0; PAGE])
            };
            for page in self.pages.iter_mut().filter(has_any) {
                Arc::make_mut(page).scalars[number] = ResourceColumn::default();
            }
        }
    }

    /// Takes a resource off the list of those left out, when there is a column for it. The caller says which nodes offer
    /// it, with [`Columns::offer`].
    pub(crate) fn admit(&mut self) -> Option<Name> {
        self.table.left_out().next()?;
        Arc::make_mut(&mut self.table).admit()
    }

    /// Counts what a pod on a node requests of columns that are new.
    pub(crate) fn take_new(&mut self, node: NodeIdx, requests: &PodRequests, new: &[ResourceIdx]) {
        for (name, amount) in &requests.list.scalars {
            if let Some(resource) = self.find(name).filter(|r| new.contains(r)) {
                let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
                let to = &mut page.resource_mut(resource).requested[node.index() % PAGE];
                *to = to.wrapping_add((*amount).clamp(-MOST, MOST));
            }
        }
    }

    /// Sets how many scalar columns there may be, for tests.
    #[cfg(test)]
    pub(crate) fn limit(&mut self, most: usize) {
        Arc::make_mut(&mut self.table).limit(most);
    }

    /// Adds (`sign` 1) or removes (`sign` -1) what a pod takes.
    pub(crate) fn take(&mut self, node: NodeIdx, requests: &PodRequests, sign: i64) {
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

#[cfg(test)]
mod tests;
