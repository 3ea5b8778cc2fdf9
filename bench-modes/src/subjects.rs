//! What is measured: the programs and the servers, by name.

use crate::columns::Way;
use crate::programs::{Program, RECIPES, find};
use crate::redis::Programs;
use crate::run::{Bench, Run};
use crate::{busy, memcached, redis};
use std::path::{Path, PathBuf};

/// A program or a server, ready to be run.
enum Work {
    Program(Program),
    Memcached(PathBuf),
    Redis(Programs),
}

/// Something to be measured.
pub struct Subject {
    /// Its name in the results.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    /// Whether it is a server, measured for each request.
    pub server: bool,
    /// `Err`: why it cannot be run.
    work: Result<Work, String>,
}

/// The servers, with what they do.
const SERVERS: [(&str, &str); 2] = [
    (
        "memcached",
        "2 workers, 50 connections, SET:GET 1:10 of 32 bytes, 10,000 keys; every reply is verified",
    ),
    ("redis", "redis-benchmark, 50 connections, half SET, half GET, 32 bytes, 10,000 keys"),
];

/// The names of all subjects, in the order of the results.
pub fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|recipe| recipe.name).chain(SERVERS.map(|(name, _)| name))
}

/// Whether it is a server.
pub fn is_server(name: &str) -> bool {
    SERVERS.iter().any(|(server, _)| *server == name)
}

/// The subjects that are wanted, with their inputs.
pub fn prepare(wanted: impl Fn(&str) -> bool, bench: &Bench) -> Vec<Subject> {
    let programs = RECIPES.iter().filter(|recipe| wanted(recipe.name)).map(|recipe| Subject {
        name: recipe.name,
        about: recipe.about,
        server: false,
        work: recipe.prepare(bench.scale, &bench.work, &bench.places.programs).map(Work::Program),
    });
    let servers = SERVERS.into_iter().filter(|(name, _)| wanted(name)).map(|(name, about)| Subject {
        name,
        about,
        server: true,
        work: if name == "redis" { redis() } else { find("memcached").map(Work::Memcached) },
    });
    programs.chain(servers).collect()
}

fn redis() -> Result<Work, String> {
    Ok(Work::Redis(Programs { server: find("redis-server")?, load: find("redis-benchmark")? }))
}

impl Subject {
    /// A program of a test.
    #[cfg(test)]
    pub fn of(program: Program) -> Self {
        Self { name: "test", about: "", server: false, work: Ok(Work::Program(program)) }
    }

    /// Why it cannot be run, if it cannot.
    pub fn able(&self) -> Result<(), String> {
        self.work.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Makes one run. What must be the same in every run goes to `output`.
    pub fn run(&self, way: Way, bench: &Bench, output: &Path) -> Result<Run, String> {
        match self.work.as_ref().map_err(Clone::clone)? {
            Work::Program(program) => busy::run(program, way, bench, output),
            Work::Memcached(binary) => memcached::run(binary, way, bench),
            Work::Redis(programs) => redis::run(programs, way, bench, output),
        }
    }
}
