"""Limits by source (tests/validation/limits.json), for validate.py and perturb.py.

They are what the errors were when they were written, and a margin: whoever makes a source worse has to write them
anew (`validate.py --write-limits`), which the diff shows.
"""

import collections, json, os, statistics
from constants import root

PATH = os.path.join(root, 'tests/validation/limits.json')
SHARE, POINTS = 0.05, 0.3  # the margin: this share of the median |error|, and so many points (in %)
JUDGED = ('tight', 'outside')  # `use` of the steps whose absolute time is judged
COLLECTIVES = ('collectives', 'collectives-outside')
TABLES = ('steps', 'outside', *COLLECTIVES)


def errors(table, rows, results):
    """Errors in % by name: TABLE/SOURCE, or the machine for collectives; memory/SOURCE of steps and outside."""
    out = collections.defaultdict(list)
    for r, p in zip(rows, results):
        if p['predicted_s'] is None:
            continue
        if table in COLLECTIVES:
            if not p['use']:
                out['collectives/' + p['machine']].append(100 * p['error'])
        elif r['use'] in JUDGED:
            out[table + '/' + r['source']].append(100 * p['error'])
            if p['measured_memory_bytes']:
                off = p['predicted_memory_bytes'] / p['measured_memory_bytes'] - 1
                out['memory/' + r['source']].append(100 * off)
    return out


def figures(of_name):
    return {n: (statistics.median(map(abs, x)), statistics.mean(x)) for n, x in of_name.items()}


def write(of_name):
    rows = []
    for name, (median, signed) in sorted(figures(of_name).items()):
        margin = SHARE * median + POINTS
        cells = (json.dumps(name), median + margin, signed - margin, signed + margin)
        rows.append('  %s: {"median": %.2f, "signed": [%.2f, %.2f]}' % cells)
    with open(PATH, 'w') as out:
        out.write('{\n' + ',\n'.join(rows) + '\n}\n')


def read():
    with open(PATH) as kept:
        return json.load(kept)


def judged(of_name, kept):
    """(what, value, limit) of each figure that is to be at most its limit; no limit stands for a name: 0."""
    for name, (median, signed) in sorted(figures(of_name).items()):
        low, high = kept.get(name, {}).get('signed', (0, 0))
        yield name + ': median |error|', median, kept.get(name, {}).get('median', 0)
        yield name + ': signed mean from %+.1f' % ((low + high) / 2), abs(signed - (low + high) / 2), (high - low) / 2


def missed(of_name, kept):
    return [what for what, value, limit in judged(of_name, kept) if value > limit]
