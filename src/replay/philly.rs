//! Reads a list of training jobs: arrivals and sizes from Microsoft's Philly trace, as released with Gavel.
//!
//! A row is a gang: `gpus` workers with one GPU each, which train `steps` steps together. In reality the time per step
//! depends on the model; here it is [`STEP`] for all, and no job runs for longer than [`LONGEST`].

use std::path::Path;
use std::time::Duration;

use super::TraceError;
use super::rows::{MOST, MOST_GPUS, read};

const COLUMNS: [&str; 5] = ["job", "submit_seconds", "gpus", "steps", "model"];
/// Time per step.
const STEP: Duration = Duration::from_millis(100);
/// Maximum run time of a job: 7 days.
const LONGEST: Duration = Duration::from_hours(7 * 24);
/// Maximum length of a job name, so that the names of its workers are valid too.
const LONGEST_NAME: usize = 200;

/// A training job, scheduled as one gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GangJob {
    /// Name, unique in the trace; prefix of the workers' names.
    pub name: String,
    /// Submission time, counted from the start of the trace.
    pub submitted_at: Duration,
    /// Number of workers, each with one GPU.
    pub workers: usize,
    /// Run time of the workers.
    pub runs_for: Duration,
    /// The trained model.
    pub model: String,
}

/// Reads the list of jobs, all or nothing. Returns them in the order of submission; jobs with equal times stay in the
/// order of the file.
pub fn read_jobs(file: &Path) -> Result<Vec<GangJob>, TraceError> {
    let mut jobs = read(file, &COLUMNS, |row| {
        let name = row.object_name("job")?;
        if name.len() > LONGEST_NAME {
            return Err(row.wrong("job", &format!("is longer than {LONGEST_NAME} characters")));
        }
        let submitted_at = Duration::from_secs(row.amount("submit_seconds", MOST)?);
        let workers = row.amount("gpus", MOST_GPUS)? as usize;
        if workers == 0 {
            return Err(row.wrong("gpus", "is no number of workers: a job has at least 1"));
        }
        let longest_steps = (LONGEST.as_millis() / STEP.as_millis()) as u64;
        let steps = row.amount("steps", MOST)?.min(longest_steps);
        let runs_for = Duration::from_millis(steps * STEP.as_millis() as u64);
        Ok(GangJob { name, submitted_at, workers, runs_for, model: row.text("model").to_owned() })
    })?;
    jobs.sort_by_key(|job| job.submitted_at);
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::super::rows::testing::read_text;
    use super::*;

    #[test]
    fn rows_become_gangs_in_the_order_of_their_submission() {
        let text = "job,submit_seconds,gpus,steps,model\nb,70,2,35,Net (size 4)\na,7,32,6048001,\n";
        let jobs = read_text(read_jobs, text).unwrap();
        let [a, b] = &jobs[..] else { panic!("{jobs:?}") };
        assert_eq!((a.name.as_str(), a.submitted_at.as_secs(), a.workers), ("a", 7, 32));
        assert_eq!(a.runs_for, LONGEST);
        assert_eq!((b.name.as_str(), b.runs_for.as_millis(), b.model.as_str()), ("b", 3500, "Net (size 4)"));
    }

    #[test]
    fn a_wrong_row_names_line_column_and_value() {
        let long = "x".repeat(201);
        for (row, expected) in [
            ("j,1,8,10", ":3: 4 columns, expected 5"),
            ("j,soon,8,10,M", ":3: column submit_seconds: \"soon\" is not an integer"),
            ("j,1,0,10,M", ":3: column gpus: \"0\" is no number of workers: a job has at least 1"),
            ("j,1,1025,10,M", ":3: column gpus: \"1025\" is more than 1024"),
            ("j,1,8,-1,M", ":3: column steps: \"-1\" is below 0"),
            ("J_1,1,8,10,M", ":3: column job: \"J_1\" is not a name a Kubernetes object can have"),
            ("a,1,8,10,M", ":3: column job: \"a\" stands on line 2 already"),
            (
                &format!("{long},1,8,10,M"),
                &format!(":3: column job: \"{long}\" is longer than 200 characters"),
            ),
        ] {
            let text = format!("job,submit_seconds,gpus,steps,model\na,0,1,1,M\n{row}\n");
            assert_eq!(read_text(read_jobs, &text).unwrap_err(), expected);
        }
        let expected = ":1: the header is \"name,gpus\", expected \"job,submit_seconds,gpus,steps,model\"";
        assert_eq!(read_text(read_jobs, "name,gpus\n").unwrap_err(), expected);
    }
}
