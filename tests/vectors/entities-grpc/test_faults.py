"""Members that misbehave: what they do must not reach further than their own calls."""
import os, threading, time
from test_members import c, failed, http, ok, w, with_n, PROC


def unchanged(w, eid):
    assert w.get(eid)[:2] == ('A', {'k': 'a', 'n': 1})
    w.create()                                         # and the server goes on serving


def test_answer_over_the_body_limit(w):
    w.member(p=lambda c: {'data': {'k': 'x' * (11 << 20)}})
    eid = w.manual(w.proc('p'))
    assert 'at most' in failed(w.go(eid), 'WORKFLOW_FAILED')
    unchanged(w, eid)


def test_answer_of_100_mib(w):
    w.member(p=lambda c: {'data': {'k': 'x' * (100 << 20)}})
    eid = w.manual(w.proc('p'))
    failed(w.go(eid), 'COMPUTE_MEMBER_DISCONNECTED', 'WORKFLOW_FAILED')
    unchanged(w, eid)


def test_answer_twice_and_with_the_wrong_id(w):
    def p(call):
        wrong = {'requestId': 'not-' + call.request['requestId'], 'entityId': call.request['entityId'], 'success': True, 'payload': {'type': 'JSON', 'data': {'n': 66}}}
        call.member.send(PROC + 'Response', wrong)
        right = dict(wrong, requestId=call.request['requestId'], payload={'type': 'JSON', 'data': {'n': 5}})
        call.member.send(PROC + 'Response', right)
        return {'data': {'n': 77}}
    w.member(p=p)
    eid = w.manual(w.proc('p'))
    assert w.go(eid)[0] == 200 and w.get(eid)[:2] == ('B', {'n': 5})


def test_silent_member_slows_nobody_else(w):
    w.member(p=lambda c: {'silent': True})
    eid = w.manual(w.proc('p', responseTimeoutMs=3000))
    waiting = [threading.Thread(target=w.go, args=(w.create(),)) for _ in range(20)]
    for t in waiting:
        t.start()
    time.sleep(0.3)
    begun = time.time()
    for _ in range(20):
        assert http('PUT', f'/entity/JSON/{eid}', {'k': 'a', 'n': 1})[0] == 200
    assert time.time() - begun < 2.5
    for t in waiting:
        t.join()


def test_retry_policy_under_one_request_id(w):
    seen = []
    def p(call):
        seen.append(call.request['requestId'])
        return {'error': 'not yet'} if len(seen) < 3 else {'data': {'n': 8}}
    w.member(p=p)
    eid = w.manual(w.proc('p', retryPolicy='EXPONENTIAL'))
    assert w.go(eid)[0] == 200 and w.get(eid)[1] == {'n': 8}
    assert len(seen) == 3 and len(set(seen)) == 1


def test_late_answer_is_ignored(w):
    def p(call):
        time.sleep(0.6)
        return {'data': {'n': 66}}
    w.member(p=p)
    eid = w.manual(w.proc('p', responseTimeoutMs=200))
    assert 'timed out after 200ms' in failed(w.go(eid), 'WORKFLOW_FAILED')
    time.sleep(0.8)
    unchanged(w, eid)


def test_answer_of_another_kind_is_ignored(w):
    def p(call):
        call.member.send('EntityFunctionCalculationResponse', {'requestId': call.request['requestId'], 'success': True, 'resultKind': 'Schedule', 'result': {}})
        call.member.send('EntityCriteriaCalculationResponse', {'requestId': call.request['requestId'], 'success': True, 'matches': True})
        return {'data': {'n': 5}}
    w.member(p=p)
    eid = w.manual(w.proc('p'))
    assert w.go(eid)[0] == 200 and w.get(eid)[:2] == ('B', {'n': 5})


def test_workflow_that_loops_for_ever_is_cut(w):
    yes = {'type': 'simple', 'jsonPath': '$.k', 'operatorType': 'NOT_NULL'}
    w.flow({'A': [{'name': 't', 'next': 'B', 'criterion': yes}], 'B': [{'name': 'u', 'next': 'A', 'criterion': yes}]})
    detail = failed(http('POST', f'/entity/JSON/{w.model}/1', {'k': 'a', 'n': 1}), 'WORKFLOW_FAILED')
    assert 'visited 11 times (limit: 10)' in detail
    assert ok('GET', f'/entity/stats/{w.model}/1')['count'] == 0


