//! The file as written: which fields there are, their types and bounds. Defaults and merging come after.

use super::reader::{Cursor, Found, Place, shown};
use super::tree::{Kind, Tree};

/// The one version that is read.
pub(super) const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
/// The one kind that is read.
pub(super) const KIND: &str = "KubeSchedulerConfiguration";

/// A year: beyond it a wait is a mistake, and times stay far from overflow.
const LONGEST_BACKOFF: i64 = 365 * 24 * 3600;

/// Fields of the document.
const TOP: &[&str] = &[
    "apiVersion",
    "kind",
    "parallelism",
    "leaderElection",
    "clientConnection",
    "healthzBindAddress",
    "metricsBindAddress",
    "enableProfiling",
    "enableContentionProfiling",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "profiles",
    "extenders",
    "delayCacheUntilActive",
];
const LEADER_ELECTION: &[&str] = &[
    "leaderElect",
    "leaseDuration",
    "renewDeadline",
    "retryPeriod",
    "resourceLock",
    "resourceName",
    "resourceNamespace",
];
const CLIENT: &[&str] = &["kubeconfig", "acceptContentTypes", "contentType", "qps", "burst"];

/// The extension points a plugin set can name, in the order of the documentation, multiPoint last.
pub(super) const POINTS: [&str; 15] = [
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
    "placementGenerate",
    "placementScore",
    MULTI_POINT,
];
/// Stands for every point a plugin works at.
pub(super) const MULTI_POINT: &str = "multiPoint";

/// What a file says; `None` where it says nothing.
#[derive(Default)]
pub(super) struct File<'a> {
    pub parallelism: Option<i64>,
    pub leader_election: Vec<(String, serde_json::Value)>,
    pub kubeconfig: Option<String>,
    pub qps: Option<f64>,
    pub burst: Option<i64>,
    pub enable_profiling: Option<bool>,
    pub enable_contention_profiling: Option<bool>,
    pub delay_cache_until_active: Option<bool>,
    pub percentage_of_nodes_to_score: Option<i64>,
    pub initial_backoff: Option<i64>,
    pub max_backoff: Option<i64>,
    pub profiles: Vec<FileProfile<'a>>,
}

/// One entry of `profiles`.
#[derive(Default)]
pub(super) struct FileProfile<'a> {
    pub at: Place,
    pub scheduler_name: Option<String>,
    pub percentage_of_nodes_to_score: Option<i64>,
    /// By index of [`POINTS`].
    pub points: [PluginSet; POINTS.len()],
    pub args: Vec<FileArgs<'a>>,
}

impl FileProfile<'_> {
    /// Returns what the file says for a point.
    pub(super) fn set(&self, point: &str) -> &PluginSet {
        let index = POINTS.iter().position(|name| *name == point);
        &self.points[index.expect("only names of POINTS are asked for")]
    }
}

/// What is enabled and disabled at a point.
#[derive(Clone, Debug, Default)]
pub(super) struct PluginSet {
    pub enabled: Vec<Entry>,
    pub disabled: Vec<Entry>,
}

impl PluginSet {
    /// Says whether a plugin is disabled by name or by `*`.
    pub(super) fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|entry| entry.name == name || entry.name == "*")
    }
}

/// A plugin in a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: String,
    pub weight: Option<i64>,
    pub at: Place,
}

/// One entry of `pluginConfig`.
pub(super) struct FileArgs<'a> {
    pub at: Place,
    pub name: String,
    pub args: Option<Cursor<'a>>,
}

/// Says whether the document is of the kind and version that is read. Of any other nothing more is said:
/// its fields mean something else.
pub(super) fn is_read(tree: &Tree, found: &mut Found) -> bool {
    let before = found.0.len();
    let Kind::Map(fields) = &tree.kind else {
        found.add(&Place::default(), format!("must be a {KIND} object, got {}", shown(tree)));
        return false;
    };
    for (field, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        let at = Place::default().below(field);
        match fields.iter().find(|(name, _)| name == field) {
            None => found.add(&at, format!("must be {wanted}, but is missing")),
            Some((_, given)) if given.kind != Kind::Scalar(wanted.into()) => {
                let message = format!("this version reads only {wanted}, got {}", shown(given));
                found.add(&Place { line: Some(given.line), ..at }, message);
            }
            Some(_) => {}
        }
    }
    found.0.len() == before
}

