"""Times a training step of one LookupFFN, forward, backward and update, beside PyTorch's dense FFN on one thread, in one interleaved run:
`./build.sh bench training`. LOOKUPC_ROUNDS says how many rounds are timed."""
import os
import statistics
import tempfile
import time

from pytorch import torch

import ffn_training
from lookupc import instruction_sets

ROUNDS = int(os.environ.get("LOOKUPC_ROUNDS", "15"))
TOKENS = (1024, 2048)
# d, h, tau, block, neighbours
SHAPES = ((128, 64, 8, 32, 1), (256, 64, 8, 32, 1), (256, 64, 8, 32, 2), (512, 128, 8, 32, 1))


class Dense:
    """d → 4d → d with GELU, and AdamW on all of it."""

    def __init__(self, d, tokens):
        self.layers = torch.nn.Sequential(torch.nn.Linear(d, 4 * d), torch.nn.GELU(), torch.nn.Linear(4 * d, d))
        self.optimiser = torch.optim.AdamW(self.layers.parameters(), lr=1e-3)
        self.x, self.dy = torch.randn(tokens, d, requires_grad=True), torch.randn(tokens, d)

    def step(self):
        self.optimiser.zero_grad()
        self.x.grad = None
        self.layers(self.x).backward(self.dy)
        self.optimiser.step()


class Lookup:
    """The emitted kernels, rows moved by Adagrad. The projection's optimiser is the caller's: AdamW on it is counted too."""

    parts = ("prepare", "forward", "move_rows", "project", "finish")

    def __init__(self, kernels):
        self.batch = ffn_training.Batch(kernels, rate=0.04, epsilon=1e-8)
        weights = torch.nn.Parameter(torch.from_numpy(self.batch.kernels.model.W))
        weights.grad = torch.from_numpy(self.batch.d_projection.reshape(weights.shape))
        self.optimiser = torch.optim.AdamW([weights], lr=1e-6, weight_decay=0)
        self.us = {part: [] for part in (*self.parts, "AdamW")}

    def step(self):
        self.batch.sums[:] = 0
        self.batch.d_projection[:] = 0
        for part in self.parts:
            start = time.process_time_ns()
            getattr(self.batch, part)()
            self.us[part].append((time.process_time_ns() - start) / 1e3)
        start = time.process_time_ns()
        self.optimiser.step()
        self.us["AdamW"].append((time.process_time_ns() - start) / 1e3)


def main():
    isa = [name for name in instruction_sets() if name in ("scalar", "avx2", "avx512")][-1]
    print(f"one thread, {isa}, CPU time, medians of {ROUNDS} rounds; µs a token; 'again' is the dense FFN once more")
    print("   d   h tau   b  m tokens  lookup   dense   again  faster   parts of lookup")
    for number, (d, h, tau, block, m) in enumerate(SHAPES):
        for tokens in TOKENS:
            with tempfile.TemporaryDirectory() as work:
                model = ffn_training.Model(number, (d, d, h, tau, f"bh4 {block} 0.7", "gelu", m, "none", tokens), work)
                lookup, dense = Lookup(ffn_training.Kernels(model, isa)), Dense(d, tokens)
                contestants = {"lookup": lookup, "dense": dense, "again": dense}
                us = {name: [] for name in contestants}
                for one in range(ROUNDS + 1):
                    for name, contestant in contestants.items():
                        start = time.process_time_ns()
                        contestant.step()
                        if one > 0:
                            us[name].append((time.process_time_ns() - start) / 1e3 / tokens)
                us = {name: statistics.median(values) for name, values in us.items()}
                parts = ", ".join(f"{name} {statistics.median(values[1:]) / tokens:.1f}" for name, values in lookup.us.items())
                print(f"{d:4} {h:3} {tau:3} {block:3} {m:2} {tokens:6} {us['lookup']:7.1f} {us['dense']:7.1f} {us['again']:7.1f} {us['dense'] / us['lookup']:6.2f}x   {parts}", flush=True)


main()
