"""Random process definitions and expressions from a seed: valid ones that model_processes.py can run, and broken ones together with the
messages that the server must give."""
import random

from model_processes import Rule, same

POLICIES = ['U', 'F', 'A', 'R', 'C', 'C+', 'C#', 'C>', 'C<']
# Timers that fire during a run, each used once in a definition, and timers that are never due.
SHORT = ['PT0.3S', 'PT0.35S', 'PT0.4S', 'PT0.45S', 'PT0.5S', 'PT0.55S']
LONG = ['PT1H', 'P7D', 'P1DT2H', 'P1M', 'P2W', 'P1Y', 'PT90M', 'PT36000S']


class Expression:
    """An expression: its text, the variables it uses, and a function that computes its value as the contract defines it. A variable
    that does not exist is a failure by rule."""

    def __init__(self, text, names, run):
        self.text, self.names, self.run = text, names, run

    def value(self, variables):
        for name in self.names:
            if name not in variables:
                raise Rule(name)
        return self.run(variables)


def number_of(v):
    if isinstance(v, bool) or not isinstance(v, (int, float)):
        raise Rule()
    return v


def compare(op, a, b):
    if op in ('==', '!='):
        return same(a, b) == (op == '==')
    both = (str, str) if isinstance(a, str) and isinstance(b, str) else None
    if not both:
        a, b = number_of(a), number_of(b)
    return {'<': a < b, '<=': a <= b, '>': a > b, '>=': a >= b}[op]


