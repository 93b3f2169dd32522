//! What a screen reader is told: everything that can be operated or stands for something has a name, in every view.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::common::demo::Demo;

/// Roles whose elements say nothing without a name.
const NAMED: &[&str] = &[
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "slider",
    "listbox",
    "option",
    "checkbox",
    "image",
    "img",
    "region",
    "dialog",
    "heading",
    "navigation",
    "search",
    "meter",
];

/// Returns the elements of the accessibility tree with such a role and no name.
fn nameless(browser: &Browser) -> (usize, Vec<String>) {
    let tree = browser.devtools("Accessibility.getFullAXTree", json!({}));
    let mut seen = 0;
    let mut without = Vec::new();
    for element in tree["nodes"].as_array().expect("a tree") {
        let role = element["role"]["value"].as_str().unwrap_or_default();
        if element["ignored"] == true || !NAMED.contains(&role) {
            continue;
        }
        seen += 1;
        if element["name"]["value"].as_str().unwrap_or_default().trim().is_empty() {
            without.push(element.to_string());
        }
    }
    (seen, without)
}

#[test]
fn everything_has_a_name_for_screen_readers() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&["--still"]);
    let views = [
        ("", "document.querySelector('.gangs')"),
        ("#/pods/demo/not-of-finance", "document.querySelector('.fixes > li')"),
        ("#/gangs/demo/render", "document.querySelector('[data-set]')"),
        ("#/nodes/tiny-01", "document.querySelector('#view table')"),
        ("#/queue", "document.querySelector('#view tbody tr')"),
        ("#/quotas", "document.querySelectorAll('#view .quota').length === 6"),
        (
            "#/reservations",
            "document.querySelector('#view').textContent.includes('There are no reservations.')",
        ),
    ];
    for (view, is_there) in views {
        browser.in_new_page(&format!("http://{}/{view}", demo.rest));
        browser.wait(&format!("return document.querySelectorAll('.pending-group').length > 4 && {is_there}"));
        let (seen, without) = nameless(&browser);
        assert!(seen > 30, "{view:?}: only {seen} elements were looked at");
        assert!(without.is_empty(), "{view:?}: without a name: {without:#?}");
        // Headings go down step by step, and there is one main part.
        let headings = browser.run("return [...document.querySelectorAll('h1, h2, h3, h4')].filter((h) => h.checkVisibility()).map((h) => Number(h.tagName[1]))");
        let levels: Vec<i64> = headings.as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{view:?}: {levels:?}");
        assert_eq!(browser.run("return document.querySelectorAll('main').length"), 1);
    }
}
