#!/usr/bin/env python3
"""The limits of one tenant and of one address against a real server with two tenants: each is answered with 429 or
RESOURCE_EXHAUSTED that names it, and the other tenant is served as before. Streams end with their tokens."""
import http.client, json, os, socket, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import call, check

live.need_grpc()
import grpc
import run_fair

TYPE = {'bucket': 'B', 'key_prefix': 'b.', 'transitions': {'open': []},
        'fields': [{'name': 'entity_id', 'type': 'string', 'tags': ['id']}, {'name': 'phase', 'type': 'string', 'tags': ['phase', 'readonly']},
                   {'name': 'note', 'type': 'string', 'tags': ['operator_writable']}]}
RAW = dict(request_serializer=lambda b: b, response_deserializer=lambda b: b)


class Tenants:
    """`with Tenants('--tenant-max-streams', '2') as t`: t.a and t.b are the headers of two tenants."""

    def __init__(self, *flags):
        self.folder = tempfile.TemporaryDirectory()
        self.server, self.token = run_fair.tenants(self.folder.name, *flags)

    def headers(self, tenant, seconds=3600):
        return {'Authorization': 'Bearer ' + self.token(tenant, seconds)}

    def __enter__(self):
        self.server.__enter__()
        self.a, self.b = self.headers('a'), self.headers('b')
        return self

    def __exit__(self, *error):
        self.server.__exit__(*error)
        self.folder.cleanup()

    def call(self, method, path, body=None, headers=None):
        return call(self.server.base, method, path, body, headers)

    def connection(self):
        return http.client.HTTPConnection(self.server.http, timeout=15)

    def watch(self, headers):
        """Begins a watch. Returns (connection, answer)."""
        connection = self.connection()
        connection.request('GET', '/workflows/thing?stream=true', headers={**headers, 'Accept': 'text/event-stream'})
        return connection, connection.getresponse()

    def refusals(self, limit):
        """The metric of one limit."""
        with live.urllib.request.urlopen(self.server.admin_base + '/metrics') as reply:
            for line in reply.read().decode().splitlines():
                if line.startswith('pawl_limit_refusals_total{limit="%s"}' % limit):
                    return int(line.split()[-1])
        return -1


def get(connection, headers, path='/v1/definitions'):
    connection.request('GET', path, headers=headers)
    reply = connection.getresponse()
    return reply, reply.read().decode()


def refused(reply, text, limit, setting):
    check(f'{limit}: 429 and not {reply.status} {text[:200]}', reply.status == 429)
    check(f'{limit}: Retry-After is given', reply.getheader('Retry-After') is not None)
    check(f'{limit}: the answer names the setting: {text[:300]}', setting in text)


def connections_of_one_tenant():
    with Tenants('--tenant-max-connections', '3', '--metrics-open') as t:
        open_ = [t.connection() for _ in range(3)]
        for c in open_:
            check('a connection of a is served', get(c, t.a)[0].status == 200)
        refused(*get(t.connection(), t.a), 'TENANT_CONNECTIONS', '--tenant-max-connections')
        check('b is served', get(t.connection(), t.b)[0].status == 200)
        check('open connections of a are served', get(open_[0], t.a)[0].status == 200)
        check('it is counted', t.refusals('TENANT_CONNECTIONS') == 1)
        open_[0].close()
        live.until(lambda: get(t.connection(), t.a)[0].status == 200, 'room after a connection was closed', 5)


def streams_of_one_tenant():
    """HTTP and gRPC streams are counted together."""
    with Tenants('--tenant-max-streams', '2', '--metrics-open') as t:
        for headers in (t.a, t.b):
            check('a type', t.call('PUT', '/pawl/v1/lifecycle/types/thing', TYPE, headers)[0] == 201)
        channel, over = grpc.insecure_channel(t.server.grpc), threading.Event()

        def nothing():
            over.wait(60)
            yield from ()

        def work(headers):
            return channel.stream_stream('/pawl.v1.Workers/Work', **RAW)(nothing(), metadata=(('authorization', headers['Authorization']),))
        first = work(t.a)
        ended = threading.Event()
        first.add_done_callback(lambda _: ended.set())
        check('the first stream stays open', not ended.wait(1))
        connection, reply = t.watch(t.a)
        check(f'the second stream begins ({reply.status})', reply.status == 200)
        _, third = t.watch(t.a)
        refused(third, third.read().decode(), 'TENANT_STREAMS', '--tenant-max-streams')
        fourth = work(t.a)
        check('over gRPC it is RESOURCE_EXHAUSTED', fourth.code() == grpc.StatusCode.RESOURCE_EXHAUSTED)
        check(f'and names the setting: {fourth.details()}', '--tenant-max-streams' in fourth.details())
        kept, other = t.watch(t.b)
        check('b has streams', other.status == 200)
        check('they are counted', t.refusals('TENANT_STREAMS') == 2)
        reply.close()
        connection.close()

        def begins():
            c, again = t.watch(t.a)
            status = again.status
            again.close()
            c.close()
            return status == 200
        live.until(begins, 'room after a stream was closed', 5)
        other.close()
        kept.close()
        over.set()
        first.cancel()
        channel.close()


