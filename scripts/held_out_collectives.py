#!/usr/bin/env python3
"""Predicts the published collectives of each machine with constants that no row of it fixed, for validate.py.

usage: held_out_collectives.py [-v]; -v also lists the machines

A machine is what rows have before the last "-" of their ids: one cluster of one source. For each of them the
constants of collectives that other machines see too (configs/model/nccl.yaml, configs/fabrics) are refitted to the
others' rows, where each machine has one vote. Those that it alone sees take what was known before anybody measured:
NCCL's own number, a full rate, or what configs/fabrics/ethernet-unknown.yaml has. The program itself then predicts
its rows.
"""

import collections, csv, math, os, re, statistics, sys
import accuracy
from constants import Home, file_of, read_value, root, span, write_value
from crossvalidate import solve

STEPSIM = os.path.join(root, 'build/release/stepsim')
TABLES = ('collectives', 'collectives-outside')
STEP = 0.05  # of a constant, for its column of the Jacobian
SOFT = 0.1  # log error beyond which a row pulls less (soft L1)
SEEN = 0.003  # mean square of d log(time) / d log(constant) of a machine's rows from which it sees a constant
STAY = 0.01  # how strongly a constant stays: in machines' votes for a move by a factor e, at an error of 1
MOST = math.log(4)  # most that a refit moves a constant
FABRICS = ('infiniband', 'roce', 'slingshot', 'slingshot-polaris', 'efa', 'efa-p4d', 'tcp', 'tcpx', 'tcpxo')
# Files of one machine or generation, and what its network is elsewhere.
CLASS = {'slingshot-polaris': 'slingshot', 'efa-p4d': 'efa'}
STAND_IN = 'ethernet-unknown'
KEYS = """rate.share rate.node ring.hiding ring.ll ring.ll_far ring.ll128 ring.simple_small ring.simple_middle
    ring.simple_large ring.block_ll ring.block_ll128 tree.ll tree.ll128 tree.block alltoall.share alltoall.base
    alltoall.peer_small alltoall.peer_large pair.share pair.far_share""".split()
WIDTHS = ('uncertainty.small', 'uncertainty.large')
# What the networks' constants were judged to be before their rows, where the stand-in is no better.
JUDGED = {
    'efa ring.simple_small': 40,
    'efa ring.simple_middle': 40,
    'efa ring.simple_large': 40,
    'efa tree.ll': 20,
    'efa tree.ll128': 20,
}
# What each would be had nobody measured it; None: the value stands on judgement already.
SHARED = {
    'nvlink_reached': 1,
    'nvlink_beside_nics': 1,
    'pcie_reached': None,
    'host_copy_share': None,
    'ramp': 0,
    'pass_launch': 0,
    'one_process': 0,
    'nvls_rate': None,
    'nvls_tree_share': 1,
    'net_overhead_amd': 2,
    'tree_posting': 1,
    'tree_ll128_block': 1,
    'alltoall_nvlink': 1,
    'alltoall_host': 0,
    'few_channels_share': 1,
}


def load():
    rows = []
    for table in TABLES:
        with open(os.path.join(root, 'tests/validation', table + '.csv')) as f:
            rows += [dict(r, table=table) for r in csv.DictReader(f)]
    blank = ('system', 'algorithm', 'protocol', 'first_error')
    return [r | {c: r.get(c) or '' for c in blank} for r in rows if not r['use']]


def machine(row):
    return re.sub('-[0-9]+$', '', row['id'])


NAMES = {
    'infiniband': 'InfiniBand',
    'roce': 'RoCE',
    'slingshot': 'Slingshot',
    'slingshot-polaris': 'Slingshot',
    'efa': 'EFA',
    'efa-p4d': 'EFA',
    'tcp': 'TCP',
    'tcpx': 'TCPX, TCPXO',
    'tcpxo': 'TCPX, TCPXO',
}


