//! Formats times for people.

use std::time::Duration;

/// Formats a wall time (since 1970) as RFC 3339 with milliseconds.
pub fn rfc3339(wall: Duration) -> String {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX));
    at.map(|t| format!("{t:.3}")).unwrap_or_default()
}
