//! What a test message says: who sent it, its number, and when; the rest is filler. Pure.
//!
//! It all stands in the body, because neither a shovel nor a federation link changes that.

/// Marks a message of ours; whatever begins otherwise is malformed and counted.
const MAGIC: &str = "RMQM1";

/// Who sent a message, its number in that publisher's sequence (from 1), and when by the sender's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The publisher's id, without spaces.
    pub publisher: &'a str,
    /// The sequence number.
    pub seq: u64,
    /// When it was first sent, in microseconds since the Unix epoch.
    pub sent_micros: u64,
}

/// Writes a body of `size` bytes, or more where the stamp does not fit.
pub fn encode(stamp: Stamp<'_>, size: usize) -> Vec<u8> {
    let Stamp { publisher, seq, sent_micros } = stamp;
    let mut body = format!("{MAGIC} {publisher} {seq} {sent_micros}\n").into_bytes();
    body.resize(size.max(body.len()), b'.');
    body
}

/// Reads a body; `None` for one that no client of ours wrote.
pub fn decode(body: &[u8]) -> Option<Stamp<'_>> {
    let line = body.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    if words.next()? != MAGIC {
        return None;
    }
    let publisher = words.next()?;
    let seq = words.next()?.parse().ok()?;
    let sent_micros = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Stamp { publisher, seq, sent_micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_written() {
        let stamp = Stamp { publisher: "orders-1@x", seq: 42, sent_micros: 7 };
        for size in [0, 3000] {
            let body = encode(stamp, size);
            assert_eq!(decode(&body), Some(stamp));
            assert!(body.len() >= size);
        }
        assert_eq!(encode(stamp, 3000).len(), 3000);
    }

    #[test]
    fn refuses_what_is_not_ours() {
        for body in ["", "hello", "RMQM1 p 1", "RMQM1 p x 1\n", "RMQM1 p 1 2 3\n", "RMQM2 p 1 2\n"] {
            assert_eq!(decode(body.as_bytes()), None, "{body:?}");
        }
    }
}
