#!/usr/bin/env python3
"""Writes configs for other frameworks, reads them back and compares what was resolved: round_trip.py CONFIG...

Without a config it does so for PLANS, and prints what differs and how many there are.
"""
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

FRAMEWORKS = ("torchtitan", "torchtitan-0.2", "megatron", "deepspeed", "nanotron", "accelerate")
# Two ways to say train.global_batch, which is compared.
SAID_OTHERWISE = {"train.tokens_per_step", "train.batch_per_gpu"}
# Options of `predict` and `export`; a word with a dot is a key to set.
PLANS = """
llama3-8b 16 ddp train.optimizer=lamb train.dtype=fp16
llama3-8b 16 zero2 train.offload=optimizer train.optimizer_bits=8 train.stack=deepspeed
llama3-8b 16 fsdp parallel.context=4 parallel.context_kind=all_to_all train.micro_batch=1
llama3-8b 8 fsdp train.offload=optimizer+params train.micro_batch=1
llama3-8b 16 fsdp train.batch_per_gpu=2 train.micro_batch=1 train.recompute=full
llama3-8b 32 hsdp parallel.shard=4 parallel.tensor=2 train.dtype=fp8 train.fp8_recipe=rowwise
llama2-7b 8 ddp train.lora_rank=16 train.lora_base=nf4 train.micro_batch=1
llama3-70b 64 zero1 parallel.tensor=4 parallel.pipeline=4 parallel.virtual_stages=5 parallel.schedule=interleaved\
 train.micro_batch=1 parallel.sequence_parallel=true train.stack=megatron-core
gpt3-175b 256 zero1 parallel.tensor=8 parallel.pipeline=8 train.micro_batch=1 model.vocab_padding=128\
 train.recompute=selective train.recompute_modules=core_attn train.attention=naive
mixtral-8x7b 64 fsdp parallel.expert=8 train.micro_batch=1
mixtral-8x7b 64 fsdp parallel.expert=8 train.micro_batch=1 parallel.pipeline=2 parallel.schedule=dualpipev\
 parallel.expert_overlap=true
mixtral-8x7b 64 zero1 parallel.expert=4 parallel.tensor=2 parallel.sequence_parallel=true train.micro_batch=1
deepseek-v3 1024 zero1 parallel.expert=32 parallel.pipeline=16 train.micro_batch=1 train.dtype=fp8
qwen3-30b-a3b 32 fsdp parallel.expert=8 train.micro_batch=1 train.optimizer=muon
gemma3-12b 16 fsdp train.micro_batch=1 train.recompute=full
gpt-oss-20b 16 fsdp train.micro_batch=1
bert-large 8 ddp
vit-l-16 8 ddp
jamba-v0.1 32 fsdp train.micro_batch=1
llama3-8b 1 none train.micro_batch=1
llama3-70b 128 zero1 parallel.tensor=4 parallel.pipeline=8 parallel.virtual_stages=2 parallel.schedule=interleaved\
 parallel.context=2 parallel.context_kind=all_to_all parallel.sequence_parallel=true train.micro_batch=1
llama3-8b 16 zero1 parallel.pipeline=4 parallel.layers_per_stage=[7,9,9,7] train.micro_batch=1
llama3-8b 32 hsdp parallel.replicate=2 parallel.tensor=2 parallel.context=2 parallel.sequence_parallel=true\
 train.micro_batch=1
mixtral-8x7b 64 zero1 parallel.expert=4 parallel.expert_tensor=2 parallel.tensor=2 parallel.sequence_parallel=true\
 parallel.pipeline=4 train.micro_batch=1
"""


def stepsim(*words, text=None):
    return subprocess.run(["stepsim", *words], input=text, capture_output=True, text=True, check=True).stdout


def resolved(*words, text=None):
    answer = json.loads(stepsim("predict", *words, "-q", "--json", "-", text=text))
    keys = {
        f"{section}.{key}": value for section, table in answer["config"].items() for key, value in table.items()
    }
    keys["step_time_s"] = answer["prediction"]["step_time_s"]
    return {key: value for key, value in keys.items() if key not in SAID_OTHERWISE}


def options(plan):
    model, gpus, strategy, *sets = plan.split()
    words = ["--model", model, "--gpus", gpus, "--strategy", strategy]
    return words + [word for key in sets for word in ("--set", key)]


def differences(words):
    before = resolved(*words)
    for framework in FRAMEWORKS:
        after = resolved("-", text=stepsim("export", *words, "--to", framework))
        yield framework, sorted(key for key in before | after if before.get(key) != after.get(key))


def main():
    for path in sys.argv[1:]:
        for framework, differ in differences([path]):
            print(path.rsplit("/", 1)[-1], framework, *(differ or ["same"]))
    if sys.argv[1:]:
        return
    plans = PLANS.replace("\\\n", "").strip().splitlines()
    same = 0
    with ThreadPoolExecutor(2) as pool:  # they wait for stepsim
        found = pool.map(lambda plan: list(differences(options(plan))), plans)
        for plan, results in zip(plans, found, strict=True):
            for framework, differ in results:
                same += not differ
                if differ:
                    print(plan, framework, *differ)
    print(f"{len(plans)} plans, {len(FRAMEWORKS)} frameworks: {same} come back the same")


main()
