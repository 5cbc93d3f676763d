#!/usr/bin/env python3
"""Compares steps over several hosts: PyTorch's DDP over gloo, stepsim executed, stepsim predicted for both.

    bash scripts/testbed.sh tests/testbed/two.yaml python3 scripts/compare_pytorch_hosts.py \\
            tests/testbed/medium.yaml --hosts h1:1,h2:1 --out build/pytorch [--set KEY=VALUE ...]
            [--buckets 1,4,16,64] [--steps 5] [--python /usr/bin/python3] [--keep] [--docs]

It is started on the first of the hosts, which mpirun reaches; --out is a folder that all of them see. Each rank has the
model of compare_pytorch.py and one thread a core. Three profiles are written: stepsim's own; one with PyTorch's
products; one with all of PyTorch's times on a rank without peers: products, the rest of forward and backward, and the
optimizer. The network's times are stepsim's in all of them: gloo's collectives are not measured alone.
--docs writes the table of docs/clusters.md. Exit codes: 0 done; 1 no PyTorch, or a failed run; 2 a wrong config; 3 a goal is missed.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

import bench_testbed
import compare_pytorch as single

HERE = os.path.abspath(__file__)
GOALS = {"PyTorch's step, worst": 10, "best bucket, stepsim": 5, "best bucket, PyTorch": 5}
WARMUP = 2


def stop(text, code=1):
    print(f"compare_pytorch_hosts: {text}", file=sys.stderr)
    sys.exit(code)


# ---- a rank of PyTorch ----


def typical(times):
    return statistics.median(times[WARMUP:])


def timed(work, times):
    begin = time.perf_counter()
    result = work()
    times.append(time.perf_counter() - begin)
    return result


def products(torch, shapes, steps):
    """Seconds of all linear layers of a step: forward; backward, which is two products each and the bias's sum."""
    F, total = torch.nn.functional, [0.0, 0.0]
    for (rows, cols, inner), count in shapes:
        x, w, b = (torch.randn(s, requires_grad=True) for s in ((rows, inner), (cols, inner), (cols,)))
        g, forward, backward = torch.randn(rows, cols), [], []
        for _ in range(WARMUP + steps):
            y = timed(lambda: F.linear(x, w, b), forward)
            timed(lambda: torch.autograd.grad(y, (x, w, b), g), backward)
        total[0] += count * typical(forward)
        total[1] += count * typical(backward)
    return total


def run_rank(path):
    """Writes what PyTorch takes: without peers, and with DDP by bucket; the slowest rank's."""
    import torch
    import torch.distributed as dist

    with open(path) as f:
        job = json.load(f)
    c, steps = job["config"], job["steps"]
    rank, ranks = (int(os.environ[f"OMPI_COMM_WORLD_{k}"]) for k in ("RANK", "SIZE"))
    cores = len(os.sched_getaffinity(0)) // int(os.environ["OMPI_COMM_WORLD_LOCAL_SIZE"])
    torch.set_num_threads(max(1, cores))
    torch.manual_seed(0)
    os.environ.update(MASTER_ADDR=job["host"], MASTER_PORT="29511", RANK=str(rank), WORLD_SIZE=str(ranks))
    dist.init_process_group("gloo")
    m, t = c["model"], c["train"]
    micro = t["global_batch"] // t["micro_batch"] // ranks
    tokens, targets = (torch.randint(0, m["vocab"], (t["micro_batch"], m["seq_len"])) for _ in range(2))

    def slowest(seconds):
        x = torch.tensor(seconds, dtype=torch.float64)
        dist.all_reduce(x, dist.ReduceOp.MAX)
        return x.tolist()

    def parts(run, model):
        """Forward, backward and optimizer of each step; with peers the last micro-batch's backward reduces."""
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        forward, backward, update, whole = [], [], [], []
        for _ in range(WARMUP + steps):
            dist.barrier()
            begin = time.perf_counter()
            spent = [0.0, 0.0]
            for k in range(micro):
                run.require_backward_grad_sync = k == micro - 1
                at = time.perf_counter()
                loss = run(tokens, targets) / micro
                mid = time.perf_counter()
                loss.backward()
                spent = [spent[0] + mid - at, spent[1] + time.perf_counter() - mid]
            forward.append(spent[0])
            backward.append(spent[1])
            timed(optimizer.step, update)
            optimizer.zero_grad(set_to_none=True)
            whole.append(time.perf_counter() - begin)
        return slowest([typical(x) for x in (forward, backward, update, whole)])

    model = single.build(torch, m)
    if sum(p.numel() for p in model.parameters()) != single.parameters(m):
        stop("the PyTorch model has another number of parameters than stepsim's")
    found = {"version": torch.__version__, "threads": torch.get_num_threads(), "buckets": {}}
    found["products"] = slowest([micro * x for x in products(torch, job["products"], steps)])
    found["alone"] = parts(model, model)
    for bucket in job["buckets"]:
        ddp = torch.nn.parallel.DistributedDataParallel(single.build(torch, m), bucket_cap_mb=bucket)
        whole = parts(ddp, model)
        log = ddp._get_ddp_logging_data()
        comm, hidden = (log.get(f"avg_backward_{k}_time", 0) for k in ("comm", "compute_comm_overlap"))
        found["buckets"][str(bucket)] = {"step_s": whole[3], "comm_s": comm / 1e9, "hidden_s": hidden / 1e9}
    if rank == 0:
        with open(job["result"], "w") as f:
            json.dump(found, f, indent=1)
    dist.barrier()
    dist.destroy_process_group()


