//! Tests of lists in parts: however a list is split, its items are those of the whole.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Feeds a text in parts of the given sizes, which repeat.
fn read(text: &str, sizes: &[usize], most: usize) -> Result<(Vec<Value>, ListMeta), ListError> {
    let (mut list, mut items, mut rest) = (ListItems::new(most), Vec::new(), text.as_bytes());
    for size in sizes.iter().cycle() {
        let (part, later) = rest.split_at((*size).min(rest.len()));
        list.feed(part, |item| {
            items.push(serde_json::from_slice(item).map_err(|e| ListError::Item(e.to_string()))?);
            Ok(())
        })?;
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    assert_eq!((list.count, list.bytes), (items.len(), text.len()));
    Ok((items, list.finish()?))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "(items|[\"\\\\,:\\[\\]{} a-zé]){0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("(items|[\"\\\\,a]){0,3}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn items_are_the_same_in_whatever_parts_the_list_comes(
        items in prop::collection::vec(value(), 0..6),
        noise in value(),
        pretty in any::<bool>(),
        sizes in prop::collection::vec(1_usize..20, 1..5),
    ) {
        let list = json!({"apiVersion": noise, "items": items, "kind": "items",
            "metadata": {"continue": "more", "items": [1], "resourceVersion": "7"}, "zz": noise});
        let text = if pretty { serde_json::to_string_pretty(&list) } else { serde_json::to_string(&list) };
        let (got, meta) = read(&text.expect("a text"), &sizes, 1 << 20).expect("a list");
        prop_assert_eq!(got, items);
        prop_assert_eq!((meta.resource_version.as_str(), meta.r#continue.as_str()), ("7", "more"));
    }

    #[test]
    fn a_list_that_breaks_off_anywhere_is_none(cut in 0_usize..72) {
        let text = r#"{"metadata":{"resourceVersion":"7"},"items":[{"a":"]}"},{"b":[1,2,{}]}]}"#;
        prop_assert!(cut < text.len());
        prop_assert!(read(&text[..cut], &[7], 100).is_err());
    }
}

#[test]
fn what_is_no_list_is_said_to_be_none() {
    let error = |text| read(text, &[5], 40).expect_err("no list");
    assert_eq!(error(r#"{"items":[],"metadata":{}}"#), ListError::NoList("no resourceVersion".into()));
    assert_eq!(error("]"), ListError::NoList("a bracket too many".into()));
    let long = format!(r#"{{"items":[{:?}]}}"#, "x".repeat(40));
    assert_eq!(read(&long, &[5], 40).expect_err("too large"), ListError::TooLarge(40));
    let null = read(r#"{"items":null,"metadata":{"resourceVersion":"1"}}"#, &[3], 40).expect("a list");
    assert!(null.0.is_empty());
}
