"""Models of what the process engine has beyond the original's contract (docs/reference/processes.md): unique business keys, early signals. A
part of run_processes_model.py, with definitions and instances of their own, so that the model of the contract does not have to know them.

Each class plays random calls on the server and keeps what must be true. check() compares everything and is called after each restart."""

PATH = '/pawl/v1/processes'
FINAL = ('COMPLETED', 'FAILED', 'CANCELLED')


def end():
    return {'id': 'end', 'name': 'End', 'type': 'END'}


class Keys:
    """Definitions with a policy for business keys. holders: (definition, key) -> the instance that has the key."""

    def __init__(self, play):
        self.play, self.rng, self.holders, self.all = play, play.rng, {}, {}
        self.policies = {}
        for unique in ('running', 'always'):
            for conflict in ('refuse', 'return'):
                id = f'keys-{unique}-{conflict}-{play.seed}'
                self.policies[id] = (unique, conflict)
                task = {'id': 't', 'name': 'T', 'type': 'SERVICE_TASK', 'jobType': f'keys-{play.seed}', 'nextStep': 'end', 'attemptTimeout': 'PT1H'}
                document = {'id': id, 'name': 'Keys', 'businessKey': {'unique': unique, 'conflict': conflict}, 'queries': {'double': 'n * 2'}, 'steps': [task, end()]}
                play.expect(f'upload of {id}', play.wire.rest('POST', '/v1/definitions', document)[0], 201)

    def holder(self, id, key):
        found = self.holders.get((id, key))
        return found if found and (self.policies[id][0] == 'always' or self.all[found]['status'] not in FINAL) else None

    def act(self):
        self.rng.choice([self.start, self.start, self.finish, self.fail, self.cancel, self.retry, self.restart, self.query])()

    def start(self):
        id, key, n = self.rng.choice(list(self.policies)), self.rng.choice(['k1', 'k2', '']), self.rng.randint(0, 99)
        status, got = self.play.wire.rest('POST', '/v1/instances', {'definitionId': id, 'businessKey': key, 'variables': {'n': n}})
        holder = self.holder(id, key) if key else None
        want = 201 if not holder else 200 if self.policies[id][1] == 'return' else 409
        self.play.expect(f'start of {id} with key {key!r}', status, want)
        if status == 200:
            self.play.expect(f'the existing instance of {key}', (got['id'], got.get('existing')), (holder, True))
        if status == 201:
            self.add(got['id'], id, key, n)

    def add(self, instance, id, key, n):
        self.all[instance] = {'definition': id, 'key': key, 'n': n, 'status': 'ACTIVE'}
        if key:
            self.holders[(id, key)] = instance

    def one(self, *wanted):
        found = [i for i, x in self.all.items() if x['status'] in wanted]
        return self.rng.choice(found) if found else None

    def job(self, instance):
        _, got = self.play.wire.rest('GET', f'{PATH}/instances/{instance}')
        return got['tokens'][0]['jobId']

    def finish(self):
        if instance := self.one('ACTIVE'):
            self.play.expect(f'end of {instance}', self.play.wire.rest('POST', f'/v1/jobs/{self.job(instance)}/complete', {'workerId': 'w'})[0], 204)
            self.all[instance]['status'] = 'COMPLETED'

    def fail(self):
        if instance := self.one('ACTIVE'):
            self.play.wire.rest('POST', f'/v1/jobs/{self.job(instance)}/fail', {'workerId': 'w', 'errorMessage': 'no', 'retryable': False})
            self.all[instance]['status'] = 'FAILED'

    def cancel(self):
        if instance := self.one('ACTIVE'):
            self.play.expect(f'cancel of {instance}', self.play.wire.rest('POST', f'/v1/instances/{instance}/cancel', {})[0], 200)
            self.all[instance]['status'] = 'CANCELLED'

    def retry(self):
        """A failed instance goes on when nobody else has its key."""
        if instance := self.one('FAILED'):
            x = self.all[instance]
            holder = self.holder(x['definition'], x['key']) if x['key'] else None
            free = holder in (None, instance)
            status, _ = self.play.wire.rest('POST', f'{PATH}/instances/{instance}/retry', {'reason': 'because'})
            self.play.expect(f'retry of {instance} while {holder} has its key', status, 200 if free else 409)
            if free:
                self.add(instance, x['definition'], x['key'], x['n'])

    def restart(self):
        if instance := self.one(*FINAL):
            x = self.all[instance]
            holder = self.holder(x['definition'], x['key']) if x['key'] else None
            status, got = self.play.wire.rest('POST', f'{PATH}/instances/{instance}/restart', {'reason': 'because'})
            free = holder in (None, instance)
            self.play.expect(f'restart of {instance} while {holder} has its key', status, 201 if free else 409)
            if status == 201:
                self.add(got['id'], x['definition'], x['key'], x['n'])

    def query(self):
        if instance := self.one('ACTIVE', *FINAL):
            status, got = self.play.wire.rest('GET', f'{PATH}/instances/{instance}/queries/double')
            x = self.all[instance]
            self.play.expect(f'query of {instance}', (status, got.get('value'), got.get('status')), (200, x['n'] * 2, x['status']))

    def check(self):
        for instance, x in self.all.items():
            _, got = self.play.wire.rest('GET', f'/v1/instances/{instance}')
            self.play.expect(f'{instance} of {x["definition"]}', (got.get('status'), got.get('businessKey', '')), (x['status'], x['key']))


