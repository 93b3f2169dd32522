use super::*;
use pellucid_model::selector::Labels;

const ATTRIBUTES: &[Attribute] = &[
    Attribute::Namespace,
    Attribute::Name,
    Attribute::Gang,
    Attribute::Labels,
    Attribute::Age,
    Attribute::Priority,
];

fn now() -> Now {
    Now { monotonic: Duration::ZERO, wall: Duration::from_secs(1_000) }
}

fn params(pairs: &[(&str, &str)]) -> PathParams {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The pods p0 to p9: namespaces a and b in turn, priority 0 to 9, created at 900 s, 910 s, ….
fn pods() -> Vec<(usize, String, Labels)> {
    let labels = |n: usize| Labels::new([("app".into(), if n < 5 { "web" } else { "db" }.into())]);
    (0..10).map(|n| (n, format!("p{n}"), labels(n))).collect()
}

fn listed(pairs: &[(&str, &str)]) -> Result<(Vec<usize>, Page<usize>), ReadError> {
    let pods = pods();
    let list = List::of(&params(pairs), ATTRIBUTES, 7, now())?;
    let page = list.page(0..pods.len(), |n| Facts {
        namespace: if n % 2 == 0 { "a" } else { "b" },
        name: &pods[*n].1,
        labels: Some(&pods[*n].2),
        created: Some(Duration::from_secs(900 + 10 * *n as u64)),
        priority: Some(*n as i32),
        gangs: if *n < 2 { vec![("a", "g")] } else { Vec::new() },
        ..Facts::default()
    });
    Ok((page.items.clone(), page))
}

fn found(pairs: &[(&str, &str)]) -> Vec<usize> {
    listed(pairs).expect("the parameters are valid").0
}

#[test]
fn filters_hold_together() {
    assert_eq!(found(&[("namespace", "b")]), [1, 3, 5, 7, 9]);
    assert_eq!(found(&[("namespace", "a,b"), ("name", "p1,p2")]), [1, 2]);
    assert_eq!(found(&[("selector", "app in (db),app!=web"), ("namespace", "a")]), [6, 8]);
    assert_eq!(found(&[("olderThan", "75s")]), [0, 1, 2]);
    assert_eq!(found(&[("youngerThan", "20s")]), [9]);
    assert_eq!(found(&[("minPriority", "3"), ("maxPriority", "4")]), [3, 4]);
    assert_eq!(found(&[("gang", "g")]), [0, 1]);
    assert_eq!(found(&[("gang", "b/g")]), [0_usize; 0]);
}

#[test]
fn sorting_takes_several_attributes_and_keeps_the_order_of_equals() {
    assert_eq!(found(&[("sort", "namespace,-priority")]), [8, 6, 4, 2, 0, 9, 7, 5, 3, 1]);
    assert_eq!(found(&[("sort", "age")])[..2], [9, 8]);
    assert_eq!(found(&[("sort", "-namespace")]), [1, 3, 5, 7, 9, 0, 2, 4, 6, 8]);
}

#[test]
fn a_walk_gives_each_item_once_whatever_the_pages_hold() {
    let mut token: Option<String> = None;
    let mut all = Vec::new();
    for limit in ["3", "1", "4", "100"] {
        let mut pairs = vec![("sort", "-priority"), ("minPriority", "1"), ("limit", limit)];
        pairs.extend(token.as_deref().map(|token| ("continue", token)));
        let (items, page) = listed(&pairs).unwrap();
        all.extend(items);
        let meta = page.meta(Meta::default());
        assert_eq!(meta.remaining_item_count, meta.r#continue.as_ref().map(|_| 9 - all.len()));
        assert_eq!(page.total, 9);
        token = page.next;
    }
    assert_eq!(all, [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(token, None);
    assert_eq!(found(&[("limit", "0")]).len(), 10);
}

#[test]
fn a_token_names_its_generation_and_fits_no_other_list() {
    let token = listed(&[("limit", "2")]).unwrap().1.next.unwrap();
    assert_eq!(generation_of(Some(&token)), Ok(Some(7)));
    assert_eq!(generation_of(None), Ok(None));
    for (pairs, wanted) in [
        (vec![("continue", &*token), ("namespace", "a")], "other parameters"),
        (vec![("continue", "7-2")], "it must be `meta.continue`"),
        (vec![("continue", "7-+2-1000000-0")], "it must be `meta.continue`"),
    ] {
        let Err(ReadError::BadRequest { code, message }) = listed(&pairs) else {
            panic!("{pairs:?} is refused")
        };
        assert_eq!(code, "InvalidContinue");
        assert!(message.contains(wanted), "{message}");
    }
    assert_eq!(found(&[("continue", &token), ("fields", "name"), ("limit", "1")]), [2]);
}

#[test]
fn parameters_that_cannot_be_used_are_named_with_their_value() {
    for (name, value, wanted) in [
        ("sort", "prio", "known: namespace, name, gang, age, priority"),
        ("sort", "name,", "none of them empty"),
        ("olderThan", "5 minutes", "must be a duration"),
        ("minPriority", "high", "must be a whole number"),
        ("selector", "app=(", "selector"),
        ("namespace", "", "none of them empty"),
        ("limit", "99999999999999999999999", "must be a whole number"),
    ] {
        let Err(ReadError::BadRequest { code, message }) = listed(&[(name, value)]) else {
            panic!("{name}={value} is refused")
        };
        assert_eq!(code, "InvalidParameter");
        assert!(message.contains(&format!("parameter `{name}`")) && message.contains(wanted), "{message}");
    }
}
