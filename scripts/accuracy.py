"""The pages docs/accuracy.md, docs/accuracy-tables.md and docs/misses.md, and README's table of errors: validate.py
writes them from what it has just measured, so they cannot go stale.

The tables come from the rows and their predictions; misses.py has the lines of what is known to miss. The sentences
between them stand here. docs/misses-*.md, which say why some runs are missed, are written by hand.
"""

import collections, os, statistics
import widths
from constants import root

PATH = os.path.join(root, 'docs/accuracy.md')
PATH_TABLES = os.path.join(root, 'docs/accuracy-tables.md')
PATH_MISSES = os.path.join(root, 'docs/misses.md')
PATH_README = os.path.join(root, 'README.md')
SAMPLE = 'Every tenth tight step: '  # the page's line that the test command compares


def percentile(x, p):
    x = sorted(x)
    k = (len(x) - 1) * p / 100
    low = int(k)
    return x[low] + (x[min(low + 1, len(x) - 1)] - x[low]) * (k - low)


def table(head, rows, others='---:'):
    """A Markdown table; the first column is text, the others are numbers unless `others` says so."""
    rule = ['---'] + [others] * (len(head) - 1)
    return '\n'.join('| ' + ' | '.join(map(str, cells)) + ' |' for cells in [head, rule, *rows]) + '\n'


def inside(p):
    return p['interval90_s'][0] <= p['measured_s'] <= p['interval90_s'][1]


def first_median(rows):
    """Cell: the median of |error| of the first, blind prediction, without runs that were refused then; '-' where
    constants were fitted to a row."""
    size = [abs(float(r['first_error'])) for r in rows if r['first_error']]
    fitted = any(r['use'] != 'outside' and not r['first_error'] for r in rows)
    return '%.1f' % statistics.median(size) if size and not fitted else '-'


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


README_HEAD = ['runs', 'number', 'median error', 'mean', 'inside the 90 % interval']


def in_short(outside, tight, held_out):
    """README's table. outside, tight: (row, prediction) pairs. held_out: of all rows, as write() has it."""

    def line(what, sizes, insides=()):
        cells = [what, format(len(sizes), ','), '%.1f %%' % statistics.median(sizes)]
        if not insides:
            return [*cells, '-', '-']
        return [*cells, '%.1f %%' % statistics.mean(sizes), '%.0f %%' % (100 * statistics.mean(insides))]

    def of(what, pairs):
        return line(what, [abs(100 * p['error']) for _, p in pairs], [inside(p) for _, p in pairs])

    first = [abs(float(r['first_error'])) for r, _ in outside if r['first_error']]
    return table(
        README_HEAD,
        [
            of('whose sources fitted no constant', outside),
            of('of those, with a complete configuration', [(r, p) for r, p in outside if r['quality'] == 'A']),
            line('whose sources fitted no constant, as first predicted', first),
            line('that fitted constants, predicted without their source', held_out[2], held_out[3]),
            of('the same, with it', tight),
        ],
    )


def rewrite_readme(new):
    """Puts a table in place of the one that begins alike."""
    with open(PATH_README) as page:
        text = page.read()
    begin = text.index(new.split('\n')[0])
    with open(PATH_README, 'w') as page:
        page.write(text[:begin] + new + text[text.index('\n\n', begin) + 1 :])


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
        'No row would notice %d of them; their sources alone speak for their values:\n\n' % len(cells)
        + table(['constant', 'file', 'key', 'factor'], cells)
    )


# The head of each table of scripts/misses.py.
MISSED = {
    'experts': '[experts](misses-experts.md), in [single programs](misses-programs.md)',
    'deepspeed': '[DeepSpeed](misses-frameworks.md#deepspeed)',
    'others': '[frameworks](misses-frameworks.md), kernels and devices',
    'networks': '[networks](misses-networks.md)',
    'collectives_alone': '[collectives alone](misses-networks.md#networks-and-nccl)',
}


def known_misses(of):
    return {name: table([head, 'how far off'], of[name], '---') for name, head in MISSED.items()}


def limits(checks):
    cells = [
        [what, '%.1f' % value, ('at least %g' if at_least else 'at most %g') % limit, 'yes' if good else '**no**']
        for what, value, limit, at_least, good in checks
    ]
    return table(['figure', 'value', 'limit', 'met'], cells)


