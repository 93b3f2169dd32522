//! Node columns: allocatable and requested amounts of all nodes, as dense integers indexed by node number.
//!
//! Columns live in pages of 64 nodes, one array per resource and amount, so a scan walks through memory in
//! order and a published snapshot shares every page that did not change. Requested amounts may exceed
//! allocatable ones (others may overcommit, nodes may shrink), so free amounts are signed.

mod resource_table;

use std::sync::Arc;

use pellucid_model::pages::PAGE;
use pellucid_model::requests::{PodRequests, ResourceList};
use pellucid_model::{Name, NodeIdx, prefetch_index};

use crate::columns::resource_table::ResourceTable;

/// Index of a resource column; valid for one [`Columns::version`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceIdx(pub u16);

/// CPU, in thousandths of a core.
pub const CPU: ResourceIdx = ResourceIdx(0);
/// Memory, in bytes.
pub const MEMORY: ResourceIdx = ResourceIdx(1);
/// Ephemeral storage, in bytes.
pub const EPHEMERAL_STORAGE: ResourceIdx = ResourceIdx(2);
/// Number of pods.
pub const PODS: ResourceIdx = ResourceIdx(3);
const FIXED: usize = 4;
/// Number of scalar columns that are fetched ahead: more would keep the processor from what is needed first.
const PREFETCHED: usize = 4;

/// The amounts of one resource on the nodes of a page.
#[derive(Clone, Debug)]
pub struct ResourceColumn {
    /// Allocatable amount per node.
    pub allocatable: [i64; PAGE],
    /// Sum of the requests of the pods on each node, in every stage.
    pub requested: [i64; PAGE],
}

impl Default for ResourceColumn {
    #[inline]
    fn default() -> Self {
        Self { allocatable: [0; PAGE], requested: [0; PAGE] }
    }
}

/// The columns of 64 nodes.
#[derive(Clone, Debug)]
pub struct ColumnPage {
    fixed: [ResourceColumn; FIXED],
    scalars: Vec<ResourceColumn>,
    /// CPU requested as scoring counts it, in thousandths of a core: a container without a request counts as 100m.
    pub non_zero_cpu: [i64; PAGE],
    /// Memory requested as scoring counts it, in bytes: a container without a request counts as 200 MiB.
    pub non_zero_memory: [i64; PAGE],
}

impl Default for ColumnPage {
    #[inline]
    fn default() -> Self {
        Self {
            fixed: std::array::from_fn(|_| ResourceColumn::default()),
            scalars: Vec::new(),
            non_zero_cpu: [0; PAGE],
            non_zero_memory: [0; PAGE],
        }
    }
}

/// Upper bound of one amount: 2^53, nine petabytes; the lower one is its negative. Larger allocatable amounts and requests count as this much, so that
/// the sum over a thousand pods stays exact, whatever somebody wrote into a manifest. A pod that requests more fits
/// nowhere.
pub const MOST: i64 = 1 << 53;

static EMPTY: ResourceColumn = ResourceColumn { allocatable: [0; PAGE], requested: [0; PAGE] };

impl ColumnPage {
    /// Returns the column of a resource, all zero when no node of the page offers it.
    #[inline]
    pub fn resource(&self, resource: ResourceIdx) -> &ResourceColumn {
        let i = usize::from(resource.0);
        if i < FIXED { &self.fixed[i] } else { self.scalars.get(i - FIXED).unwrap_or(&EMPTY) }
    }

    /// Returns the columns of CPU, memory, ephemeral storage and pods.
    #[inline]
    pub fn fixed(&self) -> &[ResourceColumn; FIXED] {
        &self.fixed
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

/// Iterates over the resources that a list offers besides the fixed ones; zero amounts are no offer.
pub(crate) fn offers(list: &ResourceList) -> impl Iterator<Item = (&Name, i64)> {
    list.scalars.iter().filter(|(_, amount)| *amount != 0).map(|(name, amount)| (name, *amount))
}

/// The columns of all nodes, part of [`Cluster`](super::Cluster).
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pages: Vec<Arc<ColumnPage>>,
    /// Maps resource names to the scalar columns.
    table: Arc<ResourceTable>,
}

impl Columns {
    /// Returns the column of a resource name, or `None` when no node offers the resource or it is left out. The index
    /// stays valid while [`Self::version`] does not change.
    #[inline]
    pub fn find(&self, name: &Name) -> Option<ResourceIdx> {
        match &**name {
            "cpu" => Some(CPU),
            "memory" => Some(MEMORY),
            "ephemeral-storage" => Some(EPHEMERAL_STORAGE),
            "pods" => Some(PODS),
            _ => self.find_scalar(name),
        }
    }

