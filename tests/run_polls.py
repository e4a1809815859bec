#!/usr/bin/env python3
"""Long polls over real sockets: a worker that disconnected gets no job, and one that half-closed gets an empty answer."""
import json, socket, sys, time

import live
from live import Server, call, check

DEFINITION = {'id': 'p', 'name': 'P', 'steps': [{'id': 'a', 'name': 'A', 'type': 'SERVICE_TASK', 'jobType': 'j', 'nextStep': 'e'},
                                                {'id': 'e', 'name': 'E', 'type': 'END'}]}


def ask(server, wait_ms, worker):
    """Sends a poll and returns its socket."""
    host, port = server.http.rsplit(':', 1)
    s = socket.create_connection((host, int(port)), timeout=10)
    body = json.dumps({'workerId': worker, 'jobTypes': ['j'], 'maxWaitMs': wait_ms})
    s.sendall(f'POST /v1/jobs/poll HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\n\r\n{body}'.encode())
    return s


def answer(s):
    """Reads one HTTP answer and returns its JSON."""
    data = b''
    while b'\r\n\r\n' not in data:
        data += s.recv(65536) or sys.exit('the connection ended without an answer')
    head, body = data.split(b'\r\n\r\n', 1)
    length = int([l for l in head.lower().split(b'\r\n') if l.startswith(b'content-length')][0].split(b':')[1])
    while len(body) < length:
        body += s.recv(65536)
    return json.loads(body)


def job_after(server, leave):
    """Returns the seconds until a second worker has a job that appeared after the first worker left; None if it gets none."""
    first = ask(server, 20000, 'gone')
    time.sleep(0.2)
    leave(first)
    time.sleep(0.2)
    call(server.base, 'POST', '/v1/instances', {'definitionId': 'p'})
    begin = time.monotonic()
    second = ask(server, 5000, 'here')
    jobs = answer(second)['jobs'] or []
    took = time.monotonic() - begin
    for job in jobs:
        call(server.base, 'POST', f"/v1/jobs/{job['id']}/complete", {'workerId': 'here'})
    return took if jobs else None


def reset(s):
    """Closes with a TCP reset: SO_LINGER on, with a time of zero."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\x01\x00\x00\x00\x00\x00\x00\x00')
    s.close()


def main():
    with Server() as server:
        call(server.base, 'POST', '/v1/definitions', DEFINITION)
        for name, leave in (('closed', lambda s: s.close()), ('reset', reset)):
            took = job_after(server, leave)
            check(f'a poll whose connection was {name} takes no job ({took})', took is not None and took < 2)
        s = ask(server, 20000, 'half')
        time.sleep(0.1)
        s.shutdown(socket.SHUT_WR)
        begin = time.monotonic()
        check('a half-closed poll is answered with nothing at once', answer(s) == {'jobs': None} and time.monotonic() - begin < 2)
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
