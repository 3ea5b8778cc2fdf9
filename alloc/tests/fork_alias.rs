//! fork with the alias view: the child gets a copy of the shared memory.
mod fork_support;

use thermalloc_alloc::{HeapConfig, ViewKind, init};

#[test]
fn child_has_a_working_heap_of_its_own() {
    init(&HeapConfig { view: ViewKind::Alias, ..HeapConfig::DEFAULT }).unwrap();
    fork_support::run();
    fork_support::close_descriptors();
    fork_support::run();
}
