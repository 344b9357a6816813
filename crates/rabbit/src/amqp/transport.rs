//! What the probe needs of AMQP, over lapin: publishing without waiting, confirms and deliveries as events.
//!
//! A [`Session`] is two connections to one broker, one that publishes and one that consumes with a channel
//! per queue: while a broker blocks a publisher lapin writes nothing on that connection, acks included.
//! lapin's own recovery is off; a session that ends says so once and is thrown away.
//!
//! *Cut-safe:* dropping a session (or its future) closes its sockets at once; declared queues stay until
//! [`Session::close`] removes them or `x-expires` does.

use std::future::poll_fn;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, FuturesUnordered, SelectAll, StreamExt};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    QueueDeclareOptions, QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::tcp::{AMQPUriTcpExt, AsyncTcpStream, OwnedTLSConfig};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{
    Acker, BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ErrorKind, Event,
    PublisherConfirm,
};
use tokio::time::timeout;

use super::session::{cause_of, within};
use crate::{Cause, Credentials, Error, Result, Timeouts};

/// lapin allots 2 x 32 frames per connection: 1 MiB instead of 8.
const FRAME_MAX: u32 = 16_384;
/// Seconds. A peer that vanished without a word is noticed after two of these.
const HEARTBEAT: u16 = 10;
/// Events handed out at once, so that a flood of deliveries cannot starve the pacer on the same thread.
const BATCH: usize = 256;
/// Our own queues never hold more, whatever happens to their consumers; the oldest goes first.
const MAX_LENGTH: i32 = 100_000;

/// Where and as whom a session connects.
#[derive(Debug, Clone)]
pub struct Target {
    /// Host name or address.
    pub host: String,
    /// AMQP port.
    pub port: u16,
    /// Virtual host; it exists.
    pub vhost: String,
    /// User and password.
    pub credentials: Credentials,
    /// TLS, checked against these authorities (PEM) and the system's; `None` is plain AMQP.
    pub tls: Option<String>,
    /// Name shown in the broker's list of connections.
    pub name: String,
    /// Time limits of connecting and of each declaration.
    pub timeouts: Timeouts,
}

/// A durable queue of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its name.
    pub name: String,
    /// `x-queue-type`.
    pub kind: &'static str,
    /// `x-expires`: the broker removes it when nobody used it for this long.
    pub expires: Duration,
}

/// How a session consumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Consuming {
    /// Unacked deliveries per channel.
    pub prefetch: u16,
    /// One `multiple` ack per this many deliveries; at most the prefetch.
    pub ack_every: u16,
}

/// What a broker said of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Accepted.
    Acked,
    /// Refused by the queue.
    Nacked,
    /// No queue took it.
    Returned,
}

/// What happened on a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEvent {
    /// The bytes of the message published with this token are in the socket. Precedes all else of it.
    Sent(u64),
    /// The broker answered for the message published with this token.
    Confirmed(u64, Outcome),
    /// A message came.
    Delivered {
        /// Position of the queue in the list given to [`Session::open`].
        queue: usize,
        /// The body.
        body: Vec<u8>,
        /// The broker's flag: it may have come before.
        redelivered: bool,
    },
    /// The broker stopped reading from publishers (alarm).
    Blocked,
    /// It reads again.
    Unblocked,
    /// The session is over; nothing comes after this.
    Closed {
        /// Why.
        cause: Cause,
        /// Our own doing (a bug or a codec error here), not the broker's or the network's.
        own: bool,
    },
}

type Sending = BoxFuture<'static, (u64, lapin::Result<PublisherConfirm>)>;
type Deliveries = BoxStream<'static, (usize, Option<lapin::Result<lapin::message::Delivery>>)>;

/// Two connections to one broker; see the module.
pub struct Session {
    publish: Channel,
    queues: Vec<ShortString>,
    sends: FuturesUnordered<Sending>,
    confirms: FuturesUnordered<Confirming>,
    deliveries: SelectAll<Deliveries>,
    unacked: Vec<u16>,
    ack_every: u16,
    acks: FuturesUnordered<BoxFuture<'static, lapin::Result<bool>>>,
    events: SelectAll<BoxStream<'static, (bool, Event)>>,
    closed: bool,
    links: [Link; 2],
    limit: Duration,
}