class Expressions:
    """Makes random expressions over the variables that instances usually have: numbers n0, n1, f0; texts s0, s1; booleans b0, b1; a list
    l0; an object o0. `made` keeps every expression by its text."""

    def __init__(self, rng):
        self.rng, self.made = rng, {}

    def variables(self):
        """Variables of a new instance. One in fifty is left out, so that expressions sometimes fail."""
        r = self.rng
        whole = {'n0': r.randint(-5, 20), 'n1': r.choice([0, 1, 7, 2**53 + 1]), 'f0': r.randint(-9, 9) / 2, 's0': r.choice('abc'), 's1': 'word',
                 'b0': r.random() < 0.5, 'b1': r.random() < 0.5, 'l0': [r.randint(0, 5) for _ in range(r.randint(0, 4))],
                 'o0': {'k': r.randint(0, 9), 'm': {'z': r.randint(0, 9)}}}
        return {k: v for k, v in whole.items() if r.random() < 0.98}

    def result(self):
        """Variables that a worker, a user task or a signal brings. Repeated names exercise the deep merge of objects."""
        r = self.rng
        return {k: v for k, v in [('n0', r.randint(-5, 20)), ('s0', r.choice('abc')), ('b0', r.random() < 0.5), ('o0', {'k': r.randint(0, 9)}),
                                  ('o0', {'m': {'y': 1}}), ('o0', {'m': {'z': r.randint(0, 9)}, 'k': 3, 'l': [1]}), ('l0', [r.randint(0, 5)]),
                                  ('w0', None), ('w1', {'a': {'b': r.randint(0, 3)}}), ('w1', {'a': {'c': [1, {'d': 2}]}})] if r.random() < 0.2}

    def reference(self, name, bare=False):
        """A variable, in one of the three notations. `bare` allows only the plain name, for use inside "${...}"."""
        text = name if bare else self.rng.choice([name, name, '#' + name, '${' + name + '}'])
        return Expression(text, {name}, lambda v: v[name])

    def number(self, depth=1, bare=False):
        r = self.rng
        kind = r.random()
        if depth and kind < 0.35:
            a, b, op = self.number(depth - 1, bare), self.number(depth - 1, bare), r.choice('+-*')
            run = {'+': lambda x, y: x + y, '-': lambda x, y: x - y, '*': lambda x, y: x * y}[op]
            return Expression(f'({a.text} {op} {b.text})', a.names | b.names, lambda v: run(number_of(a.run(v)), number_of(b.run(v))))
        if kind < 0.42:
            a = self.number(0, bare)
            return Expression(f'{a.text} / 4', a.names, lambda v: number_of(a.run(v)) / 4)
        if kind < 0.5:
            name = r.choice(['l0', 's1', 'o0'])
            return Expression(f'len({name})', {name}, lambda v: length(v[name]))
        if kind < 0.6:
            path = r.choice([['k'], ['m', 'z'], ['m', 'y']])
            return Expression('.'.join(['o0'] + path), {'o0'}, lambda v: walk(v['o0'], path))
        if kind < 0.8:
            return self.reference(r.choice(['n0', 'n0', 'f0']), bare)
        n = r.choice([0, 1, 2, 3, 7, 12, 0.5, 2.5])
        return Expression(str(n), set(), lambda v: n)

    def boolean(self, depth=1, bare=False):
        r = self.rng
        kind = r.random()
        if depth and kind < 0.3:
            a, b, op = self.boolean(depth - 1, bare), self.boolean(depth - 1, bare), r.choice(['&&', '||'])
            return Expression(f'({a.text} {op} {b.text})', a.names | b.names,
                              (lambda v: truth(a.run(v)) and truth(b.run(v))) if op == '&&' else (lambda v: truth(a.run(v)) or truth(b.run(v))))
        if depth and kind < 0.36:
            a = self.boolean(depth - 1, bare)
            return Expression(f'!({a.text})', a.names, lambda v: not truth(a.run(v)))
        if kind < 0.48:
            return self.reference(r.choice(['b0', 'b1']), bare)
        if kind < 0.6:
            a, text = self.reference('s0', bare), r.choice('abc')
            op = r.choice(['==', '!=', '<'])
            return Expression(f"{a.text} {op} '{text}'", a.names, lambda v: compare(op, a.run(v), text))
        if kind < 0.7:
            n = r.randint(0, 5)
            text = r.choice([f'{n} in l0', f'contains(l0, {n})'])
            return Expression(text, {'l0'}, lambda v: among(n, v['l0']))
        a, b, op = self.number(depth, bare), self.number(0, bare), r.choice(['==', '!=', '<', '<=', '>', '>='])
        if not a.names and not b.names:
            a = self.reference('n0', bare)
        return Expression(f'{a.text} {op} {b.text}', a.names | b.names, lambda v: compare(op, a.run(v), b.run(v)))

    def condition(self):
        """The text of a branch or of a table's cell: a boolean; one in twenty-five fails (an unknown variable, or a number)."""
        made = self.boolean(self.rng.randint(0, 2))
        kind = self.rng.random()
        if kind < 0.02:
            made = Expression('nowhere == 1', {'nowhere'}, lambda v: v['nowhere'] == 1)
        elif kind < 0.04:
            made = Expression('n0 + 1', {'n0'}, lambda v: number_of(v['n0']) + 1)
        return self.keep(made.text, made)

    def always(self):
        return self.keep('true', Expression('true', set(), lambda v: True))

    def output(self, numeric=False):
        """A literal or "${expression}" for a TRANSFORMATION or a table."""
        r = self.rng
        if r.random() < 0.5:
            made = self.number(1, bare=True) if numeric or r.random() < 0.5 else self.boolean(1, bare=True)
            return self.keep('${' + made.text + '}', made)
        return r.choice([1, 2, 3.5, 0, -4]) if numeric else r.choice([1, 'text', True, None, [1, 'x'], {'k': 4}, 'a ${b}', 2.5])

    def keep(self, text, made):
        self.made[text] = made
        return text


def truth(v):
    if not isinstance(v, bool):
        raise Rule()
    return v


def length(v):
    if not isinstance(v, (str, list, dict)):
        raise Rule()
    return len(v)


def walk(v, path):
    for name in path:
        if not isinstance(v, dict):
            raise Rule()
        v = v.get(name)
    return v


def among(n, values):
    if values is None:
        return False
    if not isinstance(values, list):
        raise Rule()
    return any(same(n, v) for v in values)