def write(steps, outside, sample, held_out, of_widths, collectives, known, checks, moved):
    """Writes the pages.

    steps, outside, sample: (rows, results). held_out: by source, errors in sample, by row and with the source held out,
    in %, and whether rows lie inside with it held out. of_widths: lines of widths.table() and of widths.classes().
    collectives: results of the rows that constants were fitted to, and the tables of held_out_collectives.py. known:
    misses.lines(). checks: (what, value, limit, at least, good). moved: constants as perturb.run() returns them.
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
    values = {
        'one_vote': one_vote(tight + other, held),
        'not_seen': not_seen(moved),
        'moved': len(moved),
        'sample': sample_line(*sample),
        'widths': table(widths.HEAD, of_widths[0]),
        'classes': table(widths.CLASSES_HEAD, of_widths[1]),
        'outside': by(lambda r: r['source'], 'source', other),
        'outside_stack': by(lambda r: r['framework'], 'software', other),
        'outside_quality': by(complete, 'configuration', other),
        'outside_gpu': by(gpu, 'GPU', other),
        'held_out': table(['source', 'rows', 'in sample', 'five folds', 'source held out'], folds),
        'stack': by(lambda r: r['framework'], 'software', tight),
        'gpu': by(gpu, 'GPU', tight),
        'collectives': table(['size', 'rows', 'median', 'p90'], sizes),
        **machines,
        **known_misses(known),
        'limits': limits(checks),
    }
    for path, text in ((PATH, PAGE), (PATH_TABLES, TABLES), (PATH_MISSES, MISSES)):
        with open(path, 'w') as page:
            page.write(text % values)
    rewrite_readme(in_short(other, tight, held_out['all']))


PAGE = """# Accuracy

This page says how far predictions were from published measurements, and what to expect of your own.
GPU runs below were made by others, but for our own on one H200 (`h200`). `make validate` writes
this page.

Each source counts once, however many runs it has. All values in %%:

%(one_vote)s
- `first`: errors of the prediction made before anything was changed for these runs. Runs that were
  refused then have none.
- `median`, `mean`: of |predicted - measured| / measured.
- `inside`: share of the runs inside their 90 %% interval.

| page | has |
| --- | --- |
| this one | what to expect, how runs are judged |
| [Tables](accuracy-tables.md) | errors by source, software, GPU, collective; limits of the tests |
| [Known misses](misses.md) | what is known to miss, and pages that say why |

## What to expect of a run of your own

Complete is a run whose source prints every setting that matters. Yours is, if you know what you
ran:

%(outside_quality)s
- `rows`: published runs. Each has its source in `tests/validation/`.
- `p90`: nine of ten |errors| are smaller.
- `signed`: mean error. Below 0 stepsim predicted too short a time.

No constant was fitted to these runs. [Tables](accuracy-tables.md) has their errors by software and
by GPU: look up yours.

[Known misses](misses.md) lists what is known to be off, by how much and why.

## The runs that fixed constants

`scripts/fit.py` fits a few constants for each stack, GPU and network to the runs of eight sources.
`stepsim list parameters` prints all of them with their sources. Errors *in sample* are therefore
lower than what a new run may expect. Cross-validation shows by how much. Each cell is median, mean
of |error| in %%:

- *five folds*: constants are fitted without the fifth of the rows that is predicted.
- *source held out*: constants are fitted without the whole source. A stack that only this source
  fixes takes another stack's or its family's numbers.

%(held_out)s
%(sample)s
`validate.py --sample` predicts these again, and fails where they no longer are what stands here.

## Collectives

Published runs of nccl-tests and rccl-tests, on 2 to 2,160 GPUs. Each machine is predicted by
constants that only the other machines fix. It counts once, however many rows it has. All values in
%%:

%(one_vote_collectives)s
By network:

%(by_kind)s
- `first`: the prediction before anything was changed for these rows. `in sample`: the one now.
- `median`, `p90`, `signed`, `inside`: with the machine held out. A number that the machine alone
  fixes takes what was known before: NCCL's own, or an unknown Ethernet's.

One machine alone (Polaris) has TCP and most of Slingshot, one each TCPX and TCPXO. Their errors,
held out, are those to expect on a network that nobody has measured.

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

## Choices made with errors in view

No constant was fitted to the runs of the first table, and `first` is their blind figure. But these
choices were made with their errors in view:

