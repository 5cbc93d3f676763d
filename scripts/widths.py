#!/usr/bin/env python3
"""Fits the widths of intervals that runs of outside.csv fix, and judges each source by the widths of all others.

A width is as narrow as lets INSIDE of its rows lie in their interval, one vote a source. A row belongs to the first of
WIDTHS that its interval has; the other parts of its interval stay. BELOW, the share of a width by which an interval
reaches below its prediction, is that of the rows' own tails. All are fitted in turn until they settle.

usage: widths.py RESULTS.json [--write]

RESULTS.json is of `stepsim validate tests/validation/outside.csv --json RESULTS.json`. --write puts the widths into
configs/. `make validate` prints the table and judges the rows that lie inside with their source held out.
"""

import argparse, collections, csv, json, math, os, statistics
from constants import read_value, root, write_value

INSIDE = 0.9
TAIL = (1 + INSIDE) / 2
ROUNDS = 6
MOST_BELOW = 1  # what a model leaves out takes time: no interval reaches further below than above


def of_interval(name):
    """Where that constant of configs/model/interval.yaml stands, for constants.py."""
    return {'files': ['model/interval'], 'path': name + '.value'}


def off(result):
    """log(measured / predicted) of a result of `stepsim validate`."""
    return math.log(result['measured_s'] / result['predicted_s'])


def needed(result, below):
    """The least half-width that lets it lie inside."""
    return off(result) if off(result) > 0 else -off(result) / below


# name: where it stands, and the part of the interval that it is (`interval90_parts` of `stepsim validate`); of a row of
# whose configuration something was inferred no part says so, but its quality.
WIDTHS = {
    'unknown_maker': (of_interval('unknown_maker'), 'gpu'),
    'deepspeed': ({'files': ['stacks/deepspeed', 'stacks/deepspeed-2021'], 'path': 'interval.value'}, 'software'),
    'experts': (of_interval('experts'), 'experts'),
    'experts_eager': (of_interval('experts_eager'), 'experts'),
    'inferred': (of_interval('inferred'), None),
}
BELOW = 'below'
CONSTANTS = {BELOW: of_interval(BELOW), **{n: c for n, (c, _) in WIDTHS.items()}}


class Row:
    """A row's result, the widths of WIDTHS that its interval has, and the square of the rest."""

    def __init__(self, cells, result, now):
        self.source = cells['source']
        self.cells = cells
        self.result = result
        parts = result['interval90_parts']
        self.has = [
            name
            for name, (_, part) in WIDTHS.items()
            if (abs(parts.get(part, 0) - now[name]) < 1e-9 if part else cells['quality'] != 'A')
        ]
        whole = math.log(result['interval90_s'][1] / result['predicted_s'])
        self.rest = max(whole**2 - sum(now[n] ** 2 for n in self.has), 0)

    def width(self, widths, without=None):
        return math.sqrt(self.rest + sum(widths[n] ** 2 for n in self.has if n != without))


def load(rows, results):
    """Returns the widths as they are, and the Rows that are predicted."""
    now = {name: read_value(root, constant) for name, constant in CONSTANTS.items()}
    of = {p['id']: p for p in results}
    rows = list(rows)
    if [r['id'] for r in rows if r['id'] not in of] or len(rows) != len(of):
        raise SystemExit('the results are of another table: their rows differ (make them anew with `stepsim validate`)')
    return now, [Row(r, of[r['id']], now) for r in rows if of[r['id']]['predicted_s'] is not None]


def by_source(rows):
    out = collections.defaultdict(list)
    for r in rows:
        out[r.source].append(r)
    return out


def quantile(values, share):
    """The least of (value, vote) that has this share of the votes at or below it."""
    votes, wanted = 0, share * sum(v for _, v in values) - 1e-9
    for value, vote in sorted(values):
        votes += vote
        if votes >= wanted:
            return value


def least(rows, name, widths):
    """The least width of that name that lets INSIDE of its rows lie inside."""
    least_of = []
    for of_source in by_source(rows).values():
        for r in of_source:
            other = r.width(widths, without=name)
            least_of.append((math.sqrt(max(needed(r.result, widths[BELOW]) ** 2 - other**2, 0)), 1 / len(of_source)))
    return quantile(least_of, INSIDE)


def balanced(rows, widths):
    """How far the shortest steps lie below their predictions, for how far the longest lie above, both in half-widths.

    Of complete configurations alone: what others leave out is often guessed too fast.
    """
    complete = by_source(r for r in rows if 'inferred' not in r.has)
    size = [(off(r.result) / r.width(widths), 1 / len(mine)) for mine in complete.values() for r in mine]
    return quantile([(-z, vote) for z, vote in size], TAIL) / quantile(size, TAIL)


