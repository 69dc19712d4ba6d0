"""Writes ONNX files: nodes, constants and the few messages of onnx.proto that hold them."""
import struct

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def field(number, value):
    """A field of a message: an integer, a float, or text, bytes or a message."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + b"".join(field(8, one) for one in value) + field(20, 7)


def value_info(name, kind, dims):
    shape = b"".join(field(1, field(2, dim) if isinstance(dim, str) else field(1, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, TYPES[kind]) + field(2, shape)))


class Graph:
    """Nodes in the order in which they compute. Methods take and return names of values."""

    def __init__(self):
        self._nodes, self._constants, self._count = b"", b"", 0

    def _name(self):
        self._count += 1
        return f"v{self._count}"

    def constant(self, array):
        array, name = np.asarray(array), self._name()
        dims = b"".join(field(1, int(dim)) for dim in array.shape)
        self._constants += field(5, dims + field(2, TYPES[array.dtype.name]) + field(8, name) + field(9, array.tobytes()))
        return name

    def node(self, operation, *inputs, outputs=1, domain="", **attributes):
        names = [self._name() for _ in range(outputs)]
        body = b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in names)
        body += field(3, names[0] + "_node") + field(4, operation)
        body += b"".join(field(5, attribute(name, value)) for name, value in attributes.items())
        self._nodes += field(1, body + (field(7, domain) if domain else b""))
        return names[0] if outputs == 1 else names

    def save(self, path, given, result):
        """given, result: (name, type, dims)"""
        given, result = field(11, value_info(*given)), field(12, value_info(*result))
        graph = self._nodes + field(2, "graph") + self._constants + given + result
        sets = field(8, field(2, 17)) + field(8, field(1, "com.microsoft") + field(2, 1))
        with open(path, "wb") as file:
            file.write(field(1, 8) + field(7, graph) + sets)
