"""Reads and writes constants of configs/, for the scripts that fit them and that check the fits.

Files hold them as `section: ... key: {value: NUMBER, ...}`, with the value on a line of its own, or as
`section: ... key: NUMBER`, each in the unit that its file writes.
"""

import csv, json, os, re, shutil, subprocess, tempfile

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')


def span(text, path):
    """Where the number of section.key stands; of joined keys (ring.ll+ring.ll_far, which have one value) the first."""
    path = path.split('+')[0]
    section, key = path.split('.')
    begin = re.search(r'^%s:.*$' % re.escape(section), text, re.M)
    found = begin and re.compile(r'^  %s:(?:(?: \{|\n    )value:)? ([0-9.eE+-]+)' % re.escape(key), re.M).search(
        text, begin.end()
    )
    if not found:
        raise SystemExit('no %s' % path)
    return found.span(1)


def file_of(home, name):
    return os.path.join(home, 'configs', name + '.yaml')


def read_value(home, constant):
    text = open(file_of(home, constant['files'][0])).read()
    begin, end = span(text, constant['path'])
    return float(text[begin:end])


def write_value(home, constant, value):
    for name in constant['files']:
        text = open(file_of(home, name)).read()
        for path in constant['path'].split('+'):
            begin, end = span(text, path)
            text = text[:begin] + '%.6g' % value + text[end:]
        with open(file_of(home, name), 'w') as out:
            out.write(text)


class Home:
    """A copy of configs/ that may be changed, for `with`."""

    def __enter__(self):
        self.path = tempfile.mkdtemp()
        shutil.copytree(os.path.join(root, 'configs'), os.path.join(self.path, 'configs'))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def table(self, rows):
        path = os.path.join(self.path, 'rows.csv')
        with open(path, 'w') as out:
            w = csv.DictWriter(out, rows[0].keys())
            w.writeheader()
            w.writerows(rows)
        return path

    def results(self, stepsim, table):
        """What `stepsim validate` says of each row, in their order."""
        run = subprocess.run(
            [stepsim, 'validate', table, '--json', '-', '--progress', 'never'],
            env=dict(os.environ, STEPSIM_HOME=self.path),
            stdout=subprocess.PIPE,
            check=True,
        )
        return json.loads(run.stdout)['results']

    def predict(self, stepsim, table):
        """The same by id."""
        return {r['id']: r for r in self.results(stepsim, table)}
