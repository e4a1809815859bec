"""The attacks of tests/run_siege.py, most of them taken from the scripts that play them one by one. Each attack is one round
that the siege repeats; `until` says when a round that lasts should end. What a server answers to an attack is judged where
the attack is played alone: here only the honest clients count.
"""
import base64, http.client, json, os, random, socket, struct, threading, time

import live, run_attacks, run_auth, run_fair, run_hostile, run_lifecycle, run_memory, run_neighbours

MIB = 1024 * 1024


class Deadline:
    """Looks like an event that is set at a time."""

    def __init__(self, until):
        self.until = until

    def is_set(self):
        return time.monotonic() >= self.until


class Attacker:
    """What an attack may use: tokens of its own tenants, dice, and the ids that the honest clients work with."""

    def __init__(self, server, tokens, seed, loot):
        self.server, self.tokens, self.dice, self.loot = server, tokens, random.Random(seed), loot
        self.until, self.round, self.name = 0, 0, 'attacker'
        self.findings = []  # what an attack achieved and must not

    def tenant(self, *roles):
        """A caller of this attack's tenant, with every role of a tenant's admin unless roles are named."""
        return live.Caller(self.server, self.tokens(self.name, 24 * 3600, list(roles) or ['ROLE_ADMIN', 'ROLE_M2M']))

    def stranger(self):
        return live.Caller(self.server)

    def running(self):
        return time.monotonic() < self.until

    def connect(self, address=None):
        host, port = (address or self.server.http).rsplit(':', 1)
        return socket.create_connection((host, int(port)), timeout=10)


def floods(name, *targets):
    """An attack that floods the server with each of these requests in turn."""
    def attack(a):
        caller = a.tenant()
        live.call(caller.base, 'POST', '/v1/definitions', run_fair.DEFINITION)
        live.call(caller.base, 'POST', '/api/model/import/JSON/SAMPLE_DATA/flood/1', {'k': 'x', 'n': 1})
        live.call(caller.base, 'PUT', '/api/model/flood/1/lock')
        target, body = targets[a.round % len(targets)]
        method, path = target.split()
        request = run_fair.request_bytes(method, path, caller.token, json.loads(body) if body else None)
        on = threading.Event()
        on.set()
        run_fair.flood(a.server.http, request, 8, 64, on, Deadline(a.until))
    attack.__name__ = name
    return attack


START = json.dumps({'definitionId': 'p', 'variables': {'x': 'y' * 200}})
flood_of_starts = floods('flood_of_starts', ('POST /v1/instances', START))
flood_of_reads = floods('flood_of_reads', ('GET /v1/instances?pageSize=200', ''), ('GET /v1/definitions', ''), ('GET /v1/worlds', ''), ('GET /workflows', ''))
flood_of_searches = floods('flood_of_searches', ('POST /api/search/direct/flood/1', json.dumps(run_attacks.condition(50, 'b'))),
                           ('POST /api/entity/JSON/flood/1', json.dumps({'k': 'a' * 1000, 'n': 1})), ('POST /api/entity/stats/flood/1/query', '{}'))


def flood_of_keys(a):
    """Every start has an Idempotency-Key of its own."""
    caller = a.tenant()
    live.call(caller.base, 'POST', '/v1/definitions', run_fair.DEFINITION)
    with a.connect() as s:
        while a.running():
            s.sendall(b''.join(f'POST /v1/instances HTTP/1.1\r\nHost: localhost\r\n{live.head_lines(caller)}Idempotency-Key: {a.dice.getrandbits(800):x}\r\n'
                               f'Content-Length: {len(START)}\r\n\r\n{START}'.encode() for _ in range(32)))
            got = 0
            while got < 32:
                got += s.recv(1 << 18).count(b'HTTP/1.1 ') or 32


def flood_of_calls(a):
    """gRPC calls of several channels, hundreds at a time, with and without a token."""
    import grpc
    metadata = (('authorization', 'Bearer ' + a.tenant().token),)
    raw = dict(request_serializer=lambda b: b, response_deserializer=lambda b: b)
    message = b'\x0a\x01p'  # field 1, "p": the definition of a start, the id of a read
    calls = ['StartInstance', 'GetDefinition', 'ListInstances', 'ListDefinitions', 'GetInstance', 'PollJobs']
    channels = [grpc.insecure_channel(a.server.grpc, options=[('grpc.use_local_subchannel_pool', 1)]) for _ in range(4)]
    try:
        while a.running():
            waiting = [a.dice.choice(channels).unary_unary('/workflow.v1.WorkflowEngine/' + a.dice.choice(calls), **raw).future(
                message, metadata=metadata if a.dice.random() < 0.9 else (), timeout=5) for _ in range(200)]
            for call in waiting[::3]:
                call.cancel()
            for call in waiting:
                try:
                    call.exception()
                except grpc.FutureCancelledError:
                    pass
    finally:
        for channel in channels:
            channel.close()


