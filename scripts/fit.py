#!/usr/bin/python3
"""Fits constants of configs/ to published steps.

The fit is least squares of log(predicted / measured), robust against odd rows (soft L1).

usage: fit.py REGEX [TABLE.csv] [--rows REGEX] [--leave-out REGEX] [--use USE] [--write] [--worst N]

REGEX chooses from tests/validation/parameters.json, which says where each constant stands, its bounds and the rows that
see it. TABLE.csv is tests/validation/steps.csv unless another is given. The script prints each constant with its
standard error (from the Jacobian), and the errors before and after; --write puts the values into configs/.
"""

import argparse, csv, json, os, re, sys
import numpy as np
from scipy.optimize import least_squares
from constants import Home, read_value, root, write_value


def errors(log_ratios):
    e = np.expm1(np.array(log_ratios)) * 100
    size = np.abs(e)
    return 'rows %d: median %.2f %%, mean %.2f %%, p90 %.2f %%, worst %.1f %%, signed %+.2f %%' % (
        len(e),
        np.median(size),
        size.mean(),
        np.percentile(size, 90),
        size.max(),
        e.mean(),
    )


def main():
    a = argparse.ArgumentParser()
    a.add_argument('constants')
    a.add_argument('table', nargs='?', default=os.path.join(root, 'tests/validation/steps.csv'))
    a.add_argument('--rows', default='.')
    a.add_argument('--leave-out', default='(?!)')
    a.add_argument('--use', default='tight')
    a.add_argument('--write', action='store_true')
    a.add_argument('--scale', type=float, default=0.03)
    a.add_argument('--worst', type=int, default=0)
    a.add_argument('--stepsim', default=os.path.join(root, 'build/release/stepsim'))
    o = a.parse_args()
    known = json.load(open(os.path.join(root, 'tests/validation/parameters.json')))['constants']
    constants = {n: c for n, c in known.items() if re.match(o.constants, n)}
    if not constants:
        raise SystemExit('no constant matches %s: there are %s' % (o.constants, ', '.join(known)))
    names = list(constants)
    seen_by = '|'.join(c['rows'] for c in constants.values())
    rows = [
        r
        for r in csv.DictReader(open(o.table))
        if r['use'] == o.use
        and re.match(seen_by, r['id'])
        and re.search(o.rows, r['id'])
        and not re.search(o.leave_out, r['id'])
    ]
    with Home() as home:
        table = home.table(rows)
        start = np.array([read_value(home.path, constants[n]) for n in names])

        def log_ratios():
            return {
                i: np.log(r['predicted_s'] / r['measured_s'])
                for i, r in home.predict(o.stepsim, table).items()
                if r['predicted_s']
            }

        first = log_ratios()
        ids = sorted(first)
        print('before:', errors(list(first.values())))

        def residuals(x):
            for n, v in zip(names, x):
                write_value(home.path, constants[n], v)
            now = log_ratios()
            return np.array([now[i] for i in ids])

        low = np.array([constants[n]['low'] for n in names])
        high = np.array([constants[n]['high'] for n in names])
        fit = least_squares(
            residuals,
            np.clip(start, low * 1.0001, high * 0.9999),
            bounds=(low, high),
            loss='soft_l1',
            f_scale=o.scale,
            x_scale=np.maximum(np.abs(start), 1e-6),
            diff_step=0.01,
            max_nfev=6,
        )
        now = dict(zip(ids, residuals(fit.x)))
        spread = np.sqrt(np.mean(fit.fun**2))
        try:
            sd = np.sqrt(np.diag(np.linalg.inv(fit.jac.T @ fit.jac))) * spread
        except np.linalg.LinAlgError:
            sd = np.full(len(names), np.nan)
        for n, v, s, b in zip(names, fit.x, sd, start):
            print('  %-28s %10.4g +- %-8.2g (was %.4g)' % (n, v, s, b))
        print('after: ', errors(list(now.values())))
        for i in sorted(ids, key=lambda i: -abs(now[i]))[: o.worst]:
            print('   %s %+.1f %%' % (i, 100 * np.expm1(now[i])))
        if o.write:
            for n, v in zip(names, fit.x):
                write_value(root, constants[n], float('%.4g' % v))


if __name__ == '__main__':
    sys.exit(main())
