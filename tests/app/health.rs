//! `/livez` and `/readyz` are accurate while the scheduling thread hangs, while a watch receives nothing, and after
//! both end. The test advances the scheduler's clock.
#![allow(clippy::disallowed_methods, reason = "a test that waits for something gives up some time")]

use pellucid::framework::points;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use pellucid::app::instance::{Instance, InstanceConfig};
use pellucid::framework::{CycleValue, Filter, Nodes, Plugin, Reads, Registration, View};
use pellucid::model::PodSpec;
use pellucid::sandbox::{Config, Fault, Handle, Match, Sandbox};
use pellucid::{config, plugins};
use serde_json::{Value, json};

use crate::common::running::{Hand, node, parts, pod};
use crate::common::{LOOK_EVERY, PATIENCE, client};

/// A plugin whose filter blocks while its gate is shut, and panics on request.
#[derive(Clone, Default)]
struct Hanging(Arc<(Mutex<bool>, Condvar)>, Arc<AtomicBool>);

impl Hanging {
    fn shut(&self, is_shut: bool) {
        *self.0.0.lock() = is_shut;
        self.0.1.notify_all();
    }
}

impl Plugin for Hanging {
    fn name(&self) -> &'static str {
        "Hanging"
    }
    fn args(&self) -> Value {
        Value::Null
    }
    points! { filter }
}

impl Filter for Hanging {
    fn reads(&self) -> Reads {
        Reads::Node
    }
    fn filter(&self, _: View<'_>, _: &PodSpec, _: &CycleValue, _: &mut Nodes<'_>) {
        let mut is_shut = self.0.0.lock();
        self.0.1.wait_while(&mut is_shut, |is_shut| *is_shut);
        assert!(!self.1.load(Ordering::SeqCst), "the filter was told to panic");
    }
}

/// A sandbox, a scheduler with the plugin, and the scheduler's clock.
struct World {
    sandbox: Handle,
    instance: Instance,
    hanging: Hanging,
    hand: Hand,
}

