//$ takes x_rust, y_rust
/// The layer, with working memory of its own: one for each thread. It grows with the first call of several tokens. Clones share weights.
#[derive(Clone)]
pub struct Model {
    weights: Weights,
    scratch: Memory,
}

impl Model {
    pub fn new(weights: &Weights) -> Model {
        Model { weights: weights.clone(), scratch: Memory::new(sizes().scratch_bytes_one) }
    }
    /// y, [tokens][$(shape.d_out)], of x, [tokens][$(shape.d)].
    pub fn ffn(&mut self, x: &[$(x_rust)]) -> Result<Vec<$(y_rust)>, Error> {
        let mut y = vec![Default::default(); tokens(x.len(), $(shape.d), "a multiple of $(shape.d)")? * $(shape.d_out)];
        self.ffn_to(x, &mut y)?;
        Ok(y)
    }
    /// The same, into memory of the caller.
    pub fn ffn_to(&mut self, x: &[$(x_rust)], y: &mut [$(y_rust)]) -> Result<(), Error> {
        let tokens = tokens(x.len(), $(shape.d), "a multiple of $(shape.d)")?;
        if y.len() != tokens * $(shape.d_out) {
            return Err(Error::Length { given: y.len(), must_be: "$(shape.d_out) for each token" });
        }
        if tokens > 1 && self.scratch.layout.size() < sizes().scratch_bytes {
            self.scratch = Memory::new(sizes().scratch_bytes);
        }
        let scratch = self.scratch.pointer();
        unsafe { ffi::$(names.ffn)(self.weights.pointer(), x.as_ptr(), y.as_mut_ptr(), tokens, scratch) }
        Ok(())
    }
}

$(include("templates/rust/tokens.rs"))
