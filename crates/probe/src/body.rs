//! The bytes of a probe message: PerfTest's first twelve, then our own.
//!
//! | bytes | content (big-endian) |
//! |---|---|
//! | 0..4 | sequence, the low 32 bits (PerfTest, omq) |
//! | 4..12 | time of sending, nanoseconds since the run's epoch (PerfTest) |
//! | 12..16, 16 | magic, version |
//! | 17 | position of the side in the run: a message that crossed over is foreign |
//! | 18..20 | publisher |
//! | 20..28 | run id: a message of an earlier run is foreign |
//! | 28..36 | intended time, nanoseconds since the run's epoch |
//! | 36..44 | sequence, whole |
//! | 44.. | zero |

/// Bytes of the header; no message is shorter.
pub const HEADER: usize = 44;
const MAGIC: [u8; 4] = *b"RMQP";
const VERSION: u8 = 1;

/// What a probe message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Position of the message in the plan.
    pub sequence: u64,
    /// When it was due.
    pub intended: u64,
    /// When it was sent.
    pub sent: u64,
    /// Position of its side in the run.
    pub side: u8,
    /// Which publisher of the side.
    pub publisher: u16,
    /// Which run.
    pub run: u64,
}

impl Stamp {
    /// The message, padded with zeros to `size`.
    pub fn encode(&self, size: usize) -> Vec<u8> {
        let mut body = Vec::with_capacity(size.max(HEADER));
        let low = u32::try_from(self.sequence & u64::from(u32::MAX)).unwrap_or_default();
        body.extend(low.to_be_bytes());
        body.extend(self.sent.to_be_bytes());
        body.extend(MAGIC);
        body.extend([VERSION, self.side]);
        body.extend(self.publisher.to_be_bytes());
        body.extend(self.run.to_be_bytes());
        body.extend(self.intended.to_be_bytes());
        body.extend(self.sequence.to_be_bytes());
        body.resize(size.max(HEADER), 0);
        body
    }

    /// Reads a message; `None` if it is not one of ours (any run's).
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut rest = body;
        let low = u32::from_be_bytes(take(&mut rest)?);
        let sent = u64::from_be_bytes(take(&mut rest)?);
        if take(&mut rest)? != MAGIC || take(&mut rest)? != [VERSION] {
            return None;
        }
        let [side] = take(&mut rest)?;
        let publisher = u16::from_be_bytes(take(&mut rest)?);
        let run = u64::from_be_bytes(take(&mut rest)?);
        let intended = u64::from_be_bytes(take(&mut rest)?);
        let sequence = u64::from_be_bytes(take(&mut rest)?);
        (sequence & u64::from(u32::MAX) == u64::from(low)).then_some(Self {
            sequence,
            intended,
            sent,
            side,
            publisher,
            run,
        })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAMP: Stamp =
        Stamp { sequence: 0x1_0203_0405, intended: 7, sent: 0x0a0b, side: 1, publisher: 2, run: 9 };

    #[test]
    fn the_first_twelve_bytes_are_perftests() {
        let body = STAMP.encode(100);
        assert_eq!(body.len(), 100);
        assert_eq!(body[..12], [2, 3, 4, 5, 0, 0, 0, 0, 0, 0, 0x0a, 0x0b]);
        assert_eq!(body[12..20], *b"RMQP\x01\x01\x00\x02");
        assert!(body[HEADER..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_short_size_still_carries_the_header() {
        assert_eq!(STAMP.encode(12).len(), HEADER);
    }

    #[test]
    fn other_bodies_are_not_ours() {
        assert_eq!(Stamp::decode(b""), None);
        assert_eq!(Stamp::decode(&[0; 3000]), None);
        let mut newer = STAMP.encode(HEADER);
        newer[16] = 2;
        assert_eq!(Stamp::decode(&newer), None);
        let mut torn = STAMP.encode(HEADER);
        torn[3] ^= 1;
        assert_eq!(Stamp::decode(&torn), None);
        assert_eq!(Stamp::decode(&STAMP.encode(HEADER)[..HEADER - 1]), None);
    }

    proptest! {
        #[test]
        fn round_trip(
            sequence: u64, intended: u64, sent: u64, side: u8, publisher: u16, run: u64, size in 0usize..5000,
        ) {
            let stamp = Stamp { sequence, intended, sent, side, publisher, run };
            prop_assert_eq!(Stamp::decode(&stamp.encode(size)), Some(stamp));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(body: Vec<u8>) {
            let _ = Stamp::decode(&body);
        }
    }
}
