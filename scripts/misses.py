"""What docs/misses.md says is known to miss: the words of each line stand here, with the rows that it speaks of. Its
figures are computed from those rows, so they are those of the last run of validate.py."""

import collections, csv, os, re, statistics
import limits
from constants import root

MIB = 1 << 20


def rows(table, also=None, **columns):
    """The rows of a table of tests/validation whose columns match these patterns, and of which `also` holds."""

    def speaks(row):
        return all(re.search(pattern, row[c]) for c, pattern in columns.items()) and (also is None or also(row))

    return table, speaks


def steps(also=None, **columns):
    return rows('outside', also, **columns)


def calls(also=None, table='collectives-outside', **columns):
    return rows(table, lambda r: not r['use'] and (also is None or also(r)), **columns)


def number(row, column):
    return float(row[column] or 0)


def set_to(row, key):
    """The whole number that a row sets a key to, 1 without one."""
    found = re.search(r'\.%s=(\d+)' % key, row['set'])
    return int(found[1]) if found else 1


def million(row):
    """The parameters in a model's name, such as GPT-2 124M; 0 where it has none."""
    found = re.search(r'(\d+)M\b', row['model'])
    return int(found[1]) if found else 0


# ---- what is printed of a line's errors: [(source, signed error in %)] ----


def span(errors):
    """From the smallest error to the largest: 26 to 54 % too fast; 15 % too fast to 19 % too slow."""
    off = sorted(round(e) for _, e in errors)
    low, high = off[0], off[-1]
    if low < 0 < high:
        return '%d %% too fast to %d %% too slow' % (-low, high)
    least, most = sorted((abs(low), abs(high)))
    start = '' if least == most else 'up to ' if least == 0 else '%d to ' % least
    return '%s%d %% too %s' % (start, most, 'fast' if low < 0 else 'slow')


def mostly(errors):
    """Without the tenth of the rows at either end."""
    deciles = statistics.quantiles([e for _, e in errors], n=10)
    return 'mostly ' + span([('', deciles[0]), ('', deciles[-1])])


def middle(errors):
    return span([('', statistics.median(e for _, e in errors))])


def off(errors):
    return '%.0f %% off' % statistics.median(abs(e) for _, e in errors)


def medians(errors):
    """Each source counts once."""
    of = collections.defaultdict(list)
    for source, error in errors:
        of[source].append(error)
    each = [statistics.median(x) for x in of.values()]
    far = sum(x <= -20 for x in each)
    return '%s, the median of %d sources; %d are at 20 %% and more' % (middle([('', x) for x in each]), len(each), far)


def at_least(errors):
    """Of rows that were chosen because they miss."""
    return '%d runs more than %d %% too fast' % (len(errors), min(-e for _, e in errors))


# ---- the lines: words, how their figure is printed, and of which rows ----

BRIDGE = 'Megatron-Bridge .experts'

EXPERTS = (
    ('in fp8: Grok-1', span, steps(source='dgxc-bench', model='Grok', gpu='^H100$', dtype='fp8')),
    (
        'in fp8: Qwen3 30B on H100, Megatron Bridge',
        span,
        steps(source=BRIDGE, model='Qwen3-30B', gpu='^H100$', dtype='^fp8$'),
    ),
    ('in mxfp8: Megatron Bridge to 26.04', span, steps(source=BRIDGE, framework='25.11|26.02|26.04', dtype='mxfp8')),
    (
        'the same as one CUDA graph with fused grouped products (26.06)',
        span,
        steps(source=BRIDGE, framework='26.06', dtype='mxfp8', set='cuda_graph=true'),
    ),
    ('gpt-oss 120B in bf16, Megatron Bridge', span, steps(source=BRIDGE, model='gpt-oss', dtype='bf16')),
    ("gpt-oss in Hugging Face's Trainer (B300)", span, steps(source='halo', model='gpt-oss', framework='^TRL')),
    ('Halo on 8 ranks (B300)', span, steps(source='halo', ep='^8$')),
    ('DeepEP over EFA, between AWS hosts', span, steps(source='dispatchers', set='deepep')),
    ("NCCL's all-to-all there", span, steps(lambda r: 'deepep' not in r['set'], source='dispatchers')),
    ('KempnerForge', span, steps(source='KempnerForge', model='MoE')),
    ("MegaScale-MoE's own runs and its baseline", span, steps(source='MegaScale-MoE')),
    (
        'cut by tensor ranks, over two hosts (MoE Parallel Folding)',
        span,
        steps(lambda r: set_to(r, 'expert_tensor') * number(r, 'ep') == 16, source='MoE Parallel Folding'),
    ),
    (
        "Hugging Face's Mixtral under FSDP1 over InfiniBand",
        span,
        steps(source='IB vs Ethernet', model='Mixtral', interconnect_inter='IB'),
    ),
    ('MaxText on B200', span, steps(framework='MaxText', gpu='^B200$')),
    ('torchtitan and prime-rl on 32 B300', span, steps(source='prime-rl$')),
    ('Qwen3 235B on 64 GB200 and GB300 (A4X)', span, steps(source='A4X', model='235B')),
    (
        'MaxText on TPU v5p and Ironwood',
        span,
        steps(source='tpu-recipes .(v5p|Ironwood, experts)', model='DeepSeek|gpt-oss|Qwen3|Llama-4'),
    ),
    ('Nemotron 3 Nano on GH200', span, steps(source='geodesic')),
    ('routing that nothing balances by force', span, steps(notes='routing is the router')),
)

