//! A bare handshake: who answers at an address, without credentials, unseen by fences and limits.

use std::time::Duration;

use amq_protocol::frame::{AMQPFrame, parsing::parse_frame};
use amq_protocol::protocol::{AMQPClass, connection::AMQPMethod, connection::Start};
use amq_protocol::types::{AMQPValue, FieldTable};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::{Cause, Error, Result};

/// Protocol header of AMQP 0-9-1.
const HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// Longest `connection.start` accepted. 64 KiB: real ones have about 500 bytes.
const LONGEST: usize = 64 * 1024;

/// What a broker says of itself before any login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// Cluster name, to be compared with `/api/overview` of that side.
    pub cluster_name: Option<String>,
    /// `RabbitMQ`.
    pub product: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Erlang version.
    pub platform: Option<String>,
    /// SASL mechanisms, separated by spaces.
    pub mechanisms: String,
}

/// Opens TCP to `host:port`, reads `connection.start`, hangs up. Needs no user; counts as no connection,
/// changes nothing and passes every fence; the broker logs a handshake that was not finished.
pub async fn handshake(address: &str, timeout: Duration) -> Result<ServerIdentity> {
    let failed = |cause| Error::Handshake { address: address.to_owned(), cause };
    match tokio::time::timeout(timeout, ask(address)).await {
        Ok(answer) => answer.map_err(failed),
        Err(_) => Err(failed(Cause::Timeout(timeout))),
    }
}

async fn ask(address: &str) -> Result<ServerIdentity, Cause> {
    let lost = |e: std::io::Error| Cause::Unreachable(e.to_string());
    let mut stream = TcpStream::connect(address).await.map_err(lost)?;
    stream.write_all(HEADER).await.map_err(lost)?;
    let mut buffer = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut buffer).await.map_err(lost)? == 0 {
            return Err(Cause::Unreachable("closed during the handshake".into()));
        }
        if let Some(identity) = parse(&buffer)? {
            return Ok(identity);
        }
        if buffer.len() > LONGEST {
            return Err(Cause::Malformed("connection.start is too long".into()));
        }
    }
}

/// The identity, or `None` while the frame is not complete.
fn parse(buffer: &[u8]) -> Result<Option<ServerIdentity>, Cause> {
    let malformed = |what: &str| Err(Cause::Malformed(what.to_owned()));
    match parse_frame(buffer) {
        Ok((_, AMQPFrame::Method(0, AMQPClass::Connection(AMQPMethod::Start(start))))) => {
            Ok(Some(identity(&start)))
        }
        Ok((_, AMQPFrame::ProtocolHeader(_))) => malformed("the peer wants another version of AMQP"),
        Ok(_) => malformed("the peer did not begin with connection.start"),
        Err(error) if error.is_incomplete() => Ok(None),
        Err(_) => malformed("the peer does not speak AMQP"),
    }
}

fn identity(start: &Start) -> ServerIdentity {
    let properties = &start.server_properties;
    ServerIdentity {
        cluster_name: text(properties, "cluster_name"),
        product: text(properties, "product"),
        version: text(properties, "version"),
        platform: text(properties, "platform"),
        mechanisms: start.mechanisms.to_string(),
    }
}

fn text(properties: &FieldTable, key: &str) -> Option<String> {
    match properties.inner().get(key)? {
        AMQPValue::LongString(text) => Some(text.to_string()),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// `connection.start` as a 3.10.8 broker sent it.
    const START: &[u8] = include_bytes!("testdata/start-3.10.8.bin");

    #[test]
    fn a_recorded_start_parses_only_when_complete() {
        let identity = parse(START).unwrap().unwrap();
        assert_eq!(identity.cluster_name.as_deref(), Some("contract-blue"));
        assert_eq!(identity.version.as_deref(), Some("3.10.8"));
        assert_eq!(identity.product.as_deref(), Some("RabbitMQ"));
        assert_eq!(identity.mechanisms, "AMQPLAIN PLAIN");
        for end in 0..START.len() {
            assert_eq!(parse(&START[..end]).unwrap(), None, "cut at {end}");
        }
    }

    #[test]
    fn other_peers_are_told_apart() {
        for bytes in [
            b"AMQP\x00\x01\x00\x00".as_slice(),
            b"HTTP/1.1 400 Bad Request\r\n",
            &[8, 0, 0, 0, 0, 0, 0, 0xce],
        ] {
            assert!(matches!(parse(bytes), Err(Cause::Malformed(_))), "{bytes:?}");
        }
    }

    async fn against(answer: &'static [u8]) -> Error {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peer = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(answer).await.unwrap();
            let mut header = [0; 8];
            stream.read_exact(&mut header).await.unwrap();
            assert_eq!(header, HEADER);
        };
        let (result, ()) = tokio::join!(handshake(&address, Duration::from_millis(200)), peer);
        result.unwrap_err()
    }

    #[tokio::test]
    async fn silence_and_hanging_up_are_unreachable() {
        assert_eq!(against(b"").await.kind(), crate::Kind::Unreachable);
        assert_eq!(against(&START[..100]).await.kind(), crate::Kind::Unreachable);
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let error = handshake(&address, Duration::from_millis(100)).await.unwrap_err();
        assert_eq!(error.cause(), &Cause::Timeout(Duration::from_millis(100)));
    }
}
