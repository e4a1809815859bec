#!/usr/bin/env python3
"""One tenant keeps threads of a real server busy: with searches, lists, logins and keys. Another tenant does not notice.

tests/run_fair.py floods the kernel; here the work is done beside it, on I/O threads and in pools."""
import base64, http.client, json, os, resource, select, socket, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, run_attacks, run_auth, run_fair, run_memory
from live import call, check

# Before work was divided by tenants, each of these attacks held up the quiet tenant for seconds to minutes.
MAX_WAIT_S = 2.5
SMALL = {'type': 'simple', 'jsonPath': '$.n', 'operatorType': 'EQUALS', 'value': 1}


class Quiet(threading.Thread):
    """Requests of the quiet tenant, each on a new connection, until the block ends. Checks their times and answers."""

    def __init__(self, caller, name, *request):
        super().__init__(daemon=True)
        self.caller, self.name_, self.request, self.times, self.refused, self.over = caller, name, request, [], [], threading.Event()

    def run(self):
        while not self.over.is_set():
            began = time.monotonic()
            status, body = call(self.caller.base, *self.request, timeout=150)
            self.times.append(time.monotonic() - began)
            if status != 200:
                self.refused.append((status, str(body)[:200]))
            self.over.wait(0.02)

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.over.set()
        self.join()
        times = sorted(self.times)
        print(f'  beside {self.name_}: {len(times)} requests, p50 {times[len(times) // 2] * 1000:.1f} ms, max {times[-1] * 1000:.0f} ms', flush=True)
        check(f'beside {self.name_} the quiet tenant waits at most {MAX_WAIT_S} s, not {times[-1]:.1f}', times[-1] <= MAX_WAIT_S)
        check(f'beside {self.name_} the quiet tenant is served: {self.refused[:2]}', not self.refused)


def pipeline(caller, count, seconds, target, body='', headers=None):
    """Sends a request so many times on each of four connections and reads for a time. Returns the answers by status."""
    lines = live.head_lines(caller) if headers is None else headers
    data = f'{target} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {len(body)}\r\n\r\n{body}'.encode() * count
    host, port = caller.http.rsplit(':', 1)
    unsent = {socket.create_connection((host, int(port)), timeout=20): data for _ in range(4)}
    for s in unsent:
        s.setblocking(False)
    until, answers = time.monotonic() + seconds, {}
    while time.monotonic() < until:
        readable, writable, _ = select.select(list(unsent), [s for s, left in unsent.items() if left], [], 0.1)
        for s in writable:
            unsent[s] = unsent[s][s.send(unsent[s]):]
        for s in readable:
            for answer in s.recv(1 << 20).split(b'HTTP/1.1 ')[1:]:
                answers[answer[:3].decode()] = answers.get(answer[:3].decode(), 0) + 1
    for s in unsent:
        s.close()
    return answers


def two_tenants(part):
    """Runs the part with the callers of a loud and of a quiet tenant."""
    with tempfile.TemporaryDirectory() as folder:
        server, token = run_fair.tenants(folder, '--memory-budget', '256MiB')
        with server:
            part(live.Caller(server, token('loud')), live.Caller(server, token('quiet')))
            peak = run_memory.memory_of(server, 'VmHWM')
            check(f'the peak of {peak // run_memory.MIB} MiB is below 1 GiB', peak < run_memory.MAX_RESIDENT)


def wide_model(caller, large):
    """A model with one small entity and some large ones."""
    call(caller.base, 'POST', '/api/model/import/JSON/SAMPLE_DATA/wide/1', {'k': 'x', 'n': 1})
    call(caller.base, 'PUT', '/api/model/wide/1/lock')
    for i in range(large):
        status, _ = call(caller.base, 'POST', '/api/entity/JSON/wide/1', {'k': 'a' * 3_000_000, 'n': i}, timeout=60)
        check(f'a large entity: {status}', status == 200)
    call(caller.base, 'POST', '/api/entity/JSON/wide/1', {'k': 'a', 'n': 1})


def long_searches(caller, count):
    """Begins searches that take as long as they may. Returns their connections."""
    connections = []
    for _ in range(count):
        connection = http.client.HTTPConnection(caller.http, timeout=60)
        connection.request('POST', '/api/search/direct/wide/1', json.dumps(run_attacks.condition(900, 'b')), {'Content-Type': 'application/json', **caller.headers})
        connections.append(connection)
    return connections


