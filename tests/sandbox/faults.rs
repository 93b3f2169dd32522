//! Faults: lost history, and those that a test orders.

use super::*;

#[tokio::test]
async fn lost_history_is_a_410_and_watchers_recover() {
    let (sandbox, client) = start(Config { history: 4, ..Config::default() }).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("old")).await.expect("created");
    let revision = sandbox.revision().to_string();
    let mut stream = pin!(watcher(pods.clone(), watcher::Config::default()));
    while !matches!(in_time(stream.next()).await, Some(Ok(watcher::Event::InitDone))) {}
    for index in 0..6 {
        pods.create(&PostParams::default(), &pod(&format!("p{index}"))).await.expect("created");
    }
    let mut late = pin!(pods.watch(&WatchParams::default(), &revision).await.expect("a watch"));
    match in_time(late.next()).await {
        Some(Ok(WatchEvent::Error(status))) => assert_eq!(status.code, 410),
        other => panic!("no 410 but {other:?}"),
    }
    sandbox.compact(0);
    pods.create(&PostParams::default(), &pod("new")).await.expect("created");
    let mut names = Vec::new();
    while !names.contains(&"new".to_owned()) {
        if let Some(Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod))) =
            in_time(stream.next()).await
        {
            names.push(pod.name_any());
        }
    }
}

#[tokio::test]
async fn faults_hit_the_requests_they_mean() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let post = || Match::new("POST", "/pods");
    sandbox.faults().next(post(), Fault::Drop);
    assert!(pods.create(&PostParams::default(), &pod("a")).await.is_err(), "the connection closes");
    assert!(pods.get_opt("a").await.expect("an answer").is_none());
    sandbox.faults().next(post(), Fault::DropAfterCommit);
    assert!(pods.create(&PostParams::default(), &pod("a")).await.is_err(), "the connection closes");
    assert!(pods.get_opt("a").await.expect("an answer").is_some());
    for status in [409, 410, 503] {
        sandbox.faults().next(post(), Fault::Status(status));
        assert_eq!(
            code(&pods.create(&PostParams::default(), &pod("b")).await.expect_err("injected")),
            status
        );
    }
    sandbox.faults().next(post(), Fault::StatusAfterCommit(503));
    assert_eq!(code(&pods.create(&PostParams::default(), &pod("b")).await.expect_err("injected")), 503);
    assert!(pods.get_opt("b").await.expect("an answer").is_some());
    sandbox.faults().next(Match::new("GET", "/pods/a"), Fault::Delay(Duration::from_secs(5)));
    let slow = pods.get("a");
    let clock = sandbox.clock().clone();
    let advance = async {
        while sandbox.faults().pending() > 0 {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(5));
    };
    let (answer, ()) = in_time(async { tokio::join!(slow, advance) }).await;
    answer.expect("late but there");
    assert_eq!(sandbox.faults().pending(), 0);
}

#[tokio::test]
async fn faults_hit_the_next_event_of_a_watch() {
    let (sandbox, client) = still().await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let watched = || Match::new("GET", "watch=true");
    let open = async || {
        let revision = sandbox.revision().to_string();
        Box::pin(pods.watch(&WatchParams::default(), &revision).await.expect("a watch"))
    };
    let mut twice = open().await;
    sandbox.faults().next(watched(), Fault::DuplicateEvent);
    pods.create(&PostParams::default(), &pod("a")).await.expect("created");
    for _ in 0..2 {
        assert!(matches!(in_time(twice.next()).await, Some(Ok(WatchEvent::Added(_)))));
    }
    drop(twice);
    let mut garbled = open().await;
    sandbox.faults().next(watched(), Fault::UndecodableEvent);
    pods.create(&PostParams::default(), &pod("b")).await.expect("created");
    assert!(matches!(in_time(garbled.next()).await, Some(Err(_))));
    drop(garbled);
    let mut gone = open().await;
    sandbox.faults().next(watched(), Fault::GoneEvent);
    pods.create(&PostParams::default(), &pod("c")).await.expect("created");
    assert!(matches!(in_time(gone.next()).await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    sandbox.faults().next(watched(), Fault::SilentWatch);
    let mut silent = open().await;
    let mut cut = open().await;
    sandbox.faults().next(watched(), Fault::DropMidLine);
    pods.create(&PostParams::default(), &pod("d")).await.expect("created");
    assert!(!matches!(in_time(cut.next()).await, Some(Ok(_))), "half a line is no event");
    assert!(silent.next().now_or_never().is_none(), "a silent watch says nothing, though others have heard");
}
