"""Training steps of known models, built from their sizes: steps.csv and kernels-NAME.csv."""

import dataclasses
import gc
import statistics
import time

import torch
import torch.distributed as dist

from common import BF16, DEVICE, FP32, GPU, events, sync
from table import Table

COLUMNS = """name parameters trainable micro_batch tokens param_dtype autocast recompute compiled lora step_s min_s
    max_s forward_s backward_s optimizer_s allocated_B reserved_B static_B wrap optimizer error""".split()
ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
SOURCE_TOKENS = 512  # an encoder's, before a decoder


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


def encoder(kind, layers, hidden, heads, ffn, **more):
    import transformers

    sizes = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads}
    return getattr(transformers, kind + "Config")(intermediate_size=ffn, **sizes, **more)


def gpt2(layers, hidden, heads, **more):
    import transformers

    return transformers.GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads, n_positions=1024, **more)


def opt():
    import transformers

    sizes = {"num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 32, "ffn_dim": 8192}
    return transformers.OPTConfig(vocab_size=50272, word_embed_proj_dim=2048, **sizes)


def deepseek():
    ranks = {"q_lora_rank": None, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128}
    experts = {"n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_intermediate_size": 1408}
    dense = {"v_head_dim": 128, "first_k_dense_replace": 1}
    return llama("DeepseekV2", 6, 2048, 16, 16, 10944, 102400, **dense, **ranks, **experts)


def lfm2():
    layers = ["full_attention" if i in (2, 5, 8, 10, 12, 14) else "conv" for i in range(16)]
    sizes = {"block_ff_dim": 12288, "block_auto_adjust_ff_dim": True, "block_ffn_dim_multiplier": 1.0}
    return llama("Lfm2", 16, 2048, 32, 8, 12288, 65536, True, layer_types=layers, **sizes)


def decoder_and_encoder(kind, layers, hidden, heads, ffn, **more):
    import transformers

    sizes = {end + "_layers": layers for end in ("encoder", "decoder")}
    sizes |= {end + "_attention_heads": heads for end in ("encoder", "decoder")}
    sizes |= {end + "_ffn_dim": ffn for end in ("encoder", "decoder")}
    return getattr(transformers, kind + "Config")(d_model=hidden, **sizes, **more)


def bart():
    return decoder_and_encoder("Bart", 12, 1024, 16, 4096, vocab_size=50265, max_position_embeddings=1024)


def whisper():
    tokens = {"vocab_size": 51865, "max_target_positions": 448, "max_source_positions": 1500}
    return decoder_and_encoder("Whisper", 12, 768, 12, 3072, num_mel_bins=80, **tokens)


def bloom():
    import transformers

    return transformers.BloomConfig(n_layer=24, hidden_size=1024, n_head=16, vocab_size=250880)


def t5_large():
    import transformers

    sizes = {"vocab_size": 32128, "d_model": 1024, "d_kv": 64, "d_ff": 2816, "num_layers": 24, "num_heads": 16}
    tokens = {"pad_token_id": 0, "decoder_start_token_id": 0}
    return transformers.T5Config(feed_forward_proj="gated-gelu", tie_word_embeddings=False, **sizes, **tokens)


CONFIGS = {
    "llama-1b": lambda: llama("Llama", 16, 2048, 32, 8, 8192, 128256, True, head_dim=64),
    "llama-8b": lambda: llama("Llama", 32, 4096, 32, 8, 14336, 128256),
    "qwen3-0.6b": lambda: llama("Qwen3", 28, 1024, 16, 8, 3072, 151936, True, head_dim=128),
    "qwen3-4b": lambda: llama("Qwen3", 36, 2560, 32, 8, 9728, 151936, True, head_dim=128),
    "qwen2.5-0.5b": lambda: llama("Qwen2", 24, 896, 14, 2, 4864, 151936, True),
    "mistral-8-layers": lambda: llama("Mistral", 8, 4096, 32, 8, 14336, 32000, sliding_window=None),
    "gemma3-1b": lambda: llama("Gemma3Text", 26, 1152, 4, 1, 6912, 262144, True, head_dim=256, sliding_window=512),
    "gpt2-124m": lambda: gpt2(12, 768, 12, vocab_size=50304, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
    "gpt2-medium": lambda: gpt2(24, 1024, 16, vocab_size=50257),
    "bert-large": lambda: encoder("Bert", 24, 1024, 16, 4096, vocab_size=30522),
    "modernbert-large": lambda: encoder("ModernBert", 28, 1024, 16, 2624, vocab_size=50368),
    "vit-l-16": lambda: encoder("ViT", 24, 1024, 16, 4096, num_labels=1000),
    "flan-t5-large": t5_large,
    "olmoe": lambda: llama("Olmoe", 8, 2048, 16, 16, 1024, 50304, num_experts=64, num_experts_per_tok=8),
    "qwen3-moe-6-layers": lambda: llama(
        "Qwen3Moe",
        *(6, 2048, 32, 4, 6144, 151936),
        head_dim=128,
        moe_intermediate_size=768,
        num_experts=128,
        num_experts_per_tok=8,
    ),
    "gpt-oss-4-layers": lambda: llama("GptOss", 4, 2880, 64, 8, 2880, 201088, head_dim=64, num_local_experts=32),
    "pythia-1.4b": lambda: llama("GPTNeoX", 24, 2048, 16, None, 8192, 50304),
    "gemma2-2b": lambda: llama("Gemma2", 26, 2304, 8, 4, 9216, 256000, True, head_dim=256, sliding_window=4096),
    "phi3-mini": lambda: llama("Phi3", 32, 3072, 32, 32, 8192, 32064, sliding_window=2047),
    "opt-1.3b": opt,
    "deepseek-v2-lite-6-layers": deepseek,
    "mixtral-2-layers": lambda: llama("Mixtral", 2, 4096, 32, 8, 14336, 32000, num_local_experts=8),
    "starcoder2-3b": lambda: llama("Starcoder2", 30, 3072, 24, 2, 12288, 49152, True, sliding_window=4096),
    "olmo2-1b": lambda: llama("Olmo2", 16, 2048, 16, 16, 8192, 100352),
    "qwen2.5-1.5b": lambda: llama("Qwen2", 28, 1536, 12, 2, 8960, 151936, True),
    "smollm-135m": lambda: llama("Llama", 30, 576, 9, 3, 1536, 49152, True),
    "lfm2-1.2b": lfm2,
    "roberta-base": lambda: encoder("Roberta", 12, 768, 12, 3072, vocab_size=50265, max_position_embeddings=514),
    "bart-large": bart,
    "whisper-small": whisper,
    "bloom-560m": bloom,
}


@dataclasses.dataclass
class Case:
    name: str
    config: str
    micro_batch: int
    tokens: int
    dtype: torch.dtype
    cast: torch.dtype | None = None
    checkpoints: bool = False
    compiled: str = ""  # model, blocks
    rank: int = 0  # of adapters
    wrap: str = ""  # ddp, fsdp, trainer
    optimizer: str = "fused"  # foreach


# The Trainer comes before a process group is there.
CASES = [
    Case("llama-1b-bf16", "llama-1b", 4, 2048, BF16),
    Case("qwen2.5-0.5b-trainer", "qwen2.5-0.5b", 4, 2048, FP32, BF16, wrap="trainer"),
    Case("smollm-135m-trainer", "smollm-135m", 8, 1024, FP32, BF16, wrap="trainer"),
    Case("llama-1b-fsdp-foreach", "llama-1b", 4, 2048, FP32, wrap="fsdp", optimizer="foreach"),
    Case("llama-1b-fsdp-fused", "llama-1b", 4, 2048, FP32, wrap="fsdp"),
    Case("llama-1b-ddp-amp", "llama-1b", 4, 2048, FP32, BF16, wrap="ddp"),
    Case("mistral-8-layers-bf16-8k", "mistral-8-layers", 2, 8192, BF16),
    Case("qwen3-moe-6-layers-bf16", "qwen3-moe-6-layers", 1, 4096, BF16),
    Case("gpt-oss-4-layers-bf16", "gpt-oss-4-layers", 2, 2048, BF16),
    Case("vit-l-16-amp", "vit-l-16", 64, 197, FP32, BF16),
    Case("flan-t5-large-amp", "flan-t5-large", 16, 114, FP32, BF16),
    Case("modernbert-large-amp", "modernbert-large", 16, 1024, FP32, BF16),
    Case("gemma3-1b-bf16", "gemma3-1b", 2, 2048, BF16),
    Case("gpt2-medium-amp", "gpt2-medium", 8, 1024, FP32, BF16),
    Case("olmoe-8-layers-bf16", "olmoe", 4, 2048, BF16),
    Case("qwen3-4b-bf16-ckpt", "qwen3-4b", 2, 4096, BF16, checkpoints=True),
    Case("llama-1b-fsdp-compiled", "llama-1b", 4, 2048, FP32, compiled="blocks", wrap="fsdp"),
    Case("gpt2-124m-amp-compiled", "gpt2-124m", 16, 1024, FP32, BF16, compiled="model"),
    Case("llama-8b-lora-ckpt", "llama-8b", 4, 2048, BF16, checkpoints=True, rank=16),
    Case("bert-large-amp", "bert-large", 32, 512, FP32, BF16),
    Case("llama-1b-amp", "llama-1b", 4, 2048, FP32, BF16),
    Case("llama-1b-bf16-ckpt-8k", "llama-1b", 2, 8192, BF16, checkpoints=True),
    Case("qwen3-0.6b-amp-short", "qwen3-0.6b", 8, 512, FP32, BF16),
    Case("llama-1b-bf16-compiled", "llama-1b", 4, 2048, BF16, compiled="model"),
    Case("pythia-1.4b-amp", "pythia-1.4b", 4, 2048, FP32, BF16),
    Case("gemma2-2b-bf16", "gemma2-2b", 2, 2048, BF16),
    Case("phi3-mini-bf16-ckpt", "phi3-mini", 2, 4096, BF16, checkpoints=True),
    Case("opt-1.3b-amp", "opt-1.3b", 4, 2048, FP32, BF16),
    Case("deepseek-v2-lite-6-layers-bf16", "deepseek-v2-lite-6-layers", 2, 4096, BF16),
    Case("mixtral-2-layers-bf16", "mixtral-2-layers", 2, 4096, BF16),
    Case("starcoder2-3b-bf16-ckpt", "starcoder2-3b", 2, 4096, BF16, checkpoints=True),
    Case("olmo2-1b-bf16", "olmo2-1b", 4, 2048, BF16),
    Case("qwen2.5-1.5b-bf16-ckpt-16k", "qwen2.5-1.5b", 1, 16384, BF16, checkpoints=True),
    Case("lfm2-1.2b-bf16", "lfm2-1.2b", 2, 4096, BF16),
    Case("roberta-base-amp", "roberta-base", 32, 512, FP32, BF16),
    Case("bart-large-amp", "bart-large", 16, 512, FP32, BF16),
    Case("whisper-small-amp", "whisper-small", 8, 448, FP32, BF16),
    Case("bloom-560m-amp", "bloom-560m", 4, 1024, FP32, BF16),
]


def shrink(config):
    """A small config of the same kind, for --tiny."""
    small = {"num_hidden_layers": 2, "num_layers": 2, "num_decoder_layers": 2, "hidden_size": 64, "vocab_size": 1024}
    small |= {"num_attention_heads": 4, "intermediate_size": 128, "d_ff": 128, "moe_intermediate_size": 64}
    small |= {"num_experts": 8, "num_local_experts": 8, "num_key_value_heads": 2 if hasattr(config, "head_dim") else 4}
    small |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    if hasattr(config, "kv_lora_rank"):  # every head has its own keys
        small["num_key_value_heads"] = 4
    tokens = ("pad", "bos", "eos", "cls", "sep", "decoder_start")
    small |= {name + "_token_id": 1 for name in tokens}
    for name, value in small.items():
        if getattr(config, name, None) is not None:
            setattr(config, name, value)
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:2]


def wrapped(model, case):
    """The model as its step calls it. Layers are compiled one by one, before they are sharded."""
    layers = next((m for m in model.modules() if isinstance(m, torch.nn.ModuleList)), [])
    if case.compiled == "blocks":
        for layer in layers:
            layer.compile()
    if case.wrap in ("ddp", "fsdp") and not dist.is_initialized():
        backend = "nccl" if GPU else "gloo"
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    if case.wrap == "fsdp":
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        policy = MixedPrecisionPolicy(param_dtype=BF16, reduce_dtype=FP32)
        for layer in layers:
            fully_shard(layer, mp_policy=policy)
        fully_shard(model, mp_policy=policy)
    if case.wrap == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=[0] if GPU else None)
    return torch.compile(model) if case.compiled == "model" else model


