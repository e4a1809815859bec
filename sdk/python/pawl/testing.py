"""A real server for tests, on free ports and in a temporary folder that is removed afterwards.

    with Engine() as engine:
        engine.client.deploy(definition)
        with engine.working(worker):
            done = engine.client.wait(engine.client.start(definition['id']).id)
"""
from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.request
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence

from .client import Client
from .errors import PawlError
from .worker import Worker

_HOST = '127.0.0.1'
_UNVERIFIED = ssl._create_unverified_context()  # the certificate of a test is signed by itself


def _program(binary: Optional[str]) -> str:
    found = binary or os.environ.get('PAWL_BINARY') or shutil.which('pawl') or ''
    if not found:
        raise PawlError('no pawl program: name it with binary="/path/to/pawl" or PAWL_BINARY')
    return found


def simulate(path: str, *, lives: Optional[int] = None, seed: int = 1, invariants: Sequence[str] = (),
             workers: Optional[Mapping[str, str]] = None, binary: Optional[str] = None) -> Dict[str, Any]:
    """Plays the simulation file (`pawl simulate`). Returns the report; raises AssertionError with the stories when something
    was found. workers: programs by job type, in the place of the file's results."""
    words = [_program(binary), 'simulate', path, '--seed', str(seed), '--json']
    words += ['--lives', str(lives)] if lives else []
    for invariant in invariants:
        words += ['--invariant', invariant]
    for job_type, program in (workers or {}).items():
        words += ['--worker', f'{job_type}={program}']
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode not in (0, 6):
        raise PawlError(f'pawl simulate ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}')
    report: Dict[str, Any] = json.loads(done.stdout)
    if report['findings']:
        raise AssertionError('\n\n'.join(_told(finding) for finding in report['findings']))
    return report


def _told(finding: Mapping[str, Any]) -> str:
    lines = [finding['title']]
    lines += [f'  {line["atMs"] / 1000:10.1f} s  {line["text"]}' for line in finding.get('story', [])]
    lines += ['  replay: ' + finding['replay']] if 'replay' in finding else []
    return '\n'.join(lines)


class Engine:
    """`pawl serve` of one test. url, grpc and admin stay the same when it is killed and started again."""

    def __init__(self, binary: Optional[str] = None, *, flags: Sequence[str] = (), env: Optional[Mapping[str, str]] = None):
        """binary: the pawl program; default $PAWL_BINARY, else `pawl` on the path."""
        self.binary = _program(binary)
        self.flags, self.env = list(flags), {**os.environ, **(env or {})}
        self.folder = tempfile.mkdtemp(prefix='pawl-test-')
        self.http, self.grpc, self.admin = _free_addresses(3)
        self.url = ('https://' if '--tls-certificate' in self.flags else 'http://') + self.http
        self.client = Client(self.url)
        self.process: Optional['subprocess.Popen[bytes]'] = None

    def start(self, wait_s: float = 60.0) -> 'Engine':
        with open(os.path.join(self.folder, 'log'), 'ab') as log:
            self.process = subprocess.Popen(
                [self.binary, 'serve', '--data', os.path.join(self.folder, 'data'), '--http', self.http, '--grpc', self.grpc,
                 '--admin', self.admin, *self.flags], stderr=log, env=self.env)
        probe = self.url.replace(self.http, self.admin) + '/readyz'
        until = time.monotonic() + wait_s
        # /readyz answers 200 once the server takes requests.
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise PawlError(f'the server ended with {self.process.returncode}:\n{self.log()}')
            try:
                urllib.request.urlopen(probe, timeout=5, context=_UNVERIFIED).read()
                return self
            except OSError:
                time.sleep(0.02)
        raise PawlError('the server did not get ready:\n' + self.log())

    def kill(self) -> None:
        """kill -9, as a power cut would. start() begins again on the same data and ports."""
        if self.process:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> int:
        """Sends SIGTERM and returns the exit code."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        return self.process.returncode if self.process else 0

    def log(self) -> str:
        with open(os.path.join(self.folder, 'log'), errors='replace') as f:
            return f.read()[-4000:]

    def call(self, method: str, path: str, body: Any = None, headers: Optional[Dict[str, str]] = None) -> Any:
        """Sends any request, for example to the entities face below /api."""
        return self.client.http.call(method, path, body, headers=headers)

    @contextlib.contextmanager
    def working(self, worker: Worker) -> Iterator[Worker]:
        """Runs the worker on a thread inside the block."""
        thread = threading.Thread(target=worker.run, kwargs={'signals': False})
        thread.start()
        try:
            yield worker
        finally:
            worker.stop()
            thread.join()

    def __enter__(self) -> 'Engine':
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_addresses(count: int) -> 'list[str]':
    """Addresses with free ports. All sockets are open together, so the ports differ; another process may take one later."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for s in sockets:
            s.bind((_HOST, 0))
        return [f'{_HOST}:{s.getsockname()[1]}' for s in sockets]
