"""The arithmetic of scripts/validate.py and scripts/crossvalidate.py, on what can be said by hand."""

import csv, math, os, re, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../scripts'))
import misses
from constants import read_value, root, span
from crossvalidate import Fit, solve
from validate import percentile, ranks, spearman
from widths import of_interval


def near(a, b, by=1e-9):
    assert abs(a - b) <= by, '%r is not %r' % (a, b)


# A system that needs its rows exchanged.
x = solve([[0, 2, 1], [1, 1, 0], [3, 0, 1]], [7, 3, 6])
for a, b in zip(x, (1, 2, 3)):
    near(a, b)

# Equals share the mean of their ranks; an order turned around correlates by -1.
assert ranks([5, 1, 5, 9]) == [2.5, 1, 2.5, 4]
near(spearman([1, 2, 3, 4], [10, 20, 30, 40]), 1)
near(spearman([1, 2, 3, 4], [9, 7, 5, 1]), -1)
near(spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]), 1 - 6 * 4 / (5 * 24))
near(percentile([4, 1, 3, 2], 50), 2.5)

# What docs/accuracy.md says of errors: each way that they may lie, and each source once. Each line there has rows.
said = {
    (-26.4, -54): '26 to 54 % too fast',
    (-0.3, -18): 'up to 18 % too fast',
    (12, 22.6, 13): '12 to 23 % too slow',
    (76.1,): '76 % too slow',
    (-15, 19): '15 % too fast to 19 % too slow',
}
for errors, text in said.items():
    assert misses.span([('a', e) for e in errors]) == text, text
three = [('a', -30), ('a', -40), ('b', -8), ('c', 2)]
assert misses.medians(three) == '8 % too fast, the median of 3 sources; 1 are at 20 % and more'
assert misses.without_rows() == []

# Joined keys: the first tells the value; a key of another section is not found.
text = 'a:\n  x: {value: 15us}\nb:\n  x: {value: 0.5}\n'
assert [text[slice(*span(text, k))] for k in ('a.x', 'b.x', 'b.x+a.x')] == ['15', '0.5', '0.5']

# No measurement judges twice: runs of two sources differ in what ran or in how long it took.
rows = {}
for row in csv.DictReader(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'outside.csv'))):
    if row['step_time_s'] and row['tokens_per_s']:
        what = tuple(row[k] for k in ('gpu', 'n_gpus', 'seq_len', 'global_batch_seqs', 'step_time_s', 'tokens_per_s'))
        first = rows.setdefault(what, row)
        assert first['source'] == row['source'], (first['id'], row['id'])
assert len(rows) > 2000

# A refit finds the constants that made the residuals, does not follow one odd row, stays inside its bounds, and leaves
# alone what no row sees.
fit = Fit.__new__(Fit)
fit.constants = {
    'rate': {'low': 0.1, 'high': 10},
    'share': {'low': 0.1, 'high': 1.05},
    'unseen': {'low': 0.1, 'high': 10},
}
fit.value = {'rate': 1.0, 'share': 1.0, 'unseen': 1.0}
ids = [str(i) for i in range(40)]
fit.derivative = {
    'rate': {i: -1 + 0.01 * int(i) for i in ids},
    'share': {i: 0.5 * (int(i) % 3) for i in ids},
    'unseen': {},
}
fit.residual = {i: -0.2 * fit.derivative['rate'][i] - 0.04 * fit.derivative['share'][i] for i in ids}
fit.residual['7'] += 2
move = fit.refit(ids)
near(move['rate'], 0.2, 0.01)
near(move['share'], 0.04, 0.01)
near(move['unseen'], 0)
near(fit.at('3', move), 0, 0.01)
fit.residual = {i: -0.5 * fit.derivative['share'][i] for i in ids}
near(fit.refit(ids)['share'], math.log(1.05))

