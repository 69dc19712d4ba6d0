//$ takes


def _array(x, dtype, width, dimensions=None):
    """x as C reads it; its last dimension must be `width`, and there may be any others unless `dimensions` says how many."""
    x = numpy.asarray(x)
    if x.dtype != dtype:
        raise TypeError(f"$(model): {x.dtype}: must be {numpy.dtype(dtype)}")
    if x.ndim == 0 or x.ndim != (dimensions or x.ndim) or x.shape[-1] != width:
        shape = {None: "(..., %d)", 1: "(%d,)", 2: "(n, %d)"}[dimensions] % width
        raise ValueError(f"$(model): shape {x.shape}: must be {shape}")
    return numpy.ascontiguousarray(x)
