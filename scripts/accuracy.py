"""The page docs/accuracy.md: written by validate.py from what it has just measured, so that it cannot go stale.

The tables come from the rows and their predictions. The sentences between them stand here.
"""

import collections, os, statistics
import widths
from constants import root

PATH = os.path.join(root, 'docs/accuracy.md')
SAMPLE = 'Every tenth tight step: '  # the page's line that the test command compares


def percentile(x, p):
    x = sorted(x)
    k = (len(x) - 1) * p / 100
    low = int(k)
    return x[low] + (x[min(low + 1, len(x) - 1)] - x[low]) * (k - low)


def table(head, rows):
    """A Markdown table; the first column is text, the others numbers."""
    rule = ['---'] + ['---:'] * (len(head) - 1)
    return '\n'.join('| ' + ' | '.join(map(str, cells)) + ' |' for cells in [head, rule, *rows]) + '\n'


def inside(p):
    return p['interval90_s'][0] <= p['measured_s'] <= p['interval90_s'][1]


def first_median(rows):
    """Cell: the median of |error| of the first, blind prediction; '-' where constants were fitted to a row."""
    size = [abs(float(r['first_error'])) for r in rows if r['first_error']]
    return '%.1f' % statistics.median(size) if len(size) == len(rows) else '-'


def errors(pairs):
    """Cells: rows; median of the first |error|; median, mean and 90th percentile of |error|; signed mean; share inside
    of the interval; in %."""
    predictions = [p for _, p in pairs]
    error = [100 * p['error'] for p in predictions]
    size = [abs(x) for x in error]
    return [
        len(error),
        first_median([r for r, _ in pairs]),
        *('%.1f' % x for x in (statistics.median(size), statistics.mean(size), percentile(size, 90))),
        '%+.1f' % statistics.mean(error),
        '%.0f' % (100 * statistics.mean(map(inside, predictions))),
    ]


HEAD = ['rows', 'first', 'median', 'mean', 'p90', 'signed', 'inside']


NAME = 46  # columns of a name, so that lines of the page stay within 100


def short(name):
    return name if len(name) <= NAME else name[: NAME - 3].rstrip(' ,(') + '...'


def by(key, title, pairs):
    """A table of errors by what `key` takes from a row, the largest group first."""
    groups = collections.defaultdict(list)
    for row, prediction in pairs:
        groups[key(row)].append((row, prediction))
    order = sorted(groups, key=lambda name: (-len(groups[name]), name))
    return table([title, *HEAD], [[short(name), *errors(groups[name])] for name in order] + [['all', *errors(pairs)]])


def gpu(row):
    return f"{row['gpu']} {row['gpu_variant']}"


def complete(row):
    return 'complete (quality A)' if row['quality'] == 'A' else 'something inferred (B, C)'


def predicted(rows, results, use=None):
    return [(r, p) for r, p in zip(rows, results) if p['predicted_s'] is not None and use in (None, r['use'])]


def sample_line(rows, results):
    """The line that says how every tenth tight step comes out: it changes when predictions do."""
    size = [abs(100 * p['error']) for _, p in predicted(rows, results, 'tight')]
    return SAMPLE + 'median %.2f %%, mean %.2f %%.' % (statistics.median(size), statistics.mean(size))


def is_current(rows, results):
    """Whether the page has that line."""
    with open(PATH) as page:
        return sample_line(rows, results) in page.read()


def vote(first, now):
    """Cells: over sources, the means of their medians, of their means, and of their shares inside. first: |error| in %
    of the first prediction by source, or none; now: |error| and inside, in %."""
    mean = lambda of, groups: '%.1f' % statistics.mean(of(x) for x in groups.values()) if groups else '-'
    size = {s: [x for x, _ in v] for s, v in now.items()}
    return [
        len(now),
        mean(statistics.median, first),
        mean(statistics.mean, first),
        mean(statistics.median, size),
        mean(statistics.mean, size),
        mean(statistics.mean, {s: [100 * y for _, y in v] for s, v in now.items()}),
    ]


