//! The example LicenceSeats: seats stand on the pods, so no seat is given twice and none is lost, whenever the scheduler is
//! killed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use pellucid::sandbox::{Config, Handle, Sandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::common::process::Process;
use crate::common::running::{node, pod};
use crate::common::{PATIENCE, client, kubeconfig, until};
use crate::examples::binary;

const WANTED: &str = "example.com/licence-seats";
const HELD: &str = "example.com/held-licence-seats";
const PODS: &str = "/api/v1/namespaces/default/pods";
const POOLS: &str = "/apis/example.com/v1/licencepools";
/// Seats of the pool.
const SEATS: usize = 6;
/// How often the scheduler is killed.
const KILLS: u64 = 100;
/// How many of the waiting pods get seats after the last kill, one after another.
const LEFT: usize = 20;

/// Returns the manifests that come with the example: the kind, and a pool.
fn manifests() -> [Value; 2] {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/licence_pools.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let manifests: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    manifests.try_into().unwrap()
}

/// A sandbox with the kind and a pool.
struct Cluster {
    sandbox: Handle,
    kubeconfig: tempfile::NamedTempFile,
    config: tempfile::NamedTempFile,
}

impl Cluster {
    async fn start(seats: usize, lease: Option<u64>) -> Self {
        let objects = (0..3).map(|n| node(&format!("n{n}"), "z", 64)).collect();
        let sandbox = Sandbox::start(Config { objects, ..Config::default() }).await.unwrap();
        let [definition, mut pool] = manifests();
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = client::post(sandbox.address(), definitions, &definition);
        assert_eq!(made.status, 201, "{}", made.text());
        pool["spec"]["seats"] = seats.into();
        if let Some(seconds) = lease {
            pool["spec"]["leaseSeconds"] = seconds.into();
        }
        until("the kind is served", || client::post(sandbox.address(), POOLS, &pool).status == 201);
        let kubeconfig = kubeconfig(&sandbox.url());
        let config = tempfile::NamedTempFile::new().unwrap();
        let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
        std::fs::write(config.path(), text).unwrap();
        Self { sandbox, kubeconfig, config }
    }

    /// Starts the example; returns its address too.
    fn scheduler(&self) -> (Process, SocketAddr) {
        let [kubeconfig, config] = [&self.kubeconfig, &self.config].map(|file| file.path().to_str().unwrap());
        let args = ["--kubeconfig", kubeconfig, "--config", config, "--listen", "127.0.0.1:0"];
        let example = Process::start_binary(binary("licence_seats").to_str().unwrap(), &args);
        let address = client::address_in(&example.wait_for_stderr("rest=http://"));
        (example, address)
    }

    fn create(&self, name: &str, wanted: &str) {
        let mut made = pod(name, 100);
        made["metadata"]["annotations"][WANTED] = wanted.into();
        self.sandbox.create(made).unwrap();
    }

    fn delete(&self, name: &str) {
        let reply = client::request(self.sandbox.address(), "DELETE", &format!("{PODS}/{name}"), "");
        assert!(matches!(reply.status, 200 | 404), "{}", reply.text());
    }

    fn get(&self, path: &str) -> Value {
        client::get(self.sandbox.address(), path).json()
    }

