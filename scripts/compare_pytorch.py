#!/usr/bin/env python3
"""Compares a training step on one device: PyTorch (eager, torch.compile), stepsim executed, stepsim predicted.

    python3 scripts/compare_pytorch.py configs/gpt2-124m-gpu.yaml [--set KEY=VALUE ...]
            [--steps 10] [--warmup 3] [--json FILE]
    python3 scripts/compare_pytorch.py CONFIG --check-params

--check-params compares stepsim's count of parameters with the one that PyTorch would have; it needs no PyTorch.

The model is stepsim's program: pre-norm blocks, one fused QKV and one fused gate-up product, SDPA, tied or untied head,
cross-entropy in fp32, AdamW. Weights are held in param_dtype and computed with in train.dtype (autocast where they
differ), micro-batch after micro-batch. It runs on one rank. Standard error says what is under way. FILE has each row as
soon as it is there, so that a compile which does not end takes none with it. Exit codes: 0 done; 1 no PyTorch, no
device, a failed run, or parameter counts that differ; 2 a wrong config.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import time

BEGUN_S = time.monotonic()
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEPSIM = os.environ.get("STEPSIM", os.path.join(ROOT, "build/release/stepsim"))


def stop(text, code=1):
    print(f"compare_pytorch: {text}", file=sys.stderr)
    sys.exit(code)


def stepsim(arguments):
    """JSON of a stepsim command; its own line and exit code where it fails."""
    try:
        done = subprocess.run([STEPSIM, *arguments, "-q", "--json", "-"], capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as e:
        stop(f"stepsim did not run: {e}")
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(2 if done.returncode == 2 else 1)
    try:
        return json.loads(done.stdout)
    except ValueError:
        stop("stepsim wrote no JSON")


def sets(pairs):
    return [word for pair in pairs for word in ("--set", pair)]


def resolved(config, pairs):
    """The config with all defaults, for one rank; priced on a catalogue system, so that no device is needed."""
    one = ["cluster.system=dgx-h100", "cluster.nodes=1", "cluster.gpus_per_node=1", "run.execute=false"]
    return stepsim(["predict", config, *sets(pairs), *sets(one)])["config"]


def stepsim_parameters(config, pairs):
    """fp32 weights on one rank hold 4 bytes a parameter."""
    plain = [
        "cluster.system=dgx-h100",
        "cluster.nodes=1",
        "cluster.gpus_per_node=1",
        "train.dtype=fp32",
        "train.param_dtype=fp32",
        "train.grad_dtype=fp32",
        "train.reduce_dtype=fp32",
        "train.master_weights=false",
        "train.grad_compression=none",
        "run.execute=false",
    ]
    return stepsim(["predict", config, *sets(pairs), *sets(plain)])["prediction"]["memory"]["weights_bytes"] // 4


def supported(c):
    m, t, p = c["model"], c["train"], c["parallel"]
    wrong = [
        f"model.{k}: {m[k]}"
        for k in (
            "post_norm",
            "embedding_norm",
            "pooler",
            "parallel_residual",
            "type_vocab",
            "sliding_window",
            "experts",
        )
        if m[k]
    ]
    wrong += [f"model.position: {m['position']}"] if m["position"] == "alibi" else []
    wrong += [
        f"train.{k}: {t[k]}"
        for k, good in (
            ("optimizer", ("adamw",)),
            ("attention", ("flash",)),
            ("recompute", ("none",)),
            ("dtype", ("fp32", "tf32", "bf16", "fp16")),
        )
        if t[k] not in good
    ]
    wrong += ["model.lm_head: false"] if not m["lm_head"] else []
    wrong += [f"parallel.tensor: {p['tensor']}"] if p["tensor"] != 1 else []
    if wrong:
        stop("the PyTorch model does not have " + ", ".join(wrong), 2)


def padded_vocab(m):
    return -(-m["vocab"] // m["vocab_padding"]) * m["vocab_padding"]


def parameters(m):
    """What Model below holds, counted without PyTorch."""
    h, d, ffn = m["hidden"], m["head_dim"], m["ffn_hidden"]
    gated = m["mlp"] in ("swiglu", "geglu")
    norm = h * (2 if m["bias"] and m["norm"] == "layernorm" else 1)

    def linear(rows, cols, bias):
        return rows * cols + (rows if bias else 0)

    block = (
        2 * norm + linear((m["heads"] + 2 * m["kv_heads"]) * d, h, m["qkv_bias"]) + linear(h, m["heads"] * d, m["bias"])
    )
    block += linear((2 if gated else 1) * ffn, h, m["bias"]) + linear(h, ffn, m["bias"])
    tables = padded_vocab(m) * h * (1 if m["tied_embeddings"] else 2) + (
        m["max_positions"] * h if m["position"] == "learned" else 0
    )
    return tables + m["layers"] * block + (norm if m["final_norm"] else 0)


def build(torch, m):
    nn, F = torch.nn, torch.nn.functional

    def norm():
        # LayerNorm without a bias, and RMSNorm, came with PyTorch 2.1 and 2.4.
        if m["norm"] == "rmsnorm":
            return nn.RMSNorm(m["hidden"], eps=1e-5)
        return nn.LayerNorm(m["hidden"], eps=1e-5, **({} if m["bias"] else {"bias": False}))

    def attend(q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            more = {"enable_gqa": True} if m["heads"] != m["kv_heads"] else {}
            return F.scaled_dot_product_attention(q, k, v, is_causal=m["causal"], **more)
        # PyTorch before 2.0: product by product.
        k, v = (t.repeat_interleave(m["heads"] // m["kv_heads"], dim=1) for t in (k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(m["head_dim"])
        if m["causal"]:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return scores.softmax(dim=-1) @ v

    def activation(x):
        kind = m["mlp"]
        if kind in ("swiglu", "geglu"):
            gate, up = x.chunk(2, dim=-1)
            return (F.silu(gate) if kind == "swiglu" else F.gelu(gate, approximate="tanh")) * up
        return F.gelu(x, approximate="tanh") if kind == "gelu" else F.relu(x) if kind == "relu" else F.relu(x).square()

    def rotate(x, cos, sin):
        a, b = x.float().chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            h, d = m["hidden"], m["head_dim"]
            self.norm1, self.norm2 = norm(), norm()
            self.qkv = nn.Linear(h, (m["heads"] + 2 * m["kv_heads"]) * d, bias=m["qkv_bias"])
            self.proj = nn.Linear(m["heads"] * d, h, bias=m["bias"])
            self.fc1 = nn.Linear(h, (2 if m["mlp"] in ("swiglu", "geglu") else 1) * m["ffn_hidden"], bias=m["bias"])
            self.fc2 = nn.Linear(m["ffn_hidden"], h, bias=m["bias"])

        def forward(self, x, cos, sin):
            b, s, _ = x.shape
            H, K, d = m["heads"], m["kv_heads"], m["head_dim"]
            q, k, v = self.qkv(self.norm1(x)).split((H * d, K * d, K * d), dim=-1)
            q, k, v = (t.view(b, s, -1, d).transpose(1, 2) for t in (q, k, v))
            if m["position"] == "rope":
                q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            x = x + self.proj(attend(q, k, v).transpose(1, 2).reshape(b, s, H * d))
            return x + self.fc2(activation(self.fc1(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(padded_vocab(m), m["hidden"])
            self.positions = nn.Embedding(m["max_positions"], m["hidden"]) if m["position"] == "learned" else None
            self.blocks = nn.ModuleList(Block() for _ in range(m["layers"]))
            self.norm = norm() if m["final_norm"] else nn.Identity()
            self.head = nn.Linear(m["hidden"], padded_vocab(m), bias=False)
            if m["tied_embeddings"]:
                self.head.weight = self.embed.weight
            angles = torch.outer(
                torch.arange(m["seq_len"]).float(),
                10000.0 ** (-torch.arange(0, m["head_dim"], 2).float() / m["head_dim"]),
            )
            self.register_buffer("cos", angles.cos(), persistent=False)
            self.register_buffer("sin", angles.sin(), persistent=False)
            # As GPT-2 begins. With PyTorch's N(0, 1) for embeddings, which are the head's weights, too, all but a few
            # probabilities vanish: gradients become denormal, and products with these took up to six times as long.
            for p in self.parameters():
                if p.dim() > 1:
                    nn.init.normal_(p, std=0.02)

        def forward(self, tokens, targets):
            x = self.embed(tokens)
            if self.positions is not None:
                x = x + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
            for block in self.blocks:
                x = block(x, self.cos, self.sin)
            return F.cross_entropy(self.head(self.norm(x)).float().flatten(0, 1), targets.flatten())

    return Model()


def time_steps(torch, c, device, compiled, warmup, steps):
    """Seconds of each step: CUDA events on a GPU, the clock on a CPU."""
    m, t = c["model"], c["train"]
    kinds = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
    torch.backends.cuda.matmul.allow_tf32 = t["dtype"] == "tf32"
    # On the device at once (PyTorch 2.0): a core takes half a minute for the random numbers of a billion parameters.
    with torch.device(device) if hasattr(torch.device, "__enter__") else contextlib.nullcontext():
        model = build(torch, m)
    model = model.to(device)
    count = sum(p.numel() for p in model.parameters())
    if count != parameters(m):
        stop(f"the PyTorch model has {count} parameters, stepsim's has {parameters(m)}")
    for p in model.parameters():
        p.data = p.data.to(kinds[t["param_dtype"]])
    kind = kinds[t["dtype"]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device == "cuda")
    scaler = torch.amp.GradScaler(device, enabled=t["dtype"] == "fp16" and t["param_dtype"] == "fp32")
    run = torch.compile(model) if compiled else model
    tokens, targets = (torch.randint(0, m["vocab"], (t["micro_batch"], m["seq_len"]), device=device) for _ in range(2))
    micro = max(1, t["global_batch"] // t["micro_batch"])

    def step():
        for _ in range(micro):
            with torch.autocast(device, dtype=kind, enabled=kind != torch.float32 and t["param_dtype"] == "fp32"):
                loss = run(tokens, targets) / micro
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)

    for _ in range(warmup):
        step()
    if device != "cuda":
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        return times
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        step()
        mark.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]


def say(text):
    print(f"compare_pytorch: {time.monotonic() - BEGUN_S:.0f} s: {text}", file=sys.stderr, flush=True)


def save(rows, tokens, out):
    if out:
        with open(out, "w") as f:
            json.dump({"tokens_per_step": tokens, "results": rows}, f, indent=2)


def report(rows, tokens, out):
    print(f"{'':22} {'step, ms':>10} {'min':>10} {'max':>10} {'tokens/s':>12} {'of eager':>9}")
    eager = next((r.get("step_time_s") for r in rows if r["what"] == "PyTorch eager"), None)
    for r in rows:
        s = r.get("step_time_s")
        if not s:
            print(f"{r['what']:22} {r['error']}")
            continue
        r["tokens_per_s"] = tokens / s
        low, high = (f"{r[k] * 1e3:10.3f}" if r.get(k) else " " * 10 for k in ("step_time_min_s", "step_time_max_s"))
        print(f"{r['what']:22} {s * 1e3:10.3f} {low} {high} {tokens / s:12.0f} {f'{s / eager:9.3f}' if eager else ''}")
    save(rows, tokens, out)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("config")
    a.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as stepsim's")
    a.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    a.add_argument("--dtype", help="in place of the config's train.dtype")
    a.add_argument("--steps", type=int, default=10)
    a.add_argument("--warmup", type=int, default=3)
    a.add_argument("--json", metavar="FILE")
    a.add_argument("--no-compile", action="store_true", help="eager alone")
    a.add_argument(
        "--check-params", action="store_true", help="compare the parameter counts, and stop; needs no PyTorch"
    )
    o = a.parse_args()
    pairs = o.set + ([f"train.dtype={o.dtype}"] if o.dtype else [])
    c = resolved(o.config, pairs)
    supported(c)
    mine, theirs = parameters(c["model"]), stepsim_parameters(o.config, pairs)
    if mine != theirs:
        stop(
            f"the PyTorch model has {mine} parameters, stepsim's has {theirs}: not the same model, nothing is compared"
        )
    if o.check_params:
        print(f"{mine} parameters on both sides")
        return
    if o.steps < 1 or o.warmup < 0:
        stop("--steps: 1 or more; --warmup: 0 or more", 2)
    try:
        import torch
    except ImportError:
        stop("PyTorch is not installed (--check-params needs none)")
    if o.device == "cuda" and not torch.cuda.is_available():
        stop("PyTorch sees no GPU (--device cpu --dtype fp32 for a tiny config)")
    # Before PyTorch takes memory there: stepsim executes on no GPU that another process uses.
    here = [f"run.backend={'cuda' if o.device == 'cuda' else 'host'}", f"run.steps={o.steps}", f"run.warmup={o.warmup}"]
    say("stepsim executes")
    ran = stepsim([o.config, *sets(pairs), *sets(here)])
    measured = ran["measurement"]
    if not measured or measured.get("double"):
        stop("stepsim executed nothing that could be compared")
    tokens = c["train"]["global_batch"] * c["model"]["seq_len"]
    own = [
        {
            "what": "stepsim executed",
            **{k: measured.get(k) for k in ("step_time_s", "step_time_min_s", "step_time_max_s")},
        },
        {"what": "stepsim predicted", "step_time_s": ran["prediction"]["step_time_s"]},
    ]
    rows = []
    for what, compiled in (("PyTorch eager", False), ("PyTorch compiled", True)):
        save(rows + own, tokens, o.json)
        if compiled and o.no_compile:
            continue
        say(what)
        row = {"what": what, "version": torch.__version__}
        try:
            times = time_steps(torch, c, o.device, compiled, o.warmup, o.steps)
            row.update(step_time_s=statistics.median(times), step_time_min_s=min(times), step_time_max_s=max(times))
        except Exception as e:
            # The compiler has errors of its own, and needs one for C: the other rows stand without it.
            row["error"] = f"{type(e).__name__}: {(str(e).splitlines() or [''])[0]}"
            if not compiled:
                stop(f"{what}: {row['error']}")
        rows.append(row)
    report(rows + own, tokens, o.json)


if __name__ == "__main__":
    main()