def kind(row):
    """The class of machine by what joins its GPUs."""
    across = row['joined']
    if row['gpu'].startswith('MI'):
        return 'AMD, across hosts' if across else 'AMD, one host'
    if across:
        return NAMES.get(across, across)
    return next((name for word, name in INSIDE.items() if word in row['intra']), 'NVLink, one host')


INSIDE = {'PCIe': 'PCIe', 'NVL72': 'NVL72'}


class Constants:
    """Those that some row sees, their values and what they would be without the rows."""

    def __init__(self):
        self.of, self.before, self.widths = {}, {}, {}
        nccl = open(file_of(root, 'model/nccl')).read()
        for key, before in SHARED.items():
            begin, end = plain_span(nccl, key)
            self.of[key] = ('model/nccl', key, float(nccl[begin:end]))
            self.before[key] = before
        for fabric in FABRICS:
            for key in KEYS:
                value = self.number('fabrics/' + fabric, key)
                if value:
                    name = fabric + ' ' + key
                    self.of[name] = ('fabrics/' + fabric, key, value)
                    judged = JUDGED.get(name) if fabric == 'efa' else self.number('fabrics/' + STAND_IN, key)
                    self.before[name] = judged
            for key in WIDTHS:
                self.widths[fabric + ' ' + key] = ('fabrics/' + fabric, key, self.number('fabrics/' + fabric, key))

    def number(self, name, key):
        try:
            return read_value(root, {'files': [name], 'path': key})
        except SystemExit:
            return None

    def put(self, home, values):
        """Writes these values into the files of a copy of configs/, and all others as they are."""
        known = self.of | self.widths
        values = {name: values.get(name, value) for name, (_, _, value) in known.items()}
        for fabric in FABRICS:
            at_least(values, fabric, ('ring.simple_small', 'ring.simple_middle', 'ring.simple_large'))
            at_least(values, fabric, ('ring.ll', 'ring.ll_far'))
            at_least(values, fabric, ('alltoall.peer_small', 'alltoall.peer_large'))
        text = {}
        for name, (file, key, _) in known.items():
            value = values[name]
            if is_share(key):
                value = min(value, 1)
            if key == 'ring.hiding':
                value = max(value, 1)
            if file not in text:
                text[file] = open(file_of(root, file)).read()
            begin, end = span(text[file], key) if '.' in key else plain_span(text[file], key)
            text[file] = text[file][:begin] + '%.6g' % value + text[file][end:]
        for file, t in text.items():
            with open(file_of(home.path, file), 'w') as out:
                out.write(t)


def is_share(key):
    return re.search('share|nvlink|reached', key)


def plain_span(text, key):
    """Where the number of a key without a section stands."""
    return re.search(r'^%s:\n  value: ([0-9.e-]+)' % key, text, re.M).span(1)


def at_least(values, fabric, keys):
    """A larger block's hop, or a farther one, takes no less."""
    least = 0
    for key in keys:
        name = fabric + ' ' + key
        values[name] = least = max(least, values[name])


def predict(home, rows, constants, values):
    """What the program says with these constants, or None where it cannot predict a row."""
    constants.put(home, values)
    cells = [{k: v for k, v in r.items() if k not in ('table', 'joined')} for r in rows]
    found = home.results(STEPSIM, home.table(cells))
    return [p if p['predicted_s'] else None for p in found]


def log_error(p):
    return math.log(p['predicted_s'] / p['measured_s'])


