//! Kubernetes quantities (`500m`, `16Gi`, `1e3`) as integers, computed with integer arithmetic.
//!
//! PURE. A quantity becomes thousandths ([`milli`], for CPU) or whole units ([`units`], for the rest). Fractions are
//! rounded away from zero, so that nobody gets less than they wrote, and amounts that do not fit are capped at the
//! largest 64-bit value; apimachinery's `MilliValue` and `Value` do both as well. Digits beyond the twentieth
//! significant one only round up, where apimachinery would carry them through the arithmetic: an API server never
//! writes that many.

/// Significant digits used in the computation: 10^20 · 2^60 still fits an `i128`.
const DIGITS: u32 = 20;

/// The error for a text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity: {problem}")]
pub struct QuantityError {
    /// The text as given.
    pub text: Box<str>,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Parses a quantity into thousandths: `2` is 2000, `0.1m` is 1.
pub fn milli(text: &str) -> Result<i64, QuantityError> {
    scaled(text, 3)
}

/// Parses a quantity into whole units: `1Ki` is 1024, `100m` is 1.
pub fn units(text: &str) -> Result<i64, QuantityError> {
    scaled(text, 0)
}

/// Parses a quantity into thousandths that are not capped before they are added up: `1.5` is 1500. The quantity itself is
/// capped at the largest 64-bit value of whole units.
pub fn thousandths(text: &str) -> Result<i128, QuantityError> {
    let problem = |problem| QuantityError { text: text.into(), problem };
    parse(text, 3, i128::from(i64::MAX) * 1000).map_err(problem)
}

/// Formats thousandths as Kubernetes does: `2`, `1500m`.
pub fn format_milli(amount: i64) -> String {
    if amount % 1000 == 0 { (amount / 1000).to_string() } else { format!("{amount}m") }
}

/// Formats bytes with the largest binary suffix that leaves a whole number: `16Gi`, `1500`.
pub fn format_bytes(amount: i64) -> String {
    let (number, suffix) = bytes_parts(amount);
    format!("{number}{suffix}")
}

/// Returns the number and the suffix of [`format_bytes`].
pub fn bytes_parts(amount: i64) -> (i64, &'static str) {
    let power = if amount == 0 { 0 } else { (amount.trailing_zeros() / 10).min(6) };
    (amount >> (10 * power), ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power as usize])
}

/// Formats an amount of a resource in its stored unit: thousandths for `cpu`, bytes for memory, storage, huge pages and
/// memory of devices, a plain number for the rest. Less than a mebibyte of a device is no bytes: some count mebibytes.
pub fn format_amount(resource: &str, amount: i64) -> String {
    match resource {
        "cpu" => format_milli(amount),
        "memory" | "ephemeral-storage" => format_bytes(amount),
        name if name.starts_with("hugepages-") => format_bytes(amount),
        name if name.ends_with("-memory") && amount.unsigned_abs() >= 1 << 20 => format_bytes(amount),
        _ => amount.to_string(),
    }
}

/// Parses a quantity and multiplies it by 10^`power`.
fn scaled(text: &str, power: i64) -> Result<i64, QuantityError> {
    let parsed = parse(text, power, i128::from(i64::MAX));
    let amount = parsed.map_err(|problem| QuantityError { text: text.into(), problem })?;
    Ok(i64::try_from(amount).unwrap_or(i64::MAX))
}

fn parse(text: &str, power: i64, most: i128) -> Result<i128, &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    let (negative, unsigned) = match text.as_bytes()[0] {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (mantissa, point) = digits(number)?;
    let (twos, tens) = interpret(suffix)?;
    let exponent = tens.saturating_add(point).saturating_add(power);
    let magnitude = scale(mantissa << twos, exponent, most);
    Ok(if negative { -magnitude } else { magnitude })
}

/// Parses digits with at most one point: the number is the first value times ten to the power of the second.
fn digits(number: &str) -> Result<(i128, i64), &'static str> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err("it has no digits");
    }
    if fraction.contains('.') {
        return Err("it has two decimal points");
    }
    let (mut mantissa, mut exponent, mut seen, mut lost) = (0i128, 0i64, 0, false);
    let placed = whole.bytes().map(|d| (d, 0)).chain(fraction.bytes().map(|d| (d, -1)));
    for (digit, place) in placed {
        let digit = i128::from(digit - b'0');
        if seen == DIGITS {
            // There is no room for the digit: it only counts as "something more".
            lost |= digit != 0;
            exponent += place + 1;
        } else {
            mantissa = mantissa * 10 + digit;
            exponent += place;
            seen += u32::from(mantissa != 0);
        }
    }
    Ok((mantissa + i128::from(lost), exponent))
}

/// Returns the power of two and the power of ten that a suffix stands for.
fn interpret(suffix: &str) -> Result<(u32, i64), &'static str> {
    Ok(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        _ => (0, decimal_exponent(suffix).ok_or("its suffix is unknown")?),
    })
}

/// Parses `e3`, `E-3`, `e+3`.
fn decimal_exponent(suffix: &str) -> Option<i64> {
    suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok().map(i64::from)
}

