#!/usr/bin/env python3
"""Kills a server with kill -9 under load, five times. Acknowledged changes survive, open jobs are offered again, due timers fire once."""
import http.client, os, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live

TASKS = {'id': 'crash', 'name': 'c', 'steps': [
    {'id': 'a', 'name': 'a', 'type': 'SERVICE_TASK', 'jobType': 'crash-a', 'nextStep': 'b'},
    {'id': 'b', 'name': 'b', 'type': 'SERVICE_TASK', 'jobType': 'crash-b', 'nextStep': 'end'},
    {'id': 'end', 'name': 'e', 'type': 'END'}]}
RETRIES = {'id': 'retries', 'name': 'r', 'steps': [
    {'id': 'r', 'name': 'r', 'type': 'SERVICE_TASK', 'jobType': 'crash-r', 'retryCount': 2, 'nextStep': 'end'},
    {'id': 'end', 'name': 'e', 'type': 'END'}]}
FAILURE = {'workerId': 'w', 'errorMessage': 'boom', 'retryable': True}
# The timer does not interrupt and starts step n, so the history shows how often it fired.
TIMERS = {'id': 'timers', 'name': 't', 'steps': [
    {'id': 'w', 'name': 'w', 'type': 'WAIT', 'nextStep': 'end',
     'boundaryEvents': [{'type': 'TIMER', 'duration': 'PT1S', 'interrupting': False, 'targetStepId': 'n'}]},
    {'id': 'n', 'name': 'n', 'type': 'SERVICE_TASK', 'jobType': 'crash-never'},
    {'id': 'end', 'name': 'e', 'type': 'END'}]}


class Load:
    """Threads that start instances and complete jobs until the server dies, and record what was acknowledged."""

    def __init__(self, base):
        self.base, self.started, self.completed, self.timers, self.failed = base, set(), {}, set(), {}
        self.threads = [threading.Thread(target=work, daemon=True) for work in [self.start, self.start, self.complete, self.complete, self.fail]]
        for t in self.threads:
            t.start()

    def forever(self, step):
        try:
            while True:
                step()
        except (OSError, http.client.HTTPException):
            pass

    def start(self):
        def step():
            status, got = live.call(self.base, 'POST', '/v1/instances', {'definitionId': 'crash'})
            if status == 201:
                self.started.add(got['id'])
            status, got = live.call(self.base, 'POST', '/v1/instances', {'definitionId': 'timers'})
            if status == 201:
                self.timers.add(got['id'])
        self.forever(step)

    def complete(self):
        def step():
            _, got = live.call(self.base, 'POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': ['crash-a', 'crash-b'], 'maxJobs': 5, 'maxWaitMs': 100})
            for job in got['jobs'] or []:
                status, _ = live.call(self.base, 'POST', f'/v1/jobs/{job["id"]}/complete', {'workerId': 'w', 'variables': {job['stepId']: 1}})
                if status == 204:
                    self.completed[job['id']] = (job['instanceId'], job['stepId'])
        self.forever(step)

    def fail(self):
        """Fails the first attempt of each job, and reports each failure twice."""
        def step():
            live.call(self.base, 'POST', '/v1/instances', {'definitionId': 'retries'})
            _, got = live.call(self.base, 'POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': ['crash-r'], 'maxJobs': 5})
            for job in got['jobs'] or []:
                for _ in range(2 if job['retriesRemaining'] == 2 else 0):
                    status, _ = live.call(self.base, 'POST', f'/v1/jobs/{job["id"]}/fail', FAILURE)
                    if status == 204:
                        self.failed[job['id']] = job['instanceId']
        self.forever(step)

    def join(self):
        for t in self.threads:
            t.join(30)


def check(base, load, problems):
    """Every acknowledged start and completion exists after the restart."""
    for instance in load.started:
        status, got = live.call(base, 'GET', f'/v1/instances/{instance}')
        if status != 200:
            problems.append(f'a start that was acknowledged is lost: {instance}')
    for instance, step in load.completed.values():
        _, got = live.call(base, 'GET', f'/v1/instances/{instance}')
        if step not in got['variables']:
            problems.append(f'a completion that was acknowledged is lost: {instance} {step}')


def check_attempts(base, failed, problems):
    """A failure costs one retry, however often it is reported, also when it is reported again after a crash."""
    for job in failed:
        status, _ = live.call(base, 'POST', f'/v1/jobs/{job}/fail', FAILURE)
        if status != 204:
            problems.append(f'a repeated failure of {job} is answered with {status}')
    instances = set(failed.values())
    while True:
        _, got = live.call(base, 'POST', '/v1/jobs/poll', {'workerId': 'd', 'jobTypes': ['crash-r'], 'maxJobs': 100})
        for job in got['jobs'] or []:
            if job['retriesRemaining'] != 1 and job['instanceId'] in instances or job['id'] in failed:
                problems.append(f'after one failure: {job}')
        if not got['jobs']:
            break
    _, lost = live.call(base, 'GET', '/v1/instances?definitionId=retries&status=FAILED')
    if lost['total']:
        problems.append(f'{lost["total"]} instances failed with a retry left')


def drain(base):
    """Completes all open jobs; every one must be offered again."""
    while True:
        _, got = live.call(base, 'POST', '/v1/jobs/poll', {'workerId': 'd', 'jobTypes': ['crash-a', 'crash-b'], 'maxJobs': 100, 'maxWaitMs': 300})
        if not got['jobs']:
            return
        for job in got['jobs']:
            live.call(base, 'POST', f'/v1/jobs/{job["id"]}/complete', {'workerId': 'd', 'variables': {job['stepId']: 1}})


def main():
    problems, started, timers, failed = [], 0, set(), {}
    with live.Server() as s:
        for d in (TASKS, TIMERS, RETRIES):
            live.call(s.base, 'POST', '/v1/definitions', d)
        for round in range(5):
            load = Load(s.base)
            time.sleep(0.6 + 0.1 * round)
            s.kill()
            load.join()
            s.start()
            check(s.base, load, problems)
            started += len(load.started)
            timers |= load.timers
            failed |= load.failed
        check_attempts(s.base, failed, problems)
        drain(s.base)
        _, left = live.call(s.base, 'GET', '/v1/instances?definitionId=crash&status=ACTIVE')
        if left['total']:
            problems.append(f'{left["total"]} instances have an open job that nobody was offered')
        time.sleep(1.5)
        for instance in timers:
            _, got = live.call(s.base, 'GET', f'/v1/instances/{instance}/history')
            fired = [row['StepID'] for row in got['items']].count('n')
            if fired != 1:
                problems.append(f'the timer of {instance} fired {fired} times')
        problems += s.stop_and_verify()
    if not failed:
        problems.append('no job was failed')
    if not started:
        problems.append('nothing was started')
    return live.report(f'{started} starts and {len(timers)} timers over five crashes', problems)


if __name__ == '__main__':
    sys.exit(main())
