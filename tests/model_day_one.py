"""Models of what the process engine has beyond the original's contract (docs/reference/processes.md): unique business keys. A part of
run_processes_model.py, with definitions and instances of their own, so that the model of the contract does not have to know them.

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


class DayOne:
    """The actions of a Play for all models above."""

    def begin_day_one(self):
        self.models = [Keys(self)]

    def day_one(self):
        self.rng.choice(self.models).act()

    def check_day_one(self):
        for model in self.models:
            model.check()
