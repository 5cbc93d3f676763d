#!/usr/bin/env python3
"""Predicts the published measurements of tests/validation and fails beyond the limits below. The whole run takes some
minutes and writes docs/accuracy.md, docs/accuracy-tables.md and docs/misses.md."""

import argparse, collections, csv, json, math, os, statistics, subprocess, sys
import accuracy, held_out_collectives, limits, misses, perturb, widths
from accuracy import percentile
from constants import root
from crossvalidate import Fit

stepsim = os.path.join(root, 'build/release/stepsim')
words = argparse.ArgumentParser(description=__doc__)
kind = words.add_mutually_exclusive_group()
kind.add_argument(
    '--sample',
    action='store_true',
    help='for the test command: every tenth tight step in a few seconds, without cross-validation, against doubled '
    'limits, since so few rows swing; fails where docs/accuracy.md is stale',
)
kind.add_argument(
    '--write-limits',
    action='store_true',
    help='also write tests/validation/limits.json, the limits by source, from the present errors',
)
asked = words.parse_args()
sample = asked.sample
slack = 2.0 if sample else 1.0
failed = []
checks = []  # what, value, limit, whether at least, whether met


def check(what, value, limit, at_least=False, on_page=True):
    """Prints a figure, its limit and the margin that is left. Limits by source stand in a file, not on the page."""
    limit = limit if at_least else limit * slack
    margin = value - limit if at_least else limit - value
    print(
        '  %-66s %6.1f %%  (%s %g %%, margin %.1f)%s'
        % (what, value, 'at least' if at_least else 'limit', limit, margin, '' if margin >= 0 else '  FAILED')
    )
    if on_page:
        checks.append((what, value, limit, at_least, margin >= 0))
    if margin < 0:
        failed.append(what)


def judge(table):
    """The rows of a table and what `stepsim validate` says of each; its own summary is printed."""
    path, kept = os.path.join(root, 'tests/validation', table), os.path.join(root, 'build/validation', table + '.json')
    os.makedirs(os.path.dirname(kept), exist_ok=True)
    out = subprocess.run(
        [stepsim, 'validate', path, '--json', kept, '--progress', 'never', '-q'],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    ).stdout
    if not sample:
        print(out)
    return list(csv.DictReader(open(path))), json.load(open(kept))['results']


# ---- tight rows: absolute error ----


def tight(rows, results):
    mine = [(r, p) for r, p in zip(rows, results) if r['use'] == 'tight']
    good = [(r, p) for r, p in mine if p['predicted_s'] is not None]
    error = [100 * p['error'] for _, p in good]
    size = [abs(x) for x in error]
    print('tight steps: %d rows, %d predicted' % (len(mine), len(good)))
    check('rows that cannot be modelled', 100 * (len(mine) - len(good)) / len(mine), 5)
    check('median |error|', statistics.median(size), 4)
    check('mean |error|', statistics.mean(size), 7)
    check('90th percentile |error|', percentile(size, 90), 15)
    check('|mean signed error|', abs(statistics.mean(error)), 2.5)
    for source in sorted({r['source'] for r, _ in good}):
        of_source = [abs(100 * p['error']) for r, p in good if r['source'] == source]
        if not sample or len(of_source) >= 5:
            check('median |error| of ' + source, statistics.median(of_source), 8)
    mpt = [abs(100 * p['error']) for r, p in good if r['id'].startswith('mpt')]
    check('median |error| of the FSDP runs (mpt)', statistics.median(mpt), 2)
    check('mean |error| of the FSDP runs (mpt)', statistics.mean(mpt), 3)


def outside():
    """Rows of other sources, in no fit: their errors are what a new run may expect."""
    rows, results = judge('outside.csv')
    good = [(r, p) for r, p in zip(rows, results) if p['predicted_s'] is not None]
    print(
        'rows of other sources, never fitted: %d, %d predicted; |error|: median, mean; signed mean; '
        'inside of the 90 %% interval' % (len(rows), len(good))
    )
    for source in sorted({r['source'] for r, _ in good}) + ['']:
        mine = [p for r, p in good if source in ('', r['source'])]
        error = [100 * p['error'] for p in mine]
        inside = 100 * sum(p['interval90_s'][0] <= p['measured_s'] <= p['interval90_s'][1] for p in mine) / len(mine)
        print(
            '  %-40s %3d %6.1f %6.1f %+6.1f %5.0f %%'
            % (
                source or 'all',
                len(mine),
                statistics.median(map(abs, error)),
                statistics.mean(map(abs, error)),
                statistics.mean(error),
                inside,
            )
        )
    check('rows of other sources outside of their 90 % interval', 100 - inside, 20)
    return rows, results