| of | choices |
| --- | --- |
| products | their rate on B200, B300, GB200, L40, GH200, TPUs, AMD's GPUs and GeForce cards |
| | in fp32 on a V100; of 16 bits, where rows are not aligned; of an H20 |
| other rates | flash attention on AMD's GPUs, and in fp8 and by FlashAttention-4 on Blackwell |
| | boards of GH200 without a switch; links of TPU v3; compute beside collectives (Megatron) |
| PyTorch, compiled | traffic; what remains eager where the model alone is compiled |
| PyTorch, eager | operators counted kernel by kernel; sums of adapters; GELUs written out |
| | images transposed for Tensor Cores; the host's time of an op, as Megatron's |
| PyTorch, both | updates on the host's cores; waits of Hugging Face's Trainer |
| | copies of weights and gradients by DDP and FSDP; rows of tensor ranks (DTensor) |
| | losses by chunks |
| DeepSpeed | copies of gradients and of gathered units; slices in 2021 |
| | reductions of whole buckets; traffic of an update |
| FSDP1 | units of their own for adapters |
| XLA | which stack's time of a step it takes; what collectives cost on GPUs and TPUs |
| Megatron | whose host time of an op it takes; mixtures without a single queue of kernels |
| | gradients and losses of NVIDIA's recipes; formats of gradients under Megatron-Core |
| | softmax of NeMo's vision transformers; GPT-NeoX's traffic; the stack of Primus |
| experts | DeepEP's exchanges; launches of products; traffic of their weights |
| | kernels that order their rows and add them up; MaxText's masks; Megatron's biases |
| rows | some 320 that their authors' files describe otherwise; layers of LiBai's stages |
| | cuDNN's attention in TRL's runs; windows for packed documents (prime-rl, torchtune) |
| | PyTorch's RMS norm and cuDNN's attention in torchtitan's runs of late 2025 and later |
| | gradients in fp32 (YaFSDP); tokens sent in turn (torchtitan, NeMo Automodel, Primus) |
| | what MaxText's recipes keep of a layer |
| | dropout of 229 runs; frozen weights in fp8 of MLPerf's adapters |
| all | attention under a mask; words of software |

The same runs fix four widths of intervals, and how far intervals reach below (`scripts/widths.py`).
So `inside` is no blind figure.
Each source has one vote:

- `now`, `fitted`: the width in use, and the one that these runs give; in natural logarithms.
- `below`: the share of a width by which an interval reaches below; complete configurations fix it.
- `without one`: what the width would be without one of the sources.
- `inside`: runs inside their interval, in %%. `held out`: the same by widths from all other sources.
- `half width`: half of that interval, in %%.

%(widths)s
Two more widths were set on these runs. Too few sources fix them to hold one out: three that of the
host's time in eager PyTorch, two that of context ranks.

Classes of the same runs, again one vote a source. `held out`: by widths from all other sources.

%(classes)s
Next: [tables](accuracy-tables.md), [known misses](misses.md), [status](status.md).
"""


TABLES = """# Accuracy: tables

This page has the errors behind the page [accuracy](accuracy.md), which explains the columns. Values
in %%. `make validate` writes this page.

- [Runs that fitted no constant](#runs-that-fitted-no-constant): by source, software, GPU
- [Runs that fixed constants](#runs-that-fixed-constants): by software, GPU
- [Collectives](#collectives): by collective, size
- [Limits](#limits): what `make validate` fails on

## Runs that fitted no constant

By GPU:

%(outside_gpu)s
By software:

%(outside_stack)s
By source:

%(outside)s
## Runs that fixed constants

These errors are in sample: constants were fitted to these runs. `first` is `-` where a first
prediction had seen some of them.

By software:

%(stack)s
By GPU:

%(gpu)s
## Collectives

By collective, with the machine held out:

%(by_collective)s
By size, with the machine held out:

%(by_size)s
The rows that fixed most constants, in sample:

%(collectives)s
## Limits

`make validate` fails where a limit is missed. All values in %%, correlations x 100:

%(limits)s
Each source has limits of its own, too (`tests/validation/limits.json`). The median and the signed
mean of its errors may not grow, of time nor of memory.
`validate.py --write-limits` writes them anew.

### What the tests would notice

`scripts/perturb.py` moves %(moved)d constants one at a time by a factor, up and then down, and judges
these limits again.

%(not_seen)s
Next: [known misses](misses.md).
"""


MISSES = """# Known misses

This page lists what is known to miss, and by how much. `make validate` writes it. Seven pages say
why, as far as is known, and what was tried. An eighth does so for memory.

| page | says why these are off |
| --- | --- |
| [Experts](misses-experts.md) | mixtures: products, host thread, exchanges, formats, routing |
| [Experts in single programs](misses-programs.md) | what one trainer does with its mixtures |
| [Frameworks](misses-frameworks.md) | recomputation, Megatron-LM, DeepSpeed, adapters |
| [Networks](misses-networks.md) | several hosts, NCCL's choices, context ranks, pipelines |
| [Products and attention](misses-products.md) | rates of matrix products and of attention |
| [Eager PyTorch](misses-eager.md) | small kernels, losses, the host thread |
| [AMD, TPUs and Gaudi](misses-devices.md) | devices other than NVIDIA's, XLA |
| [Memory](misses-memory.md) | runs that are said not to fit, what frameworks keep |

On all of these pages:

- Errors are of step times, unless a page says otherwise.
- Too fast: the prediction is shorter than the measurement. Negative errors say the same.
- "N sources better" compares each source's median |error| before and after a change.
- "With the errors in view": a config was read anew after its error was known.
- A mechanism is modelled if code, a paper or a measurement shows it. No number comes from the runs
  that it is judged by, unless that is said.

## How far off

%(experts)s
%(deepspeed)s
%(others)s
%(networks)s
%(collectives_alone)s
Next: [experts](misses-experts.md), [status](status.md).
"""
