#!/usr/bin/env python3
"""The operator API over real sockets: watches by WebSocket and Server-Sent Events, invalid frames, readers that stop
reading, roles, and hostile input."""
import base64, hashlib, http.client, json, os, socket, struct, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check

TYPES = '/pawl/v1/lifecycle/types/'
INSTANCES = '/pawl/v1/lifecycle/instances/'
# The constant of RFC 6455 that a WebSocket handshake hashes together with its key.
GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

DRONE = {
    'bucket': 'MISSIONS', 'key_prefix': 'mission.', 'parent_field': 'parent_mission',
    'fields': [
        {'name': 'entity_id', 'type': 'string', 'tags': ['id']},
        {'name': 'phase', 'type': 'string', 'tags': ['phase', 'readonly']},
        {'name': 'owner_org_id', 'type': 'string', 'tags': ['operator_writable']},
        {'name': 'drone_id', 'type': 'string', 'tags': ['operator_writable', 'indexable'], 'omitempty': True},
        {'name': 'waypoint_index', 'type': 'uint32', 'tags': ['operator_writable']},
        {'name': 'retries', 'type': 'int64', 'tags': ['operator_writable']},
        {'name': 'battery_pct', 'type': 'double', 'tags': ['operator_writable']},
        {'name': 'armed', 'type': 'bool', 'tags': ['operator_writable']},
        {'name': 'tags', 'type': 'string_list', 'tags': ['operator_writable'], 'omitempty': True},
        {'name': 'note', 'type': 'string', 'tags': ['operator_writable'], 'omitempty': True},
        {'name': 'internal_state', 'type': 'string', 'omitempty': True},
        {'name': 'parent_mission', 'type': 'string', 'omitempty': True}],
    'transitions': {
        'planning': ['flying', 'aborted'], 'flying': ['capturing', 'landing', 'aborted'], 'capturing': ['flying'],
        'landing': ['completed', 'failed'], 'completed': [], 'failed': [], 'aborted': []}}


class Api:
    """Requests to one server with fixed headers, for example a token. api(method, path, body) returns (status, body)."""
    def __init__(self, server, headers=None):
        self.server, self.headers = server, headers or {}

    def __call__(self, method, path, body=None):
        return live.call(self.server.base, method, path, body, self.headers)

    def raw(self, method, path, body=b'', headers=None):
        """Sends one request with the path unchanged. Returns (status, headers, text)."""
        host, port = self.server.http.rsplit(':', 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in {**self.headers, 'Content-Length': str(len(body)), **(headers or {})}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        reply = connection.getresponse()
        text = reply.read().decode('utf-8', 'surrogateescape')
        connection.close()
        return reply.status, {k.lower(): v for k, v in reply.getheaders()}, text

    def make(self, name, phase='planning', **fields):
        """Creates an instance and returns its revision."""
        status, body = self('POST', f'{INSTANCES}drone-survey/{name}', {'phase': phase, **fields})
        check(f'{name} is made: {status} {body}', status == 201)
        return body['revision']

    def move(self, name, phase):
        status, body = self('POST', f'/workflows/drone-survey/{name}/transition', {'phase': phase})
        check(f'{name} goes to {phase}: {status} {body}', status == 200)


class Socket:
    """A WebSocket client that can also misbehave."""

    def __init__(self, server, path='/workflows/drone-survey?stream=true', headers=None, small_buffer=False):
        host, port = server.http.rsplit(':', 1)
        self.sock = socket.socket()
        if small_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.settimeout(20)
        self.sock.connect((host, int(port)))
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f'GET {path} HTTP/1.1', f'Host: {server.http}', 'Upgrade: websocket', 'Connection: Upgrade',
                 f'Sec-WebSocket-Key: {key}', 'Sec-WebSocket-Version: 13']
        lines += [f'{k}: {v}' for k, v in (headers or {}).items()]
        self.sock.sendall(('\r\n'.join(lines) + '\r\n\r\n').encode())
        self.buffer = b''
        while b'\r\n\r\n' not in self.buffer:
            self.buffer += self.some()
        head, self.buffer = self.buffer.split(b'\r\n\r\n', 1)
        self.status = int(head.split()[1])
        want = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest())
        self.accepted = b'Sec-WebSocket-Accept: ' + want in head

    def some(self):
        """The next bytes from the socket; EOFError at the end."""
        got = self.sock.recv(65536)
        if not got:
            raise EOFError
        return got

    def take(self, n):
        while len(self.buffer) < n:
            self.buffer += self.some()
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def frame(self):
        """(opcode, payload) of the next frame."""
        first, second = self.take(2)
        check('a server frame is whole and unmasked', first & 0x80 and not second & 0x80)
        size = second & 0x7f
        if size == 126:
            size = struct.unpack('>H', self.take(2))[0]
        elif size == 127:
            size = struct.unpack('>Q', self.take(8))[0]
        return first & 0x0f, self.take(size)

    def state(self):
        """The next state; text frames hold JSON and a newline."""
        opcode, payload = self.frame()
        check(f'a state is one text frame with a newline: {opcode}', opcode == 1 and payload.endswith(b'\n'))
        return json.loads(payload)

    def quiet(self, seconds=0.3):
        """The next frame if one comes within that time, else None."""
        self.sock.settimeout(seconds)
        try:
            return self.frame()
        except (socket.timeout, TimeoutError):
            return None
        finally:
            self.sock.settimeout(20)

    def send(self, opcode, payload=b'', last=True, masked=True, reserved=0, size=None):
        """Sends one frame. The defaults make a valid one; `size` announces another length than that of the payload."""
        head = bytes([(0x80 if last else 0) | reserved << 4 | opcode])
        length, flag = len(payload) if size is None else size, 0x80 if masked else 0
        if length < 126:
            head += bytes([flag | length])
        elif length < 65536:
            head += bytes([flag | 126]) + struct.pack('>H', length)
        else:
            head += bytes([flag | 127]) + struct.pack('>Q', length)
        if masked:
            mask = os.urandom(4)
            head += mask
            payload = bytes(b ^ mask[i % 4] for i, b in enumerate(payload))
        self.sock.sendall(head + payload)

    def close_code(self):
        """The code of the close frame that ends it, skipping states; then nothing may follow."""
        try:
            while True:
                opcode, payload = self.frame()
                if opcode == 8:
                    code = struct.unpack('>H', payload[:2])[0] if payload else 1005
                    break
            try:
                while self.sock.recv(65536):
                    pass
            except OSError:
                pass
            return code
        except (EOFError, ConnectionError):
            return None

    def end(self):
        self.sock.close()


