"""The honest clients of tests/run_siege.py: one for each face. A client works through the same cycle again and again, keeps the
time of every answer and what was acknowledged, and reads all of it at the end.
"""
import http.client, json, threading, time, uuid

import live, run_entities_crash, run_lifecycle, run_members, run_worlds

PAUSE_S = 0.05  # between two cycles: honest clients do not flood
JOB_WAIT_S = 5

TASKS = {'id': 'honest', 'name': 'Honest', 'steps': [
    {'id': 'a', 'name': 'A', 'type': 'SERVICE_TASK', 'jobType': 'honest', 'nextStep': 'u'},
    {'id': 'u', 'name': 'U', 'type': 'USER_TASK', 'nextStep': 'w'},
    {'id': 'w', 'name': 'W', 'type': 'WAIT', 'nextStep': 'e'}, {'id': 'e', 'name': 'E', 'type': 'END'}]}
DOOR = {'bucket': 'DOORS', 'key_prefix': 'd.', 'transitions': {'open': ['shut'], 'shut': ['open', 'gone'], 'gone': []},
        'fields': [{'name': 'entity_id', 'type': 'string', 'tags': ['id']}, {'name': 'phase', 'type': 'string', 'tags': ['phase', 'readonly']},
                   {'name': 'note', 'type': 'string', 'tags': ['operator_writable']}]}


class Outage(Exception):
    """The server was killed during the request: whether the request had an effect is not known."""


class Client:
    """What all honest clients share: requests that are measured, on one kept connection.

    `lives` counts the starts and the kills of the server: an even number means that the server runs. `loot` gets the ids that
    this client works with, so that attackers can try them."""

    def __init__(self, caller, lives, stop, loot):
        self.caller, self.lives, self.stop, self.loot = caller, lives, stop, loot
        self.connection, self.connected_in, self.times, self.problems = None, 0, [], []

    def send(self, method, path, data, headers):
        self.connection = self.connection or http.client.HTTPConnection(self.caller.http, timeout=120)
        self.connection.request(method, path, data, headers)
        reply = self.connection.getresponse()
        text = reply.read()
        if reply.will_close:
            self.hang_up()
        if 'ndjson' in (reply.headers.get('Content-Type') or ''):
            return reply.status, [json.loads(line) for line in text.splitlines()]
        return reply.status, json.loads(text) if text else None

    def hang_up(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def wait_for_server(self):
        """Returns the life of the server in which the next request is sent."""
        while self.lives.value % 2:
            time.sleep(0.05)
        return self.lives.value

    def ask(self, method, path, body=None, allowed=()):
        """Sends one request. Every answer but a success and those that are allowed is a problem."""
        life = self.wait_for_server()
        if life != self.connected_in:
            self.hang_up()  # the connection is one to the server before
        self.connected_in, began = life, time.monotonic()
        headers = {'Content-Type': 'application/json', **self.caller.headers}
        data = None if body is None else json.dumps(body)
        try:
            try:
                status, answer = self.send(method, path, data, headers)
            except http.client.RemoteDisconnected:
                # The server closes a connection that was idle for two minutes, and every connection when it is killed.
                self.hang_up()
                if self.killed_since(life):
                    raise Outage from None
                status, answer = self.send(method, path, data, headers)
        except (OSError, http.client.HTTPException, ValueError) as err:
            self.hang_up()
            if self.killed_since(life):
                raise Outage from None
            status, answer = 0, repr(err)
        took = time.monotonic() - began
        if self.lives.value != life:
            raise Outage  # also an answer of the last moment: its time says nothing
        self.times.append((took, f'{method} {path.split("?")[0]}'))
        if not 200 <= status < 300 and status not in allowed:
            self.problem(f'{method} {path}: {status} {str(answer)[:300]} after {took:.1f} s')
            raise Refused
        return answer

    def killed_since(self, life):
        """Whether the server was killed. The kill is announced before it happens, so there is nothing to wait for."""
        return self.lives.value != life

    def problem(self, text):
        self.problems.append(f'{time.strftime("%H:%M:%S")} {text}')

    def run(self):
        self.prepare()
        while not self.stop.is_set():
            try:
                self.cycle(uuid.uuid4().hex[:12])
            except (Outage, Refused):
                pass
            except Exception as err:
                self.problem(f'{type(self).__name__}: {err!r}')
            self.stop.wait(PAUSE_S)
        self.finish()

    def prepare(self):
        """Makes what the cycles need."""

    def finish(self):
        """Ends what the client began."""

    def result(self):
        """What a later reader needs to know: times, problems, and what was acknowledged."""
        return {'face': type(self).__name__, 'times': self.times, 'problems': self.problems, 'acknowledged': self.acknowledged}


class Refused(Exception):
    """A request was refused. The refusal is among the problems already."""


class Processes(Client):
    """Starts an instance, does its job as a worker, completes its user task and signals its wait."""
    STAGES = ['started', 'job', 'task', 'COMPLETED']

    def __init__(self, *where):
        super().__init__(*where)
        self.acknowledged = {}  # id of an instance: its stage

    def prepare(self):
        self.ask('POST', '/v1/definitions', TASKS)

    def cycle(self, name):
        id = self.ask('POST', '/v1/instances', {'definitionId': 'honest', 'variables': {'name': name}, 'businessKey': name})['id']
        self.acknowledged[id] = 'started'
        self.loot['instance'] = id
        self.work_until(id)
        self.ask('POST', f'/v1/instances/{id}/user-tasks/u/complete', {'workerId': 'ann', 'variables': {'done': True}})
        self.acknowledged[id] = 'task'
        self.ask('POST', f'/v1/instances/{id}/signals/w', {'go': 1})
        self.acknowledged[id] = 'COMPLETED'
        found = self.ask('GET', f'/v1/instances/{id}')
        if found['status'] != 'COMPLETED' or found['variables'].get('name') != name:
            self.problem(f'instance {id} was completed and is {found}')

    def work_until(self, wanted):
        """Completes jobs until that of this instance is done. Jobs of an earlier cycle may come first."""
        until = time.monotonic() + JOB_WAIT_S
        while time.monotonic() < until:
            jobs = self.ask('POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': ['honest'], 'maxWaitMs': 1000})['jobs'] or []
            for job in jobs:
                self.loot['job'] = job['id']
                self.ask('POST', f'/v1/jobs/{job["id"]}/complete', {'workerId': 'w', 'variables': {'worked': True}})
                if self.acknowledged.get(job['instanceId']) == 'started':
                    self.acknowledged[job['instanceId']] = 'job'
            if any(job['instanceId'] == wanted for job in jobs):
                return
        self.problem(f'the job of instance {wanted} did not come in {JOB_WAIT_S} s')
        raise Refused

    def read_again(self, acknowledged):
        for id, stage in acknowledged.items():
            found = self.ask('GET', f'/v1/instances/{id}', allowed=(404,))
            steps = found.get('currentStepIds') or []
            reached = 'COMPLETED' if found.get('status') == 'COMPLETED' else {'a': 'started', 'u': 'job', 'w': 'task'}.get(steps[0] if steps else '')
            if reached is None or self.STAGES.index(reached) < self.STAGES.index(stage):
                self.problem(f'instance {id} was acknowledged as {stage} and is {found}')


