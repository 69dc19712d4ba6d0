"""Calls models through their Python packages, and prints what they give."""
import sys
import threading

import decoder
import encoder
import integers
import numpy as np
import tiny
import tiny_skipless


def show(name, values):
    print(name, *("%.7g" % value for value in np.ravel(values)))


x = np.zeros(64, np.float32)
x[:2] = 1, -1
layer = tiny.Model()
show("tiny", layer.ffn(x))

units = np.zeros((1, 64), np.int16)
units[0, :2] = 1000, -1000
show("integers", integers.Model().ffn(units))

tokens = ((np.arange(3 * 64) % 7 - 3) / 4).astype(np.float32).reshape(3, 64)
sequence = tiny_skipless.Model().start()
show("tiny_skipless", np.concatenate([sequence.prefill(tokens[:2]), sequence.decode(tokens[2])[None]]))

generator = decoder.Model()
text, ids = generator.start(), generator.tokenize("Hello")
y = text.prefill_all(ids[:-1])
branch = text.copy()
show("decoder", np.concatenate([y, branch.step(ids[-1])[None]]))
print("text", generator.detokenize(ids), text.position, branch.position)

show("encoder", encoder.Model().encode(encoder.Model().tokenize("Hello")))

for wrong in np.zeros(65, np.float32), np.float32(1):
    try:
        layer.ffn(wrong)
        sys.exit("another shape is taken")
    except ValueError:
        pass
print("shape")
for wrong in np.zeros(64), np.zeros(64, np.int32):
    try:
        layer.ffn(wrong)
        sys.exit("another type is taken")
    except TypeError:
        pass
try:
    tiny.Model(encoder.__file__.replace("__init__.py", "encoder.bin"))
except tiny.Error as error:
    print(f"code {error.code}: {error}")
with open("short.bin", "wb") as file:
    file.write(b"few")
for path in "short.bin", "none.bin":
    try:
        tiny.Model(path)
    except (tiny.Error, FileNotFoundError) as error:
        print(path[:-4], error)
try:
    branch.step(256)
except ValueError as error:
    print("id", error)

# Threads share a model.
many = np.random.default_rng(1).standard_normal((2, 500, 64)).astype(np.float32)
expected, results = layer.ffn(many), [None, None]


def work(i):
    results[i] = [layer.ffn(many[i]) for _ in range(20)]


threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if not all((y == expected[i]).all() for i in range(2) for y in results[i]):
    sys.exit("threads that share a model give other numbers")
