//! The class table against the installed memcached's own, as `memcached -vv` prints it.
//!
//! Without memcached the test prints SKIP; `REQUIRE_MEMCACHED=1` makes that a failure.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use thermalloc_alloc::{ClassParams, ClassTable, Preset};

/// Ends the server whatever the test does.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Chunk size and chunks a slab page of each class, by memcached. `None`: there is no memcached.
fn memcached_classes(n: usize, factor: &str) -> Option<Vec<(u32, u32)>> {
    let socket = std::env::temp_dir().join(format!("thermalloc-classes-{}-{n}-{factor}", std::process::id()));
    let mut command = Command::new("memcached");
    command.args(["-vv", "-u", "nobody", "-p", "0", "-U", "0", "-n", &n.to_string(), "-f", factor, "-s"]);
    let child =
        command.arg(&socket).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut server = match child {
        Ok(child) => Server(child),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("memcached: {error}"),
    };
    let stderr = BufReader::new(server.0.stderr.take().unwrap());
    // "slab class   1: chunk size        96 perslab   10922"
    let classes = stderr
        .lines()
        .map(Result::unwrap)
        .take_while(|line| line.starts_with("slab class"))
        .map(|line| {
            let numbers: Vec<u32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            (numbers[0], numbers[1])
        })
        .collect();
    drop(server);
    let _ = std::fs::remove_file(socket);
    Some(classes)
}

fn our_classes(params: &ClassParams) -> Vec<(u32, u32)> {
    let table = ClassTable::new(Preset::None, params).unwrap();
    table.plain().iter().map(|class| (class.chunk_size, class.per_slab)).collect()
}

#[test]
fn table_equals_memcacheds() {
    for (n, text, factor) in
        [(48, "1.25", 1.25), (48, "1.08", 1.08), (5, "1.5", 1.5), (400, "2", 2.0), (48, "1.02", 1.02)]
    {
        let Some(theirs) = memcached_classes(n, text) else {
            assert!(
                std::env::var_os("REQUIRE_MEMCACHED").is_none_or(|value| value != "1"),
                "memcached is missing"
            );
            println!("SKIP: memcached is not installed");
            return;
        };
        let params = ClassParams { min_chunk: 48 + n, factor, ..ClassParams::MEMCACHED };
        assert_eq!(our_classes(&params), theirs, "-n {n} -f {text}");
    }
}

#[test]
fn default_table_is_the_known_one() {
    let classes = our_classes(&ClassParams::MEMCACHED);
    let sizes: Vec<u32> = classes.iter().map(|class| class.0).collect();
    assert_eq!(sizes.len(), 39);
    assert_eq!(sizes[..4], [96, 120, 152, 192]);
    assert_eq!(sizes[37..], [394_840, 524_288]);
}
