//! What each connection does, put together from statistics that come seconds late. Pure but for its clock.

use decide::roles::{Activity, Role, classify};
use rabbit::management::{Channel, Connection, Consumer, LiveConnection};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How long after a connection was first seen its statistics are believed: they are collected every 5 s, and
/// until then a publisher looks idle and a worker like a consumer.
const SETTLED: Duration = Duration::from_secs(6);

/// A queue's vhost and name.
type Key = (String, String);

struct Entry {
    first_seen: Instant,
    learned: Option<Instant>,
    activity: Activity,
    client: Option<String>,
    protocol: Option<String>,
}

/// Activity by connection name. What was published once is not forgotten with its channel.
#[derive(Default)]
pub struct RoleBook {
    entries: HashMap<String, Entry>,
    fetched: Option<Instant>,
}

/// The listings with statistics that roles come from.
pub struct Statistics<'a> {
    /// Connections.
    pub connections: &'a [Connection],
    /// Channels.
    pub channels: &'a [Channel],
    /// Consumers.
    pub consumers: &'a [Consumer],
    /// Queues that are exclusive or named by the server.
    pub private: &'a BTreeSet<Key>,
    /// Queues that go with their last consumer.
    pub auto_delete: &'a BTreeSet<Key>,
}

impl RoleBook {
    /// Takes the live list: new ones are unknown, those that are gone are forgotten.
    pub fn note(&mut self, live: &[LiveConnection], now: Instant) {
        let names: BTreeSet<&str> = live.iter().map(|connection| connection.name.as_str()).collect();
        self.entries.retain(|name, _| names.contains(name.as_str()));
        for connection in live {
            let entry = self.entries.entry(connection.name.clone()).or_insert_with(|| Entry {
                first_seen: now,
                learned: None,
                activity: Activity::default(),
                client: None,
                protocol: None,
            });
            entry.client = connection.user_provided_name.clone().or(entry.client.take());
            entry.protocol = connection.protocol.clone().or(entry.protocol.take());
        }
    }

    /// Whether statistics should be read: they are old, or somebody is unknown and they are not brand-new.
    pub fn wants_statistics(&self, now: Instant, while_unknown: Duration, at_rest: Duration) -> bool {
        let Some(fetched) = self.fetched else { return true };
        let age = now.saturating_duration_since(fetched);
        let unknown = self.entries.values().any(|entry| role(entry) == Role::Unknown);
        age >= at_rest || (unknown && age >= while_unknown)
    }

    /// Learns from statistics read at `now`.
    pub fn learn(&mut self, statistics: &Statistics<'_>, now: Instant) {
        self.fetched = Some(now);
        let activities = activities(statistics);
        for (name, entry) in &mut self.entries {
            let Some((activity, connection)) = activities.get(name.as_str()) else { continue };
            let published = entry.activity.published.max(activity.published);
            entry.activity = Activity { published, ..*activity };
            entry.learned = Some(now);
            entry.client = entry.client.take().or_else(|| connection.user_provided_name.clone());
            entry.protocol = entry.protocol.take().or_else(|| connection.protocol.clone());
        }
    }

    /// What a connection does.
    pub fn role(&self, name: &str) -> Role {
        self.entries.get(name).map_or(Role::Unknown, role)
    }

    /// What its client calls itself.
    pub fn client(&self, name: &str) -> Option<String> {
        self.entries.get(name)?.client.clone()
    }

    /// Its protocol: the live list of old brokers does not tell it.
    pub fn protocol(&self, name: &str) -> Option<String> {
        self.entries.get(name)?.protocol.clone()
    }
}

fn role(entry: &Entry) -> Role {
    match entry.learned {
        Some(learned) if learned.saturating_duration_since(entry.first_seen) >= SETTLED => {
            classify(entry.activity)
        }
        Some(_) | None => Role::Unknown,
    }
}

/// What statistics know of each connection.
fn activities<'a>(statistics: &Statistics<'a>) -> BTreeMap<&'a str, (Activity, &'a Connection)> {
    let mut channels: BTreeMap<&str, Vec<&Channel>> = BTreeMap::new();
    for channel in statistics.channels {
        if let Some(connection) = &channel.connection {
            channels.entry(connection).or_default().push(channel);
        }
    }
    let consumed = consumed(statistics.consumers);
    statistics
        .connections
        .iter()
        .map(|connection| {
            let name = connection.name.as_str();
            let own = channels.get(name).map(Vec::as_slice).unwrap_or_default();
            let queues = consumed.get(name).cloned().unwrap_or_default();
            let activity = if own.is_empty() {
                without_channels(connection)
            } else {
                activity(own, &queues, statistics)
            };
            (name, (activity, connection))
        })
        .collect()
}

/// Queues by consuming connection, one entry per consumer.
fn consumed(consumers: &[Consumer]) -> BTreeMap<&str, Vec<Key>> {
    let mut consumed: BTreeMap<&str, Vec<Key>> = BTreeMap::new();
    for consumer in consumers {
        if let Some(connection) = &consumer.connection {
            consumed.entry(connection).or_default().push((consumer.vhost.clone(), consumer.queue.clone()));
        }
    }
    consumed
}

/// A connection that has no channel does nothing; one whose channels are not listed yet is unknown.
fn without_channels(connection: &Connection) -> Activity {
    match connection.channels {
        Some(0) => Activity { published: Some(0), consumers: Some(0), exclusive_queues: Some(0) },
        Some(_) | None => Activity::default(),
    }
}

fn activity(channels: &[&Channel], queues: &[Key], statistics: &Statistics<'_>) -> Activity {
    let published = channels.iter().map(|channel| published(channel));
    let published = published.clone().flatten().find(|count| *count > 0).or_else(|| {
        published.into_iter().collect::<Option<Vec<u64>>>().map(|counts| counts.into_iter().sum())
    });
    let is_private = |queue: &&Key| {
        statistics.private.contains(*queue)
            || (statistics.auto_delete.contains(*queue) && has_one_reader(queue, statistics.consumers))
    };
    let private = queues.iter().filter(is_private).count();
    let shared = queues.len().saturating_sub(private);
    let told = channels.iter().map(|channel| channel.consumers).sum::<Option<u64>>();
    let listed = u64::try_from(queues.len()).unwrap_or(u64::MAX);
    // The list of consumers and the counts of the channels come at different times: where the channels know
    // of more, somebody is not listed yet.
    let consumers = match (shared, told) {
        (1.., _) => u64::try_from(shared).ok(),
        (0, Some(told)) if told <= listed => Some(0),
        (0, Some(_) | None) => None,
    };
    Activity { published, consumers, exclusive_queues: u64::try_from(private).ok() }
}

/// Messages published on a channel: absent counters of a channel whose statistics have come are none.
fn published(channel: &Channel) -> Option<u64> {
    match (&channel.message_stats, channel.consumers) {
        (Some(stats), _) => Some(stats.count("publish").unwrap_or(0)),
        (None, Some(_)) => Some(0),
        (None, None) => None,
    }
}

/// Whether only one connection reads a queue.
fn has_one_reader(queue: &Key, consumers: &[Consumer]) -> bool {
    let reads = |consumer: &&Consumer| consumer.vhost == queue.0 && consumer.queue == queue.1;
    let readers: BTreeSet<_> = consumers.iter().filter(reads).map(|consumer| &consumer.connection).collect();
    readers.len() == 1
}

#[cfg(test)]
mod tests;
