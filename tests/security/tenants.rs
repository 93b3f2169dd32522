//! Two tenants on one cluster: whoever sees one namespace finds no name of the other in any answer, and the counts are
//! those of everybody.
//!
//! All names of the other tenant contain [`MARK`], which nothing else does, so a leak is found wherever it is. The routes are
//! those that the server lists; a new one is walked without a change here.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::common::LOOK_EVERY;
use crate::common::client::Reply;
use crate::common::running::{pod, with};
use crate::security::authority::{MINE, asking};
use crate::security::caller::Caller;
use crate::security::two_tenants::{MARK, two_tenants, within};

/// Returns the pages of a path template: each parameter with each value that there is.
fn pages(template: &str, values: &BTreeMap<&str, Vec<String>>) -> Vec<String> {
    let Some(at) = template.find(':') else { return vec![template.to_owned()] };
    let rest = &template[at + 1..];
    let end = rest.find('/').unwrap_or(rest.len());
    let fallback = vec!["x".to_owned()];
    let values_of = values.get(&rest[..end]).unwrap_or(&fallback);
    let each = values_of.iter().map(|value| format!("{}{value}{}", &template[..at], &rest[end..]));
    each.flat_map(|page| pages(&page, values)).collect()
}

fn whole(reply: &Reply) -> String {
    let headers: Vec<String> = reply.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    format!("{}\n{}", headers.join("\n"), String::from_utf8_lossy(&reply.body))
}

/// Routes that a tenant gets nothing from: what is of the whole cluster, and what there is in shadow mode alone.
const WITHHELD: [&str; 3] = ["/apis/v1/shadow", "/apis/v1/snapshot", "/configz"];

/// Query strings under which every route is walked as well.
const QUERIES: [&str; 4] = ["", "?format=table", "?format=csv", "?limit=2"];

/// Who ask at once: each user has a rate of its own.
const CALLERS: [&str; 2] = ["ann", "amy"];

/// What a tenant and the administrator were told.
#[derive(Default)]
struct Found<'a> {
    /// Pages that the tenant got.
    told: usize,
    /// Pages that tell the administrator a name of the other tenant.
    seen: usize,
    leaks: Vec<String>,
    /// Templates of the pages that the tenant got.
    answered: BTreeSet<&'a str>,
}

impl<'a> Found<'a> {
    fn add(&mut self, template: &'a str, page: &str, reply: &Reply, others: Option<String>) {
        if reply.status == 200 {
            self.told += 1;
            self.answered.insert(template);
        }
        // The tenant's own question has the mark in it.
        let answer = whole(reply);
        if answer.contains(MARK) && !(page.contains(MARK) && reply.status != 200) {
            let at = answer.find(MARK).unwrap_or(0);
            let around = answer.char_indices().filter(|(i, _)| i + 150 > at && *i < at + 60).map(|(_, c)| c);
            self.leaks.push(format!("{page}: …{}…", around.collect::<String>()));
        }
        self.seen += usize::from(others.is_some_and(|answer| answer.contains(MARK)));
    }
}