    /// Returns the pods by name, each with its seats if it is bound. Checks that no seat is taken twice.
    fn pods(&self) -> BTreeMap<String, Option<Vec<u64>>> {
        let mut taken: BTreeMap<u64, String> = BTreeMap::new();
        let read = |pod: &Value| {
            let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
            if pod["spec"]["nodeName"].as_str().is_none() {
                return (name, None);
            }
            let text = pod["metadata"]["annotations"][HELD].as_str().unwrap();
            let held: Value = serde_json::from_str(text).unwrap();
            let seats: Vec<u64> =
                held["seats"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
            let wanted = pod["metadata"]["annotations"][WANTED].as_str().unwrap();
            assert_eq!(wanted, format!("solver={}", seats.len()), "{pod}");
            for seat in &seats {
                let other = taken.insert(*seat, name.clone());
                assert!(other.is_none(), "{name} and {other:?} have seat {seat}");
            }
            (name, Some(seats))
        };
        self.get(PODS)["items"].as_array().unwrap().iter().map(read).collect()
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < end, "{what} did not come about: {:?}", self.pods());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Returns the pods with seats as the scheduler knows them, by number.
fn known(address: SocketAddr, n: usize) -> BTreeMap<u64, String> {
    let state = client::wait(address, "/apis/v1/plugins/LicenceSeats/state", "the seats", |body| {
        body["pools"]["solver"].as_object().is_some_and(|all| all.len() == n)
    });
    serde_json::from_value(state["pools"]["solver"].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_are_held_across_a_restart_and_say_why_others_wait() {
    let cluster = Cluster::start(5, None).await;
    let (example, address) = cluster.scheduler();
    cluster.create("a", "solver=2");
    cluster.create("b", "solver=2");
    cluster.until("two pods are bound", || cluster.pods().values().flatten().count() == 2).await;
    cluster.create("c", "solver=2");
    cluster.create("typo", "solver");
    cluster.create("lost", "mesher=1");
    cluster.create("greedy", "solver=6");

    // The numbers are on the pods and in the status of the pool.
    let before = known(address, 4);
    assert_eq!(before.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
    let path = format!("{POOLS}/solver");
    cluster.until("the status says it", || cluster.get(&path)["status"]["taken"] == 4).await;

    // Each verdict has a code of the plugin, and the registry explains it.
    let explained = |name: &str, code: &str| {
        let path = format!("/apis/v1/explain/pods/default/{name}");
        let body = client::wait(address, &path, code, |body| body["verdict"] == "refused");
        let given = &body["podReasons"][0];
        assert_eq!(given["code"], code, "{body}");
        (given.clone(), body["message"].as_str().unwrap().to_owned())
    };
    let (given, message) = explained("c", "NoFreeLicenceSeats");
    assert_eq!(given["remedy"], "Wait for pods to end, or raise spec.seats of the pool.");
    assert!(message.contains("not enough free licence seats: 2 of pool solver, 1 of 5 free"), "{message}");
    explained("typo", "LicenceRequestUnreadable");
    explained("lost", "LicencePoolMissing");
    explained("greedy", "NoFreeLicenceSeats");
    let reasons = client::get(address, "/apis/v1/reasons").json().to_string();
    assert!(reasons.contains("LicencePoolMissing"), "{reasons}");

    // The rights that the kind takes are listed.
    let plugins = client::get(address, "/apis/v1/plugins").json();
    let all = plugins["plugins"].as_array().unwrap();
    let own = all.iter().find(|plugin| plugin["name"] == "LicenceSeats").unwrap();
    let rights = json!({"licencepools": ["list", "watch", "get"], "licencepools/status": ["patch"]});
    let kind = json!({"name": "LicencePool.example.com", "apiVersion": "example.com/v1", "required": false,
        "rights": rights});
    assert_eq!(own["kinds"], json!([kind]));

    // A simulation knows the seats: with one seat more it says that the pod is placed.
    let pool = |seats: usize| {
        let spec = json!({"seats": seats});
        json!([{"applyObject": {"apiVersion": "example.com/v1", "kind": "LicencePool",
            "metadata": {"name": "solver"}, "spec": spec}}])
    };
    let mut asked = pod("asked", 100);
    asked["metadata"]["annotations"][WANTED] = "solver=2".into();
    for (seats, list) in [(5, "refused"), (6, "placements")] {
        let question = json!({"pods": [asked], "edits": pool(seats)});
        let answer = client::post(address, "/apis/v1/simulate", &question);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()[list].as_array().unwrap().len(), 1, "{}", answer.text());
    }

    // After a kill the same pods have the same seats, and the next one gets what is free.
    drop(example);
    let (example, address) = cluster.scheduler();
    assert_eq!(known(address, 4), before);
    cluster.delete("a");
    cluster.until("c is bound", || cluster.pods()["c"].is_some()).await;
    assert_eq!(cluster.pods()["c"], Some(vec![0, 1]));
    known(address, 4);
    drop(example);
    cluster.sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_ends_by_time() {
    let cluster = Cluster::start(1, Some(2)).await;
    let (example, address) = cluster.scheduler();
    cluster.create("first", "solver=1");
    cluster.until("it is bound", || cluster.pods()["first"].is_some()).await;
    cluster.create("second", "solver=1");
    // Both are bound to seat 0, one after the other, so `pods` cannot be asked.
    let path = format!("{PODS}/second");
    cluster.until("it is bound too", || cluster.get(&path)["spec"]["nodeName"].is_string()).await;
    cluster
        .until("it is told", || known(address, 1).get(&0).is_some_and(|pod| pod == "default/second"))
        .await;
    drop(example);
    cluster.sandbox.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_kill_gives_a_seat_twice_or_loses_one() {
    kill(1).await;
}

/// The same with other numbers, so that two cores share the work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_kill_does_either() {
    kill(2).await;
}

/// Kills the scheduler after a number of writes to the API server that differs from time to time.
async fn kill(seed: u64) {
    let cluster = Cluster::start(SEATS, None).await;
    let (mut random, mut made) = (seed, 0u64);
    let mut next = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for _ in 0..KILLS {
        let (example, _) = cluster.scheduler();
        // Half of those with seats end, and others come.
        for (name, seats) in cluster.pods() {
            if seats.is_some() && next(2) == 0 {
                cluster.delete(&name);
            }
        }
        for _ in 0..1 + next(3) {
            cluster.create(&format!("p{made}"), &format!("solver={}", 1 + next(2)));
            made += 1;
        }
        let (begun, writes) = (cluster.sandbox.revision(), next(14));
        // Conditions are written for pods that wait, so there are always some writes; but not always as many.
        let end = Instant::now() + Duration::from_millis(150);
        while cluster.sandbox.revision() < begun + writes && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(example);
        cluster.pods();
    }

    // A few show the same as all would, sooner.
    for (name, _) in cluster.pods().iter().filter(|(_, seats)| seats.is_none()).skip(LEFT) {
        cluster.delete(name);
    }
    // Nothing waits that could have seats, and when all pods have ended, all seats can be given again.
    let (example, address) = cluster.scheduler();
    let waiting = || cluster.pods().values().filter(|seats| seats.is_none()).count();
    loop {
        let before = waiting();
        if before == 0 {
            break;
        }
        for (name, _) in cluster.pods().iter().filter(|(_, seats)| seats.is_some()) {
            cluster.delete(name);
        }
        cluster.until("a pod that waits gets seats", || waiting() < before).await;
    }
    for name in cluster.pods().keys() {
        cluster.delete(name);
    }
    for n in 0..SEATS {
        cluster.create(&format!("last{n}"), "solver=1");
    }
    cluster.until("every seat is given", || cluster.pods().values().flatten().count() == SEATS).await;
    assert_eq!(known(address, SEATS).len(), SEATS);
    drop(example);
    cluster.sandbox.stop().await;
}
