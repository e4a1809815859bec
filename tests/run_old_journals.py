#!/usr/bin/env python3
"""Opens the journals that earlier versions wrote: `pawl verify` must agree, and a server must start on them."""
import glob, os, sys, tarfile, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live


def problems_of(archive):
    with tempfile.TemporaryDirectory(prefix='pawl-journal-') as folder:
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
        server = live.Server(data=folder)
        code, text = server.verify()
        if code:
            return [f'verify ended with {code}: {text}']
        frames = int(text.split()[0])
        if frames == 0:
            return ['the journal has no frames']
        server.start()
        ended = server.stop()
        return [f'the server ended with {ended}: {server.tail()}'] if ended else []


def main():
    archives = sorted(glob.glob(os.path.join(live.ROOT, 'tests/vectors/journals/*/*.tar.xz')))
    problems = [] if archives else ['no journal was found']
    for archive in archives:
        name = os.path.relpath(archive, live.ROOT)
        problems += [f'{name}: {p}' for p in problems_of(archive)]
    return live.report(problems, f'{len(archives)} journals')


if __name__ == '__main__':
    sys.exit(main())
