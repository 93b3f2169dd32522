//! Measures how long a small pod with its own node waits to be placed next to gangs that take long.
//!
//! Runs the core on the real clock for a few seconds per case, like the scheduling thread: inputs are applied between
//! two pieces of work, Bindings and evictions are confirmed immediately, and a plain pod is created every 10 ms and
//! deleted one second after it was placed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::cycle::scheduler::Step;
use pellucid::cycle::scheduler::turn::Advance;
use pellucid::model::effect::{BindOutcome, Effect, EffectReport, EvictOutcome};
use pellucid::model::requests::{ContainerRequests, PodRequests, RequestInputs};
use pellucid::model::taint::{Taint, TaintEffect, Toleration, TolerationOperator};
use pellucid::model::time::NoProbe;
use pellucid::model::{GangKey, Node, Now, Pod, PodKey, PodSpec};
use pellucid::recording::Outcome;

use super::world::{empty_scheduler, mark, node, pod, scheduler_of};

const EVERY: Duration = Duration::from_millis(10);
const LIVES: Duration = Duration::from_secs(1);
const CASE: Duration = Duration::from_secs(6);

struct Case {
    scheduler: Scheduler,
    start: Instant,
    /// Pods by key, as created.
    pods: BTreeMap<PodKey, Arc<Pod>>,
    waiting: BTreeMap<PodKey, Duration>,
    living: VecDeque<(Duration, PodKey)>,
    /// Pods that are created while the case runs.
    coming: VecDeque<Arc<Pod>>,
    waits: Vec<Duration>,
    longest: Duration,
    inputs: Duration,
    placed: usize,
    attempts: usize,
}

impl Case {
    /// Creates a cluster of `nodes` nodes with 16 cores, and one node for plain pods.
    fn new(nodes: usize) -> Self {
        Self::of(nodes, empty_scheduler(true))
    }

    /// Like [`Self::new`], with a maximum of `gangs` gangs per group.
    fn with_groups_of(nodes: usize, gangs: usize) -> Self {
        let registry = pellucid::plugins::registry();
        let text = format!(
            "{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: \
             [{{pluginConfig: [{{name: Coscheduling, args: {{maxGroupGangs: {gangs}}}}}]}}]}}"
        );
        let configuration = pellucid::config::parse(&text, "the bench's", &registry).expect("it is valid");
        Self::of(nodes, scheduler_of(configuration.profiles, true))
    }

    fn of(nodes: usize, mut scheduler: Scheduler) -> Self {
        let mut nodes: Vec<Arc<Node>> = (0..nodes).map(|i| Arc::new(node(i * 3))).collect();
        let mut own = node(1);
        own.name = "plain".into();
        own.labels = pellucid::model::selector::Labels::new([("own".into(), "yes".into())]);
        own.taints =
            [Taint { key: "own".into(), value: "yes".into(), effect: TaintEffect::NoSchedule }].into();
        own.allocatable.pods = 10_000;
        own.allocatable.milli_cpu = 1_000_000;
        nodes.push(Arc::new(own));
        let start = Instant::now();
        scheduler.apply(Input::NodesReset { nodes, quarantined: Vec::new() }, Now::default());
        Self {
            scheduler,
            start,
            pods: BTreeMap::new(),
            waiting: BTreeMap::new(),
            living: VecDeque::new(),
            coming: VecDeque::new(),
            waits: Vec::new(),
            longest: Duration::ZERO,
            inputs: Duration::ZERO,
            placed: 0,
            attempts: 0,
        }
    }

    fn now(&self) -> Now {
        let monotonic = self.start.elapsed();
        Now { monotonic, wall: Duration::from_secs(1_700_000_000) + monotonic }
    }

    fn see(&mut self, pod: Arc<Pod>) {
        self.pods.insert(pod.key.clone(), pod.clone());
        let now = self.now();
        self.scheduler.apply(Input::PodApplied(pod), now);
    }

    /// Adds `each` pods of priority 0 with `milli_cpu` to every node.
    fn fill(&mut self, nodes: usize, each: usize, milli_cpu: i64) {
        for i in 0..nodes * each {
            let mut made = pod(&format!("victim-{i:05}"), requesting(milli_cpu));
            Arc::make_mut(&mut made).node_name = Some(format!("node-{:04}", (i / each) * 3).as_str().into());
            self.see(made);
        }
    }

