#!/usr/bin/env python3
"""Prints a table of all presets as Markdown: models_table.py [NAME...].

A row: whether a config.json of tests/hf_models.json is read and predicted; parameters beside the published count;
whether a step on 8 H100 hosts is predicted; whether the same model with everything small trains for a step on two
ranks here, which compare it with what is computed by one (run.verify), or why not. Ends with 1 where a config.json or
a prediction fails, where a count is off by more than 0.5 % (5 % where the preset leaves parts out, 2 % where the page
rounds), or where an execution ends otherwise than well or by a refusal.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPSIM = ROOT / "build/release/stepsim"
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"]
SMALL = {
    "hidden": 64, "heads": 4, "ffn_hidden": 128, "vocab": 256, "seq_len": 32, "max_positions": 32,
    "sliding_window": 8, "global_attention_every": 2, "no_rope_every": 2, "experts": 4, "moe_ffn_hidden": 32,
    "moe_latent": 48, "first_dense_layers": 1, "kv_lora_rank": 32, "q_lora_rank": 16, "rope_head_dim": 8,
    "v_head_dim": 16, "expert_groups": 2, "groups_per_token": 1,
    "moe_layer_freq": 2, "ssm_state": 16, "ssm_heads": 4, "ssm_head_dim": 32, "ssm_groups": 1, "ssm_chunk": 8,
    "image_size": 32, "patch_size": 8, "encoder_layers": 1, "encoder_seq_len": 24, "relative_buckets": 8,
}  # fmt: skip
TRAIN = """train: {global_batch: 2, micro_batch: 1, dtype: fp32, stack: pytorch-ddp}
parallel: {strategy: ddp}
run: {execute: true, backend: host, warmup: 0, steps: 1}
"""


def run(words, text=None):
    env = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(list(map(str, words)), input=text, capture_output=True, text=True, env=env, timeout=300)
    said = [line for line in done.stderr.strip().splitlines() if line.startswith("stepsim: ")]
    return done.returncode, done.stdout, said[-1].removeprefix("stepsim: ") if said else ""


def preset(path):
    """Returns the keys of a preset's model, and the rest."""
    keys, rest, inside = {}, {}, False
    for line in re.sub(r"\\\n *", "", path.read_text()).splitlines():  # quoted lines may go on
        inside = line.startswith("model:") or (inside and line.startswith(" "))
        if found := re.match(r"( *)([a-z_0-9]+): *(.+?) *(?:#.*)?$", line):
            (keys if inside else rest)[found[2]] = found[3].strip('"')
    return keys, rest


def small(keys):
    """Returns the same model with everything small, as keys of CONFIG.yaml."""
    out = {key: SMALL.get(key, value) if value not in ("0", "false") else value for key, value in keys.items()}
    if "conv_stages" in keys:
        return {**out, "conv_stages": "[1, 1, 1, 1]", "conv_width": 8, "image_size": 32, "classes": 10}
    if "layer_pattern" in keys:
        kinds = "".join(dict.fromkeys(keys["layer_pattern"]))
        out["layer_pattern"], out["layers"] = f'"{kinds}"', len(kinds)
    else:
        out["layers"] = 2
    if "image_size" in keys:  # the sequence follows from the picture
        out = {key: value for key, value in out.items() if key not in ("seq_len", "max_positions")}
    if "kv_heads" in keys:
        out["kv_heads"] = 4 if keys["kv_heads"] == keys["heads"] else 1 if keys["kv_heads"] == "1" else 2
    if "head_dim" in keys:
        out["head_dim"] = 24 if "kv_lora_rank" in keys else 16
    if "experts_per_token" in keys:
        out["experts_per_token"] = min(2, int(keys["experts_per_token"]))
    if keys.get("vocab_padding", "1") != "1":
        out["vocab_padding"] = 2
    return out


def predicted(words):
    code, out, said = run([STEPSIM, "predict", *words, "-q", "--json", "-"])
    if code:
        return None, said
    answer = json.loads(out)
    return answer, f"{answer['prediction']['step_time_s']:.3g} s"


def count_of(answer, rest):
    """Returns the cell, and whether it is near enough to the published count."""
    published = rest.get("published_parameters", rest.get("published_parameters_rounded"))
    have = answer["model"]["parameters"]
    if published is None:
        return f"{have / 1e9:.4g} G", True
    off = have / float(published) - 1
    most = 0.05 if "left_out" in rest else 0.02 if "published_parameters_rounded" in rest else 0.005
    return f"{have / 1e9:.4g} G, {100 * off:+.2f} %", abs(off) <= most


def executed(keys, folder):
    lines = "".join(f"  {key}: {value}\n" for key, value in small(keys).items())
    path = Path(folder) / "small.yaml"
    path.write_text(f"model:\n{lines}{TRAIN}")
    code, _, said = run([*MPIRUN, STEPSIM, path, "-q", "--json", Path(folder) / "out.json"])
    if code == 0:
        return "yes", True
    said = said.removeprefix(f"{path}:")
    return said[:90], "not executed" in said or "not modelled" in said or "alone" in said


def main():
    rows = json.loads((ROOT / "tests/hf_models.json").read_text())
    hub = {row["preset"]: row["config"] for row in rows.values() if row.get("preset")}
    names = sys.argv[1:] or sorted(path.stem for path in (ROOT / "configs/models").glob("*.yaml"))
    total = {"models": 0, "config.json read": 0, "counts published": 0, "predicted": 0, "executed": 0}
    wrong = []
    print("| model | config.json | parameters | 8 H100 hosts | executed small, 2 ranks |")
    print("| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            keys, rest = preset(ROOT / "configs/models" / f"{name}.yaml")
            on = ["--system", "dgx-h100", "--gpus", "64"]
            on += ["--tokens", "4096"] if "conv_stages" in keys else []  # pictures
            answer, step = predicted(["--model", name, *on])
            read = "-"
            if name in hub:
                path = Path(folder) / "config.json"
                path.write_text(json.dumps(hub[name]))
                there, said = predicted(["--model", path, *on])
                read = "read" if there else said
                total["config.json read"] += bool(there)
                if not there:
                    wrong.append(f"{name}: config.json: {said}")
            cell, near = count_of(answer, rest) if answer else ("-", True)
            ran, well = executed(keys, folder)
            total["models"] += 1
            total["counts published"] += near and "published_parameters" in "".join(rest)
            total["predicted"] += bool(answer)
            total["executed"] += ran == "yes"
            wrong += [f"{name}: {step}"] * (not answer) + [f"{name}: {cell}"] * (not near)
            wrong += [f"{name}: executed: {ran}"] * (not well)
            print(f"| {name} | {read} | {cell} | {step} | {ran.replace('|', '/')} |", flush=True)
    print("\n" + ", ".join(f"{key}: {value}" for key, value in total.items()))
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
