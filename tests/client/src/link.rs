//! One AMQP connection: opened through a Service name that is resolved anew each time. I/O.

use std::time::Duration;

use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures::StreamExt;
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{Channel, Connection, ConnectionProperties, Event};

use crate::reason::{Down, reason};
use crate::sniff::{Listening, Server};

/// A broker that is frozen accepts a connection and says nothing; then the client asks the Service again.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// A polite goodbye must not hold up the next connection.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(300);

/// The broker's reason may arrive a moment after lapin's first error.
const REASON_PAUSE: Duration = Duration::from_millis(20);

/// Where to connect, as whom. Holds a password: it has no `Debug`.
#[derive(Clone)]
pub struct Target {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Vhost.
    pub vhost: String,
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
    /// Heartbeat in seconds; a silent broker is given up after twice as long.
    pub heartbeat: u16,
}

impl Target {
    fn uri(&self) -> AMQPUri {
        AMQPUri {
            scheme: AMQPScheme::AMQP,
            authority: AMQPAuthority {
                userinfo: AMQPUserInfo { username: self.user.clone(), password: self.password.clone() },
                host: self.host.clone(),
                port: self.port,
            },
            vhost: self.vhost.clone(),
            query: AMQPQueryString { heartbeat: Some(self.heartbeat), ..AMQPQueryString::default() },
        }
    }
}

/// An open connection and who is at its other end.
#[derive(Debug)]
pub struct Link {
    connection: Connection,
    server: Server,
}

impl Link {
    /// Connects; `name` is what the management API shows. The error is a word for counting.
    pub async fn open(target: &Target, name: &str) -> Result<Self, String> {
        let reactor = Listening::new(Tokio::current());
        let runtime = Runtime::new(RuntimeParts::new(Tokio::current(), reactor.clone()));
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let opening = Connection::connect_uri_with_runtime(target.uri(), properties, runtime);
        match tokio::time::timeout(OPEN_TIMEOUT, opening).await {
            Ok(Ok(connection)) => Ok(Self { connection, server: reactor.server().unwrap_or_default() }),
            Ok(Err(error)) => Err(reason(&error)),
            Err(_) => Err("timeout".to_owned()),
        }
    }

    /// Who answered.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// A channel of its own.
    pub async fn channel(&self) -> lapin::Result<Channel> {
        self.connection.create_channel().await
    }

    /// Waits for the connection's end and says so; when someone else was first, listens a moment longer, since
    /// he may only have seen the consequence.
    ///
    /// lapin hands each event to one listener only, so this is the only one.
    pub async fn watch(&self, down: &Down) {
        let mut events = std::pin::pin!(self.connection.events_listener());
        let mut over = std::pin::pin!(async {
            down.wait().await;
            tokio::time::sleep(REASON_PAUSE).await;
        });
        loop {
            tokio::select! {
                biased;
                event = events.next() => match event {
                    Some(Event::Error(error)) => return down.fail(reason(&error)),
                    Some(_) => {}
                    None => return down.fail("gone".to_owned()),
                },
                () = &mut over => return,
            }
        }
    }

    /// Says goodbye where that is still possible.
    pub async fn close(self) {
        let goodbye = self.connection.close(200, "bye".into());
        // It is closed already, or it will be when this is dropped: nothing depends on the answer.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
    }
}