class Signals:
    """Signals by name and correlation key. waiting and kept: key -> instances or values, oldest first."""

    def __init__(self, play):
        self.play, self.rng, self.waiting, self.kept, self.all = play, play.rng, {}, {}, {}
        self.id, self.name = f'signals-{play.seed}', f'go-{play.seed}'
        steps = [{'id': 't', 'name': 'T', 'type': 'USER_TASK', 'nextStep': 'w'},
                 {'id': 'w', 'name': 'W', 'type': 'WAIT', 'signal': self.name, 'correlationKey': 'key', 'nextStep': 'x'},
                 {'id': 'x', 'name': 'X', 'type': 'WAIT', 'nextStep': 'end'}, end()]
        play.expect('upload', play.wire.rest('POST', '/v1/definitions', {'id': self.id, 'name': 'S', 'steps': steps})[0], 201)

    def act(self):
        self.rng.choice([self.start, self.enter, self.enter, self.publish, self.publish, self.cancel, self.pause, self.resume, self.keep])()

    def one(self, *steps, paused=False):
        found = [i for i, x in self.all.items() if x['at'] in steps and x['paused'] == paused]
        return self.rng.choice(found) if found else None

    def start(self):
        key = self.rng.randint(1, 3)
        _, got = self.play.wire.rest('POST', '/v1/instances', {'definitionId': self.id, 'variables': {'key': key}})
        self.all[got['id']] = {'at': 't', 'key': str(key), 'got': None, 'early': 0, 'paused': False}

    def enter(self):
        """The instance comes to its WAIT: the oldest kept signal continues it at once."""
        if instance := self.one('t'):
            self.play.expect('task', self.play.wire.rest('POST', f'/v1/instances/{instance}/user-tasks/t/complete', {})[0], 204)
            self.at_wait(instance)

    def at_wait(self, instance):
        x = self.all[instance]
        x['at'] = 'w'
        if self.kept.get(x['key']):
            self.take(instance, self.kept[x['key']].pop(0))
        else:
            self.waiting.setdefault(x['key'], []).append(instance)

    def take(self, instance, value):
        """After w comes x, which takes a signal that was kept for it."""
        x = self.all[instance]
        x['got'], x['at'] = value, 'end' if x['early'] else 'x'

    def publish(self):
        key, value = str(self.rng.randint(1, 3)), self.rng.randint(0, 999)
        status, got = self.play.wire.rest('POST', f'{PATH}/signals', {'name': self.name, 'correlationKey': key, 'variables': {'got': value}})
        if self.waiting.get(key):
            instance = self.waiting[key].pop(0)
            self.play.expect(f'signal with key {key}', (status, got.get('instanceId')), (200, instance))
            self.take(instance, value)
        else:
            self.play.expect(f'signal with key {key}', (status, got.get('delivered')), (202, False))
            self.kept.setdefault(key, []).append(value)

    def forget(self, instance):
        for list in self.waiting.values():
            if instance in list:
                list.remove(instance)

    def cancel(self):
        if instance := self.one('t', 'w'):
            self.play.expect('cancel', self.play.wire.rest('POST', f'/v1/instances/{instance}/cancel', {})[0], 200)
            self.forget(instance)
            self.all[instance]['at'] = 'cancelled'

    def pause(self):
        if instance := self.one('w'):
            self.play.expect('pause', self.play.wire.rest('POST', f'{PATH}/instances/{instance}/pause', {'reason': 'because'})[0], 200)
            self.forget(instance)
            self.all[instance]['paused'] = True

    def resume(self):
        """A paused instance comes last in the queue again."""
        if instance := self.one('w', paused=True):
            self.play.expect('resume', self.play.wire.rest('POST', f'{PATH}/instances/{instance}/resume', {'reason': 'because'})[0], 200)
            self.all[instance]['paused'] = False
            self.at_wait(instance)

    def keep(self):
        if instance := self.one('t', 'w'):
            status, _ = self.play.wire.rest('POST', f'/v1/instances/{instance}/signals/x?keep=true', {})
            self.play.expect('keep', status, 202 if self.all[instance]['early'] < 16 else 429)
            self.all[instance]['early'] += status == 202

    def check(self):
        for instance, x in self.all.items():
            _, got = self.play.wire.rest('GET', f'/v1/instances/{instance}')
            want = {'end': 'COMPLETED', 'cancelled': 'CANCELLED'}.get(x['at'], 'WAITING')
            at = [x['at']] if want == 'WAITING' else []
            self.play.expect(f'{instance} with key {x["key"]}', (got['status'], got['currentStepIds'], got['variables'].get('got')), (want, at, x['got']))
        _, got = self.play.wire.rest('GET', f'{PATH}/signals?name={self.name}&pageSize=1000')
        theirs = {}
        for signal in got['items']:
            theirs.setdefault(signal['correlationKey'], []).append(signal['variables']['got'])
        self.play.expect('kept signals', theirs, {k: v for k, v in self.kept.items() if v})


class DayOne:
    """The actions of a Play for all models above."""

    def begin_day_one(self):
        self.models = [Keys(self), Signals(self)]

    def day_one(self):
        self.rng.choice(self.models).act()

    def check_day_one(self):
        for model in self.models:
            model.check()
