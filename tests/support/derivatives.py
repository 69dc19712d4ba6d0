"""Gradients in float64 of what NumPy computes: a Value stands for an array, and notes what it was made of."""
import math

import numpy as np

ERF = np.vectorize(math.erf)


def fitted(gradient, shape):
    """The gradient of an array of that shape from that of what it was broadcast to."""
    for axis in range(gradient.ndim - len(shape)):
        gradient = gradient.sum(axis=0)
    for axis, count in enumerate(shape):
        if count == 1:
            gradient = gradient.sum(axis=axis, keepdims=True)
    return gradient


# Gradients of the arguments from that of the result: of g, the result y and the arguments.
UFUNCS = {
    np.add: lambda g, y, a, b: (g, g),
    np.subtract: lambda g, y, a, b: (g, -g),
    np.multiply: lambda g, y, a, b: (g * b, g * a),
    np.true_divide: lambda g, y, a, b: (g / b, -g * y / b),
    np.power: lambda g, y, a, b: (g * b * a ** (b - 1), None),
    np.matmul: lambda g, y, a, b: (g @ b.T, a.T @ g),
    np.negative: lambda g, y, a: (-g,),
    np.exp: lambda g, y, a: (g * y,),
    np.log: lambda g, y, a: (g / a,),
    np.sqrt: lambda g, y, a: (g / (2 * y),),
    np.tanh: lambda g, y, a: (g * (1 - y * y),),
    np.absolute: lambda g, y, a: (g * np.sign(a),),
    np.maximum: lambda g, y, a, b: (g * (a > b), g * (b > a)),
}
COMPARISONS = (np.greater, np.less)


class Value(np.lib.mixins.NDArrayOperatorsMixin):
    """backward(gradient) of what it is gives those of `parents`, in a tuple; None: there is none."""

    true_slopes = False  # see weights
    nearest = np.inf  # how near any value has come to a kink, where gradients jump, relative to the values beside it

    def __init__(self, data, parents=(), backward=None):
        self.data, self.parents, self.backward, self.gradient = data, parents, backward, None

    shape = property(lambda self: self.data.shape)
    T = property(lambda self: Value(self.data.T, (self,), lambda g: (g.T,)))

    def __len__(self):
        return len(self.data)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None):
        """out: of `a += b`, which makes another Value."""
        assert method == "__call__", (ufunc, method)
        plain = [data_of(x) for x in inputs]
        y = ufunc(*plain)
        if ufunc in COMPARISONS:
            return y
        if ufunc in (np.absolute, np.maximum):
            Value.note(np.abs(plain[0] - (plain[1] if len(plain) > 1 else 0)), plain[0])

        def backward(g):
            found = UFUNCS[ufunc](g, y, *plain)
            return tuple(None if f is None else f if ufunc is np.matmul else fitted(f, np.shape(x)) for f, x in zip(found, plain))

        return Value(y, inputs, backward)

    def __array_function__(self, function, types, arguments, more):
        return FUNCTIONS[function](*arguments, **more)

    @staticmethod
    def note(distances, values):
        Value.nearest = min(Value.nearest, distances.min() / np.abs(values).mean())

    def reshape(self, *shape):
        return Value(self.data.reshape(*shape), (self,), lambda g: (g.reshape(self.shape),))

    def __getitem__(self, index):
        def backward(g):
            whole = np.zeros(self.shape)
            np.add.at(whole, index, g)
            return (whole,)

        return Value(self.data[index], (self,), backward)

    def sum(self, axis=None, keepdims=False):
        def backward(g):
            wide = g if keepdims or axis is None else np.expand_dims(g, axis)
            return (wide + np.zeros(self.shape),)

        return Value(self.data.sum(axis=axis, keepdims=keepdims), (self,), backward)

    def mean(self, axis, keepdims=False):
        return self.sum(axis, keepdims) / self.shape[axis]

    def max(self, axis, keepdims=False):
        """Only for what does not depend on it, as a softmax."""
        return self.data.max(axis=axis, keepdims=keepdims)

    def erf(self):
        return Value(ERF(self.data), (self,), lambda g: (g * 2 / math.sqrt(math.pi) * np.exp(-self.data**2),))

    def weights(self, used, chance, tau):
        """Of attention by tables: what is used instead of the chances that codes of these cosines agree. Its slope is tau / 2 of the chance,
        less than that of the chance itself."""
        slope = tau / 2 * chance
        if Value.true_slopes:
            slope = tau * chance ** (1 - 1 / tau) / (np.pi * np.sqrt(1 - self.data**2))
        return Value(used, (self,), lambda g: (g * slope,))

    def propagate(self):
        """Gives every Value that this one, a number, is made of its gradient."""
        order, known, waiting = [], set(), [(self, False)]
        while waiting:
            value, done = waiting.pop()
            if done:
                order.append(value)
            elif id(value) not in known:
                known.add(id(value))
                waiting.append((value, True))
                waiting += [(p, False) for p in value.parents if isinstance(p, Value)]
        self.gradient = np.ones(self.shape)
        for value in reversed(order):
            for parent, gradient in zip(value.parents, value.backward(value.gradient) if value.parents else ()):
                if isinstance(parent, Value) and gradient is not None:
                    parent.gradient = gradient if parent.gradient is None else parent.gradient + gradient