def one_vote(pairs, held_out):
    """The headline: each source counts once, whatever the number of its rows."""
    first, now = collections.defaultdict(list), collections.defaultdict(list)
    for r, p in pairs:
        if r['first_error']:
            first[r['source']].append(abs(float(r['first_error'])))
            now[r['source']].append((100 * abs(p['error']), inside(p)))
    return table(
        ['one source, one vote', 'sources', 'first median', 'first mean', 'median', 'mean', 'inside'],
        [
            ['no constant was fitted to them', *vote(first, now)],
            ['fitted, the source held out', *vote({}, {s: v for s, v in held_out.items() if s not in now})],
        ],
    )


def not_seen(moved):
    """Which constants no limit notices, and the head of their table; or that there is none."""
    cells = [
        [name, ', '.join(c['files']), c['path'].split('+')[0], '%g' % step]
        for name, c, _, step, seen in moved
        if not seen
    ]
    if not cells:
        return 'Each of them is noticed.\n'
    return (
        'No row would notice %d of them; only judgement speaks for their values:\n\n' % len(cells)
        + table(['constant', 'file', 'key', 'factor'], cells)
    )


def limits(checks):
    cells = [
        [what, '%.1f' % value, ('at least %g' if at_least else 'at most %g') % limit, 'yes' if good else '**no**']
        for what, value, limit, at_least, good in checks
    ]
    return table(['figure', 'value', 'limit', 'met'], cells)


def write(steps, outside, sample, held_out, of_widths, collectives, checks, moved):
    """Writes the page.

    steps, outside, sample: (rows, results). held_out: by source, errors in sample, by row and with the source held out,
    in %, and whether rows lie inside with it held out. of_widths: lines of widths.table(). collectives: results of the
    rows that constants were fitted to, and the tables of held_out_collectives.py. checks: (what, value, limit, at
    least, good). moved: constants as perturb.run() returns them.
    """
    tight, other = predicted(*steps, 'tight'), predicted(*outside)
    folds = [
        [source, len(columns[0])] + ['%.1f, %.1f' % (statistics.median(c), statistics.mean(c)) for c in columns[:3]]
        for source, columns in held_out.items()
    ]
    fitted, machines = collectives
    sized = lambda large: [p for p in fitted if (p['bytes'] >= 1 << 20) == large]
    sizes = [
        [name, len(chosen), *('%.1f' % x for x in (statistics.median(off), percentile(off, 90)))]
        for name, chosen in (
            ('from 1 MiB on, best repeat', [p for p in sized(True) if p['best']]),
            ('from 1 MiB on, all', sized(True)),
            ('below 1 MiB, all', sized(False)),
        )
        for off in [[100 * abs(p['error']) for p in chosen]]
    ]
    held = {s: list(zip(columns[2], columns[3])) for s, columns in held_out.items() if s != 'all'}
    text = PAGE % {
        'one_vote': one_vote(tight + other, held),
        'not_seen': not_seen(moved),
        'moved': len(moved),
        'sample': sample_line(*sample),
        'widths': table(widths.HEAD, of_widths),
        'outside': by(lambda r: r['source'], 'source', other),
        'outside_stack': by(lambda r: r['framework'], 'software', other),
        'outside_quality': by(complete, 'configuration', other),
        'outside_gpu': by(gpu, 'GPU', other),
        'held_out': table(['source', 'rows', 'in sample', 'five folds', 'source held out'], folds),
        'stack': by(lambda r: r['framework'], 'software', tight),
        'gpu': by(gpu, 'GPU', tight),
        'collectives': table(['size', 'rows', 'median', 'p90'], sizes),
        **machines,
        'limits': limits(checks),
    }
    with open(PATH, 'w') as page:
        page.write(text)


