//! Accepts connections and runs a session on each, until a signal or a `shutdown` command.

use crate::counters::Counters;
use crate::session::{Next, Session};
use crate::store::Store;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// Room for one read, in bytes.
const READ: usize = 16 << 10;

/// What all connections share.
pub struct Service {
    pub store: Store,
    pub counters: Counters,
    stop: Notify,
}

impl Service {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { store: Store::new(), counters: Counters::new(), stop: Notify::new() })
    }

    /// Listens on `address`, says so on stdout, and serves until told to end.
    pub async fn run(self: &Arc<Self>, address: &str) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            tokio::select! {
                _ = terminate.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                () = self.stop.notified() => return Ok(()),
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(tokio::spawn(Arc::clone(self).connection(stream))),
                    Err(e) => {
                        eprintln!("service: accept: {e}");
                        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                    }
                },
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        self.counters.connect();
        // A client that goes away is no concern of the service.
        let _ = self.converse(stream).await;
        self.counters.disconnect();
    }

    async fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut session = Session::new(&self.store, &self.counters);
        let (mut input, mut output) = (Vec::new(), Vec::new());
        loop {
            input.reserve(READ);
            if stream.read_buf(&mut input).await? == 0 {
                return Ok(());
            }
            loop {
                let next = session.feed(&mut input, &mut output);
                stream.write_all(&output).await?;
                output.clear();
                match next {
                    Next::Continue => {}
                    Next::Read => break,
                    Next::Close => return Ok(()),
                    Next::Shutdown => {
                        self.stop.notify_one();
                        return Ok(());
                    }
                }
            }
        }
    }
}
