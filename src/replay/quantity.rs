//! Parses Kubernetes quantities for the audit, independently of the scheduler's parser so that one bug does not hide
//! the other. Values are exact: a quantity is an integer number of billionths, the finest suffix of the format.

/// One, in billionths.
pub(super) const ONE: i128 = 1_000_000_000;

/// Parses a quantity such as `1500m`, `2Gi`, `1e3` or `0.5` into billionths; `None` if it is invalid.
pub(super) fn parse(text: &str) -> Option<i128> {
    let number_end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')));
    let (number, suffix) = text.split_at(number_end.unwrap_or(text.len()));
    let factor = match suffix {
        "n" => 1,
        "u" => ONE / 1_000_000,
        "m" => ONE / 1_000,
        "" => ONE,
        "k" => ONE * 1_000,
        "M" => ONE * 1_000_000,
        "G" => ONE * 1_000_000_000,
        "T" => ONE * 1_000_000_000_000,
        "P" => ONE * 1_000_000_000_000_000,
        "E" => ONE * 1_000_000_000_000_000_000,
        "Ki" => ONE << 10,
        "Mi" => ONE << 20,
        "Gi" => ONE << 30,
        "Ti" => ONE << 40,
        "Pi" => ONE << 50,
        "Ei" => ONE << 60,
        exponent => power(exponent.strip_prefix(['e', 'E'])?)?,
    };
    let (negative, digits) = match number.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok().filter(|n: &i128| *n >= 0)?;
    if !digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let scale = 10i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    // Amounts finer than a billionth are rounded away from zero, as in the Kubernetes API.
    let product = mantissa.checked_mul(factor)?;
    let value = product / scale + i128::from(product % scale != 0);
    Some(if negative { -value } else { value })
}

/// Returns ten to the power of `exponent`, in billionths.
fn power(exponent: &str) -> Option<i128> {
    let exponent: i32 = exponent.parse().ok()?;
    10i128.checked_pow(u32::try_from(exponent + 9).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        for (text, expected) in [
            ("0", 0),
            ("2", 2 * ONE),
            ("1500m", ONE * 3 / 2),
            ("0.5", ONE / 2),
            (".5", ONE / 2),
            ("1.5Gi", ONE * (3 << 29)),
            ("1e3", ONE * 1000),
            ("1E-3", ONE / 1000),
            ("5E", ONE * 5_000_000_000_000_000_000),
            ("-1Ki", -ONE * 1024),
            ("+7k", ONE * 7000),
            ("0.1n", 1),
            ("128974848", ONE * 128_974_848),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        for text in ["", "m", "1x", "1.2.3", "--1", "1 Gi", "Gi", "1ee3", "1e99", "+-3", "."] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