class Events:
    """A Server-Sent Events client."""

    def __init__(self, server, path='/workflows/drone-survey?stream=true', headers=None):
        host, port = server.http.rsplit(':', 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=20)
        self.connection.request('GET', path, headers={'Accept': 'text/event-stream', **(headers or {})})
        self.reply = self.connection.getresponse()
        self.status = self.reply.status

    def next(self):
        """(event, id, data) of the next event."""
        seen = {}
        while True:
            line = self.reply.readline().decode()
            if not line:
                raise EOFError
            line = line.rstrip('\n')
            if not line and seen:
                return seen.get('event'), int(seen.get('id', 0)), json.loads(seen['data'])
            if ': ' in line:
                name, value = line.split(': ', 1)
                seen[name] = value

    def end(self):
        self.connection.close()


def watch_by_socket(server, api):
    """A watch over a WebSocket: snapshot, changes in commit order, deletions, pings and the close."""
    api.make('ws1')
    api.make('ws2', owner_org_id='acme')
    w = Socket(server)
    check(f'the handshake is 101 with the right key: {w.status}', w.status == 101 and w.accepted)
    first, second = w.state(), w.state()
    check(f'the snapshot comes in creation order: {first} {second}', [first['entity_id'], second['entity_id']] == ['ws1', 'ws2'])
    api.move('ws2', 'flying')
    api.move('ws1', 'aborted')
    check('changes come in commit order', [w.state()['phase'], w.state()['phase']] == ['flying', 'aborted'])
    api('DELETE', INSTANCES + 'drone-survey/ws1')
    gone = w.state()
    check(f'a deletion is shown: {gone}', gone.get('deleted') is True and gone['entity_id'] == 'ws1' and gone['revision'] > 0)
    w.send(9, b'are you there')
    check('a ping is answered with its payload', w.frame() == (10, b'are you there'))
    w.send(1, b'hello')
    w.send(1, b'hel', last=False)
    w.send(9, b'in between')
    check('a ping between fragments is answered', w.frame() == (10, b'in between'))
    w.send(0, b'lo')
    w.send(10, b'unasked pong')
    api.move('ws2', 'landing')
    check('what a client says is ignored', w.state()['phase'] == 'landing')
    w.send(8, struct.pack('>H', 1000) + b'bye')
    check('a close is answered in kind', w.close_code() == 1000)
    api.move('ws2', 'completed')
    status, _, text = api.raw('GET', '/workflows/drone-survey?stream=true')
    check(f'without a handshake 400: {status}', status == 400)
    w = Socket(server, '/workflows/ghost?stream=true')
    check('an unknown type is 101 and one error', w.status == 101 and 'error' in json.loads(w.frame()[1]))
    check('and then the end', w.close_code() == 1000)
    w.end()


