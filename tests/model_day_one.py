"""Models of what the process engine has beyond the original's contract (docs/reference/processes.md): unique business keys, early signals,
deletion, child workflows, compensation. A part of run_processes_model.py, with definitions and instances of their own, so that the model of the contract does not have to know them.

Each class plays random calls on the server and keeps what must be true. check() compares everything and is called after each restart."""

import time

PATH = '/pawl/v1/processes'
FINAL = ('COMPLETED', 'FAILED', 'CANCELLED')


def end():
    return {'id': 'end', 'name': 'End', 'type': 'END'}


class Keys:
    """Definitions with a policy for business keys. holders: (definition, key) -> the instance that has the key."""

    def __init__(self, play):
        self.play, self.rng, self.holders, self.all, self.gone = play, play.rng, {}, {}, []
        self.policies = {}
        for unique in ('running', 'always'):
            for conflict in ('refuse', 'return'):
                id = f'keys-{unique}-{conflict}-{play.seed}'
                self.policies[id] = (unique, conflict)
                task = {'id': 't', 'name': 'T', 'type': 'SERVICE_TASK', 'jobType': f'keys-{play.seed}', 'nextStep': 'end', 'attemptTimeout': 'PT1H'}
                document = {'id': id, 'name': 'Keys', 'businessKey': {'unique': unique, 'conflict': conflict}, 'queries': {'double': 'n * 2'}, 'steps': [task, end()]}
                play.put(document)

    def holder(self, id, key):
        found = self.holders.get((id, key))
        return found if found and (self.policies[id][0] == 'always' or self.all[found]['status'] not in FINAL) else None

    def act(self):
        self.rng.choice([self.start, self.start, self.finish, self.fail, self.cancel, self.retry, self.restart, self.query, self.delete])()

    def start(self):
        id, key, n = self.rng.choice(list(self.policies)), self.rng.choice(['k1', 'k2', '']), self.rng.randint(0, 99)
        if self.rng.random() < 0.3:
            status, got = self.play.wire.ask('StartInstance', definition_id=id, business_key=key, variables={'n': n})
            if status == 204:
                status, got = 200 if got.existing else 201, {'id': got.instance.id, 'existing': got.existing}
        else:
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

    def delete(self):
        """Only what has ended can be deleted; its key is free afterwards."""
        if instance := self.one('ACTIVE', *FINAL, *FINAL):
            ended = self.all[instance]['status'] in FINAL
            status, got = self.play.wire.rest('DELETE', f'/v1/instances/{instance}')
            self.play.expect(f'delete of {instance}', (status, got.get('deleted')), (200, True) if ended else (409, None))
            if ended:
                x = self.all.pop(instance)
                self.gone.append((instance, got['lastEvent'], x))
                if self.holders.get((x['definition'], x['key'])) == instance:
                    del self.holders[(x['definition'], x['key'])]

    def query(self):
        if instance := self.one('ACTIVE', *FINAL):
            status, got = self.play.wire.rest('GET', f'{PATH}/instances/{instance}/queries/double')
            x = self.all[instance]
            self.play.expect(f'query of {instance}', (status, got.get('value'), got.get('status')), (200, x['n'] * 2, x['status']))

    def check(self):
        for instance, x in self.all.items():
            _, got = self.play.wire.rest('GET', f'/v1/instances/{instance}')
            self.play.expect(f'{instance} of {x["definition"]}', (got.get('status'), got.get('businessKey', '')), (x['status'], x['key']))
        for instance, event, x in self.gone:
            self.play.expect(f'deleted {instance}', self.play.wire.rest('GET', f'/v1/instances/{instance}')[0], 404)
            _, got = self.play.wire.rest('GET', f'{PATH}/instances/{instance}/events/{event}')
            self.play.expect(f'{instance} in the journal', got.get('status'), x['status'])
        for id in self.policies:
            _, got = self.play.wire.rest('GET', f'/v1/instances?definitionId={id}&pageSize=1000')
            mine = sorted(i for i, x in self.all.items() if x['definition'] == id)
            self.play.expect(f'list of {id}', (got['total'], sorted(i['id'] for i in got['items'] or [])), (len(mine), mine))


