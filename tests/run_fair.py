#!/usr/bin/env python3
"""One tenant floods a real server by many means; another tenant's requests are still answered quickly.

For each kind of flood, quiet and busy moments alternate in one run, so that a disk or a machine that gets slower on its way
is slower in both. The ratio of the two medians is what a flood costs the other tenant.
"""
import http.client, json, multiprocessing, os, select, socket, statistics, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, run_auth
from live import call, check

DEFINITION = {'id': 'p', 'name': 'P', 'steps': [{'id': 'a', 'name': 'A', 'type': 'SERVICE_TASK', 'jobType': 'j', 'nextStep': 'e'},
                                                {'id': 'e', 'name': 'E', 'type': 'END'}]}
# An expression that reads about 100 MB: a turn of some hundred milliseconds.
HEAVY = {'id': 'heavy', 'name': 'Heavy', 'steps': [
    {'id': 'd', 'name': 'D', 'type': 'DECISION', 'conditionalNextSteps': {'count(1..400, s contains "abc") > 0': 'e'}, 'nextStep': 'e'},
    {'id': 'e', 'name': 'E', 'type': 'END'}]}
# The goal is 3 times on a machine that does nothing else. Tests run side by side, so the assertion leaves room for that.
GOAL = 3
MAX_RATIO = float(os.environ.get('PAWL_FAIR_RATIO', '12'))
ROUNDS = int(os.environ.get('PAWL_FAIR_ROUNDS', '6'))
REQUESTS = 25  # of the quiet tenant, in each moment
LEEWAY = 30  # seconds for which the server accepts a token after its `exp`


def request_bytes(method, path, token, body=None):
    data = json.dumps(body).encode() if body is not None else b''
    head = f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n'
    if token:
        head += f'Authorization: Bearer {token}\r\n'
    if data:
        head += f'Content-Type: application/json\r\nContent-Length: {len(data)}\r\n'
    return head.encode() + b'\r\n' + data


def flood(address, request, connections, pipelined, on, stop):
    """Sends the request on several connections, some at a time, as fast as the server answers, while `on` is set."""
    host, port = address.rsplit(':', 1)
    sockets, waiting, unsent, answered = [], {}, {}, 0

    def connect():
        s = socket.create_connection((host, int(port)))
        s.setblocking(False)
        sockets.append(s)
        waiting[s], unsent[s] = 0, b''

    while not stop.is_set():
        if not on.wait(0.1):
            continue
        while len(sockets) < connections:
            connect()
        for s in sockets:
            if on.is_set() and waiting[s] <= pipelined // 2 and not unsent[s]:
                count = pipelined - waiting[s]
                unsent[s], waiting[s] = request * count, pipelined
        readable, writable, _ = select.select(sockets, [s for s in sockets if unsent[s]], [], 0.05)
        for s in writable:
            try:
                unsent[s] = unsent[s][s.send(unsent[s]):]
            except OSError:
                pass  # the server closed it: see below
        for s in readable:
            try:
                got = s.recv(1 << 20)
            except OSError:
                got = b''
            count = got.count(b'HTTP/1.1 ')
            answered += count
            waiting[s] -= count
            if not got:
                sockets.remove(s)
                s.close()
    return answered


def grpc_flood(address, token, folder, on, stop):
    """Starts by gRPC, 200 at a time on four channels."""
    sys.path.insert(0, folder)
    import grpc, workflow_pb2
    channels = [grpc.insecure_channel(address, options=[('grpc.use_local_subchannel_pool', 1)]) for _ in range(4)]
    calls = [c.unary_unary('/workflow.v1.WorkflowEngine/StartInstance', request_serializer=workflow_pb2.StartInstanceRequest.SerializeToString,
                           response_deserializer=lambda answer: answer) for c in channels]
    request, open_calls = workflow_pb2.StartInstanceRequest(definition_id='p'), []
    metadata = [('authorization', 'Bearer ' + token)]
    while not stop.is_set():
        if not on.wait(0.1):
            continue
        open_calls = [c for c in open_calls if not c.done()]
        while len(open_calls) < 200:
            open_calls.append(calls[len(open_calls) % 4].future(request, metadata=metadata, timeout=30))
        time.sleep(0.001)


START = 'POST', '/v1/instances', json.dumps({'definitionId': 'p', 'variables': {}})
LIST = 'GET', '/v1/instances?pageSize=20', None


class Quiet:
    """The other tenant: one request after the other on one connection."""

    def __init__(self, server, token):
        self.connection, self.token = http.client.HTTPConnection(server.http, timeout=60), token

    def latencies(self, count, request=START):
        out = []
        for _ in range(count):
            began = time.monotonic()
            self.connection.request(*request, {'Authorization': 'Bearer ' + self.token, 'Content-Type': 'application/json'})
            reply = self.connection.getresponse()
            reply.read()
            check(f'a request of the quiet tenant is accepted ({reply.status})', reply.status in (200, 201, 202))
            out.append((time.monotonic() - began) * 1000)
        return out


class Tokens:
    """Signs tokens of any tenant with a key that the server trusts. Other processes may have a copy."""

    def __init__(self, key):
        self.key = key

    def __call__(self, tenant, seconds=3600, roles=('ROLE_ADMIN', 'ROLE_M2M')):
        """A token that the server accepts for so many seconds from now on."""
        now = int(time.time())
        return run_auth.signed(self.key, 'test', {'iss': 'cyoda', 'sub': 'u-' + tenant, 'caas_user_id': 'u-' + tenant, 'caas_org_id': tenant,
                                                  'user_roles': roles, 'scopes': roles, 'iat': now - 60, 'exp': now - LEEWAY + seconds})


