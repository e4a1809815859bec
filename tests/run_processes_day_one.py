#!/usr/bin/env python3
"""What users of other engines expect of processes, on a real server: many callers at the same moment, kill -9, and hostile input.
The journal must verify at the end of each part."""
import http.client, os, shutil, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check

PATH = '/pawl/v1/processes'
END = {'id': 'end', 'name': 'e', 'type': 'END'}


def definition(id, *steps, **more):
    return {'id': id, 'name': id, **more, 'steps': [*steps, END]}


def wait_step(id='w', **more):
    return {'id': id, 'name': id, 'type': 'WAIT', 'nextStep': 'end', **more}


def task(id='t', job_type='j', **more):
    return {'id': id, 'name': id, 'type': 'SERVICE_TASK', 'jobType': job_type, 'nextStep': 'end', **more}


class Caller:
    """Calls one server."""

    def __init__(self, server):
        self.server = server

    def __call__(self, method, path, body=None):
        return live.call(self.server.base, method, path, body)

    def upload(self, document):
        status, got = self('POST', '/v1/definitions', document)
        check(f'upload of {document["id"]}: {got}', status == 201)

    def start(self, id, **more):
        status, got = self('POST', '/v1/instances', {'definitionId': id, **more})
        check(f'start of {id}: {status} {got}', status == 201)
        return got['id']

    def status(self, id):
        return self('GET', f'/v1/instances/{id}')[1].get('status')

    def poll(self, job_type, count=10, wait_ms=0):
        return self('POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': [job_type], 'maxJobs': count, 'maxWaitMs': wait_ms})[1]['jobs'] or []

    def complete(self, job, variables=None):
        return self('POST', f'/v1/jobs/{job}/complete', {'workerId': 'w', 'variables': variables or {}})[0]


def at_once(count, act):
    """Runs act(n) in `count` threads that begin together; returns the results."""
    gate, results = threading.Barrier(count), [None] * count

    def run(n):
        gate.wait()
        results[n] = act(n)
    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def served(run):
    """Runs a part on a server of its own and verifies the journal."""
    def part():
        with live.Server() as server:
            run(Caller(server), server)
            for problem in server.stop_and_verify():
                check(problem, False)
    return run.__name__, part


def one_of_many_starts_has_the_key(call, server):
    call.upload(definition('refuse', wait_step(), businessKey={'unique': 'running'}))
    call.upload(definition('return', wait_step(), businessKey={'unique': 'always', 'conflict': 'return'}))
    for round in range(5):
        body = {'businessKey': f'k{round}'}
        got = at_once(16, lambda n: call('POST', '/v1/instances', {'definitionId': 'refuse', **body}))
        check(f'one start succeeds: {[s for s, _ in got]}', sorted(s for s, _ in got) == [201] + [409] * 15)
        got = at_once(16, lambda n: call('POST', '/v1/instances', {'definitionId': 'return', **body}))
        check(f'one start is new: {[s for s, _ in got]}', sorted(s for s, _ in got) == [200] * 15 + [201])
        check('all show the same instance', len({g['id'] for _, g in got}) == 1)
    server.kill()
    server.start()
    check('a key survives a crash', call('POST', '/v1/instances', {'definitionId': 'refuse', 'businessKey': 'k1'})[0] == 409)
    instance = call('GET', '/v1/instances?definitionId=refuse&businessKey=k1')[1]['items'][0]['id']
    # The end of the instance and new starts race: never two at a time.
    at_once(8, lambda n: call('POST', f'/v1/instances/{instance}/cancel', {}) if n == 0 else call('POST', '/v1/instances', {'definitionId': 'refuse', 'businessKey': 'k1'}))
    _, got = call('GET', '/v1/instances?definitionId=refuse&businessKey=k1')
    check(f'at most one runs: {got}', sum(i['status'] == 'WAITING' for i in got['items']) <= 1)
    for key in ('\0', 'a\0b', 'ü' * 500, '"', '\\'):
        status, _ = call('POST', '/v1/instances', {'definitionId': 'refuse', 'businessKey': key})
        check(f'start with key {key!r}: {status}', status == 201)
        status, _ = call('POST', '/v1/instances', {'definitionId': 'refuse', 'businessKey': key})
        check(f'second start with key {key!r}: {status}', status == 409)
    check('a key that is too long', call('POST', '/v1/instances', {'definitionId': 'refuse', 'businessKey': 'x' * 1025})[0] == 400)


