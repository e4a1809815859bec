#!/usr/bin/env python3
"""Requests that are meant to stop the server, played against a real one while an honest client measures its latency.

Every attack ends with a clear error of its own, the honest client is answered in time throughout, the server stays ready,
and the journal verifies afterwards. Callers share one kernel whoever they are, so the script needs no tenants.
"""
import http.client, json, os, shutil, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
import run_worlds
from live import check
from run_worlds import AIR, b64

# A turn has a budget of about a second, and the machine may be busy. Before there were budgets these attacks took from ten
# seconds to for ever.
LONGEST_S = 6.0

HONEST = {'id': 'honest', 'name': 'Honest', 'steps': [
    {'id': 'u', 'name': 'U', 'type': 'USER_TASK', 'nextStep': 'e'}, {'id': 'e', 'name': 'E', 'type': 'END'}]}


class Honest(threading.Thread):
    """Starts a small instance every few milliseconds, each time on a new connection, and keeps the times of the answers."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.times, self.refused, self.ended = server, [], [], threading.Event()

    def run(self):
        body = json.dumps({'definitionId': 'honest'})
        while not self.ended.is_set():
            began = time.monotonic()
            try:
                connection = http.client.HTTPConnection(self.server.http, timeout=120)
                connection.request('POST', '/v1/instances', body, {'Content-Type': 'application/json'})
                status = connection.getresponse().status
                connection.close()
            except OSError as err:
                status = err
            self.times.append(time.monotonic() - began)
            if status != 201:
                self.refused.append(status)
            self.ended.wait(0.01)

    def stop(self):
        self.ended.set()
        self.join()


def in_time(server, attack):
    """Runs the attack beside the honest client and checks the client's times."""
    honest = Honest(server)
    honest.start()
    try:
        attack(server)
        time.sleep(0.2)
        ready = live.call(f'http://{server.admin}', 'GET', '/readyz')[0]
        check(f'{attack.__name__}: the server is ready afterwards, not {ready}', ready == 200)
    finally:
        honest.stop()
    worst = max(honest.times)
    print(f'  {attack.__name__}: the honest client waited {worst * 1000:.0f} ms at most, in {len(honest.times)} requests', flush=True)
    check(f'{attack.__name__}: the honest client waited {worst:.1f} s', worst < LONGEST_S)
    check(f'{attack.__name__}: the honest client was refused: {honest.refused[:3]}', not honest.refused)
    check(f'{attack.__name__}: the server still runs', server.process.poll() is None)


def start(server, steps, variables):
    """Uploads a definition and starts one instance of it. Returns why the instance failed."""
    start.count = getattr(start, 'count', 0) + 1
    name = f'attack-{start.count}'
    status, body = live.call(server.base, 'POST', '/v1/definitions', {'id': name, 'name': name, 'steps': steps})
    check(f'upload: {status} {str(body)[:300]}', status == 201)
    status, body = live.call(server.base, 'POST', '/v1/instances', {'definitionId': name, 'variables': variables}, timeout=120)
    check(f'start: {status} {str(body)[:300]}', status == 201)
    return live.call(server.base, 'GET', '/v1/instances/' + body['id'])[1].get('failureReason', '')


def transformation(expression):
    return [{'id': 't', 'name': 'T', 'type': 'TRANSFORMATION', 'transformations': {'x': '${' + expression + '}'}, 'nextStep': 'e'},
            {'id': 'e', 'name': 'E', 'type': 'END'}]


def expensive_expressions(server):
    text, half = 'a' * 1_000_000, 'a' * 500_000 + 'b'
    for expression in ('count(1..20000, s contains "abc")', 'count(1..20000, s contains half)', 'count(1..20000, s matches "(a|aa)+$")',
                       'reduce(1..100, [#acc, #acc], 1)', 'string(reduce(1..100, [#acc, #acc], 1))', 'join(map(1..90000, s))'):
        reason = start(server, transformation(expression), {'s': text, 'half': half})
        check(f'{expression} fails with its reason: {reason[-200:]}',
              any(word in reason for word in ('reads more than', 'more values', 'longer than', 'too many')))


def many_expensive_branches(server):
    """Each branch stays within the limit of one expression; together they reach that of the turn."""
    branches = {f'count(1..100, s contains "abc{i}") > 0': 'e' for i in range(500)}
    reason = start(server, [{'id': 'd', 'name': 'D', 'type': 'DECISION', 'conditionalNextSteps': branches}, {'id': 'e', 'name': 'E', 'type': 'END'}],
                   {'s': 'a' * 1_000_000})
    check(f'the branches fail with the limit: {reason[:200]}', 'WorkLimitReached' in reason)


