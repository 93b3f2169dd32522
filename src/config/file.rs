//! The file as written, for all versions: its fields, their types and bounds. Defaults and merging are applied later.

use super::client::ClientConnection;
use super::leader::LeaderElection;
use super::names::our_name;
use super::reader::{Cursor, Diagnostics, Fields, Location, shown};
use super::tree::{Kind, Tree};
use super::version::{Object, Version};

/// The only accepted `kind`.
pub(super) const KIND: &str = "KubeSchedulerConfiguration";

/// Defaults of the first and of the longest backoff, in seconds.
const INITIAL_BACKOFF: i64 = 1;
const MAX_BACKOFF: i64 = 10;
/// One year, in seconds. A longer backoff is a mistake, and the limit keeps times far from overflow.
const LONGEST_BACKOFF: i64 = 365 * 24 * 3600;

/// Key that [`super::Configuration::configz`] adds to the document; ignored when the document is read again.
pub(super) const NOTES: &str = "notes";

/// Fields of the document in any version.
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
    NOTES,
];
/// The extension points that a plugin set can name, in the order of the documentation, `multiPoint` last.
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
/// Stands for every extension point that a plugin implements.
pub(super) const MULTI_POINT: &str = "multiPoint";

/// The contents of a file; `None` for absent fields.
#[derive(Default)]
pub(super) struct File<'a> {
    pub version: Version,
    pub parallelism: Option<i64>,
    pub leader_election: LeaderElection,
    pub client: ClientConnection,
    pub enable_profiling: Option<bool>,
    pub enable_contention_profiling: Option<bool>,
    pub delay_cache_until_active: Option<bool>,
    pub percentage_of_nodes_to_score: Option<i64>,
    initial_backoff: Option<i64>,
    max_backoff: Option<i64>,
    pub profiles: Vec<FileProfile<'a>>,
}

/// One entry of `profiles`.
#[derive(Default)]
pub(super) struct FileProfile<'a> {
    pub at: Location,
    pub scheduler_name: Option<String>,
    pub percentage_of_nodes_to_score: Option<i64>,
    /// Indexed like [`POINTS`].
    pub points: [PluginSet; POINTS.len()],
    pub args: Vec<FileArgs<'a>>,
}

impl FileProfile<'_> {
    /// Returns the plugin set of an extension point. `point` must be one of [`POINTS`].
    pub(super) fn set(&self, point: &str) -> &PluginSet {
        let index = POINTS.iter().position(|name| *name == point);
        &self.points[index.expect("only names of POINTS are asked for")]
    }
}

/// The plugins enabled and disabled at an extension point.
#[derive(Clone, Debug, Default)]
pub(super) struct PluginSet {
    pub enabled: Vec<Entry>,
    pub disabled: Vec<Entry>,
}

impl PluginSet {
    /// Returns whether a plugin is disabled by name or by `*`.
    pub(super) fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|entry| entry.name == name || entry.name == "*")
    }
}

/// An entry of a plugin set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: String,
    pub weight: Option<i64>,
    pub at: Location,
}

/// One entry of `pluginConfig`.
pub(super) struct FileArgs<'a> {
    pub at: Location,
    pub name: String,
    pub args: Option<Cursor<'a>>,
}

/// Returns the version of a document. Reports a problem and returns `None` if `kind` or `apiVersion` is not supported;
/// the other fields are not checked then, because they have another meaning.
pub(super) fn version(tree: &Tree, diagnostics: &mut Diagnostics) -> Option<Version> {
    let Kind::Map(fields) = &tree.kind else {
        diagnostics.add(&Location::default(), format!("must be a {KIND} object, got {}", shown(tree)));
        return None;
    };
    let mut text = |field: &str, wanted: &str, is_read: fn(&str) -> bool| {
        let at = Location::default().below(field);
        let Some((_, given)) = fields.iter().find(|(name, _)| name == field) else {
            diagnostics.add(&at, format!("must be {wanted}, but is missing"));
            return None;
        };
        let read = match &given.kind {
            Kind::Scalar(value) => value.as_str().filter(|text| is_read(text)),
            _ => None,
        };
        if read.is_none() {
            diagnostics
                .add(&Location { line: given.line, ..at }, format!("must be {wanted}, got {}", shown(given)));
        }
        read
    };
    let wanted = format!("{}, or its older v1beta3 or v1beta2", Version::V1.api_version());
    let version = text("apiVersion", &wanted, |text| Version::of(text).is_some());
    let kind = text("kind", KIND, |text| text == KIND);
    kind.and(version).and_then(Version::of)
}

