//! The order of names in which people count: `web-9` before `web-10`.

use std::cmp::Ordering;

/// Compares two names, numbers within them by their value. Names that differ in leading zeros alone are compared as text, so
/// that only equal names are equal.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut rest_a, mut rest_b) = (a.as_bytes(), b.as_bytes());
    loop {
        let ((part_a, after_a), (part_b, after_b)) = (first_part(rest_a), first_part(rest_b));
        if part_a.is_empty() || part_b.is_empty() {
            return part_a.len().cmp(&part_b.len()).then_with(|| a.cmp(b));
        }
        let order = match part_a[0].is_ascii_digit() && part_b[0].is_ascii_digit() {
            true => by_value(part_a, part_b),
            false => part_a[0].cmp(&part_b[0]),
        };
        if order.is_ne() {
            return order;
        }
        (rest_a, rest_b) = (after_a, after_b);
    }
}

/// Splits off the leading number, or else the first byte.
fn first_part(text: &[u8]) -> (&[u8], &[u8]) {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.split_at(digits.max(1).min(text.len()))
}

/// Compares numbers of any length.
fn by_value(a: &[u8], b: &[u8]) -> Ordering {
    let significant =
        |digits: &'_ [u8]| digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len());
    let (a, b) = (&a[significant(a)..], &b[significant(b)..]);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_by_value_and_all_else_as_text() {
        let mut names = ["w-10", "w-9", "w-1x", "w-1", "w", "v-2", "w-01", "w-a", "", "w-10-2", "w-10-10"];
        names.sort_by(|a, b| natural_order(a, b));
        assert_eq!(names, ["", "v-2", "w", "w-01", "w-1", "w-1x", "w-9", "w-10", "w-10-2", "w-10-10", "w-a"]);
    }

    #[test]
    fn only_equal_names_are_equal() {
        let names = ["a1", "a01", "a001", "1", "01", "a1b2", "a01b2", "a1b02"];
        for (i, a) in names.iter().enumerate() {
            for (j, b) in names.iter().enumerate() {
                assert_eq!(natural_order(a, b), natural_order(b, a).reverse(), "{a} {b}");
                assert_eq!(natural_order(a, b).is_eq(), i == j, "{a} {b}");
            }
        }
    }
}
