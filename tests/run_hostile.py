#!/usr/bin/env python3
"""Plays recorded conversations with randomly broken requests among them. No answer may be an internal error of the server,
every error must have a readable body, and the journal must verify afterwards.

    tests/run_hostile.py [--seed N] [--seconds S] [FACE ...]
"""
import argparse, copy, http.client, json, os, random, sys, time, uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, play, run_worlds
from run_vectors import files_of

FACES = ['processes', 'entities', 'lifecycle', 'worlds']

# Values that sit on borders or mean something to one of the parsers: limits of numbers, control characters, paths,
# expressions, durations, times, nesting. RAW are whole bodies that are not what they should be.
ODD = [None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, -1e308, 2**31, 2**53 + 1, 2**63, -2**63, 2**64, 10**40, '', ' ', '0', '-1', 'null', 'true', 'a' * 300,
       'a' * 70000, '\u0000', '\ud83d\ude00', '\u202e', '../..', '%00', '%', '$', '$.', '$[*]', '$..a', '${x}', '#', '{{x}}', "'", '"', '\\', '\n', '*', '(' * 500, '[' * 500,
       'P1D', 'PT0S', 'P-1D', 'PT99999999999999999999S', '9999-12-31T23:59:59Z', '0000-00-00T00:00:00Z', '1969-12-31T23:59:59.999999999Z',
       '00000000-0000-0000-0000-000000000000', [], [[]], [None], {}, {'': None}, {'a': {'a': {'a': {}}}}, [1, '1', None, {}], ['a'] * 2000]
