#!/usr/bin/env python3
"""Limits of process jobs on a real server: never more than allowed at once, also around kill -9; rates; priorities; explain."""
import collections, json, subprocess, sys, threading, time, urllib.request

import live
from live import PAWL, Server, call, check

CONCURRENT = 3
KEYS = ['x', 'y']
STARTED = 600  # before each kill: enough that a fast machine is not done before the kill comes


def definition(id, limit=None, **more):
    step = {'id': 'a', 'name': 'A', 'type': 'SERVICE_TASK', 'jobType': id, 'nextStep': 'e', 'retryCount': 1000}
    if limit:
        step['limit'] = limit
    return {'id': id, 'name': 'N', 'steps': [step, {'id': 'e', 'name': 'E', 'type': 'END'}], **more}


def start(server, id, variables=None, **more):
    status, made = call(server.base, 'POST', '/v1/instances', {'definitionId': id, 'variables': variables or {}, **more})
    assert status == 201, made
    return made


def poll(server, type, most=10, wait_ms=0, lease=300):
    status, answer = call(server.base, 'POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': [type], 'maxJobs': most,
                                                                 'maxWaitMs': wait_ms, 'leaseSeconds': lease})
    assert status == 200, answer
    return answer['jobs'] or []


def finish(server, job):
    return call(server.base, 'POST', f"/v1/jobs/{job['id']}/complete", {'workerId': 'w'})[0]


def job_of(server, instance):
    return call(server.base, 'GET', f"/pawl/v1/processes/instances/{instance['id']}")[1]['tokens'][0]['jobId']


class Load:
    """Workers that hold jobs for a moment. Leases last longer than the test, so a job is held until its result is durable."""

    def __init__(self, server, type):
        self.server, self.type, self.lock = server, type, threading.Lock()
        self.held, self.most, self.done, self.stopping = collections.Counter(), collections.Counter(), set(), False
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(6)]
        for thread in self.threads:
            thread.start()

    def work(self, n):
        turn = n
        while not self.stopping:
            try:
                jobs = poll(self.server, self.type, 4, 200)
            except (OSError, AssertionError):
                time.sleep(0.02)
                continue
            with self.lock:
                for job in jobs:
                    self.held[job['variables']['customer']] += 1
                self.most |= self.held
            time.sleep(0.003)
            for job in jobs:
                turn += 1
                # Given up before the result is sent: another job may be leased as soon as it is durable.
                with self.lock:
                    self.held[job['variables']['customer']] -= 1
                try:
                    if turn % 7 == 0:
                        call(self.server.base, 'POST', f"/v1/jobs/{job['id']}/fail",
                             {'workerId': 'w', 'errorMessage': 'again', 'retryable': True})
                    elif finish(self.server, job) == 204:
                        self.done.add(job['id'])
                except OSError:
                    pass

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def concurrency_holds_around_kills():
    with Server(keep_ports=True) as server:
        call(server.base, 'POST', '/v1/definitions', definition('c', {'key': 'customer', 'concurrent': CONCURRENT}))
        started = 0
        for kill in range(3):
            items = [{'definitionId': 'c', 'variables': {'customer': KEYS[n % 2]}} for n in range(STARTED)]
            answer = call(server.base, 'POST', '/pawl/v1/processes/start-batch', {'items': items, 'brief': True})[1]
            started += answer['succeeded']
            load = Load(server, 'c')
            live.until(lambda: len(load.done) > 3 + 4 * kill, 'some results before the kill')
            server.kill()
            # A lease does not outlive the server, so the workers begin anew.
            load.stop()
            server.start()
            check(f'no more than {CONCURRENT} of a key are leased: {dict(load.most)}', max(load.most.values(), default=0) <= CONCURRENT)
            check(f'the kill came in the middle: {len(load.done)} done', len(load.done) < STARTED)
        load = Load(server, 'c')

        def all_done():
            return call(server.base, 'GET', '/v1/instances?definitionId=c&status=COMPLETED')[1]['total'] == started
        live.until(all_done, 'all instances after the kills: a slot leaked', 25)
        load.stop()
        check(f'the limit is used and kept: {dict(load.most)}', max(load.most.values(), default=0) == CONCURRENT)
        # Every slot is free again: exactly the limit is offered.
        for _ in range(CONCURRENT + 2):
            start(server, 'c', {'customer': 'x'})
        check('all slots are free after the kills', len(poll(server, 'c')) == CONCURRENT)
        for problem in server.stop_and_verify():
            live.fail(problem)