class Signals:
    """Signals by name and correlation key. waiting and kept: key -> instances or values, oldest first."""

    def __init__(self, play):
        self.play, self.rng, self.waiting, self.kept, self.all = play, play.rng, {}, {}, {}
        self.id, self.name = f'signals-{play.seed}', f'go-{play.seed}'
        steps = [{'id': 't', 'name': 'T', 'type': 'USER_TASK', 'nextStep': 'w'},
                 {'id': 'w', 'name': 'W', 'type': 'WAIT', 'signal': self.name, 'correlationKey': 'key', 'nextStep': 'x'},
                 {'id': 'x', 'name': 'X', 'type': 'WAIT', 'nextStep': 'end'}, end()]
        play.put({'id': self.id, 'name': 'S', 'steps': steps})

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
            if self.rng.random() < 0.3 and self.all[instance]['early'] < 16:
                status = 202 if self.play.wire.ask('SignalWait', instance_id=instance, wait_step_id='x', keep=True)[0] == 204 else 500
            else:
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


class Calls:
    """A tree of instances: top calls middle, middle calls bottom, which waits for a person. Each has what its child made."""

    def __init__(self, play):
        self.play, self.rng, self.trees = play, play.rng, {}
        self.names = [f'{n}-{play.seed}' for n in ('top', 'middle', 'bottom')]

        def caller(id, child):
            step = {'id': 'c', 'name': 'C', 'type': 'CALL', 'nextStep': 'end', 'call': {'workflowId': child, 'variables': {'n': '${n + 1}'}, 'outputs': {'made': '${made}'}}}
            return {'id': id, 'name': 'Calls', 'steps': [step, end()]}
        bottom = {'id': self.names[2], 'name': 'Bottom', 'steps': [{'id': 'u', 'name': 'U', 'type': 'USER_TASK', 'nextStep': 'end'}, end()]}
        for document in (caller(self.names[0], self.names[1]), caller(self.names[1], self.names[2]), bottom):
            play.put(document)

    def act(self):
        self.rng.choice([self.start, self.start, self.finish, self.cancel, self.cancel_below, self.skip, self.pause])()

    def child(self, instance):
        """The end of a turn is delivered to the next instance after its answer: wait for it."""
        for _ in range(200):
            _, got = self.play.wire.rest('GET', f'{PATH}/instances/{instance}')
            tokens = got.get('tokens') or [{}]
            if tokens[0].get('childInstanceId'):
                return tokens[0]['childInstanceId']
            time.sleep(0.01)
        self.play.problem(f'{instance} has no child: {got}')

    def start(self):
        n = self.rng.randint(0, 99)
        _, got = self.play.wire.rest('POST', '/v1/instances', {'definitionId': self.names[0], 'variables': {'n': n}})
        middle = self.child(got['id'])
        bottom = middle and self.child(middle)
        if bottom:
            self.trees[got['id']] = {'ids': [got['id'], middle, bottom], 'n': n, 'made': None, 'status': ['ACTIVE', 'ACTIVE', 'WAITING']}

    def live(self):
        found = [t for t in self.trees.values() if t['status'][0] == 'ACTIVE']
        return self.rng.choice(found) if found else None

    def finish(self):
        if tree := self.live():
            tree['made'] = self.rng.randint(0, 99)
            status, _ = self.play.wire.rest('POST', f'/v1/instances/{tree["ids"][2]}/user-tasks/u/complete', {'variables': {'made': tree['made']}})
            self.play.expect('task of the child', status, 204)
            tree['status'] = ['COMPLETED'] * 3

    def cancel(self):
        if tree := self.live():
            self.play.expect('cancel', self.play.wire.rest('POST', f'/v1/instances/{tree["ids"][0]}/cancel', {})[0], 200)
            tree['status'] = ['CANCELLED'] * 3

    def cancel_below(self):
        """A child that is cancelled fails its parents."""
        if tree := self.live():
            self.play.expect('cancel', self.play.wire.rest('POST', f'/v1/instances/{tree["ids"][2]}/cancel', {})[0], 200)
            tree['status'] = ['FAILED', 'FAILED', 'CANCELLED']

    def skip(self):
        """A parent that leaves its CALL cancels what is below."""
        if tree := self.live():
            self.play.expect('skip', self.play.wire.rest('POST', f'{PATH}/instances/{tree["ids"][1]}/skip', {'reason': 'because'})[0], 200)
            # The middle ends without `made`, so the outputs of the top cannot be evaluated.
            tree['status'] = ['FAILED', 'COMPLETED', 'CANCELLED']

    def pause(self):
        """The end of a child counts when its paused parent goes on."""
        if tree := self.live():
            top = f'{PATH}/instances/{tree["ids"][0]}'
            self.play.expect('pause', self.play.wire.rest('POST', f'{top}/pause', {'reason': 'because'})[0], 200)
            tree['made'] = 7
            self.play.wire.rest('POST', f'/v1/instances/{tree["ids"][2]}/user-tasks/u/complete', {'variables': {'made': 7}})
            self.play.expect('resume', self.play.wire.rest('POST', f'{top}/resume', {'reason': 'because'})[0], 200)
            tree['status'] = ['COMPLETED'] * 3

    def check(self):
        for tree in self.trees.values():
            for depth, (id, want) in enumerate(zip(tree['ids'], tree['status'])):
                for _ in range(300):
                    _, got = self.play.wire.rest('GET', f'/v1/instances/{id}')
                    if got.get('status') == want:
                        break
                    time.sleep(0.01)
                self.play.expect(f'{id}, {depth} below the top', (got.get('status'), got['variables'].get('n')), (want, tree['n'] + depth))
                self.play.expect(f'parent of {id}', got.get('parentInstanceId'), tree['ids'][depth - 1] if depth else None)
                if want == 'COMPLETED' and tree['made'] is not None:
                    self.play.expect(f'what {id} has', got['variables'].get('made'), tree['made'])


