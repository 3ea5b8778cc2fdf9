//! A memcached of our own, on a port that it chooses itself.

use std::fs;
use std::path::Path;
use thermalloc_bench::machine;
use thermalloc_bench::service::{Launch, Service};

/// A running memcached; killed when dropped.
pub struct Server {
    service: Service,
    /// The TCP port on the loopback address.
    pub port: u16,
}

impl Server {
    /// Starts memcached, with arguments for address and user besides its own, and waits until it listens. `directory` is for
    /// its port file.
    pub fn start(launch: &Launch, directory: &Path) -> Result<Self, String> {
        let file = directory.join("port");
        let _ = fs::remove_file(&file);
        let mut arguments = vec!["-l", "127.0.0.1", "-p", "-1", "-U", "0"];
        // Only root has to say whose rights memcached takes; others cannot.
        if machine::output(&["id", "-u"]) == "0" {
            arguments.extend(["-u", "root"]);
        }
        arguments.extend(launch.arguments);
        let launch = Launch { arguments: &arguments, ..*launch };
        let mut service = Service::start(&launch, &[format!("MEMCACHED_PORT_FILENAME={}", file.display())])?;
        // memcached writes the file in one piece, under another name first.
        let text = service.wait_for(|| {
            let text = fs::read_to_string(&file).ok()?;
            text.trim().strip_prefix("TCP INET: ").map(str::to_owned)
        })?;
        let port = text.parse().map_err(|_| format!("memcached's port '{text}' is no number"))?;
        Ok(Self { service, port })
    }

    /// Process id of memcached itself.
    pub fn pid(&self) -> u32 {
        self.service.pid()
    }

    /// Ends memcached as an operator does, by SIGTERM.
    pub fn stop(self) -> Result<(), String> {
        self.service.stop()
    }
}
