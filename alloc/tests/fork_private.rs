//! fork with the private view: the child's heap is whole, whatever other threads were doing.
mod fork_support;

#[test]
fn child_has_a_working_heap_of_its_own() {
    fork_support::run();
}