def fit(rows, now):
    """BELOW and all widths from these rows. Widths that no row has stay as they are."""
    widths = dict(now)
    for _ in range(ROUNDS):
        for name in WIDTHS:
            mine = [r for r in rows if r.has[:1] == [name]]
            if mine:
                widths[name] = least(mine, name, widths)
        widths[BELOW] = min(balanced(rows, widths), MOST_BELOW)
    return widths


def held_out(rows, now):
    """The widths for each source, from all others."""
    return {s: fit([r for r in rows if r.source != s], now) for s in by_source(rows)}


def inside(rows, widths_of):
    """Share of the rows inside their interval and half its width, in %, one vote a source."""
    shares, halves = [], []
    for source, of_source in by_source(rows).items():
        of = widths_of(source)
        own = [r.width(of) for r in of_source]
        shares.append(statistics.mean(needed(r.result, of[BELOW]) <= w for r, w in zip(of_source, own)))
        halves.append(statistics.mean((math.exp(w) - math.exp(-of[BELOW] * w)) / 2 for w in own))
    return 100 * statistics.mean(shares), 100 * statistics.mean(halves)


HEAD = ['width', 'rows', 'sources', 'now', 'fitted', 'without one', 'inside', 'held out', 'half width']
HELD = HEAD.index('inside') + 1


def table(rows, now, held):
    """Lines of a table, one a width; the last has all rows.

    HEAD: its rows and sources; the width now, fitted, and as fitted without one source; rows inside now and with their
    source held out, half the interval then, in %. BELOW has all rows. held: the widths of held_out().
    """
    fitted, lines = fit(rows, now), []
    for name in (*WIDTHS, BELOW):
        mine = rows if name == BELOW else [r for r in rows if r.has[:1] == [name]]
        if not mine:
            raise SystemExit('no row has the width %s of configs/: the results are of another' % name)
        own = [h[name] for h in held.values()]
        values = ['%.2f' % now[name], '%.2f' % fitted[name], '%.2f to %.2f' % (min(own), max(own))]
        shares = inside(mine, lambda _: now)[:1] + inside(mine, held.get)
        lines.append([name, len(mine), len(by_source(mine)), *values, *('%.1f' % x for x in shares)])
    return lines


def gpus(row):
    return int(row.cells['n_gpus'])


def part(row, name):
    return row.result['interval90_parts'].get(name, 0)


CLASSES = {
    'all': lambda r: True,
    'complete (quality A)': lambda r: r.cells['quality'] == 'A',
    'something inferred (B)': lambda r: r.cells['quality'] == 'B',
    'more of it inferred (C)': lambda r: r.cells['quality'] == 'C',
    '1 GPU': lambda r: gpus(r) == 1,
    '2 to 8 GPUs': lambda r: 1 < gpus(r) <= 8,
    '9 to 64 GPUs': lambda r: 8 < gpus(r) <= 64,
    'above 64 GPUs': lambda r: gpus(r) > 64,
    'dense': lambda r: not part(r, 'experts'),
    'with experts': lambda r: part(r, 'experts') > 0,
    'a GPU whose steps were timed': lambda r: not part(r, 'gpu'),
    'another GPU': lambda r: part(r, 'gpu') > 0,
}
CLASSES_HEAD = ['class', 'rows', 'sources', 'inside', 'half width', 'held out', 'half width then']


def classes(rows, now, held):
    """Lines of a table, one a class of runs: see CLASSES_HEAD. held: the widths of held_out()."""
    lines = []
    for name, has in CLASSES.items():
        mine = [r for r in rows if has(r)]
        if mine:
            shares = inside(mine, lambda _: now) + inside(mine, held.get)
            lines.append([name, len(mine), len(by_source(mine)), *('%.1f' % x for x in shares)])
    return lines


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('results')
    a.add_argument('--write', action='store_true')
    o = a.parse_args()
    cells = csv.DictReader(open(os.path.join(root, 'tests/validation/outside.csv')))
    now, rows = load(cells, json.load(open(o.results))['results'])
    held = held_out(rows, now)
    for line in [HEAD, *table(rows, now, held)]:
        print('  %-14s %5s %8s %6s %7s  %-13s %7s %9s %11s' % tuple(line))
    for line in [CLASSES_HEAD, *classes(rows, now, held)]:
        print('  %-28s %5s %8s %7s %11s %9s %16s' % tuple(line))
    if o.write:
        for name, width in fit(rows, now).items():
            write_value(root, CONSTANTS[name], round(width, 2))


if __name__ == '__main__':
    main()
