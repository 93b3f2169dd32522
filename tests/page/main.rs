//! The page at `/` in a real browser: Chromium on the demo, on a scheduler with 1,000 pods that wait, and on generated
//! clusters of up to 5,000 nodes.
//!
//! Without chromium and chromedriver on the PATH the tests report that and pass. `PELLUCID_SCREENSHOTS` names a
//! folder for screenshots.

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod fixture;
mod hardware;
mod hour;
mod large;
mod live;
mod names;
mod verdicts;

use std::net::SocketAddr;

use browser::{Browser, keys};
use common::demo::Demo;
use serde_json::{Value, json};

fn url(demo: &Demo, view: &str) -> String {
    format!("http://{}/{view}", demo.rest)
}

const STRIP: &str = "document.querySelector('#nodes [data-part=box]')";
const TITLE: &str = "document.querySelector('#view-title')?.textContent";

/// Returns whether a log entry is expected: the page requests the score table of a pod that may have none, and
/// browsers log the 404.
fn is_expected(entry: &Value) -> bool {
    let message = entry["message"].as_str().unwrap_or_default();
    message.contains("/apis/v1/scores/") && message.contains("404")
}

#[track_caller]
fn assert_quiet(browser: &Browser, origin: SocketAddr) {
    let complaints: Vec<Value> =
        browser.log("browser").into_iter().filter(|entry| !is_expected(entry)).collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    let requests = browser.requests();
    let ours = format!("http://{origin}/");
    let elsewhere: Vec<&String> =
        requests.iter().filter(|url| !url.starts_with(&ours) && !url.starts_with("data:")).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    assert!(requests.len() > 20, "{requests:?}");
}

#[test]
fn the_demo_is_shown_and_adds_up() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&[]);
    browser.prefer("light");
    browser.open(&url(&demo, ""));
    browser.wait(&format!("return {STRIP}.dataset.nodes === '33'"));
    let node = browser.run("const option = document.querySelector('#strip-option'); return [option.textContent, option.getAttribute('aria-setsize')]");
    assert_eq!(node[1], "33");
    assert!(
        node[0].as_str().is_some_and(|text| text.starts_with("edge-01 · ready · 1 pod · CPU 13")),
        "{node}"
    );

    let pods = browser.wait(
        "const pods = [...document.querySelectorAll('.pending-group a[data-pod]')];
         return pods.length > 4 && pods.map((a) => [a.closest('.pending-group').dataset.code, a.dataset.pod])",
    );
    let names = |code: &str| -> Vec<Value> {
        let all = pods.as_array().into_iter().flatten();
        all.filter(|pod| pod[0] == code).map(|pod| pod[1].clone()).collect()
    };
    for (code, pod) in [
        ("InsufficientResource", "demo/needs-500-cores"),
        ("HostPortConflict", "demo/third-on-port-443"),
        ("SchedulingGated", "demo/gated"),
        ("Unreadable", "demo/unreadable"),
    ] {
        assert!(names(code).contains(&json!(pod)), "{pod} is not under {code} in {pods:#}");
    }

    for pod in ["needs-16-gpus", "needs-500-cores", "third-on-port-443"] {
        browser.open(&url(&demo, &format!("#/pods/demo/{pod}")));
        browser.wait(&format!("return {TITLE} === 'demo/{pod}'"));
        let sums = browser.wait("const bar = document.querySelector('.adds-up'); return bar && [bar.dataset.sum, bar.dataset.total, document.querySelectorAll('.groups > li').length, bar.querySelectorAll('.seg').length]");
        assert_eq!((&sums[0], &sums[1]), (&json!("33"), &json!("33")), "{pod}");
        assert!(sums[2].as_u64() > Some(2) && sums[2] == sums[3], "{pod}: {sums}");
    }
    let text = browser.run("return document.querySelector('#view').innerText");
    let text = text.as_str().unwrap_or_default();
    for words in
        ["NodePorts", "HostPortConflict", "use another host port", "Pod/Delete", "0/33 nodes are available"]
    {
        assert!(text.contains(words), "{words:?} is missing in {text}");
    }

    browser.wait("return [...document.querySelectorAll('.fixes > li')].some((fix) => fix.innerText.includes('kubectl label nodes') && fix.innerText.includes('verified') && fix.innerText.includes('other pending pods'))");

    browser.open(&url(&demo, "#/gangs/demo/render"));
    let sets = browser.wait(
        "const sets = [...document.querySelectorAll('[data-set]')];
         return sets.length && Object.fromEntries(sets.map((set) => [set.dataset.set, set.querySelectorAll('li').length]))",
    );
    assert_eq!(sets, json!({"waiting": 2, "pending": 1}));
    let clocks = "[...document.querySelectorAll('.set time[data-clock=since]')].map((time) => time.textContent).join()";
    let before = browser.wait(&format!("return {clocks}"));
    browser.wait(&format!("return {clocks} !== '{}'", before.as_str().unwrap_or_default()));

    browser.open(&url(&demo, "#/nodes/tiny-01"));
    browser.wait("return document.querySelector('#view').innerText.includes('demo/urgent')");
    // The page shows the feed if there is one, and no empty frame otherwise.
    let services = demo.get("/apis/v1/__services__").json();
    let is_fed = services["GET"].as_array().is_some_and(|paths| paths.contains(&json!("/apis/v1/events")));
    if is_fed {
        browser.wait("return document.querySelectorAll('.events li a').length > 5");
    } else {
        browser.wait("return document.querySelector('#feed').hidden");
    }
    assert_quiet(&browser, demo.rest);
}

