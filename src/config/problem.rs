//! Configuration errors: all problems of a file, each with its location.

use std::fmt;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Line in the file, counted from 1; `None` when the problem concerns the whole file or a default.
    pub line: Option<u64>,
    /// Path in the file, such as `profiles[0].plugins.score.enabled[1].name`; empty for the whole file.
    pub path: String,
    /// Description of the problem, with the given value.
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

/// All problems of a rejected configuration. Invariant: never empty when returned as an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    /// Name of the source, usually the file name.
    pub source: String,
    /// The problems, ordered by line where known.
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