def slow_loris(a):
    """Connections that send their heads and bodies byte by byte, with a token and without."""
    head = f'POST /v1/instances HTTP/1.1\r\nHost: localhost\r\n{live.head_lines(a.tenant())}Content-Length: 1000000\r\n\r\n'.encode()
    sockets = [a.connect() for _ in range(200)]
    for i, s in enumerate(sockets):
        s.setblocking(False)
        s.send(head if i % 2 else head[:30])
    while a.running():
        for s in sockets:
            try:
                s.send(b'a')
            except OSError:
                pass
        time.sleep(1)
    for s in sockets:
        s.close()


def large_bodies(a):
    """Bodies of nine megabytes, sixty at a time; every second round without a token."""
    caller = a.tenant() if a.round % 2 else a.stranger()
    live.call(caller.base, 'POST', '/v1/definitions', run_memory.DEFINITION)
    run_memory.upload(caller, 60, '/v1/instances', run_memory.LARGE_START, [])


def unread_streams(a):
    """Watches over events and sockets that are never read, beside large writes."""
    caller = a.tenant()
    sockets, _ = run_memory.unread_watches(caller, 100, 12)
    try:
        for _ in range(50):
            sockets.append(run_lifecycle.Socket(caller, '/workflows/thing?stream=true', caller.headers, small_buffer=True).sock)
    except EOFError:
        pass  # cut already: the budget for streams is used up
    while a.running():
        time.sleep(0.5)
    for s in sockets:
        s.close()


def unread_jobs(a):
    """gRPC workers with credit for everything that read nothing, and large jobs for them."""
    caller = a.tenant()
    workers = run_memory.UnreadWorkers(caller, 4)
    run_memory.large_open_jobs(caller, 15)
    while a.running():
        time.sleep(0.5)
    workers.close()


def pipelined_answers(a):
    """Asks for large answers on many connections and reads none of them."""
    caller = a.tenant()
    live.call(caller.base, 'POST', '/v1/definitions', run_memory.DEFINITION)
    made = live.call(caller.base, 'POST', '/v1/instances', {'definitionId': 'p', 'variables': {'x': 'y' * 1_000_000}})[1]
    request = f'GET /v1/instances/{made["id"]} HTTP/1.1\r\nHost: localhost\r\n{live.head_lines(caller)}\r\n'.encode() * 200
    sockets = [run_memory.connect(caller, small_buffer=True) for _ in range(60)]
    for s in sockets:
        s.settimeout(1)
        s.sendall(request)
    while a.running():
        time.sleep(0.5)
    for s in sockets:
        s.close()


def each_in_turn(a, *attacks):
    """Runs attacks of one round as a new tenant. An attack that is refused does not stop the others."""
    caller = live.Caller(a.server, a.tokens(f'{a.name}-{a.round}'))
    live.call(caller.base, 'POST', '/v1/definitions', run_attacks.HONEST)
    for attack in a.dice.sample(attacks, len(attacks)):
        try:
            attack(caller)
        except Exception as err:
            print(attack.__name__, repr(err), flush=True)


def bombs(a):
    """Expressions, gateways, conditions and documents that are meant to hold the kernel."""
    each_in_turn(a, run_attacks.expensive_expressions, run_attacks.many_expensive_branches, run_attacks.gateway_into_itself,
                 run_attacks.many_conditions, run_attacks.wide_documents)


def modules(a):
    """WASM modules that trap, never end, or take long to compile."""
    each_in_turn(a, run_attacks.hostile_modules, run_attacks.endless_steps, run_attacks.large_module)


def polls_that_close(a):
    """Long polls for a thousand types each, whose connections are closed."""
    head = live.head_lines(a.tenant())
    while a.running():
        sockets = []
        for n in range(50):
            body = json.dumps({'workerId': 'w', 'jobTypes': [f't{n}-{i}' for i in range(1000)], 'maxWaitMs': 20000})
            s = a.connect()
            s.sendall(f'POST /v1/jobs/poll HTTP/1.1\r\nHost: localhost\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}'.encode())
            sockets.append(s)
        time.sleep(0.2)
        for s in sockets:
            s.close()


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close()