def build(config, case):
    import transformers

    kinds = {"bert": "MaskedLM", "modernbert": "MaskedLM", "roberta": "MaskedLM", "vit": "ImageClassification"}
    kinds |= {"t5": "Seq2SeqLM", "bart": "Seq2SeqLM", "whisper": "SpeechSeq2Seq"}
    kind = getattr(transformers, "AutoModelFor" + kinds.get(config.model_type, "CausalLM"))
    with torch.device(DEVICE):
        model = kind.from_config(config, dtype=case.dtype)
    if case.rank:
        import peft

        lora = peft.LoraConfig(
            r=case.rank, lora_alpha=32, lora_dropout=0.0, task_type="CAUSAL_LM", target_modules=ADAPTED
        )
        model = peft.get_peft_model(model, lora)
    model.train()
    if case.checkpoints:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if case.rank:
            model.enable_input_require_grads()
    return model


def batch(config, micro_batch, tokens):
    if config.model_type == "vit":
        pixels = torch.randn(micro_batch, 3, 224, 224, device=DEVICE)
        return {"pixel_values": pixels, "labels": torch.randint(0, 1000, (micro_batch,), device=DEVICE)}
    ids = torch.randint(0, config.vocab_size, (micro_batch, tokens), device=DEVICE)
    if config.model_type == "whisper":
        frames = torch.randn(micro_batch, config.num_mel_bins, 2 * config.max_source_positions, device=DEVICE)
        return {"input_features": frames, "labels": ids}
    if config.model_type not in ("t5", "bart"):
        return {"input_ids": ids, "labels": ids}
    source = torch.randint(0, config.vocab_size, (micro_batch, SOURCE_TOKENS), device=DEVICE)
    return {"input_ids": source, "labels": ids}


