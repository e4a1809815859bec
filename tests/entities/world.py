"""A model of the entities face in memory: models, workflows, and entities with their history.

It is written from the contract. Unique keys, and sorting and groups in reads.py, are additions of Pawl and follow docs/reference/entities.md.
Two things are copied from the server, because the contract does not say them: which previous transition a criterion sees, and that the
default workflow is used only when it has the entity's state."""
import copy
from decimal import Decimal

from conditions import MISSING, matches, steps_of, walk
from schema import Num, Refused, admit, infer, merge

DEFAULT = {'name': 'default', 'initialState': 'NONE', 'active': True, 'states': {
    'NONE': {'transitions': [{'name': 'NEW', 'next': 'CREATED', 'manual': False}]},
    'CREATED': {'transitions': [{'name': 'UPDATE', 'next': 'CREATED', 'manual': True}, {'name': 'DELETE', 'next': 'DELETED', 'manual': True}]},
    'DELETED': {}}}
# Limits of automated transitions: visits of one state, and transitions in all.
MAX_VISITS, MAX_ROUNDS = 10, 100


class Failed(Exception):
    """The engine refuses the operation with the error code `code`."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


class Version:
    """One write of one entity. `when` is its time, as the server reported it. It is `pending` while its transaction is open."""

    pending = False

    def __init__(self, data, state, transition, tx, events=(), when=None, deleted=False):
        self.data, self.state, self.transition, self.tx, self.events, self.when, self.deleted = data, state, transition, tx, events, when, deleted


class Entity:
    def __init__(self, id, model, created):
        self.id, self.model, self.versions, self.created = id, model, [], created

    @property
    def now(self):
        return self.versions[-1]

    @property
    def alive(self):
        return not self.now.deleted

    def at(self, when):
        """The version that was current at a time; None before the creation and after the deletion."""
        found = None
        for v in self.versions:
            if v.when <= when and not v.pending:
                found = v
        return None if found is None or found.deleted else found

    def life(self, version):
        return {'state': version.state, 'creationDate': self.created, 'previousTransition': version.transition}


class Model:
    """One model with its workflows, unique keys and indexes."""

    def __init__(self, name, sample):
        self.name, self.node, self.locked, self.level = name, infer(sample), False, None
        self.workflows, self.unique, self.indexes = [], [], []
        self.known = None  # inside a transaction: the committed node, against which searches are checked

    def add_sample(self, sample):
        self.node = merge(self.node, infer(sample))

    # Workflows

    def import_workflows(self, mode, incoming):
        """Replaces, activates or merges workflows. Returns the code of the refusal, or None."""
        incoming = [dict(copy.deepcopy(w), active=True) for w in incoming]
        names = {w['name'] for w in incoming}
        if mode == 'REPLACE':
            kept = incoming
        elif mode == 'ACTIVATE':
            kept = [dict(w, active=False) for w in self.workflows if w['name'] not in names] + incoming
        else:
            by_name, kept = {w['name']: w for w in incoming}, []
            for w in self.workflows:
                kept.append(by_name.pop(w['name'], w))
            kept += by_name.values()
        if any(loops(w) or dangling(w) for w in kept):
            return 'VALIDATION_FAILED'
        self.workflows = kept
        return None

    def select(self, data, life, events):
        for w in self.workflows:
            if w['active'] and holds(w.get('criterion'), data, life):
                return w
            if w['active']:
                events.append(('WORKFLOW_SKIP', None))
        return DEFAULT

    def workflow_of_state(self, state):
        return next((w for w in self.workflows or [DEFAULT] if w['active'] and state in w['states']), None)

    # The machine. Each run returns (state, what the audit trail says of transitions and workflows).

    def machine_on_create(self, data, created):
        life, events = {'state': '', 'creationDate': created, 'previousTransition': ''}, []
        workflow = self.select(data, life, events)
        return cascade(workflow, data, dict(life, state=workflow['initialState']), events)

    def machine_on_update(self, data, life, transition):
        life = dict(life, previousTransition=transition or '')  # criteria see the transition of this write, '' when it names none
        workflow = self.workflow_of_state(life['state'])
        if transition is None:
            return (life['state'], []) if workflow is None else cascade(workflow, data, life, [])
        if workflow is None:
            raise Failed('WORKFLOW_FAILED')
        found = next((t for t in transitions(workflow, life['state']) if t['name'] == transition and not t.get('disabled')), None)
        if found is None:
            raise Failed('TRANSITION_NOT_FOUND')
        if not holds(found.get('criterion'), data, life):
            raise Failed('WORKFLOW_FAILED')
        return cascade(workflow, data, dict(life, state=found['next']), [('TRANSITION_MAKE', life['state'])])

    def transition_names(self, data, life):
        return [t['name'] for t in transitions(self.select(data, life, []), life['state'])]


def transitions(workflow, state):
    return workflow['states'].get(state, {}).get('transitions') or []


def holds(criterion, data, life):
    return criterion is None or matches(criterion, data, life)


def cascade(workflow, data, life, events):
    """Follows automated transitions until none fires. Returns (state, events). Too many rounds or visits fail."""
    life, visits = dict(life), {}
    for _ in range(MAX_ROUNDS):
        state = life['state']
        visits[state] = visits.get(state, 0) + 1
        if visits[state] > MAX_VISITS:
            raise Failed('WORKFLOW_FAILED')
        fired = None
        for t in transitions(workflow, state):
            if t.get('manual') or t.get('disabled'):
                continue
            if holds(t.get('criterion'), data, life):
                fired = t
                break
            events.append(('TRANSITION_NOT_MATCH_CRITERION', state))
        if fired is None:
            return state, events
        events.append(('TRANSITION_MAKE', state))
        life['state'] = fired['next']
    raise Failed('WORKFLOW_FAILED')


def loops(workflow):
    """Whether automated transitions without a criterion form a cycle, which would never end."""
    edges = {s: [t['next'] for t in transitions(workflow, s) if not t.get('manual') and not t.get('disabled') and t.get('criterion') is None]
             for s in workflow['states']}

    def reaches(start, at, seen):
        return any(n == start or n not in seen and not seen.add(n) and reaches(start, n, seen) for n in edges.get(at, []))
    return any(reaches(s, s, set()) for s in edges)


def dangling(workflow):
    """Whether the workflow names a state that it does not have."""
    names = [workflow['initialState']] + [t['next'] for s in workflow['states'] for t in transitions(workflow, s)]
    return any(n not in workflow['states'] for n in names)


def merge_patch(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for k, v in patch.items():
        if v is None:
            result.pop(k, None)
        else:
            result[k] = merge_patch(result.get(k), v)
    return result


def unique_value(path, data):
    """The value that a unique key compares: a number by its value, else the value with its type; None when it is missing."""
    value = walk(data, steps_of(path))
    if value is MISSING or value is None:
        return None
    return ('number', Decimal(value)) if isinstance(value, Num) else (type(value).__name__, value)


class World:
    """Everything that one tenant has."""

    def __init__(self):
        self.models, self.entities = {}, {}

    def of(self, model):
        return [e for e in self.entities.values() if e.model is model]

    def alive(self, model):
        return [e for e in self.of(model) if e.alive]

    def check_unique(self, model, id, data, pending=None):
        """Raises when the document collides with another entity. `pending` has the documents (by id) that the same request has
        written before. A key with some of its fields missing is invalid; with all of them missing it does not apply."""
        others = {e.id: e.now.data for e in self.alive(model)}
        others.update(pending or {})
        others.pop(id, None)
        for key in model.unique:
            values = [unique_value(p, data) for p in key]
            if None in values:
                if any(v is not None for v in values):
                    raise Failed('INVALID_UNIQUE_KEY')
            elif any([unique_value(p, other) for p in key] == values for other in others.values()):
                raise Failed('UNIQUE_VIOLATION')

    def plan_create(self, model, data, pending=None):
        """Returns (state, events, the model's node afterwards). Raises Failed or Refused."""
        if not model.locked:
            raise Failed('MODEL_NOT_LOCKED')
        node = admit(model.node, model.level, data)
        state, events = model.machine_on_create(data, '2026')  # the time is not known yet; criteria only compare it with 2000 and 2999
        self.check_unique(model, None, data, pending)
        return state, events, node

    def plan_update(self, entity, data, transition, pending=None):
        if not entity.alive:
            raise Failed('ENTITY_NOT_FOUND')
        node = admit(entity.model.node, entity.model.level, data)
        state, events = entity.model.machine_on_update(data, entity.life(entity.now), transition)
        self.check_unique(entity.model, entity.id, data, pending)
        return state, events, node

    def stats(self, model, states=None):
        counted = {}
        for e in self.alive(model):
            if states is None or e.now.state in states:
                counted[e.now.state] = counted.get(e.now.state, 0) + 1
        return counted
