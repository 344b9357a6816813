//! A logged-in connection with a pool of channels.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::types::ShortString;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{Channel, Connection, ConnectionProperties, ErrorKind};

use super::dial::dial;
use crate::error::{Cause, Error, Result};
use crate::secret::Credentials;

/// Frame size we ask for. lapin holds two buffers of 32 frames per connection: 16 KiB keeps that at 1 MiB,
/// and it is above the 8 KiB that 4.1 demands before login.
const FRAME_MAX: u32 = 16 * 1024;

/// Heartbeat we ask for, seconds. 10 s: a frozen peer is noticed within two, busy nodes manage it easily.
const HEARTBEAT: u16 = 10;

/// Most idle channels kept. 16: more than any caller here uses at once.
const POOL: usize = 16;

/// One AMQP connection, logged in. Cloning shares it; dropping the last clone closes it. It never recovers:
/// once closed every call fails and a new session is needed. Costs one OS thread.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    address: String,
    vhost: String,
    user: String,
    timeout: Duration,
    idle: Mutex<Vec<Channel>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { address, vhost, user, .. } = &*self.inner;
        f.debug_struct("Session").field("address", address).field("vhost", vhost).field("user", user).finish()
    }
}

impl Session {
    /// Logs in at `host:port`. Needs access to the vhost; changes nothing but counts as a connection.
    ///
    /// A refusal carries the broker's code: [`Cause::Amqp`] 403 wrong password or no access, 530 vhost not
    /// there or a connection limit (the fence). `timeout` bounds this and every later call of the session.
    /// A cut or a time-out hangs up.
    pub async fn connect(
        address: &str,
        vhost: &str,
        creds: &Credentials,
        name: &str,
        timeout: Duration,
    ) -> Result<Self> {
        let failed = |cause| Error::Connect {
            address: address.to_owned(),
            vhost: vhost.to_owned(),
            user: creds.username.clone(),
            cause,
        };
        let uri = uri(address, vhost, creds).map_err(failed)?;
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let connection = dial(uri, properties, timeout).await.map_err(failed)?;
        Ok(Self {
            inner: Arc::new(Inner {
                connection,
                address: address.to_owned(),
                vhost: vhost.to_owned(),
                user: creds.username.clone(),
                timeout,
                idle: Mutex::default(),
            }),
        })
    }

    /// Whether the connection still stands as far as we know.
    pub fn is_open(&self) -> bool {
        self.inner.connection.status().connected()
    }

    /// Whether the broker blocks our publishes (alarm).
    pub fn is_blocked(&self) -> bool {
        self.inner.connection.status().blocked()
    }

    /// Where it is connected to.
    pub fn address(&self) -> &str {
        &self.inner.address
    }

    /// Its virtual host.
    pub fn vhost(&self) -> &str {
        &self.inner.vhost
    }

    /// Its user.
    pub fn user(&self) -> &str {
        &self.inner.user
    }

    /// Time limit of each call.
    pub fn timeout(&self) -> Duration {
        self.inner.timeout
    }

    /// Closes the connection for all clones; one that is closed already is fine.
    pub async fn close(&self) {
        if self.is_open() {
            // A broker that does not answer is given up by the heartbeat.
            let _ = within(self.inner.timeout, self.inner.connection.close(200, "done".into())).await;
        }
    }

    /// The connection, for channels that must not be shared.
    pub(super) fn connection(&self) -> &Connection {
        &self.inner.connection
    }

    /// Takes an idle channel or opens one.
    pub(super) async fn channel(&self) -> Result<Channel, Cause> {
        loop {
            let idle = self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(channel) if channel.status().connected() => return Ok(channel),
                Some(_) => {}
                None => return within(self.inner.timeout, self.inner.connection.create_channel()).await,
            }
        }
    }

    /// Gives a channel back. Only one without a pending answer, consumer or unacked delivery.
    pub(super) fn put_back(&self, channel: Channel) {
        let mut idle = self.inner.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < POOL && channel.status().connected() {
            idle.push(channel);
        }
    }
}

/// Waits for a lapin call no longer than the limit.
pub(super) async fn within<T>(
    timeout: Duration,
    call: impl Future<Output = lapin::Result<T>>,
) -> Result<T, Cause> {
    match tokio::time::timeout(timeout, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(cause_of(&error)),
        Err(_) => Err(Cause::Timeout(timeout)),
    }
}

/// A queue or exchange name as AMQP carries it: at most 255 bytes.
pub(super) fn short(name: &str) -> Result<ShortString, Cause> {
    ShortString::try_new(name).map_err(|_| Cause::Name(name.to_owned()))
}

/// Translates lapin's errors.
pub(super) fn cause_of(error: &lapin::Error) -> Cause {
    match error.kind() {
        ErrorKind::ProtocolError(amqp) => {
            Cause::Amqp { code: amqp.get_id(), text: amqp.get_message().to_string() }
        }
        ErrorKind::ParsingError(_)
        | ErrorKind::InvalidProtocolVersion(_)
        | ErrorKind::SerialisationError(_) => Cause::Malformed(error.to_string()),
        _ => Cause::Unreachable(error.to_string()),
    }
}

fn uri(address: &str, vhost: &str, creds: &Credentials) -> Result<AMQPUri, Cause> {
    let bad = || Cause::Name(address.to_owned());
    let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok(AMQPUri {
        scheme: AMQPScheme::AMQP,
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: creds.username.clone(),
                password: creds.password.expose().to_owned(),
            },
            host: host.to_owned(),
            port: port.parse().map_err(|_| bad())?,
        },
        vhost: short(vhost)?.to_string(),
        query: AMQPQueryString {
            frame_max: Some(FRAME_MAX),
            heartbeat: Some(HEARTBEAT),
            ..AMQPQueryString::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_split_at_the_last_colon() {
        let creds = Credentials::new("u", "p@/:");
        let uri_of = |address| uri(address, "/", &creds);
        assert_eq!(uri_of("10.0.0.1:5672").unwrap().authority.port, 5672);
        assert_eq!(uri_of("[fd00::1]:5672").unwrap().authority.host, "fd00::1");
        assert_eq!(uri_of("10.0.0.1:5672").unwrap().authority.userinfo.password, "p@/:");
        assert!(uri_of("10.0.0.1").is_err());
        assert!(uri_of("10.0.0.1:amqp").is_err());
        assert!(uri("h:1", &"v".repeat(256), &creds).is_err());
    }

    #[tokio::test]
    async fn a_silent_peer_costs_no_thread_for_long() {
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let creds = Credentials::new("operator", "hunter2");
        let threads = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        let before = threads();
        for _ in 0..20 {
            let limit = Duration::from_millis(50);
            let error = Session::connect(&address, "/", &creds, "test", limit).await.unwrap_err();
            assert_eq!(error.cause(), &Cause::Timeout(limit));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        println!("{before} threads before, {} after", threads());
        assert!(threads() < before + 10, "{} threads left", threads());
    }

    #[tokio::test]
    async fn a_closed_port_is_unreachable_and_tells_no_password() {
        let creds = Credentials::new("operator", "hunter2");
        let error =
            Session::connect("127.0.0.1:1", "/", &creds, "test", Duration::from_secs(2)).await.unwrap_err();
        assert_eq!(error.kind(), crate::Kind::Unreachable);
        assert!(!format!("{error:?} {}", error.report()).contains("hunter2"));
    }
}
