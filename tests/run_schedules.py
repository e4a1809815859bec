#!/usr/bin/env python3
"""Schedules on a real server: each due run starts once, whatever kills the server around the due moment; the commands."""
import datetime, json, os, random, subprocess, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check

PATH = '/pawl/v1/processes/schedules'
END = {'id': 'end', 'name': 'e', 'type': 'END'}


def call(server, method, path, body=None):
    return live.call(server.base, method, path, body)


def runs_of(server, schedule):
    """The runs of a schedule, the oldest first."""
    status, page = call(server, 'GET', f'{PATH}/{schedule}/runs')
    assert status == 200, page
    return list(reversed(page['items']))


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


def kills():
    """The server dies around due moments, again and again. Every run starts once, and in order."""
    with live.Server(keep_ports=True) as server:
        dice = random.Random(7)
        call(server, 'POST', '/v1/definitions', {'id': 'tick', 'name': 't', 'steps': [END]})
        begin = time.time() + 1
        start = datetime.datetime.fromtimestamp(int(begin), datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
        status, made = call(server, 'POST', PATH, {'id': 's', 'definitionId': 'tick', 'interval': 'PT1S', 'startAt': start,
                                                   'catchUp': 'all', 'overlap': 'allow', 'timeVariable': 'due'})
        check(f'create: {status} {made}', status == 201)
        for _ in range(8):
            # Up to 20 ms before or after a full second, when the next run is due.
            now = time.time()
            time.sleep(max(0, int(now) + 2 + dice.uniform(-0.02, 0.02) - now))
            server.kill()
            server.start()
        until = time.time() + 30
        while True:
            runs = runs_of(server, 's')
            last = seconds(runs[-1]['scheduledFor']) if runs else 0
            if last > time.time() - 2 or time.time() > until:
                break
            time.sleep(0.2)
        call(server, 'POST', f'{PATH}/s/pause')
        runs = runs_of(server, 's')
        due = [seconds(run['scheduledFor']) for run in runs]
        check(f'each run is due one second after the one before: {due}', due == [due[0] + n for n in range(len(due))])
        check(f'the first run was due at the start: {due[0]} {start}', due[0] == seconds(start))
        check(f'all runs started: {runs}', all(run['outcome'] == 'started' for run in runs))
        status, page = call(server, 'GET', '/v1/instances?definitionId=tick&pageSize=1000')
        found = {item['variables']['due']: item['id'] for item in page['items']}
        check(f'one instance for each run: {page["total"]} instances, {len(runs)} runs', page['total'] == len(runs) == len(found))
        check('the runs name their instances', all(found.get(run['scheduledFor'].replace('.000000', '')) == run['instanceId'] for run in runs))
        for problem in server.stop_and_verify():
            live.fail(problem)


def queue():
    """The end of an instance starts the queued run, also when the server died in between."""
    with live.Server(keep_ports=True) as server:
        wait = {'id': 'w', 'name': 'w', 'type': 'WAIT', 'nextStep': 'end'}
        call(server, 'POST', '/v1/definitions', {'id': 'slow', 'name': 's', 'steps': [wait, END]})
        call(server, 'POST', PATH, {'id': 'q', 'definitionId': 'slow', 'interval': 'PT1H', 'overlap': 'queue'})
        first = call(server, 'POST', f'{PATH}/q/trigger')[1]
        check(f'trigger: {first}', first['outcome'] == 'started')
        second = call(server, 'POST', f'{PATH}/q/trigger')[1]
        check(f'a second trigger waits: {second}', second['outcome'] == 'queued')
        server.kill()
        server.start()
        check('the queue survives', call(server, 'GET', f'{PATH}/q')[1]['queued'] == 1)
        call(server, 'POST', f'/v1/instances/{first["instanceId"]}/signals/w', {})
        server.kill()
        server.start()
        until = time.time() + 10
        while len(runs_of(server, 'q')) < 2 and time.time() < until:
            time.sleep(0.05)
        runs = runs_of(server, 'q')
        check(f'the queued run started once: {runs}', [run['outcome'] for run in runs] == ['started', 'started'])
        for problem in server.stop_and_verify():
            live.fail(problem)


def commands():
    with live.Server() as server:
        call(server, 'POST', '/v1/definitions', {'id': 'tick', 'name': 't', 'steps': [END]})

        def pawl(*words):
            done = subprocess.run([live.PAWL, 'schedule', *words, '--server', server.http, '--json'], capture_output=True, text=True)
            return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

        code, out, err = pawl('put', 'daily', '--definition', 'tick', '--cron', '0 9 * * MON-FRI', '--zone', 'Europe/Berlin', '--var', 'n=1',
                              '--overlap', 'queue', '--catch-up', 'all')
        check(f'put: {code} {out} {err}', code == 0 and out['variables'] == {'n': 1} and out['overlap'] == 'queue')
        code, out, err = pawl('put', 'daily', '--definition', 'tick', '--cron', '0 9 * * *')
        check(f'put of one that exists: {code} {err}', code == 4)
        code, out, err = pawl('put', 'daily', '--definition', 'tick', '--every', 'PT1H', '--replace')
        check(f'replace: {code} {out} {err}', code == 0 and out['interval'] == 'PT1H' and 'cron' not in out)
        code, out, err = pawl('put', 'bad', '--definition', 'tick', '--cron', '61 * * * *')
        check(f'bad cron: {code} {err}', code == 1 and 'is no minute' in err)
        code, out, err = pawl('next', 'daily', '--count', '3')
        check(f'next: {code} {out} {err}', code == 0 and len(out['items']) == 3)
        check('pause', pawl('pause', 'daily', '--reason', 'x')[1]['state'] == 'paused')
        check('list', [s['state'] for s in pawl('list')[1]['items']] == ['paused'])
        check('resume', pawl('resume', 'daily')[1]['state'] == 'active')
        code, out, err = pawl('trigger', 'daily')
        check(f'trigger: {code} {out} {err}', code == 0 and out['outcome'] == 'started')
        check('runs', pawl('runs', 'daily')[1]['items'][0]['instanceId'] == out['instanceId'])
        check('show', pawl('show', 'daily')[1]['counts']['started'] == 1)
        check('delete', pawl('delete', 'daily')[0] == 0)
        check('gone', pawl('show', 'daily')[0] == 3)


if __name__ == '__main__':
    live.run_parts([kills, queue, commands])
    sys.exit(live.report())
