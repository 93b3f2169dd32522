//! The page asks who asks, and keeps the answer in memory only.

use crate::security::authority::{MINE, asking};
use crate::security::browser::{Browser, keys};
use crate::security::commands::cluster;

/// Types a text, and Enter.
fn enter(browser: &Browser, text: &str) {
    let letters: Vec<String> = text.chars().map(String::from).collect();
    let mut strokes: Vec<&str> = letters.iter().map(String::as_str).collect();
    strokes.push(keys::ENTER);
    browser.press(&strokes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_works_with_a_token_that_it_does_not_store() {
    asking(cluster().await, |secure| {
        let Some(browser) = Browser::start() else { return };
        browser.open(&secure.instance.url());
        let asks_for = |field: &str| {
            browser.wait(&format!(
                "const it = document.querySelector('#sign-in [name={field}]'); return it && document.activeElement === it;"
            ));
        };
        asks_for("token");
        enter(&browser, "t-wrong");
        browser.wait("return document.querySelector('#sign-in [role=alert]')?.textContent.includes('not valid');");
        browser.run("document.querySelector('#sign-in [name=token]').value = 't-ann';");
        asks_for("namespaces");
        enter(&browser, MINE);
        browser.wait("return !document.querySelector('#sign-in') && document.querySelector('#pending').innerText.includes('own');");
        let kept = browser.run("return JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href]);");
        assert!(!kept.to_string().contains("t-ann"), "{kept}");
        browser.in_new_page(&secure.instance.url());
        asks_for("token");
    })
    .await;
}
