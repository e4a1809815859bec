"""A model of the processes engine. It is written from the contract and from the description of definitions, not from the server's code.

It keeps instances, tokens, executions, jobs and timers as plain Python values and applies the rules of the contract to them.
run_processes_model.py makes the same calls on a real server and compares. The model has no clock: its driver calls fire() for a timer
that fired on the server.
"""
import copy, itertools

FINAL = {'COMPLETED', 'FAILED', 'CANCELLED'}
PARKED = {'USER_TASK', 'WAIT'}
# Orders the ends of executions, in place of a clock.
MOMENTS = itertools.count(1)


class Rule(Exception):
    """A failure of a step: the call that caused it succeeds, and the instance becomes FAILED. The words must be in its failureReason."""

    def __init__(self, *words):
        super().__init__(*words)
        self.words = words


def same(a, b):
    """JSON equality: true is not 1, 2.0 is 2, members in any order."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def deep_merge(into, more):
    """Merges objects recursively; any other value replaces the old one. Results of jobs are merged like this."""
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            deep_merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)


class Gateway:
    """One pass through a PARALLEL_GATEWAY, with the branches that have arrived at its join. `place` is the token that waits at the join."""

    def __init__(self, step):
        self.join, self.branches, self.arrived, self.place, self.fired = step['joinStep'], len(step['parallelNextSteps']), set(), None, False


class Execution:
    def __init__(self, step, attempt):
        self.step, self.type, self.attempt = step['id'], step['type'], attempt
        self.status, self.words, self.ended = 'RUNNING', (), 0
        self.id = self.started = None  # the server chooses both; the driver fills them in from an answer

    def end(self, status, *words):
        self.status, self.words, self.ended = status, words, next(MOMENTS)


class Job:
    def __init__(self, token, step, variables):
        self.token, self.type, self.retries, self.tries = token, step['jobType'], max(0, step.get('retryCount', 0)), 0
        # free_at: when the job is offered (again), in seconds since 1970. wait_s: its backoff after a failure. The
        # driver, which has the clock, turns wait_s into free_at.
        self.variables, self.id, self.free_at, self.wait_s, self.leased = copy.deepcopy(variables), None, 0, 0, False

    def offer(self, variables):
        self.variables, self.free_at, self.wait_s, self.leased = copy.deepcopy(variables), 0, 0, False

    def failed(self, backoff):
        self.id, self.retries, self.tries, self.free_at, self.leased = None, self.retries - 1, self.tries + 1, 0, False
        self.wait_s = min(backoff['initial'] * backoff['multiplier'] ** (self.tries - 1), backoff['max']) if backoff else 0


class Timer:
    def __init__(self, token, event, index):
        self.token, self.event, self.index = token, event, index
        self.due = self.left = None  # microseconds, set by the driver: the due time, or the time left while the instance does not run


class Token:
    """The place of an instance in its definition. Its scope lists the gateways around it, outermost first, each with the number of
        the branch that the token is in, or None when a timer started the token beside the branch."""

    def __init__(self, step, scope, execution, state='running'):
        self.step, self.scope, self.execution = step, scope, execution
        self.gateway = None  # the gateway whose branches it waits for; only at a join
        self.state, self.job, self.timers = state, None, []  # running, held (before its step), failed, or done (no step follows)


class Definition:
    def __init__(self, document, version, expressions):
        self.document, self.version, self.expressions = document, version, expressions
        self.id = document['id']
        self.steps = {s['id']: s for s in document['steps']}
        self.first = document['steps'][0]['id']

    @staticmethod
    def backoff(step):
        """The retryBackoff of a step, in seconds; the definitions here write them as PTnS."""
        given = step.get('retryBackoff')
        if given:
            return {'initial': float(given['initial'][2:-1]), 'multiplier': given.get('multiplier', 1), 'max': float(given.get('max', 'PT9999S')[2:-1])}

    def __deepcopy__(self, _):
        return self  # definitions never change, so copies of the engine share them


class Instance:
    def __init__(self, engine, definition, variables, business_key=None):
        self.engine, self.definition, self.business_key = engine, definition, business_key
        self.variables, self.status = copy.deepcopy(variables), 'ACTIVE'
        self.tokens, self.history, self.attempts = [], [], {}
        self.reason, self.next, self.previous, self.id = None, None, None, None
        self.paused = False

    def start(self):
        self.enter(self.definition.first, ())
        self.settle()
        return self

    # -- The visible state.

    def current(self):
        """currentStepIds: the steps of all tokens, each once, in the order of the tokens."""
        seen = []
        for token in self.tokens:
            if token.step['id'] not in seen:
                seen.append(token.step['id'])
        return seen

    def jobs(self):
        """The jobs that can be completed or failed. A paused instance does not offer its jobs but accepts the result of one that is leased."""
        return [t.job for t in self.tokens if t.job and t.state == 'running'] if self.live() else []

    def quiet(self):
        """True while the instance offers no jobs and its timers stand still."""
        return self.paused or self.status == 'FAILED'

    def timers(self):
        return [timer for t in self.tokens if t.state == 'running' for timer in t.timers] if self.status in ('ACTIVE', 'WAITING', 'FAILED') else []

    def live(self):
        return self.status not in FINAL

    def at(self, step, *types):
        return next((t for t in self.tokens if t.step['id'] == step and t.state == 'running' and t.step['type'] in types), None)

    def settle(self):
        """Sets ACTIVE or WAITING: an instance waits when a token is at a user task or a WAIT step."""
        if self.live():
            parked = any(t.step['type'] in PARKED and t.state == 'running' for t in self.tokens)
            self.status = 'WAITING' if parked else 'ACTIVE'

    # -- Steps.

    def enter(self, step_id, scope):
        if self.status in ('COMPLETED', 'CANCELLED'):
            return
        step = self.definition.steps[step_id]
        if self.status == 'FAILED' or self.paused:  # the token stays before the step until an operator continues the instance
            return self.tokens.append(Token(step, scope, None, 'held'))
        if step['type'] == 'JOIN_GATEWAY':
            return self.arrive(step, scope)
        execution = self.execution(step)
        token = Token(step, scope, execution)
        self.tokens.append(token)
        try:
            getattr(self, 'run_' + step['type'].lower())(token, step)
        except Rule as failure:
            self.fail(token, *failure.words)

    def execution(self, step):
        self.attempts[step['id']] = self.attempts.get(step['id'], 0) + 1
        execution = Execution(step, self.attempts[step['id']])
        execution.before, execution.definition = copy.deepcopy(self.variables), self.definition
        self.history.append(execution)
        return execution

    def leave(self, token, target, status='COMPLETED', *words):
        token.execution.end(status, *words)
        self.tokens.remove(token)
        if target:
            self.enter(target, token.scope)

    def fail(self, token, *words):
        token.execution.end('FAILED', *words)
        token.state, token.timers = 'failed', []
        if self.live():
            self.status, self.reason = 'FAILED', words

    def park(self, token, step):
        token.timers = [Timer(token, event, n) for n, event in enumerate(step.get('boundaryEvents', []))]

    def run_service_task(self, token, step):
        token.job = Job(token, step, self.variables)
        self.engine.jobs.append(token.job)
        self.park(token, step)

    def run_user_task(self, token, step):
        self.park(token, step)

    run_wait = run_user_task

    def run_decision(self, token, step):
        self.leave(token, self.branch(step))

    def branch(self, step):
        for text, target in step['conditionalNextSteps'].items():
            value = self.definition.expressions[text].value(self.variables)
            if not isinstance(value, bool):
                raise Rule('not bool')
            if value:
                return target
        raise Rule('DecisionNoBranchMatched')

    def done(self, token):
        """Leaves a task or a WAIT step. conditionalNextSteps, if the step has any, are evaluated before nextStep."""
        try:
            target = self.branch(token.step) if 'conditionalNextSteps' in token.step else token.step.get('nextStep')
        except Rule as failure:
            return self.fail(token, *failure.words)
        if target or token.step['type'] != 'SERVICE_TASK':
            return self.leave(token, target)
        token.execution.end('COMPLETED')
        token.state, token.job, token.timers = 'done', None, []

    def encoded(self, value):
        """A value of a transformation or table: "${...}" is evaluated, everything else is a literal."""
        expressions = self.definition.expressions
        return expressions[value].value(self.variables) if isinstance(value, str) and value.startswith('${') and value.endswith('}') else value

    def run_transformation(self, token, step):
        made = {k: self.encoded(v) for k, v in step['transformations'].items()}
        self.variables.update(copy.deepcopy(made))
        self.leave(token, step['nextStep'])

    def run_decision_table(self, token, step):
        policy = step.get('hitPolicy', 'U')
        matched = []
        for rule in step['decisionTable']['rules']:
            if self.matches(rule):
                matched.append(rule)
                if policy == 'F':
                    break
        if not matched:
            raise Rule('DecisionTableNoRuleMatched')
        if policy == 'U' and len(matched) > 1:
            raise Rule('DecisionTableUniqueViolation')
        outputs = [{k: self.encoded(v) for k, v in r.get('outputs', {}).items()} for r in matched]
        self.variables.update(copy.deepcopy(collapse(policy, outputs)))
        self.leave(token, step['nextStep'])

    def matches(self, rule):
        for text in rule.get('when', {}).values():
            if not text.strip():
                continue
            value = self.definition.expressions[text].value(self.variables)
            if not isinstance(value, bool):
                raise Rule('DecisionTableCellError')
            if not value:
                return False
        return True

    def run_parallel_gateway(self, token, step):
        gateway = Gateway(step)
        token.execution.end('COMPLETED')
        self.tokens.remove(token)
        for branch, target in enumerate(step['parallelNextSteps']):
            self.enter(target, token.scope + ((gateway, branch),))

    def arrive(self, step, scope):
        """A token arrives at a join. Each arrival is an execution of its own. A branch counts once, and a token that a timer started beside
        a branch does not count."""
        around = [i for i, (gateway, _) in enumerate(scope) if gateway.join == step['id']]
        if not around:  # an operator moved the token here from outside the gateway: there is nothing to wait for
            self.execution(step).end('COMPLETED')
            return self.enter(step['nextStep'], scope)
        depth = around[-1]
        gateway, branch = scope[depth]
        if branch is None or gateway.fired:
            return
        gateway.arrived.add(branch)
        execution = self.execution(step)
        if gateway.place:
            execution.end('COMPLETED')
        else:
            gateway.place = Token(step, scope[:depth], execution)
            gateway.place.gateway = gateway
            self.tokens.append(gateway.place)
        if len(gateway.arrived) == gateway.branches:
            gateway.fired = True
            gateway.place.execution.end('COMPLETED')
            self.tokens.remove(gateway.place)
            # An outer gateway may have the same join. Then this arrival completes only a branch of the outer gateway.
            again = any(around.join == step['id'] for around, _ in scope[:depth])
            self.enter(step['id'] if again else step['nextStep'], scope[:depth])

    def run_end(self, token, step):
        token.execution.end('COMPLETED')
        self.tokens.remove(token)
        self.withdraw('COMPLETED')
        document = self.definition.document
        if step.get('autoStartNextWorkflow', document.get('autoStartNextWorkflow', False)) and document.get('nextWorkflowId'):
            self.next = Instance(self.engine, self.engine.latest(document['nextWorkflowId']), self.variables)
            self.next.previous = self
            self.engine.instances.append(self.next)
            self.next.start()

    def withdraw(self, status):
        """Ends the instance: all tokens are removed, and executions that run are SKIPPED."""
        self.paused = False
        for token in self.tokens:
            if token.execution and token.execution.status == 'RUNNING':
                token.execution.end('SKIPPED')
        self.tokens, self.status = [], status

    # -- Calls from outside. Each returns the HTTP status of its answer.

    def complete_job(self, job, variables):
        if job not in self.jobs():
            return 204
        deep_merge(self.variables, variables)
        self.done(job.token)
        self.settle()
        return 204

    def fail_job(self, job, message, retryable):
        if job not in self.jobs():
            return 204
        if retryable and job.retries > 0:
            # The next attempt is a job of its own: a late or repeated result of this one changes nothing.
            again = job.token.job = copy.copy(job)
            again.failed(self.definition.backoff(job.token.step))
            self.engine.jobs.append(again)
        else:
            self.fail(job.token, message)
        return 204

    def complete_task(self, step_id, variables):
        step = self.definition.steps.get(step_id)
        if not step:
            return 404
        if step['type'] != 'USER_TASK':
            return 400
        return self.resume(step_id, 'USER_TASK', variables, 404)

    def signal(self, step_id, variables):
        step = self.definition.steps.get(step_id)
        if not step:
            return 409
        if step['type'] != 'WAIT':
            return 400
        return self.resume(step_id, 'WAIT', variables, 409)

    def resume(self, step_id, kind, variables, otherwise):
        if not self.live():
            return 409
        token = self.at(step_id, kind)
        if not token:
            return otherwise
        self.variables.update(copy.deepcopy(variables))
        self.done(token)
        self.settle()
        return 204

    def cancel(self, reason):
        if not self.live():
            return 409
        self.withdraw('CANCELLED')
        self.reason = (reason,)
        return 200

    def fire(self, timer):
        """A timer is due. An interrupting one takes the token to its target; another one starts a token beside it."""
        token, event = timer.token, timer.event
        token.timers.remove(timer)
        if event['interrupting']:
            self.leave(token, event['targetStepId'], 'FAILED', 'interrupted by boundary timer')
        else:
            self.enter(event['targetStepId'], tuple((gateway, None) for gateway, _ in token.scope))
        self.settle()


    # -- Commands of operators. Each returns the HTTP status of its answer.

    def revive(self):
        """Continues an instance: jobs are offered again with the current variables, and held tokens enter their steps."""
        if self.paused:
            return
        for job in self.jobs():
            job.offer(self.variables)
        held = [t for t in self.tokens if t.state == 'held']
        self.tokens = [t for t in self.tokens if t.state != 'held']
        for token in held:
            self.enter(token.step['id'], token.scope)
        self.settle()

    def set(self, variables, remove=()):
        self.variables.update(copy.deepcopy(variables))
        for name in remove:
            self.variables.pop(name, None)

    def retry(self, variables):
        if self.status != 'FAILED':
            return 409
        self.set(variables)
        self.go_on()
        return 200

    def go_on(self):
        """Continues a FAILED instance: failed tokens enter their steps again."""
        self.status, self.reason = 'ACTIVE', None
        for token in self.tokens:
            if token.state == 'failed':
                token.state = 'held'
        self.revive()
        self.settle()

    def edit(self, variables, remove):
        if self.status in ('COMPLETED', 'CANCELLED'):
            return 409
        self.set(variables, remove)
        return 200

    def meant(self, step_id):
        """The token that a command is about, or the status that refuses it. Without a step it is the failed one, or the only one."""
        if step_id:
            return next((t for t in self.tokens if t.step['id'] == step_id), 409)
        failed = [t for t in self.tokens if t.state == 'failed']
        return failed[0] if failed else self.tokens[0] if len(self.tokens) == 1 else 400

    def skip(self, step_id):
        if self.status in ('COMPLETED', 'CANCELLED'):
            return 409
        token = self.meant(step_id)
        if isinstance(token, int):
            return token
        return self.relocate(token, token.step['nextStep']) if token.step.get('nextStep') else 400

    def move(self, step_id, to):
        if self.status in ('COMPLETED', 'CANCELLED'):
            return 409
        if to not in self.definition.steps:
            return 400
        token = self.meant(step_id)
        return token if isinstance(token, int) else self.relocate(token, to)

    def relocate(self, token, target):
        """Puts a token before another step and continues the instance."""
        if token.state == 'running':
            token.execution.end('SKIPPED')
        if token.gateway:  # the token that waited at a join leaves it, so the join counts as fired and later arrivals end there
            token.gateway.fired = True
        self.tokens[self.tokens.index(token)] = Token(self.definition.steps[target], token.scope, None, 'held')
        if self.status == 'FAILED':
            self.go_on()
        elif not self.paused:
            held = [t for t in self.tokens if t.state == 'held']
            self.tokens = [t for t in self.tokens if t.state != 'held']
            for t in held:
                self.enter(t.step['id'], t.scope)
        self.settle()
        return 200

    def call_off(self, reason):
        if self.status in ('COMPLETED', 'CANCELLED'):
            return 409
        self.withdraw('CANCELLED')
        self.reason = (reason,)
        return 200

    def pause(self):
        if not self.live() or self.paused:
            return 409
        self.paused = True
        return 200

    def resume_all(self):
        if not self.paused:
            return 409
        self.paused = False
        if self.live():
            self.revive()
        return 200

    def migrate(self, definition, names):
        """Moves the instance to another version of its definition. `names` maps each old step id to the new one."""
        if self.status in ('COMPLETED', 'CANCELLED'):
            return 409
        steps = {old: definition.steps[new] for old, new in names.items()}
        for token in self.tokens:
            token.step = steps[token.step['id']]
            for timer in token.timers:
                timer.event = token.step['boundaryEvents'][timer.index]
            for gateway in [g for g, _ in token.scope] + [token.gateway or Gateway({'joinStep': '', 'parallelNextSteps': []})]:
                gateway.join = names.get(gateway.join, gateway.join)
        self.attempts = {names[k]: n for k, n in self.attempts.items()}
        self.definition = definition
        for job in [] if self.quiet() else self.jobs():
            job.type = job.token.step['jobType']
            job.offer(self.variables)
        return 200


def collapse(policy, outputs):
    """The outputs of the matched rules as one map, by the hit policy. C is collect; C+, C>, C< and C# are its aggregations."""
    if policy in ('U', 'F'):
        return outputs[0]
    columns = list(dict.fromkeys(k for o in outputs for k in o))
    if policy == 'A':
        for column in columns:
            if not all(same(o.get(column), outputs[0].get(column)) for o in outputs):
                raise Rule('DecisionTableAnyConflict')
        return outputs[0]
    if policy == 'C#':
        return {c: len(outputs) for c in columns}
    lists = {c: [o.get(c) for o in outputs] for c in columns}
    if policy in ('R', 'C'):
        return lists
    for values in lists.values():
        if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
            raise Rule('DecisionTableAggregatorTypeError')
    return {c: {'C+': sum, 'C>': max, 'C<': min}[policy](v) for c, v in lists.items()}


class Engine:
    """Definitions by id and version, instances in the order of their starts, and every job."""

    def __init__(self):
        self.definitions, self.instances, self.jobs = {}, [], []

    def upload(self, document, expressions):
        versions = self.definitions.setdefault(document['id'], [])
        made = Definition(document, len(versions) + 1, expressions)
        versions.append(made)
        return made

    def latest(self, id):
        return self.definitions[id][-1]

    def start(self, definition, variables, business_key=None):
        instance = Instance(self, definition, variables, business_key)
        self.instances.append(instance)
        return instance.start()

    def open_jobs(self):
        """Jobs that are offered or leased."""
        return [j for i in self.instances if not i.quiet() for j in i.jobs()]
