//! `/apis/v1/summary/pending`: pending pods in rows, by what keeps them pending, by controller, by shape.
//!
//! Invariant: the rows add up to the pods that `pending` lists, of which each is in one row.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::time::Duration;

use pellucid_api::reason::ReasonCode;
use pellucid_api::rest::pending::{PendingRow, PendingSummary};
use pellucid_cluster::{PodRecord, ShapeId};
use pellucid_cycle::Snapshot;
use pellucid_framework::advice::Grouping;
use pellucid_framework::endpoint::ReadError;
use pellucid_framework::list::{Facts, List};
use pellucid_model::collections::{FxHashMap, FxHashSet};
use pellucid_model::{GangKey, Name, Now, PodSpec, Viewer};
use pellucid_queue::UnitId;
use pellucid_recording::rfc3339;

use super::pending::{Waiting, waiting};
use crate::facts::{facts_of, groups_of, requests};
use crate::meta::of_snapshot;
use crate::owner::owner;
use crate::verdict::verdicts;

/// Makes the list of dimensions, and the description of the parameter that takes them.
macro_rules! dimensions {
    ($($name:literal),+ $(,)?) => {
        /// What the rows of a summary can be split by.
        pub const DIMENSIONS: &[&str] = &[$($name),+];
        /// Describes the parameter `by`.
        pub(crate) const BY: &str = concat!(
            "Dimensions with commas, `code` without:",
            $(" ", $name, ",",)+
            " which is the controller, and the shape for pods without one; also what plugins group pods by, each \
             under the name by which lists are filtered"
        );
    };
}

dimensions! {
    "code", "plugin", "resource", "resolver", "namespace", "profile", "stage", "gang", "priority", "owner", "shape",
    "ownerOrShape",
}

/// The dimension by controller, and by shape for pods without one: what is made alike is one row.
const OWNER_OR_SHAPE: &str = "ownerOrShape";

/// What pods of one row have in common: the dimensions that were asked for. Two shapes that request the same are two rows.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Common<'r> {
    code: Option<&'r str>,
    plugin: Option<&'r str>,
    resource: Option<&'r str>,
    resolver: Option<&'r str>,
    namespace: Option<&'r str>,
    profile: Option<&'r str>,
    stage: Option<&'r str>,
    gang: Option<Option<&'r GangKey>>,
    priority: Option<i32>,
    /// `Kind/name`, empty for a pod without a controller.
    owner: Option<String>,
    /// `None` within for a pod that cannot be read.
    shape: Option<Option<ShapeId>>,
    /// Groups that plugins know, in the order in which they were asked for; empty for a pod of none.
    groups: Vec<(&'r str, Name)>,
}

impl<'r> Common<'r> {
    fn of(pod: &Waiting<'r>, snapshot: &Snapshot, by: &[&'r str]) -> Self {
        let is_asked = |name: &str| by.contains(&name);
        let is_kin = is_asked(OWNER_OR_SHAPE);
        let text = |name: &str, value: &'r str| is_asked(name).then_some(value);
        // Subjects of other reasons are texts and lists of unbounded size.
        let resource = if pod.code == ReasonCode::InsufficientResource { pod.subject } else { "" };
        let object = pod.record.map(|record| &record.pod);
        let controller = || {
            let of = object.and_then(|pod| owner(&snapshot.cluster, pod));
            of.map(|one| format!("{}/{}", one.kind, one.name)).unwrap_or_default()
        };
        let owner = (is_asked("owner") || is_kin).then(controller);
        let is_split = is_asked("shape") || is_kin && owner.as_ref().is_some_and(String::is_empty);
        Self {
            code: text("code", pod.code.as_str()),
            plugin: text("plugin", pod.plugin),
            resource: text("resource", resource),
            resolver: text("resolver", pod.resolver.as_str()),
            namespace: text("namespace", pod.key.0),
            profile: text("profile", pod.profile),
            stage: text("stage", pod.stage),
            gang: is_asked("gang").then(|| object.and_then(|pod| pod.member_of())),
            priority: is_asked("priority").then(|| pod.priority()),
            owner,
            shape: is_split.then(|| pod.record.map(|record| record.shape)),
            groups: groups(pod, snapshot, by),
        }
    }

    /// Returns the row without counts. `record` is one of its pods that can be read.
    fn row(&self, record: Option<&PodRecord>) -> PendingRow {
        let text = |value: Option<&str>| value.map(str::to_owned);
        PendingRow {
            code: text(self.code),
            plugin: text(self.plugin),
            resource: text(self.resource),
            resolver: text(self.resolver),
            namespace: text(self.namespace),
            profile: text(self.profile),
            stage: text(self.stage),
            gang: self.gang.map(|gang| gang.map(ToString::to_string).unwrap_or_default()),
            priority: self.priority,
            owner: self.owner.clone(),
            shape: self.shape.map(|_| record.map(|record| shape(&record.pod.spec)).unwrap_or_default()),
            groups: self.groups.iter().map(|(name, group)| ((*name).to_owned(), group.to_string())).collect(),
            ..PendingRow::default()
        }
    }
}

