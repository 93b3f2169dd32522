//! Durations in Go's syntax: `15s`, `1m30s`, `1h`, `300ms`, `1.5h`.

use std::time::Duration;

/// Unit names with their nanoseconds. A name comes before the shorter names that are its prefixes.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration. Returns `None` when the text is no duration, is negative, or exceeds Go's limit of 292 years.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let number_ends = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_ends);
        let (unit, nanos) = *UNITS.iter().find(|(unit, _)| after.starts_with(unit))?;
        total = total.checked_add(scaled(number, nanos)?)?;
        rest = &after[unit.len()..];
    }
    let nanos = i64::try_from(total).ok()?;
    Some(Duration::from_nanos(nanos.unsigned_abs()))
}

/// Returns a decimal number of units in nanoseconds, truncated, or `None` when it is no number or overflows.
fn scaled(number: &str, nanos: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(nanos)?;
    let mut part = nanos;
    for digit in fraction.bytes() {
        part /= 10;
        total = total.checked_add(u128::from(digit - b'0').checked_mul(part)?)?;
    }
    Some(total)
}

/// Formats a duration as Go does.
pub fn show(duration: Duration) -> String {
    let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
    if seconds == 0 {
        return match nanos {
            0 => "0s".to_owned(),
            1..1_000 => format!("{nanos}ns"),
            1_000..1_000_000 => format!("{}µs", decimal(u64::from(nanos / 1_000), nanos % 1_000, 3)),
            _ => format!("{}ms", decimal(u64::from(nanos / 1_000_000), nanos % 1_000_000, 6)),
        };
    }
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let last = decimal(seconds % 60, nanos, 9);
    match (hours, minutes) {
        (0, 0) => format!("{last}s"),
        (0, minutes) => format!("{minutes}m{last}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{last}s"),
    }
}

/// Formats a number with a fraction of `digits` digits, without trailing zeros.
fn decimal(whole: u64, fraction: u32, digits: usize) -> String {
    let text = format!("{whole}.{fraction:0digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_as_go_does() {
        for (text, nanos, shown) in [
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            ("15s", 15_000_000_000, "15s"),
            ("+15s", 15_000_000_000, "15s"),
            ("1m30s", 90_000_000_000, "1m30s"),
            ("1h", 3_600_000_000_000, "1h0m0s"),
            ("1.5h", 5_400_000_000_000, "1h30m0s"),
            ("300ms", 300_000_000, "300ms"),
            ("1.5s", 1_500_000_000, "1.5s"),
            (".5s", 500_000_000, "500ms"),
            ("1.s", 1_000_000_000, "1s"),
            ("1500us", 1_500_000, "1.5ms"),
            ("2µs", 2_000, "2µs"),
            ("7ns", 7, "7ns"),
            ("90m", 5_400_000_000_000, "1h30m0s"),
            ("1s1h", 3_601_000_000_000, "1h0m1s"),
        ] {
            let read = parse(text);
            assert_eq!(read, Some(Duration::from_nanos(nanos)), "{text}");
            assert_eq!(read.map(show).as_deref(), Some(shown), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in
            ["", "15", "s", ".s", "-15s", "15 s", "15S", "1d", "1..5s", "1m30", "3000000h", "é", "+", "1e3s"]
        {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(parse(&"9".repeat(100)), None);
        assert_eq!(parse(&format!("{}h", "9".repeat(100))), None);
    }
}