impl Session {
    /// Connects twice, declares the queues (a queue of the same name in another form is replaced, it is ours
    /// by its name) and consumes from each. `purge` empties them first.
    ///
    /// *Permission:* configure, write and read on the queues' names. *Changes state:* yes, the queues.
    pub async fn open(target: &Target, queues: &[QueueSpec], how: Consuming, purge: bool) -> Result<Self> {
        let (publishing, consuming) =
            futures::try_join!(Link::connect(target, "publish"), Link::connect(target, "consume"))?;
        let limit = target.timeouts.request;
        let publish =
            within(limit, publishing.connection.create_channel()).await.map_err(|c| lost(target, c))?;
        let select = publish.confirm_select(ConfirmSelectOptions::default());
        within(limit, select).await.map_err(|c| lost(target, c))?;
        let mut deliveries = SelectAll::new();
        for (index, queue) in queues.iter().enumerate() {
            declare(&consuming.connection, queue, limit, purge).await?;
            deliveries.push(consume(&consuming.connection, index, queue, how, limit).await?);
        }
        let mut events = SelectAll::new();
        events.push(publishing.connection.events_listener().map(|event| (true, event)).boxed());
        events.push(consuming.connection.events_listener().map(|event| (false, event)).boxed());
        Ok(Self {
            publish,
            queues: queues.iter().map(|queue| queue.name.as_str().into()).collect(),
            sends: FuturesUnordered::new(),
            confirms: FuturesUnordered::new(),
            deliveries,
            unacked: vec![0; queues.len()],
            ack_every: how.ack_every.clamp(1, how.prefetch.max(1)),
            acks: FuturesUnordered::new(),
            events,
            closed: false,
            links: [publishing, consuming],
            limit,
        })
    }

    /// Hands over a persistent message for a queue, by position; never waits. Its bytes go out, in order and
    /// together with the others handed over since, when [`Session::next`] is polled.
    pub fn publish(&self, queue: usize, token: u64, body: Vec<u8>) {
        let Some(key) = self.queues.get(queue).cloned() else { return };
        let channel = self.publish.clone();
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let properties = BasicProperties::default().with_delivery_mode(2);
        let sending =
            async move { (token, channel.basic_publish("".into(), key, options, &body, properties).await) };
        self.sends.push(sending.boxed());
    }

    /// Messages handed over and neither confirmed nor given up.
    pub fn unconfirmed(&self) -> usize {
        self.sends.len() + self.confirms.len()
    }

