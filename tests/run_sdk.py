#!/usr/bin/env python3
"""The client libraries against a real server: Python, Node and C++ workers, clients and compute members.

Arguments: words that a check's name must contain. The C++ checks need sdk_check and the examples in PAWL_BUILD and
are skipped without them.
"""
import contextlib, json, os, re, signal, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import BUILD, ROOT

SDK = os.path.join(ROOT, 'sdk', 'python')
TESTS = os.path.join(ROOT, 'tests', 'sdk')
CHECK = os.path.join(BUILD, 'sdk_check')
ENV = {**os.environ, 'PYTHONPATH': SDK}
# Far below the lease of 30 s, so that a job that waits for its lease to expire fails the test.
SOON_S = 15

sys.path.insert(0, SDK)


class Engine(live.Server):
    """A server that keeps its ports when it restarts, with a client of the Python library."""

    def __init__(self, *flags, env=None, credentials=None):
        super().__init__(*flags, env=env, keep_ports=True)
        self.credentials, self.client = credentials, None

    def start(self, wait_s=60):
        from pawl import Client, Credentials
        super().start(wait_s)
        self.url = self.base
        if self.client is None:
            self.client = Client(self.url, Credentials(self.url, *self.credentials)) if self.credentials else Client(self.url)
        return self


def grpc_of(engine):
    return ('https://' if engine.url.startswith('https://') else '') + engine.grpc


WORKERS = {
    'py': lambda e, record: [sys.executable, os.path.join(TESTS, 'worker.py'), e.url, grpc_of(e), record],
    'js': lambda e, record: ['node', os.path.join(TESTS, 'worker.mjs'), e.url, grpc_of(e), record],
    'cc': lambda e, record: [CHECK, 'worker', e.url, grpc_of(e), record],
    # Nothing listens on that port, so the worker polls over HTTP.
    'cc-poll': lambda e, record: [CHECK, 'worker', e.url, '127.0.0.1:1', record],
}
MEMBERS = {
    'py': lambda e, tag: [sys.executable, os.path.join(TESTS, 'member.py'), grpc_of(e), tag],
    'cc': lambda e, tag: [CHECK, 'member', grpc_of(e), tag],
}


def task(id, job_type, next_step, **more):
    return {'id': id, 'name': id, 'type': 'SERVICE_TASK', 'jobType': job_type, 'nextStep': next_step, **more}


def flow(id, *steps):
    """A definition with these steps and an END named `end`."""
    return {'id': id, 'name': id, 'steps': [*steps, {'id': 'end', 'name': 'end', 'type': 'END'}]}


def deploy(client, lang):
    """The definitions that the checks of one language use. Their job types begin with the language, so workers do not share jobs."""
    client.deploy(flow(f'{lang}-retried', task('a', f'{lang}-flaky', 'end', retryCount=3)))
    client.deploy(flow(f'{lang}-hopeless', task('a', f'{lang}-final', 'end', retryCount=3)))
    client.deploy(flow(f'{lang}-odd', task('a', f'{lang}-odd', 'end', retryCount=3)))
    client.deploy(flow(f'{lang}-huge', task('a', f'{lang}-huge', 'end', retryCount=3)))
    client.deploy(flow(f'{lang}-slow', task('a', f'{lang}-slow', 'b'), task('b', f'{lang}-slow', 'end')))
    client.deploy(flow(f'{lang}-one', task('a', f'{lang}-slow', 'end')))
    client.deploy(flow(f'{lang}-people', {'id': 'approve', 'name': 'approve', 'type': 'USER_TASK', 'nextStep': 'paid'},
                       {'id': 'paid', 'name': 'paid', 'type': 'WAIT', 'nextStep': 'end'}))