def jobs_in_flight():
    with Tenants('--tenant-max-jobs', '3') as t:
        for headers in (t.a, t.b):
            check('a definition', t.call('POST', '/v1/definitions', run_fair.DEFINITION, headers)[0] in (200, 201))
            for _ in range(5):
                check('a start', t.call('POST', '/v1/instances', {'definitionId': 'p'}, headers)[0] in (200, 201, 202))
        poll = {'workerId': 'w', 'jobTypes': ['j'], 'maxJobs': 10}
        status, got = t.call('POST', '/v1/jobs/poll', poll, t.a)
        check(f'a worker gets as many jobs as are allowed ({status} {len(got["jobs"])})', len(got['jobs']) == 3)
        connection = t.connection()
        connection.request('POST', '/v1/jobs/poll', json.dumps(poll), {**t.a, 'Content-Type': 'application/json'})
        reply = connection.getresponse()
        refused(reply, reply.read().decode(), 'TENANT_JOBS', '--tenant-max-jobs')
        check('b is served', len(t.call('POST', '/v1/jobs/poll', poll, t.b)[1]['jobs']) == 3)
        status, _ = t.call('POST', f"/v1/jobs/{got['jobs'][0]['id']}/complete", {'workerId': 'w'}, t.a)
        check(f'a job is finished ({status})', status in (200, 204))
        check('then there is room for one', len(t.call('POST', '/v1/jobs/poll', poll, t.a)[1]['jobs']) == 1)


def requests_in_a_second():
    with Tenants('--tenant-max-requests', '20') as t:
        connection = t.connection()
        answers = [get(connection, t.a) for _ in range(40)]
        late = [a for a in answers if a[0].status == 429]
        check(f'some are refused ({len(late)})', 5 <= len(late) <= 20)
        refused(*late[0], 'TENANT_REQUESTS', '--tenant-max-requests')
        check('b is served', get(t.connection(), t.b)[0].status == 200)
        channel = grpc.insecure_channel(t.server.grpc)
        method = channel.unary_unary('/workflow.v1.WorkflowEngine/ListDefinitions', **RAW)
        codes = set()
        for _ in range(40):
            try:
                method(b'', metadata=(('authorization', t.a['Authorization']),))
            except grpc.RpcError as error:
                codes.add(error.code())
        check(f'gRPC calls are counted with them ({codes})', codes == {grpc.StatusCode.RESOURCE_EXHAUSTED})
        channel.close()
        time.sleep(1.1)
        check('a second later a is served again', get(connection, t.a)[0].status == 200)


def bytes_stored():
    with Tenants('--tenant-max-bytes', '2MiB') as t:
        for headers in (t.a, t.b):
            check('a type', t.call('PUT', '/pawl/v1/lifecycle/types/thing', TYPE, headers)[0] == 201)
        made = 0

        def write(headers):
            nonlocal made
            made += 1
            note = os.urandom(100_000).hex()
            return t.call('POST', f'/pawl/v1/lifecycle/instances/thing/e{made}', {'phase': 'open', 'note': note}, headers)
        for _ in range(30):
            status, body = write(t.a)
            check(f'what is not flushed yet does not count ({status} {body})', status == 201)
        # A stop flushes the rows. The size is measured when the server starts and every five seconds, once the tenant has called.
        check('the server stops', t.server.stop() == 0)
        t.server.start()
        check('b writes', write(t.b)[0] == 201)
        live.until(lambda: write(t.a)[0] == 429, 'the refusal of writes', 20)
        status, body = write(t.a)
        check(f'it names the setting ({status} {body})', status == 429 and '--tenant-max-bytes' in json.dumps(body))
        check('reads are not refused', t.call('GET', '/workflows/thing/e1', None, t.a)[0] == 200)
        check('b writes beside it', write(t.b)[0] == 201)


