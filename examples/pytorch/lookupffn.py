"""LookupFFN for PyTorch: a module that trains in place of an FFN and exports what lookupc reads. One file, to be copied.

    ffn = LookupFFN(256, tables=64, bits=8, block=32, neighbours=2)
    adam, adagrad = optimisers(model, rate=2e-3)          # the whole model, in which ffn is a part
    loss.backward(); adam.step(); adagrad.step()
    export(ffn, "ffn.safetensors"); open("ffn.lua", "w").write(model_file(ffn, "ffn"))

Then `lookupc emit ffn.lua -o ffn` writes C, and `lookupc pack ffn.lua --weights ffn.safetensors -o ffn.bin` its weights.

Each of the tables' rows stands for one code of `bits` signs. A token takes the rows of the codes that its projection z is nearest to, times
a score. Only the score carries a gradient to z, so projections must learn slowly: at the full rate all tokens soon have the same code.
"""
import json
import math
import struct

import torch
from torch import nn
from torch.nn import functional


def hadamard(y):
    """The unnormalised Walsh-Hadamard transform of the last dimension, a power of two, in natural order."""
    n, step = y.shape[-1], 1
    shape = y.shape
    while step < n:
        a, b = y.reshape(-1, n // (2 * step), 2, step).unbind(2)
        y = torch.stack((a + b, a - b), 2)
        step *= 2
    return y.reshape(shape)


class BH4(nn.Module):
    """z of x: in each repeat four times a block-diagonal product and a Hadamard transform, mixed with the input."""

    def __init__(self, d, outputs, block, decay):
        super().__init__()
        self.n, self.outputs, self.block, self.decay = 1 << (d - 1).bit_length(), outputs, block, decay
        if block < 1 or self.n % block:
            raise ValueError(f"block: {block}: must be a power of two, at most {self.n}")
        repeats = -(-outputs // self.n)
        self.weight = nn.Parameter(torch.randn(repeats, 4, self.n // block, block, block) / math.sqrt(block * self.n))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        x = functional.pad(x, (0, self.n - x.shape[-1]))
        parts = []
        for repeat in self.weight:
            y = x
            for blocks in repeat:
                y = torch.einsum("...ni,noi->...no", y.unflatten(-1, (-1, self.block)), blocks).flatten(-2)
                y = hadamard(y)
            parts.append(self.decay * y + (1 - self.decay) * x)
        return torch.cat(parts, -1)[..., :self.outputs] + self.bias


class Hash(nn.Module):
    """Only gives the projection the name that it has in a checkpoint."""

    def __init__(self, projection):
        super().__init__()
        self.projection = projection


class LookupFFN(nn.Module):
    """y of x, [..., d] to [..., d_out]. block: of BH4, a power of two; None: a dense projection. neighbours: rows of each table that a
    token takes; two are worth more than twice the tables."""

    def __init__(self, d, tables, bits, block=None, neighbours=1, d_out=None, decay=0.7, score="gelu"):
        super().__init__()
        if score not in ("gelu", "softmax"):
            raise ValueError(f"score: {score!r}: must be gelu or softmax")
        if not 1 <= neighbours <= 1 << bits:
            raise ValueError(f"neighbours: {neighbours}: must be an integer from 1 to {1 << bits}")
        self.d, self.h, self.tau, self.m, self.score = d, tables, bits, neighbours, score
        self.hash = Hash(nn.Linear(d, tables * bits) if block is None else BH4(d, tables * bits, block, decay))
        self.tables = nn.Parameter(0.02 * torch.randn(tables, 1 << bits, d_out or d))
        self.bias = nn.Parameter(torch.zeros(d_out or d))
        self.register_buffer("place", 1 << torch.arange(bits - 1, -1, -1), persistent=False)
        self.register_buffer("first", torch.arange(tables)[:, None] << bits, persistent=False)

    def signs(self, z):
        """The m nearest vertices of z [tokens, h, tau]: [tokens, h, m, tau] of -1 and 1. Zero counts as -1."""
        z = z.detach()
        best = torch.where(z > 0, 1.0, -1.0).unsqueeze(2)
        if self.m == 1:
            return best
        if self.m == 2:
            least = functional.one_hot(z.abs().argmin(-1), self.tau).unsqueeze(2)
            return torch.cat((best, best * (1 - 2 * least)), 2)
        all_codes = torch.arange(1 << self.tau, device=z.device)[:, None]
        vertices = (torch.div(all_codes, self.place, rounding_mode="floor") % 2 * 2 - 1).to(z.dtype)
        return vertices[(z @ vertices.T).topk(self.m).indices]

    def codes(self, x):
        """The rows that x takes of each table, [tokens, h, m], and their scores."""
        z = self.hash.projection(x.reshape(-1, self.d)).unflatten(-1, (self.h, self.tau))
        signs = self.signs(z)
        along = signs * z.unsqueeze(2)
        score = functional.logsigmoid(2 * along).sum(-1).exp()
        if self.score == "gelu":
            score = score * along.sum(-1)
        return ((signs > 0).long() * self.place).sum(-1), score

    def forward(self, x):
        codes, score = self.codes(x)
        rows = (codes + self.first).flatten(1)
        y = functional.embedding_bag(rows, self.tables.flatten(0, 1), per_sample_weights=score.flatten(1), mode="sum")
        return (y + self.bias).unflatten(0, x.shape[:-1])


class RowWiseAdagrad(torch.optim.Optimizer):
    """Adagrad with one sum for each row: for tables, of which most rows are not met in a step."""

    def __init__(self, parameters, lr=0.04, eps=1e-8):
        super().__init__(parameters, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for tables in group["params"]:
                if tables.grad is None:
                    continue
                state = self.state[tables]
                square = tables.grad.square().mean(-1, keepdim=True)
                state["sum"] = state.get("sum", 0) + square
                tables.addcdiv_(tables.grad, state["sum"].sqrt() + group["eps"], value=-group["lr"])


def parameter_groups(model, rate, decay=0.01):
    """Of all parameters of a model but tables, as torch.optim takes them: matrices; what has one dimension and embeddings, without decay;
    projections, which must be slow."""
    tables, slow, plain, matrices = [], {}, [], []
    for module in model.modules():
        if isinstance(module, LookupFFN):
            factor = 0.03 if isinstance(module.hash.projection, BH4) else 0.3
            slow.setdefault(factor, []).extend(module.hash.projection.parameters())
            tables.append(module.tables)
    taken = {id(parameter) for group in [tables, *slow.values()] for parameter in group}
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    for parameter in model.parameters():
        if id(parameter) not in taken:
            (plain if parameter.dim() < 2 or id(parameter) in embeddings else matrices).append(parameter)
    groups = [{"params": matrices, "lr": rate, "weight_decay": decay}, {"params": plain, "lr": rate, "weight_decay": 0.0}]
    groups += [{"params": some, "lr": factor * rate, "weight_decay": 0.0} for factor, some in slow.items()]
    return [group for group in groups if group["params"]], tables


def optimisers(model, rate=2e-3, table_rate=0.04, decay=0.01):
    """AdamW of everything but tables, and row-wise Adagrad of these. Clip gradients of the first only. Warm both up over 5 % of the steps,
    then let them fall to a tenth along a cosine."""
    groups, tables = parameter_groups(model, rate, decay)
    return torch.optim.AdamW(groups, betas=(0.9, 0.98)), RowWiseAdagrad(tables, table_rate)


def export(module, path, prefix=""):
    """Writes the parameters of a LookupFFN, or of a model with some, as float32 under their names, which lookupc reads, into a safetensors
    file."""
    header, data = {}, []
    at = 0
    for name, parameter in module.state_dict().items():
        raw = parameter.detach().cpu().float().contiguous().numpy().tobytes()
        header[prefix + name] = {"dtype": "F32", "shape": list(parameter.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))


def model_file(ffn, name):
    """The model file of a LookupFFN as text; the emitted symbols start with `name`."""
    projection = ffn.hash.projection
    kind = 'kind = "bh4", block = %d, decay = %r' % (projection.block, projection.decay) if isinstance(projection, BH4) else 'kind = "dense"'
    return 'return {\n    name = "%s",\n    d = %d, d_out = %d, h = %d, tau = %d, neighbours = %d,\n    projection = { %s },\n    score = "%s",\n}\n' % (
        name, ffn.d, ffn.tables.shape[2], ffn.h, ffn.tau, ffn.m, kind, ffn.score)
