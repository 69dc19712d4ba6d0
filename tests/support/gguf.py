"""GGUF files in their documented layout, and an independent dequantiser of each of their types, with NumPy."""
import struct

import numpy as np

STRING, ARRAY, BOOL = 8, 9, 7
FORMATS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}

# number, elements and bytes of a block
TYPES = {
    "F32": (0, 1, 4), "F16": (1, 1, 2), "F64": (28, 1, 8), "BF16": (30, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
}


def string(text):
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def value(kind, content):
    """kind: a number of the format, or a list of one for arrays."""
    if isinstance(kind, list):
        return struct.pack("<IQ", kind[0], len(content)) + b"".join(value(kind[0], item) for item in content)
    return string(content) if kind == STRING else struct.pack(FORMATS[kind], content)


def write(path, metadata, tensors, alignment=32, version=3):
    """metadata: { key: (kind, value) }; tensors: { name: (type, shape, bytes) }, the last dimension of a shape is that of rows."""
    head, data, at = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata)), [], 0
    for key, (kind, content) in metadata.items():
        head += string(key) + struct.pack("<I", ARRAY if isinstance(kind, list) else kind) + value(kind, content)
    for name, (kind, shape, raw) in tensors.items():
        head += string(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", size) for size in reversed(shape))
        head += struct.pack("<IQ", TYPES[kind][0], at)
        data.append(raw + b"\0" * (-len(raw) % alignment))
        at += len(data[-1])
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % alignment) + b"".join(data))


def some_blocks(kind, count, random):
    """`count` values of a type as bytes, any integers in blocks of small scales."""
    if kind in ("F32", "F16", "F64"):
        return random.standard_normal(count).astype("<f" + str(TYPES[kind][2])).tobytes()
    if kind == "BF16":
        return (random.standard_normal(count).astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
    _, elements, size = TYPES[kind]
    blocks = random.integers(0, 256, (count // elements, size), np.uint8)
    places = {"Q2_K": (80, 82), "Q3_K": (108,), "Q6_K": (208,)}.get(kind, (0, 2) if kind.endswith(("_1", "4_K", "5_K")) else (0,))
    for at in places:
        blocks[:, at : at + 2] = random.uniform(-0.01, 0.01, len(blocks)).astype("<f2").view(np.uint8).reshape(-1, 2)
    return blocks.tobytes()


def in_bytes(values):
    """Values as blocks of Q8_0, each rounded to the nearest."""
    groups = values.reshape(-1, 32)
    scales = (np.abs(groups).max(axis=1, keepdims=True) / 127).astype("<f2")
    return np.concatenate([scales.view(np.int8), np.clip(np.rint(groups / scales.astype(float)), -127, 127).astype(np.int8)], axis=1).tobytes()


def nibbles(packed):
    """[blocks][n] bytes -> [blocks][2 n]: lower halves, then upper ones."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def bits_of(packed):
    """[blocks][n] bytes -> [blocks][8 n] bits, the lowest first."""
    return np.unpackbits(packed, axis=1, bitorder="little")


def half(blocks, at):
    return blocks[:, at : at + 2].copy().view("<f2").astype(np.float64)


def rows_of_32(packed, bits):
    """[blocks][32 k] bytes, whose byte l has element l of several rows of 32, `bits` each: [blocks][256]."""
    parts = [strip >> shift & (1 << bits) - 1 for strip in np.split(packed, packed.shape[1] // 32, axis=1) for shift in range(0, 8, bits)]
    return np.concatenate(parts, axis=1)


def grouped(scales, size):
    return np.repeat(scales.astype(np.float64), size, axis=1)


def scales_and_minima(packed):
    """Of 4 and 5 bits: two times eight numbers of 6 bits in 12 bytes."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=1)
    minima = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=1)
    return scales, minima


def dequantised(kind, raw):
    """The values that the bytes of a type stand for, as float64 of float32."""
    if kind in ("F32", "F16", "F64"):
        return np.frombuffer(raw, "<f" + str(TYPES[kind][2])).astype(np.float64)
    if kind == "BF16":
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").astype(np.float64)
    b = np.frombuffer(raw, np.uint8).reshape(-1, TYPES[kind][2])
    if kind == "Q4_0":
        values = half(b, 0) * (nibbles(b[:, 2:]).astype(int) - 8)
    elif kind == "Q4_1":
        values = half(b, 0) * nibbles(b[:, 4:]) + half(b, 2)
    elif kind == "Q5_0":
        values = half(b, 0) * (nibbles(b[:, 6:]) + 16 * bits_of(b[:, 2:6]).astype(int) - 16)
    elif kind == "Q5_1":
        values = half(b, 0) * (nibbles(b[:, 8:]) + 16 * bits_of(b[:, 4:8]).astype(int)) + half(b, 2)
    elif kind == "Q8_0":
        values = half(b, 0) * b[:, 2:].view(np.int8)
    elif kind == "Q2_K":
        scales = b[:, :16]
        values = half(b, 80) * grouped(scales & 15, 16) * rows_of_32(b[:, 16:80], 2) - half(b, 82) * grouped(scales >> 4, 16)
    elif kind == "Q3_K":
        upper = np.stack([b[:, 104:108] >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).reshape(-1, 16)
        scales = (nibbles(b[:, 96:104]) | upper << 4).astype(int) - 32
        values = half(b, 108) * grouped(scales, 16) * (rows_of_32(b[:, 32:96], 2) + 4.0 * rows_of_32(b[:, :32], 1) - 4)
    elif kind in ("Q4_K", "Q5_K"):
        scales, minima = scales_and_minima(b[:, 4:16])
        integers = rows_of_32(b[:, -128:], 4).astype(int)
        if kind == "Q5_K":
            integers += 16 * rows_of_32(b[:, 16:48], 1).astype(int)
        values = half(b, 0) * grouped(scales, 32) * integers - half(b, 2) * grouped(minima, 32)
    else:
        lower = np.concatenate([nibbles(half_of) for half_of in (b[:, :64], b[:, 64:128])], axis=1)
        values = half(b, 208) * grouped(b[:, 192:208].view(np.int8), 16) * (lower + 16 * rows_of_32(b[:, 128:192], 2).astype(int) - 32.0)
    return values.astype(np.float32).astype(np.float64).reshape(-1)
