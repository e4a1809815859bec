#!/usr/bin/env python3
"""Checks that every numbered behaviour in tests/cases has a test, marked with `// case N` right above it."""
import os, re, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import ROOT

# The list of a face, and where its tests are.
LISTS = {'tests/cases/lifecycle.md': ('src/embed', 'src/faces/lifecycle')}
NAMED = re.compile(r'// cases? ((?:\d+)(?:, \d+)*)\n(?:// .*\n)*TEST(?:_F|_P)?\(')


def numbers(path):
    """The numbers of the cases in a list, which is a numbered Markdown list."""
    with open(os.path.join(ROOT, path)) as f:
        return {int(n) for n in re.findall(r'^(\d+)\. ', f.read(), re.M)}


def named(folders):
    """Yields (file, number) for every mark that stands above a test."""
    for folder in folders:
        for base, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith('_test.cc'):
                    path = os.path.join(base, name)
                    with open(path) as f:
                        for hit in NAMED.finditer(f.read()):
                            yield from ((os.path.relpath(path, ROOT), int(n)) for n in hit[1].split(', '))


def main():
    for path, folders in LISTS.items():
        wanted, marks = numbers(path), list(named(folders))
        for n in sorted(wanted - {n for _, n in marks}):
            live.fail(f'{path}: no test names case {n}')
        for where, n in marks:
            live.check(f'{where}: there is no case {n}', n in wanted)
        print(f'{path}: {len(wanted)} cases, {len(marks)} marks')
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
