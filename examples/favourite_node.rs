//! A custom scheduler: all of Pellucid plus the plugin `FavouriteNode`.
//!
//! The plugin reads a node's favour, 0 to 100, from its label `example.com/favour`. It prefers favoured nodes, keeps
//! pods off nodes below a limit, and serves its state at an endpoint. `docs/writing-a-plugin.md` walks through this
//! file, and a test runs it against a sandbox.

use clap::Parser;
use pellucid::cli::run::{RunArgs, run_with};
use pellucid::cluster::{ClusterEvent, EventKinds, NodeChange};
use pellucid::framework::endpoint::{Endpoint, ReadContext, ReadError};
use pellucid::framework::plugin::{ArgsError, MAX_SCORE};
use pellucid::framework::{
    Cause, CauseId, Code, CycleValue, Filter, Hint, Hints, Nodes, Plugin, Reads, Reason, Registration, Score,
    View, points,
};
use pellucid::model::{Name, NodeIdx, Pod, PodSpec};
use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// Plugin name in the scheduler configuration.
const NAME: &str = "FavouriteNode";
/// The label with a node's favour.
const LABEL: &str = "example.com/favour";

/// Why a node is refused.
static NOT_FAVOURED: PluginReason = PluginReason {
    code: "NotFavouredEnough",
    plugin: NAME,
    message: "node(s) were not favoured enough",
    resolver: Resolver::ClusterAdmin,
    terminal_for: TerminalFor::Node,
    meaning: "The node's favour is below the least that the profile asks for.",
    remedy: "Raise the label example.com/favour of a node, or lower the argument least.",
    never: None,
    example: Example {
        subject: "",
        message: "node(s) were not favoured enough",
        situation: "The node's label says 5, and least is 10.",
    },
};

// === arguments ===

/// Arguments (`FavouriteNodeArgs`).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Args {
    /// Favour of a node without the label, 0 to 100.
    unlabelled: i64,
    /// Nodes with a favour below this are refused, 0 to 100.
    least: i64,
}

impl Default for Args {
    fn default() -> Self {
        Self { unlabelled: 50, least: 0 }
    }
}

impl Args {
    fn read(args: &Value) -> Result<Self, Vec<ArgsError>> {
        if args.is_null() {
            return Ok(Self::default());
        }
        let problem = |field: &str, problem: String, value: &Value| ArgsError {
            field: field.to_owned(),
            problem,
            value: value.to_string(),
        };
        let read: Self =
            serde_json::from_value(args.clone()).map_err(|e| vec![problem("args", e.to_string(), args)])?;
        let fields = [("unlabelled", read.unlabelled), ("least", read.least)];
        let wrong = fields.into_iter().filter(|(_, n)| !(0..=MAX_SCORE).contains(n));
        let wrong: Vec<_> =
            wrong.map(|(field, n)| problem(field, "must be from 0 to 100".to_owned(), &json!(n))).collect();
        if wrong.is_empty() { Ok(read) } else { Err(wrong) }
    }
}

// === registration ===

fn registration() -> Registration {
    let about = "How much each labelled node is favoured";
    let state = Endpoint::of::<FavouriteNodeState>("state", about, read_state).with_rows("nodes");
    Registration::new(NAME, "Prefers nodes that their owner favours by a label", args_schema, |args| {
        Ok(FavouriteNode { args: Args::read(args)?, label: Name::new(LABEL) })
    })
    .with_weight(2)
    .with_reasons([&NOT_FAVOURED])
    .with_endpoints([state])
}

fn args_schema() -> Value {
    let percent = json!({"type": "integer", "minimum": 0, "maximum": MAX_SCORE});
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {"unlabelled": percent, "least": percent},
    })
}

// === scheduling ===

struct FavouriteNode {
    args: Args,
    label: Name,
}

impl FavouriteNode {
    fn favour(&self, view: View<'_>, node: NodeIdx) -> i64 {
        favour(view, &self.label, node).unwrap_or(self.args.unlabelled)
    }
}

/// Returns the favour of a node; `None` if the label is absent or not a number from 0 to 100.
fn favour(view: View<'_>, label: &Name, node: NodeIdx) -> Option<i64> {
    let value = view.labels(node)?.get(label)?;
    value.parse().ok().filter(|n| (0..=MAX_SCORE).contains(n))
}

impl Plugin for FavouriteNode {
    fn name(&self) -> &'static str {
        NAME
    }
    fn args(&self) -> Value {
        json!(self.args)
    }
    points! { filter, score, hints }
}

impl Filter for FavouriteNode {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn filter(&self, view: View<'_>, _spec: &PodSpec, _value: &CycleValue, nodes: &mut Nodes<'_>) {
        let reason = Reason::of(ReasonCode::Plugin(&NOT_FAVOURED));
        let cause = nodes.cause(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason));
        nodes.refuse(|n| if self.favour(view, n) < self.args.least { cause } else { CauseId::FEASIBLE });
    }
}

impl Score for FavouriteNode {
    fn reads(&self) -> Reads {
        Reads::Node
    }

    fn score(
        &self,
        view: View<'_>,
        _spec: &PodSpec,
        _value: &CycleValue,
        nodes: &[NodeIdx],
        out: &mut [i64],
    ) {
        for (node, score) in nodes.iter().zip(out) {
            *score = self.favour(view, *node);
        }
    }
}

impl Hints for FavouriteNode {
    fn events(&self) -> EventKinds {
        EventKinds::NODE_ADD.with(EventKinds::NODE_LABEL)
    }

    fn hint(&self, view: View<'_>, _pod: &Pod, event: &ClusterEvent) -> Hint {
        match event {
            ClusterEvent::NodeAdded(n) if self.favour(view, *n) >= self.args.least => Hint::Queue,
            ClusterEvent::NodeUpdated { node, change, .. }
                if change.any(NodeChange::LABELS) && self.favour(view, *node) >= self.args.least =>
            {
                Hint::Queue
            }
            _ => Hint::Skip,
        }
    }
}

// === endpoint ===

/// `FavouriteNode/state`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FavouriteNodeState {
    /// Nodes with the label, by name.
    nodes: Vec<FavouredNode>,
    /// Nodes without it, or with a value that is no number from 0 to 100.
    unlabelled_nodes: usize,
}

/// A node with the label.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FavouredNode {
    /// Node.
    node: String,
    /// What its label says.
    favour: i64,
}

fn read_state(cx: &ReadContext<'_>) -> Result<Value, ReadError> {
    let (label, all) = (Name::new(LABEL), cx.view.nodes());
    let favoured = all.iter().filter_map(|n| Some((*n, favour(cx.view, &label, *n)?)));
    let mut nodes: Vec<FavouredNode> =
        favoured.map(|(n, favour)| FavouredNode { node: cx.view.name(n).to_string(), favour }).collect();
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    let unlabelled_nodes = all.len() - nodes.len();
    Ok(json!(FavouriteNodeState { nodes, unlabelled_nodes }))
}

// === the binary ===

/// Pellucid with the plugin FavouriteNode; the flags are those of `pellucid run`.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: RunArgs,
}

fn main() -> anyhow::Result<()> {
    let mut registry = pellucid::plugins::registry();
    registry.push(Box::new(registration()));
    run_with(&Options::parse().run, registry)
}
