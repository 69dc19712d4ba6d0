//$ takes plan, facts
//$ if plan.causal then
/// A sequence of ids with its keys and values. A clone goes on where it is.
#[derive(Clone)]
pub struct Sequence {
    state: Memory,
}

impl Sequence {
    pub fn new() -> Sequence {
        let mut state = Memory::new(sizes().state_bytes);
        unsafe { ffi::$(names.start)(state.pointer()) }
        Sequence { state }
    }
    pub fn position(&self) -> usize {
        unsafe { ffi::$(names.position)(self.state.data.as_ptr() as *const c_void) }
    }
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence::new()
    }
}

//$ end
/// The model, with working memory of its own: one for each thread. Clones share weights.
#[derive(Clone)]
pub struct Model {
    weights: Weights,
    scratch: Memory,
}

impl Model {
    pub fn new(weights: &Weights) -> Model {
        Model { weights: weights.clone(), scratch: Memory::new(sizes().scratch_bytes) }
    }
//$ if plan.causal then
    /// Appends ids, at least one; returns the logits, [$(plan.widths.out)], of the last one.
    pub fn prefill(&mut self, to: &mut Sequence, ids: &[i32]) -> Result<Vec<f32>, Error> {
        if ids.is_empty() {
            return Err(Error::Length { given: 0, must_be: "at least one" });
        }
        let mut logits = vec![0.0; $(plan.widths.out)];
        let (weights, state, scratch) = (self.weights.pointer(), to.state.pointer(), self.scratch.pointer());
        check(unsafe { ffi::$(names.prefill)(weights, state, ids.as_ptr(), ids.len(), logits.as_mut_ptr(), scratch) })?;
        Ok(logits)
    }
    /// Appends ids; returns the logits, [ids][$(plan.widths.out)], of all of them.
    pub fn prefill_all(&mut self, to: &mut Sequence, ids: &[i32]) -> Result<Vec<f32>, Error> {
        let mut logits = vec![0.0; ids.len() * $(plan.widths.out)];
        let (weights, state, scratch) = (self.weights.pointer(), to.state.pointer(), self.scratch.pointer());
        check(unsafe {
            ffi::$(names.prefill_all)(weights, state, ids.as_ptr(), ids.len(), logits.as_mut_ptr(), scratch)
        })?;
        Ok(logits)
    }
    /// Appends an id; returns its logits, [$(plan.widths.out)].
    pub fn step(&mut self, to: &mut Sequence, id: i32) -> Result<Vec<f32>, Error> {
        let mut logits = vec![0.0; $(plan.widths.out)];
        let (weights, state, scratch) = (self.weights.pointer(), to.state.pointer(), self.scratch.pointer());
        check(unsafe { ffi::$(names.step)(weights, state, id, logits.as_mut_ptr(), scratch) })?;
        Ok(logits)
    }
//$ else
//$ local pooled = plan.output.pool
    /// The $(pooled and "vector, [" or "vectors, [ids][")$(plan.widths.out)], of a sequence of ids.
    pub fn encode(&mut self, ids: &[i32]) -> Result<Vec<f32>, Error> {
        self.encode_batch(&[ids])
    }
    /// The same of several sequences, one behind the other.
    pub fn encode_batch(&mut self, sequences: &[&[i32]]) -> Result<Vec<f32>, Error> {
        let (ids, mut offsets) = (sequences.concat(), vec![0]);
        for sequence in sequences {
            offsets.push(offsets[offsets.len() - 1] + sequence.len());
        }
        let mut y = vec![0.0; $(pooled and "sequences" or "ids").len() * $(plan.widths.out)];
        let (weights, count, scratch) = (self.weights.pointer(), sequences.len(), self.scratch.pointer());
        check(unsafe {
            ffi::$(names.encode_batch)(weights, ids.as_ptr(), offsets.as_ptr(), count, y.as_mut_ptr(), scratch)
        })?;
        Ok(y)
    }
//$ end
$(include("templates/rust/tokenizer_calls.rs")) //$ if facts
}
