//! The volume controller: binds claims to volumes, provisions volumes, and releases them.
//!
//! One task follows volumes, claims and classes. A claim whose class has `WaitForFirstConsumer` waits until a scheduler
//! sets the selected node on it, or names it on a volume. Drivers are simulated: provisioning is immediate, unless a
//! test has put the claim in trouble.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select_all;
use jiff::Timestamp;
use serde_json::Value;

use super::volume_book::{Book, Volume, Wish};
use super::{binding, living, provisioner};
use crate::api::Api;
use crate::clock::later;
use crate::faults::Trouble;
use crate::follow::{Follower, News};
use crate::kinds::storage::{
    BETA_STORAGE_PROVISIONER, BIND_COMPLETED, CLAIMS, CLASSES, NO_PROVISIONER, SELECTED_NODE,
    STORAGE_PROVISIONER, VOLUMES,
};
use crate::options::Options;
use crate::requests::server::Server;
use crate::store::{Change, Key, Object};

/// Delay before a failed provisioning is retried, for a claim that waits for no pod.
const RETRY: Duration = Duration::from_secs(1);

/// A provisioning that is in progress or held up.
struct Attempt {
    uid: Box<str>,
    /// When it goes on; `None` if only a test can let it.
    until: Option<Timestamp>,
    /// Whether the volume is then provisioned; if not, the attempt starts again.
    succeeds: bool,
}

struct Volumes {
    server: Arc<Server>,
    book: Book,
    /// Claims to reconcile.
    claims: BTreeSet<Key>,
    /// Volumes to reconcile.
    volumes: BTreeSet<Arc<str>>,
    /// Class → its unbound claims.
    waiting: BTreeMap<String, BTreeSet<Key>>,
    /// Claims whose provisioning is in progress or held up.
    provisioning: BTreeMap<Key, Attempt>,
}

/// Runs until the sandbox stops.
pub(crate) async fn run(server: Arc<Server>) {
    let mut followers = [VOLUMES, CLAIMS, CLASSES].map(|table| (table, Follower::new(&server, table)));
    let mut troubles = server.faults.subscribe();
    let mut volumes = Volumes {
        server: server.clone(),
        book: Book::default(),
        claims: BTreeSet::new(),
        volumes: BTreeSet::new(),
        waiting: BTreeMap::new(),
        provisioning: BTreeMap::new(),
    };
    loop {
        let mut is_idle = true;
        for (table, follower) in &mut followers {
            let news = follower.take();
            volumes.read(table, &news);
            is_idle &= news.is_empty();
        }
        if troubles.has_changed().unwrap_or_default() {
            troubles.borrow_and_update();
            volumes.release(|attempt| attempt.until.is_none());
        }
        let now = server.api.clock.now();
        volumes.release(|attempt| attempt.until.is_some_and(|until| until <= now));
        is_idle &= volumes.claims.is_empty() && volumes.volumes.is_empty();
        volumes.turn();
        if !is_idle {
            tokio::task::yield_now().await;
            continue;
        }
        let next = volumes.provisioning.values().filter_map(|attempt| attempt.until).min();
        let news = followers.iter_mut().map(|(_, follower)| Box::pin(follower.changed()));
        tokio::select! {
            _ = select_all(news) => {}
            _ = troubles.changed() => volumes.release(|attempt| attempt.until.is_none()),
            () = server.api.clock.wait_until_some(next) => {}
            () = server.shutdown.cancelled() => return,
        }
    }
}

impl Volumes {
    /// Queues what is new.
    fn read(&mut self, table: &str, news: &News) {
        match table {
            VOLUMES if news.starts_over => self.book = Book::default(),
            CLAIMS if news.starts_over => self.claims.extend(self.waiting.values().flatten().cloned()),
            _ => {}
        }
        news.events.iter().for_each(|event| self.notice(table, &event.object, event.change));
    }

