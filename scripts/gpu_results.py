#!/usr/bin/env python3
"""Gathers what scripts/gpu_check.sh has left in FOLDER into FOLDER/results.json, and prints its tables in Markdown.

usage: gpu_results.py FOLDER PARTS WHAT DOUBLES SECONDS

PARTS is a file with a row "| part | verdict | seconds | note |" a part; DOUBLES is true where the libraries were the
tests' doubles: then there is no figure in either. results.json is meant to be committed below tests/validation/gpu/.
"""

import csv, datetime, glob, json, os, statistics, sys

COLLECTIVE_SIZES = 3  # the largest ones, in the summary


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def read_text(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return None


def named(folder, prefix):
    """What FOLDER/PREFIX-NAME.json hold, by NAME; files that a part did not finish are left out."""
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, f'{prefix}-*.json'))):
        content = read_json(path)
        if content is not None:
            found[os.path.basename(path)[len(prefix) + 1 : -len('.json')]] = content
    return found


def parts(path):
    cells = [[c.strip() for c in line.strip().strip('|').split('|')] for line in (read_text(path) or '').splitlines()]
    return [{'part': c[0], 'verdict': c[1], 'seconds': float(c[2]), 'note': c[3]} for c in cells if len(c) == 4]


def machine(folder):
    text = read_text(os.path.join(folder, 'gpus.csv'))
    rows = list(csv.reader((text or '').splitlines(), skipinitialspace=True))
    lscpu = (read_text(os.path.join(folder, 'lscpu.txt')) or '').splitlines()
    cpu = dict(line.split(':', 1) for line in lscpu if ':' in line)
    wanted = ('Model name', 'CPU(s)', 'Socket(s)', 'NUMA node(s)')
    return {
        'gpus': [dict(zip(rows[0], row)) for row in rows[1:] if len(row) == len(rows[0])],
        'cpu': {key: cpu[key].strip() for key in wanted if key in cpu},
    }


def run_row(name, run):
    """A line of the table, and the error where one can be told."""
    m, p = run.get('measurement') or {}, run['prediction']['step_time_s']
    verified = 'yes' if m.get('verified') else 'no'
    if 'step_time_s' not in m or not run.get('comparison') or '-share' in name:
        what = 'doubles' if m.get('double') else 'correctness only'
        return f'| {name} | {p * 1e3:.3f} | {what} | | {verified} |', None
    error = (p - m['step_time_s']) / m['step_time_s']
    return f"| {name} | {p * 1e3:.3f} | {m['step_time_s'] * 1e3:.3f} | {100 * error:+.1f} % | {verified} |", error


def show_runs(runs):
    if not runs:
        return
    rows = [run_row(*item) for item in runs.items()]
    print('\n| run | predicted, ms | measured, ms | error | verified |\n| --- | ---: | ---: | ---: | --- |')
    print('\n'.join(row for row, _ in rows))
    errors = [abs(error) for _, error in rows if error is not None]
    if errors:
        print(
            f'\nMedian of the absolute error of {len(errors)} runs: {100 * statistics.median(errors):.1f} %; '
            f'largest: {100 * max(errors):.1f} %'
        )


def show_pytorch(pytorch):
    columns = ('stepsim predicted', 'stepsim executed', 'PyTorch eager', 'PyTorch compiled')
    if not pytorch:
        return
    print(f"\n| step, ms | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}")
    for name, of in pytorch.items():
        times = {row['what']: row.get('step_time_s') for row in of['results']}
        cells = [f'{times[c] * 1e3:.3f}' if times.get(c) else '-' for c in columns]
        print(f"| {name} | {' | '.join(cells)} |")


def show_roofline(roofline):
    measured = [r for r in (roofline or {}).get('roofs', []) if r.get('flop_per_s')]
    if not measured:
        return
    print('\n| roof | measured, TFLOP/s | datasheet, TFLOP/s |\n| --- | ---: | ---: |')
    for r in measured:
        sheet = f"{r['datasheet_flop_per_s'] / 1e12:.1f}" if r.get('datasheet_flop_per_s') else '-'
        print(f"| {r['kind']} {r['dtype']} | {r['flop_per_s'] / 1e12:.1f} | {sheet} |")
    if roofline.get('memory_Bps'):
        print(f"\nMemory: {roofline['memory_Bps'] / 1e9:.0f} GB/s")


def show_collectives(benches):
    rows = [
        (name, row['size_bytes'], row['out_of_place'], row.get('predicted_s'))
        for name, of in benches.items()
        for row in of['rows'][-COLLECTIVE_SIZES:]
        if row['out_of_place'].get('time_s')
    ]
    if not rows:
        return
    print('\n| collective | bytes | measured, us | predicted, us | bus, GB/s |\n| --- | ---: | ---: | ---: | ---: |')
    for name, size, got, predicted in rows:
        told = f'{predicted * 1e6:.1f}' if predicted else '-'
        print(f"| {name} | {size} | {got['time_s'] * 1e6:.1f} | {told} | {got['busbw_Bps'] / 1e9:.1f} |")


def main():
    folder, rows, what, doubles, seconds = sys.argv[1:6]
    runs, pytorch, benches = named(folder, 'run'), named(folder, 'pytorch'), named(folder, 'bench')
    roofline = read_json(os.path.join(folder, 'roofline.json'))
    profiles = sorted(glob.glob(os.path.join(folder, 'cache/stepsim/**/*.yaml'), recursive=True))
    results = {
        'format': 1,
        'date': datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ'),
        'what': what,
        'doubles': doubles == 'true',
        'seconds': float(seconds),
        'parts': parts(rows),
        'machine': machine(folder),
        'versions': (read_text(os.path.join(folder, 'versions.txt')) or '').splitlines(),
        'topology': read_json(os.path.join(folder, 'topo.json')),
        'profiles': {os.path.basename(path): read_text(path).splitlines() for path in profiles},
        'runs': {name: {key: of for key, of in run.items() if key != 'system'} for name, run in runs.items()},
        'pytorch': pytorch,
        'roofline': roofline,
        'collectives': benches,
    }
    with open(os.path.join(folder, 'results.json'), 'w') as f:
        json.dump(results, f, indent=1)
        f.write('\n')
    show_runs(runs)
    show_pytorch(pytorch)
    show_collectives(benches)
    show_roofline(roofline)


if __name__ == '__main__':
    main()
