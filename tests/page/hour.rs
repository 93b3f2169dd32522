//! The last hour as small multiples: drawn from two samples on, read by pointer and by keys, with names and values for
//! screen readers.

use serde_json::{Value, json};

use crate::browser::{Browser, keys};
use crate::common::demo::Demo;
use crate::fixture::{Size, serve};

const SIZE: Size = Size { nodes: 20, pods: 100, gangs: 3, of_one: 10, events: 0, samples: 360 };

const CHARTS: &str = "[...document.querySelectorAll('.trend')]";

#[test]
fn the_last_hour_is_read_by_pointer_and_by_keys() {
    let Some(browser) = Browser::start() else { return };
    let fixture = serve(SIZE);
    browser.prefer("light");
    browser.resize(1_440, 1_300);
    browser.open(&format!("http://{}/", fixture.address));
    let drawn = browser.wait(&format!(
        "const charts = {CHARTS}; return charts.length && charts.map((li) => li.querySelector('.trend-head').innerText.replace('\\n', ': '))"
    ));
    let wave = (359.0_f64 / 25.0).sin();
    let lacking = 400 + (100.0 * wave) as usize;
    assert_eq!(drawn[0], format!("Pending: {} pods", lacking + 40 + 359 / 20 + 7));
    let titles: Vec<&str> = drawn
        .as_array()
        .expect("charts")
        .iter()
        .filter_map(|text| text.as_str()?.split(':').next())
        .collect();
    let expected = [
        "Pending",
        "Bindings",
        "Attempts",
        "Wait until placed, p99",
        "Insufficient resource",
        "Untolerated taint",
        "Too many pods",
    ];
    assert_eq!(titles, expected);
    // One sample without a value does not break the line.
    let lines = "return document.querySelectorAll('[data-trend=wait] .trend-line').length";
    assert_eq!(browser.run(lines), 1);
    let heading = "return [...document.querySelectorAll('#view h3')].map((h) => h.textContent).includes('The last hour')";
    assert_eq!(browser.run(heading), true);

    // By keys: one tab stop, time to the left and right, charts up and down.
    assert_eq!(browser.run("return document.querySelectorAll('.trend-box[tabindex=\"0\"]').length"), 1);
    browser.press(&["t"]);
    let focused = "const box = document.activeElement; return [box.closest('.trend')?.dataset.trend, box.getAttribute('role'), box.getAttribute('aria-valuenow'), box.getAttribute('aria-valuetext')]";
    let local = |time: &str| {
        browser.run(&format!("return new Date('2026-01-01T{time}Z').toLocaleTimeString('en-GB')"))
    };
    let told = |at: usize, text: &str, time: &str| json!([text, "slider", at.to_string(), time]);
    let newest = local("00:59:50");
    let text = format!("{} pods at {}", lacking + 40 + 17 + 7, newest.as_str().unwrap_or_default());
    assert_eq!(browser.run(focused), told(359, "pending", &text));
    browser.press(&[keys::HOME, keys::RIGHT, keys::DOWN, keys::DOWN, keys::DOWN, keys::DOWN, keys::DOWN]);
    let early = local("00:00:10");
    let text = format!("40 pods at {}", early.as_str().unwrap_or_default());
    assert_eq!(browser.run(focused), told(1, "reason UntoleratedTaint", &text));
    let outline = browser.run("return getComputedStyle(document.activeElement).outlineStyle");
    assert_eq!(outline, "solid");
    // All charts show that moment.
    let shown =
        browser.run(&format!("return {CHARTS}.map((li) => li.querySelector('.trend-foot').innerText)"));
    assert!(shown.as_array().is_some_and(|all| all.iter().all(|one| *one == early)), "{shown}");
    browser.run("document.activeElement.blur()");
    let shown = browser
        .run("return document.querySelector('[data-trend=\"reason TooManyPods\"] .trend-foot').innerText");
    assert_eq!(shown, "up to 7 pods");

    // By pointer.
    let over = browser.run("const box = document.querySelector('[data-trend=pending] .trend-box'); const { left, top } = box.getBoundingClientRect(); box.dispatchEvent(new PointerEvent('pointermove', { clientX: left, clientY: top + 5 })); return document.querySelector('[data-trend=pending] .trend-head strong').textContent");
    assert_eq!(over, "447 pods");
    for theme in ["light", "dark"] {
        browser.prefer(theme);
        browser.run("document.querySelector('.trends').scrollIntoView()");
        browser.screenshot(&format!("hour-{theme}"));
    }
}

#[test]
fn nothing_is_drawn_of_a_single_sample() {
    let Some(browser) = Browser::start() else { return };
    let fixture = serve(Size { samples: 1, ..SIZE });
    browser.open(&format!("http://{}/", fixture.address));
    let asked = "performance.getEntriesByType('resource').some((one) => one.name.endsWith('/apis/v1/trends') && one.responseEnd > 0)";
    browser.wait(&format!("return {asked} && document.querySelector('.gangs')"));
    let drawn = browser.run("return [document.querySelectorAll('.trend').length, document.querySelector('#view').innerText.includes('The last')]");
    assert_eq!(drawn, json!([0, false]));
}

#[test]
fn the_demo_has_trends_after_two_samples() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&[]);
    browser.open(&format!("http://{}/", demo.rest));
    // A busy machine may be too slow to count reasons for every sample.
    let is_whole = |one: &&Value| one["reasons"].is_array();
    let body = demo.wait("/apis/v1/trends", |body| {
        let samples = body["samples"].as_array().map(Vec::as_slice).unwrap_or_default();
        samples.len() >= 2 && samples.iter().any(|one| is_whole(&one))
    });
    assert_eq!((&body["everySeconds"], &body["meta"]["kind"]), (&json!(10), &json!("Trends")));
    let samples = body["samples"].as_array().expect("samples");
    let whole = samples.iter().find(is_whole).expect("one with reasons");
    let listed = whole["reasons"].as_array().expect("reasons").iter();
    let counted: u64 = listed.filter_map(|one| one["pods"].as_u64()).sum();
    let others = whole["otherReasons"].as_u64().unwrap_or(0);
    assert_eq!(
        Some(counted + others),
        whole["pending"].as_u64(),
        "every pending pod has one reason: {whole}"
    );
    let second = &samples[1];
    assert!(second["attemptsPerSecond"].is_number() && second["bindsPerSecond"].is_number(), "{second}");
    let text = demo.get("/apis/v1/trends?format=csv").text().to_owned();
    assert!(
        text.starts_with("At,Seconds,Pending,Binds per second") && text.contains("InsufficientResource pods"),
        "{text}"
    );
    browser.wait("return document.querySelector('[data-trend=pending] .trend-head strong')?.textContent.endsWith(' pods')");
}