def searches(loud, quiet):
    """Sixty searches at the same time."""
    wide_model(loud, 12)
    wide_model(quiet, 0)
    connections = long_searches(loud, 60)
    time.sleep(0.5)
    with Quiet(quiet, 'searches', 'POST', '/api/search/direct/wide/1', SMALL):
        time.sleep(6)
    for connection in connections:
        connection.close()


def lists(loud, quiet):
    """Lists with filters that read every instance, a hundred at a time."""
    call(loud.base, 'POST', '/v1/definitions', run_fair.DEFINITION)
    for _ in range(40):
        status, _ = call(loud.base, 'POST', '/pawl/v1/processes/start-batch', {'items': [{'definitionId': 'p', 'variables': {'x': 'y'}}] * 1000, 'brief': True}, timeout=60)
        check(f'instances start: {status}', status == 200)
    for path in ('/pawl/v1/processes/instances?variable=x=none', '/v1/instances?page=39000&pageSize=1'):
        with Quiet(quiet, path, 'GET', '/v1/definitions'):
            pipeline(loud, 25, 4, 'GET ' + path)


def log_in_often(caller, seconds):
    """A client logs in hundreds of times a second with the right secret: hashing it is slow on purpose."""
    status, made = call(caller.base, 'POST', '/api/account/m2m', {'userId': 'x', 'roles': ['viewer']})
    check(f'a client: {status}', status == 201)
    basic = base64.b64encode(f'{made["clientId"]}:{made["clientSecret"]}'.encode()).decode()
    headers = f'Authorization: Basic {basic}\r\nContent-Type: application/x-www-form-urlencoded\r\n'
    return pipeline(caller, 250, seconds, 'POST /api/oauth/token', 'grant_type=client_credentials', headers)


def logins(loud, quiet):
    with Quiet(quiet, 'logins', 'GET', '/v1/definitions'):
        answers = log_in_often(loud, 5)
    check(f'some logins succeed, none fails otherwise than by 429: {answers}', answers.get('200', 0) > 0 and set(answers) <= {'200', '429'})


def key_pairs(loud, quiet):
    """Many key pairs at once: each costs a fraction of a second. There are never more than allowed."""
    call(quiet.base, 'POST', '/api/model/import/JSON/SAMPLE_DATA/wide/1', {'k': 'x', 'n': 1})
    call(quiet.base, 'PUT', '/api/model/wide/1/lock')
    with Quiet(quiet, 'key pairs', 'POST', '/api/search/direct/wide/1', SMALL):
        answers = pipeline(loud, 100, 6, 'POST /api/oauth/keys/keypair')
    check(f'some are made: {answers}', answers.get('201', 0) > 0)


def clients_and_keys_are_small(loud, quiet):
    """What an admin stores beside a client or a key is bounded: a list would otherwise read gigabytes."""
    for body in ({'userId': 'x' * 1000, 'roles': []}, {'userId': 'x', 'roles': ['r' * 1000]}, {'userId': 'x', 'roles': ['r'] * 1000}):
        status, answer = call(loud.base, 'POST', '/api/account/m2m', body)
        check(f'a large client is refused: {status} {str(answer)[:200]}', status == 400 and 'most' in json.dumps(answer) or 'more than' in json.dumps(answer))
    with tempfile.TemporaryDirectory() as folder:
        jwk = run_auth.new_key(os.path.join(folder, 'key.pem'))
    for body in ({'issuers': ['i' * 1000]}, {'issuers': ['i'] * 1000}, {'issuers': [1]}, {'audience': 'a' * 1000}):
        status, answer = call(loud.base, 'POST', '/api/oauth/keys/trusted', {'keyId': 'k', 'jwk': jwk, **body})
        check(f'{list(body)} is refused: {status} {str(answer)[:200]}', status == 400)
    for i in range(20):
        status, _ = call(loud.base, 'POST', '/api/oauth/keys/trusted', {'keyId': f'k{i}', 'jwk': {**jwk, 'pad': 'x' * 9_000_000}}, timeout=60)
        check(f'the rest of a document is not kept: {status}', status == 201)
    began = time.monotonic()
    status, listed = call(loud.base, 'GET', '/api/oauth/keys/trusted')
    check(f'a list of keys is short: {status} in {time.monotonic() - began:.1f} s', len(listed) == 20 and time.monotonic() - began < 1)


