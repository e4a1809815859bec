"""Members that misbehave: what they do must not reach further than their own calls."""
import threading, time
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