impl<'a> File<'a> {
    /// Reads a document.
    pub(super) fn read(tree: &'a Tree, found: &mut Found) -> Self {
        let top = Cursor::top(tree).object(TOP, found);
        let mut file = Self {
            parallelism: top.get("parallelism").and_then(|c| c.integer(1..=i64::from(i32::MAX), found)),
            percentage_of_nodes_to_score: percentage(top.get("percentageOfNodesToScore"), found),
            initial_backoff: top
                .get("podInitialBackoffSeconds")
                .and_then(|c| c.integer(1..=LONGEST_BACKOFF, found)),
            max_backoff: top.get("podMaxBackoffSeconds").and_then(|c| c.integer(1..=LONGEST_BACKOFF, found)),
            enable_profiling: top.get("enableProfiling").and_then(|c| c.boolean(found)),
            enable_contention_profiling: top.get("enableContentionProfiling").and_then(|c| c.boolean(found)),
            delay_cache_until_active: top.get("delayCacheUntilActive").and_then(|c| c.boolean(found)),
            ..Self::default()
        };
        for field in ["healthzBindAddress", "metricsBindAddress"] {
            top.get(field).and_then(|c| c.string(found));
        }
        if let Some(cursor) = top.get("leaderElection") {
            file.leader_election = leader_election(cursor, found);
        }
        if let Some(cursor) = top.get("clientConnection") {
            file.read_client(cursor, found);
        }
        if let Some(cursor) = top.get("extenders")
            && !cursor.list(found).is_empty()
        {
            found.add(
                &cursor.at,
                "scheduler extenders are not called by this scheduler; without them decisions would differ \
                 from what the file asks for, so it is refused",
            );
        }
        if let Some(cursor) = top.get("profiles") {
            file.profiles = cursor.list(found).iter().map(|c| FileProfile::read(c, found)).collect();
        }
        file
    }

    fn read_client(&mut self, cursor: &Cursor<'a>, found: &mut Found) {
        let fields = cursor.object(CLIENT, found);
        for field in ["acceptContentTypes", "contentType"] {
            fields.get(field).and_then(|c| c.string(found));
        }
        let kubeconfig = fields.get("kubeconfig").and_then(|c| c.string(found));
        self.kubeconfig = kubeconfig.filter(|path| !path.is_empty()).map(str::to_owned);
        self.qps = fields.get("qps").and_then(|c| c.positive(found));
        self.burst = fields.get("burst").and_then(|c| c.integer(1..=i64::from(i32::MAX), found));
    }
}

impl<'a> FileProfile<'a> {
    fn read(cursor: &Cursor<'a>, found: &mut Found) -> Self {
        const FIELDS: &[&str] = &["schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"];
        let fields = cursor.object(FIELDS, found);
        let mut profile = Self { at: cursor.at.clone(), ..Self::default() };
        profile.scheduler_name = fields.get("schedulerName").and_then(|c| c.name(found)).map(str::to_owned);
        profile.percentage_of_nodes_to_score = percentage(fields.get("percentageOfNodesToScore"), found);
        if let Some(plugins) = fields.get("plugins") {
            let sets = plugins.object(&POINTS, found);
            for (set, name) in profile.points.iter_mut().zip(POINTS) {
                if let Some(cursor) = sets.get(name) {
                    *set = PluginSet::read(cursor, found);
                }
            }
        }
        if let Some(list) = fields.get("pluginConfig") {
            profile.args = list.list(found).iter().filter_map(|c| FileArgs::read(c, found)).collect();
        }
        profile
    }
}

impl PluginSet {
    fn read(cursor: &Cursor<'_>, found: &mut Found) -> Self {
        let fields = cursor.object(&["enabled", "disabled"], found);
        let mut entries = |field| {
            let list = fields.get(field).map(|c| c.list(found)).unwrap_or_default();
            list.iter().filter_map(|c| Entry::read(c, found)).collect()
        };
        Self { enabled: entries("enabled"), disabled: entries("disabled") }
    }
}

impl Entry {
    fn read(cursor: &Cursor<'_>, found: &mut Found) -> Option<Self> {
        let fields = cursor.object(&["name", "weight"], found);
        let weight = fields.get("weight").and_then(|c| c.integer(0..=i64::from(i32::MAX), found));
        let Some(name) = fields.get("name") else {
            found.add(&cursor.at.below("name"), "a plugin needs a name");
            return None;
        };
        Some(Self { name: name.name(found)?.to_owned(), weight, at: name.at.clone() })
    }
}

impl<'a> FileArgs<'a> {
    fn read(cursor: &Cursor<'a>, found: &mut Found) -> Option<Self> {
        let fields = cursor.object(&["name", "args"], found);
        let Some(name) = fields.get("name") else {
            found.add(&cursor.at.below("name"), "an entry of pluginConfig needs the plugin's name");
            return None;
        };
        let args = fields.get("args").cloned();
        Some(Self { name: name.name(found)?.to_owned(), at: name.at.clone(), args })
    }
}

fn percentage(cursor: Option<&Cursor<'_>>, found: &mut Found) -> Option<i64> {
    cursor.and_then(|c| c.integer(0..=100, found))
}

fn leader_election(cursor: &Cursor<'_>, found: &mut Found) -> Vec<(String, serde_json::Value)> {
    let fields = cursor.object(LEADER_ELECTION, found);
    let mut given = Vec::new();
    for name in LEADER_ELECTION {
        let Some(field) = fields.get(name) else { continue };
        let is_read = match *name {
            "leaderElect" => field.boolean(found).is_some(),
            _ => field.string(found).is_some(),
        };
        if is_read {
            given.push(((*name).to_owned(), field.tree.to_value()));
        }
    }
    given
}
