"""Cross-validation of the constants that published steps fix (tests/validation/parameters.json), for validate.py.

A step's logarithm is smooth in them, so a refit is one robust least-squares step over a Jacobian of finite differences.
The Jacobian takes one prediction of all rows for each constant; build/ keeps it until rows or predictions change.
By row: five folds, each predicted by that linear model. By source: the constants are refitted on the other sources,
those that only the source fixes are replaced by their stand-ins, and the program itself predicts its rows.
"""

import concurrent.futures, hashlib, json, math, os, re
import widths
from constants import Home, file_of, read_value, root, write_value

STEP = 0.02  # of a constant, for its column of the Jacobian
SOFT = 0.03  # log error beyond which a row pulls less (soft L1)
FOLDS = 5
# How strongly constants stay where they are, in rows' errors for one standard deviation of PRIOR: a direction that no
# row sees does not move.
OLD = 0.01
PRIOR = 0.2
INSIDE = 0.88  # of rows whose source was held out, what interval.software is to let lie in their interval


def solve(a, b):
    """x of a x = b, by elimination."""
    n = len(b)
    m = [row[:] + [b[i]] for i, row in enumerate(a)]
    for c in range(n):
        p = max(range(c, n), key=lambda r: abs(m[r][c]))
        m[c], m[p] = m[p], m[c]
        for r in range(c + 1, n):
            f = m[r][c] / m[c][c]
            for k in range(c, n + 1):
                m[r][k] -= f * m[c][k]
    x = [0.0] * n
    for c in reversed(range(n)):
        x[c] = (m[c][n] - sum(m[c][k] * x[k] for k in range(c + 1, n))) / m[c][c]
    return x