/// Returns the groups of a pod that are asked for.
fn groups<'r>(pod: &Waiting<'r>, snapshot: &Snapshot, by: &[&'r str]) -> Vec<(&'r str, Name)> {
    let asked: Vec<&'r str> = by.iter().copied().filter(|name| !DIMENSIONS.contains(name)).collect();
    if asked.is_empty() {
        return Vec::new();
    }
    let known = pod.record.map(|record| groups_of(snapshot, record)).unwrap_or_default();
    let group = |name: &str| known.iter().find(|(of, _)| *of == name).map(|(_, group)| group.clone());
    asked.into_iter().map(|name| (name, group(name).unwrap_or_default())).collect()
}

/// What is counted of the pods of a row.
#[derive(Default)]
struct Counted<'r> {
    units: FxHashSet<UnitId>,
    oldest: Option<i64>,
    /// Namespace and name of the first pod by name, of those that the reader sees if there are any; before them whether
    /// it is none of those.
    example: Option<(bool, (&'r str, &'r str))>,
    shapes: FxHashMap<ShapeId, &'r PodRecord>,
    codes: Texts<'static>,
    outlooks: Texts<'r>,
    row: PendingRow,
}

impl<'r> Waiting<'r> {
    fn priority(&self) -> i32 {
        self.record.map_or(0, |record| record.pod.priority)
    }

    fn facts(&self, snapshot: &'r Snapshot) -> Facts<'r> {
        let of_pod = self.record.map(|record| facts_of(snapshot, record)).unwrap_or_default();
        let (namespace, name) = self.key;
        Facts { namespace, name, reasons: vec![self.code.as_str().into()], stage: self.stage, ..of_pod }
    }
}

impl<'r> Counted<'r> {
    fn add(&mut self, pod: &Waiting<'r>, viewer: &Viewer) {
        let row = &mut self.row;
        let is_first = row.pods == 0;
        let priority = pod.priority();
        row.min_priority = if is_first { priority } else { row.min_priority.min(priority) };
        row.max_priority = if is_first { priority } else { row.max_priority.max(priority) };
        let example = (!viewer.sees(pod.key.0), pod.key);
        self.example = Some(self.example.map_or(example, |first| first.min(example)));
        row.pods += 1;
        // A pod without a unit counts as a unit of its own, and one without a gang is one.
        let gang = pod.unit.filter(|_| pod.record.is_some_and(|record| record.pod.member_of().is_some()));
        row.units += usize::from(gang.is_none_or(|unit| self.units.insert(unit)));
        row.nodes = row.nodes.max(pod.nodes);
        row.occurrences += pod.nodes;
        self.codes.add(pod.code.as_str());
        self.outlooks.add(pod.outlook);
        if let Some(record) = pod.record {
            self.oldest =
                Some(self.oldest.map_or(record.pod.created, |oldest| oldest.min(record.pod.created)));
            self.shapes.entry(record.shape).or_insert(record);
        }
    }