    fn run(mut self, what: &str) {
        let wanted =
            std::env::args().skip_while(|arg| arg != "hostile").nth(1).filter(|arg| !arg.starts_with('-'));
        if wanted.is_some_and(|wanted| !what.contains(&wanted)) {
            return;
        }
        let (begun, mut next, mut n) = (self.start.elapsed(), self.start.elapsed(), 0);
        self.longest = Duration::ZERO;
        while self.start.elapsed() - begun < CASE {
            let now = self.now();
            if now.monotonic >= next {
                next += EVERY;
                n += 1;
                let plain = plain(n);
                self.waiting.insert(plain.key.clone(), next - EVERY);
                self.see(plain);
            }
            if let Some(pod) = self.coming.pop_front() {
                self.see(pod);
            }
            while let Some((_, key)) = self.living.front().filter(|(at, _)| *at <= now.monotonic).cloned() {
                self.living.pop_front();
                self.scheduler.apply(Input::PodDeleted(key), now);
            }
            let before = self.start.elapsed();
            self.scheduler.tick(now);
            let advance = self.scheduler.advance(now, &NoProbe);
            let after = self.start.elapsed();
            self.longest = self.longest.max(after - before);
            if std::env::var_os("PIECES").is_some() && after - before > Duration::from_millis(8) {
                let what =
                    if let Advance::Judged(s) = &advance { s.pod.key.to_string() } else { "paused".into() };
                println!("{:?} {what}", after - before);
            }
            if let Advance::Judged(step) = advance {
                self.judged(&step);
            }
            self.confirm();
            self.inputs = self.inputs.max(self.start.elapsed() - after);
        }
        self.print(what);
    }

    fn judged(&mut self, step: &Step) {
        self.attempts += usize::from(step.gang.is_some());
        for step in step.all().filter(|s| matches!(s.verdict.outcome, Outcome::Placed(_))) {
            if let Some(since) = self.waiting.remove(&step.pod.key) {
                let now = self.start.elapsed();
                self.waits.push(now - since);
                self.living.push_back((now + LIVES, step.pod.key.clone()));
            } else {
                self.placed += 1;
            }
        }
    }

    fn confirm(&mut self) {
        let now = self.now();
        for effect in self.scheduler.take_effects() {
            match effect {
                Effect::Bind(order) => {
                    let (id, uid, key) = (order.id, order.pod.uid.clone(), order.pod.key.clone());
                    let report = EffectReport::BindDone { id, uid, outcome: BindOutcome::Bound };
                    self.scheduler.apply(Input::Report(report), now);
                    if let Some(bound) = self.pods.get_mut(&key) {
                        Arc::make_mut(bound).node_name = Some((*order.node).clone());
                        self.scheduler.apply(Input::PodApplied(bound.clone()), now);
                    }
                }
                Effect::Evict(order) => {
                    let (id, uid) = (order.id, order.victim.uid.clone());
                    let report = EffectReport::EvictDone { id, uid, outcome: EvictOutcome::Deleted };
                    self.scheduler.apply(Input::Report(report), now);
                    self.scheduler.apply(Input::PodDeleted(order.victim.key), now);
                }
                _ => {}
            }
        }
    }

    fn print(mut self, what: &str) {
        // Pods that still wait count with their wait so far.
        let now = self.start.elapsed();
        self.waits.extend(self.waiting.values().map(|since| now.saturating_sub(*since)));
        self.waits.sort();
        let at = |percent: usize| self.waits[(self.waits.len() * percent / 100).min(self.waits.len() - 1)];
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        println!(
            "| {what:<52} | {:>8.1} | {:>8.1} | {:>8.1} | {:>10.1} | {:>10.1} | {:>8} | {:>8} |",
            ms(at(50)),
            ms(at(99)),
            ms(at(100)),
            ms(self.longest),
            ms(self.inputs),
            self.attempts,
            self.placed
        );
    }
}

fn requesting(milli_cpu: i64) -> PodSpec {
    let containers = vec![ContainerRequests::of(vec![("cpu".into(), milli_cpu)])];
    let requests = PodRequests::compute(&RequestInputs { containers, ..RequestInputs::default() });
    PodSpec { requests, n_containers: 1, ..PodSpec::default() }
}

fn plain(n: usize) -> Arc<Pod> {
    let mut spec = requesting(100);
    spec.affinity.selector = [("own".into(), "yes".into())].into();
    let (key, value, operator) = ("own".into(), "yes".into(), TolerationOperator::Equal);
    spec.tolerations = [Toleration { key, value, operator, effect: None }].into();
    pod(&format!("plain-{n:05}"), spec)
}

/// Which gangs a gang names as its partners.
#[derive(Clone, Copy)]
enum Naming {
    Ring,
    Star,
    Clique,
}