def an_attempt_ends_in_time_also_after_a_crash(call, server):
    call.upload(definition('slow', task(attemptTimeout='PT1S', retryCount=1)))
    instance = call.start('slow')
    time.sleep(1.3)
    jobs = call.poll('j')
    check('the time in the queue does not count', len(jobs) == 1)
    server.kill()
    server.start()
    # The lease is gone with the server, the timer is not: it offers a new attempt.
    live.until(lambda: 'AttemptTimedOut' in str(call('GET', f'{PATH}/instances/{instance}/events')[1]), 'the attempt times out')
    again = call.poll('j', wait_ms=2000)
    check(f'a new attempt: {again}', len(again) == 1 and again[0]['id'] != jobs[0]['id'] and again[0]['retriesRemaining'] == 0)
    check('a late result', call.complete(jobs[0]['id']) == 204)
    check('changes nothing', call.status(instance) == 'ACTIVE')
    # The result of the last attempt and its timer race: exactly one of them counts.
    time.sleep(0.95)
    at_once(4, lambda n: call.complete(again[0]['id']))
    live.until(lambda: call.status(instance) in ('COMPLETED', 'FAILED'), 'one of them wins')
    _, got = call('GET', f'/v1/instances/{instance}/history')
    check(f'the step ended once: {got}', [r['StepID'] for r in got['items']].count('t') == 1)
    # Many workers take many timed jobs at the same moment.
    call.upload(definition('many', task(job_type='m', attemptTimeout='PT1H')))
    for _ in range(40):
        call.start('many')
    taken = [j['id'] for jobs in at_once(8, lambda n: call.poll('m', 10)) for j in jobs]
    check(f'each job is handed out once: {len(taken)}', len(taken) == len(set(taken)) == 40)
    check('all results are taken', set(at_once(8, lambda n: {call.complete(j) for j in taken[n::8]} == {204})) == {True})
    check('all have ended', call('GET', '/v1/instances?definitionId=many&status=COMPLETED')[1]['total'] == 40)


def no_signal_is_lost_or_taken_twice(call, server):
    """Senders and instances of the same keys race, and the server is killed in between: afterwards every acknowledged signal was taken
    once or is kept."""
    call.upload(definition('s', task(job_type='before', nextStep='w'), wait_step(signal='go', correlationKey='key')))
    sent, lost = set(), threading.Event()

    def send(n):
        try:
            for i in range(40):
                status, got = call('POST', f'{PATH}/signals', {'name': 'go', 'correlationKey': str(i % 4), 'variables': {'got': f'{n}-{i}'}})
                if status in (200, 202):
                    sent.add(f'{n}-{i}')
        except (OSError, http.client.HTTPException):
            lost.set()

    def work(n):
        try:
            for i in range(30):
                call('POST', '/v1/instances', {'definitionId': 's', 'variables': {'key': i % 4}})
                for job in call.poll('before', 5):
                    call.complete(job['id'])
        except (OSError, http.client.HTTPException):
            lost.set()

    def kill():
        end = time.monotonic() + 20
        while len(sent) < 20 and time.monotonic() < end:  # of 120: most are still to come
            time.sleep(0.001)
        server.kill()
    killer = threading.Thread(target=kill)
    killer.start()
    at_once(6, lambda n: send(n) if n % 2 else work(n))
    killer.join()
    check('the server died under load', lost.is_set())
    server.start()
    at_once(6, lambda n: send(n + 10) if n % 2 else work(n))
    kept = [s['variables']['got'] for s in call('GET', f'{PATH}/signals?pageSize=1000')[1]['items']]
    _, done = call('GET', '/v1/instances?definitionId=s&status=COMPLETED&pageSize=1000')
    taken = [i['variables']['got'] for i in done['items'] or []]
    check(f'each signal is taken or kept once: {len(kept)} kept, {len(taken)} taken', len(set(kept + taken)) == len(kept + taken))
    check(f'no acknowledged signal is lost: {sent - set(kept + taken)}', sent <= set(kept + taken))
    check('some were taken', taken)
    _, waiting = call('GET', '/v1/instances?definitionId=s&status=WAITING&pageSize=1000')
    held = {s['correlationKey'] for s in call('GET', f'{PATH}/signals?pageSize=1000')[1]['items']}
    check('nobody waits while a signal for it is kept', not any(str(i['variables']['key']) in held for i in waiting['items'] or []))


def a_signal_and_a_timer_race(call, server):
    """Exactly one of them continues the WAIT. A signal that came too late is kept."""
    late = {'type': 'TIMER', 'duration': 'PT0.5S', 'interrupting': True, 'targetStepId': 'late'}
    call.upload(definition('r', wait_step(signal='race', boundaryEvents=[late]), {'id': 'late', 'name': 'l', 'type': 'TRANSFORMATION', 'transformations': {'late': True}, 'nextStep': 'end'}))
    ids = [call.start('r', businessKey=f'r{n}') for n in range(12)]
    time.sleep(0.42)
    got = at_once(12, lambda n: (time.sleep(n * 0.01), call('POST', f'{PATH}/signals', {'name': 'race', 'correlationKey': f'r{n}'}))[1])
    for n, id in enumerate(ids):
        live.until(lambda: call.status(id) == 'COMPLETED', f'{id} ends')
        late = call('GET', f'/v1/instances/{id}')[1]['variables'].get('late', False)
        check(f'signal {got[n]} and timer {late}', (got[n][0] == 202) == late)


