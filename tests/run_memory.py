#!/usr/bin/env python3
"""Attacks on the memory of a real server with --memory-budget 256MiB. In each, the peak of its resident memory stays below
1 GiB, callers over the budget are told to retry, and an honest caller is still served."""
import concurrent.futures, json, os, socket, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import Server, call, check

MIB = 1024 * 1024
MAX_RESIDENT = 1024 * MIB
DEFINITION = {'id': 'p', 'name': 'P', 'steps': [{'id': 'a', 'name': 'A', 'type': 'SERVICE_TASK', 'jobType': 'j', 'nextStep': 'e'},
                                                {'id': 'e', 'name': 'E', 'type': 'END'}]}
TYPE = {'bucket': 'B', 'key_prefix': 'b.', 'transitions': {'open': []},
        'fields': [{'name': 'entity_id', 'type': 'string', 'tags': ['id']}, {'name': 'phase', 'type': 'string', 'tags': ['phase', 'readonly']},
                   {'name': 'note', 'type': 'string', 'tags': ['operator_writable']}]}


def memory_of(server, name):
    """A line of /proc/PID/status in bytes: VmRSS is the resident memory now, VmHWM its peak."""
    with open(f'/proc/{server.process.pid}/status') as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(name + ':'))


def small_server(*flags, env=None):
    return Server('--memory-budget', '256MiB', '--log-level', 'warn', *flags, env=env)


def stays_small(server, attack):
    peak = memory_of(server, 'VmHWM')
    print(f'{attack}: peak {peak // MIB} MiB, now {memory_of(server, "VmRSS") // MIB} MiB', flush=True)
    check(f'{attack}: the peak of {peak // MIB} MiB is below {MAX_RESIDENT // MIB} MiB', peak < MAX_RESIDENT)
    began = time.monotonic()
    status, _ = call(server.base, 'GET', '/v1/definitions')
    check(f'{attack}: an honest caller is served ({status})', status in (200, 401) and time.monotonic() - began < 5)


def connect(server, small_buffer=False):
    s = socket.socket()
    if small_buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.settimeout(30)
    host, port = server.http.rsplit(':', 1)
    s.connect((host, int(port)))
    return s


def head_of(s):
    """The head of the next answer as text; empty when the connection ended without one."""
    data = b''
    try:
        while b'\r\n\r\n' not in data:
            piece = s.recv(4096)
            if not piece:
                break
            data += piece
    except OSError:
        pass
    return data.split(b'\r\n\r\n')[0].decode(errors='replace')


def upload(server, count, path, body, answers):
    """Opens `count` uploads and sends all but the last byte of each, then the last bytes. Fills `answers` with heads."""
    sockets = [connect(server) for _ in range(count)]

    def one(s):
        try:
            s.sendall(f'POST {path} HTTP/1.1\r\nHost: localhost\r\n{live.head_lines(server)}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n'.encode())
            s.sendall(body[:-1])
        except OSError:
            pass  # refused while it was sending: the answer is read below
    threads = [threading.Thread(target=one, args=(s,)) for s in sockets]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for s in sockets:
        try:
            s.sendall(body[-1:])
        except OSError:
            pass
    for s in sockets:
        answers.append(head_of(s))
        s.close()


LARGE_START = json.dumps({'definitionId': 'p', 'variables': {'x': 'y' * 4_000_000}, 'ignored': ' ' * 5_000_000}).encode()


def bodies():
    """Many large bodies at the same time."""
    with small_server() as server:
        call(server.base, 'POST', '/v1/definitions', DEFINITION)
        answers = []
        upload(server, 100, '/v1/instances', LARGE_START, answers)
        done = [a for a in answers if ' 20' in a.split('\r\n')[0]]
        refused = [a for a in answers if ' 503 ' in a.split('\r\n')[0]]
        print(f'{len(done)} accepted, {len(refused)} put off, {len(answers) - len(done) - len(refused)} cut')
        check('some bodies are put off', len(refused) > 0)
        check('they are told when to retry', all('retry-after:' in a.lower() for a in refused))
        stays_small(server, 'bodies')
        status, _ = call(server.base, 'POST', '/v1/instances', LARGE_START)
        check(f'a large body is accepted once there is room ({status})', status in (200, 201, 202))


