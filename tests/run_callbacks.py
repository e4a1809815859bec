#!/usr/bin/env python3
"""Nested and concurrent callbacks that fail at random: each transaction is committed as a whole or not at all.

A processor's handler creates several entities inside its transaction at the same time; some of these call a
processor of their own, whose handler creates one more and then fails now and then, with retries. Some
handlers answer before their callbacks are done. Afterwards every entity that was answered with 200 in a transaction that
was committed must exist, and no other. Argument: the seed.
"""
import os, random, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, run_members

TRANSITIONS = {'go': 'SYNC', 'new': 'ASYNC_NEW_TX'}
OUTER = 30


def processor(name, mode='SYNC', **config):
    return {'type': 'EXTERNAL', 'name': name, 'executionMode': mode, 'config': {'attachEntity': True, 'calculationNodesTags': 'x', **config}}


class Play:
    def __init__(self, server, seed):
        """plans: what each outer handler did, by entity. leaves: the attempts of each inner handler, (name, status), by entity."""
        self.server, self.dice, self.lock = server, random.Random(seed), threading.Lock()
        self.plans, self.leaves, self.problems = {}, {}, []

    def call(self, method, path, body=None, token=None):
        return live.call(self.server.base, method, '/api' + path, body, {'X-Tx-Token': token} if token else {})

    def model(self, name, transitions=None):
        self.call('POST', f'/model/import/JSON/SAMPLE_DATA/{name}/1', {'k': 'a', 'n': 1})
        self.call('PUT', f'/model/{name}/1/lock')
        if transitions:
            workflow = {'version': '1', 'name': 'w', 'initialState': 'A', 'states': {'A': {'transitions': transitions}, 'B': {}}}
            status, answer = self.call('POST', f'/model/{name}/1/workflow/import', {'importMode': 'REPLACE', 'workflows': [workflow]})
            assert status == 200, answer

    def inner(self, call):
        """Creates a leaf, then fails at random."""
        entity = call.request['entityId']
        with self.lock:
            made = self.leaves.setdefault(entity, [])
            made.append(None)
            attempt = len(made)
        name = f'{entity}/{attempt}'
        made[attempt - 1] = (name, self.call('POST', '/entity/JSON/leaf/1', {'k': name}, call.attributes['cyodatxtoken'])[0])
        time.sleep(self.dice.random() * 0.02)
        return {'error': 'dice'} if self.dice.random() < 0.45 else {'data': {**call.data, 'n': attempt}}

    def outer(self, call):
        """Creates six entities at the same time inside the transaction. One in four times it answers without waiting for them."""
        entity, token, answers = call.request['entityId'], call.attributes['cyodatxtoken'], []

        def create(model, name):
            status, _ = self.call('POST', f'/entity/JSON/{model}/1', {'k': name}, token)
            answers.append((model, name, status))
        threads = [threading.Thread(target=create, args=('child' if i % 2 else 'leaf', f'{entity}-{i}')) for i in range(6)]
        for t in threads:
            t.start()
            time.sleep(self.dice.random() * 0.01)
        if self.dice.random() < 0.75:
            for t in threads:
                t.join()
        plan = self.plans[entity] = {'answers': answers, 'threads': threads, 'fails': self.dice.random() < 0.3}
        return {'error': 'no'} if plan['fails'] else {'data': {'k': 'done'}}

    def run(self, members):
        self.model('outer', [{'name': n, 'next': 'B', 'manual': True, 'processors': [processor('outer', m)]} for n, m in TRANSITIONS.items()])
        self.model('child', [{'name': 't', 'next': 'B', 'processors': [processor('inner', retryPolicy='FIXED')]}])
        self.model('leaf')
        member = members.Member(self.server.grpc, tags=['x'])
        member.on.update(outer=self.outer, inner=self.inner)
        member.start()
        ids = self.call('POST', '/entity/JSON/outer/1', [{'k': 'x'}] * OUTER)[1][0]['entityIds']
        results, waiting = {}, list(ids)

        def work():
            while True:
                with self.lock:
                    if not waiting:
                        return
                    entity, transition = waiting.pop(), self.dice.choice(list(TRANSITIONS))
                results[entity] = (transition, *self.call('PUT', f'/entity/JSON/{entity}/{transition}', {'k': 'y'}))
        workers = [threading.Thread(target=work) for _ in range(4)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        for plan in self.plans.values():
            for t in plan['threads']:
                t.join()
        member.stop()
        self.check(results)

    def check(self, results):
        """Compares the entities on the server with what the handlers were told."""
        there = {m: {e['data']['k']: e for e in self.call('GET', f'/entity/{m}/1?pageSize=10000')[1]} for m in ('child', 'leaf')}

        def expect(what, held):
            if not held:
                self.problems.append(what)
        for entity, (transition, status, answer) in results.items():
            plan = self.plans[entity]
            expect(('outcome', transition, status, answer), status == (400 if plan['fails'] and transition == 'go' else 200))
            for model, name, told in plan['answers']:
                kept = told == 200 and not plan['fails']
                expect(('callback', model, name, told, kept), told in (200, 400, 409) and (name in there[model]) == kept)
        by_id = {e['meta']['id']: e for e in there['child'].values()}
        for entity, made in self.leaves.items():
            for attempt, (name, told) in enumerate(made, 1):
                kept = told == 200 and entity in by_id and by_id[entity]['data'].get('n') == attempt
                expect(('leaf', name, told, kept), (name in there['leaf']) == kept)
        for model, found in there.items():
            expect(('count', model), self.call('GET', f'/entity/stats/{model}/1')[1]['count'] == len(found))


def main():
    live.need_grpc()
    run_members.prepare()
    import member
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    with live.Server() as server:
        play = Play(server, seed)
        play.run(member)
        play.problems += server.stop_and_verify()
    callbacks = sum(len(p['answers']) for p in play.plans.values())
    return live.report(f'seed {seed}: {len(play.plans)} transactions, {callbacks} callbacks', play.problems)


if __name__ == '__main__':
    sys.exit(main())
