//! Clients of one broker's pods: kept, taken in turn, and another asked where one does not answer.

use super::{BrokerLink, host_port};
use decide::world::PodView;
use rabbit::management::Client;
use rabbit::{Cause, Credentials, Error, Kind, Timeouts};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Port of the management API.
const MANAGEMENT: u16 = 15672;
/// Port of the Prometheus endpoint.
const METRICS: u16 = 15692;
/// Pods asked before a call fails. 3: a zone may be gone, all of them together are an answer.
const ATTEMPTS: usize = 3;

/// Limits of small calls and listings: a slice of the sprint must not hang on one node.
const QUICK: Timeouts = Timeouts {
    connect: Duration::from_secs(1),
    request: Duration::from_secs(3),
    bulk: Duration::from_secs(10),
};

/// As whom a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    /// The administrator of the Secret: only to create and delete our own users.
    Admin,
    /// The user of our epoch.
    Epoch,
}

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Patience {
    Quick,
    Bulk,
}

/// A client's address, who it is, and how long it waits.
type Key = (String, Who, Patience);

/// Clients that were made, so that connections are reused.
#[derive(Default)]
pub struct Clients {
    management: Mutex<HashMap<Key, Client>>,
    scrapers: Mutex<HashMap<String, rabbit::metrics::Client>>,
}

impl Clients {
    /// Drops all clients that carry credentials.
    pub fn clear(&self) {
        self.management().clear();
    }

    /// Drops clients of other addresses.
    pub fn keep(&self, known: &[String]) {
        self.management().retain(|(ip, _, _), _| known.contains(ip));
        self.scrapers().retain(|ip, _| known.contains(ip));
    }

