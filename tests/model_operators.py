"""The operator commands under /pawl/v1/processes, on a real server and on the model. They are additions of Pawl: the contract of processes does not
have them, and docs/reference/processes.md describes them. A part of run_processes_model.py."""
import copy, time, urllib.parse

import model_definitions, model_processes
from model_processes import same

PATH = '/pawl/v1/processes'


def renamed(rng, document):
    """A new version of a document for a migration: some steps are renamed and one step is inserted. Returns (document, new name of each step)."""
    names = {s['id']: s['id'] + ('v' if rng.random() < 0.5 else '') for s in document['steps']}
    made = copy.deepcopy(document)
    for step in made['steps']:
        step['id'] = names[step['id']]
        for field in ('nextStep', 'joinStep'):
            if field in step:
                step[field] = names[step[field]]
        for event in step.get('boundaryEvents', []):
            event['targetStepId'] = names[event['targetStepId']]
        if 'parallelNextSteps' in step:
            step['parallelNextSteps'] = [names[s] for s in step['parallelNextSteps']]
        if 'conditionalNextSteps' in step:
            step['conditionalNextSteps'] = {k: names[s] for k, s in step['conditionalNextSteps'].items()}
    before = rng.choice([s for s in made['steps'] if s.get('nextStep') and s['type'] != 'JOIN_GATEWAY'] or [None])
    if before and not made['steps'][0]['id'].startswith('extra'):
        made['steps'].append({'id': f'extra{len(made["steps"])}', 'name': 'Extra', 'type': 'TRANSFORMATION', 'transformations': {'extra': True}, 'nextStep': before['nextStep']})
        before['nextStep'] = made['steps'][-1]['id']
    return made, names


