//! Well-behaved readers: all endpoints, explanations, suggestions, simulations, open feeds, and switches.

use std::io::Read;
use std::thread::Scope;
use std::time::Duration;

use serde_json::{Value, json};

use super::rng::Rng;
use super::state::Soak;
use super::{gangs, nodes, pods, wire};

/// Number of readers of all endpoints, of simulations, and of feeds.
const ANYTHING: u64 = 8;
const SIMULATIONS: u64 = 2;
const FEEDS: u64 = 2;
/// Longer than the server's time limits for queueing and answering a request together.
const PATIENCE: Duration = Duration::from_secs(40);

/// Starts all readers.
pub(crate) fn start<'a>(scope: &'a Scope<'a, '_>, soak: &'a Soak) {
    for n in 0..ANYTHING {
        scope.spawn(move || read_anything(soak, soak.rng(100 + n)));
    }
    for n in 0..SIMULATIONS {
        scope.spawn(move || simulate(soak, soak.rng(200 + n)));
    }
    for n in 0..FEEDS {
        scope.spawn(move || follow(soak, soak.rng(300 + n)));
    }
    scope.spawn(move || switch(soak, soak.rng(400)));
}

/// Counts a response. Status 500 is a complaint, because it means that a handler panicked.
fn note(soak: &Soak, target: &str, answer: std::io::Result<(u16, Vec<u8>)>) -> Option<Vec<u8>> {
    match answer {
        Ok((status, body)) => {
            soak.count(format!("read {status}"));
            let code = serde_json::from_slice::<Value>(&body).unwrap_or_default();
            if status == 503 {
                soak.count(format!("read 503 {}", code["code"].as_str().unwrap_or_default()));
            }
            if status == 500 {
                soak.complain(format!("{target} answers 500: {}", String::from_utf8_lossy(&body)));
            }
            Some(body)
        }
        Err(error) => {
            soak.count(format!("read failed: {}", error.kind()));
            None
        }
    }
}

/// Returns the path templates of all `GET` endpoints.
fn served(soak: &Soak) -> Vec<String> {
    let answer = wire::get(soak.address, "/apis/v1/__services__", PATIENCE);
    let services: Value =
        answer.ok().and_then(|(_, body)| serde_json::from_slice(&body).ok()).unwrap_or_default();
    let paths = services["GET"].as_array().into_iter().flatten();
    let paths: Vec<String> = paths.filter_map(|path| Some(path.as_str()?.to_owned())).collect();
    if paths.len() < 20 {
        soak.complain(format!("__services__ has {} paths", paths.len()));
    }
    paths
}

/// Fills in a path template, mostly with existing names.
fn fill(soak: &Soak, rng: &mut Rng, template: &str) -> String {
    let gang = || soak.gangs.lock().clone();
    let names = if template.contains(":name") { pods_and_nobody(soak) } else { Vec::new() };
    let part = |part: &str| match part {
        ":namespace" => "default".to_owned(),
        ":name" if template.contains("gang") => rng.pick(&gang()).cloned().unwrap_or_else(|| "nobody".into()),
        ":name" => rng.pick(&names).cloned().unwrap_or_default(),
        ":nodeName" => nodes::common_name(rng.below(nodes::COMMON + 1)),
        ":flag" => {
            rng.pick(&["s", "f", "v", "log", "reuse", "budget"]).copied().unwrap_or_default().to_owned()
        }
        ":file" => "index.html".to_owned(),
        other => other.to_owned(),
    };
    let filled: Vec<String> = template.split('/').map(part).collect();
    let path = filled.join("/");
    let query: &[&str] = match path.rsplit('/').next() {
        _ if rng.chance(10) => &["?format=csv", "?nonsense=1", "?max=-1", "?minGeneration=99999999999"],
        Some("suggestions") => &["", "?mode=exhaustive", "?max=3"],
        _ if path.starts_with("/apis") => &["", "", "?format=table"],
        _ => &[""],
    };
    format!("{path}{}", rng.pick(query).copied().unwrap_or_default())
}

fn pods_and_nobody(soak: &Soak) -> Vec<String> {
    let names = soak.sandbox.names("pods").into_iter().map(|(_, name)| name);
    names.filter(|name| !name.starts_with("plain-")).chain(["nobody".to_owned()]).collect()
}