    /// Waits until something happened and appends it, a bounded number at a time. Cancel-safe.
    pub async fn next(&mut self, into: &mut Vec<SessionEvent>) {
        poll_fn(|cx| {
            self.poll_sends(cx, into);
            self.poll_confirms(cx, into);
            self.poll_deliveries(cx, into);
            self.poll_acks(cx, into);
            self.poll_events(cx, into);
            if into.is_empty() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    /// Closes both connections in order; with `remove` the queues go first. Takes at most a few timeouts.
    pub async fn close(self, remove: bool) -> Result<()> {
        let Self { links, queues, limit, sends, confirms, acks, deliveries, .. } = self;
        drop((sends, confirms, acks, deliveries));
        let [publishing, consuming] = links;
        let mut deleted = Ok(());
        for queue in queues.iter().filter(|_| remove) {
            deleted = deleted.and(delete(&consuming.connection, queue.as_str(), limit).await);
        }
        futures::join!(publishing.close(limit), consuming.close(limit));
        deleted
    }

    fn poll_sends(&mut self, cx: &mut Context<'_>, into: &mut Vec<SessionEvent>) {
        while let Poll::Ready(Some((token, sent))) = self.sends.poll_next_unpin(cx) {
            match sent {
                Ok(confirm) => {
                    into.push(SessionEvent::Sent(token));
                    self.confirms.push(Confirming { token, confirm });
                }
                Err(error) => self.end(&error, into),
            }
        }
    }

    fn poll_confirms(&mut self, cx: &mut Context<'_>, into: &mut Vec<SessionEvent>) {
        while into.len() < 2 * BATCH {
            match self.confirms.poll_next_unpin(cx) {
                Poll::Ready(Some((token, Ok(confirmation)))) => {
                    into.push(SessionEvent::Confirmed(token, outcome(&confirmation)));
                }
                Poll::Ready(Some((_, Err(error)))) => self.end(&error, into),
                Poll::Ready(None) | Poll::Pending => return,
            }
        }
    }

    fn poll_deliveries(&mut self, cx: &mut Context<'_>, into: &mut Vec<SessionEvent>) {
        while into.len() < 3 * BATCH {
            match self.deliveries.poll_next_unpin(cx) {
                Poll::Ready(Some((queue, Some(Ok(delivery))))) => {
                    self.ack(queue, delivery.acker);
                    let (body, redelivered) = (delivery.data, delivery.redelivered);
                    into.push(SessionEvent::Delivered { queue, body, redelivered });
                }
                Poll::Ready(Some((_, Some(Err(error))))) => self.end(&error, into),
                Poll::Ready(Some((_, None))) => {
                    let cause = Cause::Unreachable("consumer cancelled by the broker".to_owned());
                    self.end_with(cause, false, into);
                }
                Poll::Ready(None) | Poll::Pending => return,
            }
        }
    }

    fn ack(&mut self, queue: usize, acker: Acker) {
        let Some(unacked) = self.unacked.get_mut(queue) else { return };
        *unacked += 1;
        if *unacked >= self.ack_every {
            *unacked = 0;
            let ack = async move { acker.ack(BasicAckOptions { multiple: true }).await };
            self.acks.push(ack.boxed());
        }
    }

    fn poll_acks(&mut self, cx: &mut Context<'_>, into: &mut Vec<SessionEvent>) {
        while let Poll::Ready(Some(acked)) = self.acks.poll_next_unpin(cx) {
            if let Err(error) = acked {
                self.end(&error, into);
            }
        }
    }

    fn poll_events(&mut self, cx: &mut Context<'_>, into: &mut Vec<SessionEvent>) {
        while let Poll::Ready(Some((publishing, event))) = self.events.poll_next_unpin(cx) {
            match event {
                Event::ConnectionBlocked(_) if publishing => into.push(SessionEvent::Blocked),
                Event::ConnectionUnblocked if publishing => into.push(SessionEvent::Unblocked),
                Event::Error(error) => self.end(&error, into),
                _ => {}
            }
        }
    }

    fn end(&mut self, error: &lapin::Error, into: &mut Vec<SessionEvent>) {
        let own =
            matches!(error.kind(), ErrorKind::SerialisationError(_) | ErrorKind::RuntimeShutdownError(_));
        self.end_with(cause_of(error), own, into);
    }

    fn end_with(&mut self, cause: Cause, own: bool, into: &mut Vec<SessionEvent>) {
        if !self.closed {
            self.closed = true;
            into.push(SessionEvent::Closed { cause, own });
        }
    }
}

/// A message whose bytes are out and whose answer is not in.
struct Confirming {
    token: u64,
    confirm: PublisherConfirm,
}

impl Future for Confirming {
    type Output = (u64, lapin::Result<Confirmation>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let token = self.token;
        self.confirm.poll_unpin(cx).map(|confirmation| (token, confirmation))
    }
}

/// One connection and the means to cut it: lapin's I/O thread ends with its socket.
struct Link {
    connection: Connection,
    _cut: Cut,
}

impl Link {
    async fn connect(target: &Target, role: &str) -> Result<Self> {
        let cut = Cut(Arc::new(Mutex::new(Wire::Awaited)));
        let limit = target.timeouts.connect + target.timeouts.request;
        let connection =
            within(limit, dial(target, role, cut.0.clone())).await.map_err(|cause| lost(target, cause))?;
        Ok(Self { connection, _cut: cut })
    }

    async fn close(self, limit: Duration) {
        // An unclean end leaves nothing behind that the broker does not clean up itself.
        let _ = timeout(limit, self.connection.close(200, "OK".into())).await;
    }
}

/// A second handle on the socket of a connection.
enum Wire {
    /// Not connected yet.
    Awaited,
    /// Connected.
    Open(TcpStream),
    /// Nobody wants it any more.
    Cut,
}

/// Shuts the socket down when dropped, also one that connects only later: no I/O thread outlives its use.
struct Cut(Arc<Mutex<Wire>>);

impl Drop for Cut {
    fn drop(&mut self) {
        let wire = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Wire::Cut);
        if let Wire::Open(stream) = wire {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn keep(wire: &Mutex<Wire>, socket: &impl AsFd) -> io::Result<()> {
    let copy = TcpStream::from(socket.as_fd().try_clone_to_owned()?);
    let mut wire = wire.lock().unwrap_or_else(PoisonError::into_inner);
    if matches!(*wire, Wire::Cut) {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    *wire = Wire::Open(copy);
    Ok(())
}

/// Connects with TCP_NODELAY, which async-rs sets.
async fn dial(target: &Target, role: &str, wire: Arc<Mutex<Wire>>) -> lapin::Result<Connection> {
    let name = format!("{} {role}", target.name);
    let options = ConnectionProperties::default().with_connection_name(name.into());
    let tls = OwnedTLSConfig { cert_chain: target.tls.clone(), ..OwnedTLSConfig::default() };
    let limit = target.timeouts.connect;
    let runtime = lapin::runtime::default_runtime()?;
    Connection::connector(
        uri(target),
        runtime,
        async move |uri: AMQPUri, runtime| {
            let tcp = AMQPUriTcpExt::connect_with_config_async(&uri, tls.as_ref(), &runtime);
            let stream =
                timeout(limit, tcp).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            match &stream {
                AsyncTcpStream::Plain(plain) => keep(&wire, plain.get_ref())?,
                AsyncTcpStream::Rustls(tls) => keep(&wire, tls.get_ref().0.get_ref())?,
                _ => return Err(io::Error::from(io::ErrorKind::Unsupported).into()),
            }
            Ok(stream)
        },
        options,
    )
    .await
}

fn uri(target: &Target) -> AMQPUri {
    let userinfo = AMQPUserInfo {
        username: target.credentials.username.clone(),
        password: target.credentials.password.expose().to_owned(),
    };
    let query = AMQPQueryString {
        frame_max: Some(FRAME_MAX),
        heartbeat: Some(HEARTBEAT),
        ..AMQPQueryString::default()
    };
    AMQPUri {
        scheme: if target.tls.is_some() { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
        authority: AMQPAuthority { userinfo, host: target.host.clone(), port: target.port },
        vhost: target.vhost.clone(),
        query,
    }
}

/// Declares a queue; one left by another run in another form makes way.
async fn declare(connection: &Connection, queue: &QueueSpec, limit: Duration, purge: bool) -> Result<()> {
    let declared = match declare_once(connection, queue, limit, purge).await {
        Err(Cause::Amqp { code: 406, .. }) => {
            delete(connection, &queue.name, limit).await?;
            declare_once(connection, queue, limit, purge).await
        }
        declared => declared,
    };
    declared.map_err(|cause| Error::Queue { attempt: "declare", queue: queue.name.clone(), cause })
}

/// On a channel of its own: a refusal closes the channel.
async fn declare_once(
    connection: &Connection,
    queue: &QueueSpec,
    limit: Duration,
    purge: bool,
) -> Result<(), Cause> {
    let name: ShortString = queue.name.as_str().into();
    let channel = within(limit, connection.create_channel()).await?;
    let options = QueueDeclareOptions::durable();
    within(limit, channel.queue_declare(name.clone(), options, arguments(queue))).await?;
    if purge {
        within(limit, channel.queue_purge(name, QueuePurgeOptions::default())).await?;
    }
    Ok(())
}

async fn delete(connection: &Connection, queue: &str, limit: Duration) -> Result<()> {
    let failed = |cause| Error::Queue { attempt: "delete", queue: queue.to_owned(), cause };
    let channel = within(limit, connection.create_channel()).await.map_err(failed)?;
    let deleted = channel.queue_delete(queue.into(), QueueDeleteOptions::default());
    within(limit, deleted).await.map(drop).map_err(failed)
}

fn arguments(queue: &QueueSpec) -> FieldTable {
    let expires = i64::try_from(queue.expires.as_millis()).unwrap_or(i64::MAX);
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString(queue.kind.into()));
    arguments.insert("x-expires".into(), AMQPValue::LongLongInt(expires));
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(MAX_LENGTH));
    arguments
}

async fn consume(
    connection: &Connection,
    index: usize,
    queue: &QueueSpec,
    how: Consuming,
    limit: Duration,
) -> Result<Deliveries> {
    let failed = |cause| Error::Queue { attempt: "consume from", queue: queue.name.clone(), cause };
    let name: ShortString = queue.name.as_str().into();
    let channel = within(limit, connection.create_channel()).await.map_err(failed)?;
    within(limit, channel.basic_qos(how.prefetch, BasicQosOptions::default())).await.map_err(failed)?;
    let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
    let consumer =
        within(limit, channel.basic_consume(name.clone(), name, options, arguments)).await.map_err(failed)?;
    let end = stream::once(async move { (index, None) });
    Ok(consumer.map(move |delivery| (index, Some(delivery))).chain(end).boxed())
}

fn outcome(confirmation: &Confirmation) -> Outcome {
    match confirmation {
        Confirmation::Ack(Some(_)) => Outcome::Returned,
        Confirmation::Nack(_) => Outcome::Nacked,
        Confirmation::Ack(None) | Confirmation::NotRequested => Outcome::Acked,
    }
}

fn lost(target: &Target, cause: Cause) -> Error {
    Error::Connect {
        address: format!("{}:{}", target.host, target.port),
        vhost: target.vhost.clone(),
        user: target.credentials.username.clone(),
        cause,
    }
}
