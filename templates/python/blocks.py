//$ takes
$(include("templates/python/array.py"))


//$ if shape.causal then
_prefill = _function("prefill", _int, _pointer, _pointer, _pointer, _pointer, _size, _size, _pointer)


class Model(_Bound):
    """The blocks with their weights. Threads may share it."""

    def start(self):
        """An empty sequence."""
        return Sequence(self)


class Sequence:
    """A sequence: keys and values of its tokens, and their number, `position`. A call waits for that of another thread."""

    def __init__(self, model):
        self._model, self._cache, self._lock = model, _aligned(sizes.cache_bytes), threading.Lock()
        self.position = 0

    def __getstate__(self):
        with self._lock:
            return self._model, self._cache.copy(), self.position

    def __setstate__(self, state):
        self.__init__(state[0])
        self._cache[:], self.position = state[1:]

    def prefill(self, x):
        """y (n, $(shape.d)), float32, of the next n tokens x (n, $(shape.input)), float32."""
        x = _array(x, numpy.float32, sizes.d_in, 2)
        y = numpy.empty((len(x), sizes.d), numpy.float32)
        model, tokens = self._model, len(x)
        with self._lock:
            scratch = model._scratch(sizes.scratch_bytes)
            cache = self._cache.ctypes.data
            _check(_prefill(model._weights, cache, x.ctypes.data, y.ctypes.data, self.position, tokens, scratch))
            self.position += tokens
        return y

    def decode(self, x):
        """y ($(shape.d),), float32, of the next token x ($(shape.input),), float32."""
        return self.prefill(_array(x, numpy.float32, sizes.d_in, 1)[None])[0]
//$ if not shape.ring then

    def truncate(self, position):
        """Forgets all tokens from number `position` on."""
        with self._lock:
            if not 0 <= position <= self.position:
                raise ValueError(f"$(model): position {position}: must be 0 to {self.position}")
            self.position = position
//$ end
//$ elseif shape.sequences then
_encode_batch = _function("encode_batch", _int, _pointer, _pointer, _pointer, _pointer, _pointer, _size, _pointer)


class Model(_Bound):
    """The blocks with their weights. Threads may share it."""

    def encode_batch(self, sequences):
        """A list of y (n, $(shape.d)), float32, of a list of sequences x (n, $(shape.input)), float32."""
        sequences = [_array(x, numpy.float32, sizes.d_in, 2) for x in sequences]
        offsets = numpy.cumsum([0] + [len(x) for x in sequences], dtype=numpy.uintp)
        x = numpy.concatenate(sequences) if sequences else numpy.empty((0, sizes.d_in), numpy.float32)
        y = numpy.empty((len(x), sizes.d), numpy.float32)
        cache, scratch = _aligned(sizes.cache_bytes), self._scratch(sizes.scratch_bytes)
        count, pointers = len(sequences), (x.ctypes.data, y.ctypes.data, offsets.ctypes.data)
        _check(_encode_batch(self._weights, cache.ctypes.data, *pointers, count, scratch))
        return numpy.split(y, offsets[1:-1].astype(int)) if count else []
//$ else
_encode = _function("encode", _int, _pointer, _pointer, _pointer, _pointer, _size, _pointer)


class Model(_Bound):
    """The blocks with their weights. Threads may share it."""

    def encode(self, x):
        """y (n, $(shape.d)), float32, of a sequence x (n, $(shape.input)), float32."""
        x = _array(x, numpy.float32, sizes.d_in, 2)
        y = numpy.empty((len(x), sizes.d), numpy.float32)
        cache, scratch = _aligned(sizes.cache_bytes), self._scratch(sizes.scratch_bytes)
        _check(_encode(self._weights, cache.ctypes.data, x.ctypes.data, y.ctypes.data, len(x), scratch))
        return y
//$ end
