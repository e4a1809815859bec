#!/usr/bin/env python3
"""The command line against a real server: output and exit codes."""
import json, os, shutil, socket, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check


def pawl(*words, code=0, stdin=None, server=None):
    """Runs a command and checks its exit code. Returns (stdout, stderr)."""
    env = {**os.environ, **({'PAWL_SERVER': server} if server else {})}
    done = subprocess.run([live.PAWL, *words], capture_output=True, text=True, input=stdin, env=env, timeout=120)
    check(f'pawl {" ".join(words)} ends with {code}, not {done.returncode}: {done.stderr}', done.returncode == code)
    return done.stdout, done.stderr


def write(folder, name, value):
    path = os.path.join(folder, name)
    with open(path, 'w') as f:
        json.dump(value, f)
    return path


def processes(s, folder):
    """One order from deployment to its end, with one command for each step."""
    definition = write(folder, 'order.json', {'id': 'order', 'name': 'Order', 'steps': [
        {'id': 'charge', 'name': 'Charge', 'type': 'SERVICE_TASK', 'jobType': 'charge', 'nextStep': 'approve'},
        {'id': 'approve', 'name': 'Approve', 'type': 'USER_TASK', 'nextStep': 'wait'},
        {'id': 'wait', 'name': 'Wait', 'type': 'WAIT', 'nextStep': 'done'},
        {'id': 'done', 'name': 'Done', 'type': 'END'}]})
    pawl('validate', definition, server=s)
    out, _ = pawl('deploy', definition, server=s)
    check('deploy names id and version', 'order version 1' in out)
    for form, part in (('svg', '<svg'), ('mermaid', 'flowchart'), ('dot', 'digraph')):
        check(f'render {form}', part in pawl('render', definition, '--format', form)[0])
    out, _ = pawl('start', 'order', '--var', 'amount=12', '--business-key', 'bk1', '--json', server=s)
    id = json.loads(out)['id']
    out, _ = pawl('worker', 'exec', '--type', 'charge', '--count', '1', '--', 'python3', '-c',
                  'import json,sys; v=json.load(sys.stdin); print(json.dumps({"charged": v["amount"]}))', server=s)
    check('the shell worker completed a job', 'completed' in out)
    check('the task is listed', id in pawl('task', 'list', server=s)[0])
    pawl('task', 'complete', id, 'approve', '--var', 'ok=true', server=s)
    check('it waits', 'WAITING' in pawl('instance', 'show', id, server=s)[0])
    pawl('signal', id, 'wait', '--var', 'go=1', server=s)
    out, _ = pawl('instance', 'show', id, '--json', server=s)
    instance = json.loads(out)
    check(f'it is over with all variables: {instance}', instance['status'] == 'COMPLETED' and instance['variables'].get('charged') == 12)
    check('history tells events', len(pawl('instance', 'history', id, server=s)[0].splitlines()) > 3)
    check('list finds it by key', id in pawl('instance', 'list', '--business-key', 'bk1', server=s)[0])
    pawl('instance', 'show', 'nobody', code=3, server=s)
    pawl('cancel', id, code=4, server=s)
    pawl('deploy', os.path.join(folder, 'missing.json'), code=3, server=s)
    shell_worker(s, folder)
    operators(s, definition)


def shell_worker(s, folder):
    """pawl worker exec handles SIGTERM in the middle of a job and a result that the server refuses."""
    task = lambda kind: write(folder, f'{kind}.json', {'id': kind, 'name': kind, 'steps': [
        {'id': 'a', 'name': 'a', 'type': 'SERVICE_TASK', 'jobType': kind, 'nextStep': 'end'}, {'id': 'end', 'name': 'e', 'type': 'END'}]})
    told = lambda *words: json.loads(pawl(*words, '--json', server=s)[0])

    def begun(kind, *program):
        pawl('deploy', task(kind), server=s)
        id = told('start', kind)['id']
        worker = subprocess.Popen([live.PAWL, 'worker', 'exec', '--server', s, '--type', kind, '--', *program], stdout=subprocess.DEVNULL)
        time.sleep(1.0)
        return id, worker

    id, worker = begun('slow', 'sh', '-c', 'sleep 2; echo \'{"r": 1}\'')
    worker.terminate()
    check('a worker that is told to stop ends well', worker.wait(30) == 0)
    check('and its last result is whole', told('instance', 'show', id)['variables'] == {'r': 1})
    id, worker = begun('huge', sys.executable, '-c', 'import json; print(json.dumps({"x": "a" * 5_000_000}))')
    live.until(lambda: told('instance', 'show', id)['status'] != 'ACTIVE', 'the huge result to be refused')
    check('a result that is refused fails its job', 'the result was refused' in told('instance', 'show', id).get('failureReason', ''))
    check('and not the worker', worker.poll() is None)
    worker.terminate()
    worker.wait(30)


