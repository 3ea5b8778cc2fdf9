//! Random operations against the model, private view.
mod support;

#[test]
fn heap_and_model_agree() {
    support::run_model(24);
}
