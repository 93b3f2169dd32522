//! What was tried, and what came of it: a table by kind of claim, and the findings with their smallest example.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::case::Case;

/// A claim that is not so.
#[derive(Clone)]
struct Finding {
    seed: u64,
    size: usize,
    text: String,
    objects: String,
}

/// Findings of one class: how many, and the smallest.
#[derive(Clone)]
struct Class {
    count: usize,
    seeds: Vec<u64>,
    smallest: Finding,
}

/// The claims of one kind.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    pub(crate) tried: usize,
    pub(crate) truths: usize,
    pub(crate) falses: usize,
    pub(crate) inconsistent: usize,
    pub(crate) missed: usize,
    /// Claims that cannot be tried: edits that the test does not know, answers that say that they are cut.
    pub(crate) skipped: usize,
    classes: BTreeMap<String, Class>,
}

/// Most seeds listed per class.
const MOST_SEEDS: usize = 12;

impl Tally {
    fn found(&mut self, case: &Case, class: &str, text: String) {
        let finding =
            Finding { seed: case.seed, size: case.objects.size(), text, objects: case.objects.shown() };
        self.add(class, Class { count: 1, seeds: vec![case.seed], smallest: finding });
    }

    fn add(&mut self, class: &str, other: Class) {
        match self.classes.get_mut(class) {
            Some(known) => {
                known.count += other.count;
                known.seeds.extend(other.seeds);
                known.seeds.sort_unstable();
                known.seeds.dedup();
                known.seeds.truncate(MOST_SEEDS);
                let key = |finding: &Finding| (finding.size, finding.seed);
                if key(&other.smallest) < key(&known.smallest) {
                    known.smallest = other.smallest;
                }
            }
            None => _ = self.classes.insert(class.to_owned(), other),
        }
    }

    /// Notes whether a claim came true.
    pub(crate) fn check(&mut self, case: &Case, class: &str, holds: bool, text: impl FnOnce() -> String) {
        self.tried += 1;
        if holds {
            self.truths += 1;
        } else {
            self.falses += 1;
            self.found(case, class, text());
        }
    }

    /// Notes whether two answers agree.
    pub(crate) fn agree(&mut self, case: &Case, class: &str, holds: bool, text: impl FnOnce() -> String) {
        self.tried += 1;
        if holds {
            self.truths += 1;
        } else {
            self.inconsistent += 1;
            self.found(case, class, text());
        }
    }

    /// Notes whether an obvious change that helps was named.
    pub(crate) fn named(&mut self, case: &Case, class: &str, holds: bool, text: impl FnOnce() -> String) {
        self.tried += 1;
        if holds {
            self.truths += 1;
        } else {
            self.missed += 1;
            self.found(case, class, text());
        }
    }

    /// Notes a claim that cannot be tried, and why.
    pub(crate) fn skip(&mut self, case: &Case, class: &str, text: impl FnOnce() -> String) {
        self.skipped += 1;
        self.found(case, &format!("not tried: {class}"), text());
    }

    /// Adds what another part of the seeds found.
    pub(crate) fn merge(&mut self, other: Self) {
        self.tried += other.tried;
        self.truths += other.truths;
        self.falses += other.falses;
        self.inconsistent += other.inconsistent;
        self.missed += other.missed;
        self.skipped += other.skipped;
        for (class, found) in other.classes {
            self.add(&class, found);
        }
    }

    /// Returns the findings for people: every class with its smallest example, the objects of the smallest of all.
    pub(crate) fn shown(&self, kind: &str, all_objects: bool) -> String {
        let mut out = format!(
            "{kind}: tried {}, true {}, false {}, inconsistent {}, missed {}, not tried {}\n",
            self.tried, self.truths, self.falses, self.inconsistent, self.missed, self.skipped
        );
        for (class, found) in &self.classes {
            let Class { count, seeds, smallest } = found;
            out += &format!("\n  [{class}] {count} times, seeds {seeds:?}\n");
            out += &format!("    seed {}: {}\n", smallest.seed, smallest.text);
        }
        let smallest = self.classes.values().map(|class| &class.smallest).min_by_key(|f| (f.size, f.seed));
        if let Some(smallest) = smallest.filter(|_| all_objects || !self.passes()) {
            out += &format!("\n  objects of seed {}:\n{}", smallest.seed, smallest.objects);
            out += &format!(
                "\n  again: PELLUCID_TRUTH_SEED={} cargo test --test truth {kind} -- --nocapture\n",
                smallest.seed
            );
        }
        out
    }

    /// Returns whether nothing is false and nothing contradicts itself, and less than 0.5 % is missed.
    pub(crate) fn passes(&self) -> bool {
        self.falses == 0 && self.inconsistent == 0 && self.missed * 200 <= self.tried
    }
}

/// What the kinds found that ran in this process.
static TABLE: Mutex<BTreeMap<&'static str, (usize, Tally)>> = Mutex::new(BTreeMap::new());

/// Adds a kind to the table, and writes the table to the file that `PELLUCID_TRUTH_REPORT` names.
pub(crate) fn publish(kind: &'static str, tally: &Tally, seeds: usize) {
    let mut table = TABLE.lock();
    table.insert(kind, (seeds, tally.clone()));
    let mut out = "| kind of claim | clusters | tried | true | false | inconsistent | missed |\n".to_owned();
    out += "|---|---:|---:|---:|---:|---:|---:|\n";
    let mut sum = Tally::default();
    for (kind, (seeds, tally)) in &*table {
        out += &row(kind, &seeds.to_string(), tally);
        sum.merge(Tally { classes: BTreeMap::new(), ..tally.clone() });
    }
    out += &row("all", "", &sum);
    if let Ok(file) = std::env::var("PELLUCID_TRUTH_REPORT") {
        std::fs::write(&file, &out).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
}

fn row(kind: &str, seeds: &str, tally: &Tally) -> String {
    let Tally { tried, truths, falses, inconsistent, missed, .. } = tally;
    format!("| {kind} | {seeds} | {tried} | {truths} | {falses} | {inconsistent} | {missed} |\n")
}
