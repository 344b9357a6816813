//! A TCP proxy that cuts and holds connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// All.
    Open,
    /// Connections stay and nothing passes.
    Held,
    /// Connections are cut, new ones too.
    Cut,
}

/// A proxy on a thread of its own; it ends with the process.
pub struct Proxy {
    /// Where to connect.
    pub addr: SocketAddr,
    flow: watch::Sender<Flow>,
}

impl Proxy {
    /// Starts one in front of `target`.
    pub fn start(target: String) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let addr = listener.local_addr().unwrap();
        let (flow, passes) = watch::channel(Flow::Open);
        let target = Arc::new(target);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((near, _)) = listener.accept().await {
                    tokio::spawn(carry(near, target.clone(), passes.clone()));
                }
            });
        });
        Self { addr, flow }
    }

    /// Changes what passes.
    pub fn set(&self, flow: Flow) {
        self.flow.send_replace(flow);
    }
}

async fn carry(near: TcpStream, target: Arc<String>, mut passes: watch::Receiver<Flow>) {
    let Ok(far) = TcpStream::connect(target.as_str()).await else { return };
    near.set_nodelay(true).unwrap();
    far.set_nodelay(true).unwrap();
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    let (up, down) = (passes.clone(), passes.clone());
    tokio::select! {
        () = pump(near_read, far_write, up) => {}
        () = pump(far_read, near_write, down) => {}
        _ = passes.wait_for(|flow| *flow == Flow::Cut) => {}
    }
}

async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut passes: watch::Receiver<Flow>,
) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if passes.wait_for(|flow| *flow == Flow::Open).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
