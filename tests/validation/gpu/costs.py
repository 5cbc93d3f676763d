"""Small costs: the host's time of ops, wrappers and optimizers; grouped products, FlexAttention, looked-up rows."""

import dataclasses
import time

import torch
import torch._functorch.config
import torch.distributed as dist
import torch.nn.functional as F

import steps
from common import BF16, DEVICE, FP32, GPU, sync, timed
from table import Table

ROUNDS = 15


def host_s(call, rounds=ROUNDS):
    """Median seconds until a call returns; the device is idle before it, and has next to nothing to do."""
    times = []
    for _ in range(rounds):
        sync()
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return sorted(times[rounds // 3 :])[(rounds - rounds // 3) // 2]


# ---- ops ----

SIZE = 64  # of the tensors


def host_ops(o, left):
    """Of chains of an op on tensors of 16 x 64: without gradients, forward, and backward; the last under autocast."""
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    table = Table(o.folder, "host-ops", "op dtype autocast no_grad_s forward_s backward_s".split())
    length = 2 if o.tiny else 100
    for dtype, cast in ((BF16, False), (FP32, True)):
        with torch.device(DEVICE):
            x = torch.randn(16, SIZE, dtype=dtype, requires_grad=True)
            w, b, ones = (torch.randn(*n, dtype=dtype, requires_grad=True) for n in ((SIZE, SIZE), (SIZE,), (SIZE,)))
            linear = torch.nn.Linear(SIZE, SIZE, bias=False, dtype=dtype)
            norm, heads = LlamaRMSNorm(SIZE).to(dtype), torch.randn(1, 4, 16, 64, dtype=dtype, requires_grad=True)
        calls = {
            "linear": lambda y: F.linear(y, w),
            "linear, bias": lambda y: F.linear(y, w, b),
            "module Linear": linear,
            "add": lambda y: y + b,
            "mul": lambda y: y * b,
            "silu": F.silu,
            "gelu": F.gelu,
            "rms_norm": lambda y: F.rms_norm(y, (SIZE,), ones),
            "module LlamaRMSNorm": norm,
            "layer_norm": lambda y: F.layer_norm(y, (SIZE,), ones, b),
            "dropout": lambda y: F.dropout(y, 0.1, True),
            "softmax": lambda y: F.softmax(y, -1),
            "view, transpose": lambda y: y.view(16, 4, 16).transpose(0, 1).reshape(16, SIZE),
            "slice, cat": lambda y: torch.cat((y[:, SIZE // 2 :], y[:, : SIZE // 2]), -1),
            "to fp32 and back": lambda y: y.float().to(BF16),
            "sdpa": lambda y: F.scaled_dot_product_attention(y, y, y, is_causal=True),
        }
        for name, call in calls.items():
            first = heads if name == "sdpa" else x

            def chain():
                y = first
                with torch.autocast(DEVICE, dtype=BF16, enabled=cast):
                    for _ in range(length):
                        y = call(y)
                return y

            with torch.no_grad():
                without = host_s(chain)
            backward = []
            forward = host_s(lambda: backward.append(chain()))
            backward = [y.float().sum() for y in backward]
            back = host_s(lambda: backward.pop().backward(), ROUNDS - 1)
            table.row(name, str(dtype), int(cast), without / length, forward / length, back / length)


# ---- models of little work ----

NARROW = {
    "llama": lambda: steps.llama("Llama", 16, 256, 4, 2, 512, 1024, head_dim=64),
    "qwen3": lambda: steps.llama("Qwen3", 16, 256, 4, 2, 512, 1024, head_dim=64),
    "gpt2": lambda: steps.gpt2(16, 256, 4, vocab_size=1024),
    "bert": lambda: steps.encoder("Bert", 16, 256, 4, 512, vocab_size=1024),
    "olmoe": lambda: steps.llama("Olmoe", 16, 256, 4, 4, 128, 1024, num_experts=16, num_experts_per_tok=2),
}


def host_models(o, left):
    """Seconds of the host in each part of a step of 16 narrow layers; whole_s: of steps that do not wait."""
    columns = """model wrap optimizer autocast compiled recompute tensors forward_s backward_s clip_s optimizer_s
        whole_s""".split()
    table = Table(o.folder, "host-models", columns)
    base = steps.Case("", "", 1, 64, BF16)
    cases = [(m, {}) for m in NARROW]
    cases += [("llama", {"dtype": FP32, "cast": BF16}), ("gpt2", {"dtype": FP32, "cast": BF16})]
    cases += [("llama", {"dtype": FP32, "wrap": "fsdp", "optimizer": k}) for k in ("fused", "foreach", "for_loop")]
    cases += [("llama", {"optimizer": k}) for k in ("foreach", "for_loop")]
    cases += [("llama", {"dtype": FP32, "cast": BF16, "wrap": "ddp"}), ("llama", {"checkpoints": True})]
    cases += [("llama", {"compiled": "blocks"}), ("llama", {"dtype": FP32, "wrap": "fsdp", "compiled": "blocks"})]
    for model_name, changes in cases:
        if left() < 0:
            return
        case = dataclasses.replace(base, **changes)
        try:
            config = NARROW[model_name]()
            if o.tiny:
                steps.shrink(config)
            config.use_cache = False
            model = steps.build(config, case)
            tensors = len(list(model.parameters()))
            step = steps.stepper(model, steps.batch(config, 1, case.tokens), case)
            for _ in range(3):
                step()
            rounds = []

            def mark(i):
                # Each part begins with an idle device.
                rounds[-1].append(time.perf_counter())
                sync()
                rounds[-1].append(time.perf_counter())

            for _ in range(ROUNDS):
                rounds.append([])
                step(mark)
            parts = [sorted(r[2 * i + 2] - r[2 * i + 1] for r in rounds)[ROUNDS // 2] for i in range(4)]
            sync()
            begin = time.perf_counter()
            for _ in range(5):
                step()
            sync()
            whole = (time.perf_counter() - begin) / 5
            compiled = case.compiled or "0"
            how = [case.wrap, case.optimizer, str(case.cast), compiled, int(case.checkpoints), tensors]
            table.row(model_name, *how, *parts, whole)
        except Exception as e:  # the others stand without it
            table.row(model_name, *changes.values(), f"{type(e).__name__}: {e}"[:200])


# ---- optimizers ----


def host_optimizers(o, left):
    """AdamW's step and clip_grad_norm_ of many small tensors: the host's seconds, and all of them."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    if not dist.is_initialized():
        dist.init_process_group("nccl" if GPU else "gloo", store=dist.HashStore(), rank=0, world_size=1)
    mesh = init_device_mesh(DEVICE, (1,))
    table = Table(o.folder, "host-optimizers", "what tensors kind dtype host_s all_s".split())
    for tensors in (2,) if o.tiny else (20, 200):
        for kind in ("tensor", "DTensor"):
            for dtype in (FP32, BF16):
                ps = [torch.zeros(64, 16, device=DEVICE, dtype=dtype) for _ in range(tensors)]
                if kind == "DTensor":
                    ps = [distribute_tensor(p, mesh, [Shard(0)]) for p in ps]
                ps = [p.requires_grad_() for p in ps]
                for p in ps:
                    p.grad = torch.ones_like(p)
                calls = {"adamw " + k: steps.adamw(ps, k).step for k in ("fused", "foreach", "for_loop")}
                calls["clip_grad_norm"] = lambda: torch.nn.utils.clip_grad_norm_(ps, 1.0)
                calls["clip_grad_norm, for_loop"] = lambda: torch.nn.utils.clip_grad_norm_(ps, 1.0, foreach=False)
                for name, call in calls.items():
                    call()
                    whole = host_s(lambda: (call(), sync()), 6)
                    table.row(name, tensors, kind, str(dtype), host_s(call, 6), whole)


# ---- grouped products ----


def grouped(o, left):
    """torch._grouped_mm: tokens of each expert times its weights of n x k; uneven: loads of a Dirichlet of 1."""
    table = Table(o.folder, "grouped", "experts loads rows n k forward_s dgrad_s wgrad_s tflops".split())
    cases = [(64, 65536, 2048, 2048), (64, 65536, 2048, 1024), (128, 32768, 1536, 2048), (128, 32768, 2048, 768)]
    cases += [(8, 16384, 28672, 4096), (8, 16384, 4096, 14336), (32, 16384, 5760, 2880), (32, 16384, 2880, 2880)]
    cases += [(8, 16384, 4096, 7168), (8, 16384, 7168, 2048), (64, 49152, 2816, 2048), (16, 8192, 16384, 5120)]
    for experts, rows, n, k in [(4, 64, 32, 32)] if o.tiny else cases:
        for loads in ("even", "uneven"):
            if left() < 0:
                return
            shares = torch.full((experts,), 1 / experts)
            if loads == "uneven":
                torch.manual_seed(1)
                shares = torch.distributions.Dirichlet(torch.ones(experts)).sample()
            ends = (shares.cumsum(0) * rows / 8).round().to(torch.int32) * 8  # products take 16 bytes of tokens
            ends[-1] = rows
            ends = ends.to(DEVICE)
            x, g = (torch.randn(rows, c, device=DEVICE, dtype=BF16) for c in (k, n))
            w = torch.randn(experts, n, k, device=DEVICE, dtype=BF16) * 0.02
            calls = [
                lambda: torch._grouped_mm(x, w.transpose(1, 2), offs=ends),
                lambda: torch._grouped_mm(g, w, offs=ends),
                lambda: torch._grouped_mm(g.t(), x, offs=ends),
            ]
            try:
                times = [timed(call, 0.02) for call in calls]
                table.row(experts, loads, rows, n, k, *times, 6 * rows * n * k / sum(times) / 1e12)
            except RuntimeError as e:  # a shape that no kernel takes
                table.row(experts, loads, rows, n, k, str(e).splitlines()[0][:100])
            del x, g, w


# ---- FlexAttention ----


def flex(o, left):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    torch._functorch.config.donated_buffer = False  # backward runs many times
    call = torch.compile(flex_attention, dynamic=False)
    table = Table(o.folder, "flex", "batch heads kv_heads tokens head_dim window forward_s backward_s".split())
    cases = [(2, 32, 8, 4096, 128, 0), (2, 32, 8, 4096, 128, 1024), (4, 32, 8, 2048, 64, 0)]
    cases += [(1, 64, 8, 4096, 64, 128)]
    for batch, heads, kv_heads, tokens, size, window in [(1, 2, 2, 256, 16, 0)] if o.tiny else cases:
        if left() < 15:
            return

        def near(b, h, q, kv):
            return (q >= kv) & (q - kv < window)

        mask = near if window else lambda b, h, q, kv: q >= kv
        blocks = create_block_mask(mask, None, None, tokens, tokens, device=DEVICE)
        q, k, v = (
            torch.randn(batch, h, tokens, size, device=DEVICE, dtype=BF16, requires_grad=GPU)
            for h in (heads, kv_heads, kv_heads)
        )
        run = lambda: call(q, k, v, block_mask=blocks, enable_gqa=heads != kv_heads)
        out = run()
        g = torch.randn_like(out)
        forward = timed(run)
        back = timed(lambda: torch.autograd.grad(out, (q, k, v), g, retain_graph=True)) if GPU else 0.0
        table.row(batch, heads, kv_heads, tokens, size, window, forward, back)


# ---- looked-up rows ----


def lookups(o, left):
    """The gradient of a few rows that many look up, by the call that looks them up."""
    table = Table(o.folder, "lookups", "call dtype rows_of_table columns lookups loads seconds".split())
    cases = [(32, 2880, 4096), (32, 2880, 32768), (32, 5760, 32768), (128, 1536, 32768), (8, 4096, 16384)]
    for count, columns, rows in [(4, 32, 64)] if o.tiny else cases:
        for loads in ("even", "a quarter to one"):
            first = rows // (count if loads == "even" else 4)
            rest = torch.arange(rows - first) * (count - 1) // max(1, rows - first) + 1
            ids = torch.cat([torch.zeros(first, dtype=torch.long), rest]).to(DEVICE)
            for dtype in (BF16, FP32):
                if left() < 0:
                    return
                w = torch.zeros(count, columns, device=DEVICE, dtype=dtype, requires_grad=True)
                g = torch.randn(rows, columns, device=DEVICE, dtype=dtype)
                looked_up = {"index": w[ids], "index_select": w.index_select(0, ids), "embedding": F.embedding(ids, w)}
                for name, y in looked_up.items():
                    s = timed(lambda y=y, w=w, g=g: torch.autograd.grad(y, w, g, retain_graph=True), 0.02, least=2)
                    table.row(name, str(dtype), count, columns, rows, loads, s)
