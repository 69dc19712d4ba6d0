"""The sentence encoder as an ONNX model: in float32, or with products of 8-bit integers as onnxruntime's quantize_dynamic makes them."""
import numpy as np

import onnx
from sentence_encoder import EPS, SCOPE, VARIABLES

HEADS = 4


class Encoder:
    """kind: "f32" or "i8"; fused: attention is one operator of ONNX Runtime's own, not products and a softmax. token_products: multiplications
    of a token's linear maps, last_products: of the last of them; once saved."""

    def __init__(self, tensors, kind, fused):
        self.t, self.kind, self.fused, self.g = tensors, kind, fused, onnx.Graph()
        self.quantised = {}
        self.products = self.latest = 0

    def floats(self, array):
        return self.g.constant(np.asarray(array, np.float32))

    def linear(self, x, weight, bias):
        g = self.g
        self.products += weight.size
        self.latest = weight.size
        if self.kind == "f32":
            return g.node("Add", g.node("MatMul", x, self.floats(weight)), self.floats(bias))
        # Activations get a scale and a zero point in the call; weights are symmetric, one scale for all.
        scale = np.float32(np.abs(weight).max() / 127)
        rounded = np.clip(np.rint(weight / scale), -127, 127).astype(np.int8)
        if x not in self.quantised:
            self.quantised[x] = g.node("DynamicQuantizeLinear", x, outputs=3)
        whole, x_scale, zero = self.quantised[x]
        sums = g.node("MatMulInteger", whole, g.constant(rounded), zero, g.constant(np.int8(0)))
        scales = g.node("Mul", x_scale, self.floats(scale))
        return g.node("Add", g.node("Mul", g.node("Cast", sums, to=onnx.TYPES["float32"]), scales), self.floats(bias))

    def norm(self, x, name):
        end = "/ConcatPartitions/concat"
        gain, offset = self.t[name + "/layer_norm_scale" + end], self.t[name + "/layer_norm_bias" + end]
        return self.g.node("LayerNormalization", x, self.floats(gain), self.floats(offset), axis=-1, epsilon=EPS)

    def attention(self, qkv, d):
        g, width = self.g, d // HEADS
        sizes = g.constant(np.array([d, d, d], np.int64))
        q, k, v = g.node("Split", qkv, sizes, outputs=3, axis=2)
        if self.fused:
            return g.node("MultiHeadAttention", q, k, v, domain="com.microsoft", num_heads=HEADS)
        heads = g.constant(np.array([0, 0, HEADS, width], np.int64))
        q, v = (g.node("Transpose", g.node("Reshape", one, heads), perm=[0, 2, 1, 3]) for one in (q, v))
        k = g.node("Transpose", g.node("Reshape", k, heads), perm=[0, 2, 3, 1])
        scores = g.node("Mul", g.node("MatMul", q, k), self.floats(1 / np.sqrt(width)))
        mixed = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
        return g.node("Reshape", g.node("Transpose", mixed, perm=[0, 2, 1, 3]), g.constant(np.array([0, 0, d], np.int64)))

    def block(self, layer, x):
        g, t = self.g, self.t
        name, variables = SCOPE + f"Layer_{layer}/TransformerLayer/", VARIABLES + f"Layer_{layer}/TransformerLayer/"
        stack, bias = SCOPE + f"TransformerStack/Layer_{layer}/TransformerLayer/", "/bias/ConcatPartitions/concat"
        qkv = t[variables + "MultiheadAttention/qkv_transform_single/kernel/part_0"][0, 0]
        hidden = self.norm(x, name + "layer_prepostprocess/layer_norm")
        hidden = self.linear(hidden, qkv, t[name + "MultiheadAttention/qkv_transform_single" + bias])
        out = t[variables + "MultiheadAttention/output_transform_single/kernel/part_0"][0, 0]
        mixed = self.attention(hidden, qkv.shape[1] // 3)
        out = self.linear(mixed, out, t[name + "MultiheadAttention/output_transform_single" + bias])
        if name + "dense/kernel/ConcatPartitions/concat" in t:
            x = self.linear(x, t[name + "dense/kernel/ConcatPartitions/concat"], t[name + "dense" + bias])
        x = g.node("Add", x, out)
        hidden = self.norm(x, name + "FFN/layer_prepostprocess/layer_norm")
        hidden = self.linear(hidden, t[stack + "FFN/conv1/Tensordot/Reshape_1"], t[name + "FFN/conv1" + bias])
        hidden = self.linear(g.node("Relu", hidden), t[stack + "FFN/conv2/Tensordot/Reshape_1"], t[name + "FFN/conv2" + bias])
        return g.node("Add", x, hidden)

    def save(self, path, most=128):
        """From ids [sentences][tokens] to vectors [sentences][512]; at most `most` tokens."""
        g, t = self.g, self.t
        angles = np.arange(most)[:, None] * t[SCOPE + "TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1"].reshape(1, -1)
        positions = self.floats(np.concatenate([np.sin(angles), np.cos(angles)], axis=1))
        start, axis = g.constant(np.array([0], np.int64)), g.constant(np.array([0], np.int64))
        tokens = g.node("Gather", g.node("Shape", "ids"), g.constant(np.array([1], np.int64)), axis=0)
        x = g.node("Gather", self.floats(2.0 * t["module/Embeddings_en"]), "ids", axis=0)
        x = g.node("Add", x, g.node("Slice", positions, start, tokens, axis))
        for layer in range(2):
            x = self.block(layer, x)
        self.token_products, self.last_products = self.products, self.latest
        hidden = "module/Encoder_en/hidden_layers/tanh_layer_0/"
        pooled = g.node("ReduceMean", x, axes=[1], keepdims=0)
        y = g.node("Tanh", self.linear(pooled, t[hidden + "weights"], t[hidden + "bias"]))
        y = g.node("LpNormalization", y, axis=1, p=2)
        g.save(path, ("ids", "int32", ["sentences", "tokens"]), (y, "float32", ["sentences", 512]))