class Operators:
    """The random actions of a Play (run_processes_model.py) that operators perform. Each calls the server and the model and compares."""

    def operate(self):
        verbs = [self.op_retry, self.op_retry, self.op_edit, self.op_skip, self.op_move, self.op_pause, self.op_resume, self.op_cancel, self.op_migrate,
                 self.op_restart, self.op_bulk, self.op_list, self.op_counts, self.op_hold, self.op_dry_run, self.op_remember, self.op_remember]
        self.rng.choice(verbs)()

    def command(self, instance, verb, body, model):
        """Sends an operator's command. `model` applies it to the model and returns the expected status."""
        status, got = self.wire.rest('POST', f'{PATH}/instances/{instance.id}/{verb}', {'reason': 'because', **body})
        self.expect(f'{verb} {body} of {instance.id}', status, model())
        self.sync(instance)

    def of_status(self, *wanted):
        """A random instance, nearly always one with a wanted status; the others test the refusals."""
        known = [i for i in self.engine.instances if i.id and i not in self.lost]
        fitting = [i for i in known if i.status in wanted]
        return self.rng.choice(fitting if fitting and self.rng.random() < 0.9 else known) if known else None

    def op_retry(self):
        if instance := self.of_status('FAILED'):
            variables = {'nowhere': 1, **model_definitions.Expressions(self.rng).variables()}
            failed = next((t.step['id'] for t in instance.tokens if t.state == 'failed'), None)
            if failed and self.rng.random() < 0.4:
                status, _ = self.wire.rest('POST', f'/v1/instances/{instance.id}/steps/{failed}/retry', {'variables': variables})
                self.expect(f'retry of {failed} of {instance.id}', status, instance.retry(variables))
                return self.sync(instance)
            self.command(instance, 'retry', {'variables': variables}, lambda: instance.retry(variables))

    def op_edit(self):
        if instance := self.some_instance():
            variables, remove = model_definitions.Expressions(self.rng).result(), ['w1'] if self.rng.random() < 0.3 else []
            self.command(instance, 'variables', {'variables': variables, 'remove': remove}, lambda: instance.edit(variables, remove))

    def somewhere(self, instance):
        """A step at which the instance has a token, or sometimes a step that does not exist."""
        here = [t.step['id'] for t in instance.tokens]
        return self.rng.choice(here) if here and self.rng.random() < 0.9 else 'nowhere'

    def op_skip(self):
        if instance := self.some_instance():
            step = self.somewhere(instance)
            self.command(instance, 'skip', {'stepId': step}, lambda: instance.skip(step))

    def op_move(self):
        if instance := self.some_instance():
            step, to = self.somewhere(instance), self.rng.choice([s for s in instance.definition.steps.values()])
            self.command(instance, 'move', {'from': step, 'to': to['id']}, lambda: instance.move(step, to['id']))

    def op_cancel(self):
        if instance := self.of_status('FAILED'):
            self.command(instance, 'cancel', {}, lambda: instance.call_off('because'))

    def op_pause(self):
        if instance := self.some_instance():
            self.command(instance, 'pause', {}, instance.pause)

    def op_resume(self):
        if instance := self.some_instance():
            paused = [i for i in self.engine.instances if i.paused and i not in self.lost]
            instance = self.rng.choice(paused) if paused else instance
            self.command(instance, 'resume', {}, instance.resume_all)

    def op_migrate(self):
        instance = self.of_status('ACTIVE', 'WAITING', 'FAILED')
        if not instance:
            return
        document, names = renamed(self.rng, instance.definition.document)
        status, got = self.wire.rest('POST', '/v1/definitions', document)
        self.expect(f'upload of {document}', status, 201)
        if status != 201:
            return
        made = dict(instance.definition.expressions)
        definition = self.engine.upload(document, made) if got['version'] > len(self.engine.definitions[document['id']]) else self.engine.definitions[document['id']][got['version'] - 1]
        body = {'version': definition.version, 'steps': {k: v for k, v in names.items() if k != v}}
        _, plan = self.wire.rest('POST', f'{PATH}/instances/{instance.id}/migrate', {**body, 'preview': True})
        over = instance.status in ('COMPLETED', 'CANCELLED')
        moves = sorted((t.step['id'], names[t.step['id']]) for t in instance.tokens)
        self.expect(f'plan for {instance.id}', (bool(plan.get('problems')), sorted((m['from'], m['to']) for m in plan.get('moves', []))), (over, moves))
        self.command(instance, 'migrate', body, lambda: instance.migrate(definition, names))

    def op_restart(self):
        instance = self.some_instance()
        if not instance or not instance.history:
            return
        last = {e.step: e for e in instance.history}  # of several visits to a step, the last one
        execution, more = self.rng.choice(list(last.values())), {'again': 1}
        status, got = self.wire.rest('POST', f'{PATH}/instances/{instance.id}/restart', {'reason': 'because', 'stepId': execution.step, 'variables': more})
        self.expect(f'restart of {instance.id} from {execution.step}', status, 201)
        if status != 201:
            return
        made = model_processes.Instance(self.engine, execution.definition, {**execution.before, **more}, instance.business_key)
        made.id, made.previous = got['id'], instance
        self.engine.instances.append(made)
        made.enter(execution.step, ())
        made.settle()
        self.sync(made)

    def op_bulk(self):
        definition = self.rng.choice(list(self.engine.definitions))
        verb, status = self.rng.choice([('pause', 'ACTIVE'), ('pause', 'WAITING'), ('resume', 'ACTIVE'), ('resume', 'WAITING'), ('retry', 'FAILED'), ('cancel', 'FAILED')])
        mine = [i for i in self.engine.instances if i.definition.id == definition and i.status == status]
        if any(i.definition.id == definition for i in self.lost) or not all(i.id for i in mine):
            return
        model = {'pause': lambda i: i.pause(), 'resume': lambda i: i.resume_all(), 'retry': lambda i: i.retry({}), 'cancel': lambda i: i.call_off('because')}[verb]
        _, got = self.wire.rest('POST', f'{PATH}/bulk/{verb}', {'reason': 'because', 'filter': {'definitionId': definition, 'status': status}})
        done = sum(model(i) == 200 for i in mine)
        self.expect(f'bulk {verb} of {definition} {status}', (got.get('matched'), got.get('succeeded'), got.get('failed')), (len(mine), done, len(mine) - done))
        for instance in mine:
            self.sync(instance)

    def op_list(self):
        """Lists instances by random combinations of filters, page by page, and compares ids and order."""
        definition, r = self.rng.choice(list(self.engine.definitions)), self.rng
        if any(i.definition.id == definition for i in self.lost) or not all(i.id for i in self.engine.instances):
            return
        n = r.randint(0, 9)
        filters = {'status': (r.choice(['ACTIVE', 'WAITING', 'COMPLETED', 'FAILED']), lambda i, v: i.status == v), 'businessKey': ('key-1', lambda i, v: i.business_key == v),
                   'step': (r.choice(list(self.engine.latest(definition).steps)), lambda i, v: v in i.current()), 'paused': ('true', lambda i, v: i.paused),
                   'variable': (f'o0.k={n}', lambda i, v: isinstance(i.variables.get('o0'), dict) and same(i.variables['o0'].get('k'), n))}
        chosen = {k: filters[k] for k in r.sample(list(filters), r.choice([0, 1, 1, 2]))}
        want = {i.id for i in self.engine.instances if i.definition.id == definition and all(fits(i, v) for v, fits in chosen.values())}
        query, seen, cursor = urllib.parse.urlencode({'definitionId': definition, 'limit': 3, **{k: v for k, (v, _) in chosen.items()}}), [], ''
        while True:
            _, page = self.wire.rest('GET', f'{PATH}/instances?{query}' + (f'&cursor={cursor}' if cursor else ''))
            seen += page['items']
            cursor = page.get('cursor')
            if not cursor:
                break
        self.expect(f'list {query}', sorted(i['id'] for i in seen), sorted(want))
        started = [i['startedAt'] for i in seen]
        self.expect(f'order of {query}', started, sorted(started, reverse=True))
        if set(chosen) <= {'status', 'businessKey'}:
            _, page = self.wire.rest('GET', f'/v1/instances?{query}&pageSize=500')
            self.expect(f'/v1 list {query}', (page['total'], [i['id'] for i in page['items'] or []]), (len(want), [i['id'] for i in seen]))

    def op_counts(self):
        """Compares the overviews: instances by status, open user tasks, jobs by type."""
        if self.lost or not all(i.id for i in self.engine.instances):
            return
        mine = {}
        for i in self.engine.instances:
            mine.setdefault(i.definition.id, {}).setdefault(i.status, 0)
            mine[i.definition.id][i.status] += 1
        _, got = self.wire.rest('GET', f'{PATH}/definitions')
        self.expect('/definitions', {d['definitionId']: d['instances'] for d in got['items'] if d['definitionId'] in self.engine.definitions and d['instances']}, mine)
        definition = self.rng.choice(list(self.engine.definitions))
        _, got = self.wire.rest('GET', f'{PATH}/tasks?definitionId={definition}&limit=500')
        open = [(i.id, t.step['id']) for i in self.engine.instances if i.definition.id == definition and i.live() for t in i.tokens if t.step['type'] == 'USER_TASK' and t.state == 'running']
        self.expect(f'/tasks of {definition}', sorted((t['instanceId'], t['stepId']) for t in got['items']), sorted(open))
        _, got = self.wire.rest('GET', f'{PATH}/job-types')
        theirs = {j['jobType']: j['offered'] + j['leased'] for j in got['items'] if j['jobType'] in self.types}
        now = time.time()
        if not any(now - 1 < j.free_at for j in self.engine.open_jobs() if not j.leased):  # a job in its backoff is neither offered nor leased
            self.expect('/job-types', {k: n for k, n in theirs.items() if n}, {k: n for k in self.types if (n := sum(j.type == k for j in self.engine.open_jobs()))})

    def op_hold(self):
        """Pauses a job type, which then offers no jobs, or a definition, which then refuses starts; then resumes it."""
        kind, definition = self.rng.choice(self.types), self.rng.choice(list(self.engine.definitions))
        if self.rng.random() < 0.5:
            self.expect(f'pause of {kind}', self.wire.rest('POST', f'{PATH}/job-types/{kind}/pause', {'reason': 'because'})[0], 200)
            self.expect(f'poll of the paused {kind}', self.wire.poll('rest', [kind], 5, 30), [])
            self.expect(f'resume of {kind}', self.wire.rest('POST', f'{PATH}/job-types/{kind}/resume', {'reason': 'because'})[0], 200)
        else:
            self.expect(f'pause of {definition}', self.wire.rest('POST', f'{PATH}/definitions/{definition}/pause', {'reason': 'because'})[0], 200)
            self.expect(f'start of the paused {definition}', self.wire.rest('POST', '/v1/instances', {'definitionId': definition})[0], 409)
            self.expect(f'resume of {definition}', self.wire.rest('POST', f'{PATH}/definitions/{definition}/resume', {'reason': 'because'})[0], 200)

    def op_dry_run(self):
        definition = self.rng.choice([v for versions in self.engine.definitions.values() for v in versions])
        variables, script = model_definitions.Expressions(self.rng).variables(), self.script(definition)
        status, got = self.wire.rest('POST', f'{PATH}/dry-run', {'definitionId': definition.id, 'definitionVersion': definition.version, 'variables': variables, 'script': script})
        self.expect(f'dry run of {definition.id}', status, 200)
        if status != 200:
            return
        # A dry run does not start the next workflow.
        alone = copy.copy(definition)
        alone.document = {**definition.document, 'nextWorkflowId': ''}
        model = model_processes.Engine().start(alone, variables)
        self.play(model, script)
        path = [(e.step, e.attempt, e.status) for e in sorted((e for e in model.history if e.ended), key=lambda e: e.ended)]
        theirs = [(p['stepId'], p['attempt'], p['status']) for p in got['path'] if 'event' not in p]
        self.asked += 1
        if not same([got['status'], got['currentStepIds'], got['variables']], [model.status, model.current(), model.variables]) or path != theirs:
            self.problem(f'dry run of {definition.id}: server {got}\n    model {model.status} {model.current()} {model.variables} {path}\n    {definition.document}\n    {variables} {script}')

    def script(self, definition):
        made = {}
        for id, step in definition.steps.items():
            if step['type'] in ('SERVICE_TASK', 'USER_TASK', 'WAIT') and self.rng.random() < 0.7:
                results = [{'variables': model_definitions.Expressions(self.rng).result()} for _ in range(self.rng.randint(1, 2))]
                if step['type'] == 'SERVICE_TASK' and self.rng.random() < 0.3:
                    results.insert(0, {'error': 'scripted', 'retryable': self.rng.random() < 0.7})
                if step.get('boundaryEvents') and self.rng.random() < 0.5:
                    results.insert(0, {'timer': self.rng.randrange(len(step['boundaryEvents']))})
                made[id] = results
        return made

    def play(self, model, script):
        """Applies a script to the model as a dry run does: each time the first running token gets the next result of its step. The last result
        of a step is used for all later visits."""
        visits = {}
        while model.live():
            token = next((t for t in model.tokens if t.state == 'running' and t.step['type'] != 'JOIN_GATEWAY'), None)
            if not token:
                return
            id = token.step['id']
            visit = visits[id] = visits.get(id, -1) + 1
            result = script[id][min(visit, len(script[id]) - 1)] if id in script else {}
            timer = next((t for t in token.timers if t.index == result.get('timer')), None)
            if 'timer' in result:
                if timer:
                    model.fire(timer)
            elif 'error' in result:
                model.fail_job(token.job, result['error'], result['retryable'])
            elif token.job:
                model.complete_job(token.job, result.get('variables', {}))
            else:
                model.resume(id, token.step['type'], result.get('variables', {}), None)

    def op_remember(self):
        """Remembers the shown state of an instance together with its last event, for recall(). Also checks that the changes in all events
        add up to the variables, and that each change names the value before it."""
        instance = self.some_instance()
        if not instance:
            return
        self.sync(instance)
        _, shown = self.wire.rest('GET', f'/v1/instances/{instance.id}')
        _, events = self.wire.rest('GET', f'{PATH}/instances/{instance.id}/events')
        _, again = self.wire.rest('GET', f'/v1/instances/{instance.id}')
        if instance in self.lost or not same(shown, again):
            return
        self.remembered.append((instance, events['items'][-1]['event'], shown))
        variables, entered = {}, 0
        for event in events['items']:
            entered += sum(f['kind'] == 'entered' for f in event['facts'])
            for name, change in event['variables'].items():
                if 'from' in change and not same(change['from'], variables.get(name)) or 'from' not in change and name in variables:
                    self.problem(f'{instance.id} event {event["event"]}: {name} was {variables.get(name)}, it says {change}')
                variables.pop(name, None)
                if 'to' in change:
                    variables[name] = change['to']
        self.expect(f'events of {instance.id}', (same(variables, instance.variables), entered), (True, len(instance.history)))

    def recall(self):
        """Reads each remembered instance as of its event. The answer must be what was shown at that time."""
        for instance, event, shown in self.remembered:
            _, then = self.wire.rest('GET', f'{PATH}/instances/{instance.id}/events/{event}')
            # The instance learns later which instances were chained or restarted from it.
            self.expect(f'{instance.id} as of {event}', {k: v for k, v in then.items()}, shown)
