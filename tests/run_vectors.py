#!/usr/bin/env python3
"""Plays every recorded conversation of tests/vectors against a real server, then verifies its journal."""
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, play

# One row a face: its folder and the flags that its conversations expect of the server.
FACES = [
    # The original lets every web site call; here an operator must say so.
    ('processes', ['--allowed-origins', '*']),
    ('entities', []),
    ('lifecycle', []),
]


def files_of(folder):
    """The conversations at or below a folder, sorted, so that every shard sees the same order."""
    return sorted(os.path.join(d, n) for d, _, names in os.walk(folder) for n in names if n.endswith('.json'))


def play_face(face, flags):
    """Plays this process's share of the conversations of a face on one server."""
    with live.Server(*flags) as server:
        for path in live.shard(files_of(os.path.join(live.ROOT, 'tests', 'vectors', face))):
            diff = play.play(server.base, path, {})
            live.check(f'{os.path.relpath(path, live.ROOT)}\n     {diff}', not diff)
        for problem in server.stop_and_verify():
            live.fail(f'{face}: {problem}')


def main():
    for face, flags in FACES:
        if face in (sys.argv[1:] or [face]):
            play_face(face, flags)
    return live.report(f'{live.checks} conversations')


if __name__ == '__main__':
    sys.exit(main())
