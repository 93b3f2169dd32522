//! One settled cluster: its objects, the snapshot that is read, and the answers that users get of it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use pellucid::app::rest::routes::routes;
use pellucid::cycle::Snapshot;
use pellucid::diagnosis::reads::{SnapshotRead, reads};
use pellucid::framework::endpoint::{PathParams, ReadError};
use pellucid::http::{Answers, Params, RequestInfo, Route};
use pellucid::model::Now;
use pellucid::plugins::registry;
use serde_json::Value;

use crate::made;
use crate::objects::{Objects, list, text};
use crate::random::Rng;
use crate::trial::Live;

static READS: LazyLock<Vec<SnapshotRead>> = LazyLock::new(|| reads(&registry()));
static ROUTES: LazyLock<Vec<Route<Snapshot>>> = LazyLock::new(|| routes(&registry()));

/// A settled cluster.
pub(crate) struct Case {
    pub(crate) seed: u64,
    /// What was there before the first decision.
    pub(crate) initial: Objects,
    /// What is there now.
    pub(crate) objects: Objects,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) now: Now,
    /// Pods that wait, in the order of the queue.
    pub(crate) waiting: Vec<String>,
}

impl Case {
    /// Makes the cluster of a seed and lets it settle. Returns `None` when it does not, or when places are held that no
    /// object shows.
    pub(crate) fn of(seed: u64) -> Option<Self> {
        Self::made_of(seed, made::cluster(seed))
    }

    /// Does the same of a cluster on which Koordinator's plugins decide too.
    pub(crate) fn of_koordinator(seed: u64) -> Option<Self> {
        Self::made_of(seed, made::koordinator_cluster(seed))
    }

    fn made_of(seed: u64, initial: Objects) -> Option<Self> {
        let live = settled(&initial)?;
        let (mut core, objects) = (live.core, live.objects);
        let snapshot = Arc::new(core.scheduler.publish(core.now));
        let mut case = Self { seed, initial, objects, snapshot, now: core.now, waiting: Vec::new() };
        let queue = case.ask("/apis/v1/queue");
        let units = list(&queue["units"]).iter();
        let pods = units.flat_map(|unit| list(&unit["pods"])).map(|pod| text(pod).to_owned());
        case.waiting = pods.collect();
        Some(case)
    }

    /// Returns a running scheduler in the state of the snapshot.
    pub(crate) fn again(&self) -> Live {
        settled(&self.initial).expect("it settled before")
    }

    /// Answers a read as the server does.
    pub(crate) fn try_ask(&self, target: &str) -> Result<Value, ReadError> {
        ask(&self.snapshot, self.now, target)
    }

    /// Does the same, and expects success.
    pub(crate) fn ask(&self, target: &str) -> Value {
        self.try_ask(target).unwrap_or_else(|error| panic!("seed {}: {target}: {error:?}", self.seed))
    }

    /// Answers a read about a pod.
    pub(crate) fn of_pod(&self, key: &str, end: &str) -> Value {
        self.ask(&format!("/apis/v1/explain/pods/{key}{end}"))
    }

    /// Answers `POST /apis/v1/simulate`.
    pub(crate) fn simulate(&self, body: &Value) -> Result<Value, String> {
        simulate(&self.snapshot, self.now, body)
    }

    /// Returns the pods that stand for reservations without a place.
    pub(crate) fn reservations(&self) -> impl Iterator<Item = &String> {
        self.waiting.iter().filter(|key| self.objects.stood_for(key).is_some())
    }

    /// Draws some of the pods that wait, the same for every kind of claim.
    pub(crate) fn sample(&self, most: usize) -> Vec<String> {
        let mut rest = self.waiting.clone();
        rest.retain(|key| self.objects.pods.contains_key(key));
        let rng = &mut Rng::new(self.seed, 2);
        let mut drawn = Vec::new();
        while drawn.len() < most && !rest.is_empty() {
            drawn.push(rest.remove(rng.below(rest.len())));
        }
        drawn
    }
}

fn settled(initial: &Objects) -> Option<Live> {
    let mut live = Live::of(initial.clone());
    if !live.settle() {
        return None;
    }
    let cluster = live.core.scheduler.cluster();
    let is_quiet = cluster.nominator().nodes().next().is_none()
        && live.objects.pending().all(|(key, _)| {
            let id = cluster.find_pod(&crate::trial::pod_key(key));
            id.and_then(|id| cluster.pod(id)).is_none_or(|record| record.node.is_none())
        });
    is_quiet.then_some(live)
}

/// Answers a read on a snapshot.
pub(crate) fn ask(snapshot: &Snapshot, now: Now, target: &str) -> Result<Value, ReadError> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let asked: Vec<&str> = path.split('/').collect();
    let fits = |template: &str| {
        let template: Vec<&str> = template.split('/').collect();
        let same = |(t, a): (&&str, &&str)| t.starts_with(':') || t == a;
        template.len() == asked.len() && template.iter().zip(&asked).all(same)
    };
    let read = READS.iter().find(|read| fits(&read.path)).unwrap_or_else(|| panic!("nobody answers {path}"));
    let pairs = read.path.split('/').zip(&asked);
    let own = pairs.filter_map(|(t, a)| Some((t.strip_prefix(':')?.to_owned(), (*a).to_owned())));
    let given = query.split('&').filter_map(|pair| pair.split_once('='));
    let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let params: PathParams = own.chain(given).collect::<BTreeMap<_, _>>().into_iter().collect();
    (read.read)(snapshot, &params, now)
}

/// Answers `POST /apis/v1/simulate` on a snapshot.
pub(crate) fn simulate(snapshot: &Snapshot, now: Now, body: &Value) -> Result<Value, String> {
    let route = ROUTES.iter().find(|route| route.path == "/apis/v1/simulate").expect("it is registered");
    let Answers::Json(read) = &route.answers else { panic!("it answers JSON") };
    let info = RequestInfo { now, ..RequestInfo::default() };
    let params = Params::default().with_body(body.to_string()).expect("JSON");
    read(snapshot, &params, &info).map_err(|error| format!("{error:?}"))
}
