//! The endpoints: quotas in Koordinator's form, and the state of all.

use std::collections::BTreeMap;

use pellucid_api::keys::elastic_quota as keys;
use pellucid_api::rest::BodySchema;
use pellucid_api::rest::elastic_quota::{
    PodQuota, QuotaExplanation, QuotaPod, QuotaRow, QuotaState, QuotaSummary,
};
use pellucid_framework::advice::PodRead;
use pellucid_framework::endpoint::{Endpoint, Query, QueryKind, ReadContext, ReadError};
use pellucid_model::Name;
use pellucid_model::quantity::format_amount;
use serde_json::{Value, json};

use super::quota::Amounts;
use super::quotas::Quotas;
use super::rules::Known;
use super::tree::{Cell, QuotaIdx, ROOT, Role, Sums, clamp};
use pellucid_plugin_helper::listing::{MAX_ROWS, cut};

/// Quantities by resource name.
type Quantities = BTreeMap<String, String>;

const INCLUDE_PODS: Query = Query::new("includePods", QueryKind::Boolean, "Adds the pods of each quota");
const INCLUDE_ROOT: Query = Query::new(
    "includeRoot",
    QueryKind::Boolean,
    "Adds the root of the default tree, which has what there is",
);
const TREE: Query =
    Query::new("tree", QueryKind::Text, "Only quotas of this tree; absent or empty: of all trees");

/// The read about a pod.
pub(super) const POD_READ: PodRead = PodRead {
    path: "quota",
    summary: "Where a pod stands with its quota and the quotas above it, and which of them refuses it by how much",
    body: BodySchema::of::<PodQuota>(),
    rows: "/path",
};

pub(super) fn all() -> Vec<Endpoint> {
    let one = "What a quota may use, and what its pods request and use";
    vec![
        Endpoint::of::<QuotaState>("state", "All quotas in short, and what is wrong with them", read_state)
            .with_rows("rows"),
        Endpoint::new(
            "quotas",
            "All quotas but roots, by name",
            BodySchema::map_of::<QuotaSummary>(),
            read_all,
        )
        .with_query(&[TREE, INCLUDE_PODS, INCLUDE_ROOT]),
        Endpoint::of::<QuotaSummary>("quotas/:name", one, |cx| read_one(cx, includes(cx, "includePods")))
            .with_query(&[INCLUDE_PODS]),
        Endpoint::of::<QuotaSummary>(
            "quota/:name",
            "As `quotas/:name`, with pods: Koordinator 0.7's path",
            |cx| read_one(cx, true),
        ),
        Endpoint::of::<QuotaExplanation>(
            "quotas/:name",
            "How a quota's runtime comes about: rounds, loans, what limits it, and who would be evicted",
            super::explain::read,
        )
        .explaining(),
    ]
}

fn includes(cx: &ReadContext<'_>, what: &str) -> bool {
    cx.params.get(what).is_some_and(|text| text.as_str() == "true" || text.is_empty())
}

impl Quotas {
    /// Finds the quota that a path names.
    pub(super) fn named(&self, name: &str) -> Option<QuotaIdx> {
        self.tree.find(&Name::new(name))
    }

    pub(super) fn quantities(&self, amounts: impl IntoIterator<Item = (usize, i64)>) -> Quantities {
        let named = |(r, amount): (usize, i64)| {
            let name = &self.tree.resources[r];
            (name.to_string(), format_amount(name, amount))
        };
        amounts.into_iter().map(named).collect()
    }

    /// Returns the amounts of all resources that are not 0.
    fn nonzero(&self, at: QuotaIdx, of: impl Fn(&Cell) -> i128) -> Quantities {
        let cells = self.tree.get(at).cells.iter().enumerate();
        self.quantities(cells.map(|(r, cell)| (r, clamp(of(cell)))).filter(|(_, amount)| *amount != 0))
    }

    pub(super) fn parent_name(&self, at: QuotaIdx) -> String {
        let parent = self.tree.get(at).parent.map(|parent| self.tree.get(parent).name.to_string());
        parent.unwrap_or_else(|| keys::ROOT_QUOTA[0].to_owned())
    }

