//! Random operations against the model, alias view.
mod support;

use thermalloc_alloc::{HeapConfig, ViewKind, init};

#[test]
fn heap_and_model_agree() {
    init(&HeapConfig { view: ViewKind::Alias, ..HeapConfig::DEFAULT }).unwrap();
    support::run_model(24);
}
