#!/usr/bin/env python3
"""Measures on one NVIDIA GPU, with PyTorch: products, attention, single ops, and training steps of known models.

    python3 tests/validation/gpu/measure_pytorch.py FOLDER [--parts products,fp8,attention,ops,steps]
            [--only NAME,...] [--budget SECONDS] [--tiny]

Writes FOLDER/products.csv, fp8.csv, attention.csv, ops.csv and steps.csv and, for each step, FOLDER/kernels-NAME.csv.
Steps need transformers, one of them peft. --only names steps. --budget starts nothing after so many seconds. --tiny
tries the script on small sizes, without a GPU, too; its times mean nothing.

Times are medians of CUDA events: of a call among many back to back, of a step among eight after three others.
The columns are described in tests/validation/gpu/README.md.
"""

import argparse
import csv
import gc
import os
import statistics
import time
import traceback

import torch
import torch.nn.functional as F

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
BF16, FP32 = torch.bfloat16, torch.float32
STEP_COLUMNS = """name parameters trainable micro_batch tokens param_dtype autocast recompute compiled lora step_s min_s
    max_s forward_s backward_s optimizer_s allocated_B reserved_B static_B error""".split()
ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Table:
    """A CSV file whose rows are there as soon as they are measured."""

    def __init__(self, folder, name, columns):
        self.file = open(os.path.join(folder, name + ".csv"), "w", newline="")
        self.writer = csv.writer(self.file)
        self.writer.writerow(columns)

    def row(self, *cells):
        self.writer.writerow([f"{c:.6g}" if isinstance(c, float) else c for c in cells])
        self.file.flush()

    def close(self):
        self.file.close()


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


# ---- training steps ----


def llama(kind, layers, hidden, heads, kv_heads, ffn, vocab, tied=False, **more):
    import transformers

    return getattr(transformers, kind + "Config")(
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        intermediate_size=ffn,
        vocab_size=vocab,
        tie_word_embeddings=tied,
        max_position_embeddings=32768,
        **more,
    )


def configs():
    import transformers

    return {
        "llama-1b": lambda: llama("Llama", 16, 2048, 32, 8, 8192, 128256, True, head_dim=64),
        "llama-8b": lambda: llama("Llama", 32, 4096, 32, 8, 14336, 128256),
        "qwen3-0.6b": lambda: llama("Qwen3", 28, 1024, 16, 8, 3072, 151936, True, head_dim=128),
        "qwen3-4b": lambda: llama("Qwen3", 36, 2560, 32, 8, 9728, 151936, True, head_dim=128),
        "gpt2-medium": lambda: transformers.GPT2Config(
            n_layer=24, n_embd=1024, n_head=16, n_positions=1024, vocab_size=50257
        ),
        "bert-large": lambda: transformers.BertConfig(
            num_hidden_layers=24,
            hidden_size=1024,
            num_attention_heads=16,
            intermediate_size=4096,
            vocab_size=30522,
        ),
        "olmoe": lambda: transformers.OlmoeConfig(
            num_hidden_layers=8,
            hidden_size=2048,
            num_attention_heads=16,
            num_key_value_heads=16,
            intermediate_size=1024,
            vocab_size=50304,
            num_experts=64,
            num_experts_per_tok=8,
        ),
    }


# name, config, micro-batch, tokens, parameters' format, autocast, checkpoints, compiled, rank of adapters
CASES = [
    ("llama-1b-bf16", "llama-1b", 4, 2048, BF16, None, False, False, 0),
    ("llama-1b-amp", "llama-1b", 4, 2048, FP32, BF16, False, False, 0),
    ("gpt2-medium-amp", "gpt2-medium", 8, 1024, FP32, BF16, False, False, 0),
    ("bert-large-amp", "bert-large", 32, 512, FP32, BF16, False, False, 0),
    ("llama-8b-lora-ckpt", "llama-8b", 4, 2048, BF16, None, True, False, 16),
    ("qwen3-4b-bf16-ckpt", "qwen3-4b", 2, 4096, BF16, None, True, False, 0),
    ("llama-1b-bf16-ckpt-8k", "llama-1b", 2, 8192, BF16, None, True, False, 0),
    ("qwen3-0.6b-amp-short", "qwen3-0.6b", 8, 512, FP32, BF16, False, False, 0),
    ("llama-1b-bf16-compiled", "llama-1b", 4, 2048, BF16, None, False, True, 0),
    ("olmoe-8-layers-bf16", "olmoe", 4, 2048, BF16, None, False, False, 0),
]


