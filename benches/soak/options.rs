//! The command line of the soak test.

use std::time::Duration;

pub(crate) const USAGE: &str = "cargo bench --bench soak -- [--minutes N] [--seed N]";

/// The command line options.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Duration of the load.
    pub(crate) length: Duration,
    /// Seed of all random choices.
    pub(crate) seed: u64,
}

impl Options {
    /// Parses the arguments. Accepts `--bench`, which cargo adds.
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

    /// Returns whether the test is long enough for long outages and for memory to level off.
    pub(crate) fn is_long(&self) -> bool {
        self.length >= Duration::from_secs(600)
    }
}