class Entities(Client):
    """Creates entities, moves them, lets a compute member write inside a transaction, and searches."""

    def __init__(self, *where):
        super().__init__(*where)
        self.acknowledged, self.member, self.member_life = {}, None, 0  # id of an entity: its state

    def prepare(self):
        run_members.prepare()
        self.pair = run_entities_crash.set_up(self.caller.base)
        self.ask('PUT', '/api/model/crash/1/indexes', {'fields': ['$.child']})
        self.join()

    def join(self):
        """Lets the compute member join, and join again after a kill."""
        life = self.wait_for_server()
        if self.member and not self.member.ended.is_set() and self.member_life == life:
            return
        if self.member:
            if self.member_life == life:
                self.problem(f'the stream of the compute member ended: {self.member.error}')
            self.member.close()
        self.member, self.member_life = run_entities_crash.a_member(self.caller), life

    def cycle(self, name):
        try:
            self.join()
        except Exception as err:
            if self.lives.value == self.member_life:
                self.problem(f'the compute member cannot join: {err!r}')
            return
        id = self.ask('POST', '/api/entity/JSON/crash/1', {'batch': name, 'n': 1, 'child': 'none'})[0]['entityIds'][0]
        self.acknowledged[id] = 'OPEN'
        self.loot['entity'] = id
        self.ask('PUT', f'/api/platform-api/entity/transition?entityId={id}&transitionName=toggle')
        self.acknowledged[id] = 'SHUT'
        parent = self.ask('POST', '/api/entity/JSON/crash/1', {'batch': 'parent', 'n': 1, 'child': name})[0]['entityIds'][0]
        self.acknowledged[parent] = 'OPEN'
        self.ask('PUT', f'/api/entity/JSON/{parent}/breed', {'batch': 'parent', 'n': 2, 'child': name})
        self.acknowledged[parent] = 'BRED'
        found = self.ask('POST', '/api/search/direct/crash/1', {'type': 'simple', 'jsonPath': '$.child', 'operatorType': 'EQUALS', 'value': name})
        if len(found) != 2:
            self.problem(f'parent and child {name} were acknowledged; the search finds {str(found)[:300]}')

    def finish(self):
        self.member.close()

    def read_again(self, acknowledged):
        for id, state in acknowledged.items():
            found = self.ask('GET', f'/api/entity/{id}', allowed=(404,))
            now = found.get('meta', {}).get('state')
            # A request that was under way at a kill may have moved the entity on.
            if now not in ('SHUT', 'BRED') and now != state:
                self.problem(f'entity {id} was acknowledged as {state} and is {str(found)[:300]}')