def frames_that_break_the_rules(server, api):
    """Each violation of RFC 6455 ends the connection with the close code that the RFC names; random bytes must not harm the server."""
    broken = [
        ('an unmasked frame', 1002, lambda w: w.send(1, b'hello', masked=False)),
        ('a reserved bit', 1002, lambda w: w.send(1, b'hello', reserved=4)),
        ('an unknown opcode', 1002, lambda w: w.send(5, b'x')),
        ('a continuation of nothing', 1002, lambda w: w.send(0, b'x')),
        ('a message inside a message', 1002, lambda w: (w.send(1, b'a', last=False), w.send(1, b'b'))),
        ('a fragmented ping', 1002, lambda w: w.send(9, b'x', last=False)),
        ('a long ping', 1002, lambda w: w.send(9, b'x' * 126)),
        ('a close with one byte', 1002, lambda w: w.send(8, b'x')),
        ('a close code that may not travel', 1002, lambda w: w.send(8, struct.pack('>H', 1005))),
        ('text that is not UTF-8', 1007, lambda w: w.send(1, b'\xff\xfe')),
        ('a frame over the limit', 1009, lambda w: w.send(2, b'', size=1 << 40)),
        ('fragments over the limit', 1009, lambda w: [w.send(2 if i == 0 else 0, b'x' * 60000, last=False) for i in range(20)]),
    ]
    for what, code, misbehave in broken:
        w = Socket(server)
        try:
            misbehave(w)
        except OSError:
            pass
        got = w.close_code()
        check(f'{what} ends with {code}, not {got}', got == code)
        w.end()
    w = Socket(server)
    w.sock.sendall(os.urandom(4096))
    w.end()
    for version, key in (('12', 'dGhlIHNhbXBsZSBub25jZQ=='), ('13', 'AAAA')):
        host, port = server.http.rsplit(':', 1)
        plain = http.client.HTTPConnection(host, int(port), timeout=20)
        plain.request('GET', '/workflows/drone-survey?stream=true',
                      headers={'Upgrade': 'websocket', 'Connection': 'Upgrade', 'Sec-WebSocket-Key': key, 'Sec-WebSocket-Version': version})
        check('a bad handshake is a 4xx', 400 <= plain.getresponse().status < 500)
        plain.close()


def watch_by_events(server, api):
    """A watch over Server-Sent Events: kinds, ids, and resuming after an id, also after a crash."""
    api.make('ev1')
    e = Events(server)
    check(f'events are 200: {e.status}', e.status == 200 and e.reply.getheader('Content-Type').startswith('text/event-stream'))
    seen = []
    while not seen or seen[-1][2]['entity_id'] != 'ev1':
        seen.append(e.next())
    check('the snapshot is marked', all(kind == 'snapshot' for kind, _, _ in seen))
    check('ids do not fall', [i for _, i, _ in seen] == sorted(i for _, i, _ in seen))
    api.move('ev1', 'flying')
    kind, at, state = e.next()
    check(f'a change: {kind} {state}', kind == 'change' and state['phase'] == 'flying' and at > seen[-1][1])
    api('DELETE', INSTANCES + 'drone-survey/ev1')
    kind, gone, state = e.next()
    check(f'a deletion: {kind}', kind == 'deleted' and state['entity_id'] == 'ev1')
    e.end()
    api.make('ev2')
    again = Events(server, headers={'Last-Event-ID': str(at)})
    got = [again.next(), again.next()]
    check(f'a resume goes on after its id: {got}', [(k, s['entity_id']) for k, _, s in got] == [('deleted', 'ev1'), ('change', 'ev2')])
    again.end()
    by_query = Events(server, f'/workflows/drone-survey?stream=true&after={gone}')
    check('the same by query', by_query.next()[2]['entity_id'] == 'ev2')
    by_query.end()
    future = Events(server, headers={'Last-Event-ID': '999999999'})
    api.move('ev2', 'flying')
    check('an id from the future begins now', future.next()[2]['phase'] == 'flying')
    future.end()
    check('an unknown type is 404', Events(server, '/workflows/ghost?stream=true').status == 404)
    # Acknowledged changes reach a reader that resumes after a kill.
    e = Events(server)
    while True:
        kind, last, state = e.next()
        if state['entity_id'] == 'ev2':
            break
    e.end()
    api.move('ev2', 'landing')
    server.kill()
    server.start()
    e = Events(server, headers={'Last-Event-ID': str(last)})
    check('after kill -9 a resume finds what it missed', e.next()[2]['phase'] == 'landing')
    e.end()


def readers_that_stop(server, api):
    """A reader that is slow or stuck delays neither writers nor other readers, and a slow one gets every newest state."""
    big = 'x' * 200_000
    for i in range(40):
        api.make(f'big{i}', note=big)
    slow = Socket(server, small_buffer=True)
    stuck = Socket(server, small_buffer=True)
    fast = Socket(server)
    names = set()
    while len([n for n in names if n.startswith('big')]) < 40:
        names.add(fast.state()['entity_id'])
    began = time.monotonic()
    for i in range(40):
        status, body = api('POST', f'/workflows/drone-survey/big{i}/state', {'retries': 1})
        check(f'a patch beside stuck readers: {status}', status == 200)
        check('the fast reader gets it', fast.state()['retries'] == 1)
    check(f'a stuck reader holds nobody up ({time.monotonic() - began:.1f} s)', time.monotonic() - began < 20)
    # A slow reader gets the rest of the snapshot as it reads, then the changes since.
    patched = set()
    while len(patched) < 40:
        state = slow.state()
        if state['retries'] == 1:
            patched.add(state['entity_id'])
    for i in range(60):
        api('POST', f'/workflows/drone-survey/big{i % 40}/state', {'retries': 2 + i})
    for w in (slow, fast, stuck):
        w.end()
    check('the server lives', api('GET', '/workflows')[0] == 200)
    for i in range(40):
        api('DELETE', f'{INSTANCES}drone-survey/big{i}')


