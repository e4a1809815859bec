#!/usr/bin/env python3
"""Runs random definitions and random work on a real server and on the model in model_processes.py. Every answer, state, variable and
history must agree, also after restarts, and the journal must verify.

--seed N plays that seed only, --seconds S plays seeds from there on until the time is up."""
import argparse, calendar, datetime, os, random, re, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, model_definitions, model_processes
from model_day_one import DayOne
from model_operators import Operators
from model_races import Races
from model_wire import Wire, as_doubles, as_grpc, micros, prepare
from model_processes import FINAL, same

JOB_TYPES = ['red', 'green', 'blue']
NEAR_S = 0.15   # No call is made this close to a timer, because the order of the two would be unknown.
AFTER_S = 0.15  # By then a due timer has fired.


def due_after(start, duration):
    """The due time of a timer that was set at `start` with an ISO 8601 duration."""
    y, mo, w, d, h, mi, s = re.fullmatch(r'P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?', duration).groups()
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=start)
    months = at.year * 12 + at.month - 1 + int(y or 0) * 12 + int(mo or 0)
    at = at.replace(year=months // 12, month=months % 12 + 1, day=min(at.day, calendar.monthrange(months // 12, months % 12 + 1)[1]))
    at += datetime.timedelta(weeks=int(w or 0), days=int(d or 0), hours=int(h or 0), minutes=int(mi or 0), seconds=float(s or 0))
    return round((at - datetime.datetime(1970, 1, 1)) / datetime.timedelta(microseconds=1))


def differences(model, got, history):
    """The differences between the server's answer and the model, in words; an empty list when they agree."""
    want = {'definitionId': model.definition.id, 'definitionVersion': model.definition.version, 'status': model.status, 'currentStepIds': model.current(),
            'variables': model.variables, 'businessKey': model.business_key or None, 'nextInstanceId': model.next and model.next.id,
            'previousInstanceId': model.previous and model.previous.id, 'paused': model.paused or None}
    found = [f'{k}: server {got.get(k)!r}, model {v!r}' for k, v in want.items() if not same(got.get(k), v)]
    if ('completedAt' in got) != (model.status in FINAL):
        found.append(f'completedAt {got.get("completedAt")} of a {model.status} instance')
    if not all(w in got.get('failureReason', '') for w in model.reason or ()) or ('failureReason' in got) != (model.reason is not None):
        found.append(f'failureReason: server {got.get("failureReason")!r}, model {model.reason!r}')
    rows = [(r['StepID'], r['StepType'], r['AttemptNumber'], r['Status']) for r in history]
    mine = [(e.step, e.type, e.attempt, e.status) for e in model.history]
    if rows != mine:
        found.append(f'history: server {rows}, model {mine}')
    for row, execution in zip(history, model.history):
        if not all(w in (row['FailureReason'] or '') for w in execution.words) or (row['EndedAt'] is None) != (execution.status == 'RUNNING'):
            found.append(f'execution of {execution.step}: {row}, model {execution.words}')
    return found


def wrong_timers(model, shown):
    """Compares the timers that the server has armed with those of the model. Rounding may differ by 2 us, or 1 ms of the time left."""
    mine = sorted((t.token.step['id'], t.index, t.due, t.left and t.left // 1000) for t in model.timers())
    theirs = sorted((token['stepId'], t['index'], micros(t['dueAt']) if 'dueAt' in t else None, t.get('remainingMs')) for token in shown['tokens'] for t in token.get('timers', []))
    def near(a, b):
        return a[:2] == b[:2] and (a[2] is None) == (b[2] is None) and abs((a[2] or 0) - (b[2] or 0)) <= 2 and abs((a[3] or 0) - (b[3] or 0)) <= 1
    return [] if len(mine) == len(theirs) and all(map(near, mine, theirs)) else [f'timers: server {theirs}, model {mine}']


class Play(Operators, Races, DayOne):
    """Plays one seed: a few definitions, some dozen instances, and random calls in random order."""

    def __init__(self, server, seed, problems):
        self.server, self.seed, self.problems = server, seed, problems
        self.rng, self.wire = random.Random(seed), Wire(server)
        self.eyes = random.Random(seed)  # a generator of its own: how often the state is compared depends on time, the calls must not
        # lost: instances whose state the model no longer knows, because they differed once or a timer crossed a call.
        self.engine, self.lost, self.asked = model_processes.Engine(), set(), 0
        self.types = [f'{t}-{seed}' for t in JOB_TYPES]
        self.remembered = []  # (instance, event, what was shown then)
        self.polled = []  # jobs that were handed out, settled or not

    differences = staticmethod(differences)

    def problem(self, text):
        self.problems.append(f'seed {self.seed}: {text}')

    def expect(self, what, got, want):
        self.asked += 1
        if got != want:
            self.problem(f'{what}: server {got}, model {want}')

    # -- Definitions and starts.

    def upload(self, id, chain=None):
        document, expressions = model_definitions.valid(self.rng, id, self.types, chain)
        document['metadata'] = {'z': 1, 'a': [{'empty': {}}, None, 2.5], 'm': ''}
        if self.rng.random() < 0.3 and not any(s.get('retryBackoff') or 'autoStartNextWorkflow' in s for s in document['steps']):
            document = model_definitions.in_map_order(document)
            status, got = self.wire.upload(document)
            status, version = (201, got.version) if status == 204 else (status, got)
        else:
            status, got = self.wire.rest('POST', '/v1/definitions', document)
            version = got.get('version')
        if status != 201:
            return self.problem(f'upload refused: {got}\n{document}')
        made = self.engine.upload(document, expressions)
        self.expect(f'version of {id}', version, made.version)
        self.expect(f'{id} read back', self.wire.rest('GET', f'/v1/definitions/{id}')[1], {'version': version, **model_definitions.without_empty(document)})
        return made

    def broken(self):
        """One answer names every broken rule with its step, and nothing is stored."""
        document, wanted = model_definitions.broken(self.rng, f'broken-{self.seed}')
        for path in ('/v1/definitions', '/pawl/v1/processes/validate'):
            status, got = self.wire.rest('POST', path, document)
            self.expect(f'{path} of {document}', (status, got.get('error')), (400, 'bad-request'))
            lines = got.get('reason', '').split('\n')
            lines = lines[1:] if len(lines) > 1 else lines
            for words in wanted:
                if not any(all(w in line for w in words) for line in lines):
                    self.problem(f'{path} does not say {words}: {lines}')
        self.expect('a refused definition', self.wire.rest('GET', f'/v1/definitions/broken-{self.seed}')[0], 404)

    def start(self):
        definition = self.rng.choice([v for versions in self.engine.definitions.values() for v in versions])
        variables, key = model_definitions.Expressions(self.rng).variables(), self.rng.choice([None, None, '', 'key-1'])
        body = {'definitionId': definition.id, 'variables': variables, 'definitionVersion': definition.version, 'businessKey': key}
        way = self.rng.choice(['rest', 'rest', 'batch', 'grpc'])
        if way == 'grpc':
            variables = as_doubles(variables)
            status, got = self.wire.ask('StartInstance', definition_id=definition.id, definition_version=definition.version, variables=variables, business_key=key or '')
            status, got = (201, self.wire.rest('GET', f'/v1/instances/{got.instance.id}')[1]) if status == 204 else (status, got)
        else:
            status, got = self.wire.batch('start-batch', body) if way == 'batch' else self.wire.rest('POST', '/v1/instances', body)
            got = got['instance'] if way == 'batch' and status == 201 else got
        if status != 201:
            return self.problem(f'start: {status} {got}')
        instance = self.engine.start(definition, variables, key)
        instance.id = got['id']
        if not instance.timers() and not same((got['status'], got['currentStepIds'], got['variables']), (instance.status, instance.current(), instance.variables)):
            self.problem(f'start of {instance.id}: server {got}, model {instance.status} {instance.current()} {instance.variables}')
        self.sync(instance)

    # -- Agreement.

    def sync(self, instance):
        """Fires in the model the timers that fired on the server, then compares the instance and those chained to it. Waits while a timer
        is near, because nobody can tell whether it has fired yet."""
        if instance in self.lost:
            return
        while True:
            status, got = self.wire.rest('GET', f'/pawl/v1/processes/instances/{instance.id}')
            _, past = self.wire.rest('GET', f'/v1/instances/{instance.id}/history')
            if status != 200:
                self.lost.add(instance)
                return self.problem(f'{instance.id} is gone: {status}')
            for row, execution in zip(past['items'], instance.history):
                execution.id, execution.started = row['ID'], micros(row['StartedAt'])
            self.time_timers(instance, got)
            now, next = time.time(), self.next_timer(instance)
            if next and next[0] < now - AFTER_S:
                instance.fire(next[1])
            elif next and next[0] < now + NEAR_S:
                time.sleep(next[0] + AFTER_S - now + 0.01)
            else:
                break
        if instance.next and not instance.next.id:
            instance.next.id = got.get('nextInstanceId')
        found = differences(instance, got, past['items']) + wrong_timers(instance, got)
        if self.eyes.random() < 0.1:
            found += [f'gRPC {theirs}, REST {ours}' for theirs, ours in zip(self.wire.shown(instance.id), as_grpc(got, past['items'])) if theirs != ours]
        self.asked += 1
        if found:
            self.lost.add(instance)
            self.problem(f'{instance.id} of {instance.definition.id}: ' + '; '.join(found) + f'\n    {instance.definition.document}')
        if instance.next and instance.next.id:
            self.sync(instance.next)

    def next_timer(self, instance):
        """(when in seconds, timer): the one that is due first."""
        due = [(t.due / 1e6, n, t) for n, t in enumerate(instance.timers()) if t.due is not None]
        return (lambda d: (d[0], d[2]))(min(due)) if due and not instance.quiet() else None

    def time_timers(self, instance, shown):
        """A timer is due its duration after its step began. While the instance does not run, the remaining time stays the same."""
        updated = micros(shown['updatedAt'])
        for timer in instance.timers():
            if timer.due is None and timer.left is None and timer.token.execution.started:
                timer.due = due_after(timer.token.execution.started, timer.event['duration'])
            if instance.quiet() and timer.left is None and timer.due is not None:
                timer.left, timer.due = max(0, timer.due - updated), None
            elif not instance.quiet() and timer.left is not None:
                timer.left, timer.due = None, updated + timer.left

    def calm(self):
        """Waits until no timer is near, so that the order of the next call and every timer is certain."""
        while True:
            near = [i for i in self.engine.instances if i.id and i not in self.lost and (n := self.next_timer(i)) and n[0] < time.time() + NEAR_S]
            if not near:
                return
            for instance in near:
                self.sync(instance)

    def crossed(self, began):
        """A slow machine let a timer fall into the call: the order of the two is unknown."""
        late = [i for i in self.engine.instances if i not in self.lost and (n := self.next_timer(i)) and began < n[0] < time.time() + 0.02]
        self.lost.update(late)
        return late

    # -- Work.

    def step(self):
        self.calm()
        began = time.time()
        actions = [(self.start, 3), (self.poll, 6), (self.complete, 8), (self.complete_many, 1), (self.fail, 2), (self.task, 5), (self.signal, 5), (self.cancel, 0.3), (self.nonsense, 2), (self.operate, 6), (self.race, 2), (self.broken, 1), (self.day_one, 6)]
        self.rng.choices([a for a, _ in actions], [w for _, w in actions])[0]()
        self.crossed(began)

    def some_instance(self):
        """A random instance, mostly one that has not ended; the others test the refusals."""
        known = [i for i in self.engine.instances if i.id and i not in self.lost]
        living = [i for i in known if i.live()]
        return self.rng.choice(living if living and self.rng.random() < 0.85 else known) if known else None

    def poll(self):
        """Polls for jobs. The server offers the oldest jobs, fairly between types, with the variables of the time when each was created."""
        way, count, kinds = self.rng.choice(['rest', 'grpc']), self.rng.randint(1, 5), self.rng.sample(self.types, self.rng.choice([1, 1, 2, 3]))
        lost = {e.id for i in self.lost for e in i.history}
        lease = self.rng.choice([1, 30, 30, 30])
        while any(abs(j.free_at - time.time()) < 0.1 for j in self.engine.open_jobs()):
            time.sleep(0.02)  # a lease or a backoff is about to end: poll before or after that moment
        began = time.time()
        open = sorted((j for j in self.engine.open_jobs() if j.type in kinds and j.free_at < began), key=lambda j: (j.token.execution.started or 0, j.token.execution.id or ''))
        got = self.wire.poll(way, kinds, 100 if self.lost else count, lease)
        slow = any(began < j.free_at < time.time() for j in self.engine.open_jobs())
        self.asked += 1
        by_execution = {j.token.execution.id: j for j in open}
        if not self.lost and not slow:
            taken = {k: [j.token.execution.started for j in open if j.type == k] for k in kinds}
            theirs = {k: [by_execution[g[1]].token.execution.started for g in got if g[1] in by_execution and by_execution[g[1]].type == k] for k in kinds}
            left = [k for k in kinds if len(theirs[k]) < len(taken[k])]
            fair = all(len(theirs[k]) + 1 >= len(theirs[other]) for k in left for other in kinds)
            if len(got) != min(count, len(open)) or not fair or any(theirs[k] != taken[k][:len(theirs[k])] for k in kinds):
                self.problem(f'{way} poll of {count} {kinds}: server {[g[1:3] for g in got]}, model {taken}')
        for id, execution, step, retries, variables, until in got:
            if job := by_execution.get(execution):
                job.id, job.free_at, job.leased = id, until / 1e6, True
                self.polled.append(job)
                want = as_doubles(job.variables) if way == 'grpc' else job.variables
                if execution not in lost and (step != job.token.step['id'] or retries != job.retries or not same(variables, want)):
                    self.problem(f'{way} job {id}: server {step} {retries} {variables}, model {job.token.step["id"]} {job.retries} {want}')

    def some_job(self):
        """A job that was leased before, mostly one that is still open."""
        jobs = [j for j in self.polled if self.owner(j) not in self.lost]
        fresh = [j for j in jobs if j in self.owner(j).jobs()]
        return self.rng.choice(fresh if fresh and self.rng.random() < 0.9 else jobs) if jobs else None

    def owner(self, job):
        return next(i for i in self.engine.instances if any(e is job.token.execution for e in i.history))

    def complete(self):
        if job := self.some_job():
            way, result = self.rng.choice(['rest', 'grpc', 'batch']), model_definitions.Expressions(self.rng).result()
            status = self.wire.complete(way, job.id, result)
            self.expect(f'{way} complete of {job.id}', status, self.owner(job).complete_job(job, result))
            self.sync(self.owner(job))

    def fail(self):
        if job := self.some_job():
            way, retryable = self.rng.choice(['rest', 'grpc', 'batch']), self.rng.random() < 0.8
            status = self.wire.fail(way, job.id, 'went wrong', retryable)
            self.expect(f'{way} fail of {job.id}', status, self.owner(job).fail_job(job, 'went wrong', retryable))
            again = job.token.job
            if again and again.wait_s:
                _, shown = self.wire.rest('GET', f'/pawl/v1/processes/instances/{self.owner(job).id}')
                again.free_at, again.wait_s = micros(shown['updatedAt']) / 1e6 + again.wait_s, 0
            self.sync(self.owner(job))

    def complete_many(self):
        """A batch handles its items in order; each has its own outcome."""
        jobs = [j for j in self.polled if self.owner(j) not in self.lost]
        if not jobs:
            return
        items, want, touched = [], [], []
        for _ in range(self.rng.randint(2, 6)):
            job, result = self.rng.choice(jobs), model_definitions.Expressions(self.rng).result()
            kind = self.rng.random()
            if kind < 0.1:
                items.append({'jobId': '01NOSUCHTHING0000000000001', 'workerId': 'w'})
                want.append(404)
            elif kind < 0.3:
                items.append({'jobId': job.id, 'workerId': 'w', 'errorMessage': 'in a batch', 'retryable': False})
                want.append(self.owner(job).fail_job(job, 'in a batch', False))
            else:
                items.append({'jobId': job.id, 'workerId': 'w', 'variables': result})
                want.append(self.owner(job).complete_job(job, result))
            touched.append(self.owner(job))
        _, got = self.wire.rest('POST', '/pawl/v1/processes/complete-batch', {'items': items})
        self.expect(f'batch {items}', ([i['status'] for i in got['items']], got['succeeded'], got['failed']), (want, want.count(204), want.count(404)))
        for instance in dict.fromkeys(touched):
            self.sync(instance)

    def place(self, instance, type):
        """A step of this type where the instance has a token; sometimes any other step, or one that does not exist."""
        here = [t.step['id'] for t in instance.tokens if t.step['type'] == type]
        return self.rng.choice(here if here and self.rng.random() < 0.85 else list(instance.definition.steps) + ['nowhere'])

    def task(self):
        if instance := self.some_instance():
            way, step, result = self.rng.choice(['rest', 'grpc']), self.place(instance, 'USER_TASK'), model_definitions.Expressions(self.rng).result()
            self.expect(f'{way} task {step} of {instance.id}', self.wire.task(way, instance.id, step, result), instance.complete_task(step, result))
            self.sync(instance)

    def signal(self):
        if instance := self.some_instance():
            way, step, result = self.rng.choice(['rest', 'grpc']), self.place(instance, 'WAIT'), model_definitions.Expressions(self.rng).result()
            self.expect(f'{way} signal {step} of {instance.id}', self.wire.signal(way, instance.id, step, result), instance.signal(step, result))
            self.sync(instance)

    def cancel(self):
        if instance := self.some_instance():
            status, _ = self.wire.rest('POST', f'/v1/instances/{instance.id}/cancel', {'reason': 'no more'})
            self.expect(f'cancel of {instance.id}', status, instance.cancel('no more'))
            self.sync(instance)

    def nonsense(self):
        """Unknown ids and invalid requests give an error and change nothing."""
        gone, rest = '01NOSUCHTHING0000000000000', self.wire.rest
        instance = self.some_instance()
        id = instance.id if instance else gone
        calls = [('GET', f'/v1/instances/{gone}', None, 404), ('POST', f'/v1/jobs/{gone}/complete', {'workerId': 'w'}, 404),
                 ('POST', f'/v1/jobs/{gone}/fail', {'workerId': 'w', 'errorMessage': 'e', 'retryable': True}, 404),
                 ('POST', f'/v1/instances/{gone}/signals/x', {}, 404), ('POST', f'/v1/instances/{gone}/user-tasks/x/complete', {}, 404),
                 ('POST', f'/v1/instances/{gone}/cancel', {}, 404), ('POST', '/v1/instances', {'definitionId': 'nosuch'}, 404),
                 ('POST', f'/v1/instances/{id}/signals/x', b'[1]', 400 if instance else 404), ('POST', f'/v1/instances/{id}/user-tasks/x/complete', b'{', 400),
                 ('POST', '/v1/jobs/poll', {'workerId': '', 'jobTypes': ['x']}, 400), ('POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': []}, 400)]
        method, path, body, want = self.rng.choice(calls)
        self.expect(f'{method} {path}', rest(method, path, body)[0], want)
        if instance:
            self.sync(instance)

    def restart(self, kill):
        """Stops or kills the server, starts it again and compares every instance."""
        self.server.kill() if kill else self.server.stop()
        self.server.start()
        self.wire.open()
        for job in self.engine.jobs:
            job.free_at, job.leased = 0 if job.leased else job.free_at, False  # a lease ends with the server, a backoff after a failure does not
        for instance in list(self.engine.instances):
            if instance.id:
                self.sync(instance)
        self.check_day_one()

    def run(self, steps):
        first = self.upload(f'first-{self.seed}')
        for n in range(4):
            self.upload(f'def{n}-{self.seed}', chain=first.id if first and self.rng.random() < 0.4 else None)
        self.upload(f'first-{self.seed}')
        self.begin_day_one()
        for _ in range(4):
            self.start()
        for n in range(steps):
            self.step()
            if n in (steps // 3, 2 * steps // 3):
                self.restart(kill=n < steps // 2)
        self.calm()
        for instance in [i for i in self.engine.instances if i.id and i not in self.lost and not i.previous]:
            self.sync(instance)
        self.recall()
        self.check_day_one()
        return self


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--seed', type=int)
    parser.add_argument('--seconds', type=float)
    parser.add_argument('--steps', type=int, default=150)
    given = parser.parse_args()
    live.need_grpc()
    problems, asked, instances, lost, until = [], 0, 0, 0, time.monotonic() + (given.seconds or 0)
    with tempfile.TemporaryDirectory(prefix='pawl-proto-') as folder, live.Server() as server:
        prepare(folder)
        seeds = [given.seed] if given.seed is not None and not given.seconds else range(given.seed or 1, 1 << 30) if given.seconds else live.shard([1, 2, 3])
        for seed in seeds:
            if given.seconds and time.monotonic() > until:
                break
            play = Play(server, seed, problems).run(given.steps)
            asked, instances, lost = asked + play.asked, instances + len(play.engine.instances), lost + len(play.lost)
        problems += server.stop_and_verify()
    return live.report(f'{instances} instances compared {asked} times, {lost} lost sight of', problems)


if __name__ == '__main__':
    sys.exit(main())
