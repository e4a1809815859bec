"""The functions that all test scripts share: a real server on free ports, HTTP calls, and the collection of failed checks.

Every script starts its servers with `Server` and reports with `check` and `report`, so that scripts may run side by side
and one failed check does not hide the next.
"""
import base64, importlib, json, os, shutil, signal, ssl, subprocess, sys, tempfile, time, traceback, urllib.error, urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import openapi

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get('PAWL_BUILD', os.path.join(ROOT, 'build'))
PAWL = os.environ.get('PAWL_BINARY', os.path.join(BUILD, 'pawl'))
SYSTEM_PYTHON = '/usr/bin/python3'
MAX_FAILURES_SHOWN = 50
UNVERIFIED = ssl._create_unverified_context()  # for probes of servers with a self-signed certificate


class Base(str):
    """The base URL of a server, with the headers that `call` adds to each request."""

    def __new__(cls, url, headers=None):
        base = super().__new__(cls, url)
        base.headers = headers or {}
        return base

    def __reduce__(self):
        return Base, (str(self), self.headers)


class Caller:
    """A running server as the holder of one token calls it. Other processes may have a copy."""
    process = None  # the caller does not own the server

    def __init__(self, server, token=''):
        self.http, self.grpc, self.admin = server.http, server.grpc, server.admin
        self.headers = {'Authorization': 'Bearer ' + token} if token else {}
        self.token, self.base = token, Base(server.base, self.headers)


def head_lines(server):
    """The headers of a caller as lines of a request that a test writes itself."""
    return ''.join(f'{name}: {value}\r\n' for name, value in server.headers.items())


class Server:
    """`with Server() as s`: s.http, s.grpc and s.admin are addresses. s.kill() is kill -9; s.start() starts it again.

    The operating system picks the ports, so servers never collide. With keep_ports, a restart listens where the first start
    did; clients that reconnect need that.
    """
    headers, token = {}, ''  # see Caller
    prefix = []  # a program that starts the server, with its arguments

    def __init__(self, *flags, env=None, data=None, keep_ports=False):
        """data: the data folder; without it the server gets a temporary one."""
        self.flags, self.env, self.keep_ports = flags, {**os.environ, **(env or {})}, keep_ports
        self.scratch = tempfile.mkdtemp(prefix='pawl-test-')  # the log, and the data unless it was named
        self.keep = False  # true: the files stay when the server is closed
        self.folder = data or os.path.join(self.scratch, 'data')
        self.log = os.path.join(self.scratch, 'log')
        self.listen = {'http': '127.0.0.1:0', 'grpc': '127.0.0.1:0', 'admin': '127.0.0.1:0'}
        self.process = None

    def start(self, wait_s=60):
        # The server writes its addresses to this file when it listens.
        serving = os.path.join(self.folder, 'serving.json')
        until = time.monotonic() + wait_s
        self.launch(serving)
        while time.monotonic() < until:
            if self.process.poll() is not None:
                # Another process may hold a kept port for a moment as the local port of a connection.
                if not (self.keep_ports and 'in use' in self.tail(300)):
                    raise RuntimeError(f'the server ended with {self.process.returncode}:\n{self.tail()}')
                time.sleep(0.2)
                self.launch(serving)
            try:
                with open(serving) as f:
                    where = json.load(f)
                self.http, self.grpc, self.admin = where['http'], where['grpc'], where['admin']
                self.base = ('https://' if '--tls-certificate' in self.flags else 'http://') + self.http
                if self.keep_ports:
                    self.listen = {name: where[name] for name in self.listen}
                self.admin_base = self.base.split('//')[0] + '//' + self.admin
                urllib.request.urlopen(f'{self.admin_base}/readyz', timeout=5, context=UNVERIFIED).read()
                return self
            except (OSError, ValueError):
                time.sleep(0.02)
        raise RuntimeError('the server did not get ready:\n' + self.tail())

    def launch(self, serving):
        """Starts the process. The file of an earlier run is removed first, so that its addresses are not taken for new ones."""
        if os.path.exists(serving):
            os.unlink(serving)
        listen = [word for name, address in self.listen.items() for word in ('--' + name, address)]
        with open(self.log, 'a') as log:
            self.process = subprocess.Popen([*self.prefix, PAWL, 'serve', '--data', self.folder, *listen, *self.flags],
                                            stdout=log, stderr=log, env=self.env)

    def tail(self, size=3000):
        with open(self.log, errors='replace') as f:
            return f.read()[-size:]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """SIGTERM. Returns the exit code, which must be 0."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
        return self.process.returncode if self.process else 0

    def verify(self):
        """Runs `pawl verify` on the data folder; the server must not run. Returns (exit code, output)."""
        done = subprocess.run([PAWL, 'verify', '--data', self.folder], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def stop_and_verify(self):
        """Stops the server and replays its journal. Returns the problems found: a bad exit code, a difference."""
        ended = self.stop()
        code, text = self.verify()
        return ([f'the server ended with {ended}: {self.tail()}'] if ended else []) + ([f'verify: {text}'] if code else [])

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        try:
            if self.process and self.process.poll() is None and self.stop() != 0:
                fail(f'the server ended with {self.process.returncode}:\n{self.tail()}')
        finally:
            if self.process and self.process.poll() is None:
                self.kill()
            if not self.keep:
                shutil.rmtree(self.scratch, ignore_errors=True)


class JwtServer(Server):
    """A server with --auth jwt. The bootstrap client `boot` with the secret `secret` is an admin of the tenant acme, which
    operates the server."""

    def __init__(self, *flags, env=None, **more):
        super().__init__('--auth', 'jwt', *flags, **more)
        self.key = os.path.join(self.scratch, 'key.pem')
        make_rsa_key(self.key)
        self.env = {**self.env, 'PAWL_JWT_KEY_FILE': self.key, 'PAWL_BOOTSTRAP_CLIENT_ID': 'boot',
                    'PAWL_BOOTSTRAP_CLIENT_SECRET': 'secret', 'PAWL_BOOTSTRAP_TENANT_ID': 'acme', **(env or {})}

    def login(self, client, secret):
        """Asks for a token. Returns (status, body)."""
        basic = base64.b64encode(f'{client}:{secret}'.encode()).decode()
        return call(self.base, 'POST', '/api/oauth/token', b'grant_type=client_credentials',
                    {'Authorization': 'Basic ' + basic, 'Content-Type': 'application/x-www-form-urlencoded'})

    def token_of(self, client, secret):
        status, body = self.login(client, secret)
        check(f'a token for {client}: {status} {body}', status == 200)
        return body['access_token']

    def boss(self):
        """The headers of the bootstrap client."""
        return {'Authorization': 'Bearer ' + self.token_of('boot', 'secret')}

    def make_client(self, *roles, tenant='acme'):
        """Makes a machine client. Returns its id and secret."""
        status, made = call(self.base, 'POST', '/api/account/m2m', {'tenantId': tenant, 'userId': roles[0] if roles else 'nobody', 'roles': list(roles)},
                            self.boss())
        check(f'a client with {roles}: {status} {made}', status == 201)
        return made['clientId'], made['clientSecret']

    def token_for(self, *roles, tenant='acme'):
        """A token of a new machine client with these roles."""
        return self.token_of(*self.make_client(*roles, tenant=tenant))


failures = []
checks = 0
# True: `call` checks each answer against the OpenAPI document of its server.
contracts = False


def fail(what):
    failures.append(what)
    if len(failures) <= MAX_FAILURES_SHOWN:
        print('FAIL', what, flush=True)


def check(what, held):
    """Records a failure when `held` is false, and goes on."""
    global checks
    checks += 1
    if not held:
        fail(what)
    return bool(held)


def report(summary='', problems=()):
    """Prints the outcome of the script. Returns its exit code."""
    for problem in problems:
        fail(problem)
    print(f'{summary or f"{checks} checks"}, {len(failures)} problems')
    return 1 if failures else 0


def run_parts(parts):
    """Runs functions, or (name, function) pairs, one after the other. An exception fails its own part only.

    Words on the command line choose the parts whose names contain all of them. Under ctest, this process runs its share of
    the parts; the variables that say which are those of Google Test.
    """
    named = [part if isinstance(part, tuple) else (part.__name__, part) for part in parts]
    chosen = [(name, run) for name, run in shard(named) if all(word in name for word in sys.argv[1:])]
    for name, run in chosen:
        began, before = time.monotonic(), len(failures)
        try:
            run()
            check(name, True)
        except Exception:
            check(f'{name}\n{traceback.format_exc(limit=-4)}', False)
        print(f'{"ok" if len(failures) == before else "FAILED"} {name} {time.monotonic() - began:.1f} s', flush=True)
    if not chosen and sys.argv[1:]:
        fail(f'no part is named {" ".join(sys.argv[1:])}')


def shard(items):
    """The items that this process of a sharded test handles; all of them outside ctest."""
    total, index = int(os.environ.get('GTEST_TOTAL_SHARDS', 1)), int(os.environ.get('GTEST_SHARD_INDEX', 0))
    return list(items)[index::total]


def until(condition, what, seconds=20):
    """Waits until condition() is true; fails with `what` after the given time. Returns whether it became true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return check(f'waited {seconds} s for {what}', False)
        time.sleep(0.05)
    return True