#[test]
fn the_keyboard_alone_reaches_a_verdict() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&[]);
    browser.open(&url(&demo, ""));
    browser.wait("return document.querySelectorAll('.pending-group a[data-pod]').length > 8");
    let focused = "const e = document.activeElement; return e.dataset.pod ?? e.dataset.part ?? e.id ?? ''";
    browser.press(&[keys::TAB]);
    assert_eq!(browser.run(focused), "skip");
    // The strip is one tab stop, and so is the list.
    let mut stops = Vec::new();
    while stops.last() != Some(&json!("box")) {
        browser.press(&[keys::TAB]);
        stops.push(browser.run(focused));
        assert!(stops.len() < 12, "{stops:?}");
    }
    browser.press(&[keys::RIGHT, keys::END, keys::ENTER]);
    browser.wait(&format!("return {TITLE} === 'tiny-01' && document.activeElement.id === 'view-title'"));
    // The overview is there with the next key, however soon it comes.
    browser.press(&[keys::ESCAPE, "p", keys::DOWN]);
    assert_eq!(browser.run("return location.hash"), "#/");
    let first = browser.wait("return document.activeElement.dataset.pod");
    browser.press(&[keys::ENTER]);
    browser.wait(&format!("return {TITLE} === {first} && document.activeElement.id === 'view-title'"));
    browser.wait("return document.querySelectorAll('.groups > li').length > 1");
    browser.press(&[keys::ESCAPE]);
    browser.wait(&format!("return document.activeElement.dataset.pod === {first}"));

    browser.press(&["?"]);
    browser.wait("return document.querySelector('#help').open");
    browser.press(&[keys::ESCAPE]);
    browser.wait("return !document.querySelector('#help').open");
    browser.press(&["/"]);
    browser.press(&["g", "p", "u", "-", "0", "2"]);
    browser
        .wait("return document.querySelector('#found [aria-selected=true]')?.textContent.includes('gpu-02')");
    browser.press(&[keys::ENTER]);
    browser.wait(&format!("return {TITLE} === 'gpu-02'"));
    // Every tab stop is visibly focused.
    for _ in 0..5 {
        browser.press(&[keys::TAB]);
        let outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle");
        assert_eq!(outline, "solid", "{}", browser.run(focused));
    }
}

#[test]
fn light_and_dark_differ_by_system_and_by_choice() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&[]);
    browser.open(&url(&demo, ""));
    browser.wait(&format!(
        "return {STRIP}.dataset.nodes === '33' && document.querySelectorAll('.gangs li').length === 7"
    ));
    let colours = "return [getComputedStyle(document.body).backgroundColor, document.querySelector('#nodes canvas').toDataURL().length, getComputedStyle(document.body).color]";
    let mut seen = Vec::new();
    for theme in ["light", "dark"] {
        browser.prefer(theme);
        browser.screenshot(&format!("demo-{theme}"));
        seen.push(browser.run(colours));
    }
    assert!((0..3).all(|at| seen[0][at] != seen[1][at]), "{seen:?}");
    let choose =
        "document.querySelector('#theme').click(); return document.documentElement.dataset.theme ?? 'auto'";
    assert_eq!(browser.run(choose), "light");
    assert_eq!(browser.run(colours)[0], seen[0][0], "the choice wins over the system");
    browser.in_new_page(&url(&demo, "#/pods/demo/needs-16-gpus"));
    assert_eq!(browser.run("return document.documentElement.dataset.theme"), "light", "the choice is kept");
    assert_eq!(browser.run(choose), "dark");
    assert_eq!(browser.run(choose), "auto");
    browser.wait("return document.querySelectorAll('.groups > li').length > 2");
    for theme in ["light", "dark"] {
        browser.prefer(theme);
        browser.resize(1440, 1300);
        browser.screenshot(&format!("verdict-{theme}"));
        browser.resize(420, 900);
        let wide = browser.run("return document.documentElement.scrollWidth");
        assert!(wide.as_u64() <= Some(420), "a narrow window scrolls sideways: {wide}");
        browser.screenshot(&format!("narrow-{theme}"));
    }
}

