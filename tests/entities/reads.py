"""The operations that read: history, lists, counts, searches, groups. Each compares the answer with the model."""
import math, time
from decimal import Decimal
from functools import cmp_to_key
from urllib.parse import urlencode

from conditions import MISSING, matches, refusals, steps_of, walk
from dice import PATHS, SCALARS, STATES
from schema import Num, dump
from talk import Differs, Talk


def compare_fields(a, b, descending):
    """The order of a sort: numbers by value, then texts by bytes. Missing values come last in both directions."""
    none_a, none_b = a in (None, MISSING), b in (None, MISSING)
    if none_a or none_b:
        return none_a - none_b
    if descending:
        return compare_fields(b, a, False)
    number_a, number_b = isinstance(a, Num), isinstance(b, Num)
    if number_a != number_b:
        return -1 if number_a else 1
    x, y = (Decimal(a), Decimal(b)) if number_a else (text_of(a).encode(), text_of(b).encode())
    return (x > y) - (x < y)


def text_of(a):
    return 'true' if a is True else 'false' if a is False else str(a)


def close(a, b):
    return a is None and b is None or a is not None and b is not None and math.isclose(float(a), b, rel_tol=1e-9, abs_tol=1e-9)


class Reads(Talk):
    def read_history(self, model):
        entity = self.some_entity(model, dead=0.5)
        if not entity:
            return
        changes = self.ok('GET', f'/entity/{entity.id}/changes')
        self.same('changes', [(c['changeType'], c['timeOfChange'], c.get('transactionId')) for c in changes],
                  [('DELETED' if v.deleted else 'UPDATED' if i else 'CREATED', v.when, v.tx) for i, v in reversed(list(enumerate(entity.versions)))])
        version = self.dice.pick(entity.versions)
        self.check_at(entity, version.when)
        self.check_at(entity, self.some_time())
        if version.tx:
            got = self.ok('GET', f'/entity/{entity.id}?transactionId={version.tx}')
            self.same('by transaction', self.facts(got), self.expected(entity, version))
            self.check_trail(entity, version)
        other = self.dice.pick(list(self.world.entities.values())).versions[0].tx
        if other not in [v.tx for v in entity.versions]:
            self.answer(*self.call('GET', f'/entity/{entity.id}?transactionId={other}'), {'ENTITY_NOT_FOUND'})

    def check_at(self, entity, when):
        status, reply = self.call('GET', f'/entity/{entity.id}?pointInTime={when}')
        version = entity.at(when)
        reply = self.answer(status, reply, set() if version else {'ENTITY_NOT_FOUND'})
        if version:
            self.same(f'as at {when}', self.facts(reply), self.expected(entity, version))

    def check_trail(self, entity, version):
        """The audit trail of one transaction: it begins, makes the transitions that the model made, and finishes."""
        items = self.ok('GET', f'/audit/entity/{entity.id}?transactionId={version.tx}&limit=1000')['items']
        machine = [(i['eventType'], i.get('state')) for i in reversed(items) if i['auditEventType'] == 'StateMachine']
        asked = ('TRANSITION_MAKE', 'TRANSITION_NOT_MATCH_CRITERION', 'WORKFLOW_SKIP')
        self.same('the trail', [m for m in machine if m[0] in asked], version.events)
        self.same('begin and end of the trail', (machine[0][0], machine[-1][0]), ('STATE_MACHINE_START', 'STATE_MACHINE_FINISH'))
        self.same('changes in the trail', [i['changeType'] for i in items if i['auditEventType'] == 'EntityChange'], ['UPDATED' if version is not entity.versions[0] else 'CREATED'])
        got = self.ok('GET', f'/audit/entity/{entity.id}/workflow/{version.tx}/finished')
        self.same('finished', (got['eventType'], got['data']['success'], got['state']), ('STATE_MACHINE_FINISH', True, version.state))

    def read_transitions(self, model):
        entity = self.some_entity(model, dead=0)
        if entity:
            version, when = entity.now, ''
            if self.dice.chance(0.3):
                version = self.dice.pick(entity.versions)
                when = self.dice.pick([f'?pointInTime={version.when}', f'?transactionId={version.tx}'])
            got = self.ok('GET', f'/entity/{entity.id}/transitions{when}')
            self.same('transitions', got, model.transition_names(version.data, entity.life(version)))

    def read_list(self, model):
        size, page = self.dice.r.randrange(1, 8), 0
        when = self.some_time() if self.dice.chance(0.3) else None
        query = {'pageSize': size, **({'pointInTime': when} if when else {})}
        mine = [self.expected(e, v) for e, v in sorted(self.versions(model, when), key=lambda ev: ev[0].id)]
        while True:
            got = self.ok('GET', f'/entity/{model.name}/1?{urlencode(dict(query, pageNumber=page))}')
            piece = mine[page * size:(page + 1) * size]
            self.same(f'page {page} of the list', [self.facts(g) for g in got], piece)
            page += 1
            if not piece:
                return

    def versions(self, model, when=None):
        """(entity, version) of the entities that exist now, or existed at a time."""
        at = [(e, e.at(when) if when else e.now) for e in self.world.of(model)]
        return [(e, v) for e, v in at if v and not v.deleted]

    def read_stats(self, model):
        counted = self.world.stats(model)
        got = self.ok('GET', f'/entity/stats/{model.name}/1')
        self.same('stats', (got['modelName'], got['count']), (model.name, Num(sum(counted.values()))))
        got = self.ok('GET', f'/entity/stats/states/{model.name}/1')
        self.same('states', {g['state']: g['count'] for g in got}, {s: Num(n) for s, n in counted.items()})
        some = self.dice.r.sample(STATES + ['CREATED', 'nowhere'], 3)
        got = self.ok('GET', f'/entity/stats/states/{model.name}/1?' + urlencode([('states', s) for s in some]))
        self.same('some states', {g['state']: g['count'] for g in got}, {s: Num(n) for s, n in self.world.stats(model, some).items()})
        every = {g['modelName']: g['count'] for g in self.ok('GET', '/entity/stats')}
        self.same('all stats', every.get(model.name, Num('0')), Num(sum(counted.values())))

    def read_export(self, model):
        self.check_export(model)

    # Search

    def some_search(self, model, when=None):
        """A random search: (condition, codes that may refuse it, id → (entity, version) of its hits)."""
        paths = [p for p in PATHS if p.replace('$.', '').split('.')[0].split('[')[0] in model.fields] if self.dice.chance(0.9) else PATHS
        condition = self.dice.condition(paths or PATHS)
        codes = refusals(condition, model.known or model.node)
        return condition, codes, {} if codes else {e.id: (e, v) for e, v in self.versions(model, when) if matches(condition, v.data, e.life(v))}

    def search(self, model):
        when = self.some_time() if self.dice.chance(0.2) else None
        condition, codes, hits = self.some_search(model, when)
        query = {'pointInTime': when} if when else {}
        keys = self.sort_keys(model) if self.dice.chance(0.3) else []
        if keys:
            query['sort'] = ','.join('-' * descending + path for path, descending in keys)
        ask = self.search_async if self.dice.chance(0.15) and not self.token else self.search_direct
        ask(model, condition, query, codes, hits, keys)

    def check_hits(self, what, got, hits, keys, limit=None):
        expected = {id: self.expected(e, v) for id, (e, v) in hits.items()}
        ids = [g['meta']['id'] for g in got]
        if keys:
            self.same('the order of ' + what, ids, self.sorted(hits, keys)[:limit])
        self.same('the number of ' + what, (len(ids), len(set(ids))), (min(len(hits), limit or len(hits)),) * 2)
        self.same(what, {g['meta']['id']: self.facts(g) for g in got}, expected if limit is None else {id: expected.get(id) for id in ids})

    def search_direct(self, model, condition, query, codes, hits, keys):
        limit = self.dice.r.randrange(1, 6) if self.dice.chance(0.2) else None
        if limit:
            query['limit'] = limit
        path = f'/search/direct/{model.name}/1?{urlencode(query)}'
        reply = self.answer(*self.call('POST', path, condition), codes)
        if reply is None:
            return
        self.check_hits(f'hits of {dump(condition)} with indexes {model.indexes}', reply, hits, keys, limit)
        if self.dice.chance(0.2) and not self.token:
            plan = self.ok('POST', path + '&explain=true', condition)
            self.same('explained', (plan['matched'], plan['index'] in [None, *model.indexes], plan['access']),
                      (Num(min(len(hits), limit or len(hits))), True, 'INDEX' if plan['index'] else 'SCAN'))

    def search_async(self, model, condition, query, codes, hits, keys):
        job = self.answer(*self.call('POST', f'/search/async/{model.name}/1?{urlencode(query)}', condition), codes)
        if job is None:
            return
        until = time.monotonic() + 30
        while time.monotonic() < until:
            state = self.ok('GET', f'/search/async/{job}/status')
            if state['searchJobStatus'] != 'RUNNING':
                break
            time.sleep(0.005)
        self.same('job', (state['searchJobStatus'], state['entitiesCount']), ('SUCCESSFUL', Num(len(hits))))
        size, got, page = self.dice.r.randrange(1, 10), [], 0
        while page * size <= len(hits):
            reply = self.ok('GET', f'/search/async/{job}?pageSize={size}&pageNumber={page}')
            self.same('page', (reply['page']['number'], reply['page']['size'], reply['page']['totalElements'], reply['page']['totalPages']),
                      (Num(page), Num(size), Num(len(hits)), Num(-(-len(hits) // size))))
            got += reply['content']
            page += 1
        self.check_hits(f'asynchronous hits of {dump(condition)}', got, hits, keys)

    def sort_keys(self, model):
        paths = [f'$.{f}' for f in SCALARS if f in model.fields] + ['@state', '@id', '@previousTransition'] + ['$.o.k'] * ('o' in model.fields)
        return [(p, self.dice.chance(0.5)) for p in self.dice.r.sample(paths, min(len(paths), self.dice.r.randrange(1, 4)))]

    def sorted(self, hits, keys):
        """Ids in the order of the keys; entities with equal keys are ordered by id."""
        def field(id, path):
            e, v = hits[id]
            return {'@state': v.state, '@id': id, '@previousTransition': v.transition}.get(path) or walk(v.data, steps_of(path))

        def order(a, b):
            for path, descending in keys:
                found = compare_fields(field(a, path), field(b, path), descending)
                if found:
                    return found
            return -1 if a < b else 1
        return sorted(hits, key=cmp_to_key(order))

    # Groups

    def read_groups(self, model):
        fields = [f'$.{f}' for f in SCALARS + ['o'] if f in model.fields] + ['state', '$.gone']
        by = self.dice.r.sample(fields, self.dice.r.randrange(1, 3))
        figures = [(op, f'$.{self.dice.pick(SCALARS)}') for op in self.dice.r.sample(['sum', 'avg', 'min', 'max', 'stdev'], self.dice.r.randrange(3))]
        body = {'groupBy': by, 'aggregations': [{'op': op, 'field': f, 'as': f'f{n}'} for n, (op, f) in enumerate(figures)]}
        when = self.some_time() if self.dice.chance(0.2) else None
        if when:
            body['pointInTime'] = when
        codes, found = set(), {e.id: (e, v) for e, v in self.versions(model, when)}
        if self.dice.chance(0.5):
            body['condition'], codes, found = self.some_search(model, when)
        limit = self.dice.r.randrange(1, 6) if self.dice.chance(0.3) else None
        if limit:
            body['limit'] = Num(limit)
        reply = self.answer(*self.call('POST', f'/entity/stats/{model.name}/1/query', body), codes)
        if reply is None:
            return
        groups = self.groups(by, found)
        self.same('groups', [([(k['path'], k['value']) for k in g['groupKey']], g['count']) for g in reply],
                  [(list(zip(by, key)), Num(len(some))) for key, some in groups][:limit])
        for g, (_, some) in zip(reply, groups):
            for n, (op, field) in enumerate(figures):
                self.check_figure(op, field, g['aggregations'][f'f{n}'], some)

    def groups(self, by, found):
        """[(key, versions)] of the groups, the largest first, then by key. Null comes before any text."""
        groups = {}
        for _, v in found.values():
            values = [v.state if p == 'state' else walk(v.data, steps_of(p)) for p in by]
            key = tuple(None if x in (None, MISSING) or isinstance(x, (list, dict)) else text_of(x) for x in values)
            groups.setdefault(key, []).append(v)
        return sorted(groups.items(), key=lambda g: (-len(g[1]), [(k is not None, (k or '').encode()) for k in g[0]]))

    def check_figure(self, op, field, got, versions):
        """One aggregation of a group. Sums of doubles depend on their order, so a small error is allowed."""
        numbers = [float(x) for x in (walk(v.data, steps_of(field)) for v in versions) if isinstance(x, Num)]
        mean = math.fsum(numbers) / len(numbers) if numbers else None
        expected = {'sum': lambda: math.fsum(numbers), 'avg': lambda: mean, 'min': lambda: min(numbers), 'max': lambda: max(numbers),
                    'stdev': lambda: math.sqrt(math.fsum((n - mean) ** 2 for n in numbers) / (len(numbers) - 1))}[op]
        expected = expected() if len(numbers) > (op == 'stdev') else None
        if not close(got, expected) and not (got is not None and expected is not None and abs(float(got) - expected) < 1e-9 * max(map(abs, numbers))):
            raise Differs(f'{op} of {field} is {got}, expected {expected} of {numbers}')
