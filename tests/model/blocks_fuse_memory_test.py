#!/usr/bin/python3
"""fuse needs memory for two matrices, not for the model; an interrupt ends it at once and leaves nothing half-written.

With --large FOLDER: a model of 32 layers and more than 2 GB, written to that folder; prints time and peak memory.
"""
import json
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

from lookupc import LOOKUPC, check
from transformer import Shape, name_of


def write_synthetic(path, shape, seed):
    """A checkpoint of float32 like random_model's in size, written tensor by tensor."""
    s, random, sizes = shape, np.random.default_rng(seed), [("word", 0, (shape.vocab, shape.d))]
    for layer in range(s.layers):
        for key, rows, columns in (("Q", s.d, s.d), ("K", s.e, s.d), ("V", s.e, s.d), ("P", s.d, s.d), ("G", s.f, s.d), ("M", s.f, s.d), ("O", s.d, s.f)):
            sizes.append((key, layer, (rows, columns)))
    sizes.append(("head", 0, (s.vocab, s.d)))
    header, at = {}, 0
    for key, layer, dims in sizes:
        end = at + 4 * dims[0] * dims[1]
        header[name_of(s, key, layer)] = {"dtype": "F32", "shape": list(dims), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for key, layer, (rows, columns) in sizes:
            values = random.standard_normal((rows, columns), dtype=np.float32) / np.float32(np.sqrt(columns))
            if key == "Q":
                values += 2 * np.eye(rows, dtype=np.float32)
            file.write(values.tobytes())
    return at


def start(model, weights, output, *options):
    return subprocess.Popen([LOOKUPC, "fuse", model, "--weights", weights, "-o", output, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    """Waits; returns standard output and error, exit status, peak memory in MiB and CPU seconds."""
    peak = 0
    while process.poll() is None:
        try:  # not the peak that wait4 reports, which counts the memory of this process before exec
            with open(f"/proc/{process.pid}/status") as file:
                peak = max([peak] + [int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")])
        except OSError:
            pass
        time.sleep(0.002)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return process.stdout.read(), process.stderr.read(), process.returncode, peak, usage.ru_utime + usage.ru_stime


def check_memory(work, shape, limit):
    model, weights, output = work + "/m.lua", work + "/w.safetensors", work + "/f.safetensors"
    with open(model, "w") as file:
        file.write(shape.source("QP"))
    size = write_synthetic(weights, shape, 1)
    began = time.monotonic()
    printed, errors, status, peak, seconds = finish(start(model, weights, output, "--report"))
    check(status == 0, errors)
    check(printed.count("q_proj ") >= shape.layers, printed)
    print(printed.splitlines()[-1])
    print(f"ok     fuse memory: {size / 2**20:.0f} MiB of weights, peak memory {peak:.0f} MiB, {seconds:.0f} s of CPU time, {time.monotonic() - began:.0f} s")
    check(peak < limit < size / 2**20, f"{peak} MiB, allowed {limit}")
    os.remove(output)
    return model, weights, output


def check_interrupts(model, weights, output):
    """At any time: as soon as the temporary file is there, and later."""
    folder = os.path.dirname(output)
    before = sorted(os.listdir(folder))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # a shell may have started this in the background
        for old in (None, "old"):
            if old:
                with open(output, "w") as file:
                    file.write(old)
            process = start(model, weights, output)
            deadline = time.monotonic() + 60
            while not any(".lookupc-" in name for name in os.listdir(folder)):
                check(process.poll() is None and time.monotonic() < deadline, "no temporary file is there to be interrupted")
            process.send_signal(number)
            _, errors, status, _, _ = finish(process)
            check(status == -number, f"{number!r}: exit status {status}, {errors}")
            check(sorted(set(os.listdir(folder)) - {os.path.basename(output)}) == before, f"{number!r} leaves {os.listdir(folder)}")
            check((open(output).read() if os.path.exists(output) else None) == old, f"{number!r}: the output has changed")
            if old:
                os.remove(output)
    shards = folder + "/shards"
    process = start(model, weights, shards, "--shard-mib", "8")
    while not os.path.isdir(shards) or len(os.listdir(shards)) < 3:
        check(process.poll() is None, "no files are there to be interrupted")
    process.send_signal(signal.SIGINT)
    check(finish(process)[2] == -signal.SIGINT and not os.path.exists(shards), "an interrupt leaves a folder of shards")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process = start(model, weights, output)
    while not any(".lookupc-" in name for name in os.listdir(folder)):
        check(process.poll() is None, "no temporary file is there to be interrupted")
    process.send_signal(signal.SIGHUP)
    check(finish(process)[2] == 0, "a signal that is ignored, as with nohup, ends it")
    os.remove(output)
    print("ok     fuse memory: an interrupt leaves nothing half-written")


def check_bar(model, weights, output):
    """On a terminal a bar grows; when all is done nothing is left of it."""
    terminal, its_end = pty.openpty()
    process = subprocess.Popen([LOOKUPC, "fuse", model, "--weights", weights, "-o", output], stdout=subprocess.DEVNULL, stderr=its_end)
    os.close(its_end)
    shown = b""
    while True:
        try:
            shown += os.read(terminal, 4096)
        except OSError:  # the other end is closed
            break
    check(process.wait() == 0, shown)
    percents = [int(number) for number in re.findall(rb"\] +(\d+) %  layer \d", shown)]
    check(len(percents) > 20 and percents == sorted(percents) and percents[-1] >= 90 and shown.endswith(b"\r\x1b[K"), f"{shown[-300:]}")
    os.remove(output)
    print("ok     fuse memory: a bar on a terminal")


if __name__ == "__main__":
    large = sys.argv[1:2] == ["--large"]
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if large else None) as work:
        if large:
            check_interrupts(*check_memory(work, Shape(d=1024, heads=32, kv_heads=8, f=4096, layers=32, vocab=32000, ffn="glu"), 1000))
        else:
            files = check_memory(work, Shape(d=256, heads=8, kv_heads=2, f=1024, layers=32, vocab=4000, ffn="glu"), 40)
            check_interrupts(*files)
            check_bar(*files)
