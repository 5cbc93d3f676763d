#!/usr/bin/python3
"""Fits numbers of configs/fabrics to published collectives.

The fit is least squares of log(predicted / measured) over the fastest repeats, robust against odd rows (soft L1).

usage: fit_collectives.py FABRIC KEY[,KEY...] TABLE.csv [--rows REGEX] [--all] [--write] [--stepsim PATH]

KEY is section.key of configs/fabrics/FABRIC.yaml (ring.ll, rate.share); numbers that move together are joined
(ring.ll+ring.ll_far). --rows chooses rows by "ID COLLECTIVE NOTES"; --all takes every repeat. Each number may move by a
factor of four, shares up to 1. The script prints each with its standard error (from the Jacobian) and the errors before
and after; --write puts them into the file, whose sources say what they were fitted to.
"""

import argparse, csv, json, os, re, shutil, subprocess, sys, tempfile
import numpy as np
from scipy.optimize import least_squares
from constants import root, span


def read(path, key):
    text = open(path).read()
    begin, end = span(text, key)
    return float(text[begin:end])


def write(path, key, value):
    text = open(path).read()
    begin, end = span(text, key)
    with open(path, 'w') as out:
        out.write(text[:begin] + '%.4g' % value + text[end:])


def ratios(stepsim, home, table, every):
    run = subprocess.run(
        [stepsim, 'validate', table, '--json', '-', '--progress', 'never'],
        env=dict(os.environ, STEPSIM_HOME=home),
        stdout=subprocess.PIPE,
        check=True,
    )
    return np.array(
        [
            r['predicted_s'] / r['measured_s']
            for r in json.loads(run.stdout)['results']
            if r['predicted_s'] and not r['use'] and (every or r['best'])
        ]
    )


def say(what, r):
    e = 100 * np.abs(r - 1)
    print(
        '%s rows %d: median %.1f %%, mean %.1f %%, p90 %.1f %%, signed %+.1f %%'
        % (what, len(e), np.median(e), e.mean(), np.percentile(e, 90), 100 * (r - 1).mean())
    )


def main():
    a = argparse.ArgumentParser()
    a.add_argument('fabric')
    a.add_argument('keys')
    a.add_argument('table')
    a.add_argument('--rows', default='.')
    a.add_argument('--all', action='store_true')
    a.add_argument('--write', action='store_true')
    a.add_argument('--stepsim', default=os.path.join(root, 'build/release/stepsim'))
    o = a.parse_args()
    keys = o.keys.split(',')
    work = tempfile.mkdtemp()
    try:
        shutil.copytree(os.path.join(root, 'configs'), os.path.join(work, 'configs'))
        path, table = os.path.join(work, 'configs/fabrics/%s.yaml' % o.fabric), os.path.join(work, 'rows.csv')
        rows = list(csv.DictReader(open(o.table)))
        chosen = [r for r in rows if re.search(o.rows, '%s %s %s' % (r['id'], r['collective'], r['notes']))]
        with open(table, 'w') as out:
            w = csv.DictWriter(out, rows[0].keys())
            w.writeheader()
            w.writerows(chosen)
        start = {k: read(path, k) for key in keys for k in key.split('+')}
        first = ratios(o.stepsim, work, table, o.all)
        say('before:', first)

        def put(into, x):
            for key, factor in zip(keys, np.exp(x - 1)):
                for k in key.split('+'):
                    write(
                        into, k, min(start[k] * factor, 1) if 'share' in k and 'power' not in k else start[k] * factor
                    )

        def residuals(x):
            put(path, x)
            now = ratios(o.stepsim, work, table, o.all)
            return (
                np.log(now) if len(now) == len(first) else np.full(len(first), 2.0)
            )  # numbers that the file may not hold together

        fit = least_squares(
            residuals, np.ones(len(keys)), bounds=(-0.4, 2.4), loss='soft_l1', f_scale=0.1, diff_step=0.02, max_nfev=12
        )
        say('after: ', np.exp(residuals(fit.x)))
        try:
            sd = np.sqrt(np.diag(np.linalg.pinv(fit.jac.T @ fit.jac))) * np.sqrt(np.mean(fit.fun**2))
        except np.linalg.LinAlgError:
            sd = np.full(len(keys), np.nan)
        for key, factor, s in zip(keys, np.exp(fit.x - 1), sd):
            print(
                '  %-36s x %.3f +- %.0f %% (%s)'
                % (
                    key,
                    factor,
                    100 * s,
                    ', '.join('%.4g -> %.4g' % (start[k], start[k] * factor) for k in key.split('+')),
                )
            )
        if o.write:
            put(os.path.join(root, 'configs/fabrics/%s.yaml' % o.fabric), fit.x)
    finally:
        shutil.rmtree(work)


if __name__ == '__main__':
    sys.exit(main())