impl<'a> File<'a> {
    /// Reads a document and reports every problem to `diagnostics`.
    pub(super) fn read(tree: &'a Tree, version: Version, diagnostics: &mut Diagnostics) -> Self {
        let top = Cursor::top(tree).object_of(TOP, |field| version.lacks(Object::Top, field), diagnostics);
        if let Some(cursor) = top.get("apiVersion")
            && version != Version::V1
        {
            let (own, newest) = (version.api_version(), Version::V1.api_version());
            diagnostics.note(&cursor.at, format_args!("{own} is deprecated; read and converted to {newest}"));
        }
        let mut file = Self { version, ..Self::default() };
        file.read_limits(&top, diagnostics);
        file.read_switches(&top, diagnostics);
        if let Some(cursor) = top.get("leaderElection") {
            file.leader_election = LeaderElection::read(cursor, diagnostics);
        }
        if let Some(cursor) = top.get("clientConnection") {
            file.client = ClientConnection::read(cursor, diagnostics);
        }
        if let Some(cursor) = top.get("extenders")
            && !cursor.list(diagnostics).is_empty()
        {
            diagnostics.add(
                &cursor.at,
                "scheduler extenders are not called by this scheduler; without them decisions would differ \
                 from what the file asks for, so it is refused",
            );
        }
        if let Some(cursor) = top.get("profiles") {
            file.profiles =
                cursor.list(diagnostics).iter().map(|c| FileProfile::read(c, version, diagnostics)).collect();
        }
        file
    }

    fn read_limits(&mut self, top: &Fields<'a>, diagnostics: &mut Diagnostics) {
        let before = diagnostics.problems.len();
        let mut integer = |name, within| top.get(name).and_then(|c| c.integer(within, diagnostics));
        self.initial_backoff = integer("podInitialBackoffSeconds", 1..=LONGEST_BACKOFF);
        self.max_backoff = integer("podMaxBackoffSeconds", 1..=LONGEST_BACKOFF);
        let are_read = diagnostics.problems.len() == before;
        let (initial, max) = (self.initial_backoff(), self.max_backoff());
        if are_read && max < initial {
            let given = top.get("podMaxBackoffSeconds").or_else(|| top.get("podInitialBackoffSeconds"));
            let at = Location { path: "podMaxBackoffSeconds".into(), line: given.and_then(|c| c.at.line) };
            diagnostics
                .add(&at, format!("must not be less than podInitialBackoffSeconds, {initial}, got {max}"));
        }
        let mut integer = |name, within| top.get(name).and_then(|c| c.integer(within, diagnostics));
        self.parallelism = integer("parallelism", 1..=i64::from(i32::MAX));
        self.percentage_of_nodes_to_score = integer("percentageOfNodesToScore", 0..=100);
        if let Some(cursor) = top.get("parallelism") {
            diagnostics.note(&cursor.at, "accepted and not used: one thread looks at all nodes");
        }
    }

    /// Returns the backoff after the first failed attempt, in seconds.
    pub(super) fn initial_backoff(&self) -> i64 {
        self.initial_backoff.unwrap_or(INITIAL_BACKOFF)
    }

    /// Returns the maximum backoff after a failed attempt, in seconds.
    pub(super) fn max_backoff(&self) -> i64 {
        self.max_backoff.unwrap_or(MAX_BACKOFF)
    }

