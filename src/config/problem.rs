//! What is wrong with a configuration: all of it at once, each with its place.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, from 1; `None` when it is about the whole or a default.
    pub line: Option<u64>,
    /// Path in the file, such as `profiles[0].plugins.score.enabled[1].name`; empty for the whole.
    pub path: String,
    /// What is wrong, with the value that was given.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Why a configuration was not accepted. Never empty when it is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// The file, or another name of where the text came from.
    pub source: String,
    /// In the order of the file, as far as it goes.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            match problem.line {
                Some(line) => write!(f, "{}:{line}: {problem}", self.source)?,
                None => write!(f, "{}: {problem}", self.source)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}
