#!/usr/bin/env python3
"""Measures jitted JAX on one GPU: products, attention by XLA and cuDNN, and steps of a Llama under lax.scan.

    python3 tests/validation/gpu/jax_ops.py FOLDER [--tiny]

Writes FOLDER/jax-products.csv, jax-attention.csv and jax-steps.csv. Times are wall times of calls back to back. The
step: fp32 weights, products in bf16, AdamW of optax, layers scanned, each recomputed or not.
"""

import argparse
import os
import statistics
import time
import traceback

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp

from table import Table

BF16 = jnp.bfloat16


def timed(call, *args, hot_s=0.05):
    jax.block_until_ready(call(*args))
    begin = time.perf_counter()
    jax.block_until_ready(call(*args))
    n = max(3, min(500, int(hot_s / (time.perf_counter() - begin))))
    groups = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(n):
            out = call(*args)
        jax.block_until_ready(out)
        groups.append((time.perf_counter() - begin) / n)
    return statistics.median(groups)


def normal(i, *shape):
    return jax.random.normal(jax.random.key(i), shape, BF16)


def products(folder, tiny):
    table = Table(folder, "jax-products", "layout m n k seconds tflops".split())
    weights = [(8192, 2048), (2048, 8192), (28672, 4096), (4096, 14336), (128256, 4096)]
    calls = {
        "fwd": jax.jit(lambda x, w, g: x @ w),
        "dgrad": jax.jit(lambda x, w, g: g @ w.T),
        "wgrad": jax.jit(lambda x, w, g: x.T @ g),
    }
    for n, k in [(64, 32)] if tiny else weights:
        m = 16 if tiny else 8192
        args = normal(0, m, k), normal(1, k, n), normal(2, m, n)
        for layout, call in calls.items():
            s = timed(call, *args)
            table.row(layout, m, n, k, s, 2 * m * n * k / s / 1e12)


def attention(folder, tiny):
    table = Table(folder, "jax-attention", "backend batch heads kv_heads tokens head_dim forward_s both_s".split())
    cases = [(4, 32, 8, 2048, 64), (2, 32, 8, 4096, 128), (1, 32, 8, 8192, 128)]
    for batch, heads, kv_heads, tokens, size in [(1, 2, 2, 16, 16)] if tiny else cases:
        args = [normal(i, batch, tokens, h, size) for i, h in enumerate((heads, kv_heads, kv_heads))]
        for backend in ("xla", "cudnn"):
            run = lambda *a: jax.nn.dot_product_attention(*a, is_causal=True, implementation=backend)
            both = jax.jit(lambda g, *a: jax.vjp(run, *a)[1](g))
            try:
                times = timed(jax.jit(run), *args), timed(both, args[0], *args)
            except Exception as e:  # a kernel that is not here
                times = "", f"{type(e).__name__}: {e}"[:100]
            table.row(backend, batch, heads, kv_heads, tokens, size, *times)


# ---- a step of Llama-3.2-1B ----


def rotate(x, cos, sin):
    a, b = jnp.split(x, 2, -1)
    return x * cos + jnp.concatenate((-b, a), -1) * sin


def norm(x, w):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5)).astype(BF16) * w.astype(BF16)


def layer(x, p, heads, kv_heads, cos, sin, backend):
    batch, tokens, _ = x.shape
    dot = lambda a, name: a @ p[name].astype(BF16)
    y = norm(x, p["n1"])
    q, k, v = (dot(y, n).reshape(batch, tokens, h, -1) for n, h in (("q", heads), ("k", kv_heads), ("v", kv_heads)))
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    a = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=backend)
    x = x + dot(a.reshape(batch, tokens, -1), "o")
    y = norm(x, p["n2"])
    return x + dot(jax.nn.silu(dot(y, "gate")) * dot(y, "up"), "down")


def measure_step(layers, hidden, heads, kv_heads, size, ffn, vocab, batch, tokens, recompute, backend):
    import optax

    shapes = {"q": (hidden, heads * size), "k": (hidden, kv_heads * size), "v": (hidden, kv_heads * size)}
    shapes |= {"o": (heads * size, hidden), "gate": (hidden, ffn), "up": (hidden, ffn), "down": (ffn, hidden)}
    shapes |= {"n1": (hidden,), "n2": (hidden,)}
    key = jax.random.key(0)
    init = lambda s: 0.02 * jax.random.normal(key, s, jnp.float32)
    p = {"layers": {n: init((layers, *s)) for n, s in shapes.items()}, "table": init((vocab, hidden))}
    p["n"] = jnp.ones(hidden)
    ids = jax.random.randint(key, (batch, tokens), 0, vocab)
    angles = jnp.arange(tokens)[:, None] / 5e5 ** (jnp.arange(0, size, 2) / size)
    angles = jnp.concatenate((angles, angles), -1)[None, :, None]
    cos, sin = jnp.cos(angles).astype(BF16), jnp.sin(angles).astype(BF16)
    one = lambda x, w: (layer(x, w, heads, kv_heads, cos, sin, backend), None)
    one = jax.checkpoint(one) if recompute else one

    def loss(p):
        x, _ = jax.lax.scan(one, p["table"][ids].astype(BF16), p["layers"])
        logits = (norm(x, p["n"]) @ p["table"].T.astype(BF16)).astype(jnp.float32)
        return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], ids[:, 1:]).mean()

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-5))

    def update(p, state):
        value, grads = jax.value_and_grad(loss)(p)
        change, state = optimizer.update(grads, state, p)
        return optax.apply_updates(p, change), state, value

    step = jax.jit(update, donate_argnums=(0, 1))
    state = optimizer.init(p)
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        p, state, value = step(p, state)
        jax.block_until_ready(value)
        times.append(time.perf_counter() - begin)
    peak = (jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0)
    return [statistics.median(times[3:]), min(times[3:]), max(times[3:]), peak]


def steps(folder, tiny):
    table = Table(folder, "jax-steps", "name micro_batch tokens recompute attention step_s min_s max_s peak_B".split())
    sizes, shape = (16, 2048, 32, 8, 64, 8192, 128256), (4, 2048)
    if tiny:
        sizes, shape = (2, 64, 4, 2, 16, 128, 256), (1, 16)
    backend = "xla" if tiny else "cudnn"
    for recompute in (True, False):
        try:
            cells = measure_step(*sizes, *shape, recompute, backend)
        except Exception as e:  # the other stands without it
            cells = [f"{type(e).__name__}: {e}"[:200]]
        table.row("llama-1b-jax", *shape, int(recompute), backend, *cells)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder")
    a.add_argument("--tiny", action="store_true", help="small sizes")
    o = a.parse_args()
    print("jax", jax.__version__, jax.devices()[0], flush=True)
    for part in (steps, attention, products):
        try:
            part(o.folder, o.tiny)
        except Exception:  # the other parts stand without it
            traceback.print_exc()


if __name__ == "__main__":
    main()