def operators(s, definition):
    """The commands of operators on running, failed and paused instances."""
    def told(*words, code=0):
        return json.loads(pawl(*words, '--json', code=code, server=s)[0])

    id = told('start', 'order', '--var', 'amount=1')['id']
    check('move goes to the step', told('instance', 'move', id, '--step', 'wait', '--reason', 'why')['currentStepIds'] == ['wait'])
    check('edit sets and removes', told('instance', 'edit', id, '--var', 'a=5', '--remove', 'amount')['variables'] == {'a': 5})
    check('list by variable', [i['id'] for i in told('instance', 'list', '--definition', 'order', '--var', 'a=5')['items']] == [id])
    check('list by time', told('instance', 'list', '--started-from', '2099-01-01T00:00:00Z')['items'] == [])
    events = told('instance', 'history', id)['items']
    check('the state as of an event', told('instance', 'show', id, '--event', str(events[0]['event']))['variables'] == {'amount': 1})
    again = told('instance', 'restart', id, '--step', 'charge', '--var', 'amount=2')
    check(f'restart begins there: {again}', again['currentStepIds'] == ['charge'] and again['previousInstanceId'] == id)
    check('migrate is previewed', told('instance', 'migrate', id, '--preview')['problems'] == [])
    check('bulk previews', told('bulk', 'cancel', '--definition', 'order', '--at', 'wait', '--preview')['matched'] == 1)
    check('bulk by filter', told('bulk', 'cancel', '--definition', 'order', '--at', 'wait')['succeeded'] == 1)
    check('dry-run of a file', told('dry-run', definition)['status'] == 'COMPLETED')
    check('dry-run of an id', told('dry-run', 'order', '--var', 'amount=3')['variables'] == {'amount': 3})
    pawl('definition', 'pause', 'order', '--reason', 'stock', server=s)
    pawl('start', 'order', code=4, server=s)
    pawl('definition', 'resume', 'order', server=s)
    pawl('job', 'pause', 'charge', server=s)
    check('nothing of a paused type', not told('job', 'poll', 'charge')['jobs'])
    check('job types say so', any(t['jobType'] == 'charge' and t['paused'] for t in told('job', 'types')['items']))
    pawl('job', 'resume', 'charge', server=s)
    job = told('job', 'poll', 'charge', '--wait', '0.5')['jobs'][0]
    pawl('job', 'fail', job['id'], '--error', 'no card', server=s)
    check('incidents', any(i['sampleReason'] == 'no card' for i in told('incidents')['items']))
    check('retry with variables', told('retry', job['instanceId'], '--var', 'card=1')['variables'].get('card') == 1)


def entities(s, folder):
    sample = write(folder, 'sample.json', {'name': 'a', 'amount': 1})
    flow = write(folder, 'flow.json', {'workflows': [{'version': '1', 'name': 'w', 'initialState': 'new', 'states': {
        'new': {'transitions': [{'name': 'approve', 'next': 'ok', 'manual': True}]}, 'ok': {'transitions': []}}}], 'importMode': 'REPLACE'})
    pawl('model', 'import', 'prize.1', sample, server=s)
    pawl('workflow', 'import', 'prize.1', flow, server=s)
    pawl('model', 'lock', 'prize.1', server=s)
    check('model list', 'prize' in pawl('model', 'list', server=s)[0])
    check('model export', 'INTEGER' in pawl('model', 'export', 'prize.1', server=s)[0])
    check('workflow render', 'approve' in pawl('workflow', 'render', 'prize.1', '--format', 'mermaid', server=s)[0])
    out, _ = pawl('entity', 'put', 'prize.1', sample, '--json', server=s)
    id = json.loads(out)[0]['entityIds'][0]
    pawl('entity', 'transition', id, 'approve', server=s)
    check('entity get shows the new state', '"ok"' in pawl('entity', 'get', id, server=s)[0])
    check('entity history', 'changeType' in pawl('entity', 'history', id, server=s)[0])
    condition = write(folder, 'condition.json', {'type': 'simple', 'jsonPath': '$.name', 'operatorType': 'EQUALS', 'value': 'a'})
    check('entity search', id in pawl('entity', 'search', 'prize.1', condition, server=s)[0])
    pawl('entity', 'get', '00000000-0000-1000-8000-000000000000', code=3, server=s)
    check('half a command names the whole ones', 'entity search' in pawl('entity', code=2)[1] and 'entity search' in pawl('entity', 'nope', code=2)[1])