class Fit:
    """Residuals log(predicted / measured) at the constants as they are, and their derivatives by log(constant)."""

    def __init__(self, stepsim, rows, results):
        self.stepsim = stepsim
        self.known = json.load(open(os.path.join(root, 'tests/validation/parameters.json')))
        self.constants = self.known['constants']
        self.value = {n: read_value(root, c) for n, c in self.constants.items()}
        self.rows = [r for r in rows if results[r['id']]['predicted_s']]
        self.residual = {
            r['id']: math.log(results[r['id']]['predicted_s'] / results[r['id']]['measured_s']) for r in self.rows
        }
        self.derivative = self.jacobian()

    def fingerprint(self):
        """What a Jacobian belongs to: the residuals, and the constants with their values."""
        of = json.dumps([self.constants, self.value, {i: '%.9f' % x for i, x in self.residual.items()}], sort_keys=True)
        return hashlib.sha256(of.encode()).hexdigest()

    def column(self, name):
        c = self.constants[name]
        mine = [r for r in self.rows if re.match(c['rows'], r['id'])]
        up = STEP if self.value[name] * (1 + STEP) <= c['high'] else -STEP
        with Home() as home:
            write_value(home.path, c, self.value[name] * (1 + up))
            moved = home.predict(self.stepsim, home.table(mine))
        return {
            i: (math.log(p['predicted_s'] / p['measured_s']) - self.residual[i]) / math.log(1 + up)
            for i, p in moved.items()
            if p['predicted_s']
        }

    def jacobian(self):
        path, mark = os.path.join(root, 'build/validation/jacobian.json'), self.fingerprint()
        if os.path.exists(path):
            kept = json.load(open(path))
            if kept['of'] == mark:
                return kept['columns']
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            columns = dict(zip(self.constants, pool.map(self.column, self.constants)))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        json.dump({'of': mark, 'columns': columns}, open(path, 'w'))
        return columns

    def refit(self, ids):
        """Returns log(new / old) of each constant: a few rounds of reweighted least squares on these rows."""
        names, move = list(self.constants), dict.fromkeys(self.constants, 0.0)
        for _ in range(8):
            a = [[0.0] * len(names) for _ in names]
            b = [0.0] * len(names)
            for k in range(len(names)):
                a[k][k] = (OLD / PRIOR) ** 2
            for i in ids:
                d = [(k, self.derivative[n][i]) for k, n in enumerate(names) if self.derivative[n].get(i)]
                now = self.at(i, move)
                weight = 1 / math.sqrt(1 + (now / SOFT) ** 2)
                for k, x in d:
                    b[k] -= weight * x * self.residual[i]
                    for l, y in d:
                        a[k][l] += weight * x * y
            for n, x in zip(names, solve(a, b)):
                c = self.constants[n]
                move[n] = min(
                    max(x, math.log(c['low'] / self.value[n]) if c['low'] > 0 else -3),
                    math.log(c['high'] / self.value[n]),
                )
        return move

    def at(self, i, move):
        """The residual of a row with moved constants."""
        return self.residual[i] + sum(self.derivative[n].get(i, 0) * x for n, x in move.items())

    def predicted_again(self, ids, move, without=()):
        """Predicts these rows by the program with moved constants.

        `without` names files whose own interval nothing fixes any more.
        """
        with Home() as home:
            for n, x in move.items():
                if x:
                    write_value(home.path, self.constants[n], self.value[n] * math.exp(x))
            for name in without:
                text = open(file_of(home.path, name)).read()
                with open(file_of(home.path, name), 'w') as out:
                    out.write(re.sub(r'^interval:.*\n(?:  .*\n)*', '', text, flags=re.M))
            return home.predict(self.stepsim, home.table([r for r in self.rows if r['id'] in ids]))

    def by_row(self):
        """Returns the residuals of rows that no refit saw: five folds, every fifth row of the table's order.

        A run that is listed twice stays on one side.
        """
        folds, seen = [[] for _ in range(FOLDS)], {}
        for r in self.rows:
            same = tuple(
                v
                for k, v in r.items()
                if k
                not in (
                    'id',
                    'url_or_repo_path',
                    'step_time_s',
                    'tokens_per_s',
                    'tokens_per_s_per_gpu',
                    'mem_gb',
                    'first_error',
                    'notes',
                )
            )
            folds[seen.setdefault(same, len(seen)) % FOLDS].append(r['id'])
        held = {}
        for k in range(FOLDS):
            move = self.refit([i for f in folds[:k] + folds[k + 1 :] for i in f])
            held.update({i: self.at(i, move) for i in folds[k]})
        return held

    def stand_ins(self, source):
        """Returns where constants go that this source alone fixes: log of the ratio to their stand-in.

        A stand-in is a number, or the geometric mean of other constants.
        """
        out = {}
        for n, v in self.known['sources'].get(source, {}).get('instead', {}).items():
            logs = [math.log(self.value[x] if isinstance(x, str) else x) for x in (v if isinstance(v, list) else [v])]
            out[n] = sum(logs) / len(logs) - math.log(self.value[n])
        return out

    def by_source(self):
        """Results as of `stepsim validate` for rows of each source, from all others."""
        out = {}
        for source in sorted({r['source'] for r in self.rows}):
            move = self.refit([r['id'] for r in self.rows if r['source'] != source])
            move.update(self.stand_ins(source))
            out.update(
                self.predicted_again(
                    {r['id'] for r in self.rows if r['source'] == source},
                    move,
                    self.known['sources'].get(source, {}).get('alone', []),
                )
            )
        return out

    def widths_from_others(self, results):
        """Returns by_source()'s results with intervals whose one part that residuals fix, interval.software, comes from
        the rows of all other sources: as narrow as lets INSIDE of them lie in theirs.
        """
        rest, size = {}, {}
        software, below = (read_value(root, widths.of_interval(k)) for k in ('software', widths.BELOW))
        for r in self.rows:
            p = results[r['id']]
            size[r['id']] = widths.needed(p, below)
            rest[r['id']] = math.sqrt(max(math.log(p['interval90_s'][1] / p['predicted_s']) ** 2 - software**2, 0))
        out = dict(results)
        for source in sorted({r['source'] for r in self.rows}):
            needed = sorted(
                math.sqrt(max(size[r['id']] ** 2 - rest[r['id']] ** 2, 0))
                for r in self.rows
                if r['source'] != source
            )
            own = needed[math.ceil(INSIDE * len(needed)) - 1]
            for r in self.rows:
                if r['source'] == source:
                    p, w = results[r['id']], math.hypot(own, rest[r['id']])
                    out[r['id']] = dict(
                        p, interval90_s=[p['predicted_s'] * math.exp(-below * w), p['predicted_s'] * math.exp(w)]
                    )
        return out