    /// Returns whether the reader sees none of the pods, so that the names of the row are hidden.
    fn is_hidden(&self) -> bool {
        self.example.is_some_and(|(is_hidden, _)| is_hidden)
    }

    /// Returns the row with its counts, and what it is sorted by beside them.
    fn finish(self) -> Finished {
        let is_hidden = self.is_hidden();
        let all: BTreeSet<_> = self.shapes.values().map(|r| requests(&r.pod.spec.requests.list)).collect();
        let oldest = self.oldest.map(|at| Duration::from_secs(u64::try_from(at).unwrap_or(0)));
        let row = PendingRow {
            oldest: oldest.map(rfc3339).unwrap_or_default(),
            example: self
                .example
                .map(|(_, (namespace, name))| format!("{namespace}/{name}"))
                .unwrap_or_default(),
            requests: if all.len() == 1 { all.into_iter().next() } else { None },
            key_reason: self.codes.most().to_owned(),
            outlook: self.outlooks.most().to_owned(),
            ..self.row
        };
        Finished { row, oldest, is_hidden }
    }
}

/// A row with its counts.
struct Finished {
    row: PendingRow,
    /// When its oldest pod was created, since 1970.
    oldest: Option<Duration>,
    /// Whether the reader sees no pod of it.
    is_hidden: bool,
}

/// Counts of a few texts.
#[derive(Default)]
struct Texts<'t>(Vec<(&'t str, usize)>);

impl<'t> Texts<'t> {
    fn add(&mut self, text: &'t str) {
        // Most are the very same text.
        let is_it = |known: &str| std::ptr::eq(known, text) || known == text;
        match self.0.iter_mut().find(|(known, _)| is_it(known)) {
            Some((_, n)) => *n += 1,
            None => self.0.push((text, 1)),
        }
    }

    /// Returns the text that was counted most, the first of equals by the alphabet.
    fn most(&self) -> &'t str {
        self.0.iter().max_by_key(|(text, n)| (*n, Reverse(*text))).map_or("", |(text, _)| text)
    }
}

/// Returns the requests of a shape in one text, by resource name.
fn shape(spec: &PodSpec) -> String {
    let each = requests(&spec.requests.list).into_iter().map(|(name, amount)| format!("{name}={amount}"));
    each.collect::<Vec<_>>().join(",")
}

/// Counts pending pods by a comma-separated list of dimensions, by default `code`. Filters are on pods; the order and the
/// page are of rows; rows whose names the viewer does not see are sorted as if they had none. Fails for an unknown dimension.
pub(crate) fn summary(
    snapshot: &Snapshot,
    by: Option<&str>,
    viewer: &Viewer,
    list: &List,
    now: Now,
) -> Result<PendingSummary, ReadError> {
    let mut by = dimensions(snapshot, by.unwrap_or("code"))?;
    // Controllers in two namespaces may have one name.
    if (by.contains(&"owner") || by.contains(&OWNER_OR_SHAPE)) && !by.contains(&"namespace") {
        by.push("namespace");
    }
    let verdicts = verdicts(snapshot, now);
    let pods = list.filtered(waiting(snapshot, &verdicts), |pod| pod.facts(snapshot));
    let total_pending = pods.len();
    let mut rows: Vec<_> = counted(snapshot, &pods, &by, viewer).into_iter().map(Counted::finish).collect();
    rows.sort_by_key(|finished| Reverse(finished.row.pods));
    let groupings: Vec<Grouping> = snapshot.registry.iter().filter_map(|factory| factory.groups()).collect();
    let sorted = list.sorted(rows.iter().collect(), |finished| facts_of_row(finished, &groupings));
    let page = list.cut(sorted);
    let by = by.into_iter().map(str::to_owned).collect();
    let mut meta = page.meta(of_snapshot(snapshot, now));
    meta.truncated = verdicts.truncated;
    Ok(PendingSummary {
        meta,
        by,
        count: page.total,
        total_pending,
        rows: page.items.into_iter().map(|finished| finished.row.clone()).collect(),
    })
}

