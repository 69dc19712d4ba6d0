//$ takes
//$ local must_be = '"a multiple of ' .. shape.input .. '"'
//$ if shape.causal then
/// Keys and values of a sequence's tokens, and their number. A clone goes on where it is.
#[derive(Clone)]
pub struct Sequence {
    cache: Memory,
    position: usize,
}

impl Sequence {
    pub fn new() -> Sequence {
        Sequence { cache: Memory::new(sizes().cache_bytes), position: 0 }
    }
    pub fn position(&self) -> usize {
        self.position
    }
//$ if not shape.ring then
    /// Forgets all tokens from number `position` on.
    pub fn truncate(&mut self, position: usize) {
        self.position = self.position.min(position);
    }
//$ end
}

impl Default for Sequence {
    fn default() -> Sequence {
        Sequence::new()
    }
}

//$ end
/// The blocks, with working memory of their own: one for each thread. Clones share weights.
#[derive(Clone)]
pub struct Model {
    weights: Weights,
    scratch: Memory,
    cache: Memory, //$ if not shape.causal
}

impl Model {
    pub fn new(weights: &Weights) -> Model {
        Model {
            weights: weights.clone(),
            scratch: Memory::new(sizes().scratch_bytes),
            cache: Memory::new(sizes().cache_bytes), //$ if not shape.causal
        }
    }
//$ if shape.causal then
    /// y, [tokens][$(shape.d)], of the next tokens x, [tokens][$(shape.input)], of a sequence.
    pub fn prefill(&mut self, to: &mut Sequence, x: &[f32]) -> Result<Vec<f32>, Error> {
        let tokens = tokens(x.len(), $(shape.input), $(must_be))?;
        let mut y = vec![0.0; tokens * $(shape.d)];
        let (cache, scratch, first) = (to.cache.pointer(), self.scratch.pointer(), to.position);
        check(unsafe {
            ffi::$(names.prefill)(self.weights.pointer(), cache, x.as_ptr(), y.as_mut_ptr(), first, tokens, scratch)
        })?;
        to.position += tokens;
        Ok(y)
    }
    /// y, [$(shape.d)], of the next token x, [$(shape.input)].
    pub fn decode(&mut self, to: &mut Sequence, x: &[f32]) -> Result<Vec<f32>, Error> {
        if x.len() != $(shape.input) {
            return Err(Error::Length { given: x.len(), must_be: "$(shape.input)" });
        }
        self.prefill(to, x)
    }
//$ elseif shape.sequences then
    /// y, [tokens][$(shape.d)], of x, [tokens][$(shape.input)], the sequences of these lengths one behind the other.
    pub fn encode_batch(&mut self, x: &[f32], lengths: &[usize]) -> Result<Vec<f32>, Error> {
        let tokens = tokens(x.len(), $(shape.input), $(must_be))?;
        let mut offsets = vec![0; lengths.len() + 1];
        for (i, length) in lengths.iter().enumerate() {
            offsets[i + 1] = offsets[i] + length;
        }
        if offsets[lengths.len()] != tokens {
            return Err(Error::Length { given: tokens, must_be: "the sum of the lengths" });
        }
        let mut y = vec![0.0; tokens * $(shape.d)];
        let (cache, scratch, count) = (self.cache.pointer(), self.scratch.pointer(), lengths.len());
        check(unsafe {
            let (x, y) = (x.as_ptr(), y.as_mut_ptr());
            ffi::$(names.encode_batch)(self.weights.pointer(), cache, x, y, offsets.as_ptr(), count, scratch)
        })?;
        Ok(y)
    }
//$ else
    /// y, [tokens][$(shape.d)], of a sequence x, [tokens][$(shape.input)].
    pub fn encode(&mut self, x: &[f32]) -> Result<Vec<f32>, Error> {
        let tokens = tokens(x.len(), $(shape.input), $(must_be))?;
        let mut y = vec![0.0; tokens * $(shape.d)];
        let (cache, scratch) = (self.cache.pointer(), self.scratch.pointer());
        check(unsafe {
            ffi::$(names.encode)(self.weights.pointer(), cache, x.as_ptr(), y.as_mut_ptr(), tokens, scratch)
        })?;
        Ok(y)
    }
//$ end
}

$(include("templates/rust/tokens.rs"))
