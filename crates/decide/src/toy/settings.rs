//! What a world is like: drawn from a seed, or written down by a story.

use super::{Chance, Millis};

/// What the probe finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateMood {
    /// Green is as good as blue.
    Good,
    /// Green is much too slow.
    Slow,
    /// Windows never become valid: there is no verdict.
    Silent,
}

/// What a world is like.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "traits of a world, each on or off by itself")]
pub struct Settings {
    /// Seed of everything that happens by chance.
    pub seed: u64,
    /// What the probe finds.
    pub gate: GateMood,
    /// Number of Services that move.
    pub services: usize,
    /// How late each zone's kube-proxy follows a change.
    pub zone_lag: [Millis; 3],
    /// Consumers on the main queue.
    pub consumers: usize,
    /// Further workers, so that there are more connections than a batch.
    pub workers: usize,
    /// Whether a client goes straight to blue, past the Services.
    pub straight: bool,
    /// Whether workers send jobs through a queue with a TTL that returns them.
    pub returns: bool,
    /// When somebody makes a user on blue; 0 for never.
    pub new_user_at: Millis,
    /// How long a consumer works on a message.
    pub work: Millis,
    /// Messages that lie on blue's main queue from the beginning.
    pub backlog: usize,
    /// Messages that a publisher of the main queue sends at once, now and then; 0 for never.
    pub burst: usize,
    /// Whether applications now and then publish to where no queue is any more.
    pub replies: bool,
    /// Milliseconds after which statistics know a connection.
    pub statistics: Millis,
    /// Whether statistics tell the consumers of queues.
    pub queue_statistics: bool,
    /// Whether an alarm is on on blue: preflight must stop.
    pub alarm: bool,
    /// Whether the approval is manual.
    pub manual: bool,
    /// Whether blue is scaled to zero in the end.
    pub scale_to_zero: bool,
    /// Whether the time-out goes back.
    pub back_on_timeout: bool,
    /// Whether the fence stays when a Service is taken again.
    pub hold: bool,
    /// The switch's time-out in seconds.
    pub timeout_seconds: i32,
    /// The soak in seconds.
    pub soak_seconds: i32,
    /// Whether `mode: Check`.
    pub check: bool,
    /// Whether the spec names a Service that does not exist.
    pub missing_service: bool,
}

impl Default for Settings {
    /// A calm, small world.
    fn default() -> Self {
        Self {
            seed: 1,
            gate: GateMood::Good,
            services: 1,
            zone_lag: [0, 20, 300],
            consumers: 1,
            workers: 1,
            straight: false,
            returns: false,
            new_user_at: 0,
            work: 40,
            backlog: 0,
            burst: 0,
            replies: false,
            statistics: 5000,
            queue_statistics: true,
            alarm: false,
            manual: true,
            scale_to_zero: false,
            back_on_timeout: false,
            hold: false,
            timeout_seconds: 120,
            soak_seconds: 20,
            check: false,
            missing_service: false,
        }
    }
}

impl Settings {
    /// A world drawn from `seed`: each trait is on in some seeds and off in others.
    pub fn drawn(seed: u64) -> Self {
        let mut chance = Chance::new(seed ^ 0xC0FF_EE00);
        let gate = match chance.below(12) {
            0 => GateMood::Slow,
            1 => GateMood::Silent,
            _ => GateMood::Good,
        };
        // Often about the time at which the switch is entered.
        let new_user_at =
            if chance.one_in(2) { chance.between(38_000, 56_000) } else { chance.between(20_000, 90_000) };
        let slow_zone = if chance.one_in(8) { chance.between(900, 4000) } else { chance.between(0, 700) };
        Self {
            seed,
            gate,
            services: if chance.one_in(3) { 2 } else { 1 },
            zone_lag: [chance.between(0, 100), chance.between(0, 300), slow_zone],
            consumers: if chance.one_in(3) { 3 } else { 1 },
            workers: if chance.one_in(4) { 18 } else { 1 },
            straight: chance.one_in(6),
            returns: chance.one_in(4),
            new_user_at: if chance.one_in(3) { new_user_at } else { 0 },
            work: chance.between(5, 120),
            backlog: if chance.one_in(2) { usize::try_from(chance.below(150)).unwrap_or(0) } else { 0 },
            burst: if chance.one_in(2) { usize::try_from(chance.below(40)).unwrap_or(0) } else { 0 },
            statistics: chance.between(3000, 6000),
            queue_statistics: !chance.one_in(8),
            alarm: false,
            manual: chance.one_in(2),
            scale_to_zero: chance.one_in(3),
            back_on_timeout: chance.one_in(3),
            hold: false,
            timeout_seconds: if chance.one_in(4) { 10 } else { 60 },
            soak_seconds: i32::try_from(chance.below(20)).unwrap_or(0),
            replies: chance.one_in(5),
            check: false,
            missing_service: false,
        }
    }
}