# ---- stepsim ----


def mpirun(hosts, words):
    ranks = sum(int(h.rpartition(":")[2]) for h in hosts.split(","))
    line = ["mpirun", "--host", hosts, "--bind-to", "none", "-np", str(ranks), *words]
    done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        stop(f"'{' '.join(words[:3])} ...' failed: {(done.stderr or done.stdout).strip()[-600:]}")


def load(path):
    with open(path) as f:
        return json.load(f)


def spans(config, pairs, profile):
    """The predicted step's compute: seconds by (product or not, phase), and the products' shapes with their number."""
    done = subprocess.run(
        [single.STEPSIM, "predict", config, *single.sets([*pairs, f"cluster.profile={profile}"]), "-q", "--trace", "-"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        stop(done.stderr.strip(), 2 if done.returncode == 2 else 1)
    seconds, shapes = {}, {}
    for e in json.loads(done.stdout[done.stdout.index("{") :])["traceEvents"]:
        if e.get("ph") != "X" or e["cat"] in ("all_reduce", "copy"):
            continue
        args = e["args"]
        key = (e["cat"] == "gemm", args["phase"])
        seconds[key] = seconds.get(key, 0) + e["dur"] / 1e6
        if key == (True, "forward") and args["micro"] == 0:
            shapes[tuple(args["shape"])] = shapes.get(tuple(args["shape"]), 0) + 1
    return seconds, list(shapes.items())


def scaled_profile(source, target, factor):
    """A copy of a profile: factor(entry) for the times of its entries."""
    import yaml

    with open(source) as f:
        p = yaml.safe_load(f)
    for name, fit in p["fits"].items():
        fit["coef"] = [x * factor(name) for x in fit["coef"]]
    for name, curve in p["curves"].items():
        curve["y"] = [y * factor(name) for y in curve["y"]]
    with open(target, "w") as f:
        yaml.safe_dump(p, f, sort_keys=False)


COLLECTIVES = re.compile(r"(all_reduce|all_gather|reduce_scatter|broadcast|alltoall|sendrecv|send)\.")


def factors(mine, theirs):
    """By entry of a profile: PyTorch's time over stepsim's, of products alone, and of all."""
    forward, backward, update, _ = theirs["alone"]
    by = {
        (True, "forward"): theirs["products"][0],
        (True, "backward"): theirs["products"][1],
        (False, "forward"): forward - theirs["products"][0],
        (False, "backward"): backward - theirs["products"][1],
        (False, "optimizer"): update,
    }
    by = {k: s / mine[k] for k, s in by.items()}

    def every(name):
        if COLLECTIVES.match(name):
            return 1
        if name.startswith("optimizer."):
            return by[False, "optimizer"]
        if name.startswith("gemm."):
            return by[True, "forward" if name == "gemm.nt" else "backward"]
        return by[False, "backward" if "_grad" in name else "forward"]

    return by, lambda name: every(name) if name.startswith("gemm.") else 1, every


# ---- the comparison ----


def best_error(predicted, measured):
    """How much longer the measured step of the bucket that is predicted to be best is than the measured best."""
    choice = min(predicted, key=predicted.get)
    return choice, 100 * (measured[choice] / min(measured.values()) - 1)


def compare(a):
    os.makedirs(a.out, exist_ok=True)
    c = single.resolved(a.config, [*a.set, "parallel.data=auto"])
    single.supported(c)
    profile, result = f"{a.out}/profile.yaml", f"{a.out}/pytorch.json"
    if not a.keep or not os.path.exists(profile):
        mpirun(a.hosts, [single.STEPSIM, "calibrate", "-q", "-o", profile])
    mine, shapes = spans(a.config, a.set, profile)
    # Before version 2 PyTorch's first bucket is of 1 MiB whatever the cap: torch/csrc/distributed/c10d/reducer.cpp.
    first = [*a.set, "parallel.first_bucket_mb=1"]
    job = {"config": c, "products": shapes, "buckets": a.buckets, "steps": a.steps, "result": result}
    job["host"] = a.hosts.split(",")[0].partition(":")[0]
    with open(f"{a.out}/job.json", "w") as f:
        json.dump(job, f)
    if not a.keep or not os.path.exists(result):
        mpirun(a.hosts, [a.python, HERE, "--rank", f"{a.out}/job.json"])
    theirs = load(result)
    by, of_products, of_all = factors(mine, theirs)
    print(f"PyTorch {theirs['version']}, {theirs['threads']} thread(s) a rank; its time over stepsim's on a rank alone:")
    for (gemm, phase), x in by.items():
        print(f"  {'products' if gemm else 'the rest'}, {phase}: {x:.2f}")
    scaled_profile(profile, f"{a.out}/products.yaml", of_products)
    scaled_profile(profile, f"{a.out}/all.yaml", of_all)
    rows = []
    for b in a.buckets:
        bucket = [f"parallel.bucket_mb={b}"]
        run = f"{a.out}/stepsim.{b}.json"
        if not a.keep or not os.path.exists(run):
            pairs = [*a.set, *bucket, f"cluster.profile={profile}", f"run.steps={a.steps}"]
            mpirun(a.hosts, [single.STEPSIM, a.config, "-q", "--json", run, *single.sets(pairs)])
        ran = load(run)
        row = {"bucket_mb": b, "stepsim": [ran[k]["step_time_s"] for k in ("prediction", "measurement")]}
        row["pytorch"] = []
        for p in ("products", "all"):
            words = ["predict", a.config, *single.sets([*first, *bucket, f"cluster.profile={a.out}/{p}.yaml"])]
            row["pytorch"].append(single.stepsim(words)["prediction"]["step_time_s"])
        row["pytorch"].append(theirs["buckets"][str(b)]["step_s"])
        row["hidden"] = theirs["buckets"][str(b)]
        rows.append(row)
    code = report(rows, theirs, a.out)
    if a.docs:
        bench_testbed.write_page(os.path.basename(HERE), page(rows, theirs))
    return code


def report(rows, theirs, folder):
    print(f"\n{'bucket':>8}{'stepsim: predicted':>20}{'executed':>11}{'error':>8}", end="")
    print(f"{'PyTorch: products':>20}{'all':>8}{'measured':>10}{'errors':>16}{'hidden':>8}")
    for r in rows:
        (p, m), (q, s, t), h = r["stepsim"], r["pytorch"], r["hidden"]
        hidden = f"{100 * h['hidden_s'] / h['comm_s']:.0f}%" if h["comm_s"] else "-"
        print(
            f"{r['bucket_mb']:>4} MiB{p:>18.3f} s{m:>9.3f} s{100 * (p / m - 1):>+7.1f}%{q:>18.3f} s{s:>6.3f} s"
            f"{t:>8.3f} s{100 * (q / t - 1):>+7.1f}%{100 * (s / t - 1):>+7.1f}%{hidden:>8}"
        )
    found = {"PyTorch's step, worst": max(abs(100 * (r["pytorch"][1] / r["pytorch"][2] - 1)) for r in rows)}
    for name, key, at in (("stepsim", "stepsim", 0), ("PyTorch", "pytorch", 1)):
        predicted, measured = ({r["bucket_mb"]: r[key][k] for r in rows} for k in (at, -1))
        choice, error = best_error(predicted, measured)
        found[f"best bucket, {name}"] = error
        print(f"best bucket, {name}: {choice} MiB is predicted; its measured step is {error:.1f} % above the best")
    print(f"\n{'error':<28}{'found':>8}{'goal':>8}")
    for name, goal in GOALS.items():
        print(f"{name:<28}{found[name]:>7.1f}%{goal:>7}%")
    with open(f"{folder}/result.json", "w") as f:
        json.dump({"rows": rows, "pytorch": theirs, "errors": found, "goals": GOALS}, f, indent=1)
    return 0 if all(found[k] <= goal for k, goal in GOALS.items()) else 3


def page(rows, theirs):
    """The table of docs/clusters.md."""
    lines = [
        f"PyTorch {theirs['version']}, commit `{bench_testbed.commit()}`; step time, and the error of its prediction:",
        "",
        "| bucket | stepsim | error | PyTorch | error, its products | error, all its times | hidden |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in rows:
        (p, m), (q, s, t), h = r["stepsim"], r["pytorch"], r["hidden"]
        errors = [f"{100 * (x / y - 1):+.1f} %" for x, y in ((p, m), (q, t), (s, t))]
        hidden = f"{100 * h['hidden_s'] / h['comm_s']:.0f} %" if h["comm_s"] else "-"
        lines.append(
            f"| {r['bucket_mb']} MiB | {m:.3f} s | {errors[0]} | {t:.3f} s | {errors[1]} | {errors[2]} | {hidden} |"
        )
    return lines


def main():
    if sys.argv[1:2] == ["--rank"]:
        return run_rank(sys.argv[2])
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("config")
    a.add_argument("--hosts", required=True, help="as mpirun's --host")
    a.add_argument("--out", required=True)
    a.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as stepsim's")
    a.add_argument("--buckets", type=lambda s: [int(x) for x in s.split(",")], default=[1, 4, 16, 64])
    a.add_argument("--steps", type=int, default=5)
    a.add_argument("--python", default="/usr/bin/python3", help="that has PyTorch")
    a.add_argument("--keep", action="store_true", help="take what the folder has already")
    a.add_argument("--docs", action="store_true", help="write the table of docs/clusters.md")
    o = a.parse_args()
    o.config, o.out = os.path.abspath(o.config), os.path.abspath(o.out)
    if not shutil.which(o.python) or subprocess.run([o.python, "-c", "import torch"], capture_output=True).returncode:
        stop(f"{o.python} has no PyTorch (Debian: python3-torch)")
    return compare(o)


if __name__ == "__main__":
    sys.exit(main())
