"""Attention by tables in NumPy: signs, codes, weights and what they make of values, also of Values, whose gradients are those of training."""
import numpy as np

from definitions import hadamard
from derivatives import Value, data_of


def own_signs(seed, layer, shape):
    """Those of a model: from splitmix64."""
    state, signs, mask = (seed << 32) + layer, [], (1 << 64) - 1
    for _ in range(int(np.prod(shape))):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        signs.append(-1.0 if (z ^ z >> 31) >> 63 else 1.0)
    return np.array(signs).reshape(shape)


def signs_of(m):
    """Of model `m`: a function of a layer and the shape of its signs."""
    return lambda layer, shape: own_signs(m["attention"].get("seed", 1), layer, shape)


def fresh_signs(seed, step, layer, shape):
    """Those of a step of training."""

    def mixed(x):
        x = (x ^ x >> 16) * 0x7FEB352D & 0xFFFFFFFF
        x = (x ^ x >> 15) * 0x846CA68B & 0xFFFFFFFF
        return x ^ x >> 16

    key = mixed(mixed(mixed(seed) ^ step) ^ layer ^ 0xFFFFFFFF)
    return np.array([-1.0 if mixed((key + 0x9E3779B9 * i) & 0xFFFFFFFF) >> 31 else 1.0 for i in range(int(np.prod(shape)))]).reshape(shape)


def codes(x, tables, tau, signs):
    """[tables][n][heads] of heads x [n][heads][width]; signs: a function of their shape."""
    padded = 1 << (x.shape[2] - 1).bit_length()
    each = padded // tau
    rounds = -(-tables // each)
    wide = np.pad(x, ((0, 0), (0, 0), (0, padded - x.shape[2])))
    z = np.concatenate([(wide * s @ hadamard(padded))[..., : each * tau].reshape(*x.shape[:2], each, tau) for s in signs((rounds, padded))], axis=2)
    Value.note(np.abs(z[:, :, :tables]), z)
    return np.moveaxis(((z > 0) << np.arange(tau)[::-1]).sum(axis=3)[:, :, :tables], 2, 0)


def attend(q, k, v, heads, kv_heads, a, signs=None):
    """a: of a model file; signs: None: weights are those expected, else a function of their shape."""
    n, width, tables, tau = len(q), q.shape[1] // heads, a.get("tables", 16), a.get("tau", 8)
    q, k, v = q.reshape(n, heads, width), k.reshape(n, kv_heads, width), v.reshape(n, kv_heads, width)
    k, v = (np.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
    cosines = np.einsum("ihw,jhw->hij", q, k) / width
    chance = (1 - np.arccos(np.clip(data_of(cosines), -1, 1)) / np.pi) ** tau
    used = chance
    if signs:
        of_q, of_k = (codes(data_of(x), tables, tau, signs) for x in (q, k))
        share = np.moveaxis((of_q[:, :, None] == of_k[:, None]).mean(axis=0), 2, 0)
        far = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) >= a.get("window", 16)
        used = np.where(far, share, chance)
    seen = np.tril(np.ones((n, n))) if a.get("causal", True) else 1.0
    weights = cosines.weights(used, chance, tau) if isinstance(cosines, Value) else used
    y = np.einsum("hij,jhw->ihw", weights * seen, v)
    return (y / np.sqrt((y**2).sum(axis=2, keepdims=True) + a.get("eps", 0.3) ** 2)).reshape(n, heads * width)
