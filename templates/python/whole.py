//$ takes plan, facts


def _ids(ids):
    """ids as C reads them."""
    ids = numpy.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(f"$(model): shape {ids.shape}: ids must be (n,)")
    if ids.size == 0:
        return numpy.empty(0, numpy.int32)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"$(model): {ids.dtype}: ids must be integers")
    for id in (ids.min(), ids.max()):
        if not 0 <= id < sizes.vocab:
            raise ValueError(f"$(model): id {id}: must be 0 to {sizes.vocab - 1}")
    return numpy.ascontiguousarray(ids, numpy.int32)
$(include("templates/python/tokenizer_functions.py")) //$ if facts


//$ if plan.causal then
_start = _function("start", None, _pointer)
_position = _function("position", _size, _pointer)
_prefill = _function("prefill", _int, _pointer, _pointer, _pointer, _size, _pointer, _pointer)
_prefill_all = _function("prefill_all", _int, _pointer, _pointer, _pointer, _size, _pointer, _pointer)
_step = _function("step", _int, _pointer, _pointer, ctypes.c_int32, _pointer, _pointer)


class Model(_Bound):
    """The model with its weights. Threads may share it."""

    def start(self):
        """An empty sequence."""
        return Sequence(self)
$(include("templates/python/tokenizer_calls.py")) //$ if facts


class Sequence:
    """A sequence of ids with its keys and values. A call waits for that of another thread."""

    def __init__(self, model):
        self._model, self._state, self._lock = model, _aligned(sizes.state_bytes), threading.Lock()
        _start(self._state.ctypes.data)

    def __getstate__(self):
        with self._lock:
            return self._model, self._state.copy()

    def __setstate__(self, state):
        self.__init__(state[0])
        self._state[:] = state[1]

    @property
    def position(self):
        """How many ids it has."""
        return _position(self._state.ctypes.data)

    def copy(self):
        """Another sequence, which goes on where this one is."""
        other = Sequence(self._model)
        with self._lock:
            other._state[:] = self._state
        return other

    def _append(self, function, ids, logits):
        model = self._model
        with self._lock:
            scratch = model._scratch(sizes.scratch_bytes)
            state = self._state.ctypes.data
            _check(function(model._weights, state, ids.ctypes.data, len(ids), logits.ctypes.data, scratch))
        return logits

    def prefill(self, ids):
        """Appends ids, at least one; returns the logits ($(plan.widths.out),), float32, of the last one."""
        ids = _ids(ids)
        if ids.size == 0:
            raise ValueError("$(model): ids must be at least one")
        return self._append(_prefill, ids, numpy.empty(sizes.d_out, numpy.float32))

    def prefill_all(self, ids):
        """Appends n ids; returns the logits (n, $(plan.widths.out)), float32, of all of them."""
        ids = _ids(ids)
        return self._append(_prefill_all, ids, numpy.empty((len(ids), sizes.d_out), numpy.float32))

    def step(self, id):
        """Appends an id; returns its logits ($(plan.widths.out),), float32."""
        id, logits = int(_ids([id])[0]), numpy.empty(sizes.d_out, numpy.float32)
        model = self._model
        with self._lock:
            scratch = model._scratch(sizes.step_scratch_bytes)
            _check(_step(model._weights, self._state.ctypes.data, id, logits.ctypes.data, scratch))
        return logits
//$ else
//$ local pooled = plan.output.pool
//$ local result = pooled and "vector (" .. plan.widths.out .. ",)" or "vectors (n, " .. plan.widths.out .. ")"
_encode_batch = _function("encode_batch", _int, _pointer, _pointer, _pointer, _size, _pointer, _pointer)


class Model(_Bound):
    """The model with its weights. Threads may share it."""

    def encode(self, ids):
        """The $(result), float32, of a sequence of n ids."""
        return self.encode_batch([ids])[0]

    def encode_batch(self, sequences):
//$ if pooled then
        """Vectors (sequences, $(plan.widths.out)), float32, one of each sequence of ids, which all have at least one."""
//$ else
        """A list of vectors (n, $(plan.widths.out)), float32, one for each sequence of n ids."""
//$ end
        sequences = [_ids(ids) for ids in sequences]
        offsets = numpy.cumsum([0] + [len(ids) for ids in sequences], dtype=numpy.uintp)
        ids, count = numpy.concatenate([numpy.empty(0, numpy.int32)] + sequences), len(sequences)
        y = numpy.empty(($(pooled and "count" or "len(ids)"), sizes.d_out), numpy.float32)
        scratch = self._scratch(sizes.scratch_bytes)
        _check(_encode_batch(self._weights, ids.ctypes.data, offsets.ctypes.data, count, y.ctypes.data, scratch))
        return y //$ if pooled
        return numpy.split(y, offsets[1:-1].astype(int)) if count else [] //$ if not pooled
$(include("templates/python/tokenizer_calls.py")) //$ if facts
//$ end
