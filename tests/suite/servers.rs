//! Servers under load. The load itself runs without the monitor and verifies the replies.

use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use thermalloc_tests::modes::{Mode, everything, modes};
use thermalloc_tests::places::{self, Scratch};
use thermalloc_tests::report::{Report, number};
use thermalloc_tests::{monitored, process};

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address").port().to_string()
}

/// A server that is killed if a test ends early.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            process::kill_group(&self.0);
            let _ = self.0.wait();
        }
    }
}

/// Starts a server, natively for `None`, and waits until `ready` says that it answers.
fn start(
    mode: Option<Mode>,
    folder: &Scratch,
    program: &str,
    arguments: &[&str],
    ready: impl Fn() -> bool,
) -> Server {
    use std::os::unix::process::CommandExt;
    let program = places::which(program);
    let mut command = match mode {
        Some(mode) => monitored::command(mode, &[], folder.path(), &program),
        None => process::command(&program),
    };
    command.args(arguments).current_dir(folder.path()).process_group(0);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(command.spawn().expect("start a server"));
    let start = Instant::now();
    while !ready() {
        assert!(start.elapsed() < monitored::limit(), "{program:?} does not answer in mode {mode:?}");
        thread::sleep(Duration::from_millis(50));
    }
    server
}

/// Runs a client, which must succeed, and returns what it printed.
fn client(command: &mut Command) -> String {
    let outcome = process::run(command.stdin(Stdio::null()), monitored::limit());
    assert_eq!(outcome.status, 0, "{command:?}: {}{}", outcome.text(), outcome.error_text());
    outcome.text()
}

/// Waits for the server's end after a request to stop; its status as a shell sees it.
fn stopped(mut server: Server) -> i32 {
    let status = process::wait(&mut server.0, monitored::limit());
    process::shell_status(status.expect("the server stops when it is told to"))
}

fn check_report(mode: Option<Mode>, folder: &Scratch, least_accesses: u64) {
    if let Some(mode) = mode.filter(|mode| mode.monitors()) {
        let reports = Report::read_all(folder.path());
        let [report] = &reports[..] else { panic!("{mode}: {} reports instead of one", reports.len()) };
        let accesses = report.total("reads") + report.total("writes");
        assert!(accesses >= least_accesses, "{mode}: only {accesses} accesses");
    }
}

/// Native first, then each mode.
fn native_and_modes() -> impl Iterator<Item = Option<Mode>> {
    std::iter::once(None).chain(modes().into_iter().map(Some))
}

fn redis_session(mode: Option<Mode>) -> (String, i32) {
    let folder = Scratch::new("redis");
    let port = free_port();
    let cli = |arguments: &[&str]| {
        let mut command = process::command(&places::which("redis-cli"));
        command.args(["-p", &port]).args(arguments);
        command
    };
    let ready = || cli(&["ping"]).output().is_ok_and(|output| output.stdout == b"PONG\n");
    let server =
        start(mode, &folder, "redis-server", &["--port", &port, "--save", "", "--appendonly", "no"], ready);
    let mut load = process::command(&places::which("redis-benchmark"));
    load.args(["-p", &port, "-n", "60", "-c", "4", "-q", "-t", "set,get,incr,lpush,hset,mset", "-r", "50"]);
    client(&mut load);
    let mut replies = String::new();
    for request in [
        &["set", "key", "value"][..],
        &["append", "key", "-more"],
        &["get", "key"],
        &["del", "key"],
        &["rpush", "list", "a", "b", "c"],
        &["lrange", "list", "0", "-1"],
        &["hset", "hash", "f", "1", "g", "2"],
        &["hgetall", "hash"],
        &["zadd", "set", "2", "two", "1", "one"],
        &["zrange", "set", "0", "-1", "withscores"],
        &["eval", "return {1, redis.call('get', KEYS[1]), 'x'}", "1", "none"],
        &["llen", "mylist"],
        &["save"],
    ] {
        replies.push_str(&client(&mut cli(request)));
    }
    client(&mut cli(&["shutdown", "nosave"]));
    let status = stopped(server);
    check_report(mode, &folder, 10_000);
    (replies, status)
}

#[test]
fn redis() {
    let mut native = None;
    for mode in native_and_modes() {
        let session = redis_session(mode);
        assert_eq!(&session, native.get_or_insert(session.clone()), "redis in mode {mode:?}");
    }
}

/// The load generator against a server on this machine, with one thread.
fn load(port: &str, clients: &str) -> Command {
    let mut load = process::command(&places::release("bench-memcached"));
    load.args(["--server", "127.0.0.1", "--port", port, "--threads", "1", "--clients", clients]);
    load
}