def strangers_of_one_address():
    with Tenants('--address-max-requests', '5', '--address-max-connections', '20', '--metrics-open') as t:
        check('a is served', get(t.connection(), t.a)[0].status == 200)
        statuses, last = [], None
        for _ in range(100):
            reply, text = get(t.connection(), {'Authorization': 'Bearer nonsense'})
            statuses.append(reply.status)
            if reply.status == 429:
                last = (reply, text)
                break
        check(f'strangers get 401 and then 429 ({statuses})', last is not None and set(statuses[:-1]) == {401})
        refused(*last, 'ADDRESS_REQUESTS', '--address-max-requests')
        check('a is served from the same address', get(t.connection(), t.a)[0].status == 200)
        host, port = t.server.http.rsplit(':', 1)
        silent = [socket.create_connection((host, int(port))) for _ in range(30)]
        check('a is served beside silent strangers', get(t.connection(), t.a)[0].status == 200)
        live.until(lambda: t.refusals('ADDRESS_CONNECTIONS') >= 10, 'refused connections', 10)
        check('and afterwards', get(t.connection(), t.a)[0].status == 200)
        for s in silent:
            s.close()


def streams_end_with_their_tokens():
    with Tenants() as t:
        check('a type', t.call('PUT', '/pawl/v1/lifecycle/types/thing', TYPE, t.a)[0] == 201)
        short, over = t.headers('a', 4), threading.Event()
        began = time.monotonic()
        watching, kept = t.watch(short), t.watch(t.a)

        def nothing():
            over.wait(60)
            yield from ()
        channel, ended = grpc.insecure_channel(t.server.grpc), threading.Event()
        work = channel.stream_stream('/pawl.v1.Workers/Work', **RAW)(nothing(), metadata=(('authorization', short['Authorization']),))
        work.add_done_callback(lambda _: ended.set())
        check('the watch begins', watching[1].status == 200 and kept[1].status == 200)
        check('the gRPC stream stays open', not ended.wait(0.5))
        watching[1].read()
        took = time.monotonic() - began
        check(f'the watch ends with its token ({took:.1f} s)', 2 < took < 12)
        check('the gRPC stream ends', ended.wait(5))
        check(f'its status says why ({work.code()})', work.code() == grpc.StatusCode.UNAUTHENTICATED)
        t.call('POST', '/pawl/v1/lifecycle/instances/thing/t1', {'phase': 'open'}, t.a)
        seen = b''
        while b't1' not in seen:  # the connection times out when no event comes
            seen += kept[1].read1(4096)
        check('the other watch goes on', b't1' in seen)
        over.set()
        channel.close()
        kept[1].close()


def the_authority_of_grpc_is_checked():
    with Tenants('--allowed-hosts', 'pawl.example') as t:
        for authority, good in (('localhost', True), ('pawl.example', True), ('evil.example', False)):
            channel = grpc.insecure_channel(t.server.grpc, options=[('grpc.default_authority', authority)])
            method = channel.unary_unary('/workflow.v1.WorkflowEngine/ListDefinitions', **RAW)
            try:
                method(b'', metadata=(('authorization', t.a['Authorization']),))
                check(f'{authority} is served', good)
            except grpc.RpcError as error:
                check(f'{authority}: {error.code()} {error.details()}', not good and error.code() == grpc.StatusCode.PERMISSION_DENIED)
            channel.close()


def memory_of_one_tenant():
    """One tenant fills the memory for bodies as far as it may; the other sends large bodies beside it."""
    with Tenants('--memory-budget', '64MiB') as t:
        for headers in (t.a, t.b):
            check('a definition', t.call('POST', '/v1/definitions', run_fair.DEFINITION, headers)[0] in (200, 201))
        host, port = t.server.http.rsplit(':', 1)
        sockets, size = [], 4_000_000
        for _ in range(10):
            s = socket.create_connection((host, int(port)))
            s.settimeout(10)
            s.sendall(f'POST /v1/instances HTTP/1.1\r\nHost: localhost\r\nAuthorization: {t.a["Authorization"]}\r\nContent-Length: {size}\r\n\r\n'.encode())
            try:
                s.sendall(b' ' * (size - 1))
            except OSError:
                pass  # refused while it was sending
            sockets.append(s)
        answered = []
        for s in sockets:
            s.settimeout(0.5)
            try:
                answered.append(s.recv(4096).decode())
            except OSError:
                pass
        late = [a for a in answered if ' 429 ' in a.split('\r\n')[0]]
        check(f'some bodies of a are refused for its share ({len(late)} of {len(answered)})', late and 'TENANT_MEMORY' in late[0] or 'share' in ''.join(late))
        check('with Retry-After', all('retry-after' in a.lower() for a in late))
        body = json.dumps({'definitionId': 'p', 'variables': {'x': 'y' * 1_000_000}}).encode()
        status, _ = t.call('POST', '/v1/instances', body, t.b)
        check(f'a large body of b is accepted ({status})', status in (200, 201, 202))
        for s in sockets:
            s.close()


def main():
    live.run_parts([connections_of_one_tenant, streams_of_one_tenant, jobs_in_flight, requests_in_a_second, bytes_stored, strangers_of_one_address,
                    streams_end_with_their_tokens, the_authority_of_grpc_is_checked, memory_of_one_tenant])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