def hostile_signals_are_refused(call, server):
    for body in (b'{', b'[]', b'"x"', {'name': 7}, {'name': 'n' * 513}, {'name': 'a', 'ttl': 'P1000000000Y'}, {'name': 'a', 'ttl': '-PT1S'}, {'name': 'a', 'variables': 1},
                 {'name': 'a', 'correlationKey': {}}, {'name': 'a', 'ttl': ['P1D']}):
        status, got = call('POST', f'{PATH}/signals', body)
        check(f'{body} is refused: {status} {got}', status == 400 and got.get('reason'))
    status, _ = call('POST', f'{PATH}/signals', {'name': 'a', 'variables': {'x': 'y' * (4 << 20)}})
    check(f'variables that are too large: {status}', status == 413)
    for path in ('/signals/none', '/signals/' + 'x' * 600, '/signals/%00'):
        check(f'DELETE {path}', call('DELETE', PATH + path)[0] in (404, 400))
    check('nothing is kept', call('GET', f'{PATH}/signals')[1]['items'] == [])


def ended_instances_go_also_after_a_crash(call, server):
    call.upload(definition('gone', wait_step(), retention={'completed': 'PT1.5S'}))
    call.upload(definition('stay', wait_step()))
    ids = [call.start('gone', businessKey='g') for _ in range(20)] + [call.start('stay')]
    for id in ids[:15] + ids[20:]:
        call('POST', f'/v1/instances/{id}/signals/w', {})
    server.kill()
    server.start()
    live.until(lambda: call('GET', '/v1/instances?definitionId=gone')[1]['total'] == 5, 'fifteen are gone')
    for id in ids[:15]:
        check(f'{id} is gone', call('GET', f'/v1/instances/{id}')[0] == call('GET', f'/v1/instances/{id}/history')[0] == 404)
    check('the others stay', {call.status(id) for id in ids[15:20]} == {'WAITING'} and call.status(ids[20]) == 'COMPLETED')
    check('by business key', call('GET', '/v1/instances?businessKey=g')[1]['total'] == 5)
    # Deletes of one instance race with each other and with lists: one wins, no list fails.
    got = at_once(8, lambda n: call('DELETE', f'/v1/instances/{ids[20]}')[0] if n % 2 else call('GET', '/v1/instances')[0])
    check(f'one delete wins: {got}', sorted(got[1::2]) == [200, 404, 404, 404] and set(got[::2]) == {200})
    check('a running one cannot be deleted', call('DELETE', f'/v1/instances/{ids[15]}')[0] == 409)
    for id in ('none', '%00', 'x' * 5000, '..'):
        check(f'delete of {id[:9]}', call('DELETE', f'/v1/instances/{id}')[0] in (400, 404, 414))
    # The rows are rebuilt from the journal as they were.
    before = call('GET', '/v1/instances')[1]
    server.stop()
    shutil.rmtree(os.path.join(server.folder, 'rows'), ignore_errors=True)
    server.start()
    check('the same after the rows were made again', call('GET', '/v1/instances')[1] == before)
    check('the counts too', call('GET', f'{PATH}/definitions')[1]['items'][0]['instances'] == {'WAITING': 5})


