"""What the scripts of PyTorch share: times on a GPU. Tables are in table.py."""

import statistics
import time

import torch

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
BF16, FP32 = torch.bfloat16, torch.float32


def sync():
    if GPU:
        torch.cuda.synchronize()


def events(n):
    return [torch.cuda.Event(enable_timing=True) for _ in range(n)]


def timed(call, hot_s=0.04, least=5, most=2000):
    """Median seconds of a call, back to back for about hot_s."""
    call()
    call()
    sync()
    if not GPU:
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin
    begin, end = events(2)
    begin.record()
    call()
    call()
    end.record()
    sync()
    once = max(begin.elapsed_time(end) / 2e3, 2e-6)
    n = int(min(most, max(least, hot_s / once)))
    groups = min(n, 10)
    each = max(1, n // groups)
    marks = events(groups + 1)
    marks[0].record()
    for mark in marks[1:]:
        for _ in range(each):
            call()
        mark.record()
    sync()
    return statistics.median(a.elapsed_time(b) / 1e3 / each for a, b in zip(marks, marks[1:]))
