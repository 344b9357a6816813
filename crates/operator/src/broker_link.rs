//! The link to one broker: who we are there, its pods, its clients and sessions. In memory only.

mod clients;
mod password;
mod queues;
mod roles;
mod sessions;

pub use password::{chance, password};
pub use queues::{QueueBook, QueueRates};
pub use roles::{RoleBook, Statistics};
pub use sessions::{Sessions, everything};

use clients::Clients;
use decide::world::PodView;
use rabbit::Credentials;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;

/// Port of AMQP.
pub const AMQP: u16 = 5672;

/// The link to one broker. Everything in it can be made again; passwords are nowhere else.
#[derive(Default)]
pub struct BrokerLink {
    admin: Option<Credentials>,
    epoch: Option<Credentials>,
    pods: Vec<PodView>,
    turn: AtomicUsize,
    clients: Clients,
    /// AMQP sessions by vhost.
    pub sessions: Sessions,
    /// What connections do.
    pub roles: RoleBook,
    /// The last listings of queues.
    pub queues: QueueBook,
    /// Exchange types that the broker knows, from its overview.
    pub exchange_types: Option<Vec<String>>,
    /// Why the probe must rest here: an alarm is near.
    pub strain: Option<String>,
}

impl fmt::Debug for BrokerLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerLink").field("pods", &self.pods.len()).finish_non_exhaustive()
    }
}

impl BrokerLink {
    /// Takes the administrator's credentials of the Secret; others than before make new clients.
    pub fn set_admin(&mut self, admin: Credentials) {
        if self.admin.as_ref() != Some(&admin) {
            self.admin = Some(admin);
            self.clients.clear();
        }
    }

    /// Takes the pods as Kubernetes lists them; clients of addresses that are gone are dropped.
    pub fn set_pods(&mut self, pods: &[PodView]) {
        self.pods = pods.to_vec();
        let known: Vec<String> = self.pods.iter().filter_map(|pod| pod.ip.clone()).collect();
        self.clients.keep(&known);
    }

    /// The pods, as they were told last.
    pub fn pods(&self) -> &[PodView] {
        &self.pods
    }

    /// Whether an administrator is known, so that anything can be asked.
    pub const fn has_admin(&self) -> bool {
        self.admin.is_some()
    }

    /// The administrator's name: never imported over, never copied.
    pub fn admin_user(&self) -> Option<&str> {
        self.admin.as_ref().map(|creds| creds.username.as_str())
    }

    /// The name of our epoch's user, once its password was proven.
    pub fn epoch_user(&self) -> Option<&str> {
        self.epoch.as_ref().map(|creds| creds.username.as_str())
    }

    /// The credentials of our epoch's user.
    pub const fn epoch(&self) -> Option<&Credentials> {
        self.epoch.as_ref()
    }

    /// From now on we work as this user; sessions of an earlier one are dropped.
    pub fn establish_epoch(&mut self, creds: Credentials) {
        if self.epoch.as_ref() != Some(&creds) {
            self.epoch = Some(creds);
            self.clients.clear();
            self.sessions.forget();
        }
    }

    /// Our user is gone or about to go.
    pub fn forget_epoch(&mut self) {
        self.epoch = None;
        self.clients.clear();
        self.sessions.forget();
    }

    /// Addresses for AMQP, ready pods first, beginning with the one whose turn it is.
    pub fn amqp_addresses(&self) -> Vec<String> {
        self.in_turn().into_iter().map(|ip| host_port(&ip, AMQP)).collect()
    }
}

/// `host:port`, with brackets around an IPv6 address.
pub fn host_port(host: &str, port: u16) -> String {
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) => format!("[{host}]:{port}"),
        Ok(IpAddr::V4(_)) | Err(_) => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, ip: &str, ready: bool) -> PodView {
        PodView { name: name.into(), ip: Some(ip.into()), ready, ..PodView::default() }
    }

    #[test]
    fn ready_pods_come_first_and_take_turns() {
        let mut link = BrokerLink::default();
        link.set_pods(&[pod("a", "10.0.0.1", false), pod("b", "10.0.0.2", true), pod("c", "fd00::3", true)]);
        assert_eq!(link.amqp_addresses(), ["10.0.0.2:5672", "[fd00::3]:5672", "10.0.0.1:5672"]);
        link.rotate();
        assert_eq!(link.amqp_addresses(), ["[fd00::3]:5672", "10.0.0.2:5672", "10.0.0.1:5672"]);
    }
}
