//! What the page shows of one verdict, on the demo: the relevant nodes first, fixes that can be tried, two nodes
//! compared, the queue in its order.

use serde_json::json;

use crate::browser::Browser;
use crate::common::demo::Demo;

fn open(browser: &Browser, demo: &Demo, view: &str) {
    browser.open(&format!("http://{}/{view}", demo.rest));
}

#[test]
fn the_nodes_that_matter_come_first_and_taints_have_names() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&["--still"]);
    open(&browser, &demo, "#/pods/demo/not-of-finance");
    let groups = browser.wait("const groups = [...document.querySelectorAll('.groups > li')]; return groups.length > 2 && groups.map((li) => li.innerText)");
    let text = |at: usize| groups[at].as_str().unwrap_or_default().to_owned();
    assert!(text(0).contains("the nearest is among them") && text(0).contains("finance-01"), "{groups:#}");
    assert!(text(0).contains("taint team=finance:NoSchedule: on 1 of 33 nodes"), "{groups:#}");
    let last = text(groups.as_array().map_or(0, Vec::len) - 1);
    assert!(last.contains("NodeAffinity") && last.contains("nodeSelector pool=finance"), "{groups:#}");
    let is_empty = "return [...document.querySelectorAll('#view section')].filter((part) => part.checkVisibility() && !part.innerText.split('\\n').slice(1).join('').trim()).map((part) => part.innerText)";
    assert_eq!(browser.run(is_empty), json!([]));
}

#[test]
fn a_fix_can_be_tried_and_shows_what_it_changes() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&["--still"]);
    open(&browser, &demo, "#/pods/demo/not-of-finance");
    browser.wait("const fix = [...document.querySelectorAll('.fixes > li')].find((li) => li.innerText.includes('tolerate taint')); fix?.querySelector('.fix-note button').click(); return fix");
    let tried = browser.wait("const row = document.querySelector('.trial tr.chosen'); return row && [...row.children].map((cell) => cell.innerText)");
    assert_eq!(tried, json!(["demo/not-of-finance", "no place", "finance-01"]));
    // The cluster is as it was.
    let explained = demo.get("/apis/v1/explain/pods/demo/not-of-finance").json();
    assert_eq!(explained["verdict"], "refused");
}

#[test]
fn two_nodes_are_compared_at_two_clicks() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&["--still"]);
    demo.create_pod("somewhere", &json!({}));
    let placed = demo.wait("/apis/v1/explain/pods/demo/somewhere", |body| body["verdict"] == "placed");
    let node = placed["placement"]["node"].as_str().expect("a node").to_owned();
    open(&browser, &demo, "#/pods/demo/somewhere");
    let arm = "document.querySelector('[data-key=\"pick nodes\"]')";
    browser.wait(&format!(
        "return {arm} && document.querySelector('#nodes [data-part=box]').dataset.nodes === '33'"
    ));
    // Its own node is one of the two; the other one is clicked on the strip, which opens nothing now.
    browser.run(&format!("{arm}.click()"));
    browser.run("const canvas = document.querySelector('#nodes canvas'), box = canvas.getBoundingClientRect(); canvas.dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: box.left + 20, clientY: box.top + 12}))");
    let shown =
        browser.wait("const lead = document.querySelector('.contrast .lead'); return lead && lead.innerText");
    assert!(shown.as_str().is_some_and(|text| text.contains(&node)), "{shown} is not about {node}");
    assert_eq!(browser.run("return location.hash"), "#/pods/demo/somewhere");
    assert_eq!(browser.run(&format!("return {arm}.getAttribute('aria-pressed')")), "false");
    // Two nodes of which neither is its own.
    browser.run("const [a, b] = document.querySelectorAll('form.filters input'); a.value = 'repair-01'; b.value = 'repair-02'; a.form.requestSubmit()");
    browser.wait("const parts = [...document.querySelectorAll('.contrast .part')]; return parts.length === 2 && parts.every((part) => part.innerText.includes('NodeUnschedulable'))");
}

#[test]
fn the_queue_is_shown_in_its_order_page_by_page() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&["--still"]);
    for n in 0..60 {
        demo.create_pod(
            &format!("large-{n:02}"),
            &json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "900"}}}]}),
        );
    }
    let is_settled = |body: &serde_json::Value| {
        let units = body["units"].as_array().into_iter().flatten();
        let large =
            units.filter(|unit| unit["key"].as_str().is_some_and(|key| key.starts_with("demo/large")));
        large.count() == 60 && body["counts"]["active"] == 0
    };
    let all = demo.wait("/apis/v1/queue?limit=0&fields=key", is_settled);
    let keys = |from: usize, to: usize| -> Vec<String> {
        let units = all["units"].as_array().expect("units");
        units[from..to.min(units.len())]
            .iter()
            .map(|unit| unit["key"].as_str().expect("a key").to_owned())
            .collect()
    };
    open(&browser, &demo, "#/queue");
    let rows =
        "[...document.querySelectorAll('#view tbody tr')].map((row) => row.querySelector('a').textContent)";
    let first = browser.wait(&format!("const rows = {rows}; return rows.length === 50 && rows"));
    assert_eq!(first, json!(keys(0, 50)));
    browser.run("[...document.querySelectorAll('.walk button')].find((button) => button.textContent === 'Next').click()");
    let second = browser.wait(&format!("const rows = {rows}; return rows.length < 50 && rows"));
    assert_eq!(second, json!(keys(50, usize::MAX)));
    browser.run("[...document.querySelectorAll('.walk button')].find((button) => button.textContent === 'First').click()");
    browser.wait(&format!("return {rows}.length === 50"));
}

#[test]
fn quotas_are_nested_bars_that_say_who_borrows_and_who_is_short() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&["--still"]);
    open(&browser, &demo, "#/");
    // The list of what waits leads there.
    browser.wait("const to = document.querySelector('#pending a[href=\"#/quotas\"]'); return to.checkVisibility() && (to.click(), true)");
    let nested = browser.wait(
        "const all = [...document.querySelectorAll('#view .quota')];
         return all.length === 6 && all.map((one) => [one.dataset.quota, one.closest('.quotas .quotas')?.parentElement.querySelector('.quota').dataset.quota ?? ''])",
    );
    let expected = [
        ("product", ""),
        ("search", "product"),
        ("research", ""),
        ("nlp", "research"),
        ("speech", "research"),
        ("vision", "research"),
    ];
    assert_eq!(nested, json!(expected.map(|(quota, parent)| [quota, parent])));
    let said = browser.wait(
        "const of = (name) => document.querySelector(`[data-quota=${name}]`);
         return of('vision').innerText.includes('1 pod waiting') && ['vision', 'nlp'].map((name) => of(name).querySelector('[role=img]').ariaLabel + '; ' + [...of(name).querySelectorAll('.chip')].map((chip) => chip.textContent.replace(/^\\W+/, '')).join(', '))",
    );
    assert_eq!(
        said,
        json!([
            "vision uses 16 of 12 that it may use now; min 4, max 20, requests 20, borrows 8; over by 4, borrows 8, 1 pod waiting",
            "nlp uses 0 of 4 that it may use now; min 4, max 12, requests 4; 4 short of its min, 1 pod waiting",
        ])
    );
    // Widths are shares of one length.
    let widths = browser.run("return ['quota-max', 'quota-runtime', 'quota-used'].map((kind) => document.querySelector(`[data-quota=vision] .${kind}`).style.inlineSize)");
    assert_eq!(widths, json!(["100%", "60%", "80%"]));
    crate::assert_quiet(&browser, demo.rest);
}
