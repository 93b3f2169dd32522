//! `pellucid flags`: shows and sets the runtime switches of a running scheduler.

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::server::{Output, ServerArgs};
use super::text::{one, table};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pellucid flags v 5")]
pub struct FlagsArgs {
    /// The switch, such as v, s, f or log; all when absent
    #[arg(value_parser = name)]
    pub(crate) name: Option<String>,
    /// The value to set; without it the present one is shown
    #[arg(allow_hyphen_values = true)]
    pub(crate) value: Option<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

fn name(text: &str) -> Result<String, String> {
    let is_name =
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if is_name { Ok(text.to_owned()) } else { Err("a switch has a plain name, such as v".to_owned()) }
}

#[derive(Deserialize)]
struct Flags {
    flags: Vec<Flag>,
}

#[derive(Deserialize)]
struct Flag {
    name: String,
    value: Value,
    #[serde(default)]
    summary: String,
}

pub(crate) fn run(args: &FlagsArgs) -> anyhow::Result<String> {
    let Some(name) = &args.name else { return args.server.show("/debug/flags", list) };
    let path = format!("/debug/flags/{name}");
    let (field, text) = match &args.value {
        Some(value) => ("message", args.server.put_text(&path, value)?),
        None => ("value", args.server.get_text(&path)?),
    };
    match args.server.output {
        Output::Table if args.value.is_some() => Ok([text.trim_end(), when(name)].join("\n")),
        Output::Table => Ok(text),
        Output::Json | Output::Yaml => args.server.value(&json!({ "name": name, field: text.trim_end() })),
    }
}

/// Returns what is to be known of a flag that records once it is set, or nothing.
fn when(name: &str) -> &'static str {
    match name {
        "s" => {
            "The next attempt that places a matching pod is the first that is recorded; see `pellucid scores`."
        }
        "f" => {
            "The next attempt at a matching pod is the first that is recorded; see /apis/v1/filter-failures."
        }
        _ => "",
    }
}

fn list(body: &Flags) -> String {
    let mut table = table(&["NAME", "VALUE", "WHAT IT DOES"], []);
    for flag in &body.flags {
        let value = flag.value.as_str().map_or_else(|| flag.value.to_string(), str::to_owned);
        table.add_row([one(&flag.name), one(value), one(&flag.summary)]);
    }
    table.text()
}
