#!/usr/bin/env python3
"""Opens the journals that earlier versions wrote: `pawl verify` must agree, and a server must start on them."""
import glob, os, sys, tarfile, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check


def open_journal(archive):
    """Verifies a copy of the journal first, then starts and stops a server on it."""
    with tempfile.TemporaryDirectory(prefix='pawl-journal-') as folder:
        with tarfile.open(archive) as tar:
            tar.extractall(folder)
        server = live.Server(data=folder)
        code, text = server.verify()
        if not check(f'verify ended with {code}: {text}', code == 0):
            return
        check(f'the journal has frames: {text}', int(text.split()[0]) > 0)
        server.start()
        ended = server.stop()
        check(f'the server ended with {ended}: {server.tail()}', ended == 0)


def main():
    archives = sorted(glob.glob(os.path.join(live.ROOT, 'tests/vectors/journals/*/*.tar.xz')))
    check('there are journals to open', archives)
    live.run_parts([(os.path.relpath(archive, live.ROOT), lambda archive=archive: open_journal(archive)) for archive in archives])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