    fn management(&self) -> MutexGuard<'_, HashMap<Key, Client>> {
        // Only ever a map of clients: whatever a panic left in it is good enough.
        self.management.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn scrapers(&self) -> MutexGuard<'_, HashMap<String, rabbit::metrics::Client>> {
        self.scrapers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BrokerLink {
    /// A client of one pod, as our epoch's user once that is established, else as the administrator.
    pub fn client_for(&self, pod: &PodView) -> rabbit::Result<Client> {
        let ip = pod.ip.as_deref().ok_or_else(|| nobody(&format!("{} has no address yet", pod.name)))?;
        self.client_at(ip, self.who(), Patience::Quick)
    }

    /// Makes a call as our epoch's user, or as the administrator until that is established; while pods do not
    /// answer the next one is asked. Only for calls that may be repeated.
    pub async fn ask<T, Fut>(&self, call: impl Fn(Client) -> Fut) -> rabbit::Result<T>
    where
        Fut: Future<Output = rabbit::Result<T>>,
    {
        self.ask_as(self.who(), Patience::Quick, call).await
    }

    /// As [`Self::ask`], for exports and imports.
    pub async fn ask_long<T, Fut>(&self, call: impl Fn(Client) -> Fut) -> rabbit::Result<T>
    where
        Fut: Future<Output = rabbit::Result<T>>,
    {
        self.ask_as(self.who(), Patience::Bulk, call).await
    }

    /// As [`Self::ask`], as the administrator of the Secret: only to create and delete our own users.
    pub async fn ask_admin<T, Fut>(&self, call: impl Fn(Client) -> Fut) -> rabbit::Result<T>
    where
        Fut: Future<Output = rabbit::Result<T>>,
    {
        self.ask_as(Who::Admin, Patience::Quick, call).await
    }

    /// A client of the pod whose turn it is, with credentials that are not established yet.
    pub fn client_with(&self, creds: &Credentials) -> rabbit::Result<Client> {
        let ip = self.in_turn().into_iter().next().ok_or_else(|| nobody("no pod has an address"))?;
        Client::new(&format!("http://{}", host_port(&ip, MANAGEMENT)), creds.clone(), QUICK)
    }

    /// A client of one pod's Prometheus endpoint.
    pub fn scraper(&self, pod: &PodView) -> rabbit::Result<rabbit::metrics::Client> {
        let ip = pod.ip.as_deref().ok_or_else(|| nobody(&format!("{} has no address yet", pod.name)))?;
        if let Some(scraper) = self.clients.scrapers().get(ip) {
            return Ok(scraper.clone());
        }
        let scraper = rabbit::metrics::Client::new(&format!("http://{}", host_port(ip, METRICS)), QUICK)?;
        self.clients.scrapers().insert(ip.to_owned(), scraper.clone());
        Ok(scraper)
    }

    /// The next pod's turn.
    pub fn rotate(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
    }

    async fn ask_as<T, Fut>(
        &self,
        who: Who,
        patience: Patience,
        call: impl Fn(Client) -> Fut,
    ) -> rabbit::Result<T>
    where
        Fut: Future<Output = rabbit::Result<T>>,
    {
        let mut left = self.in_turn().len().min(ATTEMPTS);
        loop {
            left = left.saturating_sub(1);
            match call(self.client_as(who, patience)?).await {
                Err(error) if error.kind() == Kind::Unreachable && left > 0 => self.rotate(),
                outcome => return outcome,
            }
        }
    }

    const fn who(&self) -> Who {
        if self.epoch.is_some() { Who::Epoch } else { Who::Admin }
    }

    fn client_as(&self, who: Who, patience: Patience) -> rabbit::Result<Client> {
        let ip = self.in_turn().into_iter().next().ok_or_else(|| nobody("no pod has an address"))?;
        self.client_at(&ip, who, patience)
    }

    fn client_at(&self, ip: &str, who: Who, patience: Patience) -> rabbit::Result<Client> {
        let creds = match who {
            Who::Admin => self.admin.as_ref().ok_or_else(|| nobody("no credentials yet"))?,
            Who::Epoch => self.epoch.as_ref().ok_or_else(|| nobody("no user of our epoch yet"))?,
        };
        let key = (ip.to_owned(), who, patience);
        if let Some(client) = self.clients.management().get(&key) {
            return Ok(client.clone());
        }
        let timeouts = match patience {
            Patience::Quick => QUICK,
            Patience::Bulk => Timeouts::default(),
        };
        let base = format!("http://{}", host_port(ip, MANAGEMENT));
        let client = Client::new(&base, creds.clone(), timeouts)?;
        self.clients.management().insert(key, client.clone());
        Ok(client)
    }

    /// Addresses of pods, ready ones first; each part begins with the one whose turn it is.
    pub(super) fn in_turn(&self) -> Vec<String> {
        let with_ip = |ready: bool| -> Vec<String> {
            self.pods.iter().filter(|pod| pod.ready == ready).filter_map(|pod| pod.ip.clone()).collect()
        };
        let turn = self.turn.load(Ordering::Relaxed);
        [with_ip(true), with_ip(false)]
            .into_iter()
            .flat_map(|mut part| {
                let by = turn.checked_rem(part.len()).unwrap_or(0);
                part.rotate_left(by);
                part
            })
            .collect()
    }
}

/// There is nobody to ask.
fn nobody(why: &str) -> Error {
    Error::BuildClient { url: "the broker".to_owned(), cause: Cause::Unreachable(why.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_pods_or_credentials_there_is_nobody_and_no_password_shows() {
        let client = |link: &BrokerLink| link.client_as(link.who(), Patience::Quick);
        let mut link = BrokerLink::default();
        assert!(client(&link).is_err());
        let pod =
            PodView { name: "a".into(), ip: Some("10.0.0.1".into()), ready: true, ..PodView::default() };
        link.set_pods(&[pod]);
        assert!(client(&link).unwrap_err().report().contains("no credentials"));
        link.set_admin(Credentials::new("user", "hunter2"));
        assert_eq!(client(&link).unwrap().username(), "user");
        link.establish_epoch(Credentials::new("rmqm.x", "hunter3"));
        assert_eq!(client(&link).unwrap().username(), "rmqm.x");
        assert!(!format!("{link:?}").contains("hunter"));
        link.set_pods(&[]);
        assert!(link.clients.management().is_empty(), "clients of pods that are gone are dropped");
    }
}