# The value in place of a constant: a number, another constant, or the geometric mean of several.
fit.value = {'passes': 4.0, 'op': 1.0, 'tax': 1.0, 'two': 2.0, 'eight': 8.0}
fit.known = {
    'sources': {
        'a': {'instead': {'passes': ['two', 'eight'], 'op': 3, 'tax': 'two'}},
        'b': {},
    }
}
for name, ratio in (('passes', 1), ('op', 3), ('tax', 2)):
    near(fit.stand_ins('a')[name], math.log(ratio))

# Widths from the others: a source's own part is the 88th percentile of the others' errors (steps that are
# shorter need more), what a row's step consists
# of comes beside it.
software, below = (read_value(root, of_interval(k)) for k in ('software', 'below'))
fit.rows = [{'id': s + str(i), 'source': s} for s in 'ab' for i in range(100)]
result = lambda error, w: {
    'predicted_s': 1.0,
    'measured_s': math.exp(error),
    'interval90_s': [math.exp(-w), math.exp(w)],
}
results = {
    s + str(i): result(0.01 * (i + 1) * (1 if s == 'a' else -2), math.hypot(software, 0.3) if s == 'a' else software)
    for s in 'ab'
    for i in range(100)
}
widths = {i: math.log(p['interval90_s'][1]) for i, p in fit.widths_from_others(results).items()}
near(widths['a5'], math.hypot(0.02 * 88 / below, 0.3))
near(widths['b5'], math.sqrt(0.88**2 - 0.3**2))

# Few constants: at most twelve of a GPU, at most eight of a stack with its family's.
configs = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../configs')


def keys(path, *sections):
    text = open(os.path.join(configs, path)).read()
    return {
        k
        for s in sections
        for block in re.findall(r'^%s:.*\n((?:  .*\n)*)' % s, text, re.M)
        for k in re.findall(r'^  (\w+):(?: \{|\n    )value', block, re.M)
    }, text


for name in os.listdir(os.path.join(configs, 'gpus')):
    numbers = keys('gpus/' + name, 'reached', 'attention')[0]
    # Twelve at the most that runs could fit; rates of these kernels of attention were timed alone, and vector units'
    # share follows from products of other GPUs.
    alone = {'fa4_forward', 'fa4_backward', 'fp8_forward', 'fp8_backward', 'fp32_share'}
    assert len(numbers - alone) <= 12, name
for name in os.listdir(os.path.join(configs, 'stacks')):
    own, text = keys('stacks/' + name, 'numbers')
    family = re.search(r'^family: (\w+)', text, re.M)
    numbers = own | (keys('families/%s.yaml' % family[1], 'numbers')[0] if family else set())
    # Eight at the most that runs could fit; dropout's are counts of reads and writes in the frameworks' code, and the
    # host's time of a kernel was timed alone.
    assert len(numbers - {'dropout', 'dropout_grad', 'score_dropout', 'kernel'}) <= 8, name
# What was fitted says on which GPUs and in which formats: without that, an interval only widens the family's.
of_family = float(re.search(r'^software:\n  value: ([\d.]+)', keys('model/interval.yaml')[1], re.M)[1])
for name in os.listdir(os.path.join(configs, 'stacks')):
    text = open(os.path.join(configs, 'stacks', name)).read()
    gpus = re.search(r'^fitted_on: \{gpus: \[(.*?)\], formats: \[.+\]\}', text, re.M)
    width = re.search(r'^interval:\n  value: ([\d.]+)', text, re.M)
    assert width or not gpus, name
    assert gpus or not width or float(width[1]) > of_family, name
    for gpu in gpus[1].split(', ') if gpus else []:
        assert os.path.exists(os.path.join(configs, 'gpus', gpu + '.yaml')), (name, gpu)
assert (
    len(keys('gpus/h100-sxm.yaml', 'reached', 'attention')[0]) > 6
    and len(keys('stacks/nanotron.yaml', 'numbers')[0]) > 4
)
