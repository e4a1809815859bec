#!/usr/bin/env python3
"""Plays every recorded conversation of tests/vectors against a real server, then verifies its journal."""
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, play

# One row a face: its folder and the flags that its conversations expect of the server.
FACES = [
    ('processes', []),
    ('entities', []),
    ('lifecycle', []),
]


def files_of(folder):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(folder) for n in names if n.endswith('.json'))


def main():
    wanted = sys.argv[1:]
    passed = failed = 0
    for face, flags in FACES:
        folder = os.path.join(live.ROOT, 'tests', 'vectors', face)
        if (wanted and face not in wanted) or not os.path.isdir(folder):
            continue
        server = live.Server(*flags)
        with server as s:
            for path in files_of(folder):
                diff = play.play(s.base, path, {})
                passed, failed = (passed, failed + 1) if diff else (passed + 1, failed)
                if diff:
                    print(f'FAIL {os.path.relpath(path, live.ROOT)}\n     {diff}')
            code = s.stop()
            verified, text = s.verify()
            if code or verified:
                failed += 1
                print(f'FAIL {face}: exit code {code}; verify said {verified}: {text}')
            else:
                passed += 1
                print(f'{face}: {text.strip()}')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
