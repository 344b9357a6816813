//! AMQP sessions of our epoch's user, one per vhost, made on demand and dropped when broken.

use super::BrokerLink;
use rabbit::amqp::Session;
use rabbit::management::Permissions;
use rabbit::{Cause, Error, Kind};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// Limit of a login and of each call. 2 s: a frozen node must not eat a slice of the sprint.
const LIMIT: Duration = Duration::from_secs(2);

/// Sessions by vhost, and where our user may work.
#[derive(Default)]
pub struct Sessions {
    open: HashMap<String, Session>,
    permitted: BTreeSet<String>,
}

impl Sessions {
    /// Drops all of it: another user, or none.
    pub fn forget(&mut self) {
        self.open.clear();
        self.permitted.clear();
    }

    /// Drops the session of a vhost: it failed, or the vhost goes.
    pub fn drop_vhost(&mut self, vhost: &str) {
        self.open.remove(vhost);
        self.permitted.remove(vhost);
    }

    /// Drops the session of a vhost if it broke.
    pub fn drop_if_broken(&mut self, vhost: &str) {
        if self.open.get(vhost).is_some_and(|session| !session.is_open()) {
            self.open.remove(vhost);
        }
    }

    /// Notes that our user may work in a vhost.
    pub fn permit(&mut self, vhost: &str) {
        self.permitted.insert(vhost.to_owned());
    }
}

impl BrokerLink {
    /// A session in `vhost` as our epoch's user. Gives it the permission first where that was not done yet:
    /// vhosts come while we work. Pods are tried in turn.
    pub async fn session(&mut self, vhost: &str) -> rabbit::Result<Session> {
        self.sessions.drop_if_broken(vhost);
        if let Some(session) = self.sessions.open.get(vhost) {
            return Ok(session.clone());
        }
        self.permit(vhost).await?;
        let session = self.log_in(vhost).await;
        if session.as_ref().is_err_and(|error| error.kind() != Kind::Unreachable) {
            // The vhost may be a new one of the same name: ask for the permission again.
            self.sessions.drop_vhost(vhost);
        }
        let session = session?;
        self.sessions.open.insert(vhost.to_owned(), session.clone());
        Ok(session)
    }

    /// Lets our epoch's user work in `vhost`. Idempotent.
    pub async fn permit(&mut self, vhost: &str) -> rabbit::Result<()> {
        let Some(user) = self.epoch_user() else { return Err(no_epoch(vhost)) };
        if self.sessions.permitted.contains(vhost) {
            return Ok(());
        }
        let all = everything(user, vhost);
        self.ask(|client| {
            let all = all.clone();
            async move { client.put_permissions(&all).await }
        })
        .await?;
        self.sessions.permit(vhost);
        Ok(())
    }

    async fn log_in(&self, vhost: &str) -> rabbit::Result<Session> {
        let Some(creds) = self.epoch() else { return Err(no_epoch(vhost)) };
        let mut outcome = Err(no_epoch(vhost));
        for address in self.amqp_addresses() {
            outcome = Session::connect(&address, vhost, creds, &creds.username, LIMIT).await;
            match &outcome {
                Err(error) if error.kind() == Kind::Unreachable => {}
                Ok(_) | Err(_) => break,
            }
        }
        outcome
    }
}

/// All permissions of a user in a vhost.
pub fn everything(user: &str, vhost: &str) -> Permissions {
    let all = || ".*".to_owned();
    Permissions {
        user: user.to_owned(),
        vhost: vhost.to_owned(),
        configure: all(),
        write: all(),
        read: all(),
    }
}

fn no_epoch(vhost: &str) -> Error {
    Error::Connect {
        address: "any pod".to_owned(),
        vhost: vhost.to_owned(),
        user: "our epoch's".to_owned(),
        cause: Cause::Unreachable("there is no such user or no pod yet".to_owned()),
    }
}