def gateway_into_itself(server):
    fork = [{'id': 'f', 'name': 'F', 'type': 'PARALLEL_GATEWAY', 'parallelNextSteps': ['f', 'w'], 'joinStep': 'm'},
            {'id': 'w', 'name': 'W', 'type': 'WAIT', 'nextStep': 'm'}, {'id': 'm', 'name': 'M', 'type': 'JOIN_GATEWAY', 'nextStep': 'e'},
            {'id': 'e', 'name': 'E', 'type': 'END'}]
    reason = start(server, fork, {})
    check(f'the gateway fails with the limit: {reason[:200]}', 'TokenLimitReached' in reason)


def condition(count, word):
    return {'type': 'group', 'operator': 'OR', 'conditions': [
        {'type': 'simple', 'jsonPath': '$.k', 'operatorType': 'CONTAINS', 'value': f'{word}{i}'} for i in range(count)]}


def many_conditions(server):
    live.call(server.base, 'POST', '/api/model/import/JSON/SAMPLE_DATA/wide/1', {'k': 'x', 'n': 1})
    live.call(server.base, 'PUT', '/api/model/wide/1/lock')
    for i in range(12):
        status, body = live.call(server.base, 'POST', '/api/entity/JSON/wide/1', {'k': 'a' * 3_000_000, 'n': i}, timeout=60)
        check(f'entity {i}: {status} {str(body)[:200]}', status == 200)
    status, body = live.call(server.base, 'POST', '/api/search/direct/wide/1', condition(10_000, 'b'), timeout=60)
    check(f'ten thousand conditions are refused: {status} {str(body)[:200]}', status == 400 and '1000' in json.dumps(body))
    # Clients that ask for a long search and leave. The searches end with them, so the next search is answered soon.
    for _ in range(4):
        connection = http.client.HTTPConnection(server.http, timeout=60)
        connection.request('POST', '/api/search/direct/wide/1', json.dumps(condition(900, 'b')), {'Content-Type': 'application/json', **server.headers})
        time.sleep(0.3)
        connection.close()
    began = time.monotonic()
    status, body = live.call(server.base, 'POST', '/api/search/direct/wide/1',
                             {'type': 'simple', 'jsonPath': '$.n', 'operatorType': 'EQUALS', 'value': 5}, timeout=60)
    check(f'a search after them is answered: {status} after {time.monotonic() - began:.1f} s', status == 200 and time.monotonic() - began < 10)


def wide_documents(server):
    wide = json.dumps({f'k{i}': i for i in range(500_000)}).encode()
    for path in ('/api/model/import/JSON/SAMPLE_DATA/very-wide/1', '/api/entity/JSON/wide/1'):
        status, body = live.call(server.base, 'POST', path, wide, timeout=120)
        check(f'{path}: {status} {str(body)[:200]}', 200 <= status < 500)
    status, body = live.call(server.base, 'POST', '/v1/instances', b'{"definitionId":"honest","variables":' + wide + b'}', timeout=120)
    check(f'wide variables: {status} {str(body)[:200]}', 200 <= status < 500)


# WASM, section by section.
def leb(n):
    out = b''
    while True:
        n, byte = n >> 7, n & 127
        if not n:
            return out + bytes([byte])
        out += bytes([byte | 128])


def sized(body):
    return leb(len(body)) + body


def wasm(step=bytes.fromhex('00200020010b'), extra=bytes.fromhex('000b'), **more):
    """A module whose `step` has this body. `more` replaces or adds sections by name."""
    sections = {'type': bytes.fromhex('0360017f017f60027f7f027f7f600000'), 'function': bytes.fromhex('03000102'), 'memory': bytes.fromhex('010001'),
                'export': bytes.fromhex('03066d656d6f7279020005616c6c6f63000004737465700001'),
                'code': b'\x03' + sized(bytes.fromhex('004180080b')) + sized(step) + sized(extra), **more}
    order = {'type': 1, 'function': 3, 'table': 4, 'memory': 5, 'export': 7, 'start': 8, 'element': 9, 'code': 10, 'data': 11}
    return b'\0asm\1\0\0\0' + b''.join(bytes([order[name]]) + sized(sections[name]) for name in order if name in sections)


def world(server, name, module, limits=None):
    body = {'world_id': name, 'air': AIR, 'modules': {'w/script@1': b64(module)}, 'check_state': False}
    return live.call(server.base, 'POST', '/v1/worlds', {**body, **({'limits': limits} if limits else {})}, timeout=120)