def build(config, dtype, checkpoints, rank):
    import transformers

    masked = config.model_type == "bert"
    kind = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
    with torch.device(DEVICE):
        model = kind.from_config(config, dtype=dtype, attn_implementation="sdpa")
    if rank:
        import peft

        lora = peft.LoraConfig(
            r=rank, lora_alpha=32, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=ADAPTED
        )
        model = peft.get_peft_model(model, lora)
    model.train()
    if checkpoints:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if rank:
            model.enable_input_require_grads()
    return model


def stepper(model, trained, micro_batch, tokens, vocab, cast, compiled):
    """A function that runs one step, and records four events around its three parts where it gets them."""
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=GPU)
    ids = torch.randint(0, vocab, (micro_batch, tokens), device=DEVICE)

    def step(marks=None):
        if marks:
            marks[0].record()
        with torch.autocast(DEVICE, dtype=cast or BF16, enabled=cast is not None):
            loss = run(input_ids=ids, labels=ids).loss
        if marks:
            marks[1].record()
        loss.backward()
        if marks:
            marks[2].record()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if marks:
            marks[3].record()

    return step


def time_step(step):
    """Seconds of a step, its least and most, of its three parts; bytes allocated, reserved, and there before it."""
    for _ in range(3):
        step()
    sync()
    if not GPU:
        return [0.0] * 6 + [0] * 3
    torch.cuda.reset_peak_memory_stats()
    static = torch.cuda.memory_allocated()
    rounds = [events(4) for _ in range(8)]
    for marks in rounds:
        step(marks)
    sync()
    whole = [marks[0].elapsed_time(marks[3]) / 1e3 for marks in rounds]
    parts = [statistics.median(m[i].elapsed_time(m[i + 1]) / 1e3 for m in rounds) for i in range(3)]
    memory = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), static]
    return [statistics.median(whole), min(whole), max(whole), *parts, *memory]


def list_kernels(folder, name, step):
    """kernels-NAME.csv: what torch.profiler sees of two steps."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA if GPU else ProfilerActivity.CPU]) as seen:
        step()
        step()
        sync()
    times = {}
    for e in seen.events():
        if not GPU:
            times.setdefault(e.name, []).append(e.cpu_time_total)
        elif str(e.device_type) == "DeviceType.CUDA":
            times.setdefault(e.name, []).append(e.time_range.elapsed_us())
    table = Table(folder, "kernels-" + name, ["kernel", "calls_a_step", "seconds_a_step"])
    for kernel, us in sorted(times.items(), key=lambda item: -sum(item[1])):
        table.row(kernel[:160], len(us) / 2, sum(us) / 2e6)
    table.close()


def measure_step(folder, tiny, case):
    """The cells of steps.csv; writes the case's kernels, too."""
    name, config, micro_batch, tokens, dtype, cast, checkpoints, compiled, rank = case
    c = configs()[config]()
    if tiny:
        c.num_hidden_layers = 2
        micro_batch, tokens = 1, 32
    c.use_cache = False
    model = build(c, dtype, checkpoints, rank)
    trained = [p for p in model.parameters() if p.requires_grad]
    step = stepper(model, trained, micro_batch, tokens, c.vocab_size, cast, compiled)
    figures = time_step(step)
    list_kernels(folder, name, step)
    counts = [sum(p.numel() for p in model.parameters()), sum(p.numel() for p in trained)]
    return [*counts, micro_batch, tokens, str(dtype), str(cast), int(checkpoints), int(compiled), rank, *figures, ""]


def steps(o, left):
    table = Table(o.folder, "steps", STEP_COLUMNS)
    for case in CASES:
        name, begin = case[0], time.perf_counter()
        if o.only and name not in o.only.split(","):
            continue
        try:
            if left() < 20:
                raise TimeoutError("no time left")
            cells = measure_step(o.folder, o.tiny, case)
            print(f"{name}: {cells[9] * 1e3:.2f} ms; the case took {time.perf_counter() - begin:.1f} s", flush=True)
        except Exception as e:  # the other steps stand without it
            why = f"{type(e).__name__}: {(str(e).splitlines() or [''])[0]}"[:200]
            cells = [""] * 18 + [why]
            print(name, why, flush=True)
        table.row(name, *cells)
        gc.collect()
        if GPU:
            torch.cuda.empty_cache()


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
    parts = {"products": products, "fp8": fp8, "attention": attention, "ops": ops, "steps": steps}
    print(torch.__version__, torch.cuda.get_device_name() if GPU else "cpu", flush=True)
    for part in o.parts.split(","):
        try:
            parts[part](o, lambda: o.budget - (time.perf_counter() - begin))
        except Exception:  # the other parts stand without it
            traceback.print_exc()
        if GPU:
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
