//$ takes x_dtype, y_dtype
$(include("templates/python/array.py"))


_ffn = _function("ffn", None, _pointer, _pointer, _pointer, _size, _pointer)


class Model(_Bound):
    """The layer with its weights. Threads may share it."""

    def ffn(self, x):
        """y (..., $(shape.d_out)), $(y_dtype), of x (..., $(shape.d)), $(x_dtype), for any number of tokens."""
        x = _array(x, numpy.$(x_dtype), sizes.d)
        y = numpy.empty(x.shape[:-1] + (sizes.d_out,), numpy.$(y_dtype))
        tokens = x.size // sizes.d
        scratch = self._scratch(sizes.scratch_bytes if tokens > 1 else sizes.scratch_bytes_one)
        _ffn(self._weights, x.ctypes.data, y.ctypes.data, tokens, scratch)
        return y
