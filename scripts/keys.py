#!/usr/bin/env python3
"""Writes what the program says of each key into docs/reference.md and configs/reference.yaml.

usage: stepsim list keys | python3 scripts/keys.py [--check]

The page's tables are written whole. Of the config the remarks are written: its values, and the order of its lines, are
its own. --check writes nothing, and fails where a file is not what would be written.
"""

import itertools, os, re, sys, textwrap
from constants import root

PAGE = os.path.join(root, 'docs/reference.md')
CONFIG = os.path.join(root, 'configs/reference.yaml')
WIDE = 100  # columns of a row of the page
WORDS = 34  # columns of its values, where the row is wider
REMARK = 27  # column at which remarks of the config begin
# Values that a reader of the config need not be told.
USUAL = re.compile(r'true, false|(auto, )?(from .*|[\d.]+ to .*|a size|a time|a map|a list, from .*|USD)')


def listed(lines):
    """The keys that the program printed, each with its meaning, values, default and other names."""
    starts = [m.start() for m in re.finditer(r'\S+(?: \S+)*', lines[0])]
    keys = []
    for line in lines[2:]:
        if not line.strip():
            return keys
        name, meaning, values, others = (line[a:b].strip() for a, b in zip(starts, starts[1:] + [None]))
        values, _, default = values.partition('; default: ')
        keys.append({'key': name, 'meaning': meaning, 'values': values, 'default': default, 'other names': others})
    return keys


def wrapped(text, width):
    """Lines of a text, which keep "0: none" on one."""
    lines = textwrap.wrap(text.replace(': ', ':\0'), width, break_long_words=False, break_on_hyphens=False)
    return [line.replace('\0', ' ') for line in lines] or ['']


def row(*cells):
    return '|' + '|'.join(' %s ' % cell if cell else ' ' for cell in cells) + '|\n'


# ---- the page ----


def key_rows(key):
    """The rows of a key: one, or as many as its values and its meaning need within the page's width."""
    name, default = '`%s`' % key['key'].split('.')[1], key['default']
    one = row(name, default, key['values'], key['meaning'])
    if len(one) <= WIDE + 1:
        return one
    values = wrapped(key['values'], WORDS)
    room = WIDE - len(row(name, default, '', '')) - max(map(len, values)) - 1
    (first, *more) = itertools.zip_longest(values, wrapped(key['meaning'], room), fillvalue='')
    return row(name, default, *first) + ''.join(row('', '', *cells) for cells in more)


def name_rows(key):
    """The rows of a key's other names; values of a name's own stand on one row with it."""
    groups = []
    for group in key['other names'].split('; '):
        names, _, values = group.partition(' (')
        groups.append(', '.join('`%s`' % n for n in names.split(', ')) + (' (' + values if values else ''))
    text = re.sub(r'\([^)]*\)', lambda m: m.group().replace(' ', '\0'), '; '.join(groups)).replace(' (', '\0(')
    path = '`%s`' % key['key']
    rows = wrapped(text, WIDE - len(row(path, '')))
    return ''.join(row(path, names.rstrip(',;')) for names in rows)


def page(text, keys):
    tables = {}
    for key in keys:
        head = '| key | default | values | meaning |\n| --- | --- | --- | --- |\n'
        section = key['key'].split('.')[0]
        tables[section] = tables.get(section, head) + key_rows(key)
    tables['Other names'] = '| key | other names |\n| --- | --- |\n' + ''.join(
        name_rows(key) for key in keys if key['other names']
    )
    for heading, table in tables.items():
        text, found = re.subn(
            r'(?m)(^### %s\n(?:(?!#).*\n)*?)(?:\|.*\n)+' % heading, lambda m: m.group(1) + table, text, count=1
        )
        if not found:
            sys.exit('docs/reference.md has no table below "### %s"' % heading)
    return text


# ---- the config ----


def remark(key):
    text = key['meaning']
    if not USUAL.fullmatch(key['values']):
        text += ' (%s)' % key['values']
    if key['default'].startswith('('):
        text += '; default: %s' % key['default'].strip('()')
    return text


def config(text, keys):
    of = {key['key']: key for key in keys}
    section, behind, out, told = None, False, [], set()
    for line in text.splitlines():
        if found := re.match(r'([a-z]+):', line):
            section, behind = found[1], False
        elif found := re.match(r'  (?:# )?([a-z_0-9]+):(?: "[^"]*"| [^#]*)?', line):
            behind = '%s.%s' % (section, found[1])
            if behind not in of:
                sys.exit('configs/reference.yaml: %s is no key' % behind)
            told.add(behind)
            first, *more = wrapped(remark(of[behind]), 120 - REMARK - 2)
            line = found[0].rstrip().ljust(REMARK - 1) + ' # ' + first
            line += ''.join('\n' + ' ' * REMARK + '# ' + text for text in more)
        elif behind and re.match(r' {20,}# ', line):
            continue
        out.append(line)
    for key in of.keys() - told:
        sys.exit('configs/reference.yaml has no line of %s: write one, with a value' % key)
    return '\n'.join(out) + '\n'


def main():
    keys, stale = listed(sys.stdin.read().splitlines()), []
    for path, of in ((PAGE, page), (CONFIG, config)):
        with open(path) as file:
            before = file.read()
        after = of(before, keys)
        if after == before:
            continue
        stale.append(os.path.relpath(path, root))
        if '--check' not in sys.argv:
            with open(path, 'w') as file:
                file.write(after)
    if '--check' in sys.argv:
        for name in stale:
            print(name + ' is not what the program says: stepsim list keys | python3 scripts/keys.py writes it')
        print('%d keys' % len(keys))
    return 1 if stale and '--check' in sys.argv else 0


if __name__ == '__main__':
    sys.exit(main())