/// Returns `value · 10^exponent`, rounded up, and at most `most`. `value` must not be negative.
fn scale(value: i128, exponent: i64, most: i128) -> i128 {
    if value == 0 {
        return 0;
    }
    let power = u32::try_from(exponent.unsigned_abs()).ok().and_then(|e| 10i128.checked_pow(e));
    let amount = match (exponent < 0, power) {
        (false, Some(power)) => value.checked_mul(power),
        (false, None) => None,
        (true, Some(power)) => Some(value / power + i128::from(value % power != 0)),
        // Smaller than any representable amount, so rounded up to 1.
        (true, None) => Some(1),
    };
    amount.map_or(most, |amount| amount.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        for (text, want_milli, want_units) in [
            ("0", 0, 0),
            ("-0", 0, 0),
            ("1", 1000, 1),
            ("+1", 1000, 1),
            ("500m", 500, 1),
            ("0.1m", 1, 1),
            ("1.0001", 1001, 2),
            ("0.5", 500, 1),
            (".5", 500, 1),
            ("5.", 5000, 5),
            ("1n", 1, 1),
            ("100u", 1, 1),
            ("1000000n", 1, 1),
            ("1k", 1_000_000, 1000),
            ("1Ki", 1_024_000, 1024),
            ("1.5Ki", 1_536_000, 1536),
            ("0.3Ki", 307_200, 308),
            ("7900Mi", 7900 * 1_048_576_000, 7900 * 1_048_576),
            ("16Gi", 16 * 1_073_741_824_000, 16 * 1_073_741_824),
            ("1e3", 1_000_000, 1000),
            ("1E3", 1_000_000, 1000),
            ("1e+3", 1_000_000, 1000),
            ("15e-1", 1500, 2),
            ("1E", i64::MAX, 1_000_000_000_000_000_000),
            ("7Ei", i64::MAX, 7 << 60),
            ("8Ei", i64::MAX, i64::MAX),
            ("100E", i64::MAX, i64::MAX),
            ("1e-40", 1, 1),
            ("0e-40", 0, 0),
            ("1e2000000000", i64::MAX, i64::MAX),
            ("-1.5", -1500, -2),
            ("-100m", -100, -1),
            ("-8Ei", -i64::MAX, -i64::MAX),
            ("9223372036854775807", i64::MAX, i64::MAX),
            ("00000000000000000000000000001", 1000, 1),
            ("10000000000000000000000000e-25", 1000, 1),
            ("1.00000000000000000000000000001", 1001, 2),
            ("0.000000000000000000000000000001", 1, 1),
        ] {
            assert_eq!(milli(text), Ok(want_milli), "milli {text}");
            assert_eq!(units(text), Ok(want_units), "units {text}");
            let exact = thousandths(text).expect("a quantity");
            let capped = want_milli.unsigned_abs() == i64::MAX as u64;
            assert!(
                if capped { exact.abs() >= i128::from(i64::MAX) } else { exact == want_milli.into() },
                "{text}"
            );
            assert_eq!(crate::requests::rounded("memory", exact), want_units, "rounded {text}");
        }
    }

    #[test]
    fn what_is_not_a_quantity_is_named() {
        for (text, problem) in [
            ("", "it is empty"),
            ("-", "it has no digits"),
            (".", "it has no digits"),
            ("Gi", "it has no digits"),
            ("1.2.3", "it has two decimal points"),
            ("1x", "its suffix is unknown"),
            ("1 ", "its suffix is unknown"),
            ("1ki", "its suffix is unknown"),
            ("1e", "its suffix is unknown"),
            ("1e1.5", "its suffix is unknown"),
            ("1e99999999999", "its suffix is unknown"),
            ("--1", "it has no digits"),
            ("１", "it has no digits"),
        ] {
            let error = units(text).expect_err(text);
            assert_eq!((&*error.text, error.problem), (text, problem));
        }
        assert_eq!(
            milli("1x").expect_err("x").to_string(),
            "\"1x\" is not a quantity: its suffix is unknown"
        );
    }

    #[test]
    fn amounts_are_written_as_people_write_them() {
        for (resource, amount, want) in [
            ("cpu", 500, "500m"),
            ("cpu", 2000, "2"),
            ("cpu", -1500, "-1500m"),
            ("memory", 0, "0"),
            ("memory", 16 << 30, "16Gi"),
            ("memory", 1500, "1500"),
            ("memory", -(3 << 20), "-3Mi"),
            ("hugepages-2Mi", 4 << 20, "4Mi"),
            ("example.com/gpu", 2048, "2048"),
            ("example.com/gpu-memory", 13 << 30, "13Gi"),
            ("example.com/gpu-memory", 1 << 14, "16384"),
            ("example.com/gpu-memory-ratio", 1024, "1024"),
        ] {
            assert_eq!(format_amount(resource, amount), want);
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_reads_back(amount in -i64::MAX..=i64::MAX) {
            proptest::prop_assert_eq!(milli(&format_milli(amount)), Ok(amount));
            proptest::prop_assert_eq!(units(&format_bytes(amount)), Ok(amount));
        }

        #[test]
        fn no_text_panics(text in "[-+]?[0-9.]{0,40}[a-zA-Z]{0,2}[-+]?[0-9]{0,3}") {
            let _ = (milli(&text), units(&text));
        }

        #[test]
        fn rounding_never_takes_away(whole in 0i64..1 << 40, nanos in 0i64..1_000_000_000) {
            let text = format!("{whole}.{nanos:09}");
            proptest::prop_assert_eq!(units(&text), Ok(whole + i64::from(nanos > 0)));
            let up = nanos.div_euclid(1_000_000) + i64::from(nanos % 1_000_000 != 0);
            proptest::prop_assert_eq!(milli(&text), Ok(whole * 1000 + up));
        }
    }
}