def rates_are_kept():
    with Server() as server:
        for id, rate in (('r20', '20/s'), ('r200', '200/s')):
            call(server.base, 'POST', '/v1/definitions', definition(id, {'rate': rate}))
        for id, rate, seconds in (('r20', 20, 3), ('r200', 200, 2)):
            items = [{'definitionId': id} for _ in range(int(rate * seconds * 1.5))]
            call(server.base, 'POST', '/pawl/v1/processes/start-batch', {'items': items, 'brief': True})
            begin, taken = time.monotonic(), len(poll(server, id, 1000))
            while time.monotonic() - begin < seconds:
                taken += len(poll(server, id, 1000, 50))
            took = time.monotonic() - begin
            check(f'{rate}/s: {taken} jobs in {took:.2f} s', 0.9 * rate * took <= taken <= 1.1 * rate * took + 1)
        for problem in server.stop_and_verify():
            live.fail(problem)


def priorities_and_keys_are_respected():
    with Server() as server:
        call(server.base, 'POST', '/v1/definitions', definition('p', priority='p', fairnessKey='k'))
        for priority, key in ((0, 'a'), (0, 'a'), (0, 'a'), (0, 'b'), (5, 'a'), (-5, 'a'), (9, 'a')):
            start(server, 'p', {'p': priority, 'k': key})
        start(server, 'p', {'p': 1, 'k': 'c'}, priority=7)

        def order():
            return [(job['variables']['p'], job['variables']['k']) for job in poll(server, 'p', 100)]
        wanted = [(9, 'a'), (1, 'c'), (5, 'a'), (0, 'a'), (0, 'b'), (0, 'a'), (0, 'a'), (-5, 'a')]
        got = order()
        check(f'priority first, then the keys in turn: {got}', got == wanted)
        server.kill()
        server.start()
        got = order()
        check(f'the same order after a restart: {got}', got == wanted)


def a_job_is_explained():
    with Server() as server:
        call(server.base, 'POST', '/v1/definitions', definition('x', {'key': 'customer', 'concurrent': 1}))
        first, second = [start(server, 'x', {'customer': 'c'}) for _ in range(2)]
        status, why = call(server.base, 'GET', f'/v1/jobs/{job_of(server, second)}/explain')
        check(f'the second waits for a slot: {why}', status == 200 and why['state'] == 'waiting-for-slot'
              and why['position'] == 1 and why['heldBy'] == [job_of(server, first)])
        said = subprocess.run([PAWL, 'explain', job_of(server, second), '--server', server.base], capture_output=True, text=True)
        check(f'pawl explain: {said.stdout}{said.stderr}', '1 of 1 run, position 1 of 1' in said.stdout and said.returncode == 0)
        poll(server, 'x')
        why = call(server.base, 'GET', f'/v1/jobs/{job_of(server, first)}/explain')[1]
        check(f'the first is leased: {why}', why['state'] == 'leased' and why['workerId'] == 'w')
        metrics = urllib.request.urlopen(f'http://{server.admin}/metrics', timeout=5).read().decode()
        check('the metric counts waiting jobs by definition', 'pawl_limited_jobs{limit="x"} 1' in metrics)


if __name__ == '__main__':
    live.run_parts([concurrency_holds_around_kills, rates_are_kept, priorities_and_keys_are_respected, a_job_is_explained])
    sys.exit(live.report())