/// Counts pods by their dimensions. The rows are in the order of those, and of two shapes with equal requests in that of
/// their numbers; behind them those whose names the viewer does not see, in the order of what is left of them.
fn counted<'r>(
    snapshot: &Snapshot,
    pods: &[Waiting<'r>],
    by: &[&'r str],
    viewer: &Viewer,
) -> Vec<Counted<'r>> {
    let mut groups: FxHashMap<Common<'r>, (PendingRow, Counted<'r>)> = FxHashMap::default();
    for pod in pods {
        let common = Common::of(pod, snapshot, by);
        let made = |common: &Common<'r>| {
            let row = common.row(pod.record);
            (row.clone(), Counted { row, ..Counted::default() })
        };
        groups.entry(common).or_insert_with_key(made).1.add(pod, viewer);
    }
    let hasher = *groups.hasher();
    let key = |of: Common<'_>, row: PendingRow, is_hidden| match is_hidden {
        // Of rows that look the same an order by their names would tell them.
        true => (true, nameless(&row), of.shape, hasher.hash_one(&of)),
        false => (false, row, of.shape, 0),
    };
    let all = groups.into_iter().map(|(of, (row, counted))| (key(of, row, counted.is_hidden()), counted));
    let mut all: Vec<_> = all.collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.into_iter().map(|(_, counted)| counted).collect()
}

/// Returns a row without counts, and without the dimensions that are names of objects with a namespace.
fn nameless(row: &PendingRow) -> PendingRow {
    PendingRow { namespace: None, gang: None, owner: None, groups: BTreeMap::new(), ..row.clone() }
}

/// Returns what rows are sorted by: the age of the oldest pod, the greatest priority, the name of the first pod.
fn facts_of_row<'r>(finished: &'r Finished, groupings: &[Grouping]) -> Facts<'r> {
    let Finished { row, oldest, is_hidden } = finished;
    let facts = Facts {
        reasons: vec![row.key_reason.as_str().into()],
        stage: row.stage.as_deref().unwrap_or_default(),
        created: *oldest,
        priority: Some(row.max_priority),
        ..Facts::default()
    };
    if *is_hidden {
        return facts;
    }
    let group = |of: &Grouping| Some((of.name, Name::new(row.groups.get(of.name)?)));
    let (namespace, name) = row.example.split_once('/').unwrap_or_default();
    let owner = row.owner.as_deref().and_then(|owner| owner.split_once('/'));
    Facts {
        namespace,
        name,
        owner: owner.map(|(kind, name)| (kind.to_owned(), name.to_owned())),
        gangs: row.gang.as_deref().and_then(|gang| gang.split_once('/')).into_iter().collect(),
        groups: groupings.iter().filter_map(group).collect(),
        ..facts
    }
}

fn dimensions<'b>(snapshot: &Snapshot, by: &'b str) -> Result<Vec<&'b str>, ReadError> {
    let groupings = snapshot.registry.iter().filter_map(|factory| factory.groups());
    let known: Vec<&str> =
        DIMENSIONS.iter().copied().chain(groupings.map(|grouping| grouping.name)).collect();
    let bad = |problem: String| {
        let message = format!("parameter `by` {problem}; known: {}", known.join(", "));
        ReadError::BadRequest { code: "UnknownDimension", message }
    };
    let mut all = Vec::new();
    for name in by.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !known.contains(&name) {
            let shown: String = name.chars().take(100).collect();
            return Err(bad(format!("names the dimension `{shown}`, which is not known")));
        }
        if !all.contains(&name) {
            all.push(name);
        }
    }
    if all.is_empty() {
        return Err(bad(format!("has the value `{by}`: it names no dimension")));
    }
    Ok(all)
}