fn read_anything(soak: &Soak, mut rng: Rng) {
    let templates: Vec<String> = served(soak).into_iter().filter(|path| path != "/apis/v1/events").collect();
    let dear: Vec<&String> =
        templates.iter().filter(|path| path.contains("explain") || path.contains("gang")).collect();
    while soak.pause(rng.millis(50, 400)) {
        let template = if rng.chance(40) { rng.pick(&dear).copied() } else { rng.pick(&templates) };
        let Some(template) = template else { return };
        let target = fill(soak, &mut rng, template);
        note(soak, &target, wire::get(soak.address, &target, PATIENCE));
    }
}

/// Sends simulations: odd pods, rings of gangs, removed nodes, and pending gangs.
fn simulate(soak: &Soak, mut rng: Rng) {
    let mut number = 0;
    while soak.pause(rng.millis(500, 2_000)) {
        number += 1;
        let made = match rng.below(4) {
            0 => gangs::related(&mut rng, number),
            1 => gangs::equal(&mut rng, number),
            2 => gangs::different(&mut rng, number),
            _ => (0..5).map(|n| pods::odd(&mut rng, number * 10 + n)).collect(),
        };
        let node = nodes::common_name(rng.below(nodes::COMMON));
        let edits =
            [json!([]), json!([{"removeNode": node}]), json!([{"uncordon": node}]), json!([{"nonsense": 1}])];
        let included = soak.gangs.lock().last().map(|gang| format!("default/{gang}"));
        let include: Vec<String> = included.into_iter().filter(|_| rng.chance(30)).collect();
        let body = json!({"pods": made, "edits": rng.pick(&edits), "includeGangs": include, "stateHash": rng.chance(10)});
        let answer = wire::ask(soak.address, "POST", "/apis/v1/simulate", Some(&body.to_string()), PATIENCE);
        note(soak, "/apis/v1/simulate", answer);
    }
}

/// Reads the event feed for up to a minute, and reconnects.
fn follow(soak: &Soak, mut rng: Rng) {
    while soak.pause(rng.millis(100, 1_000)) {
        let since = if rng.chance(50) { "?since=0" } else { "" };
        let target = format!("/apis/v1/events{since}");
        let Ok(mut stream) = wire::send(soak.address, "GET", &target, None, Duration::from_millis(500))
        else {
            soak.count("feed refused");
            continue;
        };
        let until = soak.now() + rng.millis(5_000, 60_000);
        let mut piece = vec![0; 1 << 16];
        while soak.now() < until && !soak.is_load_over() {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(_) => soak.count("feed pieces"),
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(_) => break,
            }
        }
    }
}

/// Turns switches on and off again, some for limited pods or time, and sends invalid values.
fn switch(soak: &Soak, mut rng: Rng) {
    let put = |flag: &str, value: &str| {
        let target = format!("/debug/flags/{flag}");
        note(soak, &target, wire::ask(soak.address, "PUT", &target, Some(value), PATIENCE));
    };
    while soak.pause(rng.millis(1_000, 5_000)) {
        // Some of these values are valid for `log`, which takes a number as a module name.
        match rng.below(8) {
            0 => put("s", "100"),
            1 => put("f", "true"),
            2 => put(
                "s",
                "{\"topN\": 5, \"selector\": \"app=hostile\", \"ttlSeconds\": 5, \"maxRecords\": 100}",
            ),
            3 => put("v", rng.pick(&["0", "2", "5", "10"]).copied().unwrap_or_default()),
            4 => put("log", "{\"value\": \"info,pellucid::kubernetes=debug\", \"ttlSeconds\": 2}"),
            5 => put("budget", rng.pick(&["0", "5", "10"]).copied().unwrap_or_default()),
            6 => put(
                rng.pick(&["s", "f", "v", "log", "reuse", "budget", "recorder", "nobody"])
                    .copied()
                    .unwrap_or_default(),
                rng.pick(&["loud", "-1", "", "{", "{\"ttlSeconds\": -1}", "99999999999999999999"])
                    .copied()
                    .unwrap_or_default(),
            ),
            _ => {
                note(soak, "/debug/flags", wire::get(soak.address, "/debug/flags", PATIENCE)).map_or((), drop)
            }
        }
        if !soak.pause(rng.millis(500, 3_000)) || rng.chance(70) {
            for (flag, value) in [("s", "0"), ("f", "false"), ("v", "2"), ("budget", "10")] {
                put(flag, value);
            }
        }
    }
}
