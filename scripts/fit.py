#!/usr/bin/python3
"""Fits constants of configs/ to published measurements: least squares of log(predicted / measured), robust against odd rows (soft L1).

usage: fit.py PARAMETERS.json TABLE.csv [--rows REGEX] [--leave-out REGEX] [--write] [--stepsim PATH]

PARAMETERS.json: {"name": {"files": ["gpus/a100-sxm-80", ...], "path": "reached.gemm_share", "low": 0.3, "high": 1.0}, ...}; one value goes into all its files.
Prints each constant with its standard error (from the Jacobian), and the errors before and after; --write puts the values into configs/.
"""
import argparse, csv, json, os, re, shutil, subprocess, sys, tempfile
import numpy as np
from scipy.optimize import least_squares


def value_at(text, path):
    """The span of the number in `section: ... key: {value: NUMBER` of a catalogue file."""
    section, key = path.split('.')
    begin = re.search(r'^%s:.*$' % re.escape(section), text, re.M)
    if not begin:
        raise SystemExit('no section %s' % section)
    found = re.compile(r'^  %s: \{value: ([0-9.eE+-]+)' % re.escape(key), re.M).search(text, begin.end())
    if not found:
        raise SystemExit('no %s' % path)
    return found.span(1)


def read_value(home, parameter):
    text = open(os.path.join(home, 'configs', parameter['files'][0] + '.yaml')).read()
    begin, end = value_at(text, parameter['path'])
    return float(text[begin:end])


def write_value(home, parameter, value):
    for name in parameter['files']:
        path = os.path.join(home, 'configs', name + '.yaml')
        text = open(path).read()
        begin, end = value_at(text, parameter['path'])
        with open(path, 'w') as out:
            out.write(text[:begin] + '%.4g' % value + text[end:])


def predict(stepsim, home, table):
    run = subprocess.run([stepsim, 'validate', table, '--json', '-', '--progress', 'never'], env=dict(os.environ, STEPSIM_HOME=home), stdout=subprocess.PIPE, check=True)
    rows = json.loads(run.stdout)['results']
    return {r['id']: r['predicted_s'] / r['measured_s'] for r in rows if r['predicted_s']}


def errors(ratios):
    e = np.abs(np.array(list(ratios.values())) - 1) * 100
    signed = (np.array(list(ratios.values())) - 1) * 100
    return 'rows %d: median %.2f %%, mean %.2f %%, p90 %.2f %%, worst %.1f %%, signed %+.2f %%' % (len(e), np.median(e), e.mean(), np.percentile(e, 90), e.max(), signed.mean())


def main():
    a = argparse.ArgumentParser()
    a.add_argument('parameters'); a.add_argument('table')
    a.add_argument('--rows', default='.'); a.add_argument('--leave-out', default='(?!)')
    a.add_argument('--write', action='store_true'); a.add_argument('--scale', type=float, default=0.03)
    a.add_argument('--worst', type=int, default=0)
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    a.add_argument('--stepsim', default=os.path.join(root, 'build/release/stepsim'))
    o = a.parse_args()
    parameters = json.load(open(o.parameters))
    names = list(parameters)
    work = tempfile.mkdtemp()
    try:
        shutil.copytree(os.path.join(root, 'configs'), os.path.join(work, 'configs'))
        rows = list(csv.DictReader(open(o.table)))
        chosen = [r for r in rows if re.search(o.rows, r['id']) and not re.search(o.leave_out, r['id'])]
        table = os.path.join(work, 'rows.csv')
        with open(table, 'w') as out:
            w = csv.DictWriter(out, rows[0].keys()); w.writeheader(); w.writerows(chosen)
        start = np.array([read_value(work, parameters[n]) for n in names])
        first = predict(o.stepsim, work, table)
        ids = sorted(first)
        print('before:', errors(first))

        def residuals(x):
            for n, v in zip(names, x):
                write_value(work, parameters[n], v)
            now = predict(o.stepsim, work, table)
            return np.log([now[i] for i in ids])

        low = np.array([parameters[n]['low'] for n in names]); high = np.array([parameters[n]['high'] for n in names])
        fit = least_squares(residuals, np.clip(start, low * 1.0001, high * 0.9999), bounds=(low, high), loss='soft_l1', f_scale=o.scale, x_scale=np.maximum(np.abs(start), 1e-6), diff_step=0.01, max_nfev=6)
        now = dict(zip(ids, np.exp(residuals(fit.x))))
        spread = np.sqrt(np.mean(fit.fun ** 2))
        try:
            sd = np.sqrt(np.diag(np.linalg.inv(fit.jac.T @ fit.jac))) * spread
        except np.linalg.LinAlgError:
            sd = np.full(len(names), np.nan)
        for n, v, s, b in zip(names, fit.x, sd, start):
            print('  %-28s %10.4g +- %-8.2g (was %.4g)' % (n, v, s, b))
        print('after: ', errors(now))
        for i in sorted(ids, key=lambda i: -abs(np.log(now[i])))[:o.worst]:
            print('   %s %+.1f %%' % (i, 100 * (now[i] - 1)))
        if o.write:
            for n, v in zip(names, fit.x):
                write_value(root, parameters[n], v)
    finally:
        shutil.rmtree(work)


if __name__ == '__main__':
    sys.exit(main())