def held_out_widths(rows, results):
    """Returns the tables of the intervals' widths that these rows fix, each source judged by those of all others, and
    of the classes of runs."""
    now, judged = widths.load(rows, results)
    held = widths.held_out(judged, now)
    lines = widths.table(judged, now, held)
    print('widths of intervals that these rows fix, one vote a source\n' + accuracy.table(widths.HEAD, lines))
    check('other sources inside, the widths from all others', float(lines[-1][widths.HELD]), 85, at_least=True)
    of_classes = widths.classes(judged, now, held)
    print('runs inside by class, one vote a source\n' + accuracy.table(widths.CLASSES_HEAD, of_classes))
    check('the class with the fewest inside', min(float(line[3]) for line in of_classes), 85, at_least=True)
    return lines, of_classes


# ---- order rows: which plan is best ----


def ranks(x):
    """1 for the smallest; equals share the mean of their ranks."""
    order, out = sorted(range(len(x)), key=lambda i: x[i]), [0.0] * len(x)
    at = 0
    while at < len(x):
        end = at
        while end + 1 < len(x) and x[order[end + 1]] == x[order[at]]:
            end += 1
        for i in order[at : end + 1]:
            out[i] = (at + end) / 2 + 1
        at = end + 1
    return out


def spearman(x, y):
    return statistics.correlation(ranks(x), ranks(y))


def order(rows, results):
    groups, fitting = collections.defaultdict(list), collections.defaultdict(list)
    for r, p in zip(rows, results):
        if (
            r['framework'].startswith('nanotron')
            and r['use'] in ('tight', 'order')
            and int(r['n_gpus']) <= 256
            and p['predicted_s'] is not None
        ):
            key = r['model'], int(r['n_gpus']), int(r['global_batch_seqs'])  # the batch is no part of a plan
            seconds = p['predicted_s'], p['measured_s']
            groups[key].append(seconds)
            if p['fits']:
                fitting[key].append((p['tight'], *seconds))
    groups = {k: v for k, v in groups.items() if len(v) >= 5}  # of fewer, a rank says nothing
    correlation, regret, chosen = [], [], []
    for _, plans in sorted(groups.items()):
        correlation.append(spearman(*zip(*plans)))
        regret.append(min(m for _, m in sorted(plans)[:3]) / min(m for _, m in plans) - 1)
    for k in sorted(groups):  # what `stepsim plan` would choose: the fastest of those that are predicted to fit, a
        # tight one only where nothing else fits
        chosen.append(min(fitting[k])[2] / min(m for _, m in groups[k]) - 1 if fitting[k] else math.inf)
    print(
        'plans in order, nanotron up to 256 GPUs: %d groups of one model, GPU count and batch, %d rows'
        % (len(groups), sum(map(len, groups.values())))
    )
    check(
        "Spearman's rank correlation of the median group, x 100",
        100 * statistics.median(correlation),
        85,
        at_least=True,
    )
    check(
        'groups whose best of the three predicted best is within 5 %',
        100 * sum(x <= 0.05 for x in regret) / len(regret),
        85,
        at_least=True,
    )
    check(
        'groups whose chosen plan is within 5 % of the best',
        100 * sum(x <= 0.05 for x in chosen) / len(chosen),
        75,  # a plan that was measured twice differs from itself by up to 16 %
        at_least=True,
    )
    print(
        '  correlation by group:', ' '.join('%s/%d %.2f' % (k[0], k[1], c) for k, c in zip(sorted(groups), correlation))
    )


# ---- ratio rows: scaling ----


