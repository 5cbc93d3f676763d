#!/usr/bin/env python3
"""Predicts the published measurements of tests/validation and fails beyond the limits below. usage: validate.py [--sample]

--sample: every tenth tight step, in a few seconds, against doubled limits (so few rows swing): for the test command."""
import csv, json, os, statistics, subprocess, sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
stepsim = os.path.join(root, 'build/release/stepsim')
sample = '--sample' in sys.argv[1:]
slack = 2.0 if sample else 1.0
failed = []


def percentile(x, p):
    x = sorted(x)
    k = (len(x) - 1) * p / 100
    low = int(k)
    return x[low] + (x[min(low + 1, len(x) - 1)] - x[low]) * (k - low)


def check(what, value, limit):
    good = value <= limit * slack
    print('  %-62s %6.1f %%  (limit %g %%)%s' % (what, value, limit * slack, '' if good else '  FAILED'))
    if not good:
        failed.append(what)


def judge(table):
    path = os.path.join(root, 'tests/validation', table)
    out = subprocess.run([stepsim, 'validate', path, '--json', '-', '--progress', 'never'], stdout=subprocess.PIPE, check=True).stdout
    print(subprocess.run([stepsim, 'validate', path, '--progress', 'never'], stdout=subprocess.PIPE, check=True, text=True).stdout) if not sample else None
    return list(csv.DictReader(open(path))), json.loads(out)['results']


def steps():
    rows, results = judge('steps-sample.csv' if sample else 'steps.csv')
    tight = [(r, p) for r, p in zip(rows, results) if r['use'] == 'tight']
    good = [(r, p) for r, p in tight if p['predicted_s'] is not None]
    error = [100 * p['error'] for _, p in good]
    size = [abs(x) for x in error]
    print('tight steps: %d rows, %d predicted' % (len(tight), len(good)))
    check('rows that cannot be modelled', 100 * (len(tight) - len(good)) / len(tight), 5)
    check('median |error|', statistics.median(size), 4)
    check('mean |error|', statistics.mean(size), 7)
    check('90th percentile |error|', percentile(size, 90), 15)
    check('|mean signed error|', abs(statistics.mean(error)), 2.5)
    for source in sorted({r['source'] for r, _ in good}):
        mine = [abs(100 * p['error']) for r, p in good if r['source'] == source]
        if not sample or len(mine) >= 5:
            check('median |error| of ' + source, statistics.median(mine), 8)
    mpt = [abs(100 * p['error']) for r, p in good if r['id'].startswith('mpt')]
    check('median |error| of the FSDP runs (mpt)', statistics.median(mpt), 2)
    check('mean |error| of the FSDP runs (mpt)', statistics.mean(mpt), 3)
    covered = 100 * sum(p['interval90_s'][0] <= p['measured_s'] <= p['interval90_s'][1] for _, p in good) / len(good)
    check('rows outside of their 90 % interval', 100 - covered, 15)
    width = 100 * statistics.mean((p['interval90_s'][1] - p['interval90_s'][0]) / 2 / p['predicted_s'] for _, p in good)
    check('half of the mean interval', width, 20)


def outside():
    """Rows of other sources, in no fit: their errors are what a new run may expect. Only the interval has a limit."""
    rows, results = judge('outside.csv')
    good = [(r, p) for r, p in zip(rows, results) if p['predicted_s'] is not None]
    print('rows of other sources, never fitted: %d, %d predicted; |error|: median, mean; signed mean; inside of the 90 %% interval' % (len(rows), len(good)))
    for source in sorted({r['source'] for r, _ in good}) + ['']:
        mine = [p for r, p in good if source in ('', r['source'])]
        error = [100 * p['error'] for p in mine]
        inside = 100 * sum(p['interval90_s'][0] <= p['measured_s'] <= p['interval90_s'][1] for p in mine) / len(mine)
        print('  %-40s %3d %6.1f %6.1f %+6.1f %5.0f %%' % (source or 'all', len(mine), statistics.median(map(abs, error)), statistics.mean(map(abs, error)), statistics.mean(error), inside))
    check('rows of other sources outside of their 90 % interval', 100 - inside, 20)


steps()
if not sample:
    outside()
    judge('collectives.csv')
print('%d limit%s missed%s' % (len(failed), '' if len(failed) == 1 else 's', ': ' + ', '.join(failed) if failed else ''))
sys.exit(1 if failed else 0)
