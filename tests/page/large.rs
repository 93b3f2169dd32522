//! The page on large clusters, of which a server with generated bodies tells.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::browser::{Browser, keys};
use crate::fixture::{Size, serve};

/// Records tasks that kept the page from responding, those since it was opened included.
pub(crate) const WATCH_TASKS: &str = "window.longest = 0; window.later = 0; const drawn = performance.now(); new PerformanceObserver((list) => { for (const task of list.getEntries()) { if (task.startTime > drawn) window.later = Math.max(window.later, task.duration); window.longest = Math.max(window.longest, task.duration); } }).observe({ type: 'longtask', buffered: true })";

/// Returns the longest task in milliseconds while the feed is asked twice. Needs [`WATCH_TASKS`].
pub(crate) fn longest_while_fed(browser: &Browser) -> f64 {
    let asked = "performance.getEntriesByType('resource').filter((one) => one.name.includes('/apis/v1/events')).length";
    browser.run(&format!("window.later = 0; window.asked = {asked}"));
    let later = browser.wait(&format!("return {asked} >= window.asked + 2 && [window.later]"));
    later[0].as_f64().expect("a number")
}

/// Types into the filter of the pods that wait.
fn filter(browser: &Browser, text: &str) {
    browser.run(&format!("const filter = document.querySelector('#pending .filter'); filter.value = '{text}'; filter.dispatchEvent(new Event('input'))"));
}

#[test]
fn five_thousand_nodes_are_drawn_at_once_and_hang_nothing() {
    let Some(browser) = Browser::start_timed() else { return };
    let fixture = serve(Size { nodes: 5_000, pods: 10_000, gangs: 500, of_one: 20, events: 0, samples: 360 });
    let address = fixture.address;
    browser.prefer("light");
    browser.open(&format!("http://{address}/"));
    let drawn = browser.wait(
        "const is = document.querySelector('#nodes [data-part=box]').dataset.nodes === '5000' && document.querySelectorAll('.pending-group').length === 50 && document.querySelectorAll('.gangs li').length === 30;
         return is && { at: performance.now(), elements: document.querySelectorAll('*').length }",
    );
    browser.run(WATCH_TASKS);
    let millis = drawn["at"].as_f64().expect("a number");
    assert!(millis < 2_000.0, "drawn after {millis} ms");
    assert!(drawn["elements"].as_u64() < Some(5_000), "{drawn}");
    let text = browser.run(
        "return document.querySelector('#pending').innerText + document.querySelector('#view').innerText",
    );
    let text = text.as_str().unwrap_or_default();
    for words in ["10,000 pods in 500 groups", "50 more of 450 groups", "48 more of 420 gangs"] {
        assert!(text.contains(words), "{words:?} is missing in {text}");
    }

    let height = browser.run("return document.querySelector('#nodes canvas').clientHeight");
    assert!((100..260).contains(&height.as_u64().unwrap_or(0)), "{height}");
    browser.run("document.querySelector('#nodes [data-part=box]').focus()");
    browser.press(&[keys::END]);
    let option = browser.run("return document.querySelector('#strip-option').textContent");
    assert!(option.as_str().is_some_and(|text| text.starts_with("gpu-4999")), "{option}");
    for theme in ["light", "dark"] {
        browser.prefer(theme);
        browser.screenshot(&format!("large-{theme}"));
    }

    filter(&browser, "job-499-0998");
    browser
        .wait("return document.querySelector('#pending').innerText.includes('10 of 10,000 pods in 1 group')");
    browser.open(&format!("http://{address}/#/pods/team-0/job-000-00000"));
    let sums = browser.wait("const bar = document.querySelector('.adds-up'); return bar && [bar.dataset.sum, bar.querySelectorAll('.seg').length, document.querySelectorAll('.groups > li').length]");
    assert_eq!(sums, json!(["5000", 14, 40]));
    let longest = browser.run("return window.longest").as_f64().expect("a number");
    assert!(longest < 500.0, "a task of {longest} ms");
}

#[test]
fn a_thousand_pods_are_found_at_once_while_events_go_by() {
    let Some(browser) = Browser::start_timed() else { return };
    let fixture = serve(Size { nodes: 500, pods: 1_000, gangs: 20, of_one: 40, events: 300, samples: 360 });
    let address = fixture.address;
    browser.prefer("dark");
    browser.resize(1_440, 1_200);
    // The best of three: other programs of a busy machine take their time too.
    let draw = || {
        browser.in_new_page(&format!("http://{address}/"));
        let drawn = browser
            .wait("return document.querySelectorAll('.pending-group').length === 25 && performance.now()");
        drawn.as_f64().expect("a number")
    };
    let millis = (0..3).map(|_| draw()).fold(f64::INFINITY, f64::min);
    assert!(millis < 1_000.0, "the groups are there after {millis} ms");
    browser.run(WATCH_TASKS);

    // A group opens to its pods, page by page.
    browser.run("document.querySelector('.pending-group summary').click()");
    browser.wait("return document.querySelectorAll('.pending-group a[data-pod]').length === 20");
    browser.run("document.querySelector('.pending-group li button').click()");
    browser.wait("return document.querySelectorAll('.pending-group a[data-pod]').length === 40");
    // What happens again and again is one line with its count, which grows.
    let times = "[...document.querySelectorAll('.events li[data-kind=Refused]')].map((li) => Number(li.dataset.times)).reduce((a, b) => a + b, 0)";
    browser.wait(&format!("return {times} >= 1000"));
    assert_eq!(browser.run("return document.querySelectorAll('.events li').length"), 25);
    browser.run("document.querySelector('.event-pods').click()");
    browser.wait("return [...document.querySelectorAll('.events li a')].length === 40");
    filter(&browser, "team-3/job-003");
    browser.screenshot("thousand");
    let longest = browser.run("return window.longest");
    assert!(longest.as_f64() < Some(300.0), "a task of {longest} ms");
    // The best of three spells in which the feed is asked twice.
    let later = (0..3).map(|_| longest_while_fed(&browser)).fold(f64::INFINITY, f64::min);
    assert!(later < 100.0, "a task of {later} ms while the feed ran");
    let most = fixture.most_items.load(Ordering::Relaxed);
    assert!(most < 100, "{most} pods or gangs were asked for at once");
}

#[test]
fn a_deadlock_is_said_at_the_top_and_in_the_headline_of_its_gangs() {
    let Some(browser) = Browser::start() else { return };
    let fixture = serve(Size { nodes: 10, pods: 20, gangs: 4, of_one: 10, events: 0, samples: 1 });
    let address = fixture.address;
    let says = "team-1/gang-001 and team-2/gang-002 wait for each other.";
    let holds = "team-2/gang-002 holds 8 nvidia.com/gpu that team-1/gang-001 lacks.";
    browser.open(&format!("http://{address}/"));
    let top = browser.wait(
        "const top = document.querySelector('#deadlocks'); return top.checkVisibility() && top.innerText",
    );
    let above = "return document.querySelector('#deadlocks').getBoundingClientRect().bottom <= document.querySelector('#columns').getBoundingClientRect().top";
    assert_eq!(browser.run(above), true);
    browser.open(&format!("http://{address}/#/gangs/team-1/gang-001"));
    let gang = browser.wait("const line = document.querySelector('#view .deadlock'); return line && document.querySelector('.chips').innerText + line.innerText");
    assert_eq!(browser.run("return document.querySelector('#deadlocks').checkVisibility()"), false);
    for text in [top, gang] {
        let text = text.as_str().unwrap_or_default();
        assert!(text.contains("eadlock") && text.contains(says) && text.contains(holds), "{text}");
    }
}