DEEPSPEED = (
    ('whatever trains on it', medians, steps(framework='^(?!.*(Megatron|2021)).*DeepSpeed')),
    ('ZeRO-3 of 2021', span, steps(framework='DeepSpeed 2021 ZeRO-3')),
    (
        'Hugging Face trainers, 1,024 tokens and fewer',
        span,
        steps(lambda r: number(r, 'seq_len') <= 1024, framework='(HF Trainer|Lightning), DeepSpeed'),
    ),
)

OTHERS = (
    (
        'adapters of 7B and 13B in fp8 (NeMo 24.07)',
        span,
        steps(framework='NeMo 24.07', adapter='LoRA', model='-(7|13)B', dtype='fp8'),
    ),
    ('models of 124 to 300 M parameters', span, steps(lambda r: 124 <= million(r) <= 300)),
    ("Hugging Face's adapters under a padding mask", span, steps(source='universal-llm-trainer', adapter='.')),
    ("torchao's fp8 training with a scale a row, on H100", span, steps(notes='a scale a row', gpu='H100')),
    ('the same on MI300X', span, steps(notes='a scale a row', gpu='MI300X')),
    (
        'Transformer Engine alone, without Megatron, on H100',
        span,
        steps(source='TransformerEngine issues', gpu='^H100$'),
    ),
    ('the same on MI300X', span, steps(source='TransformerEngine issues', gpu='MI300X')),
    (
        'lightning-thunder and its torch.compile runs with FSDP2',
        span,
        steps(source='lightning-thunder', framework='^(?!.*FSDP1).*torch.compile'),
    ),
    ('MaxText on H100', span, steps(framework='MaxText', gpu='^H100$')),
    ('TensorFlow 2 with XLA (ELECTRA)', span, steps(framework='TensorFlow 2')),
    ('vision transformers on T5X (A100)', span, steps(source='JAX-Toolbox ViT')),
    (
        "dense bf16 of NVIDIA's recipes on B200",
        span,
        steps(source='together-dgxc|NVFP4 bench', gpu='^B200$', dtype='bf16', model='Llama|Nemotron4'),
    ),
    ('GPT-2 XL under FSDP2 without a fused AdamW (H100)', span, steps(source='torch-mojo', gpu='^H100$', model='XL')),
    ("prime-rl's own benchmarks", span, steps(source='prime-rl .benchmarks')),
    ("an RTX A6000 in torchtune's table", span, steps(framework='torchtune', gpu='RTX A6000')),
)