    /// Reads fields that are accepted without effect.
    fn read_switches(&mut self, top: &Fields<'a>, diagnostics: &mut Diagnostics) {
        let mut boolean = |name| top.get(name).and_then(|c| c.boolean(diagnostics));
        self.enable_profiling = boolean("enableProfiling");
        self.enable_contention_profiling = boolean("enableContentionProfiling");
        self.delay_cache_until_active = boolean("delayCacheUntilActive");
        for name in ["enableProfiling", "enableContentionProfiling"] {
            if let Some(cursor) = top.get(name) {
                diagnostics.note(&cursor.at, "accepted and not used: there are no profiling endpoints");
            }
        }
        if let Some(cursor) = top.get("delayCacheUntilActive") {
            diagnostics.note(&cursor.at, "accepted and not used: a standby keeps its state current");
        }
        for name in ["healthzBindAddress", "metricsBindAddress"] {
            if let Some(cursor) = top.get(name) {
                cursor.string(diagnostics);
                let instead = "accepted and not used: health and metrics are served where --listen says";
                diagnostics.note(&cursor.at, instead);
            }
        }
    }
}

impl<'a> FileProfile<'a> {
    fn read(cursor: &Cursor<'a>, version: Version, diagnostics: &mut Diagnostics) -> Self {
        const FIELDS: &[&str] = &["schedulerName", "percentageOfNodesToScore", "plugins", "pluginConfig"];
        let fields = cursor.object_of(FIELDS, |field| version.lacks(Object::Profile, field), diagnostics);
        let mut profile = Self { at: cursor.at.clone(), ..Self::default() };
        profile.scheduler_name =
            fields.get("schedulerName").and_then(|c| c.name(diagnostics)).map(str::to_owned);
        profile.percentage_of_nodes_to_score =
            fields.get("percentageOfNodesToScore").and_then(|c| c.integer(0..=100, diagnostics));
        if let Some(plugins) = fields.get("plugins") {
            let sets = plugins.object_of(&POINTS, |field| version.lacks(Object::Plugins, field), diagnostics);
            for (set, name) in profile.points.iter_mut().zip(POINTS) {
                if let Some(cursor) = sets.get(name) {
                    *set = PluginSet::read(cursor, diagnostics);
                }
            }
        }
        if let Some(list) = fields.get("pluginConfig") {
            profile.args =
                list.list(diagnostics).iter().filter_map(|c| FileArgs::read(c, diagnostics)).collect();
        }
        profile
    }
}

impl PluginSet {
    fn read(cursor: &Cursor<'_>, diagnostics: &mut Diagnostics) -> Self {
        let fields = cursor.object(&["enabled", "disabled"], diagnostics);
        let mut entries = |field| {
            let list = fields.get(field).map(|c| c.list(diagnostics)).unwrap_or_default();
            list.iter().filter_map(|c| Entry::read(c, diagnostics)).collect()
        };
        Self { enabled: entries("enabled"), disabled: entries("disabled") }
    }
}

impl Entry {
    fn read(cursor: &Cursor<'_>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let fields = cursor.object(&["name", "weight"], diagnostics);
        let weight = fields.get("weight").and_then(|c| c.integer(0..=i64::from(i32::MAX), diagnostics));
        let Some(name) = fields.get("name") else {
            diagnostics.add(&cursor.at.below("name"), "a plugin needs a name");
            return None;
        };
        Some(Self { name: plugin_name(name, diagnostics)?, weight, at: name.at.clone() })
    }
}

impl<'a> FileArgs<'a> {
    fn read(cursor: &Cursor<'a>, diagnostics: &mut Diagnostics) -> Option<Self> {
        let fields = cursor.object(&["name", "args"], diagnostics);
        let Some(name) = fields.get("name") else {
            diagnostics.add(&cursor.at.below("name"), "an entry of pluginConfig needs the plugin's name");
            return None;
        };
        let args = fields.get("args").cloned();
        Some(Self { name: plugin_name(name, diagnostics)?, at: name.at.clone(), args })
    }
}

/// Reads the name of a plugin. Translates another scheduler's name to ours and notes that once.
fn plugin_name(cursor: &Cursor<'_>, diagnostics: &mut Diagnostics) -> Option<String> {
    let name = cursor.name(diagnostics)?;
    let Some(ours) = our_name(name) else { return Some(name.to_owned()) };
    let text = format!("{name} is read as {ours}, which does its work");
    if !diagnostics.notes.iter().any(|note| note.ends_with(&text)) {
        diagnostics.note(&cursor.at, text);
    }
    Some(ours.to_owned())
}