def ratios(rows, results):
    """Compares runs of one model, batch and format: n GPUs with one of the same machine, and one machine with another
    of as many GPUs. Repeats count as their median.
    """
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for r, p in zip(rows, results):
        if r['use'] == 'ratio' and p['predicted_s'] is not None:
            work = tuple(
                r[c] for c in ('source', 'model', 'seq_len', 'dtype', 'optimizer', 'micro_batch_seqs', 'grad_accum')
            )
            sequences = float(r['global_batch_seqs'])
            runs[work][r['gpu'], r['gpu_variant'], int(r['n_gpus'])].append(
                (sequences / p['measured_s'], sequences / p['predicted_s'])
            )
    scaling, machines = [], []
    for of_work in runs.values():
        rate = {k: [statistics.median(x) for x in zip(*v)] for k, v in of_work.items()}
        off = lambda a, b: 100 * abs(rate[a][1] / rate[b][1] / (rate[a][0] / rate[b][0]) - 1)
        scaling += [off(k, k[:2] + (1,)) for k in rate if k[2] > 1 and k[:2] + (1,) in rate]
        machines += [off(a, b) for a in rate for b in rate if a < b and a[2] == b[2]]
    print('scaling of BERT encoders: %d pairs of GPU counts, %d pairs of machines' % (len(scaling), len(machines)))
    check('median |error| of the speed-up of n GPUs over one', statistics.median(scaling), 10)
    check('median |error| of the speed-up of one machine over another', statistics.median(machines), 10)


# ---- memory ----


def memory(rows, results):
    mine = [(r, p) for r, p in zip(rows, results) if p['predicted_s'] is not None]
    reported = [
        abs(p['predicted_memory_bytes'] / p['measured_memory_bytes'] - 1)
        for r, p in mine
        if r['use'] == 'tight' and p['measured_memory_bytes']
    ]
    print('memory: %d tight rows report it, %d rows ran' % (len(reported), len(mine)))
    check('median |error| of peak memory', 100 * statistics.median(reported), 8)
    check('rows that fit, as they did', 100 * sum(p['fits'] for _, p in mine) / len(mine), 95, at_least=True)


# ---- intervals, and rows that no fit saw ----


def coverage(results):
    inside = sum(p['interval90_s'][0] <= p['measured_s'] <= p['interval90_s'][1] for p in results)
    width = statistics.mean((p['interval90_s'][1] - p['interval90_s'][0]) / 2 / p['predicted_s'] for p in results)
    return 100 * inside / len(results), 100 * width


def held_out(rows, results):
    by_id = {p['id']: p for p in results}
    fit = Fit(stepsim, [r for r in rows if r['use'] == 'tight'], by_id)
    by_row, by_source = fit.by_row(), fit.by_source()
    print('cross-validation: %d constants refitted without the rows that are predicted' % len(fit.constants))
    print(
        '  %-42s %5s   %-26s %-26s %s'
        % ('median, mean, p90, signed mean in %', 'rows', 'in sample', 'five folds by row', 'its source held out')
    )
    table = {}
    for source in sorted({r['source'] for r in fit.rows}) + ['all']:
        ids = [r['id'] for r in fit.rows if source in ('all', r['source'])]
        columns, sizes = [], []
        for error in (
            [by_id[i]['error'] for i in ids],
            [math.expm1(by_row[i]) for i in ids],
            [by_source[i]['error'] for i in ids],
        ):
            size = [100 * abs(x) for x in error]
            sizes.append(size)
            columns.append(
                '%5.1f %5.1f %5.1f %+6.1f'
                % (statistics.median(size), statistics.mean(size), percentile(size, 90), 100 * statistics.mean(error))
            )
        print('  %-42s %5d   %-26s %-26s %s' % (source, len(ids), *columns))
        table[source] = sizes + [[accuracy.inside(by_source[i]) for i in ids]]
    known, unseen = coverage([by_id[r['id']] for r in fit.rows]), coverage(list(by_source.values()))
    print('intervals of 90 %%: in sample %.1f %% of the rows lie inside, half a width is %.1f %% in the mean' % known)
    check('rows inside their interval, their source held out', unseen[0], 85, at_least=True)
    check('the same, at the most', unseen[0], 95)
    check('half of the mean interval, source held out', unseen[1], 20)
    nested = coverage(list(fit.widths_from_others(by_source).values()))
    check('rows inside, the widths too from the other sources alone', nested[0], 85, at_least=True)
    check('half of that mean interval', nested[1], 20)
    return table


