//$ takes
/// The tokenizer. Threads may share it; clones share tables.
#[derive(Clone)]
pub struct Model {
    weights: Weights,
}

impl Model {
    pub fn new(weights: &Weights) -> Model {
        Model { weights: weights.clone() }
    }
$(include("templates/rust/tokenizer_calls.rs"))
}
