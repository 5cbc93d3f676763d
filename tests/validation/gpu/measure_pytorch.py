#!/usr/bin/env python3
"""Measures on one NVIDIA GPU, with PyTorch: products, attention, single ops, training steps, and small costs.

    python3 tests/validation/gpu/measure_pytorch.py FOLDER [--parts products,fp8,attention,ops,steps]
            [--only NAME,...] [--budget SECONDS] [--tiny]

Writes FOLDER/PART.csv and, for each step, FOLDER/kernels-NAME.csv. Further parts: host-ops, host-models,
host-optimizers, grouped, flex, lookups, and jax, which is jax_ops.py. Steps need transformers, one of them peft. --only
names steps. --budget starts nothing after so many seconds. --tiny tries the script on small sizes, without a GPU, too;
its times mean nothing.

Times are medians of CUDA events: of a call among many back to back, of a step among eight after three others.
The columns are described in tests/validation/gpu/README.md.
"""

import argparse
import os
import subprocess
import sys
import time
import traceback

import torch
import torch.nn.functional as F

import costs
from common import BF16, DEVICE, FP32, GPU, timed
from steps import steps
from table import Table

HERE = os.path.dirname(os.path.abspath(__file__))


# ---- products ----


def products(o, left):
    table = Table(o.folder, "products", ["dtype", "layout", "m", "n", "k", "seconds", "tflops"])
    # Rows and columns of weights of models that people train; m is the tokens of a micro-batch.
    weights = [(2304, 768), (768, 3072), (3072, 1024), (4096, 1024), (3072, 2048), (8192, 2048), (16384, 2048)]
    weights += [(2048, 8192), (6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (14336, 4096), (10240, 8192)]
    weights += [(57344, 8192), (8192, 28672), (5120, 5120), (128256, 4096), (50304, 768)]
    tokens = [1024, 2048, 4096, 8192, 16384]
    if o.tiny:
        weights, tokens = [(64, 32)], [16]
    for n, k in weights:
        for m in tokens:
            if n >= 50000 and m > 8192:
                continue
            x = torch.randn(m, k, device=DEVICE, dtype=BF16)
            w = torch.randn(n, k, device=DEVICE, dtype=BF16) * 0.02
            g = torch.randn(m, n, device=DEVICE, dtype=BF16)
            calls = {"fwd": lambda: F.linear(x, w), "dgrad": lambda: g @ w, "wgrad": lambda: g.t() @ x}
            for layout, call in calls.items():
                s = timed(call)
                table.row("bf16", layout, m, n, k, s, 2 * m * n * k / s / 1e12)
        if left() < 0:
            return


def fp8(o, left):
    table = Table(o.folder, "fp8", ["scales", "m", "n", "k", "seconds", "tflops"])
    weights = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336), (57344, 8192), (8192, 28672)]
    for n, k in weights:
        for m in (2048, 8192, 16384):
            x = torch.randn(m, k, device=DEVICE).to(torch.float8_e4m3fn)
            w = torch.randn(n, k, device=DEVICE).to(torch.float8_e4m3fn)
            one = torch.ones((), device=DEVICE)
            rows, columns = torch.ones(m, 1, device=DEVICE), torch.ones(1, n, device=DEVICE)
            for scales, a, b, fast in (
                ("tensor-fast", one, one, True),
                ("tensor", one, one, False),
                ("row-fast", rows, columns, True),
            ):
                s = timed(
                    lambda: torch._scaled_mm(x, w.t(), scale_a=a, scale_b=b, out_dtype=BF16, use_fast_accum=fast)
                )
                table.row(scales, m, n, k, s, 2 * m * n * k / s / 1e12)
        if left() < 0:
            return


# ---- attention ----