    fn notice(&mut self, table: &str, object: &Arc<Object>, change: Change) {
        match table {
            VOLUMES if change == Change::Deleted => {
                self.claims.extend(self.book.get(&object.key.1).and_then(|v| v.claim.clone()).map(|c| c.0));
                self.book.remove(&object.key.1);
            }
            VOLUMES => {
                self.learn(Some(object.clone()));
                self.volumes.insert(object.key.1.clone());
            }
            CLAIMS => _ = self.claims.insert(object.key.clone()),
            _ => self.claims.extend(self.waiting.get(&*object.key.1).into_iter().flatten().cloned()),
        }
    }

    /// Continues the provisionings that are due.
    fn release(&mut self, is_due: impl Fn(&Attempt) -> bool) {
        let due: Vec<Key> = self
            .provisioning
            .iter()
            .filter(|(_, attempt)| is_due(attempt))
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            let succeeds = self.provisioning.remove(&key).is_some_and(|attempt| attempt.succeeds);
            self.look_at_claim(&key, succeeds);
        }
    }

    /// Reconciles everything that is queued; volumes first, so that claims find those that became free.
    fn turn(&mut self) {
        for name in std::mem::take(&mut self.volumes) {
            self.look_at_volume(&name);
        }
        for key in std::mem::take(&mut self.claims) {
            self.look_at_claim(&key, false);
        }
    }

    /// Updates the index with a volume. If it has become free, the claims that may want it are queued.
    fn learn(&mut self, volume: Option<Arc<Object>>) {
        let Some(volume) = volume else { return };
        let is_free = |book: &Book| book.get(&volume.key.1).is_some_and(Volume::is_free);
        let was_free = is_free(&self.book);
        self.book.put(&volume);
        let class = self.book.get(&volume.key.1).map_or("", |volume| &volume.class);
        if !was_free && is_free(&self.book) && !waits_for_consumer(&class_named(&self.server.api, class)) {
            self.claims.extend(self.waiting.get(class).into_iter().flatten().cloned());
        }
    }

    fn look_at_volume(&mut self, name: &str) {
        let server = self.server.clone();
        let api = &server.api;
        let Some(volume) = self.book.get(name).filter(|volume| !volume.is_deleting) else { return };
        let Some((key, uid)) = volume.claim.clone() else { return self.make_available(name) };
        let claim = api.store.get(CLAIMS, &key);
        if uid.is_empty() {
            self.claims.insert(key);
            return self.make_available(name);
        }
        let Some(claim) = claim.filter(|claim| *claim.uid == *uid) else {
            let goes = volume.goes_with_claim;
            if volume.phase != "Released" {
                self.learn(binding::set_phase(api, name, "Released"));
            }
            if goes {
                binding::remove(api, name);
            }
            return;
        };
        match claim.value()["spec"]["volumeName"].as_str().unwrap_or_default() {
            "" => _ = self.claims.insert(key),
            bound if bound == name => {
                if volume.phase != "Bound" {
                    self.claims.insert(key);
                }
            }
            _ if volume.goes_with_claim && !volume.is_bound_by_controller => binding::remove(api, name),
            _ => {
                self.learn(binding::unbind(api, name));
                self.volumes.insert(name.into());
            }
        }
    }

    fn make_available(&mut self, name: &str) {
        if self.book.get(name).is_some_and(|volume| volume.phase != "Available") {
            let available = binding::set_phase(&self.server.api, name, "Available");
            self.learn(available);
        }
    }

    fn look_at_claim(&mut self, key: &Key, is_provisioned: bool) {
        let server = self.server.clone();
        let api = &server.api;
        let Some((_, object, claim)) = living(api, CLAIMS, key) else {
            self.forget(key);
            self.volumes.extend(self.book.of_claim(key).map(|volume| volume.name.clone()));
            return;
        };
        let wish = Wish::new(&claim);
        let named = claim["spec"]["volumeName"].as_str().unwrap_or_default();
        if claim["metadata"]["annotations"][BIND_COMPLETED].is_string() || !named.is_empty() {
            self.forget(key);
            self.keep_or_lose(key, &object, &claim, named, &wish);
            return;
        }
        self.waiting.entry(wish.class.clone()).or_default().insert(key.clone());
        let class = class_named(api, &wish.class);
        let node = claim["metadata"]["annotations"][SELECTED_NODE].as_str().unwrap_or_default();
        let waits = waits_for_consumer(&class) && node.is_empty();
        if let Some(volume) = self.book.find(key, &object.uid, &wish, waits) {
            let name = volume.name.clone();
            return self.learn(binding::bind(api, &name, key, &claim));
        }
        let driver = class["provisioner"].as_str().unwrap_or(NO_PROVISIONER);
        if waits || driver == NO_PROVISIONER {
            self.provisioning.remove(key);
            return;
        }
        if claim["metadata"]["annotations"][STORAGE_PROVISIONER] != driver {
            let names = [STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER].map(|name| (name, Some(driver)));
            binding::annotate_claim(api, key, &object.uid, &names);
        }
        self.provision(&object, &claim, &class, is_provisioned);
    }

    /// Reconciles a claim that names its volume: binds the two, or marks the claim as lost.
    fn keep_or_lose(&mut self, key: &Key, object: &Object, claim: &Value, named: &str, wish: &Wish) {
        let api = &self.server.api;
        let is_complete = claim["metadata"]["annotations"][BIND_COMPLETED].is_string();
        let Some(volume) = self.book.get(named) else {
            // The index may lag behind the store: the volume may be new.
            let is_gone = api.store.get(VOLUMES, &("".into(), named.into())).is_none();
            if is_complete && is_gone {
                binding::lose(api, key);
            }
            return;
        };
        let is_ours = volume.claim.is_none() || volume.is_for(key, &object.uid);
        if is_ours && !volume.is_deleting && (is_complete || volume.is_enough(wish)) {
            let bound = binding::bind(api, named, key, claim);
            self.learn(bound);
        }
    }

    /// Provisions a volume, unless the claim is in trouble.
    fn provision(&mut self, object: &Object, claim: &Value, class: &Value, is_provisioned: bool) {
        let (server, key) = (self.server.clone(), &object.key);
        if self.provisioning.get(key).is_some_and(|attempt| attempt.uid == object.uid) {
            return;
        }
        let is_ours = |trouble| trouble != Trouble::PodNeverEnds;
        let trouble = if is_provisioned { None } else { server.faults.meet(object, is_ours) };
        let now = server.api.clock.now();
        let (until, succeeds) = match trouble {
            Some(Trouble::ProvisioningTakes(time)) => (Some(later(now, time)), true),
            Some(Trouble::ProvisioningFails) => {
                binding::annotate_claim(&server.api, key, &object.uid, &[(SELECTED_NODE, None)]);
                if waits_for_consumer(class) {
                    return;
                }
                (Some(later(now, RETRY)), false)
            }
            Some(_) => (None, false),
            None => return create(&server.api, claim, class),
        };
        self.provisioning.insert(key.clone(), Attempt { uid: object.uid.clone(), until, succeeds });
    }

    fn forget(&mut self, key: &Key) {
        self.provisioning.remove(key);
        self.waiting.retain(|_, keys| {
            keys.remove(key);
            !keys.is_empty()
        });
    }
}

fn create(api: &Api, claim: &Value, class: &Value) {
    if let Some(kind) = api.kind_of(VOLUMES) {
        let volume = provisioner::volume(api, claim, class);
        // A volume of this name can only be the one for this claim.
        let _ = api.create(&kind, "", volume, &Options::internal());
    }
}

/// Returns a class, or null if it does not exist.
fn class_named(api: &Api, name: &str) -> Value {
    api.store.get(CLASSES, &("".into(), name.into())).map(|class| class.value()).unwrap_or_default()
}

fn waits_for_consumer(class: &Value) -> bool {
    class["volumeBindingMode"] == "WaitForFirstConsumer"
}
