//! Connecting so that a login nobody answers leaves no thread behind.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lapin::tcp::{AMQPUriTcpExt, AsyncTcpStream, TLSConfig};
use lapin::uri::AMQPUri;
use lapin::{Connection, ConnectionProperties};

use super::session::within;
use crate::error::Cause;

/// A second handle on a connection's socket. lapin's I/O thread waits for the socket and for nothing else: a
/// login that is given up ends only when the socket does.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<State>>);

#[derive(Default)]
enum State {
    /// Not connected yet.
    #[default]
    Awaited,
    /// Connected.
    Open(TcpStream),
    /// Nobody wants it any more.
    Cut,
}

impl Wire {
    /// Lets go of the socket. A handle kept longer would keep it open after lapin has closed it, and the
    /// broker would wait for its end.
    fn release(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = State::Cut;
    }

    /// Shuts the socket down, also one that connects only later.
    fn cut(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let State::Open(stream) = std::mem::replace(&mut *state, State::Cut) {
            // A socket that is down already is what we want.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn keep(&self, socket: &impl AsFd) -> io::Result<()> {
        let copy = TcpStream::from(socket.as_fd().try_clone_to_owned()?);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Cut) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        *state = State::Open(copy);
        Ok(())
    }
}

/// Cuts the wire unless it is told that the login stands: also when the caller's future is dropped.
struct Guard(Option<Wire>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(wire) = self.0.take() {
            wire.cut();
        }
    }
}

/// Connects over plain TCP (with TCP_NODELAY) and logs in. A time-out or a dropped future hangs up.
pub(super) async fn dial(
    uri: AMQPUri,
    properties: ConnectionProperties,
    timeout: Duration,
) -> Result<Connection, Cause> {
    let wire = Wire::default();
    let mut guard = Guard(Some(wire.clone()));
    let kept = wire.clone();
    let login = async move {
        let runtime = lapin::runtime::default_runtime()?;
        // Written in place: only here the compiler knows the runtime's stream.
        Connection::connector(
            uri,
            runtime,
            async move |uri: AMQPUri, runtime| {
                let connect = uri.connect_with_config_async(TLSConfig::default(), &runtime);
                let late = |_| io::Error::from(io::ErrorKind::TimedOut);
                let stream = tokio::time::timeout(timeout, connect).await.map_err(late)??;
                if let AsyncTcpStream::Plain(plain) = &stream {
                    kept.keep(plain.get_ref())?;
                }
                Ok(stream)
            },
            properties,
        )
        .await
    };
    let connection = within(timeout, login).await?;
    guard.0 = None;
    wire.release();
    Ok(connection)
}
