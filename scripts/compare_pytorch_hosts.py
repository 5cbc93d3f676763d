#!/usr/bin/env python3
"""Compares steps over several hosts: PyTorch's DDP and FSDP over gloo, stepsim executed, stepsim predicted for both.

    bash scripts/testbed.sh tests/testbed/two.yaml python3 scripts/compare_pytorch_hosts.py \\
            tests/testbed/medium.yaml --hosts h1:1,h2:1 --out build/pytorch [--set KEY=VALUE ...]
            [--buckets 1,4,16,64] [--steps 5] [--python /usr/bin/python3] [--keep] [--docs]

It is started on the first of the hosts, which mpirun reaches; --out is a folder that all of them see, and so is the
Python. Each rank has the model of compare_pytorch.py and one thread a core; all is timed in many short rounds, so that
what drifts meets calibration and each bucket alike. Profiles are written: stepsim's own; one with PyTorch's products;
one with all of PyTorch's times on a rank without peers: products, the rest of forward and backward, and the optimizer;
one with gloo's collectives, too, alone and beside products. Where PyTorch has fully_shard (2.6 and later; Debian's is
1.13), FSDP's step is compared, too: its units are the blocks. Over gloo it waits for each collective, so that it is
stepsim's fsdp with prefetch 0; its copies are measured on a rank without peers.
--docs writes the tables of docs/clusters.md. Exit codes: 0 done; 1 no PyTorch, or a failed run; 2 a wrong config; 3 a
goal is missed.
"""

import argparse
import itertools
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

import bench_testbed
import compare_pytorch as single

HERE = os.path.abspath(__file__)
GOALS = {"PyTorch's step, worst": 10, "best bucket, stepsim": 5, "best bucket, PyTorch": 5}
WARMUP = 1
GLOO_B = [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26]  # bytes of the full buffer
FSDP = ["parallel.strategy=fsdp"]
# By size, how many all-reduces are under way beside products. DDP's buckets queue, and gloo's two threads (the default
# of PyTorch's ProcessGroupGloo) fill each other's waits: one at a time would wait for its turn at each message.
BESIDE = {1 << 20: 8, 1 << 24: 2}
ROUNDS, OWN_ROUNDS = 9, 3  # of PyTorch's measurements, and of stepsim's steps, which start a job each
# malloc keeps what a step frees, as stepsim's does. Else FSDP clears 7,000 to 23,000 pages anew each step, by chance.
KEEP = ["MALLOC_TRIM_THRESHOLD_=1073741824", "MALLOC_MMAP_THRESHOLD_=33554432"]
WAITS = [*FSDP, "parallel.prefetch=0"]


def stop(text, code=1):
    print(f"compare_pytorch_hosts: {text}", file=sys.stderr)
    sys.exit(code)


# ---- a rank of PyTorch ----


def typical(times):
    return statistics.median(times[WARMUP:])


def typical_of(times):
    return statistics.median(times[-2:])


def timed(work, times):
    begin = time.perf_counter()
    result = work()
    times.append(time.perf_counter() - begin)
    return result


def middle(rounds):
    """The median of what rounds found, element by element."""
    return [middle(x) for x in zip(*rounds)] if isinstance(rounds[0], list) else statistics.median(rounds)


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


def sharder(torch):
    """Cuts a model as FSDP does; None where this PyTorch has no fully_shard."""
    try:
        from torch.distributed.fsdp import fully_shard
    except (ImportError, ValueError):  # 1.13 under Python 3.11: "mutable default ... is not allowed"
        return None

    def shard(model, **more):
        for block in model.blocks:
            fully_shard(block, **more)
        return fully_shard(model, **more)

    return shard