class Maker:
    """Builds a definition backwards: each block gets the step that follows it and returns its own first step. So every step leads to an
    END, and every step is reachable."""

    def __init__(self, rng, id, job_types, chain=None):
        self.rng, self.id, self.job_types, self.chain = rng, id, job_types, chain
        self.x, self.steps, self.short = Expressions(rng), {}, list(SHORT)
        rng.shuffle(self.short)

    def document(self):
        last = self.end()
        first = self.block(last, 0, self.rng.randint(2, 5))
        if first == last:
            first = self.wait(last)
        rest = [s for s in self.steps.values() if s['id'] != first]
        self.rng.shuffle(rest)
        made = {'id': self.id, 'name': 'Model ' + self.id, 'steps': [self.steps[first]] + rest}
        if self.chain:
            made.update(autoStartNextWorkflow=True, nextWorkflowId=self.chain)
        return made

    def add(self, type, **fields):
        id = f'{type[0].lower()}{len(self.steps)}'
        self.steps[id] = {'id': id, 'name': id.upper(), 'type': type, **{k: v for k, v in fields.items() if v is not None}}
        return id

    def block(self, next, depth, length):
        for _ in range(length):
            kinds = [self.service, self.service, self.user, self.wait, self.transformation, self.table]
            kinds += [self.decision, self.parallel, self.loop] if depth < 3 else []
            kind = self.rng.choice(kinds)
            next = kind(next, depth) if kind in (self.decision, self.parallel, self.loop) else kind(next)
        return next

    def end(self):
        return self.add('END', autoStartNextWorkflow=False if self.chain and self.rng.random() < 0.3 else None)

    def service(self, next):
        backoff = {'initial': 'PT0.2S', 'multiplier': 2, 'max': 'PT0.3S'} if self.rng.random() < 0.2 else None
        return self.add('SERVICE_TASK', jobType=self.rng.choice(self.job_types), nextStep=next, retryCount=self.rng.choice([None, 0, 1, 2]), retryBackoff=backoff, attemptTimeout=self.rng.choice([None, None, 'PT1H']),
                        boundaryEvents=self.timers(next), conditionalNextSteps=self.ways(next))

    def user(self, next):
        return self.add('USER_TASK', nextStep=next, boundaryEvents=self.timers(next), conditionalNextSteps=self.ways(next))

    def wait(self, next):
        return self.add('WAIT', nextStep=next, boundaryEvents=self.timers(next), conditionalNextSteps=self.ways(next))

    def ways(self, next):
        """conditionalNextSteps on a task. It belongs to DECISION steps, but the contract allows it on tasks, and it wins over nextStep."""
        if next is None or self.rng.random() > 0.1:
            return None
        return {self.x.condition(): self.transformation(next), self.x.always(): next}

    def timers(self, next):
        if next is None or self.rng.random() > 0.3:
            return None
        made = []
        for _ in range(self.rng.choice([1, 1, 2])):
            duration = self.short.pop() if self.short and self.rng.random() < 0.6 else self.rng.choice(LONG)
            made.append({'type': 'TIMER', 'duration': duration, 'interrupting': self.rng.random() < 0.5, 'targetStepId': self.handler(next)})
        return made

    def handler(self, next):
        """The target of a timer: back into the flow, a task before an END, or a task that has no next step."""
        kind = self.rng.random()
        if kind < 0.5:
            return next if self.rng.random() < 0.5 else self.rng.choice([self.service, self.user])(next)
        if kind < 0.7:
            return self.service(self.end())
        return self.rng.choice([self.service, self.user])(None)

    def transformation(self, next):
        names = self.rng.sample(['n0', 'f0', 't0', 't1', 'b1', 'o0'], self.rng.randint(1, 3))
        return self.add('TRANSFORMATION', nextStep=next, transformations={n: self.fitting(n) for n in names})

    def fitting(self, name):
        if name in ('n0', 'f0'):
            return self.x.output(numeric=True)
        if name == 'b1':
            made = self.x.boolean(1, bare=True)
            return self.x.keep('${' + made.text + '}', made)
        return {'k': self.rng.randint(0, 9), 'm': {'z': 2}} if name == 'o0' else self.x.output()

    def table(self, next):
        """A decision table with a random hit policy. Most tables end with a rule that always matches."""
        r, policy = self.rng, self.rng.choice(POLICIES)
        numeric = policy in ('C+', 'C>', 'C<') and r.random() < 0.9
        columns = r.sample(['t0', 't1', 't2'], r.randint(1, 2))
        rules = []
        for _ in range(r.randint(1, 4)):
            cells = {f'c{i}': self.x.condition() if r.random() < 0.85 else r.choice(['', '  ']) for i in range(r.choice([0, 1, 1, 1]))}
            if r.random() < 0.2:
                cells = {f'c{i}': self.x.keep(*(lambda b: (b.text, b))(self.x.reference(f'b{i}'))) for i in range(2)}
            outputs = {c: self.x.output(numeric) for c in columns if policy == 'A' or r.random() < 0.95}
            rules.append({k: v for k, v in [('when', cells), ('outputs', outputs)] if v or r.random() < 0.5})
        if policy == 'A' and r.random() < 0.7:
            rules = [{**rule, 'outputs': rules[0].get('outputs', {})} for rule in rules]
        if policy != 'U' and r.random() < 0.8:
            rules.append({'outputs': {c: rules[0].get('outputs', {}).get(c, 1) for c in columns}})
        return self.add('DECISION_TABLE', nextStep=next, hitPolicy=None if policy == 'U' and r.random() < 0.5 else policy, decisionTable={'rules': rules})

    def decision(self, next, depth):
        branches = {}
        for _ in range(self.rng.randint(1, 3)):
            text = self.x.condition()
            if text not in branches:
                branches[text] = self.end() if self.rng.random() < 0.1 else self.block(next, depth + 1, self.rng.randint(0, 2))
        if self.rng.random() < 0.9 or next not in branches.values():
            branches[self.x.always()] = next
        return self.add('DECISION', conditionalNextSteps=branches)

    def parallel(self, next, depth):
        join = self.add('JOIN_GATEWAY', nextStep=next)
        branches = [self.block(join, depth + 1, self.rng.choice([0, 1, 1, 2])) for _ in range(self.rng.randint(2, 3))]
        return self.add('PARALLEL_GATEWAY', parallelNextSteps=branches, joinStep=join)

    def loop(self, next, depth):
        """A block that runs twice, counted by a variable of its own."""
        name = f'c{len(self.steps)}'
        more, enough = f'{name} < 2', f'{name} >= 2'
        self.x.keep(more, Expression(more, {name}, lambda v: v[name] < 2))
        self.x.keep(enough, Expression(enough, {name}, lambda v: v[name] >= 2))
        plus = self.x.keep('${' + name + ' + 1}', Expression(name, {name}, lambda v: v[name] + 1))
        again = self.add('DECISION', conditionalNextSteps={})
        count = self.add('TRANSFORMATION', nextStep=again, transformations={name: plus})
        head = self.rng.choice([self.wait, self.user, self.service])(self.block(count, depth + 1, self.rng.randint(0, 1)))
        self.steps[again]['conditionalNextSteps'] = {more: head, enough: next}
        return self.add('TRANSFORMATION', nextStep=head, transformations={name: 0})