def callers_without_a_token():
    """Large bodies of callers that are not known are not read at all."""
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, 'key.pem')
        live.make_rsa_key(key)
        with small_server('--auth', 'jwt', env={'PAWL_JWT_KEY_FILE': key}) as server:
            before = memory_of(server, 'VmHWM')
            answers = []
            upload(server, 150, '/v1/instances', b'x' * (10 * MIB), answers)
            refused = [a for a in answers if ' 401 ' in a.split('\r\n')[0]]
            check(f'callers without a token get 401 ({len(refused)} of {len(answers)})', len(refused) > 100)
            grown = memory_of(server, 'VmHWM') - before
            check(f'their bodies are not held ({grown // MIB} MiB)', grown < 100 * MIB)
            stays_small(server, 'callers without a token')


def unread_watches(server, watches, writes):
    """Opens watches that are never read, and writes large entities. Returns the sockets and the number of accepted writes."""
    check('the type is declared', call(server.base, 'PUT', '/pawl/v1/lifecycle/types/thing', TYPE)[0] in (200, 201))
    watchers = []
    for _ in range(watches):
        s = connect(server, small_buffer=True)
        s.sendall(f'GET /workflows/thing?stream=true HTTP/1.1\r\nHost: localhost\r\n{live.head_lines(server)}Accept: text/event-stream\r\n\r\n'.encode())
        watchers.append(s)
    check('a watch is open', ' 200 ' in head_of(watchers[0]))
    made = 0
    for i in range(writes):
        status, _ = call(server.base, 'POST', f'/pawl/v1/lifecycle/instances/thing/e{i}', {'phase': 'open', 'note': 'n' * 500_000})
        made += status == 201
    return watchers, made


def watchers_that_do_not_read():
    """Many watches of large entities whose readers never read."""
    with small_server() as server:
        watchers, made = unread_watches(server, 300, 24)
        check(f'writers are served beside them ({made})', made == 24)
        time.sleep(2)
        stays_small(server, 'watchers that do not read')
        for s in watchers:
            s.close()


def large_open_jobs(server, count):
    """Starts instances whose jobs carry variables of 4 MB."""
    call(server.base, 'POST', '/v1/definitions', DEFINITION)
    body = json.dumps({'definitionId': 'p', 'variables': {'x': 'y' * 4_000_000}}).encode()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda _: call(server.base, 'POST', '/v1/instances', body)[0], range(count)))
    return sum(status in (200, 201, 202) for status in answers)


def variables_of_open_jobs():
    with small_server() as server:
        count = 100
        started = large_open_jobs(server, count)
        check(f'every instance starts ({started})', started == count)
        stays_small(server, 'variables of open jobs')
        status, got = call(server.base, 'POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': ['j'], 'maxJobs': 1})
        jobs = (got or {}).get('jobs') or []
        check(f'a job carries its variables ({status})', len(jobs) == 1 and len(json.dumps(jobs[0])) > 4_000_000)


class UnreadWorkers:
    """gRPC workers that give credit for everything and read nothing, until they are closed."""

    def __init__(self, server, count):
        import grpc
        with tempfile.TemporaryDirectory() as folder:
            live.compile_protos(os.path.join(live.ROOT, 'proto', 'processes'), ['workers.proto'], folder)
            import workers_pb2
        self.stop = threading.Event()

        def messages():
            yield workers_pb2.FromWorker(hello=workers_pb2.Hello(worker_id='w', job_types=['j'], credit=10_000))
            self.stop.wait(60)
        metadata = [('authorization', value) for value in server.headers.values()]
        self.channels = [grpc.insecure_channel(server.grpc) for _ in range(count)]
        self.streams = [c.stream_stream('/pawl.v1.Workers/Work', request_serializer=workers_pb2.FromWorker.SerializeToString,
                                        response_deserializer=workers_pb2.ToWorker.FromString)(messages(), metadata=metadata) for c in self.channels]

    def close(self):
        self.stop.set()
        for stream, channel in zip(self.streams, self.channels):
            stream.cancel()
            channel.close()


def a_worker_that_never_reads():
    with small_server() as server:
        started = large_open_jobs(server, 100)
        check(f'every instance starts ({started})', started == 100)
        workers = UnreadWorkers(server, 4)
        time.sleep(5)
        stays_small(server, 'a worker that never reads')
        workers.close()
        # The jobs that the streams held are offered again.
        live.until(lambda: len((call(server.base, 'POST', '/v1/jobs/poll', {'workerId': 'v', 'jobTypes': ['j'], 'maxJobs': 1})[1] or {}).get('jobs') or []) == 1,
                   'a job for an honest worker')


def main():
    live.need_grpc()
    live.run_parts([bodies, callers_without_a_token, watchers_that_do_not_read, variables_of_open_jobs, a_worker_that_never_reads])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