def adamw(parameters, kind):
    """for_loop: neither fused nor foreach."""
    return torch.optim.AdamW(parameters, lr=1e-5, fused=kind == "fused", foreach=kind == "foreach")


def stepper(model, inputs, case):
    """A function that runs one step, and calls mark(i) around its three parts."""
    run = wrapped(model, case)
    trained = [p for p in model.parameters() if p.requires_grad]  # fully_shard makes others
    optimizer = adamw(trained, case.optimizer)

    def step(mark=lambda i: None):
        mark(0)
        with torch.autocast(DEVICE, dtype=case.cast or BF16, enabled=case.cast is not None):
            loss = run(**inputs).loss
        mark(1)
        loss.backward()
        del loss
        mark(2)
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        mark(3)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        mark(4)

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
    rounds = [events(5) for _ in range(8)]
    for marks in rounds:
        step(lambda i, marks=marks: marks[i].record())
    sync()
    whole = [marks[0].elapsed_time(marks[4]) / 1e3 for marks in rounds]
    parts = [statistics.median(m[i].elapsed_time(m[j]) / 1e3 for m in rounds) for i, j in ((0, 1), (1, 2), (2, 4))]
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


def time_trainer(model, inputs, case):
    """As time_step, of transformers' Trainer with its defaults: wall times between steps' ends, no parts."""
    import transformers

    ends = []

    class Clock(transformers.TrainerCallback):
        def on_step_end(self, args, state, control, **more):
            ends.append(time.perf_counter())
            if GPU and len(ends) == 4:
                torch.cuda.reset_peak_memory_stats()

    options = transformers.TrainingArguments(
        output_dir="/tmp/trainer",
        max_steps=24,
        per_device_train_batch_size=case.micro_batch,
        bf16=GPU,
        use_cpu=not GPU,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
    )
    example = {name: value[0].cpu() for name, value in inputs.items()}
    trainer = transformers.Trainer(model, options, train_dataset=[example] * 1000, callbacks=[Clock()])
    trainer.train()
    # A step waits for the loss of the one before, so that ends are as far apart as steps.
    whole = [b - a for a, b in zip(ends[4:], ends[5:])]
    memory = [torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()] if GPU else [0, 0]
    return [statistics.median(whole), min(whole), max(whole), "", "", "", *memory, ""]


