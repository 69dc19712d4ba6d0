"""PyTorch as a rival: on one thread, and with the kernels of OpenBLAS that suit this CPU. It takes the plainest ones for a CPU younger than
itself. Both are settled when the library loads: import this before numpy."""
import os


def openblas_core():
    """As harness/measure/measure.lua names it; empty: OpenBLAS chooses."""
    with open("/proc/cpuinfo", encoding="ascii") as file:
        words = set(file.read().split())
    if "avx512f" in words and "AuthenticAMD" not in words:
        return "SkylakeX"
    return "Haswell" if "avx2" in words else ""


os.environ["OPENBLAS_NUM_THREADS"] = "1"
if openblas_core():
    os.environ["OPENBLAS_CORETYPE"] = openblas_core()

import torch

torch.set_num_threads(1)
