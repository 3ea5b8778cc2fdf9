//! The load: threads, each with its own event loop and its own connections; populate first if asked, then the
//! measured requests, started together.

use crate::connection::{Connection, Shared};
use crate::options::Options;
use crate::pattern::{Kind, Sequence};
use crate::process::{self, CpuTime};
use crate::tally::Tally;
use crate::verify::Ledger;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What came of a load.
pub struct Summary {
    /// The measured requests; deviations of the populating SETs are among its deviations.
    pub tally: Tally,
    /// SETs made before the measured load, one for each key.
    pub populated: u64,
    /// From the first measured request to the last reply.
    pub elapsed: Duration,
    /// What the server used in that time, if asked for.
    pub server: Option<Server>,
}

/// What the server used.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// During the measured load.
    pub cpu: CpuTime,
    /// Most memory resident at a time since its start, in KiB.
    pub peak_kib: u64,
}

/// Runs the load that the options describe. The error is one line: the load could not begin.
pub fn run(options: &Options) -> Result<Summary, String> {
    options.validate()?;
    let load = Load {
        options,
        ledger: Ledger::new(&options.keys()),
        together: Barrier::new(options.threads as usize),
        failed: AtomicBool::new(false),
        readings: Mutex::new(Vec::new()),
    };
    let parts = std::thread::scope(|scope| {
        let load = &load;
        let threads: Vec<_> =
            (0..options.threads).map(|index| scope.spawn(move || load.thread(index))).collect();
        threads.into_iter().map(|t| t.join().expect("a load thread panicked")).collect::<Vec<_>>()
    });
    let parts = whole(parts)?;
    let start = parts.iter().map(|p| p.start).min().expect("at least one thread");
    let end = parts.iter().map(|p| p.end).max().expect("at least one thread");
    let server = load.server()?;
    let mut summary = Summary { tally: Tally::default(), populated: 0, elapsed: end - start, server };
    for part in parts {
        summary.populated += part.populated;
        summary.tally.deviations.merge(part.unmeasured.deviations);
        summary.tally.merge(part.measured);
    }
    Ok(summary)
}

/// Why a thread did not run its load.
enum Stopped {
    /// It could not begin.
    Failed(String),
    /// Another could not.
    Bystander,
}

/// All parts, or the reason of the first thread that has one.
fn whole(parts: Vec<Result<Part, Stopped>>) -> Result<Vec<Part>, String> {
    let reason = parts.iter().find_map(|part| match part {
        Err(Stopped::Failed(words)) => Some(words.clone()),
        _ => None,
    });
    match reason {
        Some(words) => Err(words),
        None => Ok(parts.into_iter().flatten().collect()),
    }
}

struct Load<'a> {
    options: &'a Options,
    ledger: Ledger,
    together: Barrier,
    failed: AtomicBool,
    /// The server's, before and after the measured load.
    readings: Mutex<Vec<Result<Server, String>>>,
}

/// What one thread did.
struct Part {
    populated: u64,
    unmeasured: Tally,
    measured: Tally,
    start: Instant,
    end: Instant,
}

impl Load<'_> {
    fn thread(&self, index: u32) -> Result<Part, Stopped> {
        let first_client = u64::from(index) * u64::from(self.options.clients);
        let tally = RefCell::new(Tally::default());
        let made = self.prepare(first_client, &tally);
        if made.is_err() {
            // Relaxed: the barrier orders this store before the other threads' loads.
            self.failed.store(true, Ordering::Relaxed);
        }
        self.together.wait();
        let (runtime, mut connections) = made.map_err(Stopped::Failed)?;
        if self.failed.load(Ordering::Relaxed) {
            return Err(Stopped::Bystander);
        }
        if self.options.populate {
            let step = self.options.connections() as usize;
            let sets = |client: u64| {
                self.options.keys().skip(client as usize).step_by(step).map(|key| (Kind::Set, key))
            };
            drive(&runtime, &mut connections, &tally, first_client, sets);
            self.together.wait();
        }
        let populated = tally.borrow().sets.count;
        let warm_up = self.options.warm_up as usize;
        drive(&runtime, &mut connections, &tally, first_client, |client| self.requests(client).take(warm_up));
        let unmeasured = tally.take();
        self.meet();
        let start = Instant::now();
        let deadline = self.options.test_time.map(|time| start + time);
        drive(&runtime, &mut connections, &tally, first_client, |client| {
            let all = self.requests(client).skip(warm_up).take(self.options.requests as usize);
            // The clock is read only where it decides.
            all.take_while(move |_| deadline.is_none_or(|deadline| Instant::now() < deadline))
        });
        let end = Instant::now();
        self.meet();
        drop(connections);
        Ok(Part { populated, unmeasured, measured: tally.into_inner(), start, end })
    }

    /// All requests of a client, without end.
    fn requests(&self, client: u64) -> impl Iterator<Item = (Kind, u64)> {
        let options = self.options;
        let all = Sequence::new(options.key_pattern, options.ratio, &options.shape(), options.seed, client);
        all.expect("the parameters were checked before")
    }

    /// Waits for the other threads; the last to come looks at the server.
    fn meet(&self) {
        if self.together.wait().is_leader()
            && let Some(pid) = self.options.measure_pid
        {
            let reading =
                process::cpu_time(pid).and_then(|cpu| Ok(Server { cpu, peak_kib: process::peak_kib(pid)? }));
            self.readings.lock().unwrap_or_else(PoisonError::into_inner).push(reading);
        }
    }

    /// What the server used between the readings.
    fn server(&self) -> Result<Option<Server>, String> {
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut readings = readings.drain(..);
        let (Some(before), Some(after)) = (readings.next(), readings.next()) else { return Ok(None) };
        let (before, after) = (before?, after?);
        Ok(Some(Server { cpu: after.cpu - before.cpu, peak_kib: after.peak_kib }))
    }

    /// The thread's event loop and its connections.
    fn prepare<'s>(
        &'s self,
        first_client: u64,
        tally: &'s RefCell<Tally>,
    ) -> Result<(tokio::runtime::Runtime, Vec<Connection<'s>>), String> {
        let options = self.options;
        Sequence::new(options.key_pattern, options.ratio, &options.shape(), options.seed, first_client)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| format!("cannot start an event loop: {e}"))?;
        let shared = Shared { options, ledger: &self.ledger, tally };
        let mut connections = Vec::new();
        for _ in 0..options.clients {
            let opened = runtime.block_on(Connection::open(shared));
            connections.push(opened.map_err(|e| format!("cannot connect to {}: {e}", place(options)))?);
        }
        Ok((runtime, connections))
    }
}

/// Runs the requests of all connections to their end, `requests(client)` on each.
fn drive<'a, 'b, R: Iterator<Item = (Kind, u64)>>(
    runtime: &tokio::runtime::Runtime,
    connections: &'b mut [Connection<'a>],
    tally: &RefCell<Tally>,
    first_client: u64,
    requests: impl Fn(u64) -> R,
) where
    'a: 'b,
{
    let clients = (first_client..).zip(connections).filter(|(_, connection)| connection.usable());
    let mut running: FuturesUnordered<_> =
        clients.map(|(client, connection)| connection.run(requests(client))).collect();
    runtime.block_on(async {
        while let Some(ended) = running.next().await {
            if let Err(words) = ended {
                tally.borrow_mut().deviations.add(words);
            }
        }
    });
}

fn place(options: &Options) -> String {
    match &options.unix_socket {
        Some(path) => path.display().to_string(),
        None => format!("{}:{}", options.server, options.port),
    }
}
