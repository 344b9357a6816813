//! Times as people say them.

use api::Time;
use jiff::Timestamp;

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// How long ago something was. A clock that is behind the operator's shows no time.
pub fn since(now: Timestamp, then: &Time) -> String {
    span(now.as_millisecond() - then.0.as_millisecond())
}

/// When something was, and how long ago.
pub fn at(now: Timestamp, then: &Time) -> String {
    format!("{} ({} ago)", then.0.strftime("%F %T UTC"), since(now, then))
}

/// A duration with its two largest units.
pub fn span(millis: i64) -> String {
    let millis = millis.max(0);
    match millis {
        ..SECOND => format!("{millis}ms"),
        SECOND..MINUTE => format!("{}s", millis / SECOND),
        MINUTE..HOUR => format!("{}m{:02}s", millis / MINUTE, millis % MINUTE / SECOND),
        HOUR..DAY => format!("{}h{:02}m", millis / HOUR, millis % HOUR / MINUTE),
        DAY.. => format!("{}d{:02}h", millis / DAY, millis % DAY / HOUR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let told = [
            (-5, "0ms"),
            (999, "999ms"),
            (1000, "1s"),
            (59_999, "59s"),
            (60_000, "1m00s"),
            (3_599_999, "59m59s"),
            (3_600_000, "1h00m"),
            (86_399_999, "23h59m"),
            (200_000_000, "2d07h"),
        ];
        for (millis, text) in told {
            assert_eq!(span(millis), text);
        }
    }
}