    #[inline]
    fn find_scalar(&self, name: &Name) -> Option<ResourceIdx> {
        self.table.find(name).map(scalar)
    }

    /// Returns the resource name of a column, empty when the column is unused.
    #[inline]
    pub fn name(&self, resource: ResourceIdx) -> Name {
        match resource {
            CPU => "cpu".into(),
            MEMORY => "memory".into(),
            EPHEMERAL_STORAGE => "ephemeral-storage".into(),
            PODS => "pods".into(),
            ResourceIdx(i) => self.table.name(usize::from(i) - FIXED).cloned().unwrap_or_default(),
        }
    }

    /// Returns the upper bound of column indexes; some below it may be unused.
    #[inline]
    pub fn n_resources(&self) -> usize {
        FIXED + self.table.names.len()
    }

    /// Iterates over the fixed columns and those of resources that some node offers.
    #[inline]
    pub fn offered(&self) -> impl Iterator<Item = ResourceIdx> {
        (0..FIXED).map(|i| ResourceIdx(i as u16)).chain(self.table.offered().map(scalar))
    }

    /// Returns a number that changes whenever a resource gets or loses a column.
    #[inline]
    pub fn version(&self) -> u64 {
        self.table.version
    }

    /// Iterates over the resources that nodes offer but that have no column, because all columns are in use.
    #[inline]
    pub fn left_out(&self) -> impl Iterator<Item = &Name> {
        self.table.left_out.keys()
    }

    /// Returns whether nodes offer this resource but it has no column.
    #[inline]
    pub fn is_left_out(&self, name: &Name) -> bool {
        self.table.left_out.contains_key(name)
    }

    /// Returns the number of resources that nodes offer besides the fixed ones, and how many of them have a column.
    #[inline]
    pub fn numbers(&self) -> (usize, usize) {
        let with_column = self.table.index.len();
        (with_column + self.table.left_out.len(), with_column)
    }

    /// Returns the page that holds a node.
    #[inline]
    pub fn page(&self, node: NodeIdx) -> &ColumnPage {
        &self.pages[node.index() / PAGE]
    }

    /// Returns all pages, in order of node numbers.
    #[inline]
    pub fn pages(&self) -> &[Arc<ColumnPage>] {
        &self.pages
    }

    /// Returns a node's allocatable amount of a resource.
    #[inline]
    pub fn allocatable(&self, node: NodeIdx, resource: ResourceIdx) -> i64 {
        self.page(node).resource(resource).allocatable[node.index() % PAGE]
    }

    /// Returns the sum of a resource's requests over the pods on a node.
    #[inline]
    pub fn requested(&self, node: NodeIdx, resource: ResourceIdx) -> i64 {
        self.page(node).resource(resource).requested[node.index() % PAGE]
    }

    /// Returns the free amount of a resource on a node; negative when the node is overcommitted.
    #[inline]
    pub fn free(&self, node: NodeIdx, resource: ResourceIdx) -> i64 {
        self.allocatable(node, resource).saturating_sub(self.requested(node, resource))
    }

    pub(crate) fn grow(&mut self, n_nodes: usize) {
        while self.pages.len() * PAGE < n_nodes {
            self.pages.push(Arc::default());
        }
    }

