#!/usr/bin/env python3
"""Kills a server with kill -9 under load, three times. No transaction may be torn, no acknowledged write lost, and every audit event
must belong to a write."""
import http.client, os, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, run_members

BATCH = 5
TIMEOUT_S = 120  # of the member's answer and of its callback: a sanitizer makes the server several times slower
STATES = {
    'NEW': {'transitions': [{'name': 'open', 'next': 'OPEN'}]},
    'OPEN': {'transitions': [
        {'name': 'toggle', 'next': 'SHUT', 'manual': True},
        {'name': 'breed', 'next': 'BRED', 'manual': True, 'processors': [
            {'type': 'EXTERNAL', 'name': 'breed', 'executionMode': 'SYNC', 'config': {
                'attachEntity': True, 'calculationNodesTags': 'crash', 'responseTimeoutMs': 1000 * TIMEOUT_S}}]}]},
    'SHUT': {'transitions': [{'name': 'toggle', 'next': 'OPEN', 'manual': True}]},
    'BRED': {}}


def ok(base, method, path, body=None, headers=None):
    status, reply = live.call(base, method, '/api' + path, body, headers)
    assert status == 200, (method, path, status, reply)
    return reply


def set_up(base):
    ok(base, 'POST', '/model/import/JSON/SAMPLE_DATA/crash/1', {'batch': 'b', 'n': 1, 'child': 'c'})
    ok(base, 'PUT', '/model/crash/1/lock')
    ok(base, 'POST', '/model/crash/1/workflow/import', {'importMode': 'REPLACE', 'workflows': [{'version': '1', 'name': 'w', 'initialState': 'NEW', 'states': STATES}]})
    return ok(base, 'POST', '/entity/JSON/crash/1', [{'batch': 'pair', 'n': 0}, {'batch': 'pair', 'n': 0}])[0]['entityIds']


class Load:
    """Threads that write until the server dies, and record the acknowledged writes."""

    def __init__(self, server, round, pair):
        self.base, self.round, self.pair = server.base, round, pair
        self.created, self.bred, self.pairs = {}, {}, 0
        self.threads = [threading.Thread(target=self.forever, args=(step,), daemon=True) for step in [self.create, self.move, self.breed, self.breed]]
        for t in self.threads:
            t.start()

    def forever(self, step):
        try:
            nth = 0
            while True:
                nth += 1
                step(f'{self.round}-{threading.get_ident()}-{nth}', nth)
        except (OSError, http.client.HTTPException):
            pass

    def create(self, name, _):
        """A batch is one transaction."""
        status, got = live.call(self.base, 'POST', '/api/entity/JSON/crash/1', [{'batch': name, 'n': i} for i in range(BATCH)])
        if status == 200:
            self.created[name] = got[0]['entityIds']

    def move(self, _, nth):
        """Both entities of a pair are written by one transaction and must always hold the same number."""
        n = self.round * 1000000 + nth
        payload = '{"batch":"pair","n":%d}' % n
        status, _ = live.call(self.base, 'PUT', '/api/entity/JSON', [{'id': id, 'payload': payload, 'transition': 'toggle'} for id in self.pair])
        if status == 200:
            self.pairs = n

    def breed(self, name, _):
        """A processor makes a child inside the transaction of its parent."""
        status, got = live.call(self.base, 'POST', '/api/entity/JSON/crash/1', {'batch': 'parent', 'child': name})
        if status != 200:
            return
        parent = got[0]['entityIds'][0]
        status, _ = live.call(self.base, 'PUT', f'/api/entity/JSON/{parent}/breed', {'batch': 'parent', 'child': name})
        if status == 200:
            self.bred[parent] = name

    def join(self):
        for t in self.threads:
            t.join(30)


def a_member(server):
    from member import Member
    member = Member(server.grpc, ['crash'], server.token)

    def breed(call):
        status, got = live.call(server.base, 'POST', '/api/entity/JSON/crash/1', {'batch': 'child', 'child': call.data['child']},
                                {'X-Tx-Token': call.attributes['cyodatxtoken']}, timeout=TIMEOUT_S)
        return {} if status == 200 else {'error': f'{status} {got}'}
    member.on['breed'] = breed
    member.start()
    return member


