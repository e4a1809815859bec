"""A real server for the tests: free ports, a folder of its own, ended and cleaned up afterwards."""
import json, os, shutil, signal, subprocess, sys, tempfile, time, urllib.error, urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get('PAWL_BUILD', os.path.join(ROOT, 'build'))
PAWL = os.path.join(BUILD, 'pawl')


class Server:
    """with Server() as s: s.http, s.grpc, s.admin are addresses; s.kill() is kill -9, s.start() begins again."""

    def __init__(self, *flags, data=None, env=None):
        self.flags, self.env = flags, {**os.environ, **(env or {})}
        self.own = data is None
        self.data = data or tempfile.mkdtemp(prefix='pawl-test-')
        self.folder = os.path.join(self.data, 'data') if self.own else data
        self.process = None

    def start(self, wait_s=60):
        serving = os.path.join(self.folder, 'serving.json')
        if os.path.exists(serving):
            os.unlink(serving)
        self.log = open(os.path.join(self.data, 'log'), 'a')
        self.process = subprocess.Popen(
            [PAWL, 'serve', '--data', self.folder, '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0',
             '--admin', '127.0.0.1:0', *self.flags], stderr=self.log, env=self.env)
        until = time.monotonic() + wait_s
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f'the server ended with {self.process.returncode}:\n{self.tail()}')
            try:
                with open(serving) as f:
                    where = json.load(f)
                self.http, self.grpc, self.admin = where['http'], where['grpc'], where['admin']
                self.base = 'http://' + self.http
                urllib.request.urlopen(f'http://{self.admin}/readyz', timeout=5).read()
                return self
            except (OSError, ValueError):
                time.sleep(0.02)
        raise RuntimeError('the server did not get ready:\n' + self.tail())

    def tail(self):
        with open(os.path.join(self.data, 'log')) as f:
            return f.read()[-3000:]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """SIGTERM; the exit code must be 0."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        return self.process.returncode if self.process else 0

    def verify(self):
        done = subprocess.run([PAWL, 'verify', '--data', self.folder], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def stop_and_verify(self):
        """The problems that a stopped server and its journal have: the exit code is not 0, the journal run again differs."""
        ended = self.stop()
        code, text = self.verify()
        return ([f'the server ended with {ended}: {self.tail()}'] if ended else []) + ([f'verify: {text}'] if code else [])

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            if self.stop() != 0:
                print(f'the server ended with {self.process.returncode}:\n{self.tail()}', file=sys.stderr)
        self.clean()

    def clean(self):
        if self.own:
            shutil.rmtree(self.data, ignore_errors=True)


def report(problems, summary):
    """Says them, and what was done; the exit code."""
    for p in problems[:20]:
        print('FAIL', p)
    print(f'{summary}, {len(problems)} problems')
    return 1 if problems else 0


def call(base, method, path, body=None, headers=None, timeout=30):
    """(status, parsed body) of one request."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {'Content-Type': 'application/json', **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            text, status = reply.read().decode(), reply.status
    except urllib.error.HTTPError as err:
        text, status = err.read().decode(), err.code
    try:
        return status, json.loads(text) if text else None
    except ValueError:
        return status, text
