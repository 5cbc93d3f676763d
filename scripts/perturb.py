#!/usr/bin/env python3
"""Moves constants, one at a time, and says which limit by source notices.

usage: perturb.py [NAME...]

The constants are those of tests/validation/parameters.json: `constants`, which rows fixed, and `perturbed`, which are
judged. Each is multiplied by its `step`; where no limit notices, divided by it. The rows that see it are predicted
again. Fails where a fitted constant is not seen. `make validate` runs all of them.
"""

import csv, json, os, re, sys
import limits
from constants import Home, read_value, root, write_value

STEP = 1.25
STEPSIM = os.path.join(root, 'build/release/stepsim')


def load(table):
    return list(csv.DictReader(open(os.path.join(root, 'tests/validation', table + '.csv'))))


def base():
    """{table: (rows, results)} with the constants as they are, of rows that may have a limit."""
    out = {}
    for table in limits.TABLES:
        rows = [r for r in load(table) if table in limits.COLLECTIVES or r['use'] in limits.JUDGED]
        with Home() as home:
            out[table] = rows, home.results(STEPSIM, home.table(rows))
    return out


def likes(name):
    """The GPU of a file and those whose files are `like` it, as rows name them."""
    names = {name}
    for file in os.listdir(os.path.join(root, 'configs/gpus')):
        text = open(os.path.join(root, 'configs/gpus', file)).read()
        if re.search(r'^like: %s$' % re.escape(name), text, re.M):
            names.add(file[: -len('.yaml')])
    return {n.split('-')[0].upper() for n in names}


def touched(constant, fitted, table, rows):
    """Indices of the rows that may see a constant."""
    if table in limits.COLLECTIVES:
        network = constant['files'][0].startswith('fabrics/') or constant['files'][0].startswith('model/nccl')
        return range(len(rows)) if network else []
    gpus = set().union(*(likes(f.split('/')[1]) for f in constant['files'] if f.startswith('gpus/')))
    words = lambda r: r['id'] if fitted else ' '.join((r['id'], r['framework'], r['gpu'], r['interconnect_inter']))
    sees = re.match if fitted and table == 'steps' else re.search
    pattern = constant.get('outside', constant['rows']) if table == 'outside' else constant['rows']
    return [
        i
        for i, r in enumerate(rows)
        if r['use'] in limits.JUDGED and sees(pattern, words(r), re.I) and (not gpus or r['gpu'].upper() in gpus)
    ]


def missed(table, rows, results, kept):
    return limits.missed(limits.errors(table, rows, results), kept)


def notices(constant, fitted, to, tables, already, kept):
    """The limits that hold now and are missed with the constant at another value. already: those missed now."""
    out = []
    with Home() as home:
        write_value(home.path, constant, to)
        for table, (rows, results) in tables.items():
            mine = touched(constant, fitted, table, rows)
            if not mine:
                continue
            moved = list(results)
            for i, p in zip(mine, home.results(STEPSIM, home.table([rows[i] for i in mine]))):
                moved[i] = p
            out += [what for what in missed(table, rows, moved, kept) if what not in already[table]]
    return out


def run(tables, chosen=()):
    """Prints the table. Returns its rows: name, whether fitted, step, the limits that notice."""
    known = json.load(open(os.path.join(root, 'tests/validation/parameters.json')))
    kept, out = limits.read(), []
    unknown = set(chosen) - set(known['constants']) - set(known['perturbed'])
    if unknown:
        raise SystemExit('no constant %s in tests/validation/parameters.json' % ', '.join(sorted(unknown)))
    already = {table: missed(table, *judged, kept) for table, judged in tables.items()}
    print('constants moved one at a time: by, now, and the limit that notices first')
    for group in ('constants', 'perturbed'):
        for name, constant in known[group].items():
            if chosen and name not in chosen:
                continue
            fitted, value, step = group == 'constants', read_value(root, constant), constant.get('step', STEP)
            seen = []
            for way, to in (('x', value * step), ('/', value / step)):
                to = min(max(to, constant.get('low', 0)), constant.get('high', float('inf')))
                seen = seen or ([way] + what if (what := notices(constant, fitted, to, tables, already, kept)) else [])
            print(
                '  %-20s %s%-5g %9g  %s'
                % (
                    name,
                    seen[0] if seen else 'x/',
                    step,
                    value,
                    '%s (%d in all)' % (seen[1], len(seen) - 1)
                    if seen
                    else 'NOT SEEN' + ('' if fitted else ': no row of ours would notice'),
                ),
                flush=True,
            )
            out.append((name, constant, fitted, step, seen[1:]))
    print('  %d constants moved, %d not seen' % (len(out), sum(not x[4] for x in out)))
    return out


def unseen_fitted(moved):
    return [name for name, _, fitted, _, seen in moved if fitted and not seen]


if __name__ == '__main__':
    sys.exit(1 if unseen_fitted(run(base(), sys.argv[1:])) else 0)
