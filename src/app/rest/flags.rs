//! The runtime switches under `/debug/flags`, with Koordinator's names and answers.
//!
//! A raw value applies to all pods until it is changed. A JSON object sets `s` and `f` for some pods and a limited
//! time, and `v` and `log` for a limited time; `recording::switches::parse` defines its fields.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pellucid_http::{Refused, RequestInfo, Said, Switch};
use pellucid_recording::rfc3339;
use pellucid_recording::switches::{self, Ask, Flag, LogBefore, MOST_ACTIVE, NotSet, Setter, Switches};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::log::telemetry::LogControl;

/// State shared by all switches.
pub struct Flags {
    switches: Arc<Switches>,
    log: Option<Arc<LogControl>>,
    clock: Clock,
    /// Notified when something is set that expires.
    set: Notify,
    /// Held while the log is put back once its temporary setting has ended.
    restoring: Mutex<()>,
}

impl Flags {
    /// Creates the shared state; without `log`, the switches of the log do not exist.
    pub fn new(switches: Arc<Switches>, log: Option<Arc<LogControl>>, clock: Clock) -> Arc<Self> {
        Arc::new(Self { switches, log, clock, set: Notify::new(), restoring: Mutex::new(()) })
    }

    /// Returns every switch.
    pub fn all(self: &Arc<Self>) -> Vec<Arc<dyn Switch>> {
        let recording = |flag| Arc::new(RecordingSwitch { flag, flags: self.clone() }) as Arc<dyn Switch>;
        let setting_switch =
            |setting| Arc::new(SettingSwitch { setting, flags: self.clone() }) as Arc<dyn Switch>;
        let mut all = vec![recording(Flag::Scores), recording(Flag::Failures)];
        all.extend(SETTINGS.iter().map(setting_switch));
        if let Some(log) = &self.log {
            let of_log = |flag| Arc::new(LogSwitch { flag, log: log.clone(), flags: self.clone() });
            all.push(of_log(Flag::Verbosity));
            all.push(of_log(Flag::Log));
        }
        all
    }