fn memcached_session(mode: Option<Mode>) -> i32 {
    let folder = Scratch::new("memcached");
    let port = free_port();
    let ready = || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok();
    let arguments = ["-u", "root", "-l", "127.0.0.1", "-p", &port, "-t", "2", "-m", "16", "-U", "0"];
    let server = start(mode, &folder, "memcached", &arguments, ready);
    let mut load = load(&port, "2");
    load.args(["--requests", "150"]);
    load.args(["--ratio", "1:10", "--data-size", "32", "--key-pattern", "R:R", "--key-maximum", "50"]);
    client(&mut load);
    process::signal(&server.0, "TERM");
    let status = stopped(server);
    check_report(mode, &folder, 300);
    status
}

#[test]
fn memcached() {
    assert!(places::release("bench-memcached").is_file(), "no load generator: run `make build` first");
    let mut native = None;
    for mode in native_and_modes() {
        let status = memcached_session(mode);
        assert_eq!(status, *native.get_or_insert(status), "memcached in mode {mode:?}");
    }
}

/// As many keys as the slab classes between the sizes can tell apart.
const KEYS: usize = 12;
const LAST_KEY: &str = "11";
const SIZES: &str = "3000-9000";

/// Requests of the load by key, as the load generator counts them: its results by number of the key.
fn gets_by_key(results: &Path) -> Vec<u64> {
    let results = std::fs::read(results).expect("the load generator's results");
    let results: Value = serde_json::from_slice(&results).expect("JSON");
    assert_eq!(results["misses"], 0, "{results}");
    let mut gets = vec![0; KEYS];
    for key in results["keys"].as_array().expect("keys") {
        let name = key["key"].as_str().expect("a key's name");
        gets[name.trim_start_matches("memtier-").parse::<usize>().expect("a key's number")] =
            number(key, "gets");
    }
    gets
}

/// memcached's slab pages in the order of their allocation.
fn slab_pages(report: &Report) -> Vec<Value> {
    const SLAB_PAGE: u64 = 1 << 20;
    let objects = report.objects().iter();
    let mut pages: Vec<Value> =
        objects.filter(|object| number(object, "size") == SLAB_PAGE).cloned().collect();
    pages.sort_by_key(|object| number(object, "alloc_ns"));
    pages
}

/// Each key's item has a slab class, so a slab page, so an object of its own: they were stored in the order of the keys.
fn keys_are_as_hot_as_their_objects(mode: Mode) {
    let folder = Scratch::new("hot-keys");
    let port = free_port();
    let ready = || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok();
    let arguments =
        ["-u", "root", "-l", "127.0.0.1", "-p", &port, "-t", "1", "-n", "1000", "-f", "1.05", "-U", "0"];
    let server = start(Some(mode), &folder, "memcached", &arguments, ready);
    let results = Scratch::new("load");
    let results = results.path().join("load");
    let mut load = load(&port, "1");
    load.args(["--pipeline", "8"]);
    load.args(["--populate", "--key-maximum", LAST_KEY, "--key-pattern", "Z:Z", "--data-size-range", SIZES]);
    load.args([
        "--requests",
        if everything() { "5000" } else { "500" },
        "--timeout",
        "600",
        "--json-out-file",
    ]);
    let said = client(load.arg(&results));
    process::signal(&server.0, "TERM");
    assert_eq!(stopped(server), 0, "{mode}: memcached");
    let reports = Report::read_all(folder.path());
    let [report] = &reports[..] else { panic!("{mode}: {} reports instead of one", reports.len()) };
    let gets = gets_by_key(&results);
    let pages = slab_pages(report);
    assert_eq!(pages.len(), KEYS, "{mode}: slab pages");
    let reads: Vec<u64> = pages.iter().map(|page| number(page, "reads")).collect();
    let accesses = report.total("reads") + report.total("writes");
    println!("{mode}: {accesses} accesses, gets {gets:?}, reads {reads:?}\n{said}");
    for (a, b) in (0..KEYS).flat_map(|a| (0..KEYS).map(move |b| (a, b))) {
        // What is as good as equal has no order.
        if gets[a] > gets[b] + gets[b] / 5 + 4 {
            assert!(reads[a] > reads[b], "{mode}: key {a} is hotter than key {b}: {gets:?}, {reads:?}");
        }
        assert!(reads[a] >= gets[a], "{mode}: {gets:?}, {reads:?}");
    }
}

#[test]
fn hot_keys_are_hot_objects() {
    for mode in modes().into_iter().filter(|mode| mode.monitors()) {
        keys_are_as_hot_as_their_objects(mode);
    }
}
