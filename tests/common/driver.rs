//! Drives a scheduler with the default profile without I/O, on a simulated clock.

use std::sync::Arc;
use std::time::Duration;

use pellucid::cluster::Input;
use pellucid::cycle::Scheduler;
use pellucid::cycle::scheduler::turn::Advance;
use pellucid::cycle::scheduler::{Settings, Step};
use pellucid::framework::profile::Profile;
use pellucid::model::Now;
use pellucid::model::effect::{BindOrder, Effect};
use pellucid::model::time::NoProbe;
use pellucid::plugins::registry;
use pellucid::queue::QueueLimits;
use pellucid::recording::switches::Switches;

/// Returns the profile of an empty configuration, under another scheduler name.
pub fn default_profile(scheduler_name: &str) -> Profile {
    let mut profiles = pellucid::config::default(&registry()).expect("the defaults are valid").profiles;
    let mut profile = profiles.remove(0);
    profile.scheduler_name = scheduler_name.into();
    profile
}

/// Returns the settings of a scheduler with one profile.
pub fn settings(profile: Profile) -> Settings {
    Settings {
        profiles: vec![profile],
        registry: Arc::new(registry()),
        limits: QueueLimits::default(),
        seed: 7,
        switches: Arc::new(Switches::default()),
        controllers: Vec::new(),
        shadow_of: None,
    }
}

/// A scheduler and its simulated clock.
pub struct Core {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// Switches that the scheduler reads.
    pub switches: Arc<Switches>,
    /// Current time of the simulated clock.
    pub now: Now,
}

impl Core {
    /// Makes a scheduler; its clock starts at zero.
    pub fn new(settings: Settings) -> Self {
        let switches = settings.switches.clone();
        Self { scheduler: Scheduler::new(settings), switches, now: Now::default() }
    }

    /// Applies one input.
    pub fn apply(&mut self, input: Input) {
        self.scheduler.apply(input, self.now);
    }

    /// Advances the clock and ticks the scheduler.
    pub fn wait(&mut self, time: Duration) {
        self.now.monotonic += time;
        self.now.wall += time;
        self.scheduler.tick(self.now);
    }

    /// Plans the next unit. Returns `None` when no unit is active.
    pub fn step(&mut self) -> Option<Step> {
        self.scheduler.step(self.now, &NoProbe)
    }

    /// Plans the next unit, or part of it.
    pub fn advance(&mut self) -> Advance {
        self.scheduler.advance(self.now, &NoProbe)
    }

    /// Plans until no unit is active.
    pub fn run(&mut self) -> Vec<Step> {
        std::iter::from_fn(|| self.step()).collect()
    }

    /// Advances the clock, and plans until no unit is active.
    pub fn run_after(&mut self, time: Duration) -> Vec<Step> {
        self.wait(time);
        self.run()
    }

    /// Drains all effects and returns the bind orders among them.
    pub fn orders(&mut self) -> Vec<BindOrder> {
        let effects = self.scheduler.take_effects().into_iter();
        effects.filter_map(|e| if let Effect::Bind(order) = e { Some(order) } else { None }).collect()
    }
}
