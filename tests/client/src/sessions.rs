//! The log of a process's connections: opened, closed, refused. Pure: time comes in.

use std::collections::{BTreeMap, VecDeque};

use crate::document::Session;
use crate::sniff::Server;

/// Enough for every connection of a night of tests; older ones are dropped so that memory stays bounded.
const KEPT: usize = 4096;

/// All connections of a process.
#[derive(Debug, Default)]
pub struct Sessions {
    clusters: Vec<String>,
    closed: VecDeque<Session>,
    open: BTreeMap<usize, Session>,
    opened: BTreeMap<usize, u64>,
    errors: BTreeMap<String, u64>,
}

impl Sessions {
    /// Connection `connection` (from 1) is open; returns the index of its cluster.
    pub fn opened(&mut self, connection: usize, server: &Server, now: u64) -> u32 {
        let cluster = self.index(&server.cluster);
        *self.opened.entry(connection).or_default() += 1;
        let version = server.version.clone();
        let session = Session { connection, cluster, version, opened_ms: now, closed_ms: None, reason: None };
        self.open.insert(connection, session);
        cluster
    }

    /// It closed, for this reason.
    pub fn closed(&mut self, connection: usize, reason: &str, now: u64) {
        self.failed(reason);
        if let Some(mut session) = self.open.remove(&connection) {
            session.closed_ms = Some(now);
            session.reason = Some(reason.to_owned());
            if self.closed.len() >= KEPT {
                self.closed.pop_front();
            }
            self.closed.push_back(session);
        }
    }

    /// An attempt to open it failed, for this reason.
    pub fn failed(&mut self, reason: &str) {
        *self.errors.entry(reason.to_owned()).or_default() += 1;
    }

    /// The names of the clusters met so far; a cluster's place in the list never changes.
    pub fn clusters(&self) -> &[String] {
        &self.clusters
    }

    /// Closes and failures by reason.
    pub fn errors(&self) -> &BTreeMap<String, u64> {
        &self.errors
    }

    /// How often a connection was opened again.
    pub fn reconnects(&self) -> u64 {
        self.opened.values().map(|count| count.saturating_sub(1)).sum()
    }

    /// Where connections 1 to `count` are now.
    pub fn connected_to(&self, count: usize) -> Vec<Option<String>> {
        (1..=count).map(|connection| self.open.get(&connection).map(|session| self.name(session))).collect()
    }

    /// The latest sessions, at most so many, by the time of their opening.
    pub fn latest(&self, count: usize) -> Vec<Session> {
        let mut all: Vec<_> = self.closed.iter().chain(self.open.values()).cloned().collect();
        all.sort_by_key(|session| session.opened_ms);
        all.split_off(all.len().saturating_sub(count))
    }

    fn name(&self, session: &Session) -> String {
        let index = usize::try_from(session.cluster).unwrap_or(usize::MAX);
        self.clusters.get(index).cloned().unwrap_or_default()
    }

    fn index(&mut self, cluster: &str) -> u32 {
        let place = self.clusters.iter().position(|name| name == cluster).unwrap_or_else(|| {
            self.clusters.push(cluster.to_owned());
            self.clusters.len() - 1
        });
        u32::try_from(place).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(cluster: &str) -> Server {
        Server { cluster: cluster.to_owned(), version: "4".to_owned() }
    }

    #[test]
    fn knows_where_it_is_and_was() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.opened(1, &server("one"), 10), 0);
        assert_eq!(sessions.opened(2, &server("one"), 11), 0);
        sessions.closed(1, "320", 20);
        sessions.failed("530");
        assert_eq!(sessions.connected_to(2), [None, Some("one".to_owned())]);
        assert_eq!(sessions.opened(1, &server("two"), 30), 1);
        assert_eq!(sessions.connected_to(1), [Some("two".to_owned())]);
        assert_eq!((sessions.reconnects(), sessions.errors()["320"], sessions.errors()["530"]), (1, 1, 1));
        let opened: Vec<_> = sessions.latest(2).iter().map(|session| session.opened_ms).collect();
        assert_eq!(opened, [11, 30]);
    }
}