class Fit:
    def __init__(self, home, rows):
        self.home, self.constants = home, Constants()
        now = predict(home, rows, self.constants, {})
        # joined: the file of configs/fabrics that joins the hosts; '' on one host
        self.rows = [r | {'joined': p['fabric'] or ''} for r, p in zip(rows, now) if p]
        self.now = [p for p in now if p]
        self.residual = [log_error(p) for p in self.now]
        self.members = collections.defaultdict(list)
        for i, r in enumerate(self.rows):
            self.members[machine(r)].append(i)
        self.column, self.sees = {}, {}
        for name, (file, _, value) in self.constants.of.items():
            self.differentiate(name, file, value)

    def differentiate(self, name, file, value):
        """Predicts the rows that may see a constant with another value of it."""
        by = 1 - STEP if is_share(name) else 1 + STEP
        of, _, fabric = file.partition('/')
        # RCCL takes NCCL's corrections over, and its rows fix none of them.
        counts = lambda r: not r['gpu'].startswith('MI') if of == 'model' else r['joined'] == fabric
        mine = [i for i, r in enumerate(self.rows) if counts(r)]
        column = {}
        found = predict(self.home, [self.rows[i] for i in mine], self.constants, {name: value * by}) if mine else []
        for i, p in zip(mine, found):
            moved = (log_error(p) - self.residual[i]) / math.log(by)
            if abs(moved) > 1e-4:
                column[i] = moved
        sees = {m: sum(column.get(i, 0) ** 2 for i in rows) / len(rows) for m, rows in self.members.items()}
        if max(sees.values()) > SEEN:
            self.column[name], self.sees[name] = column, sees

    def others_fix(self, held):
        """The constants that rows of other machines fix, and those that only rows of `held` see."""
        fixed, alone = [], []
        for name, sees in self.sees.items():
            if any(x > SEEN for m, x in sees.items() if m != held):
                fixed.append(name)
            else:
                alone.append(name)
        return fixed, alone

    def refit(self, held):
        """The constants' values without the rows of `held`."""
        fixed, alone = self.others_fix(held)
        move = [0.0] * len(fixed)
        columns = [self.column[name] for name in fixed]
        votes = [(i, 1 / len(mine)) for m, mine in self.members.items() if m != held for i in mine]
        for _ in range(8):
            a = [[STAY if k == l else 0.0 for l in range(len(fixed))] for k in range(len(fixed))]
            b = [0.0] * len(fixed)
            for i, vote in votes:
                mine = [(k, c[i]) for k, c in enumerate(columns) if i in c]
                left = self.residual[i] + sum(d * move[k] for k, d in mine)
                weight = vote / math.sqrt(1 + (left / SOFT) ** 2)
                for k, d in mine:
                    b[k] -= weight * d * self.residual[i]
                    for l, e in mine:
                        a[k][l] += weight * d * e
            move = [min(max(x, -MOST), MOST) for x in solve(a, b)]
        values = {name: self.constants.of[name][2] * math.exp(x) for name, x in zip(fixed, move)}
        for fabric in FABRICS:  # a network of one machine has elsewhere the width of what it counts as
            if {machine(r) for r in self.rows if r['joined'] == fabric} == {held}:
                for key in WIDTHS:
                    values[fabric + ' ' + key] = self.constants.number('fabrics/' + CLASS.get(fabric, STAND_IN), key)
        for name in alone:
            fabric, _, key = name.rpartition(' ')
            before = values.get('%s %s' % (CLASS.get(fabric), key), self.constants.before[name])
            if before is not None:
                values[name] = before
        return values

    def held_out(self):
        """Predictions by row index, each with its machine held out."""
        out = {}
        for m, mine in self.members.items():
            values = self.refit(m)
            found = predict(self.home, [self.rows[i] for i in mine], self.constants, values)
            if None in found:
                raise SystemExit('held-out constants of %s are refused: %s' % (m, values))
            out.update(zip(mine, found))
        return [out[i] for i in range(len(self.rows))]


DECADES = ((1 << 16, 'up to 64 KiB'), (1 << 20, 'to 1 MiB'), (1 << 24, 'to 16 MiB'), (1 << 60, 'larger'))


def decade(row):
    return next(name for most, name in DECADES if int(row['bytes']) < most or int(row['bytes']) == most == 1 << 16)


