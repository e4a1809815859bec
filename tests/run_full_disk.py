#!/usr/bin/env python3
"""The disk fills up under a real server. The server reports it, loses nothing acknowledged, exits with 0 and starts again.

The test mounts a small tmpfs. Where that is not allowed, it prints so and tests nothing.
"""
import json, os, subprocess, sys, tempfile, urllib.error, urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check

DEFINITION = {'id': 'big', 'name': 'Big', 'steps': [
    {'id': 'u', 'name': 'U', 'type': 'USER_TASK', 'nextStep': 'e'}, {'id': 'e', 'name': 'E', 'type': 'END'}]}


def fill(server):
    """Starts instances until one is refused. Returns the acknowledged ids and the refusal."""
    told = []
    for _ in range(5000):
        status, body = live.call(server.base, 'POST', '/v1/instances', {'definitionId': 'big', 'variables': {'x': 'y' * 40000}})
        if status != 201:
            return told, (status, body)
        told.append(body['id'])
    return told, (0, None)


def run(folder):
    with live.Server(data=os.path.join(folder, 'data')) as server:
        live.call(server.base, 'POST', '/v1/definitions', DEFINITION)
        told, (status, body) = fill(server)
        check(f'a full disk is 503 with its cause, not {status} {body}', status == 503 and 'No space left' in json.dumps(body))
        try:
            urllib.request.urlopen(f'http://{server.admin}/readyz')
            check('readyz says that it is not ready', False)
        except urllib.error.HTTPError as err:
            check('readyz is 503', err.code == 503)
        check('reads go on', live.call(server.base, 'GET', '/v1/instances/' + told[0])[0] == 200)
        check('exit code 0', server.stop() == 0)
        subprocess.run(['mount', '-o', 'remount,size=256m', folder], check=True)
        server.start()
        lost = [id for id in told if live.call(server.base, 'GET', '/v1/instances/' + id)[0] != 200]
        check(f'{len(lost)} of {len(told)} acknowledged instances are lost', not lost)
        check('exit code 0 again', server.stop() == 0)
        code, text = server.verify()
        check(text, code == 0)


def stop_on_a_full_disk(folder):
    """Another program fills the disk while the server is idle. The server stops with 0 and loses nothing."""
    with live.Server(data=os.path.join(folder, 'idle')) as server:
        live.call(server.base, 'POST', '/v1/definitions', DEFINITION)
        told = [live.call(server.base, 'POST', '/v1/instances', {'definitionId': 'big', 'variables': {'x': 'y' * 4000}})[1]['id'] for _ in range(100)]
        other = os.path.join(folder, 'other')
        try:
            with open(other, 'wb', buffering=0) as f:
                while f.write(b'x' * 65536) == 65536:
                    pass
        except OSError:
            pass
        check('exit code 0 on a full disk', server.stop() == 0)
        os.unlink(other)
        server.start()
        lost = [id for id in told if live.call(server.base, 'GET', '/v1/instances/' + id)[0] != 200]
        check(f'{len(lost)} of {len(told)} instances are lost by the stop', not lost)
        check('exit code 0 with room again', server.stop() == 0)


def main():
    folder = tempfile.mkdtemp(prefix='pawl-full-')
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', folder], stderr=subprocess.DEVNULL)
    if mounted.returncode != 0:
        os.rmdir(folder)
        print('skipped: mounting a tmpfs is not allowed here')
        return 0
    try:
        run(folder)
        stop_on_a_full_disk(folder)
    finally:
        subprocess.run(['umount', folder], check=False)
        os.rmdir(folder)
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
