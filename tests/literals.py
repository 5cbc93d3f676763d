#!/usr/bin/env python3
"""Fails on a number in the sources of sim/price or sim/engine that is neither structural nor on the list below.

Constants that carry physics, fits or judgement stand in configs/model.
usage: tests/literals.py [ROOT]; --count says how many are allowed.
"""

import os, re, sys

# Counts, halves, bits of a byte; conversions of units; signs of nothing found.
structural = {
    '0',
    '0.0',
    '1',
    '1.0',
    '2',
    '2.0',
    '0.5',
    '8',
    '1e-12',
    '1e-9',
    '1e-6',
    '1e-3',
    '1e3',
    '1e6',
    '1e9',
    '1e12',
    '0xff',
}

rooms = 'sim/price', 'sim/engine'

# (file, number): reason.
allowed = {
    ('cost.c', '128'): 'characters of a message',
    ('gpu.c', '0.25'): 'one of four passes over the logits',
    ('gpu_product.c', '100'): 'compute capability of Blackwell',
    ('gpu_product.c', '120'): "that of Blackwell's workstation GPUs",
    ('power.c', '0.2'): 'of the burst clock: where bisection begins',
    ('power.c', '30'): 'halvings of bisection',
    ('nccl_group.c', '80'): 'compute capability of Ampere',
    ('nccl_group.c', '90'): 'compute capability of Hopper',
    ('nccl_group.c', '100'): 'compute capability of Blackwell',
    ('predict.c', '100'): 'compute capability of Blackwell',
    ('nccl_tuner.c', '64'): 'bytes of the first column of tree_factor',
    ('price.c', '0x9e3779b97f4a7c15'): 'factor of a hash',
    ('price.c', '29'): 'shift of a hash',
    ('price.c', '256'): 'slots of the smallest table',
    ('rates.c', '4'): 'generation of PCIe',
    ('engine_setup.c', '3'): 'lists in one block of memory',
    ('engine_setup.c', '64'): 'places of what is remembered',
    ('engine.c', '0x9e3779b97f4a7c15'): 'factor of a hash',
    ('engine.c', '64'): 'bits of a hash',
    ('engine_state.h', '7'): 'bits of a place among sets of tasks',
    ('engine.c', '4'): 'a quarter of the largest number: a clock must not overflow',
    ('engine.h', '11'): 'lanes of a rank, counted',
    ('fold.c', '3'): 'blocks of the shorter program that is extended',
    ('fold.c', '5'): 'blocks of the longer one',
    ('fold.c', '64'): 'budget: micro-batches that are simulated',
    ('fold.c', '40000'): 'budget: blocks that are simulated',
    ('predict.c', '86400'): 'seconds of a day',
    ('predict.c', '1000'): 'tolerance of an iteration: a thousandth',
    ('stragglers.c', '10.0'): 'where an integral ends',
    ('stragglers.c', '4000'): 'steps of an integral',
    ('stragglers.c', '4'): "weight of Simpson's rule",
    ('stragglers.c', '3'): "Simpson's rule; Daly's series",
    ('stragglers.c', '9'): "Daly's series",
    ('summary.c', '100'): 'per cent',
    ('summary.c', '3600'): 'seconds of an hour',
}

comment_or_text = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#[ \t]*include[^\n]*', re.S | re.M
)
number = re.compile(r'(?<![\w.])(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*(?![\w.])')


def numbers(path):
    """(line, number without its suffix) of all numbers in a file's code."""
    text = comment_or_text.sub(lambda m: re.sub(r'[^\n]', ' ', m[0]), open(path).read())
    for found in number.finditer(text):
        yield text.count('\n', 0, found.start()) + 1, (
            re.sub(r'(?<=\d)[uUlLfF]+$', '', found[0]) if not found[0].startswith('0x') else found[0].rstrip('uUlL')
        )


def check(root, room, used):
    """Whether the room's files have no number that is not allowed; adds what they have to `used`."""
    good = True
    for name in sorted(f for f in os.listdir(os.path.join(root, room)) if f.endswith(('.c', '.h', '.def'))):
        for line, value in numbers(os.path.join(root, room, name)):
            used.add((name, value))
            if value not in structural and (name, value) not in allowed:
                print(
                    'literals: %s/%s:%d: %s stands in code: move it to configs/model '
                    '(topology/catalogue/parameters.def), or give tests/literals.py a reason'
                    % (room, name, line, value)
                )
                good = False
    return good


def main(args):
    if '--count' in args:
        print('%d numbers are allowed in %s' % (len(allowed), ' and '.join(rooms)))
        return 0
    root = args[0] if args else os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    used = set()
    failed = not all([check(root, room, used) for room in rooms if os.path.isdir(os.path.join(root, room))])
    if not args:
        for name, value in sorted(set(allowed) - used):
            print('literals: %s of %s is allowed, but does not stand there' % (value, name))
            failed = True
    return failed


sys.exit(main(sys.argv[1:]))
