#!/usr/bin/env python3
"""Kills a server with kill -9 under HTTP load, several times. Every acknowledged change must survive."""
import http.client, json, os, random, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 8
DEFINITION = {'id': 'crash', 'name': 'Crash', 'steps': [
    {'id': 'work', 'name': 'Work', 'type': 'SERVICE_TASK', 'jobType': 'work', 'nextStep': 'nap'},
    {'id': 'nap', 'name': 'Nap', 'type': 'WAIT', 'nextStep': 'done',
     'boundaryEvents': [{'type': 'TIMER', 'duration': 'PT0.2S', 'interrupting': True, 'targetStepId': 'done'}]},
    {'id': 'done', 'name': 'Done', 'type': 'END'}]}


class Told:
    """The acknowledged changes: ids of started instances, and the job that completed each instance."""

    def __init__(self):
        self.lock, self.started, self.completed = threading.Lock(), [], {}


def post(conn, path, body):
    conn.request('POST', path, json.dumps(body), {'Content-Type': 'application/json'})
    reply = conn.getresponse()
    text = reply.read()
    return reply.status, json.loads(text) if text else None


def load(address, told, stop):
    """Starts instances and completes jobs until stopped. A broken connection is opened again: the server may be restarting."""
    host, port = address.split(':')
    while not stop.is_set():
        conn = http.client.HTTPConnection(host, int(port), timeout=10)
        try:
            while not stop.is_set():
                status, instance = post(conn, '/v1/instances', {'definitionId': 'crash', 'variables': {'n': 1}})
                if status == 201:
                    with told.lock:
                        told.started.append(instance['id'])
                status, polled = post(conn, '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': ['work'], 'maxJobs': 2})
                for job in (polled or {}).get('jobs') or []:
                    status, _ = post(conn, f"/v1/jobs/{job['id']}/complete", {'workerId': 'w', 'variables': {'by': job['id']}})
                    if status == 204:
                        with told.lock:
                            told.completed[job['instanceId']] = job['id']
        except (OSError, http.client.HTTPException, ValueError):
            if stop.is_set():
                return
            time.sleep(0.01)


def check(base, told):
    """Reads up to 300 of the acknowledged instances and completions. Returns what is missing."""
    wrong = []
    for id in random.sample(told.started, min(300, len(told.started))):
        status, instance = live.call(base, 'GET', '/v1/instances/' + id)
        if status != 200:
            wrong.append(f'instance {id} was acknowledged and is {status}')
    for id in random.sample(sorted(told.completed), min(300, len(told.completed))):
        _, instance = live.call(base, 'GET', '/v1/instances/' + id)
        if instance['variables'].get('by') != told.completed[id]:
            wrong.append(f"completion of {id} was acknowledged and is lost: {instance}")
    return wrong


def main():
    random.seed(7)
    told, wrong = Told(), []
    with live.Server() as server:
        live.call(server.base, 'POST', '/v1/definitions', DEFINITION)
        for round in range(ROUNDS):
            stop = threading.Event()
            threads = [threading.Thread(target=load, args=(server.http, told, stop)) for _ in range(6)]
            for t in threads:
                t.start()
            time.sleep(0.3 + random.random() * 0.5)
            server.kill()
            stop.set()
            for t in threads:
                t.join()
            server.start()
            wrong += check(server.base, told)
        # Open jobs are offered again and due timers fire, so every instance must end.
        until = time.monotonic() + 60
        while time.monotonic() < until:
            _, polled = live.call(server.base, 'POST', '/v1/jobs/poll', {'workerId': 'last', 'jobTypes': ['work'], 'maxJobs': 100})
            for job in polled['jobs'] or []:
                live.call(server.base, 'POST', f"/v1/jobs/{job['id']}/complete", {'workerId': 'last', 'variables': {'by': job['id']}})
            _, active = live.call(server.base, 'GET', '/v1/instances?status=ACTIVE')
            _, waiting = live.call(server.base, 'GET', '/v1/instances?status=WAITING')
            if active['total'] == 0 and waiting['total'] == 0:
                break
            time.sleep(0.1)
        else:
            wrong.append(f"{active['total']} instances are ACTIVE and {waiting['total']} WAITING for ever")
        wrong += server.stop_and_verify()
    return live.report(f'{ROUNDS} kills, {len(told.started)} starts and {len(told.completed)} completions acknowledged', wrong)


if __name__ == '__main__':
    sys.exit(main())