def everything(base):
    """All entities of the model, page by page."""
    found, page = [], 0
    while True:
        piece = ok(base, 'GET', f'/entity/crash/1?pageSize=10000&pageNumber={page}')
        found += piece
        if len(piece) < 10000:
            return found
        page += 1


def check(base, load, pair, problems):
    """Checks after a crash: batches and pairs are whole, acknowledged writes exist, a parent is bred exactly when its child exists, the
    counts agree, and the audit trails of the newest entities fit."""
    entities = {e['meta']['id']: e for e in everything(base)}
    batches, children = {}, {}
    for id, e in entities.items():
        batches.setdefault(e['data']['batch'], []).append(id)
        if e['data']['batch'] == 'child':
            children.setdefault(e['data']['child'], []).append(id)
    for name, ids in batches.items():
        if name not in ('pair', 'parent', 'child') and len(ids) != BATCH:
            problems.append(f'batch {name} is torn: {len(ids)} of {BATCH}')
    for name, ids in load.created.items():
        if not all(id in entities for id in ids):
            problems.append(f'batch {name} was acknowledged and is lost')
    a, b = (entities[id] for id in pair)
    if (a['data'], a['meta']['state'], a['meta']['transactionId']) != (b['data'], b['meta']['state'], b['meta']['transactionId']) or a['data']['n'] < load.pairs:
        problems.append(f'the pair is torn or old: {a} {b}, acknowledged {load.pairs}')
    for id in batches.get('parent', []):
        bred, made = entities[id]['meta']['state'] == 'BRED', len(children.get(entities[id]['data']['child'], []))
        if made != bred or (id in load.bred and not bred):
            problems.append(f'parent {id} is bred={bred} with {made} children')
    counted = {s['state']: s['count'] for s in ok(base, 'GET', '/entity/stats/states/crash/1')}
    real = {}
    for e in entities.values():
        real[e['meta']['state']] = real.get(e['meta']['state'], 0) + 1
    if counted != real:
        problems.append(f'the counts say {counted}, there are {real}')
    newest = sorted(entities, key=lambda id: entities[id]['meta']['lastUpdateTime'])[-40:]
    for id in newest + list(pair):
        check_trail(base, id, entities[id], problems)


def check_trail(base, id, entity, problems):
    """Every change in the audit trail is a readable version, every version is in the trail, and each ends with a finish event."""
    items, cursor = [], 0
    while True:
        page = ok(base, 'GET', f'/audit/entity/{id}?limit=1000&cursor={cursor}')
        items += page['items']
        if not page['pagination']['hasNext'] or len(items) > 3000:
            break
        cursor = page['pagination']['nextCursor']
    changes = [i['transactionId'] for i in items if i['auditEventType'] == 'EntityChange']
    versions = [c['transactionId'] for c in ok(base, 'GET', f'/entity/{id}/changes')]
    if changes[:len(versions)] != versions[:len(changes)] or not changes or changes[0] != entity['meta']['transactionId']:
        problems.append(f'the trail of {id} and its versions differ: {changes[:3]} {versions[:3]}')
    for tx in changes[:3]:
        status, _ = live.call(base, 'GET', f'/api/entity/{id}?transactionId={tx}')
        if status != 200:
            problems.append(f'the trail of {id} names transaction {tx}, which wrote nothing')
    finished = {i['transactionId'] for i in items if i.get('eventType') == 'STATE_MACHINE_FINISH'}
    if not set(changes[:100]) <= finished:
        problems.append(f'a change of {id} has no finished machine')


def main():
    live.need_grpc()
    run_members.prepare()
    problems, written = [], 0
    with live.Server() as s:
        pair = set_up(s.base)
        for round in range(1, 4):
            member = a_member(s)
            load = Load(s, round, pair)
            time.sleep(0.8 + 0.2 * round)
            s.kill()
            load.join()
            member.close()
            s.start()
            check(s.base, load, pair, problems)
            written += len(load.created) + len(load.bred) + load.pairs % 1000000
            if not load.created or not load.bred or not load.pairs:
                problems.append(f'round {round} did not load everything: {len(load.created)} {len(load.bred)} {load.pairs}')
        problems += s.stop_and_verify()
    return live.report(f'{written} transactions over three crashes', problems)


if __name__ == '__main__':
    sys.exit(main())