def calls_survive_crashes(call, server):
    """Trees of calls under load with kill -9: afterwards every parent has ended as its child did, and each CALL has started one child."""
    call.upload(definition('child', task(job_type='leaf')))
    call.upload(definition('parent', {'id': 'c', 'name': 'c', 'type': 'CALL', 'nextStep': 'end', 'call': {'workflowId': 'child'}}))
    started, cancelled, died = [], set(), 0

    def load(n):
        try:
            for i in range(60):
                status, got = call('POST', '/v1/instances', {'definitionId': 'parent', 'variables': {'k': f'{n}-{i}'}})
                if status == 201:
                    started.append(got['id'])
                for job in call.poll('leaf', 3):
                    call.complete(job['id'], {'done': True})
                if i % 5 == 4 and started:
                    id = started[len(started) // 2]
                    if call('POST', f'/v1/instances/{id}/cancel', {})[0] == 200:
                        cancelled.add(id)
        except (OSError, http.client.HTTPException):
            pass
    for round in range(3):
        killer = threading.Timer(0.3 + 0.1 * round, server.kill)
        killer.start()
        at_once(4, load)
        killer.join()
        server.start()

    def drained():
        for job in call.poll('leaf', 100):
            call.complete(job['id'], {'done': True})
        return call('GET', '/v1/instances?status=ACTIVE')[1]['total'] == 0
    live.until(drained, 'everything ends')
    check('enough was started', len(started) > 20)
    for id in started:
        _, got = call('GET', f'/v1/instances/{id}')
        _, children = call('GET', f'{PATH}/instances?parentInstanceId={id}&limit=10')
        items = children['items']
        if id in cancelled:
            check(f'{id} was cancelled and so is its child: {items}', got['status'] == 'CANCELLED' and all(c['status'] in ('CANCELLED', 'COMPLETED') for c in items) and len(items) <= 1)
        else:
            check(f'{id} ended with its child: {got} {items}', got['status'] == 'COMPLETED' and got['variables'].get('done') and [c['status'] for c in items] == ['COMPLETED'])


def the_end_of_a_child_and_a_cancel_race(call, server):
    call.upload(definition('child', wait_step()))
    call.upload(definition('parent', {'id': 'c', 'name': 'c', 'type': 'CALL', 'nextStep': 'end', 'call': {'workflowId': 'child'}}))
    for _ in range(15):
        id = call.start('parent')
        live.until(lambda: call('GET', f'{PATH}/instances?parentInstanceId={id}')[1]['items'], 'the child starts')
        child = call('GET', f'{PATH}/instances?parentInstanceId={id}')[1]['items'][0]['id']
        got = at_once(2, lambda n: call('POST', f'/v1/instances/{id}/cancel', {})[0] if n else call('POST', f'/v1/instances/{child}/signals/w', {})[0])
        live.until(lambda: call.status(id) in ('COMPLETED', 'CANCELLED') and call.status(child) in ('COMPLETED', 'CANCELLED'), 'both end')
        check(f'parent {call.status(id)} after {got}', (got[1] == 200) == (call.status(id) == 'CANCELLED'))
        check(f'child {call.status(child)} after {got}', (got[0] == 204) == (call.status(child) == 'COMPLETED'))


def each_step_is_undone_once_also_after_crashes(call, server):
    """Sagas under load with kill -9 and repeated results: every step that was done is undone once, in reverse."""
    def book(id, next):
        return {'id': id, 'name': id, 'type': 'SERVICE_TASK', 'jobType': 'book', 'nextStep': next, 'compensation': {'jobType': 'undo', 'variables': {'id': id}, 'retryCount': 5}}
    call.upload(definition('trip', book('a', 'b'), book('b', 'c'), book('c', 'pay'), task('pay', 'pay'), onFailure='compensate'))
    started = []

    def load(n):
        try:
            for i in range(30):
                status, got = call('POST', '/v1/instances', {'definitionId': 'trip'})
                if status == 201:
                    started.append(got['id'])
                for job in call.poll('book', 5) + call.poll('undo', 5):
                    for _ in range(2):  # each result is reported twice
                        call.complete(job['id'], {})
                for job in call.poll('pay', 5):
                    call('POST', f'/v1/jobs/{job["id"]}/fail', {'workerId': 'w', 'errorMessage': 'no money', 'retryable': False})
        except (OSError, http.client.HTTPException):
            pass
    for round in range(3):
        killer = threading.Timer(0.4 + 0.1 * round, server.kill)
        killer.start()
        at_once(4, load)
        killer.join()
        server.start()

    def drained():
        for job in call.poll('book', 100) + call.poll('undo', 100):
            call.complete(job['id'])
        for job in call.poll('pay', 100):
            call('POST', f'/v1/jobs/{job["id"]}/fail', {'workerId': 'w', 'errorMessage': 'no money', 'retryable': False})
        return call('GET', '/v1/instances?status=ACTIVE')[1]['total'] == 0
    live.until(drained, 'everything is undone')
    check('enough was started', len(started) > 10)
    want = [('a', 'COMPLETED'), ('b', 'COMPLETED'), ('c', 'COMPLETED'), ('pay', 'FAILED'), ('c.compensation', 'COMPLETED'), ('b.compensation', 'COMPLETED'), ('a.compensation', 'COMPLETED')]
    for id in started:
        _, got = call('GET', f'/v1/instances/{id}')
        _, past = call('GET', f'/v1/instances/{id}/history')
        rows = [(r['StepID'], r['Status']) for r in past['items']]
        check(f'{id}: {got.get("failureReason")} {rows}', rows == want and got['failureReason'] == 'Compensated: no money')


PARTS = (each_step_is_undone_once_also_after_crashes, calls_survive_crashes, the_end_of_a_child_and_a_cancel_race, ended_instances_go_also_after_a_crash, one_of_many_starts_has_the_key, an_attempt_ends_in_time_also_after_a_crash, no_signal_is_lost_or_taken_twice, a_signal_and_a_timer_race, hostile_signals_are_refused)


def main():
    live.contracts = True
    live.run_parts([served(part) for part in PARTS])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
