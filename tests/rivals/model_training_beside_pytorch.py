"""Times training steps of a language model with LookupFFNs, of its dense twin and of the same twin in PyTorch, forward, backward and update, on
one thread in one interleaved run: `./build.sh bench training`. LOOKUPC_ROUNDS says how many rounds are timed."""
import os
import statistics
import tempfile
import time

from pytorch import torch

import numpy as np

from lookupc import aligned, instruction_sets
from model_training import Trainer

ROUNDS = int(os.environ.get("LOOKUPC_ROUNDS", "15"))
D, LAYERS, HEADS, CONTEXT, VOCAB, BATCH = 256, 4, 8, 128, 1024, 16
FFNS = {
    "dense": f'{{ kind = "mlp", f = {4 * D}, activation = "gelu" }}',
    "m = 1": '{ kind = "lookup", h = 64, tau = 8, score = "gelu", projection = { kind = "bh4", block = 32 } }',
    "m = 1, b = 16": '{ kind = "lookup", h = 64, tau = 8, score = "gelu", projection = { kind = "bh4", block = 16 } }',
    "m = 2": '{ kind = "lookup", h = 64, tau = 8, neighbours = 2, score = "gelu", projection = { kind = "bh4", block = 32 } }',
    "m = 2, b = 16": '{ kind = "lookup", h = 64, tau = 8, neighbours = 2, score = "gelu", projection = { kind = "bh4", block = 16 } }',
}
MODEL = """return {{
    name = "{name}", d = {d}, heads = {heads}, layers = {layers}, vocab = {vocab}, positions = {context},
    skip = true, norm = {{ kind = "layernorm" }}, attention = {{ context = {context} }},
    ffn = {ffn},
    embedding = {{}}, output = {{ norm = {{ kind = "layernorm" }}, head = {{}} }}, checkpoint = "mingpt",
}}
"""


class Emitted:
    """A model file's emitted step, with PyTorch's AdamW on all that is not a table."""

    def __init__(self, number, ffn, isa, work):
        path = f"{work}/lm{number}.lua"
        with open(path, "w", encoding="utf-8") as file:
            file.write(MODEL.format(name=f"lm{number}", d=D, heads=HEADS, layers=LAYERS, vocab=VOCAB, context=CONTEXT, ffn=ffn))
        self.trainer = t = Trainer(path, f"{work}/lm{number}", isa, optimise="-O2")
        random = np.random.default_rng(number)
        t.parameters[:] = random.standard_normal(t.parameters.size, np.float32) * np.float32(0.03)
        weights = torch.nn.Parameter(torch.from_numpy(t.parameters[: t.plan["gradients"]]))
        weights.grad = torch.from_numpy(t.gradients)
        self.optimiser = torch.optim.AdamW([weights], lr=1e-5)
        self.workspace = aligned(t.workspace_bytes(BATCH, CONTEXT))
        self.call = t.settings(table_rate=1e-3, gradient_scale=1 / (BATCH * CONTEXT))

    def step(self, ids, targets):
        self.trainer.gradients[:] = 0
        loss = self.trainer.step_once(self.call, ids.numpy(), targets.numpy(), self.workspace)
        self.optimiser.step()
        return loss / ids.numel()


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(D) for _ in range(2))
        self.qkv, self.out = torch.nn.Linear(D, 3 * D), torch.nn.Linear(D, D)
        self.ffn = torch.nn.Sequential(torch.nn.Linear(D, 4 * D), torch.nn.GELU(), torch.nn.Linear(4 * D, D))
        self.register_buffer("later", torch.ones(CONTEXT, CONTEXT, dtype=torch.bool).triu(1))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (part.view(b, n, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).split(D, -1))
        scores = (q @ k.transpose(-2, -1) * (D // HEADS) ** -0.5).masked_fill(self.later, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, D))
        return x + self.ffn(self.norms[1](x))


class PyTorch:
    """The dense twin."""

    def __init__(self):
        self.tokens, self.positions = torch.nn.Embedding(VOCAB, D), torch.nn.Parameter(torch.randn(CONTEXT, D) * 0.02)
        self.blocks = torch.nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = torch.nn.Sequential(torch.nn.LayerNorm(D), torch.nn.Linear(D, VOCAB))
        parameters = [*self.tokens.parameters(), self.positions, *self.blocks.parameters(), *self.head.parameters()]
        self.optimiser = torch.optim.AdamW(parameters, lr=1e-5)

    def step(self, ids, targets):
        self.optimiser.zero_grad(set_to_none=True)
        logits = self.head(self.blocks(self.tokens(ids.long()) + self.positions))
        loss = torch.nn.functional.cross_entropy(logits.view(-1, VOCAB), targets.long().view(-1))
        loss.backward()
        self.optimiser.step()
        return loss.item()


def main():
    isa = [name for name in instruction_sets() if name in ("scalar", "avx2", "avx512")][-1]
    random = torch.Generator().manual_seed(1)
    with tempfile.TemporaryDirectory() as work:
        contestants = {name: Emitted(number, ffn, isa, work) for number, (name, ffn) in enumerate(FFNS.items())}
        contestants["PyTorch"] = PyTorch()
        contestants["again"] = contestants["PyTorch"]
        us = {name: [] for name in contestants}
        for one in range(ROUNDS + 1):
            ids = torch.randint(VOCAB, (BATCH, CONTEXT), generator=random, dtype=torch.int32)
            targets = torch.randint(VOCAB, (BATCH, CONTEXT), generator=random, dtype=torch.int32)
            for name, contestant in contestants.items():
                start = time.process_time_ns()
                loss = contestant.step(ids, targets)
                if one > 0:
                    us[name].append((time.process_time_ns() - start) / 1e3 / ids.numel())
                assert np.isfinite(loss), name
    us = {name: statistics.median(values) for name, values in us.items()}
    print(f"\nlanguage models of d {D}, {LAYERS} layers, {VOCAB} pieces, {BATCH} sequences of {CONTEXT} tokens a step; h 64, tau 8, b 32 unless named")
    print(f"one thread, {isa}, CPU time, medians of {ROUNDS} rounds; 'again' is PyTorch once more")
    print("model          µs a token   tokens/s   of PyTorch's   of the dense twin's")
    for name, value in us.items():
        print(f"{name:14} {value:10.1f} {1e6 / value:10.0f} {us['PyTorch'] / value:13.2f}x {us['dense'] / value:20.2f}x")


main()