/// Further pages, each with what it must not say.
fn further() -> Vec<String> {
    let summaries = ["namespace", "owner", "gang", "shape", "code,namespace", "ownerOrShape"]
        .map(|by| format!("/apis/v1/summary/pending?by={by}"));
    let more = [
        "/apis/v1/explain/pods/team-a/own-huge?mode=exhaustive",
        "/apis/v1/explain/pods/team-a/own-huge?versus=n1",
        "/apis/v1/explain/pods/team-a/own-urgent?versus=n1",
        "/apis/v1/queue?position=team-a/own-huge",
        "/apis/v1/explain/pods?sort=-priority,name",
        "/apis/v1/explain/pods?name=xq7",
        "/apis/v1/explain/pods?owner=xq7-deploy",
        "/apis/v1/gangs?name=xq7",
        "/apis/v1/events?limit=10000",
        "/apis/v1/events?since=1",
        "/apis/v1/explain/pods/team-a/xq7-huge",
        "/apis/v1/explain/nodes/n0?limit=1000",
    ];
    summaries.into_iter().chain(more.map(str::to_owned)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answer_names_what_belongs_to_another_tenant() {
    asking(two_tenants().await, |secure| {
        let root = secure.user("root");
        let mine = |name| secure.user(name).with_header(&format!("X-Pellucid-Namespaces: {MINE}"));
        let own = root.get(&format!("/apis/v1/explain/pods?namespace={MINE}&limit=0")).json();
        let mut names: BTreeSet<String> =
            own["pods"].as_array().unwrap().iter().map(|pod| text(pod, "name")).collect();
        names.extend(
            [
                "own-small",
                "own-urgent",
                "own-light",
                "own-group",
                "own-light-0",
                "own Große Gang, 2",
                "own-half",
                "own-pinned",
                "own-owner",
                "own-quota",
                "room-1",
                "room-2",
                "large-1",
                "queue-1",
                "queue-2",
                "n0",
                "n1",
                "n2",
            ]
            .map(str::to_owned),
        );
        let escaped = |name: String| name.replace(' ', "%20").replace('ß', "%C3%9F").replace(',', "%2C");
        let values = BTreeMap::from([
            ("namespace", vec![MINE.to_owned()]),
            ("name", names.into_iter().map(escaped).collect()),
            ("nodeName", vec!["n0".into(), "n1".into(), "n2".into()]),
            ("kind", vec!["Reservation".into()]),
            ("flag", vec!["s".into(), "f".into(), "v".into()]),
            ("file", vec!["app.js".into(), "swagger-ui.css".into()]),
        ]);
        let services = root.get("/apis/v1/__services__").json();
        let templates = services["GET"].as_array().unwrap().iter().map(|path| path.as_str().unwrap());
        let templates: Vec<&str> = templates.collect();
        let mut walked = Vec::new();
        for template in &templates {
            let all = pages(template, &values).into_iter();
            // Of one object there are no pages, and rarely rows.
            let queries = if template.ends_with(":name") { &QUERIES[..2] } else { &QUERIES[..] };
            let each = |page: String| queries.iter().map(move |query| (*template, format!("{page}{query}")));
            walked.extend(all.flat_map(each));
        }
        walked.extend(further().into_iter().map(|page| ("", page)));
        let (next, found) = (Mutex::new(walked.iter()), Mutex::new(Found::default()));
        let take = || next.lock().next();
        std::thread::scope(|scope| {
            for caller in CALLERS.map(mine) {
                let (take, found, root) = (&take, &found, &root);
                scope.spawn(move || {
                    while let Some((template, page)) = take() {
                        let reply = patient(&caller, page);
                        // Two forms of each page are enough to see that the names are there for others.
                        let is_compared = !page.contains('?') || page.ends_with("=csv");
                        let others = is_compared.then(|| whole(&patient(root, page)));
                        found.lock().add(template, page, &reply, others);
                    }
                });
            }
        });
        let Found { told, seen, leaks, answered } = found.into_inner();
        let audit = root.get("/apis/v1/debug").json()["audit"].to_string();
        assert!(
            audit.matches("xq7-robot").count() >= 2,
            "the other tenant's account is in the audit: {audit}"
        );
        assert!(leaks.is_empty(), "{} of {} leak:\n{}", leaks.len(), walked.len(), leaks.join("\n"));
        let is_silent = |template: &&str| !answered.contains(*template) && !WITHHELD.contains(template);
        let silent: Vec<&str> = templates.into_iter().filter(is_silent).collect();
        assert!(silent.is_empty(), "the tenant gets nothing but errors from {silent:?}");
        assert!(told > 300, "only {told} of {} were answered", walked.len());
        assert!(seen > 30, "the other one sees names in {seen} answers only");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_words_of_answers_take_nothing_out_of_those_of_others() {
    asking(two_tenants().await, |secure| {
        let (root, ann) = (secure.user("root"), secure.user("ann"));
        let ann = ann.with_header(&format!("X-Pellucid-Namespaces: {MINE}"));
        let path = format!("/apis/v1/explain/pods/{MINE}/own-huge");
        let of = |who: &Caller| {
            let body = who.get(&path).json();
            ["profile", "message"].map(|field| body[field].clone())
        };
        let seen = of(&root);
        assert_eq!(seen[0], "pellucid");
        assert!(seen[1].as_str().is_some_and(|text| text.contains("0/3 nodes are")), "{seen:?}");
        assert_eq!(of(&ann), seen);
        let summary = ann.get("/apis/v1/summary/pending?by=code").json();
        assert!(summary["rows"].as_array().is_some_and(|rows| !rows.is_empty()), "{summary}");
        let samples = |who: &Caller, part: &str| {
            let answer = patient(who, "/metrics");
            let text = answer.text();
            text.lines()
                .filter(|line| line.contains(part))
                .map(|line| line.split(' ').next().unwrap().to_owned())
                .collect()
        };
        for part in ["profile=\"pellucid\"", "le=\""] {
            let (all, seen): (BTreeSet<String>, BTreeSet<String>) =
                (samples(&root, part), samples(&ann, part));
            assert!(!seen.is_empty() && seen.is_superset(&all), "{part}: {:?}", all.difference(&seen));
        }
    })
    .await;
}

fn text(body: &Value, field: &str) -> String {
    body[field].as_str().unwrap_or_default().to_owned()
}

/// Asks again while the caller is told to come back.
fn patient(caller: &Caller, page: &str) -> Reply {
    loop {
        let reply = caller.get(page);
        if reply.status != 429 {
            return reply;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simulations_name_no_other_tenant_and_counts_are_right() {
    asking(two_tenants().await, |secure| {
        let (root, ann) = (secure.user("root"), secure.user("ann"));
        let ann = ann.with_header(&format!("X-Pellucid-Namespaces: {MINE}"));
        let urgent = within(with(pod("own-new", 3_900), "priority", json!(1000)), MINE);
        for question in [
            json!({"pods": [urgent], "evict": true, "scores": 10}),
            json!({"include": ["team-a/own-huge"], "evict": true}),
            json!({"includeGangs": ["team-a/own-group"], "edits": [{"removeNode": "n0"}]}),
        ] {
            let reply = ann.post("/apis/v1/simulate", &question);
            assert_eq!(reply.status, 200, "{}", reply.text());
            assert!(!whole(&reply).contains(MARK), "{}", reply.text());
        }
        for foreign in ["xq7-tenant/xq7-huge", "xq7-tenant/nobody"] {
            let reply = ann.post("/apis/v1/simulate", &json!({"include": [foreign]}));
            assert_eq!(reply.status, 403, "it is not told whether {foreign} exists: {}", reply.text());
        }
        let counts = |body: &Value| {
            body["nodeGroups"].as_array().unwrap().iter().map(|g| g["count"].clone()).collect()
        };
        for name in ["own-huge", "own-beside", "own-claiming"] {
            let path = format!("/apis/v1/explain/pods/{MINE}/{name}");
            let of = |who: &Caller| -> Vec<Value> { counts(&who.get(&path).json()) };
            assert_eq!(of(&root), of(&ann), "{name}");
        }
        let total = |who: &Caller| {
            let rows = who.get("/apis/v1/summary/pending?by=namespace").json();
            rows["rows"].as_array().unwrap().iter().map(|row| row["pods"].as_u64().unwrap()).sum::<u64>()
        };
        assert!(total(&root) > 0 && total(&root) == total(&ann), "everybody's pods are counted");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_counts_nor_the_order_of_rows_tell_names_of_another_tenant() {
    asking(two_tenants().await, |secure| {
        let (root, ann) = (secure.user("root"), secure.user("ann"));
        let ann = ann.with_header(&format!("X-Pellucid-Namespaces: {MINE}"));
        let total = |who: &Caller, filter: &str| {
            let body = who.get(&format!("/apis/v1/summary/pending?by=code&{filter}")).json();
            body["totalPending"].as_u64().unwrap()
        };
        for (theirs, own) in [
            ("quota=xq7-quota", "quota=own-quota"),
            ("owner=xq7-deploy,xq7-nobody", "quota=zz-quota"),
            ("name=xq7", "name=own"),
            ("gang=xq7-group", "gang=own-group"),
        ] {
            assert_eq!(total(&ann, theirs), 0, "{theirs} is told to exist");
            assert!(total(&ann, own) > 0, "{own} has pods that wait");
        }
        assert!(total(&root, "quota=xq7-quota") > 0);
        // The other tenant's quota is between two own ones by name.
        let order = |who: &Caller, sort: &str| {
            let body = who.get(&format!("/apis/v1/summary/pending?by=quota{sort}")).json();
            let rows = body["rows"].as_array().unwrap().iter().map(|row| text(&row["groups"], "quota"));
            rows.filter(|quota| ["own-quota", "xq7-quota", "zz-quota", "(hidden)"].contains(&quota.as_str()))
                .collect()
        };
        let of = |who: &Caller, sort: &str| -> Vec<String> { order(who, sort) };
        assert_eq!(of(&root, "&sort=quota"), ["own-quota", "xq7-quota", "zz-quota"]);
        for sort in [
            "",
            "&sort=quota",
            "&sort=-quota",
            "&sort=name",
            "&sort=-name",
            "&sort=namespace",
            "&sort=owner",
            "&sort=gang",
        ] {
            let rows = of(&ann, sort);
            assert_eq!(rows.len(), 3, "{sort}: {rows:?}");
            assert_ne!(rows[1], "(hidden)", "{sort}: {rows:?} tells where the hidden name is");
        }
    })
    .await;
}
