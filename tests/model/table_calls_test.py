"""Decoders with attention by tables give the same bits however a text is cut into calls, in scalar."""
import sys
import tempfile

import numpy as np

import any_model
from lookupc import write_safetensors
from model_shapes import SHAPES, changed
from whole import Decoder

# Windows and caches.
CASES = [(1, "f32"), (3, "f32"), (16, "i8"), (40, "f32")]
CUTS = [(1, 2, 14, 19), (12, 24, 36), (30, 31), (2, 5, 21, 22, 40)]


def same_bits(window, cache):
    m = changed(SHAPES["tables"], attention={"window": window})
    ids = np.random.default_rng(window).integers(0, 29, 44).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        weights, path = folder + "/m.safetensors", any_model.write(folder, "m", m)
        write_safetensors(weights, any_model.tensors(m, window), "F32")
        decoder = Decoder(path, weights, folder + "/m", "scalar", emit=("--cache", cache))

        def in_calls(cuts):
            state = decoder.start()
            return np.concatenate([decoder.prefill_all(state, part) for part in np.split(ids, cuts)])

        wanted, state = in_calls(()), decoder.start()
        steps = np.array([decoder.step(state, number) for number in ids])
        good = [np.array_equal(found, wanted) for found in (*map(in_calls, CUTS), steps)]
    print(f"window {window}, {cache}: the same bits in parts {', '.join(map(str, good[:-1]))}, in steps {good[-1]}")
    return all(good)


if __name__ == "__main__":
    sys.exit(0 if all([same_bits(*case) for case in CASES]) else 1)
