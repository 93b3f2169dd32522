//! Prints one line per minute, and the verdict at the end.

use std::time::Duration;

use super::outages::{Outage, RECOVERY};
use super::plain::Minute;
use super::scheduler::Log;
use super::state::Soak;

const MINUTE: Duration = Duration::from_secs(60);
/// Maximum p99 wait of plain pods, in every minute with at least [`ENOUGH`] of them.
const P99: Duration = Duration::from_millis(250);
const ENOUGH: usize = 20;
/// Maximum memory growth, in percent and in KiB.
const GROWTH_PERCENT: u64 = 15;
const GROWTH_KIB: u64 = 30 << 10;

fn millis(time: Duration) -> String {
    format!("{:.0}", time.as_secs_f64() * 1_000.0)
}

fn minutes(soak: &Soak) -> Vec<(Duration, Duration)> {
    let n = soak.options.length.as_secs_f64() / MINUTE.as_secs_f64();
    let begins = (0..n.ceil() as u32).map(|minute| MINUTE * minute);
    begins.map(|from| (from, (from + MINUTE).min(soak.options.length))).collect()
}

/// Prints one line per minute until the time is over.
pub(crate) fn every_minute(soak: &Soak) {
    println!(
        "Plain pods whose wait touches an outage, or the {} s behind one, are left out and judged by recovery.\n",
        RECOVERY.as_secs()
    );
    println!(
        "|  min | plain | p50 ms | p99 ms | max ms | left out | RSS MiB | pods | nodes | gangs that fit, max s | load | outages |"
    );
    println!(
        "|-----:|------:|-------:|-------:|-------:|---------:|--------:|-----:|------:|----------------------:|-----:|---------|"
    );
    for (from, to) in minutes(soak) {
        // Allow pods created in this minute to be bound.
        soak.pause((to + Duration::from_millis(300)).saturating_sub(soak.now()));
        let Minute { pods, left_out, p50, p99, max } = soak.plain.between(from, to);
        let outages = soak.outages.all();
        let named: Vec<String> = outages.iter().filter(|o| from <= o.from && o.from < to).map(name).collect();
        let (fitting, slowest) = soak.fitting.between(from, to);
        let (least, most) = soak.health.memory(from, to);
        println!(
            "| {:>4.1} | {pods:>5} | {:>6} | {:>6} | {:>6} | {left_out:>8} | {:>7} | {:>4} | {:>5} | {:>21} | {:>4} | {} |",
            to.as_secs_f64() / 60.0,
            millis(p50),
            millis(p99),
            millis(max),
            format!("{}-{}", least >> 10, most >> 10),
            soak.sandbox.count("pods"),
            soak.sandbox.count("nodes"),
            format!("{fitting}, {:.1}", slowest.as_secs_f64()),
            load(),
            named.join("; "),
        );
    }
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("?").to_owned()
}

fn name(outage: &Outage) -> String {
    let cuts = if outage.cuts { ", connections cut" } else { "" };
    format!("{}{cuts} {:.0} s", outage.kind, (outage.to - outage.from).as_secs_f64())
}