@contextlib.contextmanager
def running(command, stop_s=30):
    """Runs a program that must exit with 0 at SIGTERM."""
    process = subprocess.Popen(command, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = []
    reader = threading.Thread(target=lambda: said.append(process.stdout.read()))
    reader.start()
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        code = process.wait(stop_s)
        assert code == 0, f'{command[:2]} ended with {code}'
    except BaseException:
        process.kill()
        process.wait()
        reader.join(5)
        print(''.join(said)[-2000:])
        raise
    finally:
        process.stdout.close() if not reader.is_alive() else reader.join(5)


def lines_of(record):
    with open(record) as f:
        return [line.split() for line in f]


# ------------------------------------------------------------------ workers

def attempts_are_counted(engine, lang, start):
    """A job succeeds after two failed attempts. A final failure and an invalid result end the instance at once."""
    c = engine.client
    with running(start(engine, os.devnull)):
        retried, hopeless, odd = (c.start(f'{lang}-{name}').id for name in ('retried', 'hopeless', 'odd'))
        done = c.wait(retried, SOON_S)
        assert (done.status, done.variables) == ('COMPLETED', {'retriesLeft': 1}), done
        failed = c.wait(hopeless, SOON_S)
        assert failed.status == 'FAILED' and 'no further attempt helps' in failed.failure_reason, failed
        assert c.wait(odd, SOON_S).status == 'FAILED'
        if lang != 'cc':  # C++ has a unit test for this
            refused = c.wait(c.start(f'{lang}-huge').id, SOON_S)
            assert refused.status == 'FAILED' and 'the result was refused' in refused.failure_reason, refused


def many_at_once(engine, lang, start):
    c = engine.client
    with running(start(engine, os.devnull)):
        ids = [item['instance']['id'] for item in c.start_batch({'definitionId': f'{lang}-slow', 'variables': {'ms': 5}} for _ in range(100))]
        until = time.monotonic() + 60
        for id in ids:
            done = c.wait(id, max(1, until - time.monotonic()))
            assert done.status == 'COMPLETED' and {'a', 'b'} <= set(done.variables), done


def survives_kill_9(engine, lang, start):
    """The server is killed while handlers run and starts again. Every instance completes soon."""
    c = engine.client
    with running(start(engine, os.devnull)):
        ids = [c.start(f'{lang}-slow', {'ms': 400}).id for _ in range(12)]
        time.sleep(0.6)
        engine.kill()
        time.sleep(0.5)  # handlers finish while the server is down
        engine.start()
        for id in ids:
            done = c.wait(id, SOON_S)
            assert done.status == 'COMPLETED' and {'a', 'b'} <= set(done.variables), done


def drains_at_sigterm(engine, lang, start):
    """At SIGTERM a worker finishes and reports the jobs it has begun. The others go to the next worker without waiting for a lease."""
    c = engine.client
    with tempfile.NamedTemporaryFile(prefix='pawl-record-') as record:
        with running(start(engine, record.name)):
            ids = [c.start(f'{lang}-one', {'ms': 700}).id for _ in range(12)]
            until = time.monotonic() + 20
            while len(lines_of(record.name)) < 4 and time.monotonic() < until:
                time.sleep(0.05)
            time.sleep(0.2)
        lines = lines_of(record.name)
        begun, ended = ({id for word, id, _ in lines if word == want} for want in ('begin', 'end'))
        assert begun and begun == ended, lines
        done = {id for id in ids if c.get(id).finished}
        assert done == begun, f'begun {sorted(begun)}, finished {sorted(done)}'
        assert len(done) < len(ids), 'it did everything: nothing was drained'
        with running(start(engine, record.name)):
            began = time.monotonic()
            for id in ids:
                assert c.wait(id, SOON_S).status == 'COMPLETED'
            assert time.monotonic() - began < SOON_S
        once = [line for line in lines_of(record.name) if line[0] == 'begin']
        assert len(once) == len(ids), f'{len(once)} jobs were begun for {len(ids)}'


# ------------------------------------------------------------------ clients

# The results that the client of every language must have; client.mjs and check.cc print theirs as JSON.
EXPECTED = {'same': True, 'late': True, 'tasks': ['approve'], 'done': ['COMPLETED', True, 5], 'history': ['approve', 'paid', 'end'],
            'cancelled': 'CANCELLED', 'missing': True}


def python_client(engine):
    import pawl
    c = engine.client
    one = c.start('py-people', {'n': 1}, business_key='py-key', idempotency_key='py-once')
    same = c.start('py-people', {'n': 1}, business_key='py-key', idempotency_key='py-once').id == one.id
    late = missing = False
    try:
        c.wait(one.id, 0.1)
    except pawl.TimedOut:
        late = True
    try:
        c.get('01M7AAAAAAAAAAAAAAAAAAAAAA')
    except pawl.NotFound as err:
        missing = err.status == 404
    tasks = [t['stepId'] for t in c.tasks(limit=1000) if t['instanceId'] == one.id]
    c.complete_task(one.id, 'approve', {'approved': True}, user='ann')
    c.signal(one.id, 'paid', {'amount': 5})
    done = c.wait(one.id)
    cancelled = c.cancel(c.start('py-people').id, 'changed my mind')
    got = {'same': same, 'late': late, 'tasks': tasks, 'done': [done.status, done.variables['approved'], done.variables['amount']],
           'history': [s['StepID'] for s in c.history(one.id)], 'cancelled': cancelled.status, 'missing': missing}
    assert got == EXPECTED, got
    assert [i.id for i in c.find_by_business_key('py-key')] == [one.id]
    assert [s['status'] for s in c.start_batch([{'definitionId': 'py-people'}, {'definitionId': 'no-such'}])] == [201, 404]
    assert len(list(c.search(definitionId='py-people', limit=2))) == 2
    assert len(c.events(one.id)) >= 3
    try:
        c.deploy({'id': 'x', 'name': 'x', 'steps': []})
        raise AssertionError('an empty definition was taken')
    except pawl.Invalid as err:
        assert 'steps' in err.reason


def node_client(engine):
    done = subprocess.run(['node', os.path.join(TESTS, 'client.mjs'), engine.url, 'js'], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {**EXPECTED, 'found': True, 'batch': [201, 404], 'untyped': []}, done.stdout


def cc_client(engine):
    done = subprocess.run([CHECK, 'client', engine.http, 'cc'], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == EXPECTED, done.stdout


def a_client_waits_out_a_restart(engine):
    """A start that is requested while the server is down happens once, when it is back."""
    c = engine.client
    before = len(list(c.search(definitionId='py-people')))
    engine.kill()
    started = []
    asking = threading.Thread(target=lambda: started.append(c.start('py-people')))
    asking.start()
    time.sleep(0.5)
    engine.start()
    asking.join(30)
    assert started and len(list(c.search(definitionId='py-people'))) == before + 1


# ------------------------------------------------------------------ members

class Model:
    """One model whose transitions call a member by its tag."""

    def __init__(self, engine, lang):
        self.engine, self.name, self.tag = engine, f'm-{lang}-{time.time_ns()}', f'tag-{lang}'
        self.call('POST', f'/model/import/JSON/SAMPLE_DATA/{self.name}/1', self.data())
        self.call('PUT', f'/model/{self.name}/1/lock')
        manual = lambda name, *processors: {'name': name, 'next': 'B', 'manual': True, 'processors': [self.processor(p) for p in processors]}
        good = {'type': 'function', 'function': {'name': 'is-good', 'config': {'attachEntity': True, 'calculationNodesTags': self.tag}}}
        states = {'A': [manual('go', 'mark'), manual('slowly', 'slow'), manual('child', 'child'), manual('undo', 'child', 'reject'),
                        {'name': 'auto', 'next': 'GOOD', 'manual': False, 'criterion': good}], 'B': [], 'GOOD': []}
        self.call('POST', f'/model/{self.name}/1/workflow/import', {'importMode': 'REPLACE', 'workflows': [
            {'version': '1', 'name': 'w', 'initialState': 'A', 'active': True, 'states': {s: {'transitions': t} for s, t in states.items()}}]})

    def processor(self, name):
        return {'type': 'EXTERNAL', 'name': name, 'executionMode': 'SYNC',
                'config': {'attachEntity': True, 'calculationNodesTags': self.tag, 'responseTimeoutMs': 10000}}

    def data(self, **more):
        return {'name': 'n', 'good': False, 'marked': False, 'child': 'none', **more}

    def call(self, method, path, body=None):
        return self.engine.client.http.call(method, '/api' + path, body)

    def create(self, **more):
        """Creates an entity. Creation evaluates the criterion, so the client retries 503 until the member has joined."""
        return self.call('POST', f'/entity/JSON/{self.name}/1', self.data(**more))[0]['entityIds'][0]

    def fire(self, id, transition):
        self.call('PUT', f'/entity/JSON/{id}/{transition}', self.data())
        return self.get(id)

    def get(self, id):
        entity = self.call('GET', f'/entity/{id}')
        return entity['meta']['state'], entity['data'], entity['meta']

    def count(self):
        return self.call('GET', f'/entity/stats/{self.name}/1')['count']


def member_answers(engine, lang, start):
    import pawl
    m = Model(engine, lang)
    with running(start(engine, m.tag)):
        assert m.get(m.create(good=True))[0] == 'GOOD'
        state, data, _ = m.fire(m.create(), 'go')
        assert (state, data['marked']) == ('B', True)
        state, data, meta = m.fire(m.create(), 'child')
        assert state == 'B' and m.get(data['child'])[2]['transactionId'] == meta['transactionId']
        before, entity = m.count(), m.create()
        try:
            m.fire(entity, 'undo')
            raise AssertionError('a rejected transition was made')
        except pawl.Refused as err:
            assert 'after all, no' in err.reason, err
        assert m.get(entity)[0] == 'A' and m.count() == before + 1


def member_stays_joined(engine, lang, start):
    """The member stays joined for longer than the keep-alive timeout, and over a kill -9."""
    m = Model(engine, lang)
    with running(start(engine, m.tag)):
        first, second = m.create(), m.create()
        time.sleep(4)
        assert m.fire(first, 'go')[0] == 'B'
        engine.kill()
        engine.start()
        assert m.fire(second, 'go')[0] == 'B'


def member_drains(engine, lang, start):
    """A call that runs when the member is told to stop is still answered."""
    m = Model(engine, lang)
    entity = []
    with running(start(engine, m.tag)):
        id = m.create()
        caller = threading.Thread(target=lambda: entity.append(m.fire(id, 'slowly')))
        caller.start()
        time.sleep(0.4)
    caller.join()
    assert entity and entity[0][0] == 'B', entity


def member_says_when(engine, lang, start):
    """The schedule function of a member sets when a transition is due, or refuses the write."""
    import pawl
    call, model, tag = lambda method, path, body=None: engine.client.http.call(method, '/api' + path, body), f'when-{lang}', f'when-{lang}'
    call('POST', f'/model/import/JSON/SAMPLE_DATA/{model}/1', {'ms': 1})
    call('PUT', f'/model/{model}/1/lock')
    function = {'name': 'soon', 'resultKind': 'Schedule', 'calculationNodesTags': tag}
    call('POST', f'/model/{model}/1/workflow/import', {'workflows': [{'version': '1', 'name': 'w', 'initialState': 'A', 'states': {
        'A': {'transitions': [{'name': 'later', 'next': 'B', 'schedule': {'function': function}}]}, 'B': {}}}]})
    with running(start(engine, tag)):
        id = call('POST', f'/entity/JSON/{model}/1', {'ms': 100})[0]['entityIds'][0]
        until = time.monotonic() + 10
        while call('GET', f'/entity/{id}')['meta']['state'] != 'B':
            assert time.monotonic() < until, 'the transition did not fire'
            time.sleep(0.05)
        try:
            call('POST', f'/entity/JSON/{model}/1', {'ms': -1})
            raise AssertionError('a refused schedule was armed')
        except pawl.Refused as err:
            assert 'it is too late' in err.reason, err
        assert call('GET', f'/entity/stats/{model}/1')['count'] == 1


# ------------------------------------------------------------------ tokens and TLS

@contextlib.contextmanager
def secured():
    """A server with TLS that requires a token; programs started inside know the certificate and the client's secret."""
    client, secret = 'boot', 'first secret'
    with tempfile.TemporaryDirectory(prefix='pawl-tls-') as folder:
        key, certificate = live.make_certificate(folder)
        os.environ['SSL_CERT_FILE'] = certificate
        ours = {'SSL_CERT_FILE': certificate, 'NODE_EXTRA_CA_CERTS': certificate, 'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH': certificate,
                'PAWL_CLIENT_ID': client, 'PAWL_CLIENT_SECRET': secret}
        try:
            with Engine('--auth', 'jwt', '--jwt-expiry', '2s', '--tls-certificate', certificate, '--tls-key', key, env={
                    'PAWL_JWT_KEY_FILE': key, 'PAWL_BOOTSTRAP_CLIENT_ID': client, 'PAWL_BOOTSTRAP_CLIENT_SECRET': secret},
                    credentials=(client, secret)) as engine:
                ours['PAWL_URL'] = engine.url
                ENV.update(ours)
                yield engine
        finally:
            del os.environ['SSL_CERT_FILE']
            for name in ours:
                ENV.pop(name, None)


def works_with_token_and_tls(name):
    with secured() as engine:
        lang = name.split('-')[0]
        deploy(engine.client, lang)
        attempts_are_counted(engine, lang, WORKERS[name])
        if name in MEMBERS:
            member_answers(engine, name, MEMBERS[name])


def an_unknown_certificate_is_refused(have_cc):
    import pawl
    with secured() as engine:
        strict = pawl.Client(engine.url, patience_s=0)
        certificate = os.environ.pop('SSL_CERT_FILE')
        try:
            strict.get('x')
            raise AssertionError('Python trusted an unknown certificate')
        except pawl.Unavailable as err:
            assert 'CERTIFICATE' in str(err).upper(), err
        finally:
            os.environ['SSL_CERT_FILE'] = certificate
        if have_cc:
            done = subprocess.run([os.path.join(BUILD, 'example_worker'), engine.url, '127.0.0.1:1'], capture_output=True, text=True, timeout=90,
                                  env={**os.environ, 'SSL_CERT_FILE': '/dev/null'})
            assert done.returncode != 0 and 'certificate' in done.stderr, done.stderr


# ------------------------------------------------------------------ examples and guides

def snippets(engine, page, folder):
    """Writes the files that a guide shows into the folder, with the addresses of this server."""
    with open(os.path.join(ROOT, 'docs', 'guide', page)) as f:
        text = f.read()
    for name, body in re.findall(r'```(?:python|js)\n(?:#|//) file: (\S+)\n(.*?)```', text, re.S):
        with open(os.path.join(folder, name), 'w') as f:
            f.write(body.replace('127.0.0.1:8080', engine.http).replace('127.0.0.1:9090', engine.grpc))


def says(word, *command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENV)
    assert done.returncode == 0 and word in done.stdout, f'{command[-1]}: {done.stdout}{done.stderr}'


def guides(engine):
    """The snippets of the guides, as a reader would run them."""
    ENV['PAWL_BINARY'] = live.PAWL
    with tempfile.TemporaryDirectory(prefix='pawl-guide-') as folder:
        os.makedirs(os.path.join(folder, 'node_modules'))
        os.symlink(os.path.join(ROOT, 'sdk', 'typescript'), os.path.join(folder, 'node_modules', 'pawl'))
        for page in ('workers.md', 'members.md'):
            snippets(engine, page, folder)
        at = lambda name: os.path.join(folder, name)
        with running([sys.executable, at('worker.py')]):
            says('COMPLETED', sys.executable, at('start.py'))
        with running(['node', at('worker.mjs')]):
            says('COMPLETED', 'node', at('start.mjs'))
        says('COMPLETED', sys.executable, at('test_order.py'))
        with running([sys.executable, at('member.py')]):
            says('APPROVED True', sys.executable, at('approve.py'))


def example(engine, *command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENV)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'COMPLETED' in done.stdout or ('APPROVED' in done.stdout and '"notified":' in done.stdout and 'true' in done.stdout), done.stdout


def checks(engine, have_cc):
    langs = ['py', 'js'] + (['cc', 'cc-poll'] if have_cc else [])
    for name in langs:
        for check in (attempts_are_counted, many_at_once, survives_kill_9, drains_at_sigterm):
            yield f'{name} worker {check.__name__}', lambda check=check, name=name: check(engine, name.split('-')[0], WORKERS[name])
    yield 'py client', lambda: python_client(engine)
    yield 'js client', lambda: node_client(engine)
    if have_cc:
        yield 'cc client', lambda: cc_client(engine)
    yield 'py client waits out a restart', lambda: a_client_waits_out_a_restart(engine)
    for name in ['py'] + (['cc'] if have_cc else []):
        for check in (member_answers, member_says_when, member_stays_joined, member_drains):
            yield f'{name} {check.__name__}', lambda check=check, name=name: check(engine, name, MEMBERS[name])
    for name in langs:
        yield f'{name} works with token and TLS', lambda name=name: works_with_token_and_tls(name)
    yield 'an unknown certificate is refused', lambda: an_unknown_certificate_is_refused(have_cc)
    yield 'guides', lambda: guides(engine)
    python = os.path.join(SDK, 'examples')
    yield 'py example worker', lambda: example(engine, sys.executable, os.path.join(python, 'worker.py'), engine.url)
    yield 'py example prize', lambda: example(engine, sys.executable, os.path.join(python, 'prize.py'), engine.url, engine.grpc)
    yield 'js example worker', lambda: example(engine, 'node', os.path.join(ROOT, 'sdk', 'typescript', 'examples', 'worker.mjs'), engine.url)
    for name in ('worker', 'member'):
        program = os.path.join(BUILD, f'example_{name}')
        if os.path.exists(program):
            yield f'cc example {name}', lambda program=program: example(engine, program, engine.http, engine.grpc)


def with_a_live_server(engine, check):
    """Runs one check; a check that left the server dead does not fail the next one."""
    if engine.process.poll() is not None:
        engine.start()
    check()


def main():
    live.need_grpc()
    have_cc = os.path.exists(CHECK)
    if not have_cc:
        print(f'SKIP the C++ checks: no {CHECK}')
    # The keep-alive is short so that a test can wait for it.
    with Engine(env={'CYODA_KEEPALIVE_INTERVAL': '1s', 'CYODA_KEEPALIVE_TIMEOUT': '3s'}) as engine:
        for lang in ('py', 'js', 'cc'):
            deploy(engine.client, lang)
        live.run_parts([(name, lambda check=check: with_a_live_server(engine, check)) for name, check in checks(engine, have_cc)])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