def tenants(folder, *flags, **more):
    """A server that trusts a key, and a function that makes the token of a tenant."""
    key = os.path.join(folder, 'key.pem')
    jwk = {**run_auth.new_key(key), 'kid': 'test', 'alg': 'RS256', 'use': 'sig'}
    jwks = os.path.join(folder, 'jwks.json')
    with open(jwks, 'w') as f:
        json.dump({'keys': [jwk]}, f)
    server = live.Server('--auth', 'jwt', '--jwt-jwks', jwks, '--log-level', 'warn', *flags, env={'PAWL_JWT_KEY_FILE': key}, **more)
    return server, Tokens(key)


def beside(name, request, connections, pipelined, prepare=None, by_grpc=False, quietly=START):
    """The median latency of the quiet tenant beside a flood is at most so many times its median without one."""
    with tempfile.TemporaryDirectory() as folder:
        server, token = tenants(folder)
        with server:
            loud, quiet = token('loud'), token('quiet')
            for bearer in (loud, quiet):
                for definition in (DEFINITION, HEAVY):
                    status, body = call(server.base, 'POST', '/v1/definitions', definition, {'Authorization': 'Bearer ' + bearer})
                    check(f'the definition is accepted ({status} {body})', status in (200, 201))
            on, stop = multiprocessing.Event(), multiprocessing.Event()
            if prepare:
                prepare(server, loud)
            if by_grpc:
                live.compile_protos(os.path.join(live.ROOT, 'proto', 'processes'), ['workflow.proto'], folder)
                process = multiprocessing.Process(target=grpc_flood, args=(server.grpc, loud, folder, on, stop))
            else:
                process = multiprocessing.Process(target=flood, args=(server.http, request(loud), connections, pipelined, on, stop))
            process.start()
            client = Quiet(server, quiet)
            client.latencies(50)  # connections, caches
            calm, busy = [], []
            for _ in range(ROUNDS):
                calm += client.latencies(REQUESTS, quietly)
                on.set()
                time.sleep(0.4)
                busy += client.latencies(REQUESTS, quietly)
                on.clear()
                time.sleep(0.4)
            check('the flood lasted as long as the measurement', process.is_alive())
            stop.set()
            process.join()
            before, beside_it = statistics.median(calm), statistics.median(busy)
            print(f'{name}: p50 of the quiet tenant {before:.2f} ms, beside the flood {beside_it:.2f} ms: {beside_it / before:.1f} times '
                  f'(goal {GOAL}); p99 {sorted(busy)[len(busy) * 99 // 100]:.1f} ms', flush=True)
            check(f'{name} multiplies the p50 of another tenant by {beside_it / before:.1f}, at most {MAX_RATIO}', beside_it / before <= MAX_RATIO)


def a_flood_of_starts():
    beside('a flood of starts', lambda token: request_bytes('POST', '/v1/instances', token, {'definitionId': 'p', 'variables': {'x': 'y' * 200}}), 8, 64)


def lists_beside_a_flood_of_starts():
    beside('a flood of starts, beside lists', lambda token: request_bytes(
        'POST', '/v1/instances', token, {'definitionId': 'p', 'variables': {'x': 'y' * 200}}), 8, 64, quietly=LIST)


def a_flood_of_starts_on_many_connections():
    beside('a flood on 400 connections', lambda token: request_bytes('POST', '/v1/instances', token, {'definitionId': 'p', 'variables': {}}), 400, 1)


def a_flood_of_reads():
    beside('a flood of lists', lambda token: request_bytes('GET', '/v1/instances?pageSize=20', token), 100, 4)


def a_flood_of_heavy_turns():
    beside('a flood of heavy turns', lambda token: request_bytes(
        'POST', '/v1/instances', token, {'definitionId': 'heavy', 'variables': {'s': 'x' * 250_000}}), 4, 1)


def a_flood_of_large_bodies():
    beside('a flood of large bodies', lambda token: request_bytes(
        'POST', '/v1/instances', token, {'definitionId': 'p', 'variables': {'list': [{'a': i, 'b': str(i)} for i in range(60_000)]}}), 8, 1)


def a_flood_by_grpc():
    beside('a flood by gRPC', None, 0, 0, by_grpc=True)


def a_flood_of_searches():
    def entities(server, token):
        bearer = {'Authorization': 'Bearer ' + token}
        sample = {'n': 1, 's': 'text'}
        call(server.base, 'POST', '/api/model/import/JSON/SAMPLE_DATA/thing/1', sample, bearer)
        call(server.base, 'PUT', '/api/model/thing/1/lock', None, bearer)
        for _ in range(10):
            status, body = call(server.base, 'POST', '/api/entity/JSON', [{'model': {'name': 'thing', 'version': 1}, 'payload': json.dumps(sample)}] * 100, bearer)
            check(f'entities are made ({status} {body if status >= 300 else ""})', status == 200)
    condition = {'type': 'simple', 'jsonPath': '$.s', 'operatorType': 'CONTAINS', 'value': 'nothing'}
    beside('a flood of searches', lambda token: request_bytes('POST', '/api/search/direct/thing/1', token, condition), 16, 2, prepare=entities)


def a_flood_without_a_token():
    beside('a flood of strangers', lambda token: request_bytes('POST', '/v1/instances', 'nonsense', {'definitionId': 'p'}), 64, 4)


def main():
    live.need_grpc()
    live.run_parts([a_flood_of_starts, lists_beside_a_flood_of_starts, a_flood_of_starts_on_many_connections, a_flood_of_reads, a_flood_of_heavy_turns,
                    a_flood_of_large_bodies, a_flood_by_grpc, a_flood_of_searches, a_flood_without_a_token])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