/// Prints the requirements with their results. Returns whether all are met.
pub(crate) fn verdict(soak: &Soak, log: Log) -> bool {
    recoveries(soak);
    let mut is_well = true;
    let mut say = |passes: bool, what: String| {
        is_well &= passes;
        println!("{} {what}", if passes { "PASS" } else { "FAIL" });
    };
    println!();
    let judged: Vec<(usize, Minute)> = minutes(soak)
        .into_iter()
        .enumerate()
        .map(|(n, (from, to))| (n + 1, soak.plain.between(from, to)))
        .filter(|(_, minute)| minute.pods >= ENOUGH)
        .collect();
    let slow: Vec<usize> = judged.iter().filter(|(_, m)| m.p99 >= P99).map(|(n, _)| *n).collect();
    let worst = judged.iter().map(|(_, m)| m.p99).max().unwrap_or_default();
    let passes = slow.is_empty() && !judged.is_empty();
    say(
        passes,
        format!(
            "plain pods: p99 under {} ms in each of {} minutes with {ENOUGH} or more; the worst has {} ms; too slow: {slow:?}",
            millis(P99),
            judged.len(),
            millis(worst)
        ),
    );
    let outages = soak.outages.all();
    let late = outages.iter().filter(|o| o.first_bound.is_none_or(|t| t > RECOVERY)).count();
    say(
        late == 0,
        format!(
            "recovery: a pod is bound within {} s of the end of {} outages; {late} were not",
            RECOVERY.as_secs(),
            outages.len()
        ),
    );
    let health = |complaint: &&String| complaint.starts_with("/livez") || complaint.starts_with("/readyz");
    let complaints = soak.complaints();
    let false_health = complaints.iter().filter(health).count();
    say(
        false_health == 0,
        format!(
            "health: {} looks at /livez and {} at /readyz, {false_health} false answers; the slowest took {} ms",
            soak.counted("/livez 200"),
            soak.counted("/readyz 200"),
            millis(soak.health.slowest())
        ),
    );
    let (text, is_flat) = memory(soak);
    say(is_flat, text);
    let (fitting, slowest) = soak.fitting.between(Duration::ZERO, soak.options.length);
    let others: Vec<&String> = complaints.iter().filter(|c| !health(c)).collect();
    say(
        others.is_empty(),
        format!(
            "nothing lost: {} plain pods bound, {fitting} gangs that fit placed (the slowest after {:.1} s); {} complaints",
            soak.counted("created Pod").min(
                soak.plain.between(Duration::ZERO, Duration::MAX).pods as u64
                    + soak.plain.between(Duration::ZERO, Duration::MAX).left_out as u64
            ),
            slowest.as_secs_f64(),
            others.len()
        ),
    );
    say(
        log.panics.is_empty() && log.ended_well,
        format!(
            "log: {} lines, {} panics, {} errors, {} warnings; it ended {} when it was asked to",
            log.lines,
            log.panics.len(),
            log.errors.len(),
            log.warnings,
            if log.ended_well { "well" } else { "badly" }
        ),
    );
    complaints.iter().for_each(|complaint| println!("  - {complaint}"));
    log.panics.iter().chain(log.errors.iter().take(20)).for_each(|line| println!("  - {line}"));
    counts(soak);
    let (minutes, seed) = (soak.options.length.as_secs_f64() / 60.0, soak.options.seed);
    println!("\nAgain: cargo bench --bench soak -- --minutes {minutes} --seed {seed}");
    if is_well {
        // Failing to remove the log leaves only a temporary file.
        let _ = std::fs::remove_file(&log.path);
        println!("PASS");
    } else {
        println!("FAIL; the scheduler's log is {}", log.path.display());
    }
    is_well
}

fn recoveries(soak: &Soak) {
    println!("\n| at s | outage | first pod bound after | all of those before | readiness denied |");
    println!("|-----:|--------|----------------------:|--------------------:|------------------|");
    let shown =
        |time: Option<Duration>| time.map_or("-".into(), |time| format!("{:.2} s", time.as_secs_f64()));
    for outage in soak.outages.all() {
        let unready = match outage.was_unready {
            true => format!("until {:.1} s after", outage.unready.as_secs_f64()),
            false => "never".into(),
        };
        let (first, backlog) = (shown(outage.first_bound), shown(outage.backlog_bound));
        println!(
            "| {:>4.0} | {} | {first} | {backlog} | {unready} |",
            outage.from.as_secs_f64(),
            name(&outage)
        );
    }
}

/// Compares the last quarter with the second: in the first, bounded caches and rings fill up.
fn memory(soak: &Soak) -> (String, bool) {
    let quarter = soak.options.length / 4;
    let (second, last) =
        (soak.health.memory(quarter, quarter * 2).1, soak.health.memory(quarter * 3, quarter * 4).1);
    let growth = last.saturating_sub(second);
    let is_flat = growth * 100 <= second * GROWTH_PERCENT && growth <= GROWTH_KIB;
    let is_judged = soak.options.is_long();
    let not_judged = if is_judged { "" } else { " (not judged: shorter than 10 minutes)" };
    let text = format!(
        "memory: at most {} MiB in the second quarter and {} MiB in the last one{not_judged}",
        second >> 10,
        last >> 10
    );
    (text, is_flat || !is_judged)
}

fn counts(soak: &Soak) {
    for (title, beginning) in [
        ("created", "created "),
        ("refused by the sandbox", "refused "),
        ("single faults", "fault "),
        ("answers", "read "),
        ("feeds", "feed "),
        ("rude readers", "rude "),
        ("livez", "/livez "),
        ("readyz", "/readyz "),
    ] {
        let below = soak.counted_below(beginning);
        let total: u64 = below.iter().map(|(_, n)| n).sum();
        let mut largest = below;
        largest.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let listed: Vec<String> = largest.iter().take(14).map(|(name, n)| format!("{name} {n}")).collect();
        println!("{title}: {total} ({})", listed.join(", "));
    }
}