    fn summary(
        &self,
        known: &Known<'_>,
        at: QuotaIdx,
        pods: Option<BTreeMap<String, QuotaPod>>,
    ) -> QuotaSummary {
        let quota = self.tree.get(at);
        let of = |amounts: &Amounts| {
            amounts
                .iter()
                .map(|(name, n)| (name.to_string(), format_amount(name, *n)))
                .collect::<Quantities>()
        };
        let object = quota.object.as_deref();
        let lends = self.tree.lends(quota);
        let cells = || quota.cells.iter().enumerate();
        let max = || self.quantities(cells().filter_map(|(r, cell)| Some((r, cell.max?))));
        let sums =
            |of: fn(&Sums) -> i128| (self.nonzero(at, |c| of(&c.all)), self.nonzero(at, |c| of(&c.own)));
        let (used, self_used) = sums(|s| s.used);
        let (non_preemptible_used, self_non_preemptible_used) = sums(|s| s.fixed_used);
        let (non_preemptible_request, self_non_preemptible_request) = sums(|s| s.fixed_request);
        let (child_request, self_request) = sums(|s| s.request);
        let guarantees = self.args.guarantees_usage;
        // A quota without any min has nothing to scale.
        let has_min = object.is_some_and(|object| !object.min.is_empty());
        let scaled = cells().filter(|(_, cell)| cell.min.is_some() || (cell.is_scaled && has_min));
        let is_ordinary = quota.role == Role::Ordinary;
        let parent = quota.parent.filter(|_| is_ordinary);
        let runtime =
            parent.map(|parent| self.tree.shared_resources(parent).map(|r| (r, quota.cells[r].runtime)));
        let problems = object.map(|object| self.problems_of(known, object)).unwrap_or_default();
        QuotaSummary {
            name: quota.name.to_string(),
            namespace: object.map(|object| object.namespace.to_string()),
            parent_name: self.parent_name(at),
            is_parent: object.is_some_and(|object| object.is_parent),
            allow_lent_resource: quota.lends,
            runtime_version: self.tree.version(at),
            tree: quota.tree.to_string(),
            max: object.filter(|_| is_ordinary).map_or_else(max, |object| of(&object.max)),
            min: object.map(|object| of(&object.min)).unwrap_or_default(),
            auto_scale_min: self.quantities(scaled.filter(|_| is_ordinary).map(|(r, c)| (r, c.scaled_min))),
            used,
            non_preemptible_used,
            request: self.nonzero(at, |cell| i128::from(cell.request(lends))),
            non_preemptible_request,
            shared_weight: object.filter(|_| is_ordinary).map_or_else(max, |object| of(object.weight())),
            runtime: match quota.role {
                Role::Root => self.nonzero(at, |cell| cell.runtime.into()),
                _ => runtime.map(|all| self.quantities(all)).unwrap_or_default(),
            },
            child_request,
            allocated: if guarantees { self.nonzero(at, |cell| cell.allocated) } else { Quantities::new() },
            guaranteed: match guarantees {
                true => self.nonzero(at, |cell| i128::from(cell.guaranteed())),
                false => Quantities::new(),
            },
            self_used,
            self_non_preemptible_used,
            self_request,
            self_non_preemptible_request,
            pod_cache: pods,
            problems,
        }
    }

    /// Returns the pods of each quota.
    fn pods_by_quota(&self) -> BTreeMap<QuotaIdx, BTreeMap<String, QuotaPod>> {
        let mut all: BTreeMap<QuotaIdx, BTreeMap<String, QuotaPod>> = BTreeMap::new();
        for counted in self.pods.iter().flatten() {
            let Some(charge) = counted.requested.as_ref().or(counted.used()) else { continue };
            let named = charge.list().named();
            let resource =
                named.map(|(name, amount)| (name.to_string(), format_amount(&name, amount))).collect();
            let pod = QuotaPod { is_assigned: counted.used().is_some(), resource };
            all.entry(charge.quota).or_default().insert(counted.key.to_string(), pod);
        }
        all
    }
}