#[test]
fn scores_are_recorded_at_the_press_of_a_button() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&[]);
    browser.open(&url(&demo, "#/pods/demo/ingress-1"));
    let cost = browser.wait("return document.querySelector('.control')?.innerText.includes('What it costs') && document.querySelector('.control').innerText");
    assert!(
        cost.as_str()
            .is_some_and(|text| text.contains("Record score tables") && text.contains("written to the log")),
        "{cost}"
    );
    browser.run("document.querySelector('.control button').click()");
    browser.wait("return document.querySelector('.control button').textContent === 'Stop recording'");
    demo.create_pod("scored", &json!({}));
    demo.wait("/apis/v1/scores/demo/scored", |_| true);
    browser.open(&url(&demo, "#/pods/demo/scored"));
    let table = browser.wait(
        "const rows = [...document.querySelectorAll('table.scores tbody tr')];
         return rows.length > 1 && rows.map((row) => [...row.querySelectorAll('td')].map((cell) => Number(cell.textContent) || 0))",
    );
    for row in table.as_array().expect("rows") {
        let numbers: Vec<i64> = row.as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
        assert_eq!(numbers[0], numbers[1..].iter().sum::<i64>(), "the weighted scores add up to the total");
    }
    browser.run("document.querySelector('.control button').click()");
    browser.wait("return document.querySelector('.control button').textContent === 'Record score tables'");
    assert_quiet(&browser, demo.rest);
}

#[test]
fn what_the_cluster_says_stays_text() {
    const MARKUP: &str = "<img src=x onerror=\"document.title='broken'\">";
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&[]);
    let term = json!({"matchExpressions": [{"key": "pool", "operator": MARKUP, "values": ["a"]}]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}});
    demo.create_pod("marked", &json!({"affinity": affinity}));
    browser.open(&url(&demo, "#/pods/demo/marked"));
    browser.wait("return document.querySelector('#view .lead')?.textContent.includes('<img src=x')");
    // It is in a group with the other one that cannot be read.
    browser.wait("const group = document.querySelector('[data-code=Unreadable] summary'); group?.click(); return group");
    browser.wait("return document.querySelector('[data-pod=\"demo/marked\"]')");
    assert_eq!(browser.run("return document.querySelectorAll('#view img, #pending img').length"), 0);
    // A URL that names nothing useful, or is malformed, still shows something.
    browser.open(&url(&demo, "#/pods/demo/%3Cb%3Enobody"));
    browser.wait("return document.querySelector('#view').innerText.includes('demo/<b>nobody is not known')");
    browser.open(&url(&demo, "#/pods/%E0%A4%A"));
    browser.wait("return document.querySelector('.gangs')");
}

#[test]
fn a_scheduler_that_goes_away_is_said_so_and_comes_back() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&[]);
    let address = demo.rest.to_string();
    browser.open(&url(&demo, "#/pods/demo/needs-500-cores"));
    browser.wait("return document.querySelectorAll('.groups > li').length > 2");
    drop(demo);
    browser.wait("const banner = document.querySelector('#banner'); return !banner.hidden && banner.innerText.includes('does not answer')");
    // The last content remains visible.
    assert_eq!(browser.run("return document.querySelectorAll('.groups > li').length > 2"), true);
    assert_eq!(browser.run(&format!("return {STRIP}.dataset.nodes")), "33");
    let _again = Demo::start_at(&address, &[]);
    browser.run("document.querySelector('#again').click()");
    browser.wait("return document.querySelector('#banner').hidden && document.querySelector('#state').dataset.state === 'live'");
    // The events are those of the new process, and the gap is reported once, without a number.
    let marks = browser.wait(
        "const marks = [...document.querySelectorAll('.events li.gap')].map((li) => li.innerText);
         return document.querySelectorAll('.events li a').length > 5 && marks.length && marks",
    );
    assert_eq!(marks, json!(["the scheduler began anew; what happened meanwhile is not known here"]));
}