PAGE = """# Accuracy

This page says how far predictions were from published measurements. Its headline counts each source
once, however many rows it has:

%(one_vote)s
`first` is the prediction made before anything was changed for these runs. All values in %%.

`make validate` writes it; do not edit it by hand.

- `rows`: published runs that could be predicted. Each has its source in `tests/validation/`.
- `first`: median of |error| when these runs were first predicted, before anything was changed for
  them. It says what a blind prediction is worth. `-`: constants were fitted to some of them.
- `median`, `mean`, `p90`: of |predicted - measured| / measured, in %%.
- `signed`: mean error in %%. Below 0 stepsim predicted too short a time.
- `inside`: share of the runs inside their 90 %% interval, in %%.

No GPU was at hand: all GPU runs below were made by others.

## What to expect of a run of your own

No constant was ever fitted to these runs, and `first` is the blind figure. But some choices were
made with their errors in view:

| of | choices |
| --- | --- |
| products | their rate on B200, B300, GB200, L40, GH200, TPUs, AMD's GPUs and GeForce cards |
| | in fp32 on a V100; of 16 bits, where rows are not aligned |
| other rates | flash attention on AMD's GPUs; boards of GH200 without a switch |
| PyTorch, compiled | traffic; what remains eager where the model alone is compiled |
| PyTorch, eager | operators counted kernel by kernel; sums of adapters |
| | images transposed for Tensor Cores; the host's time of an op, as Megatron's |
| PyTorch, both | updates on the host's cores; waits of Hugging Face's Trainer |
| | copies of weights and gradients by DDP and FSDP |
| DeepSpeed | copies of gradients and of gathered units; slices in 2021 |
| | reductions of whole buckets; traffic of an update |
| FSDP1 | units of their own for adapters |
| XLA | which stack's time of a step it takes; what collectives cost on GPUs and TPUs |
| Megatron | whose host time of an op it takes; mixtures without a single queue of kernels |
| | gradients and losses of NVIDIA's recipes; formats of gradients under Megatron-Core |
| | softmax of NeMo's vision transformers; GPT-NeoX's traffic; the stack of Primus |
| experts | DeepEP's exchanges; launches of products; traffic of their weights |
| | kernels that order their rows and add them up; MaxText's masks |
| rows | 71 that their authors' files describe otherwise; layers of LiBai's stages |
| | cuDNN's attention in TRL's runs; windows for packed documents (prime-rl, torchtune) |
| all | attention under a padding mask; words of software |

These runs fix four widths of intervals, in log, so `inside` is no blind figure. `without one` is
what they are without one source (`scripts/widths.py`). The last columns predict each source by the
widths that all others give: `held out` are the runs inside, `half width` is half their interval.
One vote a source, in %%:

%(widths)s
Two more widths were set on these runs. Too few sources fix them to hold one out: three that of the
host's time in eager PyTorch, two that of context ranks.

By what the source prints. A run of your own is complete, as far as you know what you ran:

%(outside_quality)s
By source:

%(outside)s
By software:

%(outside_stack)s
By GPU:

%(outside_gpu)s
## The runs that fixed the constants

A few constants for each stack, GPU and network are fitted to these runs by `scripts/fit.py`.
`stepsim list parameters` prints all of them with their sources.
Errors in sample are therefore lower than what a new run may expect.
Cross-validation shows by how much. Each cell is median, mean of |error| in %%:

- *five folds*: constants are fitted without the fifth of the rows that is predicted.
- *source held out*: constants are fitted without the whole source.
  A stack that only this source fixes takes another stack's or its family's numbers.

%(held_out)s
By software, in sample:

%(stack)s
By GPU, in sample:

%(gpu)s
%(sample)s
The test command predicts these again, and fails where they no longer are what stands here.

## Collectives

Published runs of nccl-tests and rccl-tests, 2 to 2,160 GPUs. The headline is of machines to which
no constant was fitted: each is predicted by constants that only the other machines fix. It counts
once, however many rows it has:

%(one_vote_collectives)s
`first` is the blind prediction, before anything was changed for these rows; `in sample` the
prediction now. `median`, `p90`, `signed` and `inside` are those with the machine held out. A number
that the machine alone fixes takes what was known before: NCCL's own, or an unknown Ethernet's.
All values in %%, by network:

%(by_kind)s
By collective:

%(by_collective)s
By size:

%(by_size)s
One machine alone (Polaris) has TCP and most of Slingshot, one each TCPX and TCPXO. Their errors,
held out, are those to expect on a network that nobody has measured.

The rows that fixed most constants, in sample:

%(collectives)s
## Limits

`make validate` fails where a limit is missed. All values in %%, correlations x 100:

%(limits)s
Each source has limits of its own, too (`tests/validation/limits.json`). The median and the signed
mean of its errors may not grow, of time nor of memory.
`validate.py --write-limits` writes them anew.

## What the tests would notice

`scripts/perturb.py` moves %(moved)d constants one at a time by a factor, up and then down, and judges
these limits again.

%(not_seen)s
## What is known to miss

| what | how far off |
| --- | --- |
| torchao's fp8 training with a scale a row | 13 %% too fast on H100, 8 %% on MI300X |
| ring attention over 4 context ranks and more | 40 %% too fast |
| models of 124 to 300 M parameters | 8 to 64 %% too fast |
| KempnerForge's mixtures of experts | 60 to 66 %% too fast ([more](#experts)) |
| Hugging Face's models under a padding mask | 17 to 72 %% too fast ([more](#kernels)) |
| Grok-1's experts in fp8 | up to 18 %% too fast |
| experts in mxfp8, Megatron Bridge to 26.04 | up to 26 %% too fast ([more](#experts)) |
| the same as one CUDA graph with fused grouped products (26.06) | 12 to 23 %% too slow |
| Qwen3 30B in fp8 on H100, Megatron Bridge | 26 to 54 %% too fast |
| gpt-oss 120B in bf16, Megatron Bridge | 9 to 49 %% too fast ([more](#experts)) |
| experts that nothing balances by force | up to 16 %% too fast ([more](#experts)) |
| MegaScale-MoE's own runs and its baseline | 7 to 32 %% too fast ([more](#experts)) |
| experts cut by tensor ranks, over two hosts (MoE Parallel Folding) | up to 29 %% too fast |
| MaxText on H100 | 10 %% too fast to 11 %% too slow ([more](#kernels)) |
| dense bf16 of NVIDIA's recipes on B200 | 14 to 65 %% too slow ([more](#kernels)) |
| fully sharded 70B on 32 and more B200 hosts | 7 to 18 %% too fast |
| 405B in nvfp4 with its pipeline over InfiniBand (B200) | 15 to 32 %% too fast |
| runs over Omni-Path without NCCL's plug-in for it (Lucie) | 20 %% too fast ([more](#networks)) |
| DeepSpeed, whatever trains on it | 28 %% too fast, the median of ten sources ([more](#deepspeed)) |
| DeepSpeed ZeRO-3 of 2021 | 13 to 38 %% too fast ([more](#deepspeed)) |
| DeepSpeed of Hugging Face trainers, 1,024 tokens and fewer | 58 %% too fast |
| pipelines over Ethernet of 1 to 25 Gb/s (DT-FM) | 20 %% off |
| the same with tensor 8 and pipeline 8 | 57 to 72 %% too fast |
| Transformer Engine alone, without Megatron | 15 %% too fast on H100, 33 to 43 %% on MI300X |
| FSDP1 units that are smaller than a recomputed block | over InfiniBand 19 to 34 %% too fast |
| Hugging Face's Mixtral under FSDP1 over InfiniBand | 22 to 30 %% too fast |
| lightning-thunder and its torch.compile runs with FSDP2 | 8 to 14 %% too slow |
| adapters of 7B and 13B in fp8 (NeMo 24.07) | 14 to 23 %% too slow |
| an RTX A6000 in torchtune's table | 76 %% too slow ([more](#kernels)) |
| vision transformers on T5X (A100) | 28 to 44 %% too fast |
| MaxText's mixtures on B200 | 15 %% too fast to 19 %% too slow |
| torchtitan's experts on 32 B300 (prime-rl) | 19 to 42 %% too slow ([more](#experts)) |
| TensorFlow 2 with XLA (ELECTRA) | 28 %% too fast |
| gpt-oss in Hugging Face's Trainer (B300) | 31 to 75 %% too fast ([more](#experts)) |
| Halo's experts on 8 ranks (B300) | 5 to 62 %% too fast ([more](#experts)) |
| MI300X and MI250X across hosts below 64 MiB | 40 to 75 %% too fast |
| EFA of 2021 (p4d, NCCL 2.8) | 36 to 73 %% too fast |
| all-gathers below 16 MiB of one B200 cluster over RoCE (gke-dranet) | 80 to 90 %% too fast |
| all-reduce over 20 racks of NVL72 | 55 to 78 %% too fast |
| peer-to-peer between GeForce cards on two sockets | 30 %% too slow |
| GPUDirect-TCPXO, all-reduce of 8 to 128 MiB | 30 to 70 %% too fast |
| GeForce cards without peer-to-peer behind one PCIe switch | not counted: too fast |
| all-gather of 32 to 512 MiB on ten full H100 hosts | 15 to 40 %% too fast |
| nanotron's pipelines that stall | [more](#networks) |

### Experts

That the host thread waits for the counts of experts' rows made 7 sources better and 5 worse:
MegaScale-MoE 25 in place of 29 %% off, Megatron Bridge's mixtures 17 in place of 18. Two counted
costs were left out. Padding experts' rows in fp8 (Transformer Engine's fp8_padding.py) made two
sources better and two worse. That a stage computes nothing while it sends (Megatron's
p2p_communication.py) made 11 better and 8 worse, by 0.02 points on the mean.

Four mechanisms were looked up with these errors in view; no number of them comes from these runs.
An expert's product adds its weights' traffic (measured products of B200 and A100 bear it out),
kernels that order rows stream at 0.55 of the rate, PyTorch's operators add rows up atomically, and
MaxText takes rows to experts by products with masks. Eleven sources became better: MaxText's
DeepSeek 11 in place of 29 %% off, torchtitan with DeepEP 4 in place of 23, pith-train 3 in place of
22, OpenEuroLLM's 14 in place of 26, MegaScale-MoE 19 in place of 25, Halo 33 in place of 39. Eight
became worse: prime-rl 29 in place of 15, MoE Parallel Folding 12 in place of 10, NeMo Automodel 14
in place of 13, a Mixtral on TPUs 12 in place of 3.

A grouped product of PyTorch on a B200 takes a third longer than a dense one of as many FLOP by one
table (torchao, 128,000 rows), and as long by another (16,384 rows). So no number stands for it.

Hugging Face's gpt-oss looks experts' biases up for each row. The gradient adds all rows of an
expert one after the other (PyTorch, Indexing.cu), and Halo's filler text may take most rows to a
few experts. Halo on 8 ranks waits for the fullest rank then. On chats it trains at 1.3 times the
rate. Neither is modelled: how uneven its routing was is not printed.

KempnerForge pads each expert to the tokens of the fullest, and waits for their counts
(`kempnerforge/model/moe.py`). How uneven they are in the first 20 steps is not printed.
`model.capacity_factor` predicts a given imbalance.

Qwen3 235B ran on 256 H100 with routing as learned and balanced by force, at 16k to 128k tokens. At
each length `model.capacity_factor` 1.68 to 1.78 gives the difference (8 expert ranks, top 8 of
128). That is one source, so predictions without a factor stay balanced.

Experts in bf16 on GB200 and GB300 are within 7 %%, those in mxfp8 are not. Small products of experts
(768 to 2,048 wide) may reach less of mxfp8's rate than large ones. No published product says so.

Megatron Bridge's gpt-oss takes 2 to 6 ms a layer and sequence more than predicted, on H100 and on
GB300. That is the time of 14 to 20 GB of memory traffic. NeMo Automodel's gpt-oss does not. 5 to 6
GB of it are Megatron's: experts' biases times gates in fp32 (experts.py, `_apply_bias`: 68 B an
element), clamps and a `cat` before the activation (fused_bias_geglu.py). They are not modelled.

With full recomputation MegaScale-MoE's ten runs would be 3 to 15 %% too fast, at each size. Its
paper does not say so. The runs of MoE Parallel Folding with 2 tensor ranks an expert over two hosts
miss 1.0 s a step, whatever the number of GPUs. A pipeline without chunks would take that, but the
paper does not print chunks.

### DeepSpeed

DeepSpeed's ZeRO-3 of 2021 waits for each gather (its pull request 1188). It gathered module by
module, again after recomputation, and copied each rank's slice of each matrix twice. A launch for
each copy takes six runs from 24 to 65 %% too fast to 13 to 38. No constant was fitted to them. Later
hooks cost the host more than their kernels, which is not modelled. A step of 147 tensors takes 50
ms in all (deepspeedai/DeepSpeed pull request 7886). Qwen's runs of 1,024 tokens and fewer want 0.4
ms a tensor and micro-batch more than predicted, which no code explains.

Most runs under DeepSpeed take longer in proportion to their tokens. Elementwise traffic of 10.7
times the least would give that. The kernels of Hugging Face's Llama, as counted, add up to about
3.8. So no constant moved.

### Adapters

PEFT's policy makes FSDP1 wrap each factor of an adapter by itself. The host's time of these ops is
counted now. In the mean, fms-acceleration's ten runs went from 8.8 to 6.3 %% off, and fsdp_qlora's
16 from 20.3 to 17.8. Its three on GeForce 4090 cards went from 5 to 11 %% too slow.

Adapters leave out the gradients of weights, and Transformer Engine then makes one fp8 copy of an
operand, not two. That is not modelled: 2 to 3 %% of their time.

### Networks

The Lucie runs launch each kernel only when the one before has ended (`train.launch_blocking`).
About 1 to 3 s a step are missing on several hosts. A quarter of the network's rate would give that,
with a mean error of 8 in place of 21 %%. Their script loads no NCCL plug-in for Omni-Path;
BigScience's runs on the same hosts want the full rate. No measurement of NCCL without the plug-in
is published, so the rate stays. DeepSpeed's own sums of gradients (`runtime/bf16_optimizer.py`,
`update_hp_grads`) explain 0.6 %% and make BigScience's rows worse: left out.

DT-FM's runs with two sequences a micro-batch take up to 2.7 times those with one or four, under the
same plan. The same plan is also printed twice, with 46 and with 66 s. No mechanism gives that.

Of rings of context no published cause was found. The printed times of CP 1, 4 and 8 lie within 1 %%
of a ring whose last rank attends to all. That of CP 2 lies on a balanced ring's line. PyTorch
balances by default, and so does the prediction.

Units by size (`parallel.unit_params`) move 1.23 times the bytes on Qwen2.5-72B. On Ethernet its
runs are 2 to 5 %% off. Over InfiniBand the prediction hides more of it than those runs did.

218 of nanotron's runs took more than 1.6 times their prediction. All have a pipeline. Each message
between stages then takes a quarter of a second, whatever the model is. Nothing in nanotron's code
explains it, so no constant stands for it. Without these runs the rank correlation of plans is 0.98.

### Kernels

Before Blackwell Megatron wants `CUDA_DEVICE_MAX_CONNECTIONS=1` for tensor and context ranks. All
kernels stand in one queue then, each begun before the next, and weights are gathered one bucket
ahead. With both, 8 sources are better and 4 worse. OpenEuroLLM is 13 in place of 14 %% off,
Nemotron-4 15B 18 in place of 25, MLPerf 3.1 2 in place of 4, TWIST 5 in place of 3. NeMo's docs,
which fitted constants, are 3.4 in place of 3.7 %% off. Mixtures are left out, as experts' gradients
are reduced on a stream of their own. With them MoE Parallel Folding was 11 in place of 10 %% off.

Products in bf16 on a B200 differ by source. SimuMax's tables and its runs of Megatron-LM bear out
0.49 of the peak. Three other sources, of NVIDIA's recipes, want 0.53 to 0.8: Nemotron-4 15B trains
at 0.70 of the peak, all told. No source says what clocks or power limits the runs had. SimuMax
multiplies normal random numbers without a pause, which costs the most power. stas00's sustained
load reaches 0.647 at 994 W and 1.34 GHz. The share stays 0.488: 0.52, 0.55 and 0.585 made the mean
of the sources' medians 0.1 to 0.3 points worse, with as many runs inside. Parts that nobody timed
take the middle of both figures, 0.562: B300 by its power, GB200 and GB300 by what Azure measured of
their products in fp8, 1.00 and 1.18 times a B200's.

MI300X was 23 to 46 %% too fast. Its products take AMD's own sweeps of common shapes now, and its
attention the rates that a profile of Llama 3.1 70B on MI325X gives: PyTorch's kernels are half as
fast there as was assumed. That was looked up with the errors in view; no number comes from them.
Its runs of Transformer Engine alone are of October 2024, before those kernels.

MaxText's synthetic data were zeros until March 2025: its logs print a loss of 0.000. Products of it
take less power, which holds the clock down (`data.repeated_token`, 1.148 as measured on an A100,
not fitted). XLA makes weights fp8 before it gathers them. Both were chosen with the errors of these
runs in view: the 24 of them went from +17 to +3 %% in the mean.

torchtune's rate on an A6000 needs 0.96 of an RTX A6000's peak with the checkpointing that its
config has. Its LoRA needs 0.91 even without. The best product timed on that card reaches 0.797.
Read as an RTX 6000 Ada, of 48 GB too, the row is 10 %% too fast, but the table does not say so.

Eager PyTorch had 3.3 times the least traffic for all operators. Counted kernel by kernel, timm's
vision transformers went from 30 to 6 %% off, DLPerf's ResNets in fp16 from 34 to 9 %%. GPT-2's kin
with dropout or a GELU of many kernels went from 2 to 16 %% too fast: neither is in a config.

Hugging Face's SDPA takes no flash kernel under a padding mask, and computes the masked half, too:
`train.attention_kernel: fa1` with `model.causal: false` says so. The runs of universal-llm-trainer
behave so (full tuning 18 %% too fast with it, 44 without), though their page says that sequences are
full. There adapters take longer than full tuning, which nothing explains.

### Memory

The bf16 copies of nanotron's gradients are dropped after each backward pass, so they do not meet
its first activations. Without them the memory of runs without tensor parallelism is 1.5 %% too low,
not 4.7 %% too high. But runs with it then miss about 3 B a token, layer and hidden unit, which no
code explains: left as it was.

### A fit of all constants

A refit of rates, traffic and host times to 88 sources, each held out with its kin, was tried in a
linear model. The result depends on how far constants may move: the median of the sources' medians
went from 9.2 to between 8.3 and 10.2 %%. Their mean went from 13.2 to between 13.0 and 14.5 %%.
Traffic of eager PyTorch at 3.9 in place of 3.3 made 16 sources better and 12 worse. So no constant
was moved.

## How runs are judged

| `use` | what is judged |
| --- | --- |
| `tight` | complete enough for the absolute time; some of them fixed the constants |
| `order` | which plan of a model and GPU count is faster, not the absolute time |
| `ratio` | n GPUs over one, one machine over another; times include warm-up |
| `outside` | everything; no constant was fitted to them |

- Runs without a printed micro-batch are not predicted. Runs with adapters fitted no constant.
- Memory is compared with what each source reports: peak allocated, or all that the device holds.
- Intervals of stacks without rows are wider: [how time is computed](how-time-is-computed.md).

    make validate                                          # all of this, some minutes
    build/release/stepsim validate MY_RUNS.csv             # your own runs; see reference.md

Next: [status](status.md), what is measured and what is not.
"""