def lifecycle(s, folder):
    live.call('http://' + s, 'PUT', '/pawl/v1/lifecycle/types/mission', {
        'bucket': 'M', 'fields': [{'name': 'id', 'type': 'string', 'tags': ['id']},
                                  {'name': 'phase', 'type': 'string', 'tags': ['phase', 'readonly']},
                                  {'name': 'owner', 'type': 'string', 'tags': ['operator_writable']}],
        'transitions': {'planning': ['flying'], 'flying': []}})
    live.call('http://' + s, 'POST', '/pawl/v1/lifecycle/instances/mission/m1', {'id': 'm1', 'phase': 'planning', 'owner': 'ann'})
    check('types', 'mission' in pawl('lifecycle', 'types', server=s)[0])
    check('picture', 'flying' in pawl('lifecycle', 'types', 'mission', '--render', 'mermaid', server=s)[0])
    check('list', 'm1' in pawl('lifecycle', 'list', 'mission', server=s)[0])
    for more in ('m2', 'm3'):
        live.call('http://' + s, 'POST', '/pawl/v1/lifecycle/instances/mission/' + more, {'id': more, 'phase': 'planning', 'owner': 'ann'})
    out, said = pawl('lifecycle', 'list', 'mission', '--limit', '2', '--json', server=s)
    check(f'the first page says how to go on: {said}', [x['id'] for x in json.loads(out)] == ['m1', 'm2'] and '--cursor' in said)
    out, said = pawl('lifecycle', 'list', 'mission', '--limit', '2', '--cursor', said.split()[-1], '--json', server=s)
    check(f'the second is the rest: {out}', [x['id'] for x in json.loads(out)] == ['m3'] and said == '')
    pawl('lifecycle', 'list', 'mission', '--cursor', 'nonsense', code=1, server=s)
    pawl('lifecycle', 'patch', 'mission', 'm1', '--set', 'owner=bob', server=s)
    pawl('lifecycle', 'transition', 'mission', 'm1', 'flying', '--note', 'go', server=s)
    out, _ = pawl('lifecycle', 'show', 'mission', 'm1', server=s)
    check('show', 'bob' in out and 'flying' in out)
    check('history', 'go' in pawl('lifecycle', 'history', 'mission', 'm1', server=s)[0])


def online_backup(server, to):
    """POST /backup on the admin address copies the journal of a running server."""
    ask = lambda to: live.call('http://' + server.admin, 'POST', '/backup?to=' + to)
    status, made = ask(to)
    check(f'a running server is backed up: {status} {made}', status == 200 and made['folder'] == to and made['last'] > 0)
    check('a folder that exists is refused', ask(to)[0] == 400)
    check('the copy verifies', 'no difference' in pawl('verify', '--data', to)[0])


def incomplete_backups(backup, folder):
    """A backup whose copy was interrupted, or that lost frames later, is refused."""
    unfinished = os.path.join(folder, 'unfinished')
    shutil.copytree(backup, unfinished)
    os.remove(os.path.join(unfinished, 'MANIFEST'))
    to = os.path.join(folder, 'never')
    _, err = pawl('restore', '--from', unfinished, '--data', to, code=1)
    check(f'a backup without its manifest is refused: {err}', 'MANIFEST' in err and not os.path.exists(to))
    shorter = os.path.join(folder, 'shorter')
    shutil.copytree(backup, shorter)
    pawl('journal', 'cut', '--data', shorter, '--at', '0', '--yes')
    for command in (('restore', '--from', shorter, '--data', to), ('verify', '--data', shorter)):
        _, err = pawl(*command, code=1)
        check(f'{command[0]}: a backup that lost frames is refused: {err}', 'use another backup' in err)


