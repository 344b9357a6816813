//! A reactor for lapin whose streams read along until the server has said who it is. I/O.
//!
//! `connection.start` names the cluster; lapin reads it and keeps it to itself. A handshake of its own could
//! reach the other side while a Service is being switched, so each connection listens to itself.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use amq_protocol::frame::{AMQPFrame, parse_frame};
use amq_protocol::protocol::{AMQPClass, connection};
use amq_protocol::types::{AMQPValue, FieldTable};
use async_rs::Tokio;
use async_rs::traits::Reactor;
use futures::Stream;
use futures::io::{AsyncRead, AsyncWrite};

/// RabbitMQ's `connection.start` is about 500 bytes; whatever is longer than this is something else.
const ENOUGH: usize = 16 * 1024;

/// A pod that is gone answers nothing; a client of the shop gives up after this long and asks the Service again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Who answered: what `connection.start` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// The cluster's name.
    pub cluster: String,
    /// RabbitMQ's version.
    pub version: String,
}

/// Tokio's reactor with streams that listen; one per connection.
#[derive(Debug, Clone)]
pub struct Listening {
    tokio: Tokio,
    heard: Arc<OnceLock<Server>>,
}

impl Listening {
    /// A reactor on the runtime that runs the caller.
    pub fn new(tokio: Tokio) -> Self {
        Self { tokio, heard: Arc::default() }
    }

    /// Who the server is, as soon as it has said so.
    pub fn server(&self) -> Option<Server> {
        self.heard.get().cloned()
    }
}

impl Reactor for Listening {
    type TcpStream = Tapped;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.tokio.register(socket)
    }

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.tokio.sleep(duration)
    }

    fn interval(&self, period: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.tokio.interval(period)
    }

    fn tcp_connect_addr(
        &self,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<Self::TcpStream>> + Send + 'static {
        let connect = self.tokio.tcp_connect_addr(address);
        let heard = Arc::clone(&self.heard);
        async move {
            let inner = tokio::time::timeout(CONNECT_TIMEOUT, connect).await??;
            Ok(Tapped { inner, buffer: Vec::new(), heard })
        }
    }
}

/// A TCP stream that keeps a copy of the first bytes until it knows the server.
pub struct Tapped {
    inner: <Tokio as Reactor>::TcpStream,
    buffer: Vec<u8>,
    heard: Arc<OnceLock<Server>>,
}

impl Tapped {
    fn listen(&mut self, bytes: &[u8]) {
        if self.heard.get().is_some() || self.buffer.len() > ENOUGH {
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if let Some(server) = parse(&self.buffer) {
            self.buffer = Vec::new();
            // A second answer on the same connection does not exist; the first one stands.
            let _ = self.heard.set(server);
        }
    }
}

impl AsyncRead for Tapped {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let count = ready!(Pin::new(&mut this.inner).poll_read(context, into))?;
        this.listen(into.get(..count).unwrap_or_default());
        Poll::Ready(Ok(count))
    }
}

impl AsyncWrite for Tapped {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, from)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_close(context)
    }
}

/// Reads the server's identity from the beginning of what it sent; `None` while it is incomplete.
fn parse(bytes: &[u8]) -> Option<Server> {
    let (_, frame) = parse_frame(bytes).ok()?;
    let AMQPFrame::Method(_, AMQPClass::Connection(connection::AMQPMethod::Start(start))) = frame else {
        return None;
    };
    let text = |key| text(&start.server_properties, key);
    Some(Server { cluster: text("cluster_name"), version: text("version") })
}

fn text(table: &FieldTable, key: &str) -> String {
    match table.inner().get(key) {
        Some(AMQPValue::LongString(value)) => value.to_string(),
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use amq_protocol::frame::{WriteContext, gen_frame};

    use super::*;

    fn start() -> Vec<u8> {
        let mut properties = FieldTable::default();
        for (key, value) in [("cluster_name", "rabbit@here"), ("version", "3.10.8")] {
            properties.insert(key.into(), AMQPValue::LongString(value.into()));
        }
        let start = connection::Start {
            version_major: 0,
            version_minor: 9,
            server_properties: properties,
            mechanisms: "PLAIN".into(),
            locales: "en_US".into(),
        };
        let class = AMQPClass::Connection(connection::AMQPMethod::Start(start));
        let frame = AMQPFrame::Method(0, class);
        gen_frame(&frame)(WriteContext::from(Vec::new())).unwrap().into_inner().0
    }

    #[test]
    fn hears_the_name_once_the_frame_is_complete() {
        let bytes = start();
        let server = Server { cluster: "rabbit@here".to_owned(), version: "3.10.8".to_owned() };
        assert_eq!(parse(&bytes), Some(server));
        assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
        assert_eq!(parse(b"HTTP/1.1 400 Bad Request\r\n"), None);
    }
}
