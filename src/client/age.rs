//! Ages for people, from the times of a body: the CLI has no clock of its own, so an age is that at the server's answer.

/// Returns how long before `now` a time is, as kubectl writes ages: `45s`, `12m`, `3h`, `9d`. Both are RFC 3339 in UTC;
/// `-` when one of them is not.
pub(crate) fn age(at: &str, now: &str) -> String {
    match (seconds(at), seconds(now)) {
        (Some(at), Some(now)) => text((now - at).max(0)),
        _ => "-".to_owned(),
    }
}

fn text(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns the seconds since 1970 of a time such as `2026-01-02T03:04:05Z`; fractions are cut off.
fn seconds(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let mut time = time.split('.').next()?.splitn(3, ':').map(str::parse::<i64>);
    let mut of_date = || date.next()?.ok();
    let days = days(of_date()?, of_date()?, of_date()?);
    let mut of_time = || time.next()?.ok();
    Some(days * 86_400 + of_time()? * 3_600 + of_time()? * 60 + of_time()?)
}

/// Returns the days since 1970 of a date in the Gregorian calendar, whose years are counted from March here.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let years = if month > 2 { year } else { year - 1 };
    let months = (month + 9) % 12;
    let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    years * 365 + leap_days + (153 * months + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short_and_exact() {
        let now = "2026-03-01T00:00:00Z";
        for (at, expected) in [
            ("2026-02-28T23:59:15Z", "45s"),
            ("2026-02-28T23:48:00.5Z", "12m"),
            ("2026-02-28T21:00:00Z", "3h"),
            ("2026-02-20T00:00:00Z", "9d"),
            ("2024-02-29T00:00:00Z", "731d"),
            ("2026-03-01T00:00:09Z", "0s"),
            ("", "-"),
            ("soon", "-"),
        ] {
            assert_eq!(age(at, now), expected, "{at}");
        }
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(seconds("2026-01-01T00:00:00Z"), Some(1_767_225_600));
    }
}