def cells(name, rows, now, held):
    size = lambda found: [100 * abs(p['error']) for p in found]
    first = [abs(float(r['first_error'])) for r in rows if r['first_error']]
    return [
        name,
        len({machine(r) for r in rows}),
        len(rows),
        '%.1f' % statistics.median(first) if len(first) == len(rows) else '-',
        '%.1f' % statistics.median(size(now)),
        *('%.1f' % x for x in (statistics.median(size(held)), accuracy.percentile(size(held), 90))),
        '%+.1f' % (100 * statistics.mean(p['error'] for p in held)),
        '%.0f' % (100 * statistics.mean(map(accuracy.inside, held))),
    ]


HEAD = ['machines', 'rows', 'first', 'in sample', 'median', 'p90', 'signed', 'inside']


def groups(fit, held, key, order=None):
    """Cells of a table by what `key` takes from a row."""
    of = collections.defaultdict(list)
    for i, r in enumerate(fit.rows):
        of[key(r)].append(i)
    pick = lambda from_, mine: [from_[i] for i in mine]
    names = [n for n in order if n in of] if order else sorted(of, key=lambda n: -len(of[n]))
    return [cells(n, pick(fit.rows, of[n]), pick(fit.now, of[n]), pick(held, of[n])) for n in names]


Figures = collections.namedtuple('Figures', 'machines mean median p90 inside')


def by_machine(fit, held):
    """In %, from 1 MiB on and below: the mean and the median of the machines' medians of |error|, the mean of their
    90th percentiles, and of their shares of rows inside the interval."""
    out = []
    for large in (True, False):
        of = collections.defaultdict(list)
        for r, p in zip(fit.rows, held):
            if (int(r['bytes']) >= 1 << 20) == large:
                of[machine(r)].append(p)
        size = [[100 * abs(p['error']) for p in v] for v in of.values()]
        medians = [statistics.median(x) for x in size]
        p90 = statistics.mean(accuracy.percentile(x, 90) for x in size)
        inside = statistics.mean(100 * statistics.mean(map(accuracy.inside, v)) for v in of.values())
        out.append(Figures(len(of), statistics.mean(medians), statistics.median(medians), p90, inside))
    return out


def one_vote(fit, held):
    names = ('from 1 MiB on', 'below 1 MiB')
    return [[n, f[0], *('%.1f' % x for x in f[1:])] for n, f in zip(names, by_machine(fit, held))]


def sized(row):
    return 'from 1 MiB on' if int(row['bytes']) >= 1 << 20 else 'below 1 MiB'


def joined(row):
    return kind(row) + ', ' + sized(row)


VOTE_HEAD = ['one machine, one vote', 'machines', 'mean of medians', 'median of medians', 'mean of p90', 'inside']


def tables(fit, held):
    """The tables of docs/accuracy.md."""
    return {
        'one_vote_collectives': accuracy.table(VOTE_HEAD, one_vote(fit, held)),
        'by_kind': accuracy.table(
            ['network, size', *HEAD], groups(fit, held, joined, sorted(set(map(joined, fit.rows))))
        ),
        'by_collective': accuracy.table(['collective', *HEAD], groups(fit, held, lambda r: r['collective'])),
        'by_size': accuracy.table(
            ['bytes', *HEAD],
            groups(fit, held, decade, [name for _, name in DECADES])
            + groups(fit, held, sized)
            + groups(fit, held, lambda r: 'all'),
        ),
    }


def measure():
    """Returns the fit and the predictions of its rows, each with its machine held out."""
    with Home() as home:
        fit = Fit(home, load())
        return fit, fit.held_out()


def main():
    fit, held = measure()
    found = tables(fit, held)
    if '-v' in sys.argv[1:]:
        found['machines'] = accuracy.table(['machine', *HEAD], groups(fit, held, lambda r: machine(r) + ' ' + sized(r)))
        for m in fit.members:
            print(m, 'alone fixes', ', '.join(fit.others_fix(m)[1]) or 'nothing')
    print('\n'.join(found.values()))


if __name__ == '__main__':
    main()
