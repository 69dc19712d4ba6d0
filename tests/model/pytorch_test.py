"""Checkpoints as the authors of LookupFFN save them, whole and by one command, give PyTorch's logits: with LookupFFN and with their dense
FFN, bare and under Lightning's prefix. A .ckpt is answered with the Python that converts it."""
import math
import re
import sys
import tempfile

import numpy as np

try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: python3-torch is missing")
    sys.exit(77)

from lookupc import check, instruction_sets, run, write_safetensors

TOLERANCE = 1e-5
D, HEADS, LAYERS, VOCAB, POSITIONS, TOKENS = 32, 4, 2, 50, 24, 17
H, TAU, BLOCK, DECAY = 6, 4, 8, 0.7


class Projection(nn.Module):
    """z of x: BH4, or dense."""

    def __init__(self, kind):
        super().__init__()
        self.kind, bits = kind, H * TAU
        self.hadamard = torch.ones(1, 1)
        while len(self.hadamard) < D:
            self.hadamard = torch.kron(self.hadamard, torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
        repeats = -(-bits // D)
        shape = (repeats, 4, D // BLOCK, BLOCK, BLOCK) if kind == "bh4" else (bits, D)
        self.weight = nn.Parameter(torch.randn(shape) / math.sqrt(BLOCK * D if kind == "bh4" else D))
        self.bias = nn.Parameter(0.1 * torch.randn(bits))

    def forward(self, x):
        if self.kind == "dense":
            return x @ self.weight.T + self.bias
        outputs = []
        for repeat in self.weight:
            y = x
            for stage in repeat:
                y = torch.einsum("tni,noi->tno", y.reshape(len(y), -1, BLOCK), stage).reshape(len(y), D) @ self.hadamard.to(x.dtype)
            outputs.append(DECAY * y + (1 - DECAY) * x)
        return torch.cat(outputs, 1)[:, : H * TAU] + self.bias


class Hash(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.projection = Projection(kind)


class LookupFFN(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.LayerNorm, self.hash = nn.LayerNorm(D), Hash(kind)
        self.tables, self.bias = nn.Parameter(0.3 * torch.randn(H, 1 << TAU, D)), nn.Parameter(0.1 * torch.randn(D))
        self.nearest = math.inf  # to 0, of all z

    def forward(self, x):
        z = self.hash.projection(self.LayerNorm(x)).reshape(len(x), H, TAU)
        self.nearest = min(self.nearest, z.abs().min().item())
        code = ((z > 0).long() << torch.arange(TAU - 1, -1, -1)).sum(2)
        score = torch.prod(torch.sigmoid(2 * z.abs()), 2) * z.abs().sum(2)
        return self.bias + torch.einsum("tk,tkd->td", score, self.tables[torch.arange(H), code])


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.LayerNorm = nn.LayerNorm(D)
        self.query, self.key, self.value, self.dense = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        x = self.LayerNorm(x)
        q, k, v = (map_of(x).reshape(len(x), HEADS, -1).transpose(0, 1) for map_of in (self.query, self.key, self.value))
        weights = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(D // HEADS), 2)
        return self.dense((weights @ v).transpose(0, 1).reshape(len(x), D))


class Layer(nn.Module):
    def __init__(self, kind):
        super().__init__()
        dense = nn.Sequential(nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.GELU(), nn.Linear(3 * D, D))
        self.attention, self.FFN = Attention(), dense if kind == "mlp" else LookupFFN(kind)

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.FFN(x)


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(VOCAB, D), nn.Embedding(POSITIONS + 2, D)
        self.token_type_embeddings, self.LayerNorm = nn.Embedding(1, D), nn.LayerNorm(D)

    def forward(self, ids):
        positions = torch.arange(len(ids)) + 2
        return self.LayerNorm(self.word_embeddings(ids) + self.position_embeddings(positions) + self.token_type_embeddings.weight[0])


class Encoder(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer, self.LayerNorm = nn.ModuleList(Layer(kind) for _ in range(LAYERS)), nn.LayerNorm(D)

    def forward(self, x):
        for layer in self.layer:
            x = layer(x)
        return self.LayerNorm(x)


class Roberta(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embeddings, self.encoder = Embeddings(), Encoder(kind)


class LMHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.layer_norm, self.decoder = nn.Linear(D, D), nn.LayerNorm(D), nn.Linear(D, VOCAB)
        self.bias = self.decoder.bias

    def forward(self, x):
        return self.decoder(self.layer_norm(nn.functional.gelu(self.dense(x))))


class ForMLM(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.roberta, self.lm_head = Roberta(kind), LMHead()

    def forward(self, ids):
        return self.lm_head(self.roberta.encoder(self.roberta.embeddings(ids)))


class Lightning(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model


def source(kind):
    ffn = f"kind = 'mlp', f = {3 * D}, activation = 'gelu'"
    if kind != "mlp":
        projection = f"{{ kind = 'bh4', block = {BLOCK}, decay = {DECAY} }}" if kind == "bh4" else "{ kind = 'dense' }"
        ffn = f"kind = 'lookup', h = {H}, tau = {TAU}, projection = {projection}, score = 'gelu'"
    return f"""return {{
    name = "m", d = {D}, heads = {HEADS}, layers = {LAYERS}, vocab = {VOCAB}, positions = {POSITIONS + 2}, token_types = 1,
    skip = true, norm = {{ kind = "layernorm" }}, attention = {{ causal = false, context = {POSITIONS} }}, ffn = {{ {ffn} }},
    embedding = {{ first_position = 2, norm = {{ kind = "layernorm" }} }}, checkpoint = "lookupffn",
    output = {{ norm = {{ kind = "layernorm" }},
        dense = {{ width = {D}, activation = "gelu", norm = {{ kind = "layernorm" }} }}, head = {{ bias = true }} }},
}}
"""


def case(folder, kind, prefixed, isa):
    """A model, its ids and float64 logits; its weights are float32, and no z is so near to 0 that rounding decides its sign."""
    for seed in range(100):
        torch.manual_seed(seed)
        model = ForMLM(kind)
        for name, parameter in model.named_parameters():
            if "LayerNorm" in name or "layer_norm" in name or "FFN.0" in name:
                parameter.data += 0.1 * torch.randn_like(parameter)
        ids = torch.randint(VOCAB, (TOKENS,))
        tensors = (Lightning(model) if prefixed else model).state_dict()
        tensors = {name: values.detach().clone() for name, values in tensors.items()}
        with torch.no_grad():
            expected = model.double()(ids).numpy()
        if min([layer.FFN.nearest for layer in model.roberta.encoder.layer if kind != "mlp"], default=1.0) > 1e-4:
            break
    weights, numbers, output = folder + "/w.safetensors", folder + "/ids.npy", folder + "/y.npy"
    write_safetensors(weights, {name: values.numpy() for name, values in tensors.items()}, "F32")
    np.save(numbers, ids.numpy().astype(np.int32))
    with open(folder + "/m.lua", "w", encoding="utf-8") as file:
        file.write(source(kind))

    def compare(path, what):
        result = run("run", folder + "/m.lua", "--weights", path, "--ids", numbers, "--output", output, "--isa", isa)
        check(result.returncode == 0, f"{what}: {result.stderr}")
        off = np.linalg.norm(np.load(output) - expected) / np.linalg.norm(expected)
        check(off < TOLERANCE, f"{what}: is off by {off}")
        print(f"ok     {what}: off by {off:.1e}")

    what = f"{kind}{' under model.' if prefixed else ''}, {isa}"
    compare(weights, what)
    if prefixed and kind == "bh4":  # as Lightning saves it
        ckpt = folder + "/last.ckpt"
        torch.save({"state_dict": tensors, "epoch": 3}, ckpt)
        result = run("run", folder + "/m.lua", "--weights", ckpt, "--ids", numbers, "--output", output)
        check(result.returncode == 1 and re.search("convert it with Python: import torch; ", result.stderr), result.stderr)


with tempfile.TemporaryDirectory() as scratch:
    sets = instruction_sets()
    for number, (kind_of, prefix) in enumerate((("bh4", True), ("dense", False), ("mlp", True))):
        case(scratch, kind_of, prefix, sets[-1 - number % len(sets)])
