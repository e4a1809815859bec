"""Operations inside an open transaction, and others outside of it at the same time.

A compute member holds the transaction open: its processor does not answer until the test says so. Requests that carry the
transaction's token see its writes; all other requests must see the world as it was before."""
import copy, queue, threading

import live
from reads import Reads
from talk import Differs
from writes import Writes

# The operations inside a transaction, with their weights. Each entity is written once in a transaction.
STEPS = {'create': 6, 'create_xml': 1, 'create_many': 2, 'create_mixed': 1, 'update': 8, 'patch': 3, 'update_many': 2, 'delete': 3,
         'read_history': 6, 'read_transitions': 3, 'read_list': 4, 'read_stats': 5, 'search': 8, 'read_groups': 5}
OUTSIDE = ['read_list', 'read_stats', 'search', 'read_groups']


class Holder:
    """A compute member whose processor waits until the test ends the transaction. It has its own model, with one entity whose
    transition calls the processor."""

    def __init__(self, server, member, name):
        self.server, self.name, self.calls = server, name, queue.Queue()
        self.member = member.Member(server.grpc, tags=[name])
        self.member.on['hold'] = self.hold
        self.member.start()
        workflow = {'version': '1', 'name': 'w', 'initialState': 'A', 'states': {'A': {'transitions': [
            {'name': 'go', 'next': 'A', 'manual': True, 'processors': [
                {'type': 'EXTERNAL', 'name': 'hold', 'executionMode': 'SYNC', 'config': {'calculationNodesTags': name}}]}]}}}
        for method, path, body in (('POST', f'/model/import/JSON/SAMPLE_DATA/{name}/1', {'k': 1}), ('PUT', f'/model/{name}/1/lock', None),
                                   ('POST', f'/model/{name}/1/workflow/import', {'importMode': 'REPLACE', 'workflows': [workflow]})):
            self.call(method, path, body)
        self.anchor = self.call('POST', f'/entity/JSON/{name}/1', {'k': 1})[0]['entityIds'][0]

    def call(self, method, path, body=None):
        status, reply = live.call(self.server.base, method, '/api' + path, body)
        if status != 200:
            raise Differs(f'{method} {path} answered {status} {reply}')
        return reply

    def hold(self, call):
        word = queue.Queue()
        self.calls.put((call.attributes['cyodatxtoken'], call.request['transactionId'], word))
        return word.get(timeout=120)

    def begin(self):
        """Begins a transaction. Returns (token, transaction id, end): end(True) commits and end(False) fails it; both return the
        (status, body) of the request that waited."""
        outcome = queue.Queue()
        threading.Thread(target=lambda: outcome.put(live.call(self.server.base, 'PUT', f'/api/entity/JSON/{self.anchor}/go', {'k': 1}, timeout=120)), daemon=True).start()
        token, tx, word = self.calls.get(timeout=30)

        def end(good):
            word.put({} if good else {'error': 'no'})
            return outcome.get(timeout=30)
        return token, tx, end


class Inside(Writes, Reads):
    members = None  # the module tests/vectors/entities-grpc/member.py; None when gRPC is not available

    def transaction(self, _):
        """Runs random operations inside one transaction, ends it, and compares what is left with the model."""
        holder = Holder(self.server, self.members, f'h{self.seed}-{sum(self.done.values())}')
        before = copy.deepcopy(self.world)
        for model in self.world.models.values():
            model.known = model.node
        self.token, tx, end = holder.begin()
        self.trail.append(f'transaction {tx} begins')
        self.touched, self.declared = set(), set()
        try:
            for _ in range(self.dice.r.randrange(1, 12)):
                if self.dice.chance(0.2):
                    self.beside(before)
                name = self.dice.r.choices(list(STEPS), list(STEPS.values()))[0]
                getattr(self, name)(self.dice.pick(list(self.world.models.values())))
            self.same('the transaction of what was written', {self.world.entities[id].now.tx for id in self.touched} - {None, tx}, set())
        finally:
            commits = self.dice.chance(0.7)
            self.token, touched, self.touched = None, self.touched, None
            status, reply = end(commits)
            holder.member.stop()
        self.trail.append(f'transaction {tx} ends: {status}')
        # A transaction that extended a model conflicts when another request changed the same model after the
        # transaction read it. Nothing else but entities can conflict.
        may_lose = commits and any(m.node.facts() != m.known.facts() for m in self.world.models.values() if m.name in self.declared)
        self.same('the end of the transaction', (status in ((200, 409) if may_lose else (200,) if commits else (400,)), status, reply), (True, status, reply))
        commits = status == 200
        for model in self.world.models.values():
            model.known = None
        if commits:
            self.learn_times(touched)
        else:
            self.world = before
        for model in self.world.models.values():
            self.read_stats(model)

    def beside(self, before):
        """Runs one operation outside the transaction: a read, which must see the world before it, or a declaration of indexes, which
        will also cover what the transaction saves."""
        token, world, touched, self.token, self.world, self.touched = self.token, self.world, self.touched, None, before, None
        model = self.dice.pick(list(before.models.values()))
        if self.dice.chance(0.3):
            self.set_indexes(model)
            world.models[model.name].indexes = model.indexes
            self.declared.add(model.name)
        else:
            getattr(self, self.dice.pick(OUTSIDE))(model)
        self.token, self.world, self.touched = token, world, touched

    def learn_times(self, touched):
        """Reads the time of every entity that the transaction wrote. It is one time for all of them: that of the commit."""
        times = set()
        for entity in (self.world.entities[id] for id in touched):
            version, entity.now.pending = entity.now, False
            version.when = self.ok('GET', f'/entity/{entity.id}/changes')[0]['timeOfChange']
            times.add(version.when)
            if entity.alive:
                self.same('committed', self.facts(self.ok('GET', f'/entity/{entity.id}?pointInTime={version.when}')), self.expected(entity, version))
        self.same('the times of one transaction', len(times) <= 1, True)