def lost_journals(whole, folder):
    """A journal that lost acknowledged frames is not served until the loss is accepted, and stays marked."""
    data = os.path.join(folder, 'lossy')
    shutil.copytree(whole, data)
    with live.Server(data=data):
        pass  # builds the rows
    shutil.rmtree(os.path.join(data, 'journal'))
    _, err = pawl('serve', '--data', data, '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--admin', '127.0.0.1:0', code=1)
    check(f'a journal that is gone is missed: {err}', 'accept-loss' in err and 'pawl restore' in err)
    _, err = pawl('journal', 'accept-loss', '--data', data, code=2)
    check(f'a loss must be confirmed: {err}', '--yes' in err)
    pawl('journal', 'accept-loss', '--data', data, '--yes')
    with live.Server(data=data):
        pass
    check('the mark of the loss stays', 'accept-loss' in pawl('journal', 'ls', '--data', data)[0])


def offline(server, folder):
    """The commands that work on a data folder without a server: journal, verify, checkpoint, backup, restore."""
    data = ('--data', server.folder)
    check('journal ls', 'frames 1 to' in pawl('journal', 'ls', *data)[0])
    check('journal show', '"writes"' in pawl('journal', 'show', '1', *data)[0])
    check('journal tail', len(pawl('journal', 'tail', *data, '--limit', '3')[0].splitlines()) == 3)
    check('verify', 'no difference' in pawl('verify', *data)[0])
    env = {**os.environ, 'PAWL_MAX_STATE_VISITS': 'many'}
    for command in ('verify', 'checkpoint'):
        done = subprocess.run([live.PAWL, command, *data], capture_output=True, text=True, env=env, timeout=120)
        check(f'{command} refuses a bad variable: {done.stderr}', done.returncode != 0 and 'PAWL_MAX_STATE_VISITS' in done.stderr)
    pawl('checkpoint', *data)
    backup = os.path.join(folder, 'backup')
    pawl('backup', *data, '--to', backup)
    pawl('backup', *data, '--to', backup, code=4)
    restored = os.path.join(folder, 'restored')
    pawl('restore', '--from', backup, '--data', restored)
    first, second = pawl('journal', 'ls', *data, '--json')[0], pawl('journal', 'ls', '--data', restored, '--json')[0]
    check('the backup has every frame', json.loads(first)['last'] == json.loads(second)['last'])
    check('the restored journal verifies', 'no difference' in pawl('verify', '--data', restored)[0])
    incomplete_backups(backup, folder)
    lost_journals(restored, folder)
    # A changed byte in the middle of the journal is reported with its file and offset.
    segments = os.path.join(restored, 'journal')
    victim = os.path.join(segments, sorted(n for n in os.listdir(segments) if n.endswith('seg'))[0])
    with open(victim, 'r+b') as f:
        f.seek(5000)
        byte = f.read(1)
        f.seek(5000)
        f.write(bytes([byte[0] ^ 1]))
    _, err = pawl('verify', '--data', restored, code=1)
    check(f'a flipped bit is told with its file: {err}', os.path.basename(victim).split('.')[0] in err)


def secure(folder):
    """TLS with a private certificate authority; a server with an unknown certificate is refused."""
    key, certificate = live.make_certificate(folder)
    with live.Server('--tls-certificate', certificate, '--tls-key', key) as s:
        _, err = pawl('instance', 'list', code=5, server='https://' + s.http)
        check(f'an unknown authority is named: {err}', 'certificate' in err)
        os.environ['SSL_CERT_FILE'] = certificate
        pawl('instance', 'list', server='https://' + s.http)
        del os.environ['SSL_CERT_FILE']