/// Returns 500 gangs of three members that must be placed together.
fn named(naming: Naming) -> Vec<Arc<Pod>> {
    const GANGS: usize = 500;
    let key = |g: usize| GangKey::new("default", &format!("named-{:03}", g % GANGS));
    let partners = |g: usize| -> Vec<GangKey> {
        match naming {
            Naming::Ring => [g + GANGS - 1, g, g + 1].map(key).into(),
            Naming::Star if g > 0 => [0, g].map(key).into(),
            Naming::Star | Naming::Clique => (0..GANGS).map(key).collect(),
        }
    };
    let of_gang = |g: usize| {
        let mut groups = partners(g);
        groups.sort();
        let groups: Arc<[GangKey]> = groups.into();
        (0..3).map(move |i| {
            let mut pod = member(&format!("named-{g:03}"), i, 100, 3, 0);
            let made = Arc::make_mut(&mut pod);
            let mut mark = made.gang.as_deref().cloned().expect("a member");
            mark.terms.groups = groups.clone();
            made.gang = Some(Arc::new(mark));
            pod
        })
    };
    (0..GANGS).flat_map(of_gang).collect()
}

fn member(gang: &str, i: usize, milli_cpu: i64, min: u32, memory: i64) -> Arc<Pod> {
    let mut spec = requesting(milli_cpu);
    (spec.priority, spec.requests.list.memory) = (10, memory << 20);
    let mut made = pod(&format!("{gang}-{i:04}"), spec);
    let pod = Arc::make_mut(&mut made);
    (pod.gang, pod.priority) = (Some(Arc::new(mark(gang, min))), 10);
    made
}

/// Prints the table of cases.
pub(crate) fn print() {
    println!(
        "| {:<52} | {:>8} | {:>8} | {:>8} | {:>10} | {:>10} | {:>8} | {:>8} |",
        "ms until a plain pod has its place, beside",
        "p50",
        "p99",
        "max",
        "longest",
        "inputs",
        "attempts",
        "members"
    );
    println!(
        "|{:-<54}|{:->10}|{:->10}|{:->10}|{:->12}|{:->12}|{:->10}|{:->10}|",
        "", "", "", "", "", "", "", ""
    );
    Case::new(400).run("nothing");
    for gangs in [1, 20] {
        let mut case = Case::new(400);
        case.fill(400, 20, 800);
        for g in 0..gangs {
            // 5 members fit on a node, 2,000 in total; 900 members of 9 cores do not fit.
            (0..900).for_each(|i| case.see(member(&format!("equal-{g}"), i, 9_000, 900, 0)));
        }
        case.run(&format!("{gangs} x 900 equal members, 8,000 victims, none fits"));
    }
    for (gangs, milli_cpu, what) in
        [(1, 100, "fits"), (4, 100, "one fits"), (1, 3_000, "does not"), (20, 3_000, "none fits")]
    {
        let mut case = Case::new(400);
        for g in 0..gangs {
            for i in 0..5_000 {
                // On average 600 thousandths more: 3,500 cores, or far more than the 6,400 available.
                case.see(member(
                    &format!("different-{g}"),
                    i,
                    milli_cpu + 1 + i as i64 / 4,
                    5_000,
                    i as i64 % 4,
                ));
            }
        }
        case.run(&format!("{gangs} x 5,000 different members, {what}"));
    }
    let mut case = Case::new(400);
    case.fill(400, 20, 800);
    for i in 0..5_000 {
        case.see(member("different", i, 1_000 + i as i64, 5_000, 0));
    }
    case.run("5,000 different members, 8,000 victims, none fits");
    let mut case = Case::new(400);
    case.fill(400, 20, 800);
    for g in 0..10 {
        (0..200).for_each(|i| case.see(member(&format!("fits-{g}"), i, 2_000, 200, 0)));
    }
    case.run("10 x 200 equal members that preempt and fit");
    let mut case = Case::new(400);
    case.fill(400, 20, 800);
    for g in 0..5 {
        (0..200).for_each(|i| case.see(member(&format!("fits-{g}"), i, 2_000 + i as i64, 200, 0)));
    }
    case.run("5 x 200 different members that preempt and fit");
    for (naming, what) in [(Naming::Ring, "a ring"), (Naming::Star, "a star"), (Naming::Clique, "a clique")] {
        for (limit, how) in [(100, "too large"), (1_000, "planned together")] {
            let mut case = Case::with_groups_of(400, limit);
            case.coming = named(naming).into();
            case.run(&format!("{what} of 500 gangs of 3 that come, {how}"));
        }
    }
}
