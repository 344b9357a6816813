//! The last listings of a broker's queues, so that sweeps need not list again.

use decide::effect::QueueRef;
use rabbit::management::{Queue, QueueStats};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What statistics say of a queue, seconds late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueRates {
    /// Consumers.
    pub consumers: Option<u64>,
    /// Acks per second, rounded up: one in three seconds is not none.
    pub acks_per_second: Option<u64>,
}

/// The last listings.
#[derive(Default)]
pub struct QueueBook {
    list: Option<(Instant, Arc<Vec<Queue>>)>,
    rates: HashMap<QueueRef, QueueRates>,
    rates_at: Option<Instant>,
}

impl QueueBook {
    /// The last listing, if it is younger than `max_age`.
    pub fn listed(&self, max_age: Duration) -> Option<Arc<Vec<Queue>>> {
        let (at, list) = self.list.as_ref()?;
        (at.elapsed() < max_age).then(|| Arc::clone(list))
    }

    /// Keeps a listing.
    pub fn keep(&mut self, list: Vec<Queue>) -> Arc<Vec<Queue>> {
        let list = Arc::new(list);
        self.list = Some((Instant::now(), Arc::clone(&list)));
        list
    }

    /// The listing is wrong: a queue of it is gone.
    pub fn forget(&mut self) {
        self.list = None;
    }

    /// Whether the rates are older than `max_age`, or absent.
    pub fn wants_rates(&self, max_age: Duration) -> bool {
        self.rates_at.is_none_or(|at| at.elapsed() >= max_age)
    }

    /// Keeps the rates of a listing with statistics.
    pub fn keep_rates(&mut self, rows: Vec<QueueStats>) {
        self.rates = rows
            .into_iter()
            .map(|row| {
                let acks = row.message_stats.rate("ack").and_then(whole);
                let rates = QueueRates { consumers: row.queue.consumers, acks_per_second: acks };
                (QueueRef { vhost: row.queue.vhost, name: row.queue.name }, rates)
            })
            .collect();
        self.rates_at = Some(Instant::now());
    }

    /// The rates of a queue; absent where unknown.
    pub fn rates(&self, queue: &QueueRef) -> QueueRates {
        self.rates.get(queue).copied().unwrap_or_default()
    }

    /// Queues that belong to connections, not to applications: exclusive, or named by the server.
    pub fn private(&self) -> BTreeSet<(String, String)> {
        let list = self.list.as_ref().map(|(_, list)| list.as_slice()).unwrap_or_default();
        let private = |queue: &&Queue| queue.exclusive == Some(true) || queue.name.starts_with("amq.gen-");
        list.iter().filter(private).map(|queue| (queue.vhost.clone(), queue.name.clone())).collect()
    }

    /// Queues that go with their last consumer.
    pub fn auto_delete(&self) -> BTreeSet<(String, String)> {
        let list = self.list.as_ref().map(|(_, list)| list.as_slice()).unwrap_or_default();
        let own = |queue: &&Queue| queue.auto_delete == Some(true);
        list.iter().filter(own).map(|queue| (queue.vhost.clone(), queue.name.clone())).collect()
    }
}

/// A rate as a whole number, rounded up; what is no rate is unknown.
fn whole(rate: f64) -> Option<u64> {
    if !rate.is_finite() || rate < 0.0 {
        return None;
    }
    format!("{:.0}", rate.ceil()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_round_up_and_odd_ones_are_unknown() {
        assert_eq!(whole(0.2), Some(1));
        assert_eq!(whole(0.0), Some(0));
        assert_eq!(whole(512.5), Some(513));
        assert_eq!(whole(f64::NAN), None);
        assert_eq!(whole(-1.0), None);
    }
}