def health(folder):
    """pawl health: 0 when the server is ready, 1 otherwise, by flag or by the variables of the server's container."""
    def asked(*words, code, **variables):
        done = subprocess.run([live.PAWL, 'health', *words], capture_output=True, text=True, env={**os.environ, **variables}, timeout=60)
        check(f'pawl health {words} {variables} ends with {code}, not {done.returncode}: {done.stdout} {done.stderr}', done.returncode == code)
        return done.stdout

    key, certificate = live.make_certificate(folder)
    with live.Server() as s:
        check('the answer says ready', ': ready' in asked('--admin', s.admin, code=0))
        asked(code=0, PAWL_ADMIN=s.admin)
        asked(code=0, PAWL_ADMIN=s.admin.replace('127.0.0.1', '0.0.0.0'))
        check('json', json.loads(asked('--admin', s.admin, '--json', code=0))['ready'] is True)
        check('it prints nothing when it is asked to', asked('--admin', s.admin, '--quiet', code=0) == '')
        check('the API is not the admin address', 'not ready' in asked('--admin', s.http, code=1))
    check('a server that is gone is not ready', 'not ready' in asked('--admin', s.admin, code=1))
    with live.Server('--tls-certificate', certificate, '--tls-key', key) as s:
        check('an unknown authority', 'certificate' in asked('--admin', 'https://' + s.admin, code=1))
        asked('--admin', 'https://' + s.admin, '--ca-file', certificate, code=0)
        asked(code=0, PAWL_ADMIN=s.admin, PAWL_TLS_CERTIFICATE=certificate, PAWL_TLS_KEY=key)


def required_jwt(folder):
    """CYODA_REQUIRE_JWT=true refuses to start without the mode jwt and a key."""
    for variables, part in (({}, 'CYODA_REQUIRE_JWT'), ({'CYODA_IAM_MODE': 'mock'}, 'CYODA_REQUIRE_JWT'), ({'CYODA_IAM_MODE': 'jwt'}, 'signing key')):
        env = {**os.environ, 'CYODA_REQUIRE_JWT': 'true', **variables}
        done = subprocess.run([live.PAWL, 'serve', '--data', os.path.join(folder, 'required'), '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0',
                               '--admin', '127.0.0.1:0'], capture_output=True, text=True, env=env, timeout=60)
        check(f'{variables} is refused: {done.stderr}', done.returncode != 0 and part in done.stderr)
    key, _ = live.make_certificate(folder)
    with live.Server(env={'CYODA_REQUIRE_JWT': 'true', 'CYODA_IAM_MODE': 'jwt', 'CYODA_JWT_SIGNING_KEY_FILE': key}) as s:
        check('with a key it starts', s.stop() == 0)