def churn(a):
    """Connections to all three addresses that end at once, half of them by a reset, some in the middle of a request."""
    head = f'GET /v1/definitions HTTP/1.1\r\nHost: localhost\r\n{live.head_lines(a.tenant())}\r\n'.encode()
    while a.running():
        sockets = [a.connect(a.dice.choice((a.server.http, a.server.http, a.server.grpc, a.server.admin))) for _ in range(50)]
        for s in sockets:
            s.sendall(head[:a.dice.randrange(len(head) + 1)])
        for s in sockets:
            reset(s) if a.dice.random() < 0.5 else s.close()
        time.sleep(0.05)


MALFORMED = [b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + bytes(200), b'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n', b'GET  /  HTTP/1.1\r\n\r\n',
             b'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n',
             b'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n', b'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n',
             b'POST /v1/instances HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n', b'\0' * 70000, b'GET /' + b'a' * 70000,
             b'GET / HTTP/1.1\r\n' + b'a: b\r\n' * 300 + b'\r\n', b'GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
             b'GET / HTTP/9.9\r\n\r\n', b'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n',
             b'OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n', b'CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET /%00%ff/../.. HTTP/1.1\r\nHost: localhost\r\n\r\n']


def malformed_requests(a):
    """HTTP/1 that is not HTTP/1: smuggling, sizes, floods of headers, other protocols; and the same bytes with changes."""
    while a.running():
        data = bytearray(a.dice.choice(MALFORMED))
        for _ in range(a.dice.choice((0, 0, 1, 3))):
            data[a.dice.randrange(len(data))] = a.dice.randrange(256)
        try:
            with a.connect(a.dice.choice((a.server.http, a.server.admin))) as s:
                s.settimeout(0.3)
                s.sendall(data)
                s.recv(4096)
        except OSError:
            pass