def attention(o, left):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    columns = "backend batch heads kv_heads tokens head_dim causal forward_s backward_s".split()
    table = Table(o.folder, "attention", columns)
    cases = [(16, 12, 12, 1024, 64, True), (4, 32, 8, 2048, 64, True), (2, 32, 8, 4096, 128, True)]
    cases += [(1, 32, 8, 8192, 128, True), (1, 32, 8, 16384, 128, True), (1, 32, 32, 4096, 128, True)]
    cases += [(1, 16, 16, 32768, 128, True), (32, 16, 16, 512, 64, False), (1, 64, 8, 8192, 128, True)]
    cases += [(8, 16, 16, 2048, 128, True)]
    backends = [("flash", SDPBackend.FLASH_ATTENTION)] + ([("cudnn", SDPBackend.CUDNN_ATTENTION)] if GPU else [])
    for case in [(1, 2, 2, 16, 16, True)] if o.tiny else cases:
        batch, heads, kv_heads, tokens, size, causal = case
        for name, backend in backends:
            shape = (batch, heads, tokens, size)
            q = torch.randn(*shape, device=DEVICE, dtype=BF16, requires_grad=True)
            k, v = (
                torch.randn(batch, kv_heads, tokens, size, device=DEVICE, dtype=BF16, requires_grad=True)
                for _ in range(2)
            )
            call = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
            try:
                with sdpa_kernel(backend):
                    out = call()
                    g = torch.randn_like(out)
                    forward = timed(call)
                    backward = timed(lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True))
                table.row(name, *case[:5], int(causal), forward, backward)
            except RuntimeError as e:  # a kernel that does not take the shape
                table.row(name, *case[:5], int(causal), "", str(e).splitlines()[0][:100])


# ---- single ops ----


class Ops:
    """ops.csv: seconds of an op, and bytes / seconds, each input read and each result written once."""

    def __init__(self, folder):
        columns = ["op", "dtype", "rows", "columns", "seconds", "bytes_a_second_if_each_input_once"]
        self.table = Table(folder, "ops", columns)

    def add(self, name, dtype, rows, columns, call, bytes_):
        s = timed(call, 0.03)
        self.table.row(name, str(dtype).split(".")[-1], rows, columns, s, bytes_ / s)


def norms_and_elementwise(t, rows, columns, dtype):
    n = rows * columns
    size = torch.tensor([], dtype=dtype).element_size()
    x = torch.randn(rows, columns, device=DEVICE, dtype=dtype, requires_grad=True)
    g = torch.randn(rows, columns, device=DEVICE, dtype=dtype)
    w = torch.ones(columns, device=DEVICE, dtype=dtype, requires_grad=True)
    bias = torch.zeros(columns, device=DEVICE, dtype=dtype, requires_grad=True)

    def add(name, call, bytes_):
        t.add(name, dtype, rows, columns, call, bytes_)

    add("layer_norm", lambda: F.layer_norm(x, (columns,), w, bias), 2 * n * size)
    y = F.layer_norm(x, (columns,), w, bias)
    add("layer_norm_grad", lambda: torch.autograd.grad(y, (x, w, bias), g, retain_graph=True), 3 * n * size)
    add("rms_norm", lambda: F.rms_norm(x, (columns,), w), 2 * n * size)
    z = F.rms_norm(x, (columns,), w)
    add("rms_norm_grad", lambda: torch.autograd.grad(z, (x, w), g, retain_graph=True), 3 * n * size)
    with torch.no_grad():
        add("add", lambda: torch.add(x, g), 3 * n * size)
        add("copy", lambda: x.clone(), 2 * n * size)
        add("silu_mul", lambda: F.silu(x) * g, 5 * n * size)
        add("gelu_tanh", lambda: F.gelu(x, approximate="tanh"), 2 * n * size)
        add("column_sum", lambda: g.sum(0), n * size)
        add("dropout", lambda: F.dropout(x, 0.1, True), 2 * n * size + n)
        if dtype == BF16:
            add("to_fp32", lambda: x.float(), n * 6)


