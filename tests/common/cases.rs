//! Recorded cases of real schedulers: one JSON document a line.

use std::path::PathBuf;

use serde_json::Value;

/// Where recorded cases are read from.
pub struct Cases {
    /// Environment variable that names another directory.
    pub variable: &'static str,
    /// The directory of this repository.
    pub own: &'static str,
}

impl Cases {
    /// Returns whether the cases are those of this repository.
    pub fn are_own(&self) -> bool {
        std::env::var_os(self.variable).is_none()
    }

    /// Reads a file of cases.
    pub fn lines(&self, name: &str) -> Vec<Value> {
        let own = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(self.own);
        let file = std::env::var_os(self.variable).map_or_else(own, PathBuf::from).join(name);
        let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let cases: Vec<Value> =
            lines.map(|line| serde_json::from_str(line).expect("a case is JSON")).collect();
        assert!(!cases.is_empty(), "{} holds no case", file.display());
        cases
    }
}