def valid(seed_rng, id, job_types, chain=None):
    """Returns (document, its expressions by text)."""
    maker = Maker(seed_rng, id, job_types, chain)
    return maker.document(), maker.x.made


def in_map_order(document):
    """The document as gRPC carries it. A protobuf map has no order, so the server tries branches in the order of their texts, and an empty
    `when` of a rule is the same as none."""
    def carried(step):
        if step.get('conditionalNextSteps'):
            step = {**step, 'conditionalNextSteps': dict(sorted(step['conditionalNextSteps'].items()))}
        if step.get('decisionTable'):
            step = {**step, 'decisionTable': {'rules': [{k: v for k, v in rule.items() if k != 'when' or v} for rule in step['decisionTable']['rules']]}}
        return step
    return {**document, 'steps': [carried(s) for s in document['steps']]}


def without_empty(document):
    """A definition as the server returns it: optional members with an empty value are left out."""
    def says(v):
        return v is not None and v is not False and v not in ('', 0, {}, [])
    return {k: [{name: x for name, x in step.items() if says(x) or name == 'autoStartNextWorkflow'} for step in v] if k == 'steps' else v for k, v in document.items() if says(v)}


def whole(id):
    """A valid definition with every step type; broken() changes it."""
    def step(id, type, **fields):
        return {'id': id, 'name': id.upper(), 'type': type, **fields}
    timer = {'type': 'TIMER', 'duration': 'PT1H', 'interrupting': True, 'targetStepId': 'late'}
    return {'id': id, 'name': 'Whole', 'steps': [
        step('work', 'SERVICE_TASK', jobType='j', nextStep='ask'), step('ask', 'USER_TASK', nextStep='park'), step('park', 'WAIT', nextStep='choose', boundaryEvents=[timer]),
        step('choose', 'DECISION', conditionalNextSteps={'a > 1': 'rate', 'true': 'set'}),
        step('rate', 'DECISION_TABLE', hitPolicy='F', nextStep='set', decisionTable={'rules': [{'when': {'c': 'a > 1'}, 'outputs': {'t': 1}}]}),
        step('set', 'TRANSFORMATION', transformations={'b': 1}, nextStep='fork'), step('fork', 'PARALLEL_GATEWAY', parallelNextSteps=['left', 'right'], joinStep='meet'),
        step('left', 'SERVICE_TASK', jobType='j', nextStep='meet'), step('right', 'WAIT', nextStep='meet'), step('meet', 'JOIN_GATEWAY', nextStep='end'),
        step('late', 'SERVICE_TASK', jobType='j', nextStep='end'), step('end', 'END')]}


