//! The command line of the long test.

use std::time::Duration;

pub(crate) const USAGE: &str = "cargo bench --bench soak -- [--minutes N] [--seed N]";

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// How long the load lasts.
    pub(crate) length: Duration,
    /// What random choices begin with.
    pub(crate) seed: u64,
}

impl Options {
    /// Reads the arguments. cargo adds `--bench`.
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { length: Duration::from_secs(60 * 60), seed: 1 };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--bench" => {}
                "--minutes" => {
                    let text = value()?;
                    let minutes: f64 =
                        text.parse().map_err(|_| format!("--minutes: {text:?} is not a number"))?;
                    if !(0.5..=10_000.0).contains(&minutes) {
                        return Err(format!("--minutes: {text} is not between 0.5 and 10000"));
                    }
                    options.length = Duration::from_secs_f64(minutes * 60.0);
                }
                "--seed" => {
                    let text = value()?;
                    options.seed = text.parse().map_err(|_| format!("--seed: {text:?} is not a number"))?;
                }
                other => return Err(format!("{other:?} is not an argument")),
            }
        }
        Ok(options)
    }

    /// Says whether there is time for long outages, and for memory to level off.
    pub(crate) fn is_long(&self) -> bool {
        self.length >= Duration::from_secs(600)
    }
}
