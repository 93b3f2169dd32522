//! The runtime switches under `/debug/flags`, with Koordinator's names and answers.

use std::sync::Arc;

use super::telemetry::LogControl;
use crate::diagnosis::switches::Switches;
use crate::http::Switch;

/// Returns every switch.
pub fn all(switches: &Arc<Switches>, log: Option<&Arc<LogControl>>) -> Vec<Arc<dyn Switch>> {
    let mut all: Vec<Arc<dyn Switch>> = vec![
        Arc::new(TopNScores(switches.clone())),
        Arc::new(FilterFailures(switches.clone())),
        Arc::new(Reuse(switches.clone())),
        Arc::new(Recording(switches.clone())),
    ];
    if let Some(log) = log {
        all.push(Arc::new(Verbosity(log.clone())));
        all.push(Arc::new(Directive(log.clone())));
    }
    all
}

struct TopNScores(Arc<Switches>);

impl Switch for TopNScores {
    fn name(&self) -> &str {
        "s"
    }
    fn summary(&self) -> &str {
        "Record (and log) the best N rows of each pod's score table; 0 turns it off. Read them under /apis/v1/scores"
    }
    fn get(&self) -> String {
        self.0.top_n_scores().to_string()
    }
    fn set(&self, value: &str) -> Result<String, String> {
        let n = value.parse().map_err(|e| format!("failed set debugTopNScores {value:?}: {e}"))?;
        self.0.set_top_n_scores(n);
        Ok(format!("successfully set debugTopNScores to {n}"))
    }
}

struct FilterFailures(Arc<Switches>);

impl Switch for FilterFailures {
    fn name(&self) -> &str {
        "f"
    }
    fn summary(&self) -> &str {
        "Record (and log) each refused node of each attempt. Read them under /apis/v1/filter-failures"
    }
    fn get(&self) -> String {
        self.0.filter_failures().to_string()
    }
    fn set(&self, value: &str) -> Result<String, String> {
        let on = boolean(value)
            .ok_or_else(|| format!("failed set debugFilterFailure {value:?}: want true or false"))?;
        self.0.set_filter_failures(on);
        Ok(format!("successfully set debugFilterFailure to {on}"))
    }
}

struct Reuse(Arc<Switches>);

impl Switch for Reuse {
    fn name(&self) -> &str {
        "reuse"
    }
    fn summary(&self) -> &str {
        "Reuse rows between pods of one shape; decisions are the same without, only slower"
    }
    fn get(&self) -> String {
        self.0.reuse().to_string()
    }
    fn set(&self, value: &str) -> Result<String, String> {
        let on = boolean(value).ok_or_else(|| format!("failed set reuse {value:?}: want true or false"))?;
        self.0.set_reuse(on);
        Ok(format!("successfully set reuse to {on}"))
    }
}

struct Recording(Arc<Switches>);

impl Switch for Recording {
    fn name(&self) -> &str {
        "recorder"
    }
    fn summary(&self) -> &str {
        "Record what happens to pods and gangs. Read it under /apis/v1/history and /apis/v1/events"
    }
    fn get(&self) -> String {
        self.0.recorder().to_string()
    }
    fn set(&self, value: &str) -> Result<String, String> {
        let on =
            boolean(value).ok_or_else(|| format!("failed set recorder {value:?}: want true or false"))?;
        self.0.set_recorder(on);
        Ok(format!("successfully set recorder to {on}"))
    }
}

struct Verbosity(Arc<LogControl>);

impl Switch for Verbosity {
    fn name(&self) -> &str {
        "v"
    }
    fn summary(&self) -> &str {
        "Verbosity in klog's numbers: 0 warn, 1 and 2 info, 3 to 5 debug, 6 and up trace"
    }
    fn get(&self) -> String {
        self.0.verbosity().to_string()
    }
    fn set(&self, value: &str) -> Result<String, String> {
        let failed = |e: &dyn std::fmt::Display| format!("failed set klog.logging.verbosity {value:?}: {e}");
        let v: u8 = value.parse().map_err(|e: std::num::ParseIntError| failed(&e))?;
        self.0.set_verbosity(v).map_err(|e| failed(&e))?;
        Ok(format!("successfully set klog.logging.verbosity to {v}"))
    }
}

struct Directive(Arc<LogControl>);

impl Switch for Directive {
    fn name(&self) -> &str {
        "log"
    }
    fn summary(&self) -> &str {
        "Full log directive, such as info,pellucid::kubernetes=trace"
    }
    fn get(&self) -> String {
        self.0.directive()
    }
    fn set(&self, value: &str) -> Result<String, String> {
        self.0.set_directive(value).map_err(|e| format!("failed set log directive: {e}"))?;
        Ok(format!("successfully set log directive to {value}"))
    }
}

/// Reads a boolean as Go's `strconv.ParseBool` does, because people bring their scripts.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_koordinators_and_a_wrong_value_changes_nothing() {
        let switches = Arc::new(Switches::default());
        let flags = all(&switches, None);
        let flag = |name: &str| flags.iter().find(|f| f.name() == name).cloned();
        let s = flag("s").unwrap();
        assert_eq!(s.set("100").as_deref(), Ok("successfully set debugTopNScores to 100"));
        for wrong in ["-1", "x", "", "1.5"] {
            assert!(s.set(wrong).unwrap_err().starts_with("failed set debugTopNScores"));
        }
        assert_eq!(s.get(), "100");
        let f = flag("f").unwrap();
        assert_eq!(f.set("true").as_deref(), Ok("successfully set debugFilterFailure to true"));
        assert!(f.set("yes").is_err());
        assert!(switches.filter_failures());
    }
}