class Lifecycle(Client):
    """Creates doors and shuts them, while a watch must show each change."""

    def __init__(self, *where):
        super().__init__(*where)
        self.acknowledged, self.waiting, self.seen, self.lock, self.cuts = {}, {}, set(), threading.Lock(), 0

    def prepare(self):
        self.ask('PUT', '/pawl/v1/lifecycle/types/door', DOOR)
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def watch(self):
        """Follows the watch, and continues after the last event when the watch ends."""
        last = None
        while not self.stop.is_set():
            life = self.wait_for_server()
            try:
                events = run_lifecycle.Events(self.caller, '/workflows/door?stream=true', {**self.caller.headers, **({'Last-Event-ID': str(last)} if last else {})})
                while events.status == 200:
                    _, last, data = events.next()
                    self.note_seen((data['entity_id'], data['phase']))
            except TimeoutError:
                continue  # nothing for 20 seconds; the times of the changes tell whether that is too long
            except (OSError, EOFError, ValueError, http.client.HTTPException):
                pass
            # A server whose budget for streams is used up may cut a watch. The reader goes on after the last event.
            if self.lives.value == life and not self.stop.is_set():
                self.cuts += 1
            time.sleep(0.1)

    def note_seen(self, change):
        with self.lock:
            self.seen.add(change)
            told = self.waiting.pop(change, None)
        if told and told[1] == self.lives.value:
            self.times.append((time.monotonic() - told[0], 'watch'))

    def told(self, id, phase):
        """A write was acknowledged: the watch must show it."""
        self.acknowledged[id] = phase
        with self.lock:
            if (id, phase) not in self.seen:
                self.waiting[id, phase] = time.monotonic(), self.lives.value

    def cycle(self, name):
        path = f'/pawl/v1/lifecycle/instances/door/{name}'
        self.ask('POST', path, {'phase': 'open', 'note': 'new'})
        self.told(name, 'open')
        self.loot['door'] = name
        self.ask('POST', path + '/transition', {'phase': 'shut', 'note': 'dusk'})
        self.told(name, 'shut')
        found = self.ask('GET', f'/workflows/door/{name}')
        if found.get('phase') != 'shut':
            self.problem(f'door {name} was shut and is {found}')

    def finish(self):
        """Changes that the watch has not shown are late, however late they come."""
        until = time.monotonic() + 60
        while self.waiting and time.monotonic() < until:
            time.sleep(0.1)
        for change in list(self.waiting)[:10]:
            self.problem(f'the watch never showed {change}')
        print(f'the watch was cut {self.cuts} times', flush=True)

    def read_again(self, acknowledged):
        for id, phase in acknowledged.items():
            found = self.ask('GET', f'/workflows/door/{id}', allowed=(404,))
            if found.get('phase') not in (phase, 'shut'):
                self.problem(f'door {id} was acknowledged as {phase} and is {found}')


class Worlds(Client):
    """Sends events to a world, takes the effects that they open, and settles them."""

    def __init__(self, *where):
        super().__init__(*where)
        self.acknowledged = {'world': f'honest-{uuid.uuid4().hex[:8]}', 'events': {}, 'settled': []}

    def prepare(self):
        self.world = run_worlds.World(self.caller, self.acknowledged['world'])
        if self.world.made[0] != 201:
            self.problem(f'the world is not made: {self.world.made}')

    def cycle(self, name):
        effects = [{'kind': 'w/charge@1', 'params_cbor': run_worlds.cbor({'amount': 1, 'token': {'literal': name}})}]
        out = run_worlds.cbor({'state': name.encode(), 'effects': effects})
        told = self.ask('POST', self.world.path + '/events', {'schema': 'w/Do@1', 'value': {'id': name, 'out': run_worlds.b64(out)}})
        self.acknowledged['events'][name] = told['seq']
        for work in self.ask('POST', '/v1/effects/poll', {'effects': ['w/charge@1'], 'wait_ms': 1000, 'limit': 10})['work']:
            self.loot.update(world=self.acknowledged['world'], intent=work['intent_hash'])
            self.ask('POST', self.world.path + '/receipts', {'intent_hash': work['intent_hash'], 'status': 'ok', 'payload': {'code': 0}})
            self.acknowledged['settled'].append(work['intent_hash'])
        self.ask('GET', self.world.path + '/journal/head')

    def read_again(self, acknowledged):
        world = run_worlds.World.__new__(run_worlds.World)
        world.s, world.path = self.caller, '/v1/worlds/' + acknowledged['world']
        recorded = {r['journal_height']: r['value_json']['id'] for r in world.journal('domain_event')}
        answered = {r['intent_id'] for r in world.journal('effect_receipt')}
        lost = [name for name, seq in acknowledged['events'].items() if recorded.get(seq) != name]
        unsettled = [id for id in acknowledged['settled'] if id not in answered]
        if lost or unsettled:
            self.problem(f'the world lost {len(lost)} acknowledged events and {len(unsettled)} receipts: {lost[:3]} {unsettled[:3]}')


FACES = [Processes, Entities, Lifecycle, Worlds]
