"""Each of many allocations of a command fails once, in a process of its own: it must end with its right result, or with
exit code 1 and one line that says so; never by a signal, never with blocks that a run with enough memory has given
back: python3 tests/nomem/check.py PRELOAD.so [POINTS [SEED]]. POINTS (default 60) a command: the first third of them
are its first allocations, the others are drawn. The last line is "N passed, N failed"."""
import os
import random
import subprocess
import sys
import tempfile

STEPSIM = os.path.abspath('build/release/stepsim')
COMMANDS = [
    ['predict', 'configs/ddp-tiny.yaml', '--set', 'cluster.system=dgx-h100', '--set', 'cluster.nodes=1'],
    ['predict', 'configs/llama3-8b-fsdp-64xh100.yaml', '--json', 'out.json', '--trace', 'out.trace.json',
     '--html', 'out.html', '-q'],
    ['predict', 'configs/pp-gpt3-175b-384xa100.yaml', '-q'],
    ['predict', 'configs/ep-mixtral-8x7b-64xh100.yaml', '-q', '--memory-snapshot', 'out.memory.json'],
    ['predict', '--model', 'llama3-8b', '--system', 'dgx-h100', '--gpus', '64'],
    ['predict', 'tests/golden/bad/anchor.yaml'],
    ['plan', 'configs/finetune-llama2-13b.yaml', '--gpus', '8', '-q'],
    ['sweep', 'configs/ddp-tiny.yaml', '--set', 'cluster.system=dgx-h100', '--vary', 'parallel.bucket_mb=1,5,25'],
    ['list', 'systems'],
    ['validate', 'tests/validation/collectives-sample.csv', '-q'],
    ['topo', '--smi', 'tests/smi/annotated.txt'],
    ['topo', '--nccl-xml', 'tests/xml/nccl-c2c.xml', '--svg', 'out.svg'],
    ['export', 'configs/llama3-8b-fsdp-64xh100.yaml', '--to', 'megatron', '-o', 'out.sh'],
    ['import', 'out.sh', '--system', 'dgx-h100'],
]


def run(command, preload, at, folder):
    log = os.path.join(folder, 'log')
    if os.path.exists(log):
        os.unlink(log)
    environment = dict(os.environ, LD_PRELOAD=preload, NOMEM_AT=str(at), NOMEM_LOG=log, TMPDIR=folder,
                       XDG_CACHE_HOME=folder, STEPSIM_HOME=os.getcwd())
    arguments = [os.path.join(folder, a) if a.startswith('out.') else a for a in command]
    done = subprocess.run([STEPSIM, *arguments], env=environment, capture_output=True, timeout=120, check=False)
    counts = [int(n) for n in open(log).read().split()] if os.path.exists(log) else None
    return done.returncode, done.stdout, done.stderr.decode(errors='replace'), counts


def wrong_with(result, normal, inputs_fault):
    """What is wrong with the end of a process, or ''."""
    code, out, complaint, counts = result
    if code < 0 or code > 2:
        return f'exit code {code}: {complaint.strip()[:300]}'
    if counts is None:
        return 'it left without its end'
    lines = [l for l in complaint.splitlines() if l.startswith('stepsim: ') and 'warning: ' not in l]
    if code == normal[0]:
        said = b'out of memory' in out  # of a row of a table
        return '' if out == normal[1] or inputs_fault or said else 'another result, without a word'
    if len(lines) != 1 or (code != 1 and 'allocate memory' not in complaint):
        return f'exit code {code}, {len(lines)} lines: {complaint.strip()[:300]}'
    if counts[1] > normal[3][1]:
        return f'{counts[1]} blocks are left, {normal[3][1]} where nothing fails'
    return ''


def check(command, preload, points, draw, folder):
    normal = run(command, preload, 0, folder)
    if normal[0] not in (0, 2) or normal[3] is None:
        return 0, 0, [f'nothing fails, and exit code {normal[0]}: {normal[2].strip()[:200]}']
    n = normal[3][0]
    first = range(1, min(n, points // 3) + 1)
    at = sorted({*first, *(draw.randint(1, n) for _ in range(points - len(first)))})
    wrong = []
    for i in at:
        if what := wrong_with(run(command, preload, i, folder), normal, normal[0] == 2):
            wrong.append(f'allocation {i}: {what}')
    return n, len(at), wrong


def main():
    preload = os.path.abspath(sys.argv[1])
    points, seed = (int(n) for n in sys.argv[2:] + ['60', '7'][len(sys.argv) - 2:])
    draw = random.Random(seed)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            n, tried, wrong = check(command, preload, points, draw, folder)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            print(f'{"FAILED" if wrong else "passed"} {" ".join(command)}: {tried} of {n} allocations', flush=True)
            for line in wrong[:8]:
                print('    ' + line)
    print(f'{passed} passed, {failed} failed')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
