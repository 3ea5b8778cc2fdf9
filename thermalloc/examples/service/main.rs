//! A small memcached (text protocol) whose heap is watched: the keys and values that clients ask for most are the
//! hottest objects of its report.
//!
//! ```text
//! cargo run --release --example service -- --listen 127.0.0.1:0 --mode pp --report heat.json
//! ```
//!
//! SIGTERM, SIGINT and the `shutdown` command end it; then the report is written.
//!
//! Modules, lowest first: `command` (a line of the protocol), `store` (keys and values), `counters` (`stats`),
//! `session` (bytes in, bytes out), `server` (sockets and signals).

mod command;
mod counters;
mod server;
mod session;
mod store;

use clap::{Parser, ValueEnum};
use server::Service;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[global_allocator]
static HEAP: thermalloc::Thermalloc = thermalloc::Thermalloc;

/// A small memcached whose heap is watched.
#[derive(Parser)]
struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:11211")]
    listen: String,
    /// How the heap is watched
    #[arg(long, value_enum, default_value = "off")]
    mode: Mode,
    /// Where the report goes [default: heat.PID.json]
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// Threads that serve connections
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    /// Not at all
    Off,
    /// Page protection and single step
    Pp,
    /// A protection key and single step
    Mpk,
    /// The best of these that this machine can do
    Auto,
}

impl From<Mode> for thermalloc::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Off => Self::Off,
            Mode::Pp => Self::Pp,
            Mode::Mpk => Self::Mpk,
            Mode::Auto => Self::Auto,
        }
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("service: {words}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), String> {
    // Before the first other thread is there: the runtime's are started by `serve`.
    thermalloc::start(&config(args)).map_err(|e| format!("the heap cannot be watched: {e}"))?;
    // Never dropped, so that its keys and values are live objects of the report written at exit, too.
    let service = Box::leak(Box::new(Service::new()));
    serve(args, service).map_err(|e| format!("{}: {e}", args.listen))?;
    thermalloc::stop();
    args.report.as_deref().map_or(Ok(()), report)
}

fn config(args: &Args) -> thermalloc::Config {
    let mut config = thermalloc::Config { mode: args.mode.into(), ..thermalloc::Config::default() };
    if let Some(path) = &args.report {
        // A fatal signal leaves a report too, in the same place.
        config.out = path.to_string_lossy().into_owned();
    }
    config
}

fn serve(args: &Args, service: &std::sync::Arc<Service>) -> std::io::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(args.workers.into()).enable_all().build()?;
    let served = runtime.block_on(service.run(&args.listen));
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

fn report(path: &Path) -> Result<(), String> {
    let line = match thermalloc::report(Some(path)) {
        Ok(written) => format!("report in {}", written.display()),
        Err(thermalloc::ReportError::NotStarted) => "no report: nothing is watched in mode off".to_owned(),
        Err(error) => return Err(format!("no report: {error}")),
    };
    // Whoever reads this may be gone by now.
    let _ = writeln!(std::io::stdout(), "{line}");
    Ok(())
}