def losses(t, tiny):
    for rows, vocab in [(16, 64)] if tiny else [(8192, 50304), (4096, 128256), (8192, 128256), (8192, 32000)]:
        x = torch.randn(rows, vocab, device=DEVICE, dtype=BF16, requires_grad=True)
        y = torch.randint(0, vocab, (rows,), device=DEVICE)
        bytes_ = rows * vocab * 2
        t.add("cross_entropy_bf16_to_fp32", BF16, rows, vocab, lambda: F.cross_entropy(x.float(), y), bytes_)
        loss = F.cross_entropy(x.float(), y)
        grad = lambda: torch.autograd.grad(loss, x, retain_graph=True)
        t.add("cross_entropy_grad", BF16, rows, vocab, grad, bytes_)
        del x, loss
    for rows, vocab, columns in [(16, 64, 8)] if tiny else [(8192, 50304, 768), (8192, 128256, 4096)]:
        w = torch.randn(vocab, columns, device=DEVICE, dtype=BF16, requires_grad=True)
        y = torch.randint(0, vocab, (rows,), device=DEVICE)
        t.add("embedding", BF16, rows, columns, lambda: F.embedding(y, w), rows * columns * 4)
        e = F.embedding(y, w)
        g = torch.randn_like(e)
        grad = lambda: torch.autograd.grad(e, w, g, retain_graph=True)
        t.add("embedding_grad", BF16, rows, columns, grad, vocab * columns * 2)


def optimizers(t, tiny):
    for tensors, each in [(3, 100)] if tiny else [(150, 1_000_000), (150, 8_000_000), (30, 50_000_000)]:
        for dtype in (FP32, BF16):
            ps = [torch.zeros(each, device=DEVICE, dtype=dtype, requires_grad=True) for _ in range(tensors)]
            for p in ps:
                p.grad = torch.randn_like(p)
            bytes_ = tensors * each * ps[0].element_size()
            for kind in ("fused", "foreach"):
                step = torch.optim.AdamW(ps, lr=1e-4, **{kind: True}).step
                t.add("adamw_" + kind, dtype, tensors, each, step, 7 * bytes_)
            clip = lambda: torch.nn.utils.clip_grad_norm_(ps, 1.0)
            t.add("clip_grad_norm", dtype, tensors, each, clip, 3 * bytes_)
            del ps, step


def ops(o, left):
    t = Ops(o.folder)
    shapes = [(8192, 768), (8192, 1024), (4096, 2048), (8192, 2048), (16384, 2048), (4096, 4096), (8192, 4096)]
    shapes += [(16384, 4096), (8192, 5120), (4096, 8192), (8192, 8192), (8192, 14336)]
    for rows, columns in [(16, 32)] if o.tiny else shapes:
        for dtype in (BF16, FP32):
            norms_and_elementwise(t, rows, columns, dtype)
        if left() < 0:
            return
    losses(t, o.tiny)
    optimizers(t, o.tiny)


# ---- all of it ----


def jax(o, left):
    command = [sys.executable, os.path.join(HERE, "jax_ops.py"), o.folder] + ["--tiny"] * o.tiny
    subprocess.run(command, check=True, timeout=max(10, min(600, left())))


PARTS = {"products": products, "fp8": fp8, "attention": attention, "ops": ops, "steps": steps, "jax": jax}
PARTS |= {"host-ops": costs.host_ops, "host-models": costs.host_models, "host-optimizers": costs.host_optimizers}
PARTS |= {"grouped": costs.grouped, "flex": costs.flex, "lookups": costs.lookups}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder")
    a.add_argument("--parts", default="products,fp8,attention,ops,steps")
    a.add_argument("--only", default="", metavar="NAME,...", help="these steps alone")
    a.add_argument("--budget", type=float, default=1e9, metavar="SECONDS")
    a.add_argument("--tiny", action="store_true", help="small sizes")
    o = a.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    begin = time.perf_counter()
    left = lambda: o.budget - (time.perf_counter() - begin)
    print(torch.__version__, torch.cuda.get_device_name() if GPU else "cpu", flush=True)
    for part in o.parts.split(","):
        try:
            if left() > 0:
                PARTS[part](o, left)
        except Exception:  # the other parts stand without it
            traceback.print_exc()
        print(f"{part}: done {time.perf_counter() - begin:.1f} s after the start", flush=True)
        if GPU:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
