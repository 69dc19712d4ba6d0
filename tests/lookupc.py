"""What the Python tests share: the program under test, and a checkpoint out of arrays."""
import json
import os
import struct
import subprocess

LOOKUPC = os.environ["LOOKUPC"]


def run(*arguments):
    return subprocess.run([LOOKUPC, *arguments], capture_output=True, text=True)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        header[name] = {"dtype": "F64", "shape": list(values.shape), "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.astype("<f8").tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
