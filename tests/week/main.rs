//! Memory over a simulated week: the scheduler's live bytes stay within 5 % once its bounded memories are full.
//!
//! The scheduler core gets the life of pods on a simulated clock (`world`): jobs, gangs, preemption, refused and gated
//! pods, pods of another scheduler, failing Bindings, nodes that are replaced (`jobs`). No name, uid or label of a job
//! ever repeats. The load is even, so whatever grows is kept beyond its use. A separate binary, because its allocator
//! counts the bytes of the whole process.
//!
//! The test plays some hours of a small cluster, in which the bounded memories are full after 16 hours. By hand a week of a
//! large one, 15 million pod events, in which they are full after the first hour; it takes 45 minutes of one CPU:
//!
//! ```text
//! PELLUCID_WEEK_HOURS=168 cargo test --release --test week -- --nocapture
//! ```

#![allow(clippy::print_stdout, reason = "the table is for people")]

#[path = "../common/mod.rs"]
mod common;

mod jobs;
mod world;

use peak_alloc::PeakAlloc;
use world::{Counts, Size, World};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Allowed difference from the first hour after the warm-up, in percent.
const FLAT: f64 = 5.0;
const HOUR: u64 = 3600;
/// Seconds between two samples.
const SAMPLE: u64 = 60;

/// What one simulated hour was like.
struct Hour {
    /// Mean of the samples, in bytes.
    live: f64,
    counts: Counts,
    n_pods: usize,
    n_pending: usize,
}

/// Plays one hour. Returns the mean of the bytes that are live in it.
fn hour(world: &mut World) -> Hour {
    let mut sum = 0.0;
    for second in 1..=HOUR {
        world.second();
        if second % SAMPLE == 0 {
            sum += ALLOCATOR.current_usage() as f64;
        }
    }
    let live = sum / (HOUR / SAMPLE) as f64;
    Hour { live, counts: world.counts, n_pods: world.n_pods(), n_pending: world.n_pending() }
}

/// Returns the size of the run: a small cluster, or, for the number of hours in the environment, a large one. The
/// memories with a bound, such as those of ended preemptions and of pods that ended, are full after the warm-up.
fn size() -> Run {
    const VARIABLE: &str = "PELLUCID_WEEK_HOURS";
    match std::env::var(VARIABLE) {
        Ok(text) => {
            let hours = text.parse().unwrap_or_else(|_| panic!("{VARIABLE}={text} is not a number"));
            let size = Size { nodes: 300, jobs_per_hour: 3_600, recorder_bytes: 4 << 20 };
            Run { size, warm_up: 1, hours }
        }
        Err(_) => {
            let size = Size { nodes: 20, jobs_per_hour: 150, recorder_bytes: 128 << 10 };
            Run { size, warm_up: 16, hours: 32 }
        }
    }
}

/// Size and length of a run, in hours.
struct Run {
    size: Size,
    warm_up: usize,
    hours: usize,
}

#[test]
fn memory_stays_flat() {
    let Run { size, warm_up, hours: n_hours } = size();
    assert!(n_hours > warm_up + 1, "{n_hours} h are too short to compare hours after the first {warm_up}");
    let before = ALLOCATOR.current_usage() as f64;
    let mut world = World::new(size);
    let mut hours = Vec::new();
    println!("hour  pod events  placed  refused  preempted  gangs  nodes  pods  pending  live KiB");
    for number in 1..=n_hours {
        let mut hour = hour(&mut world);
        hour.live -= before;
        let Counts { pod_events, victims, gangs, nodes, .. } = hour.counts;
        let counters = world.counters();
        let (placed, refused) = (counters.placed, counters.refused);
        let (n_pods, n_pending, kib) = (hour.n_pods, hour.n_pending, hour.live / 1024.0);
        println!(
            "{number:4}  {pod_events:10}  {placed:6}  {refused:7}  {victims:9}  {gangs:5}  {nodes:5}  {n_pods:4}  {n_pending:7}  {kib:8.0}"
        );
        hours.push(hour);
    }
    world.counts.assert_all_happened();
    let base = hours[warm_up].live;
    let far = |hour: &Hour| (hour.live / base - 1.0).abs() * 100.0;
    let worst = hours[warm_up..].iter().map(far).fold(0.0, f64::max);
    println!("after the first {warm_up} h at most {worst:.1} % away from {:.0} KiB", base / 1024.0);
    for (number, hour) in hours.iter().enumerate().skip(warm_up) {
        let far = far(hour);
        assert!(far <= FLAT, "in hour {} memory is {far:.1} % away from hour {}", number + 1, warm_up + 1);
    }
}
