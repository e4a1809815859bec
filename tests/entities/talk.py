"""One conversation with a server, and the model in memory (world.py) that it must agree with.

An operation plans its outcome on the model first, then sends the request, compares the answer, and changes the model."""
import http.client, random

from dice import Dice
from schema import Refused, dump, parse
from world import Failed, World

# The HTTP status of each error code; all others are 400.
STATUS = {'ENTITY_NOT_FOUND': 404, 'WORKFLOW_NOT_FOUND': 404, 'MODEL_NOT_FOUND': 404, 'TRANSITION_NOT_FOUND': 404, 'ENTITY_MODIFIED': 412, 'MODEL_NOT_LOCKED': 409,
          'MODEL_ALREADY_LOCKED': 409, 'MODEL_ALREADY_UNLOCKED': 409, 'MODEL_HAS_ENTITIES': 409, 'UNIQUE_VIOLATION': 409, 'INVALID_UNIQUE_KEY': 422}


class Differs(Exception):
    """The answer of the server differs from that of the model."""


def show(value):
    text = repr(value)
    return text if len(text) < 1500 else text[:1500] + '…'


def code_of(reply):
    return reply['properties']['errorCode'] if isinstance(reply, dict) and 'properties' in reply else None


class Talk:
    def __init__(self, server, seed):
        """trail: every request so far, printed when something differs. done: how often each operation ran."""
        self.server, self.seed, self.connection = server, seed, None
        self.dice = Dice(random.Random(seed))
        self.world, self.trail, self.done = World(), [], {}
        self.token, self.touched = None, None  # inside a transaction: its token, and the entities that it has written

    def call(self, method, path, body=None, headers=None):
        """Sends one request. Returns (status, body): a parsed document whose numbers keep their digits, a list of documents for
        NDJSON, or None."""
        sent = None if body is None else body if isinstance(body, str) else dump(body)
        self.trail.append(f'{method} {path} {headers or ""} {sent or ""}')
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.server.http, timeout=60)
        inside = {'X-Tx-Token': self.token} if self.token else {}
        self.connection.request(method, '/api' + path, sent and sent.encode(), {'Content-Type': 'application/json', **inside, **(headers or {})})
        reply = self.connection.getresponse()
        text = reply.read().decode()
        if reply.getheader('Content-Type', '').startswith('application/x-ndjson'):
            return reply.status, [parse(line) for line in text.split('\n') if line]
        return reply.status, parse(text) if text else None

    def hang_up(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def same(self, what, got, expected):
        if got != expected:
            raise Differs(f'{what}:\n   got      {show(got)}\n   expected {show(expected)}')

    def ok(self, method, path, body=None, headers=None):
        return self.answer(*self.call(method, path, body, headers), set())

    def answer(self, status, reply, codes):
        """Checks an answer against the codes that may refuse it. Returns the reply when none may, and None when one of them did."""
        got = code_of(reply)
        if not codes and status == 200:
            return reply
        if got not in codes or status != STATUS.get(got, 400):
            raise Differs(f'answered {status} {show(reply)}, expected {sorted(codes) or 200}')
        return None

    def plan(self, make):
        """Runs an operation on the model. Returns (codes that refuse it, its outcome)."""
        try:
            return set(), make()
        except Refused as refused:
            return refused.codes, None
        except Failed as failed:
            return {failed.code}, None

    def facts(self, got):
        """The part of an answered entity that the model knows; expected() gives the same from the model."""
        m = got['meta']
        return (m['id'], dump(got['data']), m['state'], m['transactionId'], m['transitionForLatestSave'])

    def expected(self, entity, v):
        return (entity.id, dump(v.data), v.state, v.tx, v.transition)

    def add_version(self, entity, version):
        """Adds a version to the model. Inside a transaction it is pending: reads at a point in time do not see it."""
        entity.versions.append(version)
        if self.token:
            version.pending = True
            self.touched.add(entity.id)

    def may_write(self, entity):
        """A transaction writes each entity once at most: the history of two writes in one transaction is not modelled."""
        return not self.token or entity.id not in self.touched

    def some_entity(self, model, dead=0.05, written=True):
        mine = [e for e in self.world.of(model) if (e.alive or self.dice.chance(dead)) and (written or self.may_write(e))]
        return self.dice.pick(mine) if mine else None

    def some_time(self):
        """The time of a random write; None when there was no write yet."""
        every = list(self.world.entities.values())
        return self.dice.pick(self.dice.pick(every).versions).when if every else None
