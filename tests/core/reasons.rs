//! Reasons that a plugin from outside brings: they read as built-in ones do, and a dump keeps them.

use pellucid::framework::points;
use std::sync::Arc;

use clap::Parser;
use pellucid::cli::run::{RunArgs, run_with};
use pellucid::cycle::scheduler::Settings;
use pellucid::diagnosis::dump::restore::{self, Rewind};
use pellucid::framework::profile::Profile;
use pellucid::framework::{
    Cause, Code, CycleValue, Filter, Nodes, Plugin, PluginFactory, Reads, Reason, Registration, View,
};
use pellucid::model::PodSpec;
use pellucid::plugins::registry;
use pellucid_api::reason::{Example, PluginReason, ReasonCode, Resolver, TerminalFor};
use serde_json::{Value, json};

use crate::common::driver::{Core, settings};
use crate::common::dumps::dump;
use crate::common::made::{node, pod};
use crate::common::reads::{ask, list, number, text};

const NAME: &str = "Picky";

static DISLIKED: PluginReason = PluginReason {
    code: "NodeDisliked",
    plugin: NAME,
    message: "node(s) were disliked for {}",
    resolver: Resolver::SchedulerAdmin,
    terminal_for: TerminalFor::Node,
    meaning: "The plugin likes no node.",
    remedy: "Disable the plugin.",
    never: None,
    example: Example {
        subject: "their colour",
        message: "node(s) were disliked for their colour",
        situation: "All 30 nodes are grey.",
    },
};

/// A plugin that refuses every node for a reason of its own.
struct Picky;

impl Plugin for Picky {
    fn name(&self) -> &'static str {
        NAME
    }
    points! { filter }
}

impl Filter for Picky {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn filter(&self, _view: View<'_>, _spec: &PodSpec, _value: &CycleValue, nodes: &mut Nodes<'_>) {
        let reason = Reason::about(ReasonCode::Plugin(&DISLIKED), "their colour");
        let cause = nodes.cause(Cause::new(NAME, Code::UnschedulableAndUnresolvable, reason));
        nodes.refuse(|_| cause);
    }
}

fn picky() -> Registration {
    Registration::without_args(NAME, "Refuses every node", || Picky).with_reasons([&DISLIKED])
}

fn with_picky() -> Vec<Box<dyn PluginFactory>> {
    let mut all = registry();
    all.push(Box::new(picky()));
    all
}

fn profile() -> Profile {
    let mut profiles = pellucid::config::default(&with_picky()).expect("the defaults are valid").profiles;
    profiles.remove(0)
}

/// Makes a core with the plugin, one node, and pod `ns/p` that the plugin refused.
fn refused() -> Core {
    let mut core = Core::new(Settings { registry: Arc::new(with_picky()), ..settings(profile()) });
    core.see_node(&node("a", 1000));
    core.attempt(&pod("p", 100));
    core
}

#[test]
fn a_reason_of_a_plugin_is_listed_with_the_others() {
    let reasons = ask(&mut refused(), "/apis/v1/reasons");
    let ours: Vec<&Value> = list(&reasons, "/reasons").iter().filter(|r| r["plugin"] == NAME).collect();
    let want = json!({
        "code": "NodeDisliked",
        "plugin": "Picky",
        "message": "node(s) were disliked for {}",
        "meaning": "The plugin likes no node.",
        "remedy": "Disable the plugin.",
        "resolver": "scheduler admin",
        "terminalFor": "node",
        "example": {
            "subject": "their colour",
            "message": "node(s) were disliked for their colour",
            "situation": "All 30 nodes are grey.",
        },
    });
    assert_eq!(ours, [&want]);
}

#[test]
fn explanation_summary_and_history_give_the_plugins_own_code() {
    let mut core = refused();
    let explained = ask(&mut core, "/apis/v1/explain/pods/ns/p");
    let group = &list(&explained, "/nodeGroups")[0];
    assert_eq!((text(group, "/plugin"), number(group, "/count")), (NAME, 1));
    let want = json!([{
        "code": "NodeDisliked",
        "subject": "their colour",
        "message": "node(s) were disliked for their colour",
        "remedy": "Disable the plugin.",
        "resolver": "scheduler admin",
    }]);
    assert_eq!(group["reasons"], want);
    let message = text(&explained, "/message");
    let begins = "0/1 nodes are available: 1 node(s) were disliked for their colour.";
    assert!(message.starts_with(begins), "{message}");

    let summary = ask(&mut core, "/apis/v1/summary/pending?by=code,plugin,resolver");
    let row = &list(&summary, "/rows")[0];
    let fields = ["code", "plugin", "resolver"].map(|name| text(row, &format!("/{name}")).to_owned());
    assert_eq!(
        (fields, number(row, "/pods")),
        (["NodeDisliked", NAME, "scheduler admin"].map(String::from), 1)
    );

    let history = ask(&mut core, "/apis/v1/history/pods/ns/p");
    let codes: Vec<&Value> = list(&history, "/entries").iter().map(|entry| &entry["codes"]).collect();
    assert!(codes.contains(&&json!(["NodeDisliked"])), "{history}");
}

#[test]
fn a_decision_with_a_plugins_reason_is_made_again_from_a_dump() {
    let mut core = refused();
    let now = core.now;
    let of = dump(&mut core.scheduler, now, false);
    let verdict = &of.record.verdicts[0];
    assert_eq!(verdict.codes, ["NodeDisliked"]);
    let registry = Arc::new(with_picky());
    let restored = restore::restore(&of, vec![profile()], registry, &Rewind::default());
    let mut again = restored.expect("it is restored");
    let decided = restore::decide(&mut again, &of, &verdict.pod).expect("it is decided");
    assert_eq!(decided.decision_hash, verdict.decision_hash, "{decided:?}");
    assert!(decided.message.contains("disliked for their colour"), "{decided:?}");
}

#[test]
fn a_binary_in_which_two_plugins_share_a_name_or_a_code_does_not_start() {
    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        run: RunArgs,
    }
    let mut twice = with_picky();
    twice.push(Box::new(picky()));
    let refused = run_with(&Options::parse_from(["test"]).run, twice).expect_err("it is refused");
    assert_eq!(
        refused.to_string(),
        "the plugins cannot be registered:\n\
         plugin Picky: name: another plugin has this name, got \"Picky\"\n\
         plugin Picky: reasons[0].code: stands in the registry already (Picky), got \"NodeDisliked\""
    );
}
