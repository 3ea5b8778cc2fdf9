//! Examples, as `--help` and the man pages show them.

/// Of `run`.
pub const RUN: &str = "\
Examples:
  thermalloc run -- sqlite3 test.db 'select count(*) from t'
  thermalloc run --watch 'size>=4K' --depth 12 -o heat.json -- ./service
  thermalloc run --interval 1000 -- memcached -u nobody";

/// Of `top`.
pub const TOP: &str = "\
Examples:
  thermalloc top heat.json --by object --sort heat -n 5
  thermalloc top heat.json --stacks
  thermalloc top --pid 1234";

/// Of `report`.
pub const REPORT: &str = "\
Examples:
  thermalloc run -o heat.json -- sqlite3 test.db < queries.sql
  thermalloc report heat.json
  thermalloc report heat.*.json -o service.html";

/// Of `man`.
pub const MAN: &str = "\
Examples:
  thermalloc man | man -l -
  thermalloc man -o /usr/local/share/man/man1";

/// Of `completions`.
pub const COMPLETIONS: &str = "\
Examples:
  thermalloc completions bash > /usr/share/bash-completion/completions/thermalloc
  thermalloc completions zsh > ~/.zfunc/_thermalloc";

/// Of `export`.
pub const EXPORT: &str = "\
Examples:
  thermalloc export heat.json --format dhat -o dhat.out
  thermalloc export heat.json --format folded | flamegraph.pl > heat.svg
  thermalloc export heat.json --format parquet -o heat.parquet";

/// Of `diff`.
pub const DIFF: &str = "\
Examples:
  thermalloc diff old.json new.json";

/// Of `merge`.
pub const MERGE: &str = "\
Examples:
  thermalloc merge heat.*.json -o all.json";

/// Of `advise`.
pub const ADVISE: &str = "\
Examples:
  thermalloc advise heat.json --fast-bytes 64M
  thermalloc advise heat.json --fast-bytes 1G --by object --write-cost 3";

/// Of `doctor`.
pub const DOCTOR: &str = "\
Examples:
  thermalloc doctor
  thermalloc doctor --json";