def send(server, name, cell='a'):
    return live.call(server.base, 'POST', f'/v1/worlds/{name}/events', {'schema': 'w/Do@1', 'value': {'id': cell, 'out': None}}, timeout=120)


def hostile_modules(server):
    count = 900_000
    many = wasm(function=leb(count) + b'\2' * count, code=leb(count) + b'\x02\x00\x0b' * count)
    for name, module, word in (('many', many, 'functions'), ('start', wasm(start=b'\2'), 'start function')):
        status, body = world(server, name, module)
        check(f'{name}: {status} {str(body)[:300]}', status == 422 and word in json.dumps(body))
        status, body = live.call(server.base, 'POST', '/v1/cas/blobs', module, {'Content-Type': 'application/octet-stream'})
        check(f'{name} as a blob: {status} {str(body)[:300]}', status == 422)
    traps = {'data': wasm(data=bytes.fromhex('010041ffff070b0161')), 'element': wasm(table=bytes.fromhex('01700001'), element=bytes.fromhex('010041050b0100')),
             'memory': wasm(memory=b'\x01\x00' + leb(65536)), 'deep': wasm(step=bytes.fromhex('002000200110010b')),
             'outside': wasm(step=bytes.fromhex('0041ffffff07417f0b'))}
    for name, module in traps.items():
        status, body = world(server, name, module)
        check(f'{name}: {status} {str(body)[:300]}', status == 201)
        check(f'an event to {name} is accepted', send(server, name)[0] == 202)
        _, page = live.call(server.base, 'GET', f'/v1/worlds/{name}/journal?from=0&limit=100')
        kinds = [e['kind'] for e in page['entries']]
        check(f'the step of {name} failed: {kinds}', 'step_failed' in kinds)


def endless_steps(server):
    endless = wasm(step=bytes.fromhex('0003400c000b200020010b'))
    status, body = world(server, 'endless', endless, {'fuel': 100_000_000_000, 'memory_bytes': 4 << 30})
    check(f'endless: {status} {str(body)[:300]}', status == 201)
    for cell in 'abc':
        check('the event is accepted', send(server, 'endless', cell)[0] == 202)
    status, body = live.call(server.base, 'POST', '/v1/worlds/endless/events',
                             {'events': [{'schema': 'w/Do@1', 'value': {'id': str(i), 'out': None}} for i in range(50)]}, timeout=120)
    check(f'a batch of endless steps is refused: {status} {str(body)[:300]}', status != 202 and 'fuel' in json.dumps(body))


def large_module(server):
    """A module just within the limits takes a while to compile. Nobody waits for it but its caller."""
    unit = bytes.fromhex('4100280200044041004101360200' + '0b')
    body = b'\0' + unit * (100_000 // len(unit)) + b'\x0b'
    count = 30
    module = wasm(function=leb(3 + count) + b'\0\1' + b'\2' * (count + 1),
                  code=leb(3 + count) + sized(bytes.fromhex('004180080b')) + sized(bytes.fromhex('00200020010b')) + sized(b'\0\x0b') + sized(body) * count)
    status, answer = world(server, 'large', module)
    check(f'large: {status} {str(answer)[:300]}', status == 201)


def large_module_after_a_restart(server):
    """The first event finds the module in no cache. It waits for the compiler; the turns do not."""
    begin = time.monotonic()
    status, answer = send(server, 'large', 'again')
    check(f'the event to large: {status} {str(answer)[:300]}', status == 202)
    print(f'compiled again in {time.monotonic() - begin:.1f} s')


def restart_without_modules(server):
    check('exit code 0', server.stop() == 0)
    shutil.rmtree(os.path.join(server.folder, 'wasm'))
    server.start()


def main():
    attacks = [expensive_expressions, many_expensive_branches, gateway_into_itself, many_conditions, wide_documents]
    with live.Server() as server:
        live.call(server.base, 'POST', '/v1/definitions', HONEST)
        if run_worlds.World(server, 'probe').tell('a')[0] == 202:
            attacks += [hostile_modules, endless_steps, large_module]
        else:
            print('no WASM engine here: the attacks by modules are skipped; run scripts/setup-wasm')
        live.run_parts([(attack.__name__, lambda attack=attack: in_time(server, attack)) for attack in attacks])
        if large_module in attacks:
            restart_without_modules(server)
            live.run_parts([('large_module_after_a_restart', lambda: in_time(server, large_module_after_a_restart))])
        problems = server.stop_and_verify()
    return live.report(problems=problems)


if __name__ == '__main__':
    sys.exit(main())