def test_conflicting_writers_of_one_entity(w):
    """Transactions that are open at the same time: the first to commit wins, the others are told to retry."""
    w.member(p=lambda call: time.sleep(0.5) or {})
    eid = w.manual(w.proc('p'))
    replies = []
    threads = [threading.Thread(target=lambda: replies.append(w.go(eid))) for _ in range(5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    good = [r for r in replies if r[0] == 200]
    assert len(good) == 1, replies
    assert all(r[1]['properties']['errorCode'] == 'CONFLICT' and r[1]['properties']['retryable'] for r in replies if r[0] != 200), replies
    assert len(ok('GET', f'/entity/{eid}/changes')) == 2


def answer_schedule(member, **answer):
    """Answers the first schedule call that comes, once."""
    def wait():
        while not member.ended.is_set():
            for kind, request in list(member.events):
                if kind == 'EntityFunctionCalculationRequest':
                    return member.send('EntityFunctionCalculationResponse', {'requestId': request['requestId'], 'entityId': request['entityId'], **answer})
            time.sleep(0.02)
    threading.Thread(target=wait, daemon=True).start()


def test_schedule_function_fires_when_the_member_says(w):
    function = {'name': 'when', 'resultKind': 'Schedule', 'calculationNodesTags': w.tag}
    w.flow({'A': [{'name': 'late', 'next': 'B', 'schedule': {'function': function}}], 'B': []})
    answer_schedule(w.member(), success=True, resultKind='Schedule', result={'fireAfterMs': 300})
    eid = w.create()
    assert w.get(eid)[0] == 'A'
    until = time.time() + 5
    while w.get(eid)[0] != 'B' and time.time() < until:
        time.sleep(0.05)
    assert w.get(eid)[0] == 'B'
    kinds = [e['eventType'] for e in ok('GET', f'/audit/entity/{eid}?eventType=StateMachine&limit=100')['items']]
    assert 'SCHEDULED_TRANSITION_ARM' in kinds and 'SCHEDULED_TRANSITION_FIRE' in kinds


def test_schedule_function_that_answers_nonsense_refuses_the_write(w):
    function = {'name': 'when', 'resultKind': 'Schedule', 'calculationNodesTags': w.tag}
    w.flow({'A': [{'name': 'late', 'next': 'B', 'schedule': {'function': function}}], 'B': []})
    answer_schedule(w.member(), success=True, resultKind='Schedule', result={'fireAt': 'soon'})
    status, body = http('POST', f'/entity/JSON/{w.model}/1', {'k': 'a', 'n': 1})
    assert status == 500 and body['properties']['errorCode'] == 'SCHEDULE_FUNCTION_INVALID_RESULT' and body['ticket'], body
    assert ok('GET', f'/entity/stats/{w.model}/1')['count'] == 0


def test_empty_collections_are_invalid_arguments(w, c):
    import grpc
    for kind in ('EntityCreateCollectionRequest', 'EntityUpdateCollectionRequest'):
        for body in ({'dataFormat': 'JSON', 'payloads': []}, {'dataFormat': 'JSON'}):
            try:
                c.call('entityManageCollection', kind, body)
                assert False, 'must be refused'
            except grpc.RpcError as e:
                assert e.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_member_that_stops_reading_and_leaves(w):
    """The write to it fails half-way: its call fails, the server does not."""
    import queue
    from member import Client, JOIN, event
    eid = w.manual(w.proc('p'))
    for _ in range(3):
        deaf, out, replies = Client(os.environ['PAWL_GRPC']), queue.Queue(), []
        out.put(event(JOIN, {'tags': [w.tag]}))
        stream = deaf.stub.startStreaming(iter(out.get, None))
        next(stream)
        waiting = threading.Thread(target=lambda: replies.append(w.go(eid, {'k': 'x' * (2 << 20), 'n': 2})))
        waiting.start()
        time.sleep(1)
        stream.cancel()
        waiting.join()
        out.put(None)
        deaf.close()
        failed(replies[0], 'COMPUTE_MEMBER_DISCONNECTED')
    unchanged(w, eid)