def data_of(value):
    return value.data if isinstance(value, Value) else value


def einsum(words, a, b):
    """Every index of an operand is one of the other or of the result."""
    of_a, of_b = words.split("->")[0].split(",")
    result, x, y = words.split("->")[1], data_of(a), data_of(b)
    return Value(np.einsum(words, x, y), (a, b), lambda g: (np.einsum(f"{result},{of_b}->{of_a}", g, y), np.einsum(f"{result},{of_a}->{of_b}", g, x)))


def concatenate(parts, axis=0):
    ends = np.cumsum([data_of(p).shape[axis] for p in parts])[:-1]
    return Value(np.concatenate([data_of(p) for p in parts], axis=axis), tuple(parts), lambda g: tuple(np.split(g, ends, axis=axis)))


def stack(parts, axis):
    return Value(np.stack([data_of(p) for p in parts], axis=axis), tuple(parts), lambda g: tuple(np.moveaxis(g, axis, 0)))


def split(value, count, axis):
    width = value.shape[axis] // count
    return [value[(slice(None),) * axis + (slice(i * width, (i + 1) * width),)] for i in range(count)]


def repeat(value, count, axis):
    def backward(g):
        shape = value.shape[: axis + 1] + (count,) + value.shape[axis + 1 :]
        return (g.reshape(shape).sum(axis=axis + 1),)

    return Value(np.repeat(value.data, count, axis=axis), (value,), backward)


def prod(value, axis):
    y = value.data.prod(axis=axis, keepdims=True)
    return Value(y.squeeze(axis), (value,), lambda g: (np.expand_dims(g, axis) * y / value.data,))


def pad(value, widths):
    inside = tuple(slice(before, before + count) for (before, _), count in zip(widths, value.shape))
    return Value(np.pad(value.data, widths), (value,), lambda g: (g[inside],))


def take_along_axis(value, index, axis):
    def backward(g):
        whole = np.zeros(value.shape)
        np.put_along_axis(whole, index, g, axis)
        return (whole,)

    return Value(np.take_along_axis(value.data, index, axis), (value,), backward)


def argpartition(value, last, axis):
    """Elements that come and go are a kink."""
    if last + 1 < value.shape[axis]:
        parted = np.partition(value.data, (last, last + 1), axis=axis)
        Value.note(np.diff(parted.take([last, last + 1], axis=axis), axis=axis), value.data)
    return np.argpartition(value.data, last, axis=axis)


FUNCTIONS = {getattr(np, f.__name__): f for f in (einsum, concatenate, stack, split, repeat, prod, pad, take_along_axis, argpartition)}
FUNCTIONS[np.shape] = lambda value: value.shape
