//! Formats numbers, times and tables for the reports.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};

/// Creates a table without borders, with a text column last and right-aligned number columns before it.
pub(super) fn columns<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().take(N - 1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Formats a number with thousands separators.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut out = digits[..first].to_owned();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !out.is_empty() {
            out.push(',');
        }
        out.extend(group.iter().map(|digit| char::from(*digit)));
    }
    out
}

/// Formats a duration in the units that fit its size: `3.1 ms`, `8 min 31 s`, `52 d 4 h`.
pub fn span(time: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (seconds, whole) = (time.as_secs_f64(), time.as_secs());
    let two = |large: u64, name: &str, small: u64, part: &str| {
        let (n, rest) = (whole / large, whole % large / small);
        if rest == 0 { format!("{n} {name}") } else { format!("{n} {name} {rest} {part}") }
    };
    match whole {
        0 if time.is_zero() => "0 s".into(),
        0 if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        0 => format!("{:.1} ms", seconds * 1e3),
        1..10 => format!("{seconds:.2} s"),
        10..MINUTE => format!("{seconds:.1} s"),
        MINUTE..HOUR => two(MINUTE, "min", 1, "s"),
        HOUR..DAY => two(HOUR, "h", MINUTE, "min"),
        _ => two(DAY, "d", HOUR, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_of_their_size() {
        for (micros, expected) in [
            (0, "0 s"),
            (812, "812 µs"),
            (3_140, "3.1 ms"),
            (999_940, "999.9 ms"),
            (1_239_000, "1.24 s"),
            (41_000_000, "41.0 s"),
            (60_000_000, "1 min"),
            (511_400_000, "8 min 31 s"),
            (21_060_000_000, "5 h 51 min"),
            (4_508_448_000_000, "52 d 4 h"),
        ] {
            assert_eq!(span(Duration::from_micros(micros)), expected);
        }
    }
}