    /// Expires recordings when they are due, until stopped.
    pub async fn run_expiry(self: Arc<Self>, stop: CancellationToken) {
        /// Shortest sleep: a manual clock does not advance while we sleep.
        const SHORTEST: Duration = Duration::from_millis(50);
        loop {
            self.settle();
            let next = self.switches.next_expiry().map(|at| at.saturating_sub((self.clock)().monotonic));
            let pause = next.unwrap_or(Duration::from_secs(3600)).max(SHORTEST);
            tokio::select! {
                () = self.set.notified() => {}
                () = tokio::time::sleep(pause) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Expires recordings that are due, and restores the log when its temporary setting ends.
    fn settle(&self) {
        // Whoever comes second finds the log as the first has put it back.
        let _restoring = self.restoring.lock();
        self.switches.expire((self.clock)());
        let (Some(before), Some(log)) = (self.switches.take_log_ended(), &self.log) else { return };
        if let Err(error) = log.restore(before.verbosity, &before.directive) {
            tracing::warn!(%error, directive = before.directive, "the log could not be put back");
        }
    }

    /// Begins or ends the recording that a JSON object describes.
    fn set_recording(
        &self,
        flag: Flag,
        text: &str,
        by: &Setter,
        before: Option<LogBefore>,
    ) -> Result<Said, Refused> {
        let ask = switches::parse(flag, text).map_err(Refused::Invalid)?;
        let name = flag.as_str();
        let done = match ask {
            Ask::Set(order) => self.switches.begin(flag, order, before, by),
            Ask::End(id) => self.switches.end_one(flag, id, by),
        };
        self.set.notify_one();
        let recording = done.map_err(|why| match why {
            NotSet::TooMany => Refused::TooMany(format!(
                "{MOST_ACTIVE} recordings are active; end one with {{\"id\": N, \"off\": true}} or wait until one ends"
            )),
            NotSet::Unknown(id) => Refused::NotFound(format!("no recording {id} of flag {name} is active")),
            NotSet::NotOn => Refused::NotFound(format!("flag {name} is not on for all pods; name a recording by its `id`")),
        })?;
        Ok(Said::Json(json!(recording.body(by.now))))
    }

    /// Sets a raw value, and adds the change to the audit.
    fn set_audited(&self, switch: &dyn Switch, value: &str, by: &Setter) -> Result<Said, Refused> {
        let before = switch.get();
        let said = switch.set(value).map_err(Refused::Invalid)?;
        self.switches.audit_change(switch.name(), &before, &switch.get(), by);
        Ok(Said::Text(said))
    }

    fn entry(&self, switch: &dyn Switch, flag: Flag) -> Value {
        let recordings = self.switches.active(Some(flag), (self.clock)());
        let mut entry = json!({
            "name": switch.name(), "summary": switch.summary(), "value": switch.get(), "recordings": recordings,
            "when": flag.when(),
        });
        if let Some(change) = self.switches.shut_off(flag.as_str()) {
            let (what, at) = (change.id, rfc3339(change.at));
            let which = if what == 0 { "it".to_owned() } else { format!("recording {what}") };
            entry["note"] = json!(format!(
                "{which} was turned off at {at}: recording took more than {} % of the time of attempts (flag budget)",
                self.switches.budget()
            ));
        }
        entry
    }
}

fn setter(by: &RequestInfo) -> Setter {
    Setter { now: by.now, from: by.from.clone() }
}

fn is_object(value: &str) -> bool {
    value.starts_with('{')
}

/// A switch that records attempts (`s`, `f`).
struct RecordingSwitch {
    flag: Flag,
    flags: Arc<Flags>,
}

impl RecordingSwitch {
    fn set_raw(&self, value: &str, by: &Setter) -> Result<String, String> {
        let switches = &self.flags.switches;
        if self.flag == Flag::Scores {
            let n = value.parse().map_err(|e| format!("failed set debugTopNScores {value:?}: {e}"))?;
            switches.set_top_n_scores(n, by);
            return Ok(format!("successfully set debugTopNScores to {n}"));
        }
        let on = boolean(value)
            .ok_or_else(|| format!("failed set debugFilterFailure {value:?}: want true or false"))?;
        switches.set_filter_failures(on, by);
        Ok(format!("successfully set debugFilterFailure to {on}"))
    }
}

impl Switch for RecordingSwitch {
    fn name(&self) -> &str {
        self.flag.as_str()
    }
    fn summary(&self) -> &str {
        match self.flag {
            Flag::Scores => {
                "Record (and log) the best N rows of each pod's score table, from the next attempt on that places one; 0 turns it off. Read them under /apis/v1/scores"
            }
            _ => {
                "Record (and log) each refused node of each attempt, from the next attempt on. Read them under /apis/v1/filter-failures"
            }
        }
    }
    fn get(&self) -> String {
        match self.flag {
            Flag::Scores => self.flags.switches.top_n_scores().to_string(),
            _ => self.flags.switches.filter_failures().to_string(),
        }
    }
    fn set(&self, value: &str) -> Result<String, String> {
        self.set_raw(value, &Setter { now: (self.flags.clock)(), from: String::new() })
    }
    fn set_as(&self, value: &str, by: &RequestInfo) -> Result<Said, Refused> {
        match is_object(value) {
            true => self.flags.set_recording(self.flag, value, &setter(by), None),
            false => self.set_raw(value, &setter(by)).map(Said::Text).map_err(Refused::Invalid),
        }
    }
    fn as_json(&self) -> Value {
        self.flags.entry(self, self.flag)
    }
}

/// A switch of the log (`v`, `log`).
struct LogSwitch {
    flag: Flag,
    log: Arc<LogControl>,
    flags: Arc<Flags>,
}

impl LogSwitch {
    /// Sets the value permanently.
    fn apply(&self, value: &str) -> Result<String, String> {
        if self.flag == Flag::Log {
            self.log.set_directive(value).map_err(|e| format!("failed set log directive: {e}"))?;
            return Ok(format!("successfully set log directive to {value}"));
        }
        let failed = |e: &dyn std::fmt::Display| format!("failed set klog.logging.verbosity {value:?}: {e}");
        let v: u8 = value.parse().map_err(|e: std::num::ParseIntError| failed(&e))?;
        self.log.set_verbosity(v).map_err(|e| failed(&e))?;
        Ok(format!("successfully set klog.logging.verbosity to {v}"))
    }

    fn set_for_a_time(&self, text: &str, by: &Setter) -> Result<Said, Refused> {
        self.flags.settle();
        let before = LogBefore { verbosity: self.log.verbosity(), directive: self.log.directive() };
        if let Ok(Ask::Set(order)) = switches::parse(self.flag, text) {
            self.apply(&order.value).map_err(Refused::Invalid)?;
        }
        let said = self.flags.set_recording(self.flag, text, by, Some(before.clone()));
        if said.is_err() {
            // `apply` above has already set the log: undo it.
            let _ = self.log.restore(before.verbosity, &before.directive);
        }
        self.flags.settle();
        said
    }
}

impl Switch for LogSwitch {
    fn name(&self) -> &str {
        self.flag.as_str()
    }
    fn summary(&self) -> &str {
        match self.flag {
            Flag::Verbosity => {
                "Verbosity in klog's numbers: 0 warn, 1 and 2 info, 3 to 5 debug, 6 and up trace"
            }
            _ => "Full log directive, such as info,pellucid_kubernetes=trace",
        }
    }
    fn get(&self) -> String {
        self.flags.settle();
        match self.flag {
            Flag::Verbosity => self.log.verbosity().to_string(),
            _ => self.log.directive(),
        }
    }
    fn set(&self, value: &str) -> Result<String, String> {
        let said = self.apply(value)?;
        self.flags.switches.forget_log();
        Ok(said)
    }
    fn set_as(&self, value: &str, by: &RequestInfo) -> Result<Said, Refused> {
        match is_object(value) {
            true => self.set_for_a_time(value, &setter(by)),
            false => self.flags.set_audited(self, value, &setter(by)),
        }
    }
    fn as_json(&self) -> Value {
        self.flags.entry(self, self.flag)
    }
}

/// A setting that takes raw values only.
struct Setting {
    name: &'static str,
    summary: &'static str,
    /// Which values it takes, for the message about another one.
    wants: &'static str,
    get: fn(&Switches) -> String,
    /// Sets a value if it is valid, and returns it as it is shown.
    set: fn(&Switches, &str) -> Option<String>,
}

static SETTINGS: [Setting; 3] = [
    Setting {
        name: "reuse",
        summary: "Reuse rows between pods of one shape; decisions are the same without, only slower",
        wants: "true or false",
        get: |switches| switches.reuse().to_string(),
        set: |switches, value| boolean(value).inspect(|on| switches.set_reuse(*on)).map(|on| on.to_string()),
    },
    Setting {
        name: "budget",
        summary: "The share of the time of attempts that flags s and f may take before they are turned off, percent; 100 turns nothing off",
        wants: "a percentage, 1 to 100",
        get: |switches| switches.budget().to_string(),
        set: |switches, value| {
            let percent = value.parse::<u32>().ok().filter(|percent| (1..=100).contains(percent))?;
            switches.set_budget(percent);
            Some(percent.to_string())
        },
    },
    Setting {
        name: "recorder",
        summary: "Record what happens to pods and gangs. Read it under /apis/v1/history and /apis/v1/events",
        wants: "true or false",
        get: |switches| switches.recorder().to_string(),
        set: |switches, value| {
            boolean(value).inspect(|on| switches.set_recorder(*on)).map(|on| on.to_string())
        },
    },
];

/// The switch of a setting; changes go to the audit with their author.
struct SettingSwitch {
    setting: &'static Setting,
    flags: Arc<Flags>,
}

impl Switch for SettingSwitch {
    fn name(&self) -> &str {
        self.setting.name
    }
    fn summary(&self) -> &str {
        self.setting.summary
    }
    fn get(&self) -> String {
        (self.setting.get)(&self.flags.switches)
    }
    fn set(&self, value: &str) -> Result<String, String> {
        let Setting { name, wants, .. } = self.setting;
        match (self.setting.set)(&self.flags.switches, value) {
            Some(shown) => Ok(format!("successfully set {name} to {shown}")),
            None => Err(format!("failed set {name} {value:?}: want {wants}")),
        }
    }
    fn set_as(&self, value: &str, by: &RequestInfo) -> Result<Said, Refused> {
        self.flags.set_audited(self, value, &setter(by))
    }
}

/// Parses a boolean as Go's `strconv.ParseBool` does, so that scripts for Koordinator keep working.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pellucid_model::Now;

    use super::*;

    fn flag(switches: &Arc<Switches>, name: &str) -> Arc<dyn Switch> {
        let flags = Flags::new(switches.clone(), None, Arc::new(Now::default));
        flags.all().into_iter().find(|f| f.name() == name).unwrap()
    }

    #[test]
    fn answers_are_koordinators_and_a_wrong_value_changes_nothing() {
        let switches = Arc::new(Switches::default());
        let s = flag(&switches, "s");
        assert_eq!(s.set("100").as_deref(), Ok("successfully set debugTopNScores to 100"));
        for wrong in ["-1", "x", "", "1.5"] {
            assert!(s.set(wrong).unwrap_err().starts_with("failed set debugTopNScores"));
        }
        assert_eq!(s.get(), "100");
        let f = flag(&switches, "f");
        assert_eq!(f.set("true").as_deref(), Ok("successfully set debugFilterFailure to true"));
        assert!(f.set("yes").is_err());
        assert!(switches.filter_failures());
        let budget = flag(&switches, "budget");
        assert!(budget.set("0").is_err() && budget.set("101").is_err());
        assert_eq!(budget.set("20").as_deref(), Ok("successfully set budget to 20"));
    }

    #[test]
    fn an_object_sets_a_scope_and_ends_it() {
        let switches = Arc::new(Switches::default());
        let s = flag(&switches, "s");
        let by = RequestInfo { from: "127.0.0.1 curl".into(), ..RequestInfo::default() };
        let Ok(Said::Json(set)) = s.set_as(r#"{"value": 5, "namespace": "ns"}"#, &by) else {
            panic!("it is set")
        };
        assert_eq!(
            (&set["id"], &set["owner"], &set["setBy"]),
            (&json!(1), &set["setBy"], &json!("127.0.0.1 curl"))
        );
        assert_eq!((s.get().as_str(), switches.is_recording()), ("0", true));
        let Err(Refused::NotFound(_)) = s.set_as(r#"{"id": 2, "off": true}"#, &by) else {
            panic!("no such one")
        };
        let Ok(Said::Json(ended)) = s.set_as(r#"{"id": 1, "off": true}"#, &by) else { panic!("it ends") };
        assert_eq!((&ended["active"], switches.is_recording()), (&json!(false), false));
    }

    #[test]
    fn switches_that_record_nothing_are_in_the_audit_too() {
        let switches = Arc::new(Switches::default());
        let by = RequestInfo::default();
        flag(&switches, "reuse").set_as("false", &by).unwrap();
        let (audit, _) = switches.audit(Now::default());
        assert_eq!(
            (audit[0].flag.as_str(), audit[0].from.as_str(), audit[0].to.as_str()),
            ("reuse", "true", "false")
        );
    }
}