pub(super) fn state<'a>(cx: &ReadContext<'a>) -> Result<&'a Quotas, ReadError> {
    cx.view.state::<Quotas>().ok_or_else(|| ReadError::NotFound {
        code: "PluginNotEnabled",
        message: "no profile enables ElasticQuota".to_owned(),
    })
}

fn read_one(cx: &ReadContext<'_>, with_pods: bool) -> Result<Value, ReadError> {
    let quotas = state(cx)?;
    let name = cx.params.get("name").map_or("", String::as_str);
    let at = quotas.named(name).ok_or_else(|| not_found(name))?;
    let pods = with_pods.then(|| quotas.pods_by_quota().remove(&at).unwrap_or_default());
    Ok(json!(quotas.summary(&quotas.known(), at, pods)))
}

pub(super) fn not_found(name: &str) -> ReadError {
    ReadError::NotFound { code: "QuotaNotFound", message: format!("cannot find quota {name}") }
}

fn read_all(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let Some(quotas) = cx.view.state::<Quotas>() else { return Ok(json!({})) };
    let tree = cx.params.get("tree").map_or("", String::as_str);
    let mut pods = includes(cx, "includePods").then(|| quotas.pods_by_quota());
    let (known, mut all) = (quotas.known(), BTreeMap::new());
    let root = includes(cx, "includeRoot").then_some(ROOT);
    for (at, quota) in quotas.tree.quotas.iter().enumerate() {
        if quota.role == Role::Root && root != Some(at) || !(tree.is_empty() || &*quota.tree == tree) {
            continue;
        }
        let own = pods.as_mut().map(|pods| pods.remove(&at).unwrap_or_default());
        all.insert(quota.name.to_string(), quotas.summary(&known, at, own));
    }
    Ok(json!(all))
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let Some(quotas) = cx.view.state::<Quotas>() else { return Ok(json!(QuotaState::default())) };
    let tree = &quotas.tree;
    let mut ordered: Vec<QuotaIdx> =
        (0..tree.quotas.len()).filter(|at| tree.get(*at).role != Role::Root).collect();
    ordered.sort_by(|a, b| {
        let key = |at: &QuotaIdx| (tree.get(*at).tree.clone(), tree.get(*at).name.clone());
        key(a).cmp(&key(b))
    });
    let rows = ordered.iter().flat_map(|at| (0..tree.resources.len()).filter_map(|r| row(quotas, *at, r)));
    let (rows, truncated) = cut(rows.collect(), MAX_ROWS);
    let total = |r: usize| (r, clamp(tree.total(ROOT, r, &quotas.totals)));
    let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
    let counted = || quotas.pods.iter().flatten();
    for charge in counted().filter_map(|counted| counted.requested.as_ref()) {
        if let Some(name) = quotas.unknown_quota(&charge.spec) {
            *unknown.entry(name.to_string()).or_default() += 1;
        }
    }
    Ok(json!(QuotaState {
        quotas: tree.quotas.iter().filter(|quota| quota.role == Role::Ordinary).count(),
        pods: counted().count(),
        total: quotas.quantities((0..tree.resources.len()).map(total).filter(|(_, amount)| *amount != 0)),
        rows,
        problems: quotas.problems(),
        unknown_quotas: unknown,
        truncated,
    }))
}

fn row(quotas: &Quotas, at: QuotaIdx, r: usize) -> Option<QuotaRow> {
    let (quota, resource) = (quotas.tree.get(at), &quotas.tree.resources[r]);
    let cell = &quota.cells[r];
    let max = cell.max?;
    let text = |amount: i64| format_amount(resource, amount);
    Some(QuotaRow {
        quota: quota.name.to_string(),
        parent: quotas.parent_name(at),
        resource: resource.to_string(),
        min: text(cell.floor()),
        max: text(max),
        request: text(cell.request(quotas.tree.lends(quota))),
        runtime: text(if quota.role == Role::Ordinary { cell.runtime } else { max }),
        used: text(clamp(cell.all.used)),
        borrowed: text(if quota.role == Role::Ordinary {
            (cell.runtime - cell.scaled_min).max(0)
        } else {
            0
        }),
    })
}
