//! The hardware of a node: devices as bars by pod on their switches, cores and threads with their pods beside them.

use serde_json::json;

use crate::browser::Browser;
use crate::common::demo::Demo;
use crate::{assert_quiet, url};

#[test]
fn devices_and_cores_are_drawn_by_pod_where_they_lie() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::start(&["--still"]);
    browser.open(&url(&demo, "#/nodes/rig-01"));
    let places = browser.wait(
        "const all = [...document.querySelectorAll('.device')];
         return document.querySelector('.cores') && all.length === 6 && all.map((one) => [one.dataset.device, one.closest('.pcie').dataset.pcie, one.closest('.numa').dataset.numa, one.closest('.socket').dataset.socket])",
    );
    let want = [
        ["gpu 0", "pci-0", "0", "0"],
        ["gpu 1", "pci-0", "0", "0"],
        ["rdma 0", "pci-0", "0", "0"],
        ["gpu 2", "pci-1", "1", "1"],
        ["gpu 3", "pci-1", "1", "1"],
        ["rdma 1", "pci-1", "1", "1"],
    ];
    assert_eq!(places, json!(want));
    // A bar has one part per pod, as long as the pod's share, and the words say the same.
    let device = demo.get("/apis/v1/plugins/DeviceShare/nodes/rig-01").json()["devices"][0].clone();
    let shares: Vec<(String, i64)> = device["shares"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|share| {
            let pod = share["pod"].as_str().expect("a pod").to_owned();
            (pod, share["percent"].as_i64().expect("percent"))
        })
        .collect();
    let bar = browser.run("const bar = document.querySelector('[data-device=\"gpu 0\"] [role=img]'); return [bar.ariaLabel, [...bar.querySelectorAll('i')].map((part) => part.style.inlineSize)]");
    let said: Vec<String> = shares.iter().map(|(pod, percent)| format!("{pod} {percent} %")).collect();
    let free = device["freePercent"].as_i64().expect("percent");
    let widths: Vec<String> = shares.iter().map(|(_, percent)| format!("{percent}%")).collect();
    assert_eq!(bar, json!([format!("gpu 0: {}, {free} % free", said.join(", ")), widths]));
    // 8 cores of 2 threads on each NUMA node, 5 of them of one pod.
    let cores = browser.run(
        "return [...document.querySelectorAll('.numa')].map((numa) => [numa.querySelectorAll('.core').length, numa.querySelectorAll('[data-cpu]').length, numa.querySelectorAll('[data-cpu].free').length])",
    );
    assert_eq!(cores, json!([[8, 16, 6], [8, 16, 6]]));
    let said = browser.run("return document.querySelector('.cores').ariaLabel");
    let said = said.as_str().unwrap_or_default();
    assert!(said.starts_with("CPUs of NUMA 0: demo/solver-") && said.ends_with(" 10, 6 free"), "{said}");
    assert_quiet(&browser, demo.rest);
}
