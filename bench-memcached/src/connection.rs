//! One connection: keeps up to `pipeline` requests in flight and checks the replies as they come.
//!
//! Sending and receiving overlap: a server that stops reading until its replies are taken must not meet a
//! client that stops taking replies until its requests are read.

use crate::content;
use crate::options::Options;
use crate::pattern::Kind;
use crate::protocol::{Outcome, Reply};
use crate::tally::Tally;
use crate::verify::{Asked, Ledger, check};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::{TcpStream, UnixStream};

/// Room for one read, in bytes.
const READ: usize = 16 << 10;

/// A byte stream to a server.
trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// What all connections share.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// The settings.
    pub options: &'a Options,
    /// Which keys are stored.
    pub ledger: &'a Ledger,
    /// Where the thread counts.
    pub tally: &'a RefCell<Tally>,
}

struct Request {
    kind: Kind,
    number: u64,
    key: Vec<u8>,
    must_hit: bool,
    opaque: u32,
    sent: Instant,
}

/// A connection and the requests in flight on it.
pub struct Connection<'a> {
    shared: Shared<'a>,
    reader: ReadHalf<Box<dyn Stream>>,
    writer: WriteHalf<Box<dyn Stream>>,
    output: Vec<u8>,
    written: usize,
    input: Vec<u8>,
    in_flight: VecDeque<Request>,
    next_opaque: u32,
    scratch: Vec<u8>,
    usable: bool,
}

impl<'a> Connection<'a> {
    /// Connects to the server that the options name.
    pub async fn open(shared: Shared<'a>) -> io::Result<Self> {
        let options = shared.options;
        let stream: Box<dyn Stream> = match &options.unix_socket {
            Some(path) => Box::new(UnixStream::connect(path).await?),
            None => {
                let stream = TcpStream::connect((options.server.as_str(), options.port)).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
        };
        let (reader, writer) = tokio::io::split(stream);
        Ok(Self {
            shared,
            reader,
            writer,
            output: Vec::new(),
            written: 0,
            input: Vec::new(),
            in_flight: VecDeque::new(),
            next_opaque: 0,
            scratch: Vec::new(),
            usable: true,
        })
    }

    /// Whether nothing has happened after which requests and replies no longer match.
    pub fn usable(&self) -> bool {
        self.usable
    }

    /// Makes all requests and takes all replies. A reply that deviates is counted and the load goes on; the
    /// error is one after which the connection is not [`usable`](Self::usable).
    pub async fn run(&mut self, requests: impl Iterator<Item = (Kind, u64)>) -> Result<(), String> {
        let ended = self.converse(requests).await;
        self.usable = ended.is_ok();
        ended
    }

    async fn converse(&mut self, requests: impl Iterator<Item = (Kind, u64)>) -> Result<(), String> {
        let mut requests = requests.fuse();
        let depth = self.shared.options.pipeline as usize;
        loop {
            while self.in_flight.len() < depth {
                let Some((kind, number)) = requests.next() else { break };
                self.enqueue(kind, number);
            }
            let Some(oldest) = self.in_flight.front() else { break };
            let waiting_for = oldest.key.escape_ascii().to_string();
            let exchange = tokio::time::timeout(self.shared.options.patience(), self.exchange());
            let received = exchange.await.map_err(|_| format!("{waiting_for}: no reply in time"))?;
            received.map_err(|e| format!("{waiting_for}: {e}"))?;
            self.take_replies()?;
        }
        if self.input.is_empty() {
            Ok(())
        } else {
            Err(format!("{} bytes after the last reply", self.input.len()))
        }
    }

    fn enqueue(&mut self, kind: Kind, number: u64) {
        let options = self.shared.options;
        let key = options.key(number);
        let opaque = self.next_opaque;
        self.next_opaque = opaque.wrapping_add(1);
        match kind {
            Kind::Set => {
                self.scratch.clear();
                content::write_value(&key, options.value_size(number), &mut self.scratch);
                let flags = content::flags(&key);
                options.protocol.encode_set(&key, flags, &self.scratch, opaque, &mut self.output);
            }
            Kind::Get => options.protocol.encode_get(&key, opaque, &mut self.output),
        }
        let must_hit = self.shared.ledger.is_stored(number);
        self.in_flight.push_back(Request { kind, number, key, must_hit, opaque, sent: Instant::now() });
    }

    /// Sends what there is to send until something has been received.
    async fn exchange(&mut self) -> io::Result<()> {
        self.input.reserve(READ);
        loop {
            let unsent = &self.output[self.written..];
            tokio::select! {
                sent = self.writer.write(unsent), if !unsent.is_empty() => {
                    let sent = sent?;
                    self.written += sent;
                    self.shared.tally.borrow_mut().bytes_sent += sent as u64;
                    if self.written == self.output.len() {
                        self.output.clear();
                        self.written = 0;
                    }
                }
                received = self.reader.read_buf(&mut self.input) => {
                    let received = received?;
                    self.shared.tally.borrow_mut().bytes_received += received as u64;
                    if received == 0 {
                        let closed = "the server closed the connection";
                        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, closed));
                    }
                    return Ok(());
                }
            }
        }
    }

    fn take_replies(&mut self) -> Result<(), String> {
        let options = self.shared.options;
        let mut taken = 0;
        while let Some(request) = self.in_flight.front() {
            let rest = &self.input[taken..];
            let size = options.value_size(request.number);
            let decoded = options.protocol.decode(request.kind, rest, size);
            let Some((reply, used)) =
                decoded.map_err(|e| format!("{}: {}", request.key.escape_ascii(), e.0))?
            else {
                break;
            };
            settle(&self.shared, request, &reply, &mut self.scratch);
            taken += used;
            self.in_flight.pop_front();
        }
        self.input.drain(..taken);
        Ok(())
    }
}

/// Counts and checks one reply.
fn settle(shared: &Shared, request: &Request, reply: &Reply, scratch: &mut Vec<u8>) {
    let mut tally = shared.tally.borrow_mut();
    tally.answer(request.kind, request.number, request.sent.elapsed());
    match reply.outcome {
        Outcome::Hit { .. } => tally.hits += 1,
        Outcome::Miss => tally.misses += 1,
        Outcome::Stored => shared.ledger.acknowledge(request.number),
        Outcome::Refused(_) => {}
    }
    if shared.options.verify {
        let asked = Asked {
            key: &request.key,
            size: shared.options.value_size(request.number),
            must_hit: request.must_hit,
            opaque: request.opaque,
        };
        if let Err(words) = check(&asked, reply, scratch) {
            tally.deviations.add(format!("{}: {words}", request.key.escape_ascii()));
        }
    }
}