    /// Changes what a node offers from `old` to `list`. Returns the new columns; the caller counts existing requests
    /// into them with [`Columns::take_new`].
    pub(crate) fn set_allocatable(
        &mut self,
        node: NodeIdx,
        old: &ResourceList,
        list: &ResourceList,
    ) -> Vec<ResourceIdx> {
        let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
        let at = node.index() % PAGE;
        page.fixed[0].allocatable[at] = list.milli_cpu.clamp(-MOST, MOST);
        page.fixed[1].allocatable[at] = list.memory.clamp(-MOST, MOST);
        page.fixed[2].allocatable[at] = list.ephemeral_storage.clamp(-MOST, MOST);
        page.fixed[3].allocatable[at] = list.pods.clamp(-MOST, MOST);
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

    /// Records that a node offers an amount of a resource. Returns the resource's column if it is new.
    pub(crate) fn offer(&mut self, node: NodeIdx, name: &Name, amount: i64) -> Option<ResourceIdx> {
        let (number, is_new) = Arc::make_mut(&mut self.table).offer(name)?;
        let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
        page.resource_mut(scalar(number)).allocatable[node.index() % PAGE] = amount.clamp(-MOST, MOST);
        is_new.then(|| scalar(number))
    }

    /// Records that a node withdrew an offer of a resource; `still` says that its new list offers the resource again.
    /// Withdrawing the last offer frees the column.
    fn withdraw(&mut self, node: NodeIdx, name: &Name, still: bool) {
        let table = Arc::make_mut(&mut self.table);
        let (number, last) = (table.find(name), table.withdraw(name));
        if let Some(number) = number.filter(|_| !still) {
            let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
            page.resource_mut(scalar(number)).allocatable[node.index() % PAGE] = 0;
        }
        if let Some(number) = last.filter(|last| table.release(*last)) {
            // Requests for the resource are recounted when it is offered again.
            let has_any = |page: &&mut Arc<ColumnPage>| {
                page.scalars.get(number).is_some_and(|column| column.requested != [0; PAGE])
            };
            for page in self.pages.iter_mut().filter(has_any) {
                Arc::make_mut(page).scalars[number] = ResourceColumn::default();
            }
        }
    }

    /// Gives a left-out resource a column when one is free, and returns its name. The caller then records the nodes
    /// that offer it, with [`Columns::offer`].
    pub(crate) fn admit(&mut self) -> Option<Name> {
        self.table.left_out.first_key_value()?;
        Arc::make_mut(&mut self.table).admit()
    }

    /// Adds a pod's requests on its node to the new columns.
    pub(crate) fn take_new(&mut self, node: NodeIdx, requests: &PodRequests, new: &[ResourceIdx]) {
        for (name, amount) in &requests.list.scalars {
            if let Some(resource) = self.find(name).filter(|r| new.contains(r)) {
                let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
                let to = &mut page.resource_mut(resource).requested[node.index() % PAGE];
                *to = to.wrapping_add((*amount).clamp(-MOST, MOST));
            }
        }
    }

    /// Sets the maximum number of scalar columns, for tests.
    #[cfg(test)]
    pub(crate) fn limit(&mut self, most: usize) {
        Arc::make_mut(&mut self.table).limit(most);
    }

    /// Has the processor fetch what [`take`](Self::take) changes of a node. For a pod that requests scalar resources these are the first
    /// [`PREFETCHED`] of their columns, whichever it requests: to find out which would take longer.
    pub(crate) fn prefetch(&self, node: NodeIdx, requests: &PodRequests) {
        let (page, at) = (&self.pages[node.index() / PAGE], node.index() % PAGE);
        let n_scalars = if requests.list.scalars.is_empty() { 0 } else { PREFETCHED };
        let columns = page.fixed.iter().chain(page.scalars.iter().take(n_scalars));
        columns.for_each(|column| prefetch_index(&column.requested[..], at));
        prefetch_index(&page.non_zero_cpu[..], at);
        prefetch_index(&page.non_zero_memory[..], at);
    }

    /// Adds (`sign` 1) or subtracts (`sign` -1) a pod's requests.
    pub(crate) fn take(&mut self, node: NodeIdx, requests: &PodRequests, sign: i64) {
        let page = Arc::make_mut(&mut self.pages[node.index() / PAGE]);
        let at = node.index() % PAGE;
        let add = |to: &mut i64, amount: i64| *to = to.wrapping_add(sign * amount.clamp(-MOST, MOST));
        add(&mut page.fixed[0].requested[at], requests.list.milli_cpu);
        add(&mut page.fixed[1].requested[at], requests.list.memory);
        add(&mut page.fixed[2].requested[at], requests.list.ephemeral_storage);
        add(&mut page.fixed[3].requested[at], 1 - requests.list.pods.clamp(0, 1));
        add(&mut page.non_zero_cpu[at], requests.non_zero_milli_cpu);
        add(&mut page.non_zero_memory[at], requests.non_zero_memory);
        for (name, amount) in &requests.list.scalars {
            if let Some(number) = self.table.find(name) {
                add(&mut page.resource_mut(scalar(number)).requested[at], *amount);
            }
        }
    }
}

#[cfg(test)]
mod tests;