def call(base, method, path, body=None, headers=None, timeout=30):
    """Sends one request. Returns (status, parsed body)."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    of_caller = base.headers if isinstance(base, Base) else {}
    request = urllib.request.Request(base + path, data, {'Content-Type': 'application/json', **of_caller, **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            text, status, media = reply.read().decode(), reply.status, reply.headers.get('Content-Type')
    except urllib.error.HTTPError as err:
        text, status, media = err.read().decode(), err.code, err.headers.get('Content-Type')
    if contracts and (contract := openapi.contract_of(base)):
        if problem := contract.problem(method, path, status, media, text):
            fail(f'{method} {path}: {problem}')
    try:
        return status, json.loads(text) if text else None
    except ValueError:
        return status, text


def need_grpc():
    """Restarts the script under Debian's own Python when this Python has no grpcio."""
    try:
        importlib.import_module('grpc')
    except ImportError:
        if sys.executable != SYSTEM_PYTHON and os.path.exists(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, *sys.argv])
        sys.exit('python3-grpcio is needed: apt install python3-grpcio protobuf-compiler-grpc')


def compile_protos(sources, names, folder):
    """Compiles the .proto files of a folder into Python modules that can be imported from `folder`."""
    subprocess.run(['protoc', '-I', sources, '--python_out', folder, '--grpc_python_out', folder,
                    '--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin', *names], check=True)
    sys.path.insert(0, folder)


def make_rsa_key(path):
    """Writes a private key in PEM form, for signing tokens."""
    subprocess.run(['openssl', 'genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', path],
                   check=True, stderr=subprocess.DEVNULL)


def make_certificate(folder):
    """Makes a self-signed certificate for 127.0.0.1. Returns the paths of the key and of the certificate."""
    key, certificate = os.path.join(folder, 'key.pem'), os.path.join(folder, 'certificate.pem')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=pawl', '-addext',
                    'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', certificate], check=True, stderr=subprocess.DEVNULL)
    return key, certificate