NETWORKS = (
    (
        'ring attention over 4 context ranks and more',
        span,
        steps(lambda r: number(r, 'cp') >= 4, source='^pytorch/torchtitan$'),
    ),
    (
        'ring attention on TPU v5p, 65k to 14M tokens',
        span,
        steps(source='tpu-recipes .v5p', model='wide heads'),
    ),
    (
        'FSDP1 units that are smaller than a recomputed block, over InfiniBand',
        span,
        steps(set='unit_params', model='72B', interconnect_inter='IB'),
    ),
    (
        'fully sharded 70B on 32 and more B200 hosts',
        span,
        steps(lambda r: number(r, 'n_gpus') >= 256, gpu='^B200$', model='70B', framework='Megatron-Bridge'),
    ),
    (
        '405B in nvfp4 with its pipeline over InfiniBand (B200)',
        span,
        steps(gpu='^B200$', model='405B', dtype='nvfp4', interconnect_inter='IB'),
    ),
    ("runs over Omni-Path without NCCL's plug-in for it (Lucie)", middle, steps(source='Lucie')),
    ('one TCP flow between two AWS hosts of A10G', span, steps(source='A10G', interconnect_inter='TCP')),
    ('pipelines over Ethernet of 1 to 25 Gb/s (DT-FM)', off, steps(source='DT-FM')),
    ('the same with tensor 8 and pipeline 8', span, steps(source='DT-FM', tp='^8$', pp='^8$')),
    ("nanotron's pipelines that stall", at_least, rows('stalled', framework='^nanotron', pp='^([2-9]|[1-9][0-9])')),
)

COLLECTIVES = (
    (
        'MI300X and MI250X across hosts below 64 MiB',
        mostly,
        calls(lambda r: number(r, 'bytes') < 64 * MIB and number(r, 'n_nodes') > 1, gpu='MI300X|MI250X'),
    ),
    (
        'all-gathers below 16 MiB of one B200 cluster over RoCE (gke-dranet)',
        span,
        calls(lambda r: number(r, 'bytes') < 16 * MIB, id='^gke-dranet-[0-9]'),
    ),
    (
        'all-gather of 32 to 512 MiB on ten full H100 hosts',
        span,
        calls(
            lambda r: 32 * MIB <= number(r, 'bytes') <= 512 * MIB,
            'collectives',
            id='^h100-c01-',
            collective='all_gather',
            n_gpus='^80$',
        ),
    ),
    ('all-reduce over 20 racks of NVL72', span, calls(id='^coreweave-gb200-', n_nodes='^20$')),
    (
        'GPUDirect-TCPXO, all-reduce of 8 to 128 MiB',
        span,
        calls(lambda r: 8 * MIB <= number(r, 'bytes') <= 128 * MIB, id='^gcp-a3mega-', collective='all_reduce'),
    ),
    (
        'peer-to-peer between GeForce cards on two sockets, from 8 MiB on',
        span,
        calls(lambda r: number(r, 'bytes') >= 8 * MIB, id='^rtx4090-eight-002'),
    ),
)
# A line without rows: no published run has it.
UNMEASURED = (
    ('GeForce cards without peer-to-peer behind one PCIe switch', 'too fast: contention is not counted'),
)
TABLES = {
    'experts': EXPERTS,
    'deepspeed': DEEPSPEED,
    'others': OTHERS,
    'networks': NETWORKS,
    'collectives_alone': COLLECTIVES,
}


def figure(form, where, tables):
    table, speaks = where
    errors = [(r['source'], 100 * p['error']) for r, p in tables[table] if p['predicted_s'] is not None and speaks(r)]
    return form(errors) if errors else 'not predicted'


def lines(tables):
    """Returns by name the lines of each table of the page. tables: (row, prediction) pairs by the table's name."""
    stalled = [(r, p) for r, p in tables['steps'] if p['predicted_s'] and p['measured_s'] > 1.6 * p['predicted_s']]
    tables = tables | {'stalled': stalled}
    page = {name: [(what, figure(form, where, tables)) for what, form, where in of] for name, of in TABLES.items()}
    page['collectives_alone'] += UNMEASURED
    return page


def without_rows():
    """The lines that speak of no row: a table of tests/validation was changed, and its line here was not."""
    kept = {}
    for name in limits.TABLES:
        with open(os.path.join(root, 'tests/validation', name + '.csv')) as table:
            kept[name] = list(csv.DictReader(table))
    kept['stalled'] = kept['steps']
    lines = [line for of in TABLES.values() for line in of]
    return [what for what, _, (name, speaks) in lines if not any(map(speaks, kept[name]))]