# ---- collectives ----


def collectives():
    tables = {name: judge(name + '.csv') for name in limits.COLLECTIVES}
    mine = [p for p in tables['collectives'][1] if p['predicted_s'] is not None and not p['use']]
    off = lambda chosen: [100 * abs(p['error']) for p in chosen]
    large, small = [p for p in mine if p['bytes'] >= 1 << 20], [p for p in mine if p['bytes'] < 1 << 20]
    print('collectives: %d rows of at least 1 MiB, %d below' % (len(large), len(small)))
    check(
        'median |error| of the best repeats, at least 1 MiB', statistics.median(off(p for p in large if p['best'])), 8
    )
    check('median |error| of all rows, at least 1 MiB', statistics.median(off(large)), 10)
    check('90th percentile |error| of all rows, at least 1 MiB', percentile(off(large), 90), 40)
    check('median |error| below 1 MiB', statistics.median(off(small)), 20)
    return mine, tables


def held_out_machines():
    """Collectives of each machine by constants that it did not fix."""
    fit, held = held_out_collectives.measure()
    of = held_out_collectives.tables(fit, held)
    print('collectives, each machine held out: %d rows of %d machines' % (len(fit.rows), len(fit.members)))
    print('\n'.join(of.values()))
    large, small = held_out_collectives.by_machine(fit, held)
    check('collectives from 1 MiB on, machine held out: median of the machines', large.median, 10)
    check('the same, the 90th percentile, mean of the machines', large.p90, 40)
    check('the same, rows inside their interval, mean of the machines', large.inside, 80, at_least=True)
    check('below 1 MiB, held out: the 90th percentile, mean of the machines', small.p90, 70)
    return of


def by_source(tables):
    """Limits of each source: no change makes one worse unless somebody writes the limits anew."""
    of_name = {}
    for table, rows_and_results in tables.items():
        for name, x in limits.errors(table, *rows_and_results).items():
            of_name.setdefault(name, []).extend(x)
    if asked.write_limits:
        limits.write(of_name)
    print('limits by source, of the time and of the memory (tests/validation/limits.json)')
    kept = limits.read()
    for what, value, limit in limits.judged(of_name, kept):
        check(what, value, limit, on_page=False)
    gone = sorted(set(kept) - set(of_name))
    if gone:
        failed.append('limits of what has no rows: ' + ', '.join(gone))


def main():
    failed.extend('no row is spoken of by "%s" (scripts/misses.py)' % what for what in misses.without_rows())
    table = judge('steps-sample.csv' if sample else 'steps.csv')
    tight(*table)
    if sample:
        inside, width = coverage([p for r, p in zip(*table) if r['use'] == 'tight' and p['predicted_s'] is not None])
        check('rows outside of their 90 % interval', 100 - inside, 15)
        check('half of the mean interval', width, 20)
        if not accuracy.is_current(*table):
            failed.append('docs/accuracy.md is stale: `make validate` writes it')
    else:
        order(*table)
        ratios(*table)
        memory(*table)
        others = outside()
        of_widths = held_out_widths(*others)
        of_collectives, every_collective = collectives()
        machines = held_out_machines()
        tables = {'steps': table, 'outside': others} | every_collective
        by_source(tables)
        of_sources = held_out(*table)
        moved = perturb.run(tables)
        failed.extend('no limit notices ' + name for name in perturb.unseen_fitted(moved))
        accuracy.write(
            table,
            others,
            judge('steps-sample.csv'),
            of_sources,
            of_widths,
            (of_collectives, machines),
            misses.lines({name: list(zip(*judged)) for name, judged in tables.items()}),
            checks,
            moved,
        )
    print(
        '%d limit%s missed%s'
        % (len(failed), '' if len(failed) == 1 else 's', ': ' + ', '.join(failed) if failed else '')
    )
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