def doctor_sees_ipv6():
    """A port that is taken on an IPv6 address only is not called free."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as taken:
        try:
            taken.bind(('::1', 0))
        except OSError:
            return  # a machine without IPv6
        taken.listen()
        address = f'[::1]:{taken.getsockname()[1]}'
        out = json.loads(pawl('doctor', '--http', address, '--json', code=1)[0])
        row = [r for r in out['findings'] if r['check'] == 'http port'][0]
        check(f'doctor sees a taken IPv6 port: {row}', not row['good'] and address in row['found'])


def without_a_server():
    check('version', pawl('version')[0].startswith('pawl '))
    pawl('nonsense', code=2)
    pawl('serve', '--nonsense', code=2)
    pawl('instance', 'list', code=5, server='127.0.0.1:1')
    check('completion', 'complete' in pawl('completion', 'bash')[0])
    check('completion words', 'journal' in pawl('completion', 'words', '--', 'jo')[0])
    _, err = pawl('serve', '--check-config', '--cors', 'false', code=2)
    check(f'a stray word is refused: {err}', '--name=false' in err)
    check('a flag can be turned off', '= false  (--cors)' in pawl('serve', '--print-config', '--cors=false')[0])
    pawl('serve', '--check-config', '--cors=maybe', code=2)
    check('check-config', 'good' in pawl('serve', '--check-config')[0])
    doctor_sees_ipv6()


def bad_flags():
    """A wrong command line is refused before anything is done. The refusal names the flag, the value and what is allowed."""
    def refused(*words, says):
        _, err = pawl(*words, code=2, server='127.0.0.1:1')
        for part in says:
            check(f'pawl {" ".join(words)} says {part!r}: {err}', part in err)

    refused('lifecycle', 'types', 'mission', '--render', '--server', '127.0.0.1:1', says=['--render needs a value', 'svg, mermaid or dot'])
    refused('instance', 'list', '--server', says=['--server needs a value', 'HOST:PORT'])
    for server in ('24180', ':8080', 'host:0', 'host:port'):
        refused('instance', 'list', '--server', server, says=[f"--server is '{server}'", '127.0.0.1:8080'])
        _, err = pawl('instance', 'list', code=2, server=server)
        check(f'PAWL_SERVER={server} is refused like the flag: {err}', f"PAWL_SERVER is '{server}'" in err and '127.0.0.1:8080' in err)
    for limit in ('abc', '-1', '1.5', ''):
        refused('instance', 'list', f'--limit={limit}', says=[f"--limit is '{limit}'", 'a whole number'])
    refused('instance', 'list', '--status', 'active', says=["--status is 'active'", 'ACTIVE, WAITING'])
    refused('instance', 'list', '--started-from', 'yesterday', says=["--started-from is 'yesterday'", '2026-01-31T12:00:00Z'])
    refused('start', 'order', '--wait', '--timeout', 'soon', says=["--timeout is 'soon'", 'a number of seconds'])
    refused('start', 'order', '--var', 'amount', says=["--var is 'amount'", 'NAME=VALUE'])
    refused('render', 'x', '--format', 'png', says=["--format is 'png'", 'svg, mermaid or dot'])
    refused('journal', 'tail', '--limit', 'all', says=["--limit is 'all'", 'a whole number'])
    refused('instance', 'list', '--json=yes', says=['--json takes no value'])
    for flag, value in (('auth', 'basic'), ('log-level', 'loud'), ('log-format', 'xml'), ('error-mode', 'chatty'), ('threads', 'two'),
                        ('jwt-expiry', 'soon'), ('http', 'nowhere')):
        refused('serve', '--check-config', f'--{flag}', value, says=[f"--{flag} is '{value}'", 'allowed: '])
    for flag in ('journal', 'node'):
        refused('serve', '--check-config', f'--{flag}', '4', says=[f'there is no flag --{flag}'])
    refused('serve', '--htpp', ':1', says=['did you mean --http?'])
    refused('instance', 'list', '--defnition', 'x', says=['did you mean --definition?'])
    refused('instances', says=['did you mean instance?'])
    for words in (('cancel', 'id', 'extra'), ('instance', 'list', 'extra'), ('verify', 'extra'), ('version', 'extra'), ('doctor', 'extra'),
                  ('task', 'complete', 'id', 'step', 'extra')):
        refused(*words, says=["the word 'extra' is not used"])
    refused('cancel', 'id', '--', 'extra', says=["'extra' after -- is not used"])
    check('the last of a repeated flag counts', '= 3  (--threads)' in pawl('serve', '--print-config', '--threads', '2', '--threads', '3')[0])
    env = {**os.environ, 'PAWL_AUTH': 'basic'}
    done = subprocess.run([live.PAWL, 'serve', '--check-config'], capture_output=True, text=True, env=env)
    check(f'a bad variable is refused: {done.stderr}', done.returncode == 1 and 'auth (from PAWL_AUTH) is' in done.stderr)
    check('a refused command prints nothing else', pawl('instance', 'list', '--limit', 'x', code=2)[0] == '')
    check('help needs no words', 'pawl cancel INSTANCE' in pawl('cancel', '--help')[0])


def with_a_server(folder):
    with live.Server('--backup-dir', folder) as s:
        pawl('journal', 'ls', '--data', s.folder, code=4)
        for part in (processes, entities, lifecycle):
            part(s.http, folder)
        online_backup(s, os.path.join(folder, 'online'))
        check('the running server checks its journal', 'checksum' in pawl('verify', '--online', '--data', s.folder)[0])
        check('exit code 0', s.stop() == 0)
        offline(s, folder)


def main():
    with tempfile.TemporaryDirectory(prefix='pawl-cli-') as folder:
        live.run_parts([without_a_server, bad_flags, ('with_a_server', lambda: with_a_server(folder)), ('secure', lambda: secure(folder)),
                        ('health', lambda: health(folder)), ('required_jwt', lambda: required_jwt(folder))])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