impl World {
    async fn start() -> Self {
        let objects = vec![node("n", "z", 4)];
        let sandbox = Sandbox::start(Config { objects, ..Config::default() }).await.expect("a sandbox");
        let (hanging, hand) = (Hanging::default(), Hand::default());
        let mut registry = plugins::registry();
        let plugin = hanging.clone();
        let made = move || plugin.clone();
        registry.push(Box::new(Registration::without_args("Hanging", "Hangs while it is told to", made)));
        let text = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Hanging"}]}}}],
        });
        let configuration = config::parse(&text.to_string(), "the test's", &registry)
            .unwrap_or_else(|wrong| panic!("{wrong}"));
        let instance = Instance::start(InstanceConfig {
            configuration,
            registry: Arc::new(registry),
            clock: hand.clock(),
            ..parts(sandbox.kube_config()).await
        });
        Self { instance: instance.await.expect("an instance"), sandbox, hanging, hand }
    }

    /// Advances the scheduler's clock; returns its time in seconds.
    fn pass(&self, seconds: u64) -> u64 {
        self.hand.advance(seconds)
    }

    /// Repeats a request until it returns this status; returns the text.
    async fn until(&self, path: &'static str, status: u16) -> String {
        let (address, end) = (self.instance.address, Instant::now() + PATIENCE);
        loop {
            let reply = get(address, path).await;
            if reply.0 == status {
                return reply.1;
            }
            assert!(Instant::now() < end, "{path} goes on answering {}:\n{}", reply.0, reply.1);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn stop(self) {
        self.instance.stop().await;
        self.sandbox.stop().await;
    }
}

async fn get(address: SocketAddr, path: &'static str) -> (u16, String) {
    let asked = tokio::task::spawn_blocking(move || client::get(address, path));
    let reply = asked.await.expect("answered");
    (reply.status, reply.text().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduling_thread_that_hangs_is_not_alive() {
    let world = World::start().await;
    world.until("/readyz", 200).await;
    // An idle scheduler is alive, however much time passes.
    world.pass(1_000);
    assert_eq!(get(world.instance.address, "/livez").await.0, 200);
    world.hanging.shut(true);
    world.sandbox.create(pod("victim", 100)).expect("a pod");
    // The thread works on the pod while the clock advances: not alive once that takes too long.
    let text = loop {
        let now = world.pass(1);
        let (status, text) = get(world.instance.address, "/livez?verbose").await;
        if status == 503 {
            break text;
        }
        if now > 3_000 {
            panic!("{text}\n{}", get(world.instance.address, "/apis/v1/explain/pods/default/victim").await.1);
        }
    };
    assert!(
        text.contains("[-]scheduling-thread failed: the scheduling thread has been at one piece of work for"),
        "{text}"
    );
    assert!(text.contains("(failing for"), "{text}");
    assert_eq!(get(world.instance.address, "/readyz").await.0, 503, "who is not alive is not ready");
    let metrics = get(world.instance.address, "/metrics").await.1;
    let of =
        |result: u8| format!("kubernetes_healthcheck{{name=\"scheduling-thread\",type=\"livez\"}} {result}");
    assert!(metrics.contains(&of(0)), "{metrics}");
    world.hanging.shut(false);
    world.until("/livez", 200).await;
    assert!(get(world.instance.address, "/metrics").await.1.contains(&of(1)));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_hears_nothing_is_not_ready() {
    let world = World::start().await;
    world.until("/readyz", 200).await;
    let watches = Match { path_contains: "/api/v1/nodes".into(), ..Match::all() };
    world.sandbox.faults().during(watches, Fault::Reset, Duration::from_secs(3600));
    // The failure is known at once and reported once it has lasted.
    let text = loop {
        let now = world.pass(1);
        let (status, text) = get(world.instance.address, "/readyz?verbose").await;
        if status == 503 {
            break text;
        }
        assert!(now < 100_000, "{text}");
    };
    assert!(text.contains("[-]node-watch failed: it has failed for"), "{text}");
    assert!(text.contains("[+]pod-watch ok"), "{text}");
    assert_eq!(get(world.instance.address, "/livez").await.0, 200, "a restart would not help");
    world.sandbox.faults().clear();
    world.until("/readyz", 200).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_whose_thread_has_died_says_so_and_stops() {
    let mut world = World::start().await;
    world.until("/readyz", 200).await;
    world.hanging.1.store(true, Ordering::SeqCst);
    world.sandbox.create(pod("victim", 100)).expect("a pod");
    let why = loop {
        let now = world.pass(1);
        let heard = tokio::time::timeout(Duration::from_millis(10), world.instance.ended()).await;
        match heard {
            Ok(why) => break why,
            Err(_) => assert!(now < 6_000, "it does not end"),
        }
    };
    assert_eq!(why, "the scheduling thread panicked; the message is in the log");
    // An already reported end of the thread does not keep the rest from stopping.
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_to_list_priority_classes_pods_are_placed() {
    let objects = vec![node("n", "z", 4)];
    let sandbox = Sandbox::start(Config { objects, ..Config::default() }).await.expect("a sandbox");
    let classes = Match { resource: Some("priorityclasses".into()), ..Match::all() };
    sandbox.faults().during(classes, Fault::Status(403), Duration::from_secs(3600));
    let instance = Instance::start(parts(sandbox.kube_config()).await).await.expect("an instance");
    let hanging = Hanging::default();
    let world = World { instance, sandbox, hanging, hand: Hand::default() };
    // The kind is optional, so nothing waits for it.
    let text = world.until("/readyz?verbose", 200).await;
    assert!(text.contains("[+]priorityclass.scheduling.k8s.io-watch ok"), "{text}");
    let metrics = get(world.instance.address, "/metrics").await.1;
    let errors = "pellucid_watch_errors_total{kind=\"PriorityClass.scheduling.k8s.io\"} 1";
    assert!(metrics.contains(errors), "{metrics}");
    world.sandbox.create(pod("p", 100)).expect("a pod");
    let path = "/apis/v1/explain/pods/default/p";
    let end = Instant::now() + PATIENCE;
    while !get(world.instance.address, path).await.1.contains("\"node\":\"n\"") {
        assert!(Instant::now() < end, "{}", get(world.instance.address, path).await.1);
        tokio::time::sleep(LOOK_EVERY).await;
    }
    // What only the classes say is asked for, and not made up.
    let mut asked = pod("q", 100);
    asked["spec"]["priorityClassName"] = json!("high");
    let (address, body) = (world.instance.address, json!({"pods": [asked]}));
    let posted = tokio::task::spawn_blocking(move || client::post(address, "/apis/v1/simulate", &body));
    let reply = posted.await.expect("answered");
    let problem = "pods[0].spec.priorityClassName: no PriorityClass \\\"high\\\" is known here";
    assert!(reply.status == 400 && reply.text().contains(problem), "{}", reply.text());
    world.stop().await;
}
