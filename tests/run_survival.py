#!/usr/bin/env python3
"""What a server survives: rows that are damaged on the disk, and a turn that kills the process again and again."""
import os, random, subprocess, sys, time, urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check

LISTED = {'id': 'listed', 'name': 'Listed', 'steps': [
    {'id': 'u', 'name': 'U', 'type': 'USER_TASK', 'nextStep': 'e'}, {'id': 'e', 'name': 'E', 'type': 'END'}]}


def tables(folder):
    rows = os.path.join(folder, 'rows')
    return [os.path.join(rows, name) for name in os.listdir(rows) if name.endswith('.sst')]


def flip(path, seed):
    """Changes bytes all over a table but not at its end, where RocksDB looks when it opens the file."""
    dice = random.Random(seed)
    with open(path, 'r+b') as f:
        size = os.path.getsize(path)
        for _ in range(40):
            f.seek(dice.randrange(max(1, size - 2000)))
            f.write(b'\x55')


def listed(server):
    """The ids of all instances, as far as the list can be read."""
    status, body = live.call(server.base, 'GET', '/v1/instances?pageSize=1000')
    return {i['id'] for i in body['items']} if status == 200 else set()


def damaged_rows_are_rebuilt():
    server = live.Server()
    with server:
        live.call(server.base, 'POST', '/v1/definitions', LISTED)
        ids = [live.call(server.base, 'POST', '/v1/instances', {'definitionId': 'listed', 'variables': {'n': n, 'x': 'y' * 500}})[1]['id'] for n in range(400)]
        check('exit code 0', server.stop() == 0)
        check('there are tables to damage', tables(server.folder))
        for seed, path in enumerate(tables(server.folder)):
            flip(path, seed)
        server.start()
        lost = set(ids) - listed(server)
        if lost:
            # The damage was found by this list. The server says so, and the next start rebuilds the rows.
            status, text = live.call(f'http://{server.admin}', 'GET', '/readyz?verbose')
            check(f'readyz names the rows: {status} {text}', status == 503 and '[-] rows' in str(text))
            check('exit code 0 with damaged rows', server.stop() == 0)
            server.start()
            lost = set(ids) - listed(server)
        check(f'{len(lost)} of {len(ids)} instances are missing in the list', not lost)
        check('the log says that the rows are rebuilt: ' + server.tail(600), 'rebuilt from the journal' in server.tail(20000))
        check('the server is ready', live.call(f'http://{server.admin}', 'GET', '/readyz')[0] == 200)
        check('a new instance starts', live.call(server.base, 'POST', '/v1/instances', {'definitionId': 'listed'})[0] == 201)
        for problem in server.stop_and_verify():
            check(problem, False)


# The timer leads to expressions that take a fraction of a second: long enough to kill the server in the middle.
SLOW = {'id': 'slow', 'name': 'Slow', 'steps': [
    {'id': 'u', 'name': 'U', 'type': 'USER_TASK', 'nextStep': 'e',
     'boundaryEvents': [{'type': 'TIMER', 'duration': 'PT1S', 'interrupting': True, 'targetStepId': 't0'}]},
    *({'id': f't{i}', 'name': 'T', 'type': 'TRANSFORMATION', 'transformations': {'x': '${count(1..50000, string(#) + "a" == "b")}'},
       'nextStep': f't{i + 1}' if i < 3 else 'e'} for i in range(4)),
    {'id': 'e', 'name': 'E', 'type': 'END'}]}


def in_doubt(server):
    """The effect that the server settles at this moment; empty when it settles none."""
    try:
        with open(os.path.join(server.folder, 'in-doubt'), 'rb') as f:
            page = f.read(4008)
    except OSError:
        return b''
    size = int.from_bytes(page[:8], 'little')
    return page[8:8 + size] if size <= 4000 else b''


def kill_while_it_settles(server, what):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        effect = in_doubt(server)
        if effect:
            server.kill()
            if in_doubt(server) == effect:
                return effect.decode()
            server.start()  # the turn was over a moment before
    check(f'{what}: no turn was caught', False)
    return ''


def pawl(server, *words):
    done = subprocess.run([live.PAWL, *words, '--data', server.folder], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def a_turn_that_kills_the_server_is_quarantined():
    server = live.Server()
    with server:
        status, body = live.call(server.base, 'POST', '/v1/definitions', SLOW)
        check(f'upload: {status} {body}', status == 201)
        instance = live.call(server.base, 'POST', '/v1/instances', {'definitionId': 'slow'})[1]['id']
        effect = kill_while_it_settles(server, 'first')
        server.start()
        check('one crash parks nothing', live.call(f'http://{server.admin}', 'GET', '/quarantine')[1] == {'effects': []})
        check('the second crash is in the same turn', kill_while_it_settles(server, 'second') == effect)
        server.start()
        _, listed = live.call(f'http://{server.admin}', 'GET', '/quarantine')
        check(f'the effect is in quarantine: {listed}', [e['effect'] for e in listed['effects']] == [effect])
        check('the log names it', effect in server.tail(20000) and 'quarantine' in server.tail(20000))
        metrics = urllib.request.urlopen(f'http://{server.admin}/metrics').read().decode()
        check('a metric counts it', 'pawl_quarantined_effects 1' in metrics)
        time.sleep(2)
        check('the timer does not fire', live.call(server.base, 'GET', '/v1/instances/' + instance)[1]['status'] != 'COMPLETED')
        check('other work goes on', live.call(server.base, 'POST', '/v1/instances', {'definitionId': 'slow'})[0] == 201)
        code, text = pawl(server, 'quarantine', 'list')
        check(f'pawl quarantine list: {code} {text}', code == 0 and effect in text)
        code, text = pawl(server, 'quarantine', 'release', 'nothing')
        check(f'pawl quarantine release of nothing fails: {code} {text}', code != 0)
        items = live.call(server.base, 'GET', '/pawl/v1/processes/incidents')[1]['items']
        check(f'it is an incident: {items}', len(items) == 1 and items[0]['sampleInstanceId'] == instance and effect in items[0]['sampleReason'])
        page = '/pawl/v1/processes/instances/' + instance
        shown = live.call(server.base, 'GET', page)[1]
        check(f'the page of the instance shows it: {shown}', [e['effect'] for e in shown.get('quarantine', [])] == [effect])
        status, body = live.call(server.base, 'POST', page + '/retry', {'reason': 'mended'})
        check(f'a retry releases it: {status} {body}', status == 200)
        live.until(lambda: live.call(server.base, 'GET', '/v1/instances/' + instance)[1]['status'] == 'COMPLETED', 'the released timer')
        check('the quarantine is empty', live.call(f'http://{server.admin}', 'GET', '/quarantine')[1] == {'effects': []})
        for problem in server.stop_and_verify():
            check(problem, False)


def main():
    live.run_parts([damaged_rows_are_rebuilt, a_turn_that_kills_the_server_is_quarantined])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
