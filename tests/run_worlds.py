#!/usr/bin/env python3
"""Worlds on a real server: HTTP requests to a loopback server, executors, workspaces, and kill -9 between records."""
import base64, hashlib, http.client, http.server, json, os, re, subprocess, sys, threading, time, urllib.parse, urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check


# An encoder for the part of CBOR that these tests need. Members keep the order of the dict.
def head(major, n):
    for info, size in ((None, 24), (24, 1 << 8), (25, 1 << 16), (26, 1 << 32), (27, 1 << 64)):
        if n < size:
            return bytes([major << 5 | (n if info is None else info)]) + (b'' if info is None else n.to_bytes(1 << (info - 24), 'big'))


def cbor(v):
    if v is None: return b'\xf6'
    if isinstance(v, bool): return b'\xf5' if v else b'\xf4'
    if isinstance(v, int): return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, bytes): return head(2, len(v)) + v
    if isinstance(v, str): return head(3, len(v.encode())) + v.encode()
    if isinstance(v, list): return head(4, len(v)) + b''.join(map(cbor, v))
    return head(5, len(v)) + b''.join(cbor(k) + cbor(x) for k, x in v.items())


def b64(data):
    return base64.b64encode(data).decode()


def key_b64(text):
    """The key of a cell as a query parameter: canonical CBOR with its self-describing tag, in base64."""
    return urllib.parse.quote(b64(b'\xd9\xd9\xf7' + cbor(text)))


# A world with one keyed workflow, whose module script.wasm returns the output that its event carries. So a test decides
# what a step does.
AIR = [
    {'$kind': 'defschema', 'name': 'w/Id@1', 'type': {'text': {}}},
    {'$kind': 'defschema', 'name': 'w/State@1', 'type': {'bytes': {}}},
    {'$kind': 'defschema', 'name': 'w/Do@1', 'type': {'record': {'id': {'ref': 'w/Id@1'}, 'out': {'option': {'bytes': {}}}}}},
    {'$kind': 'defschema', 'name': 'w/Event@1', 'type': {'variant': {'Do': {'ref': 'w/Do@1'}, 'Receipt': {'ref': 'sys/EffectReceiptEnvelope@1'},
                                                                     'Rejected': {'ref': 'sys/EffectReceiptRejected@1'}, 'Frame': {'ref': 'sys/EffectStreamFrame@1'}}}},
    {'$kind': 'defschema', 'name': 'w/ChargeParams@1', 'type': {'record': {'amount': {'nat': {}}, 'token': {'ref': 'sys/TextOrSecretRef@1'}}}},
    {'$kind': 'defschema', 'name': 'w/ChargeReceipt@1', 'type': {'record': {'code': {'int': {}}}}},
    {'$kind': 'defsecret', 'name': 'w/token@1', 'binding_id': 'env:WORLD_TOKEN'},
    {'$kind': 'defeffect', 'name': 'w/charge@1', 'params': 'w/ChargeParams@1', 'receipt': 'w/ChargeReceipt@1', 'impl': {'module': 'sys/builtin_effects@1', 'entrypoint': 'charge'}},
    {'$kind': 'defmodule', 'name': 'w/script@1', 'runtime': {'kind': 'wasm', 'artifact': {'kind': 'wasm_module'}}},
    {'$kind': 'defworkflow', 'name': 'w/main@1', 'state': 'w/State@1', 'event': 'w/Event@1', 'key_schema': 'w/Id@1',
     'effects_emitted': ['sys/http.request@1', 'sys/timer.set@1', 'w/charge@1', 'sys/workspace.write_bytes@1', 'sys/workspace.empty_root@1'],
     'impl': {'module': 'w/script@1', 'entrypoint': 'step'}},
    {'$kind': 'manifest', 'air_version': '2',
     'schemas': [{'name': n} for n in ('w/Id@1', 'w/State@1', 'w/Do@1', 'w/Event@1', 'w/ChargeParams@1', 'w/ChargeReceipt@1')],
     'modules': [{'name': 'w/script@1'}], 'workflows': [{'name': 'w/main@1'}], 'effects': [{'name': 'w/charge@1'}], 'secrets': [{'name': 'w/token@1'}],
     'routing': {'subscriptions': [{'event': 'w/Do@1', 'workflow': 'w/main@1', 'key_field': 'id'},
                                   {'event': 'sys/WorkspaceCommit@1', 'workflow': 'sys/Workspace@1', 'key_field': 'workspace'}]}}]