# Rules of the contract's validation table that can be broken at one step: (step, change, words that one line of the
# answer must contain). An entry without a step breaks the definition itself.
BREAKS = [
    ('', lambda d, s: d.update(id=''), ['id is required']), ('', lambda d, s: d.update(id='my workflow'), ['"my workflow"', '^[A-Za-z0-9_:\\-]+$']),
    ('', lambda d, s: d.update(id='x' * 257), ['256']), ('name', lambda d, s: d.update(name=''), ['name is required']),
    ('next', lambda d, s: d.update(autoStartNextWorkflow=True), ['nextWorkflowId is required']),
    ('work', lambda d, s: s.pop('jobType'), ['step "work"', 'jobType is required']), ('work', lambda d, s: s.update(jobType=''), ['step "work"', 'jobType is required']),
    ('work', lambda d, s: s.update(nextStep='ghost'), ['step "work"', 'nextStep', 'unknown step "ghost"']), ('work', lambda d, s: s.update(name=''), ['step "work"', 'name is required']),
    ('ask', lambda d, s: s.update(type='HUMAN_TASK'), ['step "ask"', 'unsupported type "HUMAN_TASK"']), ('ask', lambda d, s: s.update(type='user_task'), ['step "ask"', 'unsupported type']),
    ('ask', lambda d, s: s.pop('type'), ['step "ask"', 'unsupported type']), ('ask', lambda d, s: d['steps'].append(dict(s)), ['duplicate step id', '"ask"']),
    ('park', lambda d, s: s.pop('nextStep'), ['step "park"', 'nextStep is required']), ('park', lambda d, s: s['boundaryEvents'][0].update(type='SIGNAL'), ['step "park"', 'unsupported type "SIGNAL"']),
    ('park', lambda d, s: s['boundaryEvents'][0].update(duration=''), ['step "park"', 'duration is required']),
    ('park', lambda d, s: s['boundaryEvents'][0].pop('duration'), ['step "park"', 'duration is required']),
    ('park', lambda d, s: s['boundaryEvents'][0].update(duration='10s'), ['step "park"', '"10s"', 'duration']),
    ('park', lambda d, s: s['boundaryEvents'][0].update(targetStepId='ghost'), ['step "park"', 'targetStepId', '"ghost"']),
    ('park', lambda d, s: s['boundaryEvents'][0].pop('targetStepId'), ['step "park"', 'targetStepId is required']),
    ('choose', lambda d, s: s.update(conditionalNextSteps={}), ['step "choose"', 'conditionalNextSteps must not be empty']),
    ('choose', lambda d, s: s.pop('conditionalNextSteps'), ['step "choose"', 'conditionalNextSteps must not be empty']),
    ('choose', lambda d, s: s['conditionalNextSteps'].update(x='ghost'), ['step "choose"', 'conditionalNextSteps', 'unknown step "ghost"']),
    ('rate', lambda d, s: s['decisionTable'].update(rules=[]), ['step "rate"', 'rules']), ('rate', lambda d, s: s.pop('decisionTable'), ['step "rate"', 'rules']),
    ('rate', lambda d, s: s.pop('nextStep'), ['step "rate"', 'nextStep is required']), ('rate', lambda d, s: s.update(nextStep='ghost'), ['step "rate"', 'unknown step "ghost"']),
    ('rate', lambda d, s: s.update(hitPolicy='X'), ['step "rate"', 'hitPolicy']), ('rate', lambda d, s: s.update(hitPolicy='U+'), ['step "rate"', 'hitPolicy']),
    ('rate', lambda d, s: s['decisionTable']['rules'][0].update(then='end'), ['step "rate"', 'then', 'migration']),
    ('rate', lambda d, s: s['decisionTable'].update(defaultNextStep='end'), ['step "rate"', 'defaultNextStep', 'migration']),
    ('rate', lambda d, s: s.update(conditionalNextSteps={'true': 'end'}), ['step "rate"', 'conditionalNextSteps']), ('rate', lambda d, s: s.update(transformations={'a': 1}), ['step "rate"', 'transformations']),
    ('rate', lambda d, s: s.update(parallelNextSteps=['end', 'end']), ['step "rate"', 'parallelNextSteps']), ('rate', lambda d, s: s.update(joinStep='meet'), ['step "rate"', 'joinStep']),
    ('rate', lambda d, s: s.update(jobType='j'), ['step "rate"', 'jobType']), ('rate', lambda d, s: s.update(delegateClass='c'), ['step "rate"', 'delegateClass']),
    ('rate', lambda d, s: s.update(retryCount=1), ['step "rate"', 'retryCount']),
    ('rate', lambda d, s: s.update(boundaryEvents=[{'type': 'TIMER', 'duration': 'PT1S', 'interrupting': True, 'targetStepId': 'end'}]), ['step "rate"', 'boundaryEvents']),
    ('set', lambda d, s: s.pop('nextStep'), ['step "set"', 'nextStep is required']), ('set', lambda d, s: s.update(transformations={}), ['step "set"', 'transformations must not be empty']),
    ('fork', lambda d, s: s.update(parallelNextSteps=['left']), ['step "fork"', 'parallelNextSteps must have at least 2 entries']),
    ('fork', lambda d, s: s.pop('parallelNextSteps'), ['step "fork"', 'parallelNextSteps must have at least 2 entries']),
    ('fork', lambda d, s: s.pop('joinStep'), ['step "fork"', 'joinStep is required']), ('fork', lambda d, s: s.update(joinStep='ghost'), ['step "fork"', 'joinStep', '"ghost"']),
    ('fork', lambda d, s: s['parallelNextSteps'].append('ghost'), ['step "fork"', 'parallelNextSteps', '"ghost"']),
    ('left', lambda d, s: s.update(name=''), ['step "left"', 'name is required']), ('right', lambda d, s: s.pop('nextStep'), ['step "right"', 'nextStep is required']),
    ('meet', lambda d, s: s.pop('nextStep'), ['step "meet"', 'nextStep is required']),
    ('late', lambda d, s: d['steps'].append({'id': 'island', 'name': 'I', 'type': 'END'}), ['step "island" is unreachable']),
    ('late', lambda d, s: d['steps'].append({'id': '', 'name': 'I', 'type': 'END'}), ['id is required', 'step[']),
    ('end', lambda d, s: s.update(type='USER_TASK'), ['no END step is reachable']),
]


def broken(rng, id):
    """A definition with one to eight broken rules. Returns (document, [words that one line of the answer must contain])."""
    document, wanted, touched = whole(id), [], set()
    for where, how, words in rng.sample(BREAKS, rng.choice([1, 1, 2, 3, 5, 8])):
        if where not in touched:
            touched.add(where)
            how(document, next((s for s in document['steps'] if s['id'] == where), None))
            wanted.append(words)
    return document, wanted