def input_that_means_harm(server, api):
    """Invalid bodies, ids, paths and parameters are refused with a status of 4xx and a readable reason."""
    api.make('h1')
    patch = '/workflows/drone-survey/h1/state'
    for body in ({'waypoint_index': -1}, {'waypoint_index': 1.5}, {'waypoint_index': 2 ** 32}, {'waypoint_index': '3'}, {'retries': 2 ** 63},
                 {'battery_pct': 'full'}, {'armed': 1}, {'tags': 'one'}, {'tags': [1]}, {'tags': {'a': 1}}, {'note': 7}, {'note': ['x']}, {'nope': 1},
                 {'phase': 'flying'}, {'entity_id': 'x'}, {'internal_state': 'x'}):
        status, answer = api('POST', patch, body)
        check(f'{body} is 400 with words: {status} {answer}', status == 400 and list(body)[0] in answer['error'])
    for text in (b'', b'{', b'[]', b'7', b'"x"', b'{"note": }', b'\xff', b'{"note":"\xff"}', b'[' * 100_000, b'{"a":' * 50_000):
        status, _, answer = api.raw('POST', patch, text)
        check(f'{text[:20]} is 400: {status} {answer[:100]}', status == 400 and 'error' in json.loads(answer))
    status, _, answer = api.raw('POST', patch, b'{"note":"' + b'x' * (1 << 20) + b'"}')
    check(f'over 1 MiB is 413: {status}', status == 413 and 'error' in json.loads(answer))
    status, _, answer = api.raw('POST', patch, b'{"note":"' + b'x' * (11 << 20) + b'"}')
    check(f'over 10 MiB is 413: {status}', status == 413 and 'error' in json.loads(answer))
    check('null is an empty patch', api.raw('POST', patch, b'null')[0] == 200)
    check('numbers fit their fields', api('POST', patch, {'waypoint_index': 2 ** 32 - 1, 'retries': -2 ** 63, 'battery_pct': 1, 'tags': []})[0] == 200)
    state = api('GET', '/workflows/drone-survey/h1')[1]
    check(f'and are kept exactly: {state}', state['waypoint_index'] == 2 ** 32 - 1 and state['retries'] == -2 ** 63)
    for name, status in (('a%20b', 400), ('%00', 400), ('a*', 400), ('a%3E', 400), ('%ff', 400), ('x' * 1025, 400), ('x' * 10_000, 400), ('%0a', 400),
                         ('a%2fb', 201), ('%C3%A4', 201), ('x' * 1024, 201), ('a.b.c.d.e.f', 201), ('%7B%22%7D', 201), ('%2e%2e', 201)):
        got, _, answer = api.raw('POST', f'{INSTANCES}drone-survey/{name}', b'{"phase":"planning"}')
        check(f'id {name[:20]} is {status}: {got} {answer[:120]}', got == status)
        try:
            json.loads(answer)
        except ValueError:
            check(f'id {name[:20]}: the answer is JSON: {answer[:100]!r}', False)
    got, _, answer = api.raw('GET', '/workflows/drone-survey/a%2Fb/history')
    check(f'an id with a slash has a history: {got}', got == 200)
    for path, status in (('/workflows/nope', 404), ('/workflows/nope/x', 404), ('/workflows/nope/x/history', 404), ('/workflows/drone-survey/nope', 404),
                         ('/workflows/drone-survey/h1/nope', 404), ('/workflows/drone-survey/h1/history/x', 404), ('/workflows/drone-survey/h1/', 200),
                         ('/workflows/' + 'x' * 5000, 404), ('/workflows/%ff', 400), ('/workflows/a%20b', 404), ('/workflows/', 200),
                         ('/workflows/drone-survey?limit=-1', 400), ('/workflows/drone-survey?limit=1e2', 400), ('/workflows/drone-survey?limit=%2B1', 200),
                         ('/workflows/drone-survey?limit=99999999999999999999', 400), ('/workflows/drone-survey?offset=x', 400), ('/workflows/drone-survey?limit=', 200),
                         ('/workflows/drone-survey?cursor=zz', 400), ('/workflows/drone-survey?updated_after=soon', 400), ('/workflows/drone-survey?match.nope=1', 400),
                         ('/workflows/drone-survey?match.armed=maybe', 400), ('/workflows/drone-survey?match.armed=true', 200), ('/workflows/drone-survey?match.tags=%5B%5D', 200),
                         ('/workflows/drone-survey?match.waypoint_index=4294967296', 400), ('/workflows/drone-survey?nonsense=1', 200),
                         ('/workflows/drone-survey?' + '&'.join(['match.note=x'] * 200), 200)):
        got, _, answer = api.raw('GET', path)
        check(f'{path[:60]} is {status}: {got} {answer[:100]}', got == status)
    for method in ('PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'POST'):
        got, headers, _ = api.raw(method, '/workflows')
        check(f'{method} of the index is 405 with Allow: {got} {headers.get("allow")}', got == 405 and headers.get('allow') == 'GET')
    move = '/workflows/drone-survey/h1/transition'
    for text, status in ((b'{}', 400), (b'{"phase":""}', 400), (b'{"phase":"  "}', 400), (b'{"phase":7}', 400), (b'{"phase":"exploded"}', 400), (b'null', 400),
                         (b'{"phase":" flying "}', 400), (b'{"phase":"completed"}', 400), (b'{"phase":"flying","note":5}', 400), (b'{"PHASE":"flying","x":1} trailing', 200)):
        got, _, answer = api.raw('POST', move, text)
        check(f'transition {text} is {status}: {got} {answer[:100]}', got == status)
    for body in ({'target': 5}, {'target': 'flying'}, {'target': 'nope'}):
        check(f'complete {body} is 400', api('POST', INSTANCES + 'drone-survey/h1/complete', body)[0] == 400)
    for body in ({}, {'reason': ''}, {'reason': 5}, {'reason': 'x'}):
        check(f'fail {body} is 400', api('POST', INSTANCES + 'drone-survey/h1/fail', body)[0] == 400)
    check('a source outside the four is 400', api('POST', INSTANCES + 'drone-survey/h1/transition?source=nobody', {'phase': 'landing'})[0] == 400)
    check('one of the four is kept', api('POST', INSTANCES + 'drone-survey/h1/transition?source=component', {'phase': 'landing'})[0] == 200
          and api('GET', '/workflows/drone-survey/h1/history')[1][-1]['triggered'] == 'component')


def types_that_mean_harm(server, api):
    """Invalid definitions are refused with the reason, and an existing type cannot be changed by data."""
    def bad(what, words, **changes):
        status, answer = api('PUT', TYPES + 'bad', {**DRONE, **changes})
        check(f'{what} is 400 with {words}: {status} {answer}', status == 400 and words in answer['error'])
    fields = DRONE['fields']
    bad('no id', 'missing_id_field', fields=fields[1:], parent_field='')
    bad('no phase', 'missing_phase_field', fields=[fields[0]], parent_field='')
    bad('two ids', 'both tagged id', fields=fields + [{'name': 'id2', 'type': 'string', 'tags': ['id']}])
    bad('an unknown tag', 'shiny', fields=fields + [{'name': 'x', 'type': 'string', 'tags': ['shiny']}])
    bad('an unknown kind', 'complex', fields=fields + [{'name': 'x', 'type': 'complex'}])
    bad('a doubled name', 'armed', fields=fields + [{'name': 'armed', 'type': 'bool'}])
    bad('readonly and writable', 'readonly', fields=fields + [{'name': 'x', 'type': 'bool', 'tags': ['readonly', 'operator_writable']}])
    bad('a writable id', 'operator_writable', fields=[{'name': 'entity_id', 'type': 'string', 'tags': ['id', 'operator_writable']}] + fields[1:])
    bad('an empty table', 'invalid_transitions_table', transitions={})
    bad('an undeclared target', 'nowhere', transitions={'a': ['nowhere']})
    bad('a doubled target', 'twice', transitions={'a': ['b', 'b'], 'b': []})
    bad('a long phase', 'invalid_transitions_table', transitions={'p' * 300: []})
    bad('too many phases', 'invalid_transitions_table', transitions={f'p{i}': [] for i in range(513)})
    bad('too many fields', 'at most 512 fields', fields=fields + [{'name': f'f{i}', 'type': 'bool'} for i in range(512)])
    bad('a table that is a list', 'transitions', transitions=[])
    bad('no bucket', 'bucket', bucket='')
    bad('a bad table and bad fields', 'invalid_transitions_table', transitions={'a': ['nowhere']}, fields=[{'name': 'x', 'type': 'complex'}], parent_field='')
    check('the same again is 200', api('PUT', TYPES + 'drone-survey', DRONE)[0] == 200)
    check('another is 409', api('PUT', TYPES + 'drone-survey', {**DRONE, 'bucket': 'OTHER'})[0] == 409)
    check('a name with a blank is 400', api('PUT', TYPES + 'a%20b', DRONE)[0] == 400)


def a_struct_that_has_changed(server, api):
    """A program registers a changed struct. Instances that were stored before may no longer fit it."""
    def field(kind):
        return {**DRONE, 'parent_field': '', 'fields': DRONE['fields'][:2] + [{'name': 'size', 'type': kind, 'tags': ['operator_writable']}]}
    check('a type', api('PUT', TYPES + 'moult', field('string'))[0] == 201)
    check('an instance', api('POST', INSTANCES + 'moult/old', {'phase': 'planning', 'size': 'large'})[0] == 201)
    status, _, text = api.raw('PUT', TYPES + 'moult', json.dumps(field('int64')).encode(), {'X-Pawl-Definition': 'code'})
    check(f'the struct has changed: {status} {text}', status == 201)
    check('an instance of the new form', api('POST', INSTANCES + 'moult/new', {'phase': 'planning', 'size': 7})[0] == 201)
    status, answer = api('GET', '/workflows/moult/old')
    check(f'the old one is a 500 without its bytes: {status} {answer}', status == 500 and answer == {'error': 'get: internal error (operator details in server log)'})
    status, headers, text = api.raw('GET', '/workflows/moult')
    check(f'the list skips and reports it: {status} {headers} {text}', status == 200 and headers.get('x-pawl-skipped') == '1' and [s['entity_id'] for s in json.loads(text)] == ['new'])
    status, answer = api('GET', INSTANCES + 'moult')
    check(f'so does the other list: {answer}', status == 200 and answer['skipped'] == 1 and len(answer['instances']) == 1)
    check('a patch mends it', api('POST', '/workflows/moult/old/state', {'size': 3})[0] == 200 and api('GET', '/workflows/moult/old')[1]['size'] == 3)


def rules_that_mean_harm(server, api):
    """Invalid rules are refused and not stored; a rule with guards runs only the actions whose guard holds."""
    def rule(**changes):
        return {'workflow': 'drone-survey', 'on': {'phase': 'landing'}, 'then': [{'type': 'lifecycle_complete'}], **changes}
    for changes in ({'on': {}}, {'on': {'phase': 'nowhere'}}, {'on': {'cron': '1-2147483647/2147483647 * * * *'}}, {'on': {'cron': '* * * * * * *'}},
                    {'on': {'every': '-PT5M'}}, {'on': {'every': 'PT0.5S'}}, {'on': {'every': 'P99999999999999Y'}}, {'then': []}, {'then': [{'type': 'explode'}]},
                    {'then': [{'type': 'lifecycle_complete'}] * 65}, {'then': [{'type': 'lifecycle_transition', 'phase': 'nowhere'}]},
                    {'then': [{'type': 'lifecycle_transition', 'phase': 'flying', 'set': {'phase': 'x'}}]}, {'then': [{'type': 'lifecycle_fail'}]},
                    {'then': [{'type': 'lifecycle_complete', 'when': {'nope': 1}}]}, {'then': [{'type': 'lifecycle_complete', 'max_iterations': -1}]},
                    {'when': 7}, {'when': [{'field': 'armed', 'operator': 'like', 'value': 1}]}, {'when': {'nope': 1}}, {'surprise': 1}):
        status, answer = api('PUT', '/pawl/v1/lifecycle/rules/bad', rule(**changes))
        check(f'{changes} is 400: {status} {answer}', status == 400 and 'error' in answer)
    check('a rule of no type is 404', api('PUT', '/pawl/v1/lifecycle/rules/bad', rule(workflow='ghost'))[0] == 404)
    check('nothing was stored', api('GET', '/pawl/v1/lifecycle/rules/bad')[0] == 404)
    check('a guard on an action is taken', api('PUT', '/pawl/v1/lifecycle/rules/land', rule(then=[
        {'type': 'lifecycle_fail', 'reason': 'armed at $now', 'when': {'armed': True}}, {'type': 'lifecycle_complete', 'when': {'armed': False}}]))[0] == 201)
    api.make('calm', 'flying')
    api.make('armed', 'flying', armed=True)
    api.move('calm', 'landing')
    api.move('armed', 'landing')
    def phase(name):
        return api('GET', '/workflows/drone-survey/' + name)[1]['phase']
    until = time.monotonic() + 10
    while time.monotonic() < until and (phase('calm') != 'completed' or phase('armed') != 'failed'):
        time.sleep(0.02)
    check(f'each guard held for its own: {phase("calm")} {phase("armed")}', phase('calm') == 'completed' and phase('armed') == 'failed')
    last = api('GET', '/workflows/drone-survey/armed/history')[1][-1]
    check(f'the firing is recorded: {last}', last['triggered'] == 'rule' and last['caller'] == 'rule:land' and last['note'].startswith('armed at 20'))
    api('DELETE', '/pawl/v1/lifecycle/rules/land')


def a_schedule_over_many(server, api):
    """A schedule runs over more instances than one turn handles. A kill in the middle loses none and repeats none."""
    many = 700
    for i in range(many):
        api.make(f's{i}', 'capturing')
    api('PUT', '/pawl/v1/lifecycle/rules/sweep', {'workflow': 'drone-survey', 'on': {'every': 'PT1S'}, 'when': {'phase': 'capturing'},
                                                  'then': [{'type': 'lifecycle_transition', 'phase': 'flying', 'set': {'waypoint_index': {'op': 'increment'}}}]})
    time.sleep(1.02)
    server.kill()
    server.start()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        index = api('GET', '/workflows')[1]
        counts = [t for t in index if t['workflow'] == 'drone-survey'][0]['counts_by_phase']
        if counts.get('capturing', 0) == 0:
            break
        time.sleep(0.1)
    listed = [s for s in api('GET', '/workflows/drone-survey?phase=flying')[1] if s['entity_id'].startswith('s')]
    check(f'all {many} were moved: {len(listed)}', len(listed) == many)
    check('each once', {s['waypoint_index'] for s in listed} == {1})
    api('DELETE', '/pawl/v1/lifecycle/rules/sweep')
    check('the counts are those of the list', counts['flying'] == len(api('GET', '/workflows/drone-survey?phase=flying')[1]))


def the_command_line(server, api):
    """The commands of `pawl lifecycle`, with their exit codes."""
    def run(*words, timeout=20):
        return subprocess.run([live.PAWL, 'lifecycle', *words, '--server', server.http], capture_output=True, text=True, timeout=timeout)
    api.make('cli1')
    check('types', 'drone-survey' in run('types').stdout)
    api('PUT', TYPES + 'odd', {**DRONE, 'transitions': {'<a & "b">': ['<a & "b">', '--> end'], '--> end': []}})
    for form, inside in (('mermaid', 'capturing'), ('svg', '>capturing<'), ('dot', 'capturing')):
        check(f'a picture as {form}', inside in run('types', 'drone-survey', '--render', form).stdout)
    check('odd names stay text', '<a' not in run('types', 'odd', '--render', 'svg').stdout)
    shown = run('list', 'drone-survey', '--match', 'owner_org_id=', '--active', '--limit', '1000')
    check(f'list with filters: {shown.stderr}', shown.returncode == 0 and 'cli1' in shown.stdout)
    check('a filter without a value is refused', run('list', 'drone-survey', '--match', 'x').returncode != 0)
    check('transition', run('transition', 'drone-survey', 'cli1', 'flying', '--note', 'by hand').returncode == 0)
    check('history', 'by hand' in run('history', 'drone-survey', 'cli1').stdout)
    check('patch', run('patch', 'drone-survey', 'cli1', '--set', 'note=seen').returncode == 0)
    check('a refusal is said', 'not a phase' in run('transition', 'drone-survey', 'cli1', 'nowhere').stderr)
    watcher = subprocess.Popen([live.PAWL, 'lifecycle', 'watch', 'drone-survey', '--server', server.http], stdout=subprocess.PIPE, text=True)
    line = watcher.stdout.readline()
    check(f'watch shows events: {line!r}', line.startswith('id: '))
    watcher.terminate()
    watcher.wait()
    check('watch of an unknown type is not found', run('watch', 'ghost').returncode == 3)
    check('one type by its name', '"drone-survey"' in run('types', 'drone-survey').stdout and run('types', 'ghost').returncode == 3)
    check('written since', json.loads(run('list', 'drone-survey', '--updated-after', '2999-01-01T00:00:00Z').stdout) == [])
    group = subprocess.run([live.PAWL, 'lifecycle', '--help'], capture_output=True, text=True)
    check(f'the group tells its commands: {group.stdout}', group.returncode == 0 and 'lifecycle transition TYPE ID PHASE' in group.stdout and 'entity' not in group.stdout)
    unknown = subprocess.run([live.PAWL, 'lifecycle', 'lift'], capture_output=True, text=True)
    check(f'an unknown command of the group: {unknown.stderr}', unknown.returncode == 2 and "'lifecycle lift'" in unknown.stderr and 'lifecycle list' in unknown.stderr)


def origins():
    """The settings that restrict WebSockets: allowed origins, and off altogether."""
    with live.Server('--lifecycle-origins', 'https://ours.example') as server:
        Api(server)('PUT', TYPES + 'drone-survey', DRONE)
        for origin, status in (('https://ours.example', 101), ('https://theirs.example', 403), (None, 403)):
            got = Socket(server, headers={'Origin': origin} if origin else {}).status
            check(f'origin {origin} is {status}: {got}', got == status)
    with live.Server(env={'PAWL_LIFECYCLE_WEBSOCKET': 'false'}) as server:
        Api(server)('PUT', TYPES + 'drone-survey', DRONE)
        check('no sockets', Socket(server).status == 403)
        check('but events', Events(server).status == 200)


def token_of(base, client, secret):
    basic = base64.b64encode(f'{client}:{secret}'.encode()).decode()
    return live.call(base, 'POST', '/api/oauth/token', b'grant_type=client_credentials',
                     {'Authorization': 'Basic ' + basic, 'Content-Type': 'application/x-www-form-urlencoded'})[1]['access_token']


def roles():
    """Each role reads, patches and writes as the reference says; another tenant sees nothing."""
    folder = tempfile.mkdtemp(prefix='pawl-lifecycle-')
    key = os.path.join(folder, 'key.pem')
    live.make_rsa_key(key)
    env = {'PAWL_JWT_KEY_FILE': key, 'PAWL_BOOTSTRAP_CLIENT_ID': 'boot', 'PAWL_BOOTSTRAP_CLIENT_SECRET': 'secret', 'PAWL_BOOTSTRAP_TENANT_ID': 'acme'}
    with live.Server('--auth', 'jwt', env=env) as server:
        boss = Api(server, {'Authorization': 'Bearer ' + token_of(server.base, 'boot', 'secret')})

        def somebody(*names, tenant='acme'):
            status, made = boss('POST', '/api/account/m2m', {'tenantId': tenant, 'userId': names[0] if names else 'nobody', 'roles': list(names)})
            check(f'a client with {names}: {status} {made}', status == 201)
            return Api(server, {'Authorization': 'Bearer ' + token_of(server.base, made['clientId'], made['clientSecret'])})
        op, viewer, passer_by, stranger = somebody('operator'), somebody('viewer'), somebody('ROLE_M2M'), somebody('program', tenant='other')
        program = somebody('program')
        nobody = Api(server)
        check('a program declares a type', program('PUT', TYPES + 'drone-survey', DRONE)[0] == 201)
        program.make('m1')
        for who, name, read, write in ((op, 'operator', 200, 200), (viewer, 'viewer', 200, 403), (passer_by, 'neither', 403, 403), (nobody, 'no token', 401, 401),
                                       (stranger, 'another tenant', 404, 404)):
            for path in ('/workflows/drone-survey', '/workflows/drone-survey/m1', '/workflows/drone-survey/m1/history', TYPES + 'drone-survey'):
                status, body = who('GET', path)
                check(f'{name} reads {path}: {status} {body}', status == read)
            status, body = who('POST', '/workflows/drone-survey/m1/state', {'note': name})
            check(f'{name} patches: {status} {body}', status == write)
            check(f'{name} is told in the usual words', status == 200 or 'error' in body)
            status, _ = who('POST', '/workflows/drone-survey/m1/transition', {'phase': 'flying'})
            check(f'{name} moves: {status}', status == write)
        history = viewer('GET', '/workflows/drone-survey/m1/history')[1]
        check(f'the history names the caller: {history}', history[-1]['caller'] == 'operator' and history[-1]['triggered'] == 'operator')
        for who, name in ((viewer, 'viewer'), (op, 'operator')):
            for path, body in (('/pawl/v1/lifecycle/rules/r', {}), (TYPES + 'x', DRONE), (INSTANCES + 'drone-survey/m1', {'phase': 'landing', 'battery_pct': 1})):
                status, said = who('PUT', path, body)
                check(f'{name} may not put {path}: {status} {said}', status == 403 and 'role program is needed' in said['error'])
            check(f'{name} may not create', who('POST', INSTANCES + 'drone-survey/m2', {'phase': 'planning'})[0] == 403)
            check(f'{name} may not speak for a program', who('POST', INSTANCES + 'drone-survey/m1/transition?source=framework', {'phase': 'landing'})[0] == 403)
            check(f'{name} may not remove', who('DELETE', INSTANCES + 'drone-survey/m1')[0] == 403)
        w = Socket(server, headers=viewer.headers)
        check('a viewer watches', w.status == 101 and w.state()['entity_id'] == 'm1')
        w.end()
        check('somebody else does not', Socket(server, headers=passer_by.headers).status == 403)
        check('nor does nobody', Socket(server).status == 401)
        check('nor by events', Events(server, headers=passer_by.headers).status == 403)
        other = Events(server, headers=stranger.headers)
        check('another tenant has no such type', other.status == 404)
    subprocess.run(['rm', '-r', folder])


def on_a_server_of_its_own(part):
    with live.Server() as server:
        api = Api(server)
        status, _ = api('PUT', TYPES + 'drone-survey', DRONE)
        check(f'the type is registered: {status}', status == 201)
        part(server, api)
        for problem in server.stop_and_verify():
            live.fail(problem)


def main():
    live.contracts = True
    parts = (watch_by_socket, frames_that_break_the_rules, watch_by_events, readers_that_stop, input_that_means_harm,
             types_that_mean_harm, a_struct_that_has_changed, rules_that_mean_harm, a_schedule_over_many, the_command_line)
    live.run_parts([(part.__name__, lambda part=part: on_a_server_of_its_own(part)) for part in parts] + [roles, origins])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
