"""The operations that change something: models, workflows, entities. Each also checks the answer and changes the model."""
from urllib.parse import quote

from dice import FIELDS, PATHS, SCALARS, TRANSITIONS, to_xml
from schema import LEVELS, Num, check_strict, dump, json_schema, simple_view
from talk import Differs, Talk
from world import Entity, Model, Version, merge_patch


class Writes(Talk):
    # Models

    def new_model(self, _=None):
        """A model from random samples, locked, perhaps with a change level, workflows, indexes and unique keys."""
        name = f'm{self.seed}-{len(self.world.models)}'
        fields = [f for f in FIELDS if self.dice.chance(0.75)]
        first, *rest = self.dice.samples(fields)
        self.ok('POST', f'/model/import/JSON/SAMPLE_DATA/{name}/1', first)
        model = self.world.models[name] = Model(name, first)
        model.fields = fields
        for sample in rest + [self.dice.document(fields) for _ in range(self.dice.r.randrange(2))]:
            self.ok('POST', f'/model/import/JSON/SAMPLE_DATA/{name}/1', sample)
            model.add_sample(sample)
        if self.dice.chance(0.3):
            sample = self.dice.xml_document(fields)
            self.ok('POST', f'/model/import/XML/SAMPLE_DATA/{name}/1', to_xml(sample), {'Content-Type': 'application/xml'})
            model.add_sample(sample)
        self.check_export(model)
        self.answer(*self.call('POST', f'/entity/JSON/{name}/1', {}), {'MODEL_NOT_LOCKED'})
        self.ok('PUT', f'/model/{name}/1/lock')
        model.locked = True
        for step, chance in ((self.change_level, 0.4), (self.import_workflows, 0.8), (self.set_indexes, 0.5), (self.set_unique_keys, 0.3)):
            if self.dice.chance(chance):
                step(model)

    def check_export(self, model):
        unique = {'uniqueKeys': [{'id': 'k', 'fields': key} for key in model.unique]} if model.unique else {}
        for converter, view in (('SIMPLE_VIEW', simple_view), ('JSON_SCHEMA', json_schema)):
            got = self.ok('GET', f'/model/export/{converter}/{model.name}/1')
            self.same('export', got, {'currentState': 'LOCKED' if model.locked else 'UNLOCKED', 'model': view(model.node), **unique})

    def change_level(self, model):
        model.level = self.dice.pick(LEVELS)
        self.ok('POST', f'/model/{model.name}/1/changeLevel/{model.level}')

    def lock_again(self, model):
        self.answer(*self.call('PUT', f'/model/{model.name}/1/lock'), {'MODEL_ALREADY_LOCKED'})
        if self.world.alive(model):
            self.answer(*self.call('PUT', f'/model/{model.name}/1/unlock'), {'MODEL_HAS_ENTITIES'})
            self.answer(*self.call('DELETE', f'/model/{model.name}/1'), {'MODEL_HAS_ENTITIES'})

    def validate(self, model):
        """Validation is strict whatever the change level is, and does not change the model."""
        document, problems = self.document(model), set()
        check_strict(model.node, document, problems)
        self.same('validate', self.ok('POST', f'/model/validate/{model.name}/1', document)['success'], not problems)

    def import_workflows(self, model):
        mode = self.dice.pick(['MERGE', 'REPLACE', 'ACTIVATE', 'merge'])
        names = self.dice.r.sample(['w1', 'w2', 'w3'], self.dice.r.randrange(0 if mode == 'REPLACE' and self.dice.chance(0.1) else 1, 3))
        incoming = [self.dice.workflow(n) for n in names]
        status, reply = self.call('POST', f'/model/{model.name}/1/workflow/import', {'importMode': mode, 'workflows': incoming})
        refusal = model.import_workflows(mode.upper(), incoming)
        self.answer(status, reply, {refusal} if refusal else set())
        reply = self.answer(*self.call('GET', f'/model/{model.name}/1/workflow/export'), set() if model.workflows else {'WORKFLOW_NOT_FOUND'})
        if reply:
            self.same('exported workflows', [(w['name'], w['active'], w.get('criterion')) for w in reply['workflows']],
                      [(w['name'], w['active'], w.get('criterion')) for w in model.workflows])

    def set_indexes(self, model):
        fields = [p for p in PATHS if p.startswith('$.') and '[*]' not in p and p[2:].split('.')[0] in model.fields and p not in ('$.o', '$.z')]
        model.indexes = self.dice.r.sample(fields, min(len(fields), self.dice.r.randrange(4)))
        self.ok('PUT', f'/model/{model.name}/1/indexes', {'fields': model.indexes})

    def set_unique_keys(self, model):
        fields = [f for f in SCALARS if f in model.fields]
        if not fields:
            return
        before = model.unique
        model.unique = [[f'$.{f}' for f in self.dice.r.sample(fields, min(len(fields), self.dice.r.randrange(1, 3)))]] if self.dice.chance(0.7) else []
        codes = set()
        for e in self.world.alive(model):
            codes |= self.plan(lambda: self.world.check_unique(model, e.id, e.now.data))[0]
        body = {'uniqueKeys': [{'id': 'k', 'fields': key} for key in model.unique]}
        if self.answer(*self.call('PUT', f'/model/{model.name}/1/unique-keys', body), codes) is None:
            model.unique = before

    # Entities

    def document(self, model):
        document = self.dice.document(model.fields)
        return self.dice.wrong(document) if self.dice.chance(0.2) else document

    def create(self, model, form='JSON'):
        data = self.document(model) if form == 'JSON' else self.dice.xml_document(model.fields)
        codes, plan = self.plan(lambda: self.world.plan_create(model, data))
        body = data if form == 'JSON' else to_xml(data)
        reply = self.answer(*self.call('POST', f'/entity/{form}/{model.name}/1', body, {'Content-Type': 'application/' + form.lower()}), codes)
        if reply is None:
            return
        self.same('ids of one create', [len(r['entityIds']) for r in reply], [1])
        model.node = plan[2]
        self.learn_created(model, reply[0]['entityIds'][0], reply[0]['transactionId'], data, plan)

    def create_xml(self, model):
        self.create(model, 'XML')

    def learn_created(self, model, id, tx, data, plan):
        """Adds a created entity to the model. Its time is known only to the server, so it is read back."""
        entity = Entity(id, model, None)
        self.add_version(entity, Version(data, plan[0], 'loopback', tx, plan[1]))
        self.world.entities[id] = entity
        entity.created = self.read_back(entity)['meta']['creationDate']

    def read_back(self, entity):
        """Reads an entity that was just written, compares it, and takes over its time, which must grow with every write."""
        got, now = self.ok('GET', f'/entity/{entity.id}'), entity.now
        self.same('entity', self.facts(got), self.expected(entity, now))
        self.same('type and model', (got['type'], got['meta']['modelKey']), ('ENTITY', {'name': entity.model.name, 'version': Num('1')}))
        now.when = got['meta']['lastUpdateTime']
        if len(entity.versions) > 1 and not entity.versions[-2].when < now.when:
            raise Differs(f'the time of {entity.id} did not go on: {entity.versions[-2].when}, {now.when}')
        return got

    def some_window(self, items):
        """Returns (number of items in one transaction, the query parameter for it). Inside a transaction all items are part of it."""
        if self.token:
            return len(items) or 1, ''
        window = self.dice.r.randrange(1, 4)
        return window, f'?transactionWindow={window}'

    def create_many(self, model):
        documents = [self.document(model) for _ in range(self.dice.r.randrange(6))]
        window, query = self.some_window(documents)
        status, reply = self.call('POST', f'/entity/JSON/{model.name}/1{query}', documents)
        self.check_chunks(status, reply, [(model, d) for d in documents], window)

    def create_mixed(self, _):
        some = [self.dice.pick(list(self.world.models.values())) for _ in range(self.dice.r.randrange(1, 5))]
        items = [(m, self.document(m)) for m in some]
        window, query = self.some_window(items)
        status, reply = self.call('POST', f'/entity/JSON{query}', [{'model': {'name': m.name, 'version': Num('1')}, 'payload': dump(d)} for m, d in items])
        self.check_chunks(status, reply, items, window)

    def plan_chunk(self, piece):
        """Returns (codes, plans) of several creates in one transaction. Each sees the model as extended by those before it; a
        refusal takes all extensions back."""
        before, plans, codes, pending = {m.name: m.node for m, _ in piece}, [], set(), {}
        for n, (m, d) in enumerate(piece):
            mine = {k: v for k, (of, v) in pending.items() if of is m}
            refused, plan = self.plan(lambda: self.world.plan_create(m, d, mine))
            codes |= refused
            if plan:
                m.node = plan[2]
                pending[n] = (m, d)
            plans.append(plan)
        if codes:
            for m, _ in piece:
                m.node = before[m.name]
        return codes, plans

    def check_chunks(self, status, reply, items, window):
        """Checks a create in chunks. Each chunk is a transaction; the first refused chunk ends the request."""
        if not items:
            self.same('an empty list', (status, [r['entityIds'] for r in reply]), (200, [[]]))
            return
        pieces = [items[i:i + window] for i in range(0, len(items), window)]
        for nth, piece in enumerate(pieces):
            codes, plans = self.plan_chunk(piece)
            if nth == 0 and self.answer(status, reply, codes) is None:
                return
            self.same('chunks so far', len(reply) > nth, True)
            if codes:
                self.same('chunks until the refused one', (len(reply), reply[nth]['entityIds'], reply[nth]['error']['chunkIndex']), (nth + 1, [], Num(nth)))
                self.same('the refusal of a chunk', reply[nth]['error']['code'] in codes, True)
                return
            self.same('ids of a chunk', len(reply[nth]['entityIds']), len(piece))
            for (m, d), id, plan in zip(piece, reply[nth]['entityIds'], plans):
                self.learn_created(m, id, reply[nth]['transactionId'], d, plan)
        self.same('chunks', len(reply), len(pieces))

    def some_transition(self, entity):
        if self.dice.chance(0.4):
            return None
        mine = [t['name'] for w in entity.model.workflows for t in w['states'].get(entity.now.state, {}).get('transitions', [])]
        return self.dice.pick(mine) if mine and self.dice.chance(0.8) else self.dice.pick(TRANSITIONS + ['UPDATE', 'DELETE'])

    def some_if_match(self, entity):
        if self.dice.chance(0.7):
            return None
        return entity.now.tx if self.dice.chance(0.6) and entity.now.tx else entity.versions[0].tx

    def plan_update(self, entity, data, transition, if_match, pending=None):
        codes, plan = self.plan(lambda: self.world.plan_update(entity, data, transition, pending))
        if entity.alive and if_match is not None and if_match != entity.now.tx:
            codes = codes | {'ENTITY_MODIFIED'}
        return codes, plan

    def update(self, model, patch=False):
        entity = self.some_entity(model, written=False)
        if not entity:
            return
        transition, if_match, sent = self.some_transition(entity), self.some_if_match(entity), self.document(model)
        data = merge_patch(entity.now.data, sent) if patch else sent
        codes, plan = self.plan_update(entity, data, transition, if_match)
        path = f'/entity/JSON/{entity.id}' + (f'/{quote(transition)}' if transition else '')
        reply = self.answer(*self.call('PATCH' if patch else 'PUT', path, sent, {'If-Match': if_match} if if_match else None), codes)
        if reply is None:
            if entity.alive:
                self.same('the refused entity', self.facts(self.ok('GET', f'/entity/{entity.id}')), self.expected(entity, entity.now))
            return
        self.same('ids of an update', reply['entityIds'], [entity.id])
        self.learn_updated(entity, data, transition, reply['transactionId'], plan)

    def learn_updated(self, entity, data, transition, tx, plan):
        self.add_version(entity, Version(data, plan[0], transition or 'loopback', tx, plan[1]))
        entity.model.node = plan[2]
        self.read_back(entity)

    def patch(self, model):
        self.update(model, patch=True)

    def update_many(self, model):
        """Updates several entities in one transaction. An outdated ifMatch fails only its item; any other refusal fails all."""
        mine = [e for e in self.world.alive(model) if self.may_write(e)]
        items, plans, codes, before, pending = [], [], set(), model.node, {}
        for entity in self.dice.r.sample(mine, min(len(mine), self.dice.r.randrange(1, 4))):
            data, transition, if_match = self.document(model), self.some_transition(entity), self.some_if_match(entity)
            refused, plan = self.plan_update(entity, data, transition, if_match, pending)
            stale = 'ENTITY_MODIFIED' in refused
            if not stale:
                codes |= refused
            items.append({'id': entity.id, 'payload': dump(data), **({'transition': transition} if transition else {}), **({'ifMatch': if_match} if if_match else {})})
            plans.append(None if stale else (entity, data, transition, plan))
            if plan and not stale:
                model.node, pending[entity.id] = plan[2], data
        after, model.node = model.node, before
        if not items:
            return
        reply = self.answer(*self.call('PUT', '/entity/JSON', items), codes)
        if reply is None:
            return
        self.same('chunks', len(reply), 1)
        self.same('the stale', [(f['entityId'], f['error']['code'], f['error']['itemIndex']) for f in reply[0].get('failed') or []],
                  [(item['id'], 'ENTITY_MODIFIED', Num(i)) for i, (item, plan) in enumerate(zip(items, plans)) if plan is None])
        self.same('the written', reply[0]['entityIds'], [p[0].id for p in plans if p])
        for item in (i for i, plan in zip(items, plans) if plan is None):
            trail = self.ok('GET', f"/audit/entity/{item['id']}?eventType=StateMachine&transactionId={reply[0]['transactionId']}&limit=2")['items']
            self.same('the trail of one that came too late', [(e['eventType'], (e['data'] or {}).get('expectedTxId')) for e in trail],
                      [('TRANSITION_ABORTED', item['ifMatch']), ('STATE_MACHINE_START', None)])
        for plan in plans:
            if plan:
                self.learn_updated(*plan[:3], reply[0]['transactionId'], plan[3])
        model.node = after

    def delete(self, model):
        entity = self.some_entity(model, written=False)
        if not entity:
            return
        reply = self.answer(*self.call('DELETE', f'/entity/{entity.id}'), set() if entity.alive else {'ENTITY_NOT_FOUND'})
        if reply is not None:
            self.same('delete', (reply['id'], reply['modelKey']), (entity.id, {'name': model.name, 'version': Num('1')}))
            self.learn_deleted(entity)

    def learn_deleted(self, entity):
        changes = self.ok('GET', f'/entity/{entity.id}/changes')
        self.same('the last change', changes[0]['changeType'], 'DELETED')
        self.add_version(entity, Version(None, None, None, None, when=changes[0]['timeOfChange'], deleted=True))
        self.answer(*self.call('GET', f'/entity/{entity.id}'), {'ENTITY_NOT_FOUND'})

    def delete_some(self, model):
        """Deletes by a condition. More than six hits are left alone, so that enough entities remain for other operations."""
        condition, codes, hits = self.some_search(model)
        if len(hits) > 6:
            return
        reply = self.answer(*self.call('DELETE', f'/entity/{model.name}/1?verbose=true', condition), codes)
        if reply is None:
            return
        result = reply['deleteResult']
        self.same(f'deleted by {dump(condition)}', (result['numberOfEntititesRemoved'], result['idToError']), (Num(len(hits)), {}))
        for id in hits:
            self.learn_deleted(self.world.entities[id])

    def restart(self, _):
        """Kills or stops the server and starts it again; nothing that was answered may be lost."""
        if self.dice.chance(0.5):
            self.server.kill()
        elif self.server.stop() != 0:
            raise Differs('the server did not end well: ' + self.server.tail())
        self.hang_up()
        self.server.start()