class Sagas:
    """Instances of a loop of steps that can be undone: what was done is undone in reverse."""

    def __init__(self, play):
        self.play, self.rng, self.all = play, play.rng, {}
        self.id, self.kinds = f'saga-{play.seed}', [f'do-{play.seed}', f'undo-{play.seed}']
        undo = {'jobType': self.kinds[1], 'variables': {'was': '${n}'}, 'retryCount': 1}
        steps = [{'id': 'do', 'name': 'Do', 'type': 'SERVICE_TASK', 'jobType': self.kinds[0], 'nextStep': 'more', 'compensation': undo},
                 {'id': 'more', 'name': 'More', 'type': 'DECISION', 'conditionalNextSteps': {'last': 'end', 'true': 'do'}}, end()]
        for on in ('fail', 'compensate'):
            document = {'id': f'{self.id}-{on}', 'name': 'Saga', 'onFailure': on, 'steps': steps}
            play.put(document)

    def act(self):
        self.rng.choice([self.start, self.do, self.do, self.fail, self.compensate, self.undo, self.undo, self.undo, self.undo_fails, self.again, self.pause])()

    def start(self):
        on = self.rng.choice(['fail', 'compensate'])
        _, got = self.play.wire.rest('POST', '/v1/instances', {'definitionId': f'{self.id}-{on}', 'variables': {'last': False, 'n': 0}})
        self.all[got['id']] = {'on': on, 'done': [], 'state': 'doing', 'failures': 0}

    def one(self, *states):
        found = [i for i, x in self.all.items() if x['state'] in states]
        return self.rng.choice(found) if found else None

    def job(self, instance):
        _, got = self.play.wire.rest('GET', f'{PATH}/instances/{instance}')
        return got['tokens'][0]['jobId']

    def result(self, instance, message=None, **variables):
        body = {'workerId': 'w', 'errorMessage': message, 'retryable': True} if message else {'workerId': 'w', 'variables': variables}
        status, _ = self.play.wire.rest('POST', f'/v1/jobs/{self.job(instance)}/{"fail" if message else "complete"}', body)
        self.play.expect(f'result of {instance}', status, 204)

    def order(self, instance, verb, want=200):
        status, got = self.play.wire.rest('POST', f'{PATH}/instances/{instance}/{verb}', {'reason': 'because'})
        self.play.expect(f'{verb} of {instance}: {got}', status, want)

    def do(self):
        if instance := self.one('doing'):
            n, last = self.rng.randint(1, 999), self.rng.random() < 0.1
            self.result(instance, n=n, last=last)
            self.all[instance]['done'].append(n)
            if last:
                self.all[instance].update(state='completed', done=[])

    def undoing(self, instance):
        x = self.all[instance]
        x.update(state='undoing' if x['done'] else 'undone', failures=0)

    def fail(self):
        if instance := self.one('doing'):
            self.result(instance, message='no')
            x = self.all[instance]
            if x['on'] == 'compensate' and x['done']:
                self.undoing(instance)
            else:
                x['state'] = 'failed'

    def compensate(self):
        if instance := self.one('doing', 'failed', 'undone', 'completed'):
            x = self.all[instance]
            can = x['state'] in ('doing', 'failed') and x['done']
            self.order(instance, 'compensate', 200 if can else 409)
            if can:
                self.undoing(instance)

    def undo(self):
        """The job that undoes the last step has the variables of the time when the step was done."""
        if instance := self.one('undoing'):
            x = self.all[instance]
            self.result(instance, undone=x['done'].pop())
            self.undoing(instance)

    def undo_fails(self):
        if instance := self.one('undoing'):
            x = self.all[instance]
            self.result(instance, message='no undo')
            x['failures'] += 1
            if x['failures'] > 1:
                x['state'] = 'stuck'

    def again(self):
        if instance := self.one('stuck', 'failed'):
            x = self.all[instance]
            if x['state'] == 'stuck' and self.rng.random() < 0.4:
                self.order(instance, 'skip')
                x['done'].pop()
                return self.undoing(instance)
            self.order(instance, 'retry')
            x.update(state='undoing' if x['state'] == 'stuck' else 'doing', failures=0)

    def pause(self):
        if instance := self.one('doing', 'undoing'):
            self.order(instance, 'pause')
            self.order(instance, 'resume')

    def check(self):
        for instance, x in self.all.items():
            _, got = self.play.wire.rest('GET', f'/v1/instances/{instance}')
            want = {'doing': ('ACTIVE', ['do'], ''), 'undoing': ('ACTIVE', ['do.compensation'], ''), 'completed': ('COMPLETED', [], ''), 'failed': ('FAILED', ['do'], 'no'),
                    'stuck': ('FAILED', ['do.compensation'], 'CompensationFailed: no undo'), 'undone': ('FAILED', [], None)}[x['state']]
            reason = got.get('failureReason', '')
            self.play.expect(f'{instance}', (got['status'], got['currentStepIds'], reason if want[2] is not None else None), want)
            if x['state'] == 'undone':
                self.play.expect(f'reason of {instance}', reason in ('Compensated: no', 'Compensated: because'), True)
        jobs = [j for j in self.play.wire.rest('POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': [self.kinds[1]], 'maxJobs': 1000, 'leaseSeconds': 1})[1]['jobs'] or []]
        for job in jobs:
            x = self.all[job['instanceId']]
            self.play.expect(f'undo of {job["instanceId"]}', (x['state'], job['variables'].get('was')), ('undoing', x['done'][-1]))


class DayOne:
    """The actions of a Play for all models above."""

    def put(self, document):
        """Uploads a definition by REST or gRPC. Both show it as it was written."""
        if self.rng.random() < 0.5:
            status, got = self.wire.upload(document)
            status = 201 if status == 204 else status
        else:
            status, got = self.wire.rest('POST', '/v1/definitions', document)
        self.expect(f'upload of {document["id"]}: {got}', status, 201)
        self.expect(f'{document["id"]} read back', self.wire.rest('GET', f'/v1/definitions/{document["id"]}')[1], {'version': 1, **document})

    def begin_day_one(self):
        self.models = [Keys(self), Signals(self), Calls(self), Sagas(self)]

    def day_one(self):
        self.rng.choice(self.models).act()

    def check_day_one(self):
        for model in self.models:
            model.check()
