use pellucid_model::selector::{LabelSelector, Labels};
use pellucid_model::{GangKey, PodKey};

use super::*;

fn at(seconds: u64) -> Now {
    let monotonic = Duration::from_secs(seconds);
    Now { monotonic, wall: Duration::from_secs(1_700_000_000) + monotonic }
}

fn by(name: &str, seconds: u64) -> Setter {
    Setter { now: at(seconds), from: name.into() }
}

fn pod(name: &str, app: &str) -> Pod {
    let labels = Labels::new([("app".into(), app.into())]);
    Pod { key: PodKey::new("ns", name), labels, scheduler_name: "default".into(), ..Pod::default() }
}

fn order(rows: usize, scope: Scope) -> Order {
    let value = rows.to_string().into();
    Order { value, rows, scope, ttl: Duration::from_secs(60), most: 100, owner: None }
}

fn of_app(app: &str) -> Scope {
    let text = format!("app={app}");
    let selector = LabelSelector::parse(&text).unwrap();
    Scope { selector: Some((text.as_str().into(), selector)), ..Scope::default() }
}

fn whys(switches: &Switches, seconds: u64) -> Vec<(String, u64, String, String, String)> {
    let (audit, _) = switches.audit(at(seconds));
    audit.into_iter().map(|c| (c.flag, c.id, c.from, c.to, c.why)).collect()
}

fn change(flag: &str, id: u64, from: &str, to: &str, why: &str) -> (String, u64, String, String, String) {
    (flag.into(), id, from.into(), to.into(), why.into())
}

#[test]
fn scopes_are_met_by_their_pods_alone() {
    let gang = Scope { gang: Some(GangKey::new("ns", "g")), ..Scope::default() };
    let both = Scope { namespace: Some("ns".into()), profile: Some("other".into()), ..of_app("x") };
    assert!(of_app("x").matches(&pod("a", "x")) && !of_app("x").matches(&pod("a", "y")));
    assert!(!gang.matches(&pod("a", "x")) && !both.matches(&pod("a", "x")));
    assert!(both.matches(&Pod { scheduler_name: "other".into(), ..pod("a", "x") }));
    let named = Scope { pod: Some(PodKey::new("ns", "a")), ..Scope::default() };
    assert!(named.matches(&pod("a", "y")) && !named.matches(&pod("b", "y")));
}

#[test]
fn a_raw_value_and_scopes_are_wanted_side_by_side() {
    let switches = Switches::default();
    assert!(!switches.is_recording());
    switches.set_top_n_scores(3, &by("a", 0));
    switches.begin(Flag::Scores, order(7, of_app("x")), None, &by("b", 0)).unwrap();
    assert!(switches.is_recording());
    assert_eq!(switches.wanted(&pod("p", "x"), at(1)).rows(), 7);
    assert_eq!(switches.wanted(&pod("p", "y"), at(1)).rows(), 3);
    assert_eq!(switches.wanted(&pod("p", "x"), at(60)).rows(), 3, "its time has come");
    assert!(switches.wanted(&pod("p", "x"), at(1)).failures.is_empty());
    switches.set_top_n_scores(0, &by("a", 2));
    switches.expire(at(61));
    assert!(!switches.is_recording());
    assert_eq!(
        whys(&switches, 61),
        [
            change("s", 1, "7", "0", "expired"),
            change("s", 0, "3", "0", "set"),
            change("s", 1, "0", "7", "set"),
            change("s", 0, "0", "3", "set"),
        ]
    );
    let (audit, dropped) = switches.audit(at(61));
    assert_eq!((audit[0].at.as_str(), dropped), ("2023-11-14T22:14:20.000Z", 0), "the time it was to end");
}

#[test]
fn a_recording_ends_with_its_last_record() {
    let switches = Switches::default();
    let two = Order { most: 2, ..order(5, Scope::default()) };
    let recording = switches.begin(Flag::Scores, two, None, &by("a", 0)).unwrap();
    let pod = pod("p", "x");
    for left in [1, 0] {
        let wanted = switches.wanted(&pod, at(1));
        assert_eq!(switches.count(&wanted.scores, at(1)).len(), 1);
        assert_eq!(recording.body(at(1)).records_left, Some(left));
    }
    assert!(!switches.is_recording() && !recording.body(at(1)).active);
    assert_eq!(switches.count(std::slice::from_ref(&recording), at(1)).len(), 0, "what ended counts nothing");
    assert_eq!(whys(&switches, 1)[0], change("s", 1, "5", "0", "used up"));
}

#[test]
fn the_same_is_renewed_and_too_many_are_refused() {
    let switches = Switches::default();
    let first = switches.begin(Flag::Scores, order(5, of_app("x")), None, &by("a", 0)).unwrap();
    let again = switches.begin(Flag::Scores, order(6, of_app("x")), None, &by("a", 30)).unwrap();
    assert_eq!((first.id, again.id), (1, 1));
    assert_eq!(
        switches.active(Some(Flag::Scores), at(70)).len(),
        1,
        "it lasts a minute from the second time"
    );
    assert_eq!(whys(&switches, 70)[0], change("s", 1, "5", "6", "renewed"));
    for i in 2..=MOST_ACTIVE {
        switches.begin(Flag::Scores, order(5, of_app(&format!("x{i}"))), None, &by("a", 30)).unwrap();
    }
    let more = order(5, of_app("more"));
    assert_eq!(switches.begin(Flag::Scores, more.clone(), None, &by("a", 30)).unwrap_err(), NotSet::TooMany);
    assert_eq!(switches.end_one(Flag::Failures, Some(3), &by("a", 30)).unwrap_err(), NotSet::Unknown(3));
    assert_eq!(switches.end_one(Flag::Failures, None, &by("a", 30)).unwrap_err(), NotSet::NotOn);
    assert_eq!(switches.end_one(Flag::Scores, Some(3), &by("a", 30)).unwrap().id, 3);
    assert!(switches.begin(Flag::Scores, more, None, &by("a", 30)).is_ok());
}

#[test]
fn the_log_goes_back_to_what_it_was_before_the_first() {
    let switches = Switches::default();
    let before = |verbosity| Some(LogBefore { verbosity, directive: String::new() });
    switches.begin(Flag::Verbosity, order(0, Scope::default()), before(2), &by("a", 0)).unwrap();
    switches.begin(Flag::Log, order(0, Scope::default()), before(8), &by("a", 30)).unwrap();
    assert_eq!((switches.take_log_ended(), switches.is_recording()), (None, false));
    assert_eq!(switches.next_expiry(), Some(Duration::from_secs(90)));
    switches.expire(at(90));
    assert_eq!(switches.take_log_ended(), before(2));
    switches.begin(Flag::Verbosity, order(0, Scope::default()), before(2), &by("a", 100)).unwrap();
    switches.forget_log();
    switches.expire(at(1_000));
    assert_eq!(switches.take_log_ended(), None, "it was set for good");
}

#[test]
fn the_audit_is_bounded() {
    let switches = Switches::default();
    for i in 0..CHANGES_KEPT + 10 {
        switches.audit_change("reuse", "true", "false", &by("a", i as u64));
    }
    let (audit, dropped) = switches.audit(at(0));
    assert_eq!((audit.len(), dropped), (CHANGES_KEPT, 10));
    assert_eq!(audit[0].number as usize, CHANGES_KEPT + 10);
}