def measure_step(folder, tiny, case):
    """The cells of steps.csv; writes the case's kernels, too."""
    c = CONFIGS[case.config]()
    micro_batch, tokens = case.micro_batch, case.tokens
    if tiny:
        shrink(c)
        micro_batch, tokens = 1, 32
    c.use_cache = False
    model = build(c, case)
    counts = [sum(p.numel() for p in model.parameters() if p.requires_grad or frozen) for frozen in (True, False)]
    inputs = batch(c, micro_batch, tokens)
    if case.wrap == "trainer":
        figures = time_trainer(model, inputs, case)
    else:
        step = stepper(model, inputs, case)
        figures = time_step(step)
        list_kernels(folder, case.name, step)
    compiled = {"": 0, "model": 1}.get(case.compiled, case.compiled)
    how = [str(case.dtype), str(case.cast), int(case.checkpoints), compiled, case.rank]
    return [*counts, micro_batch, tokens, *how, *figures, case.wrap, case.optimizer, ""]


def steps(o, left):
    table = Table(o.folder, "steps", COLUMNS)
    for case in CASES:
        begin = time.perf_counter()
        if o.only and case.name not in o.only.split(","):
            continue
        try:
            if left() < 20:
                raise TimeoutError("no time left")
            cells = measure_step(o.folder, o.tiny, case)
            took = time.perf_counter() - begin
            print(f"{case.name}: {cells[9] * 1e3:.2f} ms; the case took {took:.1f} s", flush=True)
        except Exception as e:  # the other steps stand without it
            why = f"{type(e).__name__}: {(str(e).splitlines() or [''])[0]}"[:200]
            cells = [""] * (len(COLUMNS) - 2) + [why]
            print(case.name, why, flush=True)
        table.row(case.name, *cells)
        torch._dynamo.reset()
        gc.collect()
        if GPU:
            torch.cuda.empty_cache()
