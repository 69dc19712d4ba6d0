"""examples/pytorch/lookupffn.py: after 20 steps of training, lookupc's C makes of the exported weights what PyTorch makes of them, by run and
with the blob that pack writes, for every kind of projection, number of neighbours and score; losses fall, and projections move as slowly as
they should."""
import ctypes
import os
import sys
import tempfile

import numpy as np

try:
    import torch
except ImportError:
    print("skipped: python3-torch is missing")
    sys.exit(77)

import whole
from lookupc import run

sys.path.insert(0, "examples/pytorch")
import lookupffn

torch.set_num_threads(1)
CASES = {
    "bh4_two": dict(d=24, tables=6, bits=5, block=8, neighbours=2),
    "dense_one": dict(d=24, tables=6, bits=5, neighbours=1, d_out=16),
    "bh4_many": dict(d=32, tables=9, bits=4, block=4, neighbours=5, decay=0.6, score="softmax"),
}

with tempfile.TemporaryDirectory() as folder:
    for number, (name, shape) in enumerate(CASES.items()):
        torch.manual_seed(number)
        ffn = lookupffn.LookupFFN(**shape)
        target = torch.nn.Sequential(torch.nn.Linear(ffn.d, 48), torch.nn.GELU(), torch.nn.Linear(48, ffn.tables.shape[2]))
        adam, adagrad = lookupffn.optimisers(ffn, rate=1e-2, table_rate=0.1)
        before = ffn.hash.projection.weight.detach().clone()
        losses = []
        for _ in range(20):
            x = torch.randn(4, 64, ffn.d)
            loss = (ffn(x) - target(x).detach()).square().mean()
            adam.zero_grad()
            adagrad.zero_grad()
            loss.backward()
            adam.step()
            adagrad.step()
            losses.append(loss.item())
        assert losses[-1] < 0.8 * losses[0], (name, losses)
        moved = (ffn.hash.projection.weight - before).abs().max().item()
        factor = 0.03 if "block" in shape else 0.3
        assert 0 < moved < 20 * 1.3e-2 * factor, (name, moved)

        # Tokens whose codes do not hang on rounding: no sign, and no order of vertices.
        x = torch.randn(200, ffn.d)
        z = ffn.hash.projection(x).unflatten(-1, (ffn.h, ffn.tau)).double()
        codes = torch.arange(1 << ffn.tau)[:, None]
        vertices = (torch.div(codes, ffn.place, rounding_mode="floor") % 2 * 2 - 1).double()
        best = (z @ vertices.T).topk(ffn.m + 1).values
        x = x[((best[..., -2] - best[..., -1]).amin(1) > 1e-4) & (z.abs().amin((1, 2)) > 1e-4)]
        assert len(x) > 100, name

        path = lambda ending: os.path.join(folder, name + ending)
        lookupffn.export(ffn, path(".safetensors"))
        with open(path(".lua"), "w", encoding="utf-8") as file:
            file.write(lookupffn.model_file(ffn, name))
        np.save(path(".x.npy"), x.numpy())
        y = ffn(x).detach().numpy()
        np.save(path(".y.npy"), y)
        result = run("run", path(".lua"), "--weights", path(".safetensors"), "--input", path(".x.npy"), "--expect", path(".y.npy"),
                     "--tolerance", "1e-5", "--isa", "scalar")
        assert result.returncode == 0, (name, result)
        print("%s: %s" % (name, result.stdout.strip()))

        packed = whole.Library(path(".lua"), path(".safetensors"), path(".c"), "scalar")
        apply = packed.function("ffn", [whole.BYTES, whole.F32, whole.F32, ctypes.c_size_t, whole.BYTES], None)
        made = np.empty_like(y)
        apply(packed.weights, x.contiguous().numpy(), made, len(x), packed.scratch)
        error = (np.linalg.norm(made - y, axis=1) / np.linalg.norm(y, axis=1)).max()
        assert error < 1e-5, (name, error)
        print("%s: packed, an error of %.1e" % (name, error))

    # Kinds of parameters go to their groups, each once.
    model = torch.nn.Sequential(torch.nn.Embedding(10, 24), torch.nn.LayerNorm(24), torch.nn.Linear(24, 24), lookupffn.LookupFFN(24, 4, 4, block=8))
    groups, tables = lookupffn.parameter_groups(model, 1.0)
    counts = {(group["lr"], group["weight_decay"]): len(group["params"]) for group in groups}
    assert counts == {(1.0, 0.01): 1, (1.0, 0.0): 5, (0.03, 0.0): 2} and len(tables) == 1, counts