def h2(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


def malformed_frames(a):
    """HTTP/2 at the gRPC address: rapid resets, endless continuations, floods of settings and pings, windows, random frames."""
    preface = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + h2(4, 0, 0)
    # :method POST, :scheme http and :path / from the static table, and a header that is given as text.
    block = b'\x83\x86\x84\x00\x0ccontent-type\x10application/grpc'
    shapes = [lambda: b''.join(h2(1, 4, 2 * i + 1, block) + h2(3, 0, 2 * i + 1, b'\0\0\0\x08') for i in range(2000)),
              lambda: h2(1, 0, 1, block) + h2(9, 0, 1, b'\x00\x01a\x01b' * 200) * 500, lambda: h2(4, 0, 0, struct.pack('>HI', 3, 1)) * 5000,
              lambda: h2(6, 0, 0, bytes(8)) * 5000, lambda: h2(8, 0, 0, b'\x7f\xff\xff\xff') * 3, lambda: h2(1, 4, 1, b'\x3f\xff\xff\xff\xff\xff\x0f' * 100),
              lambda: h2(1, 4, 1, block) + h2(0, 0, 1, bytes(16384)) * 300, lambda: h2(2, 0, 1, struct.pack('>IB', 1, 1)) * 3000,
              lambda: b''.join(h2(a.dice.randrange(12), a.dice.randrange(256), a.dice.randrange(8), a.dice.randbytes(a.dice.randrange(60))) for _ in range(200)),
              lambda: a.dice.randbytes(5000)]
    while a.running():
        try:
            with a.connect(a.server.grpc) as s:
                s.settimeout(1)
                s.sendall(preface + a.dice.choice(shapes)())
                s.recv(65536)
        except OSError:
            pass


def bad_tokens(a):
    """Tokens that are forged in all the usual ways, and guesses of secrets."""
    good = a.tenant().token
    head, claims, signature = good.split('.')
    encode = lambda value: run_auth.b64url(json.dumps(value).encode())
    operator = encode({**run_auth.claims_of(good), 'caas_org_id': 'honest'})
    forged = [f'{encode({"alg": "none"})}.{operator}.', f'{head}.{operator}.{signature}', f'{encode({"alg": "HS256", "kid": "test"})}.{operator}.{signature}',
              f'{encode({"alg": "RS256", "kid": "k" * 9000})}.{operator}.{signature}', f'{head}.{claims}.{signature[:-8]}', head, '.' * 15000, 'a' * 16000,
              f'{run_auth.b64url(b"[" * 9000)}.{operator}.{signature}', f'{encode({"alg": "RS256", "kid": "../../key"})}.{operator}.{signature}',
              a.tokens(a.name, -60, []), a.tokens('', roles=['ROLE_ADMIN'])]
    while a.running():
        for token in forged:
            status, body = live.call(live.Base(a.server.base, {'Authorization': 'Bearer ' + token}), 'GET', '/v1/instances')
            if status not in (401, 403, 429, 431, 503):
                a.findings.append(f'a forged token opens: {status} {str(body)[:200]} {token[:80]}')
        basic = base64.b64encode(f'boot-{a.dice.random()}:guess'.encode()).decode()
        live.call(a.server.base, 'POST', '/api/oauth/token', b'grant_type=client_credentials', {'Authorization': 'Basic ' + basic})
        time.sleep(0.2)


def browsers(a):
    """Requests that a page of another site makes a browser send."""
    auth = a.tenant().headers
    while a.running():
        for headers in run_auth.foreign_headers(a.server.http):
            for method, path in (('GET', '/v1/instances'), ('POST', '/v1/definitions'), ('GET', '/workflows/door?stream=true')):
                status, got = run_auth.raw(a.server.http, method, path, {**auth, **headers}, b'{}' if method == 'POST' else b'')
                if status not in (403, 421, 429, 503) or 'Access-Control-Allow-Origin' in got:
                    a.findings.append(f'a browser of another site gets in: {status} {method} {path} {headers}')
        time.sleep(0.3)


def broken_requests(a):
    """Conversations of all faces with broken requests among them."""
    face = run_hostile.FACES[a.round % len(run_hostile.FACES)]
    run_hostile.fuzz(a.tenant(), face, a.dice.getrandbits(32), max(1, a.until - time.monotonic()))


def operators(a):
    """Operators of a tenant that pause, migrate, retry and cancel everything that they can name."""
    base = a.tenant().base
    steps = [{'id': 'u', 'name': 'U', 'type': 'USER_TASK', 'nextStep': 'e'}, {'id': 'e', 'name': 'E', 'type': 'END'}]
    ops = '/pawl/v1/processes'
    for version in range(3):
        live.call(base, 'POST', '/v1/definitions', {'id': 'honest', 'name': f'{a.round}-{version}', 'steps': steps})
    live.call(base, 'POST', ops + '/start-batch', {'items': [{'definitionId': 'honest'}] * 500, 'brief': True})
    while a.running():
        for target in ('definitions/honest', 'job-types/honest'):
            live.call(base, 'POST', f'{ops}/{target}/{a.dice.choice(("pause", "resume"))}', {'reason': 'siege'})
        operation = a.dice.choice(('pause', 'resume', 'migrate', 'retry', 'skip', 'cancel', 'variables'))
        live.call(base, 'POST', f'{ops}/bulk/{operation}', {'filter': {'definitionId': 'honest'}, 'reason': 'siege', 'variables': {'x': 1}, 'version': a.dice.randrange(1, 4)})
        time.sleep(0.2)


def thieves(a):
    """Another tenant's ids in every operation that takes one: nothing of it exists for this caller."""
    base = a.tenant().base
    while a.running():
        loot = dict(a.loot)
        instance, job, entity, door, world, intent = (loot.get(name, 'none') for name in ('instance', 'job', 'entity', 'door', 'world', 'intent'))
        tries = [('GET', f'/v1/instances/{instance}', None), ('GET', f'/v1/instances/{instance}/history', None), ('POST', f'/v1/instances/{instance}/cancel', {}),
                 ('POST', f'/v1/instances/{instance}/signals/w', {}), ('POST', f'/v1/instances/{instance}/user-tasks/u/complete', {'workerId': 'x'}),
                 ('GET', f'/v1/jobs/{job}/explain', None), ('POST', f'/pawl/v1/processes/instances/{instance}/move', {'to': 'e', 'reason': 'x'}),
                 ('POST', f'/pawl/v1/processes/instances/{instance}/restart', {'stepId': 'a', 'reason': 'x'}),
                 ('POST', f'/v1/jobs/{job}/fail', {'workerId': 'w', 'errorMessage': 'stolen', 'retryable': False}), ('POST', f'/v1/jobs/{job}/complete', {'workerId': 'w'}),
                 ('GET', f'/api/entity/{entity}', None), ('DELETE', f'/api/entity/{entity}', None), ('PUT', f'/api/entity/JSON/{entity}/toggle', {'n': 666}),
                 ('GET', f'/api/audit/entity/{entity}', None), ('GET', f'/api/entity/{entity}/changes', None), ('GET', f'/workflows/door/{door}', None),
                 ('POST', f'/pawl/v1/lifecycle/instances/door/{door}/transition', {'phase': 'gone'}), ('DELETE', f'/pawl/v1/lifecycle/instances/door/{door}', None),
                 ('GET', f'/v1/worlds/{world}', None), ('GET', f'/v1/worlds/{world}/journal', None), ('POST', f'/v1/worlds/{world}/fork', {'world_id': 'mine'}),
                 ('POST', f'/v1/worlds/{world}/events', {'schema': 'w/Do@1', 'value': {'id': 'a', 'out': None}}),
                 ('POST', f'/v1/worlds/{world}/receipts', {'intent_hash': intent, 'status': 'error', 'payload': {'code': 9}})]
        for method, path, body in tries:
            status, answer = live.call(base, method, path, body)
            if status not in (400, 404, 429, 503):
                a.findings.append(f'a thief gets {status} {str(answer)[:200]} for {method} {path}')
        for path, body in (('/v1/jobs/poll', {'workerId': 'thief', 'jobTypes': ['honest']}), ('/v1/effects/poll', {'effects': ['w/charge@1']})):
            _, got = live.call(base, 'POST', path, body)
            if isinstance(got, dict) and (got.get('jobs') or got.get('work')):
                a.findings.append(f'a thief gets work: {str(got)[:300]}')
        time.sleep(0.5)


def searches_that_stay(a):
    """Searches that take as long as they may, and their clients wait."""
    caller = a.tenant()
    run_neighbours.wide_model(caller, 12 if a.round == 1 else 0)
    connections = run_neighbours.long_searches(caller, 30)
    while a.running():
        time.sleep(0.5)
    for connection in connections:
        connection.close()


def long_lists(a):
    """Lists with filters that read every instance, and pages far down."""
    caller = a.tenant()
    live.call(caller.base, 'POST', '/v1/definitions', run_fair.DEFINITION)
    if a.round == 1:
        for _ in range(20):
            live.call(caller.base, 'POST', '/pawl/v1/processes/start-batch', {'items': [{'definitionId': 'p'}] * 1000, 'brief': True}, timeout=60)
    path = a.dice.choice(('/pawl/v1/processes/instances?variable=x=none', '/v1/instances?page=19000&pageSize=1', '/pawl/v1/processes/tasks?step=none'))
    run_neighbours.pipeline(caller, 25, max(1, a.until - time.monotonic()), 'GET ' + path)


def logins(a):
    run_neighbours.log_in_often(a.tenant(), max(1, a.until - time.monotonic()))


def key_pairs(a):
    run_neighbours.pipeline(a.tenant(), 5, max(1, a.until - time.monotonic()), 'POST /api/oauth/keys/keypair')


def idle_connections(a):
    """Connections of strangers that send nothing, to all three addresses."""
    sockets = [s for address in (a.server.http, a.server.grpc, a.server.admin) for s in run_neighbours.open_and_hold(address, 200)]
    while a.running():
        time.sleep(0.5)
    for s in sockets:
        s.close()


# Attack, seconds of a round that lasts, seconds between two rounds. Attacks that fill the disk wait longer.
ATTACKS = [(flood_of_starts, 3, 20), (flood_of_reads, 4, 10), (flood_of_searches, 4, 12), (flood_of_keys, 3, 20), (flood_of_calls, 4, 10),
           (slow_loris, 20, 5), (large_bodies, 0, 25), (unread_streams, 10, 30), (unread_jobs, 10, 45), (pipelined_answers, 10, 20),
           (bombs, 0, 60), (modules, 0, 40), (polls_that_close, 5, 10), (churn, 10, 5), (malformed_requests, 20, 2), (malformed_frames, 10, 8),
           (bad_tokens, 20, 2), (browsers, 10, 8), (broken_requests, 8, 8), (operators, 8, 12), (thieves, 20, 2),
           (searches_that_stay, 10, 25), (long_lists, 5, 15), (logins, 5, 20), (key_pairs, 4, 60), (idle_connections, 10, 10)]
