//! What a connection does, from what statistics say of it. An absent statistic is unknown, not zero.

use serde::{Deserialize, Serialize};

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Role {
    /// It only publishes.
    Publisher,
    /// It only consumes.
    Consumer,
    /// It does both on one connection.
    Worker,
    /// It owns exclusive queues and serves no shared one.
    BroadcastSubscriber,
    /// Its statistics have come and show neither publishing nor consuming.
    Idle,
    /// No statistics yet.
    Unknown,
}

/// What statistics say of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Messages published on all its channels.
    pub published: Option<u64>,
    /// Consumers on shared queues.
    pub consumers: Option<u64>,
    /// Exclusive queues that it owns.
    pub exclusive_queues: Option<u64>,
}

/// Classifies a connection.
pub const fn classify(activity: Activity) -> Role {
    match (activity.published, activity.consumers, activity.exclusive_queues) {
        (_, Some(0), Some(1..)) => Role::BroadcastSubscriber,
        (Some(1..), Some(1..), _) => Role::Worker,
        (Some(1..), Some(0), _) => Role::Publisher,
        (Some(0), Some(1..), _) => Role::Consumer,
        (Some(0), Some(0), _) => Role::Idle,
        (None, _, _) | (_, None, _) => Role::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_statistic_is_unknown() {
        let activity = Activity { published: Some(5), consumers: None, exclusive_queues: Some(0) };
        assert_eq!(classify(activity), Role::Unknown);
    }

    #[test]
    fn one_that_does_both_is_a_worker() {
        let activity = Activity { published: Some(5), consumers: Some(1), exclusive_queues: Some(0) };
        assert_eq!(classify(activity), Role::Worker);
    }

    #[test]
    fn one_with_only_exclusive_queues_is_a_broadcast_subscriber() {
        let activity = Activity { published: Some(0), consumers: Some(0), exclusive_queues: Some(2) };
        assert_eq!(classify(activity), Role::BroadcastSubscriber);
    }
}
