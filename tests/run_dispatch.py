#!/usr/bin/env python3
"""kill -9 between the two transactions of a COMMIT_BEFORE_DISPATCH processor.

With "durable" the call is offered again after the restart under the same request id and the
transition completes; without it the call is forgotten and the entity stays in its source state.
"""
import os, sys, threading, time, uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, run_members


def ok(server, method, path, body=None):
    status, reply = live.call(server.base, method, '/api' + path, body)
    assert status == 200, (method, path, status, reply)
    return reply


def set_up(server, model, durable, fresh):
    """A model with one entity whose transition `go` calls the processor. Returns the id of the entity."""
    ok(server, 'POST', f'/model/import/JSON/SAMPLE_DATA/{model}/1', {'k': 'a', 'n': 1})
    ok(server, 'PUT', f'/model/{model}/1/lock')
    processor = {'type': 'EXTERNAL', 'name': 'p', 'executionMode': 'COMMIT_BEFORE_DISPATCH',
                 'config': {'attachEntity': True, 'calculationNodesTags': model, 'responseTimeoutMs': 60000,
                            'durable': durable, 'startNewTxOnDispatch': fresh}}
    ok(server, 'POST', f'/model/{model}/1/workflow/import', {'importMode': 'REPLACE', 'workflows': [
        {'version': '1', 'name': 'w', 'initialState': 'A', 'states': {
            'A': {'transitions': [{'name': 'go', 'next': 'B', 'manual': True, 'processors': [processor]}]}, 'B': {}}}]})
    return ok(server, 'POST', f'/entity/JSON/{model}/1', {'k': 'a', 'n': 1})[0]['entityIds'][0]


def fire(server, entity):
    try:
        live.call(server.base, 'PUT', f'/api/entity/JSON/{entity}/go', {'k': 'b', 'n': 2})
    except OSError:
        pass  # the server was killed during the request


def play(server, durable, fresh):
    """The first member never answers; the server is killed while the call is open; a second member joins after the restart."""
    from member import Member
    model = 'd-' + uuid.uuid4().hex[:8]
    entity = set_up(server, model, durable, fresh)
    first = Member(server.grpc, [model])
    first.on['p'] = lambda call: {'silent': True}
    first.start()
    threading.Thread(target=fire, args=(server, entity), daemon=True).start()
    live.until(lambda: first.calls, 'the first call')
    server.kill()
    first.close()
    server.start()
    seen = ok(server, 'GET', f'/entity/{entity}')
    assert (seen['meta']['state'], seen['data']) == ('A', {'k': 'b', 'n': 2}), seen
    second = Member(server.grpc, [model])
    second.on['p'] = lambda call: {'data': {**call.data, 'n': 99}}
    second.start()
    state = lambda: ok(server, 'GET', f'/entity/{entity}')['meta']['state']
    if durable:
        live.until(lambda: state() == 'B', 'the transition to complete after the restart')
        assert ok(server, 'GET', f'/entity/{entity}')['data'] == {'k': 'b', 'n': 99}
        again, = second.calls
        assert again.request['requestId'] == first.calls[0].request['requestId'], 'the request id must be the same'
    else:
        time.sleep(1)
        assert state() == 'A' and not second.calls, 'a call that is not durable is forgotten'
        assert live.call(server.base, 'PUT', f'/api/entity/JSON/{entity}/go', {'k': 'c', 'n': 3})[0] == 200
        assert state() == 'B'
    second.stop()


def main():
    live.need_grpc()
    run_members.prepare()
    with live.Server() as server:
        live.run_parts([(f'durable={durable} startNewTxOnDispatch={fresh}', lambda d=durable, f=fresh: play(server, d, f))
                        for durable in (True, False) for fresh in (False, True)])
        problems = server.stop_and_verify()
    return live.report(problems=problems)


if __name__ == '__main__':
    sys.exit(main())