def lists_over_grpc(loud, quiet):
    """Pages far down a list, hundreds of calls at a time, while the quiet tenant makes small calls."""
    import grpc
    call(loud.base, 'POST', '/v1/definitions', run_fair.DEFINITION)
    for _ in range(40):
        call(loud.base, 'POST', '/pawl/v1/processes/start-batch', {'items': [{'definitionId': 'p'}] * 1000, 'brief': True}, timeout=60)

    def method(caller, name):
        channel = grpc.insecure_channel(caller.grpc, options=[('grpc.use_local_subchannel_pool', 1)])
        raw = dict(request_serializer=lambda b: b, response_deserializer=lambda b: b)
        return lambda message, wait: getattr(channel.unary_unary('/workflow.v1.WorkflowEngine/' + name, **raw), 'future')(
            message, metadata=(('authorization', 'Bearer ' + caller.token),), timeout=wait)
    # Page 39,000 of size 1: fields 4 and 5 as varints.
    waiting = [send(b'\x20\xd8\xb0\x02\x28\x01', 60) for send in [method(loud, 'ListInstances') for _ in range(4)] for _ in range(60)]
    small, times, until = method(quiet, 'ListDefinitions'), [], time.monotonic() + 5
    while time.monotonic() < until:
        began = time.monotonic()
        small(b'', 120).result()
        times.append(time.monotonic() - began)
        time.sleep(0.02)
    for sent in waiting:
        sent.cancel()
    print(f'  beside lists over gRPC: {len(times)} calls, p50 {sorted(times)[len(times) // 2] * 1000:.1f} ms, max {max(times) * 1000:.0f} ms', flush=True)
    check(f'the quiet tenant waits at most {MAX_WAIT_S} s, not {max(times):.1f}', max(times) <= MAX_WAIT_S)


def open_and_hold(address, count):
    """Connections that send nothing. Those that the server closes at once are counted as well."""
    host, port = address.rsplit(':', 1)
    sockets = []
    for _ in range(count):
        s = socket.socket()
        s.settimeout(2)
        s.connect((host, int(port)))
        sockets.append(s)
    return sockets


def connections_of_strangers():
    """A server that may open 1024 files. Strangers hold as many connections as they get, at each address. Files can still be
    opened, so nothing acknowledged is lost and writes go on; probes and clients at the other addresses are served."""
    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (own[1], own[1]))
    with tempfile.TemporaryDirectory() as folder:
        server, token = run_fair.tenants(folder, '--memory-budget', '256MiB')
        server.prefix = ['prlimit', '--nofile=1024:1024']
        with server:
            quiet = live.Caller(server, token('quiet'))
            check('a definition', call(quiet.base, 'POST', '/v1/definitions', run_fair.DEFINITION)[0] == 201)
            kept = http.client.HTTPConnection(server.http, timeout=60)
            large = json.dumps({'definitionId': 'p', 'variables': {'x': 'y' * 1_000_000}})
            for name in ('grpc', 'admin', 'http'):
                held = open_and_hold(getattr(server, name), 1500)
                for _ in range(40):  # more than a segment of the journal and a table of the rows
                    kept.request('POST', '/v1/instances', large, {'Content-Type': 'application/json', **quiet.headers})
                    reply = kept.getresponse()
                    text = reply.read()
                    if not check(f'writes go on beside {name}: {reply.status} {text[:300]}', reply.status == 201):
                        break
                if name != 'http':
                    check(f'the API is served beside {name}', call(quiet.base, 'GET', '/v1/definitions', timeout=10)[0] == 200)
                if name != 'admin':
                    check(f'probes are answered beside {name}', call(f'http://{server.admin}', 'GET', '/readyz', timeout=10)[0] == 200)
                for s in held:
                    s.close()
                live.until(lambda: call(quiet.base, 'GET', '/v1/definitions', timeout=10)[0] == 200, f'the API after {name}')
            for problem in server.stop_and_verify():
                live.fail(problem)


if __name__ == '__main__':
    live.run_parts([connections_of_strangers] + [(part.__name__, lambda part=part: two_tenants(part)) for part in (searches, lists, lists_over_grpc, logins, key_pairs, clients_and_keys_are_small)])
    sys.exit(live.report())