class World:
    """A world on a server, made from AIR."""
    def __init__(self, server, name):
        self.s, self.path = server, f'/v1/worlds/{name}'
        with open(os.path.join(live.ROOT, 'tests/vectors/worlds/modules/script.wasm'), 'rb') as f:
            wasm = b64(f.read())
        # The script's states are bare bytes.
        self.made = live.call(server.base, 'POST', '/v1/worlds', {'world_id': name, 'air': AIR, 'modules': {'w/script@1': wasm}, 'check_state': False})

    def call(self, method, path, body=None):
        return live.call(self.s.base, method, self.path + path, body)

    def tell(self, cell, effects=(), state=b'.'):
        """Sends an event whose step returns exactly this output."""
        out = cbor({'state': state, 'effects': [{'kind': name, 'params_cbor': cbor(params)} for name, params in effects]})
        return self.call('POST', '/events', {'schema': 'w/Do@1', 'value': {'id': cell, 'out': b64(out)}})

    def journal(self, kind=None):
        """All records of the world, or those of one kind."""
        entries, at = [], 0
        while True:
            _, page = self.call('GET', f'/journal?from={at}&limit=1000')
            entries += page['entries']
            if not page['entries']:
                return [e['record'] for e in entries if kind is None or e['kind'] == kind]
            at = page['next_seq']

    def wait_receipts(self, count, seconds=15):
        """Waits until the world has recorded this number of receipts, and returns all of them."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = self.journal('effect_receipt')
            if len(found) >= count:
                return found
            time.sleep(0.05)
        check(f'{count} receipts did not come', False)
        return self.journal('effect_receipt')


class Peer(http.server.BaseHTTPRequestHandler):
    """The HTTP server that worlds call. It records the requests. /slow, and the first request to /hang-once, wait for `hold`."""
    seen, hold = [], threading.Event()
    protocol_version = 'HTTP/1.1'

    def do_GET(self):
        Peer.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
        if self.path == '/slow':
            Peer.hold.wait(20)
        if self.path == '/hang-once' and len([1 for r in Peer.seen if r[1] == '/hang-once']) == 1:
            Peer.hold.wait(20)
            return
        body = b'b' * 3_000_000 if self.path == '/big' else b'hello'
        self.send_response(302 if self.path == '/redirect' else 200)
        if self.path == '/latin':
            self.send_header('X-Name', 'caf\xe9')  # in Latin-1, which is not UTF-8
            self.send_header('x-name', 'tea')
        if self.path == '/redirect':
            self.send_header('Location', '/elsewhere')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def log_message(self, *_):
        pass


def request(url, headers=None):
    return ('sys/http.request@1', {'method': 'GET', 'url': url, 'headers': headers or {}})


def requests_go_out_and_come_back(peer):
    """The effect sys/http.request: answers, bodies in the store, redirects, odd headers, denied addresses and timeouts."""
    port = peer.server_address[1]
    with live.Server('--worlds-http-allow', f'127.0.0.1:{port}', '--worlds-http-timeout', '1s', '--worlds-env-allow', '*:WORLD_TOKEN', env={'WORLD_TOKEN': 't0ken'}) as s:
        w = World(s, 'http')
        here = f'http://127.0.0.1:{port}'
        w.tell('a', [request(here + '/ok', {'X-Word': 'a b'})])
        [ok] = w.wait_receipts(1)
        payload = ok['payload_cbor_json']
        check(f'a request is answered: {ok}', ok['status'] == 'ok' and payload['status'] == 200)
        check('its body is in the store under its hash', payload['body_ref'] == 'sha256:' + hashlib.sha256(b'hello').hexdigest())
        check('and can be read', live.call(s.base, 'GET', '/v1/cas/blobs/' + payload['body_ref'])[1] == 'hello')
        check('with times', payload['timings']['end_ns'] >= payload['timings']['start_ns'] > 0)
        check(f'headers go out: {Peer.seen[-1:]}', Peer.seen[-1][2].get('x-word') == 'a b')
        w.tell('b', [request(here + '/redirect')])
        check('a redirect is an answer, not followed', w.wait_receipts(2)[1]['payload_cbor_json']['status'] == 302)
        check('a redirect was followed', not [r for r in Peer.seen if r[1] == '/elsewhere'])
        w.tell('c', [request(here + '/big')])
        big = w.wait_receipts(3)[2]['payload_cbor_json']
        check('a large body goes to the store', big['body_ref'] == 'sha256:' + hashlib.sha256(b'b' * 3_000_000).hexdigest())
        w.tell('latin', [request(here + '/latin#part')])
        latin = w.wait_receipts(4)[3]
        check(f'a header of other bytes, or twice, is no fault: {latin}', latin['status'] == 'ok' and latin['payload_cbor_json']['headers'].get('x-name') == 'caf\ufffd, tea')
        check(f'a fragment stays here: {Peer.seen[-1]}', Peer.seen[-1][1] == '/latin')
        before = len(Peer.seen)
        for i, url in enumerate((f'http://localhost:{port}/ok', f'http://127.0.0.1:{port + 1}/ok', 'http://10.0.0.1/', 'http://[::1]/', 'file:///etc/passwd', 'http://169.254.169.254/')):
            w.tell(f'denied{i}', [request(url)])
        denied = w.wait_receipts(10)[4:]
        check(f'what is not listed is denied: {[r["status"] for r in denied]}', all(r['status'] == 'error' for r in denied) and len(Peer.seen) == before)
        check(f'its receipt is one of a request: {denied[0]}', all(r['payload_cbor_json']['status'] == 400 for r in denied))
        Peer.hold.clear()
        w.tell('slow', [request(here + '/slow')])
        late = w.wait_receipts(11)[-1]
        check(f'no answer in time is a timeout: {late}', late['status'] == 'timeout' and late['payload_cbor_json']['status'] == 598)
        Peer.hold.set()
        secrets_reach_only_the_executor(s, w)
        wrong = s.stop_and_verify()
        check(str(wrong), not wrong)


def secrets_reach_only_the_executor(s, w):
    """A secret in the parameters of an effect is filled in for the executor and is never written to the journal."""
    w.tell('pay', [('w/charge@1', {'amount': 5, 'token': {'secret': {'alias': 'w/token', 'version': 1}}})])
    _, got = live.call(s.base, 'POST', '/v1/effects/poll', {'effects': ['w/charge@1'], 'wait_ms': 2000})
    [work] = got['work']
    check(f'the executor gets the secret: {work}', work['params']['token'] == 't0ken')
    check('a secret is in the journal', 't0ken' not in json.dumps(w.journal()))
    status, _ = w.call('POST', '/receipts', {'intent_hash': work['intent_hash'], 'status': 'ok', 'payload': {'code': 0}})
    check('a receipt settles', status == 202)
    check('twice is once', w.call('POST', '/receipts', {'intent_hash': work['intent_hash'], 'status': 'ok', 'payload': {'code': 0}})[1]['status'] == 'ignored')


def open_work_is_offered_again(peer):  # case 125
    """After kill -9 the server makes an open request again, fires an open timer, and offers open work to executors again."""
    port = peer.server_address[1]
    Peer.seen.clear()
    Peer.hold.clear()
    with live.Server('--worlds-http-allow', f'127.0.0.1:{port}', '--worlds-env-allow', '*:WORLD_TOKEN', env={'WORLD_TOKEN': 't0ken'}) as s:
        w = World(s, 'again')
        w.tell('a', [request(f'http://127.0.0.1:{port}/hang-once'), ('w/charge@1', {'amount': 1, 'token': {'literal': 'x'}}),
                     ('sys/timer.set@1', {'deliver_at_ns': time.time_ns() + 700_000_000})])
        until = time.monotonic() + 10
        while not Peer.seen and time.monotonic() < until:
            time.sleep(0.02)
        s.kill()
        Peer.hold.set()
        s.start()
        receipts = w.wait_receipts(2)
        check(f'request and timer come back after a restart: {receipts}', len(receipts) == 2 and all(r['status'] == 'ok' for r in receipts))
        _, got = live.call(s.base, 'POST', '/v1/effects/poll', {'effects': ['w/charge@1'], 'wait_ms': 2000, 'limit': 10})
        check('open work is offered again, once', len(got['work']) == 1)
        check('the request was made again', len([r for r in Peer.seen if r[1] == '/hang-once']) == 2)


def workspaces(s):
    """Trees of files by hash: operations, listings, diffs, annotations, versions, and garbage collection."""
    w = World(s, 'files')
    check(f'a world with a route to sys/Workspace@1 loads: {w.made}', w.made[0] == 201)
    status, root = live.call(s.base, 'POST', '/v1/workspace/roots')
    check(f'an empty root: {root}', status == 201)
    roots = '/v1/workspace/roots/'
    status, made = live.call(s.base, 'POST', roots + root['root_hash'] + '/apply', {'operations': [
        {'op': 'write_bytes', 'path': 'docs/a.txt', 'bytes_b64': b64(b'hello')}, {'op': 'write_bytes', 'path': 'run.sh', 'bytes_b64': b64(b'#!'), 'mode': 0o755}]})
    check(f'operations apply: {made}', status == 200)
    first = made['new_root_hash']
    entries = live.call(s.base, 'GET', roots + first + '/entries?scope=subtree')[1]['entries']
    check(f'a subtree is listed: {entries}', [e['path'] for e in entries] == ['docs', 'docs/a.txt', 'run.sh'])
    check('an entry', live.call(s.base, 'GET', roots + first + '/entry?path=docs/a.txt')[1]['kind'] == 'file')
    check('a path that is not there', live.call(s.base, 'GET', roots + first + '/entry?path=nope')[0] == 404)
    check('a range of bytes', live.call(s.base, 'GET', roots + first + '/bytes?path=docs/a.txt&start=1&end=3')[1] == 'el')
    check('a bad path is refused', live.call(s.base, 'POST', roots + first + '/apply', {'operations': [{'op': 'write_bytes', 'path': '../x', 'bytes_b64': ''}]})[0] == 400)
    check('a directory that is not empty stays', live.call(s.base, 'POST', roots + first + '/apply', {'operations': [{'op': 'remove', 'path': 'docs'}]})[0] == 400)
    note = live.call(s.base, 'POST', '/v1/cas/blobs', b'note')[1]['hash']
    second = live.call(s.base, 'POST', roots + first + '/apply', {'operations': [
        {'op': 'remove', 'path': 'run.sh'}, {'op': 'set_annotations', 'path': 'docs/a.txt', 'annotations_patch': {'k': note}}]})[1]['new_root_hash']
    changes = live.call(s.base, 'POST', '/v1/workspace/diffs', {'root_a': first, 'root_b': second})[1]['changes']
    check(f'a diff names what changed: {changes}', [c['path'] for c in changes] == ['docs', 'docs/a.txt', 'run.sh'])
    check('annotations stay with their path', live.call(s.base, 'GET', roots + second + '/annotations?path=docs/a.txt')[1] == {'annotations': {'k': note}})

    def commit(root, expected=None):
        return w.call('POST', '/events', {'schema': 'sys/WorkspaceCommit@1', 'value': {'workspace': 'main', 'expected_head': expected, 'meta': {'root_hash': root, 'owner': 'me', 'created_at': 1}}})

    check('nothing is committed yet', w.call('GET', '/workspace/resolve?workspace=main')[1]['exists'] is False)
    commit(first)
    commit(second, 1)
    commit(first, 1)  # an old head: the step fails
    got = w.call('GET', '/workspace/resolve?workspace=main')[1]
    check(f'the newest version: {got}', (got['head'], got['root_hash']) == (2, second))
    check('an older one', w.call('GET', '/workspace/resolve?workspace=main&version=1')[1]['root_hash'] == first)
    check('a commit on another head fails', [r['error_code'] for r in w.journal('step_failed')] == ['workflow.output_invalid'])
    w.call('POST', '/checkpoint', {})
    live.call(s.base, 'POST', '/v1/cas/gc', {'grace_seconds': 0})
    check('the collector keeps what a version leads to', live.call(s.base, 'GET', roots + second + '/bytes?path=docs/a.txt')[1] == 'hello')
    w.tell('fx', [('sys/workspace.write_bytes@1', {'root_hash': second, 'path': 'b', 'bytes': b'x', 'mode': None})])
    receipt = w.journal('effect_receipt')[-1]
    check(f'a workflow writes to a tree: {receipt}', receipt['status'] == 'ok' and 'new_root_hash' in receipt['payload_cbor_json'])


def commands(s):
    """The commands of `pawl world` and `pawl air`, each on a live world."""
    air = os.path.join(s.scratch, 'air.json')
    with open(air, 'w') as f:
        json.dump(AIR, f)

    def pawl(*words):
        done = subprocess.run([live.PAWL, 'world', *words, '--server', s.http, '--json'], capture_output=True, text=True)
        check(f'pawl world {words}: {done.stdout}{done.stderr}', done.returncode == 0)
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout else {}

    pawl('create', 'cli', '--air', air, '--module', 'w/script@1=' + os.path.join(live.ROOT, 'tests/vectors/worlds/modules/script.wasm'))
    sent = pawl('send', 'cli', 'w/Do@1', json.dumps({'id': 'a', 'out': b64(cbor({'state': cbor(b'kept')}))}))
    check(f'an event is sent: {sent}', sent.get('seq') == 2)
    check('a cell by its key', pawl('state', 'cli', 'w/main@1', '--key', 'a').get('exists') is True)
    check("a cell's timeline", pawl('trace', 'cli', '--workflow', 'w/main@1', '--key', 'a')['journal_window']['from_seq'] == 2)
    check('by the hash of its event', pawl('trace', 'cli', '--event', sent.get('event_hash', ''))['root_event']['seq'] == 2)
    check('by what the event says', pawl('trace', 'cli', '--schema', 'w/Do@1', '--by', 'id', '--value', 'a')['root_event']['seq'] == 2)
    check('a diagnosis', pawl('diagnose', 'cli', '--schema', 'w/Do@1', '--by', 'id', '--value', 'a')['cause'] == 'waiting_event')
    check('cells and records', len(pawl('cells', 'cli', 'w/main@1')['cells']) == 1 and pawl('journal', 'cli')['head'] == 3)
    check('a snapshot and a fork', pawl('snapshot', 'cli')['height'] == 3 and pawl('fork', 'cli', 'cli2')['height'] == 4)

    forked = pawl('fork', 'cli', 'cli3', '--height', '2', '--receipts', 'stub', '--effects', 'live')
    check(f'a fork that lives: {forked}', (forked['height'], forked['effects']) == (2, 'live'))
    for words, said in ((('world', 'fork', 'cli', 'cli4', '--height', '2,"effects":"live"'), 'allowed: a whole number'), (('world', 'create', air), '--air'),
                        (('world', 'create', s.scratch), 'folder'), (('air', 'check', s.scratch), 'folder')):
        done = subprocess.run([live.PAWL, *words, *(['--server', s.http] if words[0] == 'world' else [])], capture_output=True, text=True)
        check(f'pawl {words} says what is wrong: {done}', done.returncode in (1, 2, 3) and said in done.stderr)

    # `pawl air hash` gives the manifest the same hash as the world.
    manifest = live.call(s.base, 'GET', '/v1/worlds/cli/manifest')[1]
    with open(air, 'w') as f:
        json.dump(manifest['manifest'], f)
    shown = subprocess.run([live.PAWL, 'air', 'hash', air], capture_output=True, text=True).stdout
    check(f'pawl air hash names a manifest as the world does: {shown}', shown.split()[0] == manifest['manifest_hash'])
    patch = os.path.join(s.scratch, 'patch.json')
    with open(patch, 'w') as f:
        json.dump({'base_manifest_hash': manifest['manifest_hash'], 'patches': []}, f)
    check('a patch document is proposed as it is', pawl('gov', 'cli', 'propose', patch).get('status') == 'succeeded')
    early = subprocess.run([live.PAWL, 'world', 'gov', 'cli', 'apply', '0', '--server', s.http, '--json'], capture_output=True, text=True)
    check(f'a command that came to nothing fails: {early}', early.returncode == 1 and json.loads(early.stdout)['error']['code'] == 'governance.proposal_state')


def following(s):
    """New records arrive by long poll, by Server-Sent Events and with `pawl world journal --follow`."""
    w = World(s, 'followed')
    status, found = w.call('GET', '/journal/wait?from=0&timeout_ms=1&limit=10')
    check(f'what is there is given at once: {found}', status == 200 and [e['kind'] for e in found['entries']] == ['manifest', 'snapshot'] and not found['timed_out'] and found['next_from'] == 2)
    begin = time.monotonic()
    found = w.call('GET', '/journal/wait?timeout_ms=100')[1]
    check(f'a wait ends with nothing: {found}', found['timed_out'] and found['entries'] == [] and found['next_from'] == 2 and time.monotonic() - begin >= 0.09)
    told = []
    waiting = [threading.Thread(target=lambda q=q: told.append(w.call('GET', '/journal/wait?from=2&timeout_ms=20000' + q)[1])) for q in ('', '&kind=effect_intent&kind=custom')]
    for t in waiting:
        t.start()
    time.sleep(0.1)
    w.tell('a')
    waiting[0].join(5)
    check(f'a wait is woken by a record: {told}', len(told) == 1 and told[0]['entries'][0]['seq'] == 2)
    w.tell('b', [('w/charge@1', {'amount': 1, 'token': {'literal': 'x'}})])
    waiting[1].join(5)
    check(f'records of other kinds do not end a wait: {told[1:]}', len(told) == 2 and [e['kind'] for e in told[1]['entries']] == ['effect_intent'])

    def events(headers, path, count):
        conn = http.client.HTTPConnection(s.http, timeout=10)
        conn.request('GET', w.path + '/journal/stream' + path, headers=headers)
        reply, text = conn.getresponse(), b''
        check(f'a stream begins: {reply.status}', reply.status == 200 and reply.getheader('Content-Type') == 'text/event-stream')
        while text.count(b'event: ') < count:
            text += reply.read1(65536)
        conn.close()
        return text.decode()

    text = events({}, '?from=0&limit=1', 4)
    check(f'records and heads: {text[:300]}', text.startswith('event: journal_record\nid: 0\n') and 'event: world_head\nid: 0\n' in text and '"next_from":1' in text)
    text = events({'Last-Event-ID': '2'}, '', 1)
    check(f'a stream goes on after the last event: {text[:200]}', text.startswith('event: journal_record\nid: 3\n'))
    late = threading.Timer(0.2, lambda: w.tell('c'))
    late.start()
    text = events({}, '?kind=domain_event', 2)
    check(f'a stream without a height begins now: {text[:200]}', '"seq":5' in text and text.count('journal_record') == 1)
    late.join()
    for path in ('/journal/wait?from=x', '/journal/wait?timeout_ms=soon', '/journal/stream?limit=-1'):
        check(f'{path} is refused', w.call('GET', path)[0] == 400)
    check('a world that is not there', live.call(s.base, 'GET', '/v1/worlds/none/journal/wait')[0] == 404)
    follow = subprocess.Popen([live.PAWL, 'world', 'journal', 'followed', '--follow', '--from', '0', '--server', s.http], stdout=subprocess.PIPE, text=True)
    seen = [json.loads(follow.stdout.readline())['seq'] for _ in range(6)]
    w.tell('d')
    seen.append(json.loads(follow.stdout.readline())['seq'])
    follow.kill()
    follow.wait()
    check(f'pawl world journal --follow: {seen}', seen == list(range(7)))
    # Waiting requests do not delay the stop.
    last = threading.Thread(target=lambda: told.append(w.call('GET', '/journal/wait?timeout_ms=60000')[1]))
    last.start()
    time.sleep(0.2)
    begin = time.monotonic()
    check('a server with waiters stops at once', s.stop() == 0 and time.monotonic() - begin < 5)
    last.join(5)
    check(f'and answers them: {told[2:]}', len(told) == 3 and told[2]['timed_out'])


def killed_between_records():
    """Writers and executors run until the server is killed. Acknowledged changes survive, and the journal verifies."""
    said, settled, lost = {}, set(), []
    with live.Server('--worlds-env-allow', '*:WORLD_TOKEN', env={'WORLD_TOKEN': 't0ken'}) as s:
        w = World(s, 'k')
        for round in range(5):
            stop = threading.Event()

            def write(n):
                i = 0
                while not stop.is_set():
                    cell = f'{round}-{n}-{i}'
                    try:
                        status, got = w.tell(cell, [('w/charge@1', {'amount': i, 'token': {'literal': 'x'}})])
                    except OSError:
                        return
                    if status == 202:
                        said[cell] = got['seq']
                    i += 1

            def execute():
                while not stop.is_set():
                    try:
                        _, got = live.call(s.base, 'POST', '/v1/effects/poll', {'effects': ['w/charge@1'], 'wait_ms': 50, 'limit': 5})
                        for work in got['work']:
                            status, _ = w.call('POST', '/receipts', {'intent_hash': work['intent_hash'], 'payload': {'code': 0}})
                            if status == 202:
                                settled.add(work['intent_hash'])
                    except (OSError, ValueError, TypeError):
                        return

            threads = [threading.Thread(target=write, args=(n,)) for n in range(3)] + [threading.Thread(target=execute)]
            for t in threads:
                t.start()
            time.sleep(0.4 + 0.13 * round)
            s.kill()
            stop.set()
            for t in threads:
                t.join()
            s.start()
            if round == 2:
                w.call('POST', '/checkpoint', {})
        records = w.journal()
        by_seq = {e['journal_height']: e for e in w.journal('domain_event')}
        lost += [c for c, seq in said.items() if by_seq.get(seq, {}).get('value_json', {}).get('id') != c]
        check(f'{len(lost)} acknowledged events are lost', not lost)
        answered = {}
        for r in w.journal('effect_receipt'):
            answered[r['intent_id']] = answered.get(r['intent_id'], 0) + 1
        check('an acknowledged receipt is lost or twice', all(answered.get(i) == 1 for i in settled))
        opened = {r['intent_id'] for r in w.journal('effect_intent')}
        offered = []
        while True:
            _, left = live.call(s.base, 'POST', '/v1/effects/poll', {'effects': ['w/charge@1'], 'limit': 1000})
            offered += [x['intent_hash'] for x in left['work']]
            if not left['work']:
                break
        check('what is open is not what is offered, once each', len(offered) == len(set(offered)) and set(offered) == opened - set(answered))
        status, fork = w.call('POST', '/fork', {'world_id': 'k2'})
        check(f'the journal runs again to the same bytes: {fork}', status == 201)
        wrong = s.stop_and_verify()
        check(str(wrong), not wrong)
        print(f'{len(said)} events, {len(settled)} receipts, {len(records)} records over five crashes')


def killed_inside_a_snapshot():
    """The server is killed during a snapshot that takes many turns. After the restart the snapshot continues by itself, while other
    requests read, write, fork and collect garbage."""
    cells, finished_alone = 9000, 0
    # A small cache: nearly all cells are read from the rows again.
    with live.Server('--cell-cache', '1') as s:
        w = World(s, 'snap')
        taken = lambda: len(w.journal('snapshot'))

        def touch(state):
            for at in range(0, cells, 1000):
                batch = [{'schema': 'w/Do@1', 'value': {'id': f'c{i}', 'out': b64(cbor({'state': cbor(f'{state}-{i}')}))}} for i in range(at, at + 1000)]
                check('a batch is taken', w.call('POST', '/events', {'events': batch})[0] == 202)

        def ask(answers):
            try:
                answers.append(w.call('POST', '/checkpoint', {})[0])
            except (OSError, http.client.HTTPException):
                pass

        def durable_seq():
            text = urllib.request.urlopen(f'http://{s.admin}/metrics', timeout=30).read().decode()
            return int(re.search(r'^pawl_journal_seq (\d+)', text, re.M).group(1))

        # The kill comes once the first turn of the snapshot is durable, as the journal's position shows, and a little later in each
        # round. A round whose snapshot was over by then proves nothing, so there are more rounds until two were cut.
        for round in range(12):
            touch(f's{round}')
            seq = durable_seq()
            while seq != (seq := durable_seq()):
                time.sleep(0.05)
            before, answers = taken(), []
            asking = threading.Thread(target=ask, args=(answers,))
            asking.start()
            while durable_seq() == seq and asking.is_alive():
                pass
            time.sleep(0.01 * (round % 4))
            s.kill()
            asking.join()
            s.start()
            if answers:
                check(f'an answered snapshot is there: {answers}', answers == [200] and taken() > before)
                continue
            # It continues without a request.
            until = time.monotonic() + 20
            while taken() == before and time.monotonic() < until:
                if live.call(s.base, 'POST', '/v1/cas/gc', {'grace_seconds': 0})[0] != 200:
                    check('garbage is collected meanwhile', False)
                time.sleep(0.1)
            check('a snapshot that had begun did not go on after the crash', taken() > before)
            finished_alone += 1
            if finished_alone == 2:
                break
        check('no snapshot was cut by a crash', finished_alone > 0)

        touch('last')
        answers = []
        asking = threading.Thread(target=ask, args=(answers,))
        asking.start()
        forks, n = [], 0
        while asking.is_alive():
            n += 1
            check('an event while a snapshot is taken', w.tell(f'extra{n}', state=cbor('x'))[0] == 202)
            check('a trace while a snapshot is taken', w.call('GET', f'/trace?workflow=w/main@1&key_b64={key_b64("c1")}')[0] == 200)
            check('a diagnosis while a snapshot is taken', w.call('GET', f'/diagnose?workflow=w/main@1&key_b64={key_b64("c1")}')[0] == 200)
            check('a state while a snapshot is taken', w.call('GET', f'/state/w/main@1?key_b64={key_b64("c7")}')[0] == 200)
            if n == 2:
                forks.append(w.call('POST', '/fork', {'world_id': 'meanwhile'})[0])
        check(f'a snapshot among other requests: {answers}', answers == [200])
        check(f'a fork while a snapshot is taken: {forks}', all(f == 201 for f in forks))
        check('garbage is collected', live.call(s.base, 'POST', '/v1/cas/gc', {'grace_seconds': 0})[0] == 200)
        status, fork = w.call('POST', '/fork', {'world_id': 'after'})
        check(f'a fork from that snapshot: {fork}', status == 201)
        for i in (0, 1, 4711, cells - 1):
            path = f'/state/w/main@1?key_b64={key_b64(f"c{i}")}'
            here, there = w.call('GET', path)[1], live.call(s.base, 'GET', '/v1/worlds/after' + path)[1]
            check(f'cell c{i} is as it was: {here} {there}', here.get('state_b64') == there.get('state_b64') == b64(cbor(f'last-{i}')))
        wrong = s.stop_and_verify()
        check(str(wrong), not wrong)
        print(f'{finished_alone} snapshots went on after a crash; {n} rounds of requests while one was taken')


def few_cells_in_memory():
    """A workflow keeps at most --workflow-cells clean cells in memory; the others are read from the rows again."""
    refused = subprocess.run([live.PAWL, 'serve', '--data', '/nonexistent', '--workflow-cells', 'many'], capture_output=True, text=True)
    check(f'a setting that is no number is refused: {refused.stderr}', refused.returncode != 0 and 'workflow-cells' in refused.stderr)
    with live.Server('--workflow-cells', '8', '--rows-cache', '1') as s:
        w = World(s, 'few')

        def held():
            listed = w.call('GET', '/state/w/main@1/cells?limit=1000')[1]['cells']  # waits until the rows are applied
            with urllib.request.urlopen(f'http://{s.admin}/metrics') as reply:
                return len(listed), int(re.search(r'^pawl_workflow_cells (\d+)$', reply.read().decode(), re.M).group(1))

        for round in range(3):
            for i in range(100):
                check('an event', w.tell(f'c{i}', state=cbor(f'{round}-{i}'))[0] == 202)
            check(f'8 of 100 cells stay: {held()}', held() == (100, 8))
        for i in range(100):
            state = w.call('GET', f'/state/w/main@1?key_b64={key_b64(f"c{i}")}')[1]
            check(f'c{i} is read again as it was: {state}', state.get('state_b64') == b64(cbor(f'2-{i}')))
        check(f'8 of 100 cells stay: {held()}', held() == (100, 8))
        wrong = s.stop_and_verify()
        check(str(wrong), not wrong)


def every_case_is_named():
    """Every behaviour of the list, 1 to 210, is named by a test."""
    named = set()
    for folder in ('src/faces/worlds', 'src/wasm', 'src/cbor', 'tests'):
        for where, _, files in os.walk(os.path.join(live.ROOT, folder)):
            for name in files:
                if name.endswith('_test.cc') or name == 'run_worlds.py':
                    with open(os.path.join(where, name)) as f:
                        named |= {int(n) for n in re.findall(r'\bcase (\d+)\b', f.read())}
    missing = sorted(set(range(1, 211)) - named)
    check(f'cases without a test: {missing}', not missing)


def workspaces_commands_and_following():
    with live.Server() as s:
        workspaces(s)
        commands(s)
        following(s)


def wasm_engine_is_there():
    with live.Server() as s:
        return World(s, 'probe').tell('a')[0] == 202


def main():
    live.contracts = True
    peer = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Peer)
    threading.Thread(target=peer.serve_forever, daemon=True).start()
    parts = [every_case_is_named]
    if wasm_engine_is_there():
        parts += [killed_inside_a_snapshot, workspaces_commands_and_following, killed_between_records, few_cells_in_memory,
                  ('requests_go_out_and_come_back', lambda: requests_go_out_and_come_back(peer)),
                  ('open_work_is_offered_again', lambda: open_work_is_offered_again(peer))]
    else:
        print('no WASM engine here: the rest is skipped; run scripts/setup-wasm')
    live.run_parts(parts)
    peer.shutdown()
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