DEEP = '[' * 9000 + ']' * 9000
RAW = [b'', b'{', b'}', b'null', b'[]', b'""', b'{"a":1,"a":2}', b'\xff\xfe', b'{"a":"\xff"}', b'{"a":"\\ud800"}', b'{} {}', b'\xef\xbb\xbf{}', b'{"a":1e999999}',
       b'{"a":-}', b'{"a":01}', b'{\'a\':1}', DEEP.encode(), b'{"a":' * 9000, b' ' * 100000, b'<a><b>1</b></a>', b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', b'<a' * 5000]
METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
HEADERS = [('If-Match', '"x"'), ('If-Match', ''), ('If-Match', '*'), ('Content-Type', 'text/plain'), ('Content-Type', 'application/xml'), ('Content-Type', ''),
           ('Content-Type', 'application/json; charset=latin1'), ('Accept', 'application/x-nothing'), ('Idempotency-Key', ''), ('Idempotency-Key', 'k' * 300),
           ('Idempotency-Key', 'one'), ('Authorization', 'Bearer x'), ('X-Tenant-ID', '\u00e9'), ('X-Tenant-ID', b'\xff'), ('X-Request-ID', b'a\xffb'), ('Idempotency-Key', b'\xed\xa0\x80'), ('If-Match', b'\xff'), ('X-Subject', b'\xc3'), ('Range', 'bytes=0-1'), ('Last-Event-ID', '-1')]
PARAMS = ['limit', 'offset', 'cursor', 'pageSize', 'pageNumber', 'pointInTime', 'transactionId', 'transactionWindow', 'waitForConsistencyAfter', 'keyword', 'sort', 'after',
          'status', 'phase', 'match', 'height', 'prefix', 'from', 'to', 'explain', 'active', 'updated_after', 'definition', 'version', 'verbose', 'format', 'at']


class Breaker:
    """Changes one request in one or two places."""

    def __init__(self, seed):
        self.dice = random.Random(seed)

    def places(self, value, path=()):
        """The paths of all values inside a body; the empty path is the body itself."""
        yield path
        if len(path) > 40:
            return
        if isinstance(value, dict):
            for k in value:
                yield from self.places(value[k], path + (k,))
        elif isinstance(value, list):
            for i in range(len(value)):
                yield from self.places(value[i], path + (i,))

    def body(self, body):
        """Removes, renames, repeats, swaps or replaces values at one to three places."""
        dice, body = self.dice, copy.deepcopy(body)
        for _ in range(dice.choice((1, 1, 1, 2, 3))):
            *path, last = dice.choice(list(self.places(body))) or (None,)
            if last is None:
                body = copy.deepcopy(dice.choice(ODD))
                continue
            at = body
            for p in path:
                at = at[p]
            act = dice.randrange(6)
            if act == 0:
                del at[last]
            elif act == 1 and isinstance(at, dict):
                at[str(dice.choice(ODD))[:80]] = at.pop(last)
            elif act == 2 and isinstance(at, list):
                at.insert(last, copy.deepcopy(at[last]))
            elif act == 3 and isinstance(at, dict):
                at[last] = copy.deepcopy(dice.choice(list(at.values())))  # the value of another member
            elif act == 4 and isinstance(at[last], str):
                at[last] = self.text(at[last])
            else:
                at[last] = copy.deepcopy(dice.choice(ODD))
        return body

    def text(self, text):
        dice = self.dice
        at = dice.randrange(len(text) + 1)
        return dice.choice((text[:at], text[at:], text[:at] + str(dice.choice(ODD))[:200] + text[at:], text * 3, text.upper(), text[:at] + dice.choice('\u00e9\0"\\%$#[](){}.,/ ') + text[at:]))

    def path(self, path):
        dice = self.dice
        where, _, query = path.partition('?')
        act = dice.randrange(5)
        if act == 0:
            parts = where.split('/')
            parts[dice.randrange(1, len(parts))] = quote(str(dice.choice(ODD))[:400])
            where = '/'.join(parts)
        elif act == 1:
            where = quote(self.text(where))
        elif act == 2:
            where += dice.choice(('/', '//', '/..', '/x', '%2e%2e', ';a=b', '%zz', '%'))
        else:
            query += ('&' if query else '') + dice.choice(PARAMS) + '=' + quote(str(dice.choice(ODD))[:400])
        return where + ('?' + query if query else '')

    def request(self, request):
        """A broken form of a request: (method, path, body bytes or None, headers)."""
        dice = self.dice
        request = dict(request)
        act = dice.randrange(10)
        if act < 5 and 'body' in request:
            request['body'] = self.body(request['body'])
        elif act < 8:
            request['path'] = self.path(request['path'])
        elif act == 8:
            request.pop('body', None)
            request['bytes'] = dice.choice(RAW)
        else:
            request['method'] = dice.choice(METHODS)
        headers = dict(request.get('headers', {}))
        if dice.random() < 0.1:
            name, value = dice.choice(HEADERS)
            headers[name] = value
        data = request.get('bytes')
        if data is None and 'raw' in request:
            data = request['raw'].encode('utf-8', 'surrogatepass')
        if data is None and 'body' in request:
            data = json.dumps(request['body']).encode('utf-8', 'surrogatepass')
        return request['method'], request['path'], data, headers


def quote(text):
    """Escapes only what http.client would refuse to send; escapes and delimiters in the text stay as they are."""
    return ''.join(c if c.isalnum() and c.isascii() or c in '/-._~%$:@?&=#[]*,;!()' else ''.join(f'%{b:02X}' for b in c.encode('utf-8', 'surrogatepass')) for c in text)


class Line:
    """One connection, kept until the server closes it. A request on a kept connection that was closed meanwhile is sent once more."""

    def __init__(self, server):
        self.address, self.headers, self.open = server.http, server.headers, None

    def send(self, method, path, data, headers):
        for again in (True, False):
            kept = self.open is not None
            self.open = self.open or http.client.HTTPConnection(self.address, timeout=60)
            try:
                headers = {k: v if isinstance(v, bytes) else v.encode() for k, v in {**self.headers, **headers}.items()}
                if data is not None and not any(k.lower() == 'content-type' for k in headers):
                    headers['Content-Type'] = 'application/json'
                self.open.putrequest(method, quote(path), skip_accept_encoding=True)
                for k, v in headers.items():
                    self.open.putheader(k, v)
                if data is not None:
                    self.open.putheader('Content-Length', str(len(data)))
                self.open.endheaders(data)
                reply = self.open.getresponse()
                text = reply.read() if 'event-stream' not in (reply.headers.get('Content-Type') or '') else b'{}'
                if reply.will_close or 'event-stream' in (reply.headers.get('Content-Type') or ''):
                    self.open.close()
                    self.open = None
                return reply.status, text
            except (http.client.HTTPException, OSError):
                self.open.close()
                self.open = None
                if not (kept and again):
                    raise


def judge(method, status, text):
    """Returns what is wrong with an answer, or ''. A 503 is accepted only when it says that a retry may help; 501 is accepted."""
    later = b'"retryable":true' in text or b'"code":"unavailable"' in text
    if status >= 500 and status != 501 and not (status == 503 and later):
        return 'the server failed'
    if status >= 400 and method != 'HEAD':
        if not text.strip() and status != 405:  # the Allow header is the explanation
            return 'an error without a word'
        try:
            text.decode()
        except UnicodeDecodeError:
            return 'an error that is no UTF-8'
    return ''


def worlds_steps():
    """Creates and uses a small world, because there are no recordings of this face."""
    world, cell = '/v1/worlds/w-{{$run}}', 'key_b64=' + run_worlds.key_b64('a')
    with open(os.path.join(live.ROOT, 'tests/vectors/worlds/modules/script.wasm'), 'rb') as f:
        script = run_worlds.b64(f.read())

    def event(effects=()):
        out = {'state': b'.', 'effects': [{'kind': kind, 'params_cbor': run_worlds.cbor(params)} for kind, params in effects]}
        return {'schema': 'w/Do@1', 'value': {'id': 'a', 'out': run_worlds.b64(run_worlds.cbor(out))}}
    steps = [('POST', '/v1/worlds', {'world_id': 'w-{{$run}}', 'air': run_worlds.AIR, 'modules': {'w/script@1': script}, 'check_state': False}),
             ('POST', world + '/events', event([('w/charge@1', {'amount': 1, 'token': {'$tag': 'literal', '$value': 'x'}}), ('sys/timer.set@1', {'deliver_at_ns': 2**62, 'key': 't'})]))]
    steps += [('GET', world + path, None) for path in (
        '', '/manifest', '/defs', '/defs/defschema/w%2FId@1', '/runtime', '/journal', '/journal/head', '/trace-summary', '/governance', '/state/w%2Fmain@1/cells', '/state/w%2Fmain@1?' + cell,
        '/trace?workflow=w%2Fmain@1&' + cell, '/diagnose?workflow=w%2Fmain@1&' + cell, '/workspace/resolve?workspace=x')]
    steps += [('POST', world + '/receipts', {'intent_hash': '{{intent}}', 'status': 'ok', 'payload': {'code': 1}}), ('POST', world + '/frames', {'intent_hash': '{{intent}}', 'seq': 1, 'kind': 'x', 'payload': {}}),
              ('POST', world + '/governance/propose', {'patch': {'version': '2', 'base_manifest_hash': '{{manifest}}', 'patches': []}, 'description': 'd'}),
              ('POST', world + '/governance/shadow', {'proposal_id': 0}), ('POST', world + '/governance/approve', {'proposal_id': 0, 'decision': 'approve', 'approver': 'a'}),
              ('POST', world + '/governance/apply', {'proposal_id': 0}), ('POST', world + '/checkpoint', {}), ('POST', world + '/fork', {'world_id': 'f-{{$run}}', 'height': 4}),
              ('POST', world + '/compact', {'through': 3}), ('POST', '/v1/cas/blobs', {'data': 'AAAA'}), ('GET', '/v1/worlds', None)]
    steps = [{'request': {'method': m, 'path': p, **({'body': b} if b is not None else {})}} for m, p, b in steps]
    steps[0]['capture'] = {'manifest': '$.manifest_hash'}
    steps[6]['capture'] = {'intent': '$.pending_workflow_receipts[0].intent_hash'}
    return steps


def conversations(face):
    """The steps of each recorded conversation of a face."""
    if face == 'worlds':
        return [worlds_steps()]
    out = []
    for path in files_of(os.path.join(live.ROOT, 'tests', 'vectors', face)):
        with open(path) as f:
            steps = json.load(f)['steps']
        # Conversations that wait for timers would be too slow here.
        if sum(s.get('sleep_s', 0) for s in steps) <= 0.5:
            out.append(steps)
    return out


def fuzz(server, face, seed, seconds):
    """Plays conversations until the time is over, with up to two broken forms before each request. Returns (findings, requests sent)."""
    breaker, line, found, sent = Breaker(seed), Line(server), [], 0
    all_steps = conversations(face)
    until = time.monotonic() + seconds
    while time.monotonic() < until and len(found) < 20:
        env = {'$run': uuid.UUID(int=breaker.dice.getrandbits(128)).hex[:8]}
        for step in breaker.dice.choice(all_steps):
            try:
                right = play.fill(step['request'], env)
            except KeyError:
                break  # an earlier request of the conversation was broken
            requests = [breaker.request(right) for _ in range(breaker.dice.choice((0, 1, 1, 2)))]
            if breaker.dice.random() < 0.9:
                requests.append((right['method'], right['path'], right['raw'].encode() if 'raw' in right else json.dumps(right['body']).encode() if 'body' in right else None, right.get('headers', {})))
            for request in requests:
                try:
                    status, text = line.send(*request)
                except (http.client.HTTPException, OSError) as err:
                    found.append((f'no answer: {err!r}', request, b''))
                    if server.process and server.process.poll() is not None:
                        return found, sent
                    continue
                sent += 1
                wrong = judge(request[0], status, text)
                if wrong:
                    found.append((wrong, request, text))
            try:
                # Values are captured from the unbroken request, which is sent last, if it succeeded.
                for name, where in step.get('capture', {}).items() if status < 300 else ():
                    env[name] = play.dig(json.loads(text), where)
            except (ValueError, KeyError, IndexError, TypeError):
                pass
    return found, sent


def play_face(face, args):
    with live.Server() as server:
        found, sent = fuzz(server, face, args.seed, args.seconds)
        for wrong, request, text in found:
            live.fail(f'{face}: {wrong}\n     {str(request)[:600]}\n     {text[:600]!r}')
        problems = server.stop_and_verify()
        server.keep = bool(args.keep and problems)
        for problem in problems:
            live.fail(f'{face}: {problem}' + (f'\nkept in {server.scratch}' if server.keep else ''))
    print(f'{face}: {sent} requests')


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument('--seed', type=int, default=1)
    args.add_argument('--seconds', type=float, default=5)
    args.add_argument('--keep', action='store_true', help='keep the data folder of a journal that does not verify')
    args.add_argument('faces', nargs='*', default=FACES)
    args = args.parse_args()
    for face in live.shard(args.faces or FACES):
        play_face(face, args)
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