def collectives(torch, dist, ranks, names, steps):
    """Seconds of gloo's collectives of these names, at GLOO_B: as DDP and FSDP call them."""
    calls = {
        "all_reduce": lambda full, part: dist.all_reduce(full),
        "all_gather": lambda full, part: dist.all_gather_into_tensor(full, part),
        "reduce_scatter": lambda full, part: dist.reduce_scatter_tensor(part, full),
    }
    found = []
    for call in (calls[name] for name in names):
        found.append([])
        for size in GLOO_B:
            full, part, times = torch.zeros(size // 4 // ranks * ranks), torch.zeros(size // 4 // ranks), []
            for _ in range(WARMUP + steps):
                dist.barrier()
                timed(lambda: call(full, part), times)
            found[-1].append(typical(times))
    return found


def beside(torch, dist, shape):
    """By size in BESIDE: seconds of one of gloo's all-reduces alone, and beside products; what these lose to it."""
    (rows, cols, inner), _ = shape
    x, w = torch.randn(rows, inner), torch.randn(inner, cols)
    found = []
    for size, count in BESIDE.items():
        full, alone, longer, lost, each = [torch.zeros(size // 4) for _ in range(count)], [], [], [], []

        def begin_all():
            return [dist.all_reduce(x, async_op=True) for x in full]

        for _ in range(WARMUP + 1):
            dist.barrier()
            timed(lambda: [work.wait() for work in begin_all()], alone)
            timed(lambda: x @ w, each)
            timed(lambda: x @ w, each)
            n = max(2, int(2 * typical_of(alone) / typical_of(each)))
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(n):
                x @ w
            products_s = time.perf_counter() - begin
            dist.barrier()
            begin = time.perf_counter()
            works, ended = begin_all(), None
            for _ in range(n):
                x @ w
                if ended is None and all(work.is_completed() for work in works):
                    ended = time.perf_counter()
            lost.append(time.perf_counter() - begin - products_s)
            for work in works:
                work.wait()
            longer.append((ended or time.perf_counter()) - begin)
        found.append([typical(v) / count for v in (alone, longer, lost)])
    return found


def training(torch, dist, run, model, batch, micro, steps):
    """What times forward, backward, optimizer and the whole of some steps; the last micro-batch's backward reduces."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

    def times():
        forward, backward, update, whole = [], [], [], []
        for _ in range(WARMUP + steps):
            dist.barrier()
            begin = time.perf_counter()
            spent = [0.0, 0.0]
            for k in range(micro):
                run.require_backward_grad_sync = k == micro - 1
                at = time.perf_counter()
                loss = run(*batch) / micro
                mid = time.perf_counter()
                loss.backward()
                spent = [spent[0] + mid - at, spent[1] + time.perf_counter() - mid]
            forward.append(spent[0])
            backward.append(spent[1])
            timed(optimizer.step, update)
            optimizer.zero_grad(set_to_none=True)
            whole.append(time.perf_counter() - begin)
        return [typical(x) for x in (forward, backward, update, whole)]

    return times


def core_times():
    """Seconds that this process's cores were busy (interrupts serve the ranks), that the hypervisor took of them, and
    that this process used: since each began."""
    cores, busy, stolen = {f"cpu{k}" for k in os.sched_getaffinity(0)}, 0, 0
    with open("/proc/stat") as f:
        for words in map(str.split, f):
            if words[0] in cores:
                user, nice, system, _, _, _, _, steal = map(int, words[1:9])
                busy, stolen = busy + user + nice + system, stolen + steal
    tick, own = os.sysconf("SC_CLK_TCK"), resource.getrusage(resource.RUSAGE_SELF)
    return [busy / tick, stolen / tick, own.ru_utime + own.ru_stime, time.perf_counter() * len(cores)]


def in_rounds(work, rounds):
    """Results of each piece of work in so many rounds, every second one in the opposite order; and the shares of its
    cores' time that other processes took, and the hypervisor."""
    found, lost = {name: [] for name in work}, {name: [] for name in work}
    for k in range(rounds):
        for name in list(work)[:: -1 if k % 2 else 1]:
            begun = core_times()
            found[name].append(work[name]())
            busy, stolen, own, whole = (b - a for a, b in zip(begun, core_times()))
            lost[name].append([max(0, busy - own) / whole, stolen / whole])
    return found, lost


def run_rank(path):
    """Writes what PyTorch takes: without peers, with DDP by bucket, and with FSDP; the slowest rank's."""
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
    micro, each = t["global_batch"] // t["micro_batch"] // ranks, -(-steps // ROUNDS)
    tokens, targets = (torch.randint(0, m["vocab"], (t["micro_batch"], m["seq_len"])) for _ in range(2))

    def slowest(seconds):
        x = torch.tensor(seconds, dtype=torch.float64)
        dist.all_reduce(x, dist.ReduceOp.MAX)
        return x.tolist()

    def parts(run, model):
        return training(torch, dist, run, model, (tokens, targets), micro, each)

    model = single.build(torch, m)
    if sum(p.numel() for p in model.parameters()) != single.parameters(m):
        stop("the PyTorch model has another number of parameters than stepsim's")
    ddp, own = torch.nn.parallel.DistributedDataParallel, [dist.new_group([r]) for r in range(ranks)][rank]
    shard = sharder(torch)
    names = ["all_reduce", "all_gather", "reduce_scatter"][: 3 if shard else 1]
    # Without peers DDP and FSDP still copy gradients and weights to and from what they exchange.
    work = {
        "products": lambda: [micro * x for x in products(torch, job["products"], each)],
        "alone": parts(ddp(model, process_group=own), model),
        "collectives": lambda: collectives(torch, dist, ranks, names, each),
        "beside": lambda: beside(torch, dist, min(job["products"], key=lambda p: math.prod(p[0]))),
    }
    if shard:
        from torch.distributed.device_mesh import DeviceMesh

        model = shard(single.build(torch, m), mesh=DeviceMesh.from_group(own, "cpu"))
        work["alone_sharded"] = parts(model, model)
        model = shard(single.build(torch, m))
        work["sharded"] = parts(model, model)
    runs = {}
    for bucket in job["buckets"]:
        model = single.build(torch, m)
        runs[bucket] = ddp(model, bucket_cap_mb=bucket)
        work[bucket] = parts(runs[bucket], model)
    rounds, lost = in_rounds(work, ROUNDS)
    times = {name: slowest(middle(x)) for name, x in rounds.items()}
    found = {"version": torch.__version__, "threads": torch.get_num_threads(), "ranks": ranks, "buckets": {}}
    found |= {name: times[name] for name in ("products", "alone", "beside")}
    found["collectives"] = dict(zip(names, times["collectives"]))
    if shard:
        found |= {"alone_sharded": times["alone_sharded"], "sharded": {"step_s": times["sharded"][3]}}
    for bucket, run in runs.items():
        # Earlier versions' first bucket is of 1 MiB whatever the cap (torch/nn/parallel/distributed.py).
        found["first_mb"] = None if hasattr(run, "bucket_bytes_cap_default") else 1
        log = run._get_ddp_logging_data()
        comm, hidden = (log.get(f"avg_backward_{k}_time", 0) for k in ("comm", "compute_comm_overlap"))
        found["buckets"][str(bucket)] = {"step_s": times[bucket][3], "comm_s": comm / 1e9, "hidden_s": hidden / 1e9}
    found["rounds"] = {str(name): x for name, x in rounds.items()}
    found["lost"] = {str(name): [slowest(x) for x in shares] for name, shares in lost.items()}
    if rank == 0:
        with open(job["result"], "w") as f:
            json.dump(found, f, indent=1)
    dist.barrier()
    time.sleep(1)  # until all have heard of it
    os._exit(0)  # destroy_process_group() may end with "terminate called without an active exception" (PyTorch 2.8)


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


def between(theirs):
    """A profile's entries of what gloo's all-reduce and products cost each other, as stepsim's calibration has them:
    beside = alone + turn x messages + c x bytes that come or go. Threads of gloo sleep while they wait."""
    n = theirs["ranks"]
    moved_B = [4 * (n - 1) / n * size for size in BESIDE]
    (a, b), messages = [longer - alone for alone, longer, _ in theirs["beside"]], 2 * (n - 1)
    per_B = max(0, b - max(0, a)) / (moved_B[1] - moved_B[0])
    return {
        "between.compute_s_per_B": max(0, sum(x[2] for x in theirs["beside"])) / sum(moved_B),
        "between.wait_share": 0.0,
        "between.comm_s_per_B": per_B,
        "between.turn_s": max(0, a - per_B * moved_B[0]) / messages,
    }


def scaled_profile(source, target, factor, theirs=None):
    """A copy of a profile: factor(entry) for the times of its entries, and the collectives of `theirs`."""
    import yaml

    with open(source) as f:
        p = yaml.safe_load(f)
    p.pop("entries", None)  # collectives may be added
    for name, fit in p["fits"].items():
        fit["coef"] = [x * factor(name) for x in fit["coef"]]
    for name, curve in p["curves"].items():
        curve["y"] = [y * factor(name) for y in curve["y"]]
    p["values"].update(between(theirs) if theirs else {})
    for name, seconds in (theirs["collectives"] if theirs else {}).items():
        p["curves"][f"{name}.{theirs['ranks']}"] = {"x": list(GLOO_B), "y": seconds}
    with open(target, "w") as f:
        yaml.safe_dump(p, f, sort_keys=False)


COLLECTIVES = re.compile(r"(all_reduce|all_gather|reduce_scatter|broadcast|alltoall|sendrecv|send)\.")


def factors(mine, theirs, alone="alone"):
    """By entry of a profile: PyTorch's time over stepsim's, of products alone, and of all."""
    forward, backward, update, _ = theirs[alone]
    by = {
        (True, "forward"): theirs["products"][0],
        (True, "backward"): theirs["products"][1],
        (False, "forward"): forward - theirs["products"][0],
        (False, "backward"): backward - theirs["products"][1],
        (False, "optimizer"): update,
    }
    if min(by.values()) <= 0:
        stop("the linear layers took longer alone than in a pass: others used the cores")
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


def step_s(config, pairs):
    return single.stepsim(["predict", config, *single.sets(pairs)])["prediction"]["step_time_s"]


def executed(a, plans):
    """Predicted and measured seconds of stepsim's own step, by name; `plans`: the keys of each."""

    def runs(name, pairs):
        numbers = itertools.count()

        def run():
            path = f"{a.out}/stepsim.{name}.{next(numbers)}.json"
            if not a.keep or not os.path.exists(path):
                more = [f"cluster.profile={a.out}/profile.yaml", f"run.steps={-(-a.steps // OWN_ROUNDS)}"]
                mpirun(a.hosts, [single.STEPSIM, a.config, "-q", "--json", path, *single.sets([*a.set, *pairs, *more])])
            found = load(path)
            return [found[k]["step_time_s"] for k in ("prediction", "measurement")]

        return run

    rounds, _ = in_rounds({name: runs(name, pairs) for name, pairs in plans.items()}, OWN_ROUNDS)
    return {name: middle(x) for name, x in rounds.items()}


def write_profiles(a, mine, theirs):
    """The profiles that PyTorch's step is predicted from, coarse to fine; those of DDP, and the finest of FSDP."""
    source = f"{a.out}/profile.yaml"
    by, of_products, of_all = factors(mine, theirs)
    print(f"PyTorch {theirs['version']}, {theirs['threads']} thread(s) a rank;"
          " its time over stepsim's on a rank alone:")
    for (gemm, phase), x in by.items():
        print(f"  {'products' if gemm else 'the rest'}, {phase}: {x:.2f}")
    scaled_profile(source, f"{a.out}/products.yaml", of_products)
    scaled_profile(source, f"{a.out}/all.yaml", of_all)
    scaled_profile(source, f"{a.out}/gloo.yaml", of_all, theirs)
    if "sharded" in theirs:
        scaled_profile(source, f"{a.out}/sharded.yaml", factors(mine, theirs, "alone_sharded")[2], theirs)


def row(a, name, ours, theirs_as, profiles, measured_s):
    """`ours`: stepsim's step, predicted and measured; `theirs_as`: the keys that PyTorch's is predicted with."""
    predicted = [step_s(a.config, [*a.set, *theirs_as, f"cluster.profile={a.out}/{p}.yaml"]) for p in profiles]
    return {"name": name, "stepsim": ours, "pytorch": [*predicted, measured_s]}


def compare(a):
    os.makedirs(a.out, exist_ok=True)
    c = single.resolved(a.config, [*a.set, "parallel.data=auto"])
    single.supported(c)
    profile, result = f"{a.out}/profile.yaml", f"{a.out}/pytorch.json"
    if not a.keep or not os.path.exists(profile):
        mpirun(a.hosts, [single.STEPSIM, "calibrate", "-q", "-o", profile])
    mine, shapes = spans(a.config, [*a.set, "parallel.overlap=false"], profile)  # beside collectives they take longer
    job = {"config": c, "products": shapes, "buckets": a.buckets, "steps": a.steps, "result": result}
    job["host"] = a.hosts.split(",")[0].partition(":")[0]
    with open(f"{a.out}/job.json", "w") as f:
        json.dump(job, f)
    if not a.keep or not os.path.exists(result):
        mpirun(a.hosts, ["env", *KEEP, a.python, HERE, "--rank", f"{a.out}/job.json"])
    theirs = load(result)
    write_profiles(a, mine, theirs)
    plans = {str(b): [f"parallel.bucket_mb={b}"] for b in a.buckets} | ({"fsdp": FSDP} if "sharded" in theirs else {})
    ours, rows = executed(a, plans), []
    for b in a.buckets:
        bucket = plans[str(b)]
        first = [f"parallel.first_bucket_mb={theirs['first_mb'] or b}"]
        found = theirs["buckets"][str(b)]
        rows.append(row(a, str(b), ours[str(b)], [*bucket, *first], ("products", "all", "gloo"), found["step_s"]))
        rows[-1] |= {"bucket_mb": b, "hidden": found}
    sharded = []
    if "sharded" in theirs:
        sharded = [row(a, "fsdp", ours["fsdp"], WAITS, ("products", "gloo", "sharded"), theirs["sharded"]["step_s"])]
    code = report(rows, sharded, theirs, a.out)
    if a.docs:
        bench_testbed.write_page(os.path.basename(HERE), page(rows, sharded, theirs))
    return code


def error(predicted, measured):
    return 100 * (predicted / measured - 1)


def hidden(r):
    h = r.get("hidden")
    return f"{100 * h['hidden_s'] / h['comm_s']:.0f} %" if h and h["comm_s"] else "-"


def line(r):
    """Cells of a row: stepsim's step and its error, PyTorch's and its errors, coarse to fine."""
    (p, m), (*predicted, t) = r["stepsim"], r["pytorch"]
    return [f"{m:.3f} s", f"{error(p, m):+.1f} %", f"{t:.3f} s", *(f"{error(x, t):+.1f} %" for x in predicted)]


def report(rows, sharded, theirs, folder):
    print(f"\n{'':>8}{'stepsim':>12}{'error':>12}{'PyTorch':>12}{'errors: products, times, gloo':>36}{'hidden':>12}")
    for r in rows:
        print(f"{r['bucket_mb']:>4} MiB" + "".join(f"{x:>12}" for x in [*line(r), hidden(r)]))
    if sharded:
        print(f"{'':>8}{'':>36}{'errors: products, times and gloo, its copies':>48}")
    for r in sharded:
        print(f"{r['name']:>8}" + "".join(f"{x:>12}" for x in line(r)))
    worst = max(abs(error(*r["pytorch"][-2:])) for r in [*rows, *sharded])
    found = {"PyTorch's step, worst": worst}
    for name, key, at in (("stepsim", "stepsim", 0), ("PyTorch", "pytorch", -2)):
        predicted, measured = ({r["bucket_mb"]: r[key][k] for r in rows} for k in (at, -1))
        choice, behind = best_error(predicted, measured)
        found[f"best bucket, {name}"] = behind
        print(f"best bucket, {name}: {choice} MiB is predicted; its measured step is {behind:.1f} % above the best")
    others, stolen = (100 * max(x[k] for shares in theirs["lost"].values() for x in shares) for k in (0, 1))
    print(f"at worst, other processes took {others:.0f} % of a rank's cores, the hypervisor {stolen:.0f} %")
    print(f"\n{'error':<28}{'found':>8}{'goal':>8}")
    for name, goal in GOALS.items():
        print(f"{name:<28}{found[name]:>7.1f}%{goal:>7}%")
    with open(f"{folder}/result.json", "w") as f:
        json.dump({"rows": rows, "fsdp": sharded, "pytorch": theirs, "errors": found, "goals": GOALS}, f, indent=1)
    return 0 if all(found[k] <= goal for k, goal in GOALS.items()) else 3


def page(rows, sharded, theirs):
    """The tables of docs/clusters.md."""
    lines = [
        f"PyTorch {theirs['version']}, commit `{bench_testbed.commit()}`; step time, and the error of its prediction:",
        "",
        "| bucket | stepsim | error | PyTorch | error, its products | all its times | gloo's, too | hidden |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += ["| " + " | ".join([f"{r['bucket_mb']} MiB", *line(r), hidden(r)]) + " |" for r in rows]
    if sharded:
        lines += ["", "| FSDP | stepsim | error | PyTorch | error, its products"
                  " | all its times, gloo's | its copies, too |"]
        lines += ["| --- | --- | --- | --- | --- | --- | --- |"]
        lines += ["| " + " | ".join(["blocks", *line(r)]) + " |" for r in sharded]
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
