#!/usr/bin/env python3
"""/openapi.json of a real server: it is valid, a client that is generated from it works, and requests that are generated from
it find no 5xx, no status that it does not list and no answer that breaks its schema.

The packages come from PyPI into an environment in PAWL_BUILD (scripts/setup-openapi). Where they cannot be installed, the test
says so and is skipped.
"""
import json, os, subprocess, sys, tempfile, urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live

TOOLS = os.path.join(live.ROOT, 'tests', 'openapi_tools')
SEED, EXAMPLES = 20, 6
CHECKS = 'not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance'


# Operations that would end the token of the test itself: the tool finds the ids of clients and keys in answers.
REVOKES = {'deleteMachineClient', 'resetMachineClientSecret', 'invalidateKeyPair', 'deleteKeyPair'}


def tool_python():
    """The interpreter that has the tools, or None."""
    made = subprocess.run([os.path.join(live.ROOT, 'scripts', 'setup-openapi'), live.BUILD], capture_output=True, text=True)
    if made.returncode == 0:
        return made.stdout.strip()
    print(f'SKIPPED: the packages of scripts/packages-openapi.txt cannot be installed here: {made.stderr.strip()[-300:]}')
    return None


def document_of(base):
    with urllib.request.urlopen(base + '/openapi.json', timeout=30) as reply:
        return json.load(reply)


def validate(python):
    with live.Server() as server, tempfile.TemporaryDirectory() as folder:
        for base in (server.base, server.admin_base):
            path = os.path.join(folder, 'openapi.json')
            with open(path, 'w') as f:
                json.dump(document_of(base), f)
            done = subprocess.run([python, '-m', 'openapi_spec_validator', path], capture_output=True, text=True)
            live.check(f'{base} has a valid document: {done.stdout[-2000:]}{done.stderr[-2000:]}', done.returncode == 0)


def use_generated_client(python):
    with live.Server() as server, tempfile.TemporaryDirectory() as folder:
        document, package = os.path.join(folder, 'openapi.json'), os.path.join(folder, 'pawl_client')
        with open(document, 'w') as f:
            json.dump(document_of(server.base), f)
        with open(os.path.join(folder, 'config.yml'), 'w') as f:
            f.write('post_hooks: []\n')
        made = subprocess.run([python, '-m', 'openapi_python_client', 'generate', '--path', document, '--meta', 'none', '--output-path', package,
                               '--config', os.path.join(folder, 'config.yml')], capture_output=True, text=True)
        # It warns of media types that it does not know (XML), but leaves no operation and no schema out.
        left_out = [line for line in made.stdout.splitlines() if 'will not be generated' in line or line.startswith('Unable')]
        live.check(f'a client is generated: {left_out or made.stdout[-3000:]}{made.stderr[-2000:]}', made.returncode == 0 and not left_out)
        done = subprocess.run([python, os.path.join(TOOLS, 'use_client.py'), folder, server.base], capture_output=True, text=True)
        live.check(f'the client works: {done.stdout[-1000:]}{done.stderr[-3000:]}', done.returncode == 0 and 'done' in done.stdout)


def without_random(document):
    """Operations that generated requests leave out: streams without end, those that the API only declares (501), and REVOKES."""
    out = []
    for item in document['paths'].values():
        for operation in item.values():
            answers = operation['responses']
            endless = any('text/event-stream' in a.get('content', {}) and len(a['content']) == 1 for a in answers.values())
            declared = not any(status.startswith('2') for status in answers)
            if endless or declared or operation['operationId'] in REVOKES:
                out.append(operation['operationId'])
    return out


TYPE = {'bucket': 'b', 'fields': [{'name': 'id', 'type': 'string', 'tags': ['id']}, {'name': 'phase', 'type': 'string', 'tags': ['phase']},
                                   {'name': 'note', 'type': 'string', 'tags': ['operator_writable']}],
        'transitions': {'planned': ['flying'], 'flying': ['planned', 'landed'], 'landed': []}}
STEPS = [{'id': 'work', 'name': 'W', 'type': 'SERVICE_TASK', 'jobType': 'work', 'nextStep': 'wait'},
         {'id': 'wait', 'name': 'W', 'type': 'WAIT', 'nextStep': 'task'}, {'id': 'task', 'name': 'T', 'type': 'USER_TASK', 'nextStep': 'end'},
         {'id': 'end', 'name': 'E', 'type': 'END'}]
AIR = [{'$kind': 'manifest', 'air_version': '2', 'schemas': [], 'modules': [], 'workflows': [], 'effects': [], 'routing': {
    'subscriptions': [{'event': 'sys/WorkspaceCommit@1', 'workflow': 'sys/Workspace@1', 'key_field': 'workspace'}]}}]


def make_things(base, headers):
    """Makes something of each kind. Returns the rows of PAWL_KNOWN that name them."""
    def make(method, path, body=None, more=None):
        status, got = live.call(base, method, path, body, {**headers, **(more or {})})
        live.check(f'{method} {path}: {status} {got}', status < 300)
        return got
    process, entity = '/(pawl/)?v1/(processes/)?', '/api/entity/'
    make('POST', '/v1/definitions', {'id': 'known', 'name': 'K', 'steps': STEPS, 'queries': {'total': 'amount'}})
    instances = [make('POST', '/v1/instances', {'definitionId': 'known', 'variables': {'amount': n}})['id'] for n in range(12)]
    jobs = [job['id'] for job in make('POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': ['work'], 'maxJobs': 8})['jobs']]
    for job in jobs[:4]:
        make('POST', f'/v1/jobs/{job}/complete', {'workerId': 'w'})
    make('POST', '/pawl/v1/processes/schedules', {'id': 'known', 'definitionId': 'known', 'interval': 'PT1H'})
    make('POST', '/api/model/import/JSON/SAMPLE_DATA/known/1', {'name': 'a', 'amount': 1, 'tags': ['x']})
    make('PUT', '/api/model/known/1/lock')
    made = make('POST', '/api/entity/JSON/known/1', [{'name': str(n), 'amount': n, 'tags': []} for n in range(6)])
    job = make('POST', '/api/search/async/known/1', {'type': 'simple', 'jsonPath': '$.name', 'operatorType': 'EQUALS', 'value': '1'})
    message = make('POST', '/api/message/new/known', {'payload': {'a': 1}})[0]['entityIds']
    make('PUT', '/pawl/v1/lifecycle/types/known', TYPE)
    for n in range(6):
        make('POST', f'/pawl/v1/lifecycle/instances/known/m{n}', {'phase': 'planned'})
    make('PUT', '/pawl/v1/lifecycle/rules/known', {'workflow': 'known', 'on': {'phase': 'flying'}, 'then': [{'type': 'lifecycle_fail', 'reason': 'r'}]})
    make('POST', '/v1/worlds', {'world_id': 'known', 'air': AIR})
    make('POST', '/v1/worlds/known/events', {'schema': 'sys/WorkspaceCommit@1', 'value': {
        'workspace': 'known', 'expected_head': None, 'meta': {'root_hash': make('POST', '/v1/workspace/roots')['root_hash'], 'owner': 'o', 'created_at': 0}}})
    make('PUT', '/v1/secrets/bindings/known', {'plaintext': 's'})
    root, blob = make('POST', '/v1/workspace/roots')['root_hash'], make('POST', '/v1/cas/blobs', b'hello')['hash']
    ids = made[0]['entityIds']
    return [(process + 'definitions/', 'id', ['known']), (process + 'definitions/', 'version', [1]), (process + 'instances/', 'id', instances),
            (process + 'instances/', 'step', ['work', 'wait', 'task']), ('/pawl/v1/processes/instances/', 'name', ['total']), ('/v1/jobs/', 'id', jobs),
            ('/pawl/v1/processes/job-types/', 'type', ['work']), ('/pawl/v1/processes/schedules/', 'id', ['known']),
            ('/api/(model|search|entity/stats)/', 'name', ['known']), ('/api/(model|search|entity/stats)/', 'version', [1]),
            (entity, 'idOrFormat', [*ids, 'JSON']), (entity, 'id', ids), (entity, 'idOrName', [*ids, 'known']), (entity, 'format', ['JSON']),
            (entity, 'formatOrName', ['known', 'JSON']), (entity, 'idOrVersion', [*ids, 1]), (entity, 'transitionOrVersion', ['UPDATE', 1]),
            ('/api/audit/', 'id', ids), ('/api/audit/', 'tx', [made[0]['transactionId']]), ('/api/search/async/', 'job', [job]), ('/api/message/', 'id', message),
            ('/(workflows|pawl/v1/lifecycle)/', 'type', ['known']), ('/(workflows|pawl/v1/lifecycle)/', 'id', [f'm{n}' for n in range(6)]),
            ('/pawl/v1/lifecycle/rules/', 'name', ['known']), ('/v1/worlds/', 'id', ['known']), ('/v1/worlds/', 'workflow', ['sys/Workspace@1', 'sys/Workspace@1/cells']),
            ('/v1/secrets/', 'id', ['known']), ('/v1/secrets/', 'version', [1]), ('/v1/workspace/', 'root', [root]), ('/v1/cas/', 'sha', [blob])]


def send_random(python, base, headers, known=()):
    """One run of schemathesis. Its report is shown when it fails."""
    left_out = [word for id in without_random(document_of(base)) for word in ('--exclude-operation-id', id)]
    given = [word for name, value in headers.items() for word in ('-H', f'{name}: {value}')]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, '-m', 'schemathesis.cli', 'run', base + '/openapi.json', '--checks', CHECKS, '--phases', 'examples,fuzzing',
                               '--max-examples', str(EXAMPLES), '--seed', str(SEED), '--workers', '2', '--generation-database', 'none',
                               '--generation-with-security-parameters', 'false', '--warnings', 'off', '--request-timeout', '20', '--no-color', '--continue-on-failure', *left_out, *given],
                              capture_output=True, text=True, cwd=folder,
                              env={**os.environ, 'PYTHONPATH': TOOLS, 'SCHEMATHESIS_HOOKS': 'hooks', 'NO_COLOR': '1', 'PAWL_KNOWN': json.dumps(known)})
    live.check(f'random requests to {base}:\n{done.stdout[-30000:]}\n{done.stderr[-3000:]}', done.returncode == 0)


def random_requests(python):
    with live.JwtServer(env={'PAWL_WORLDS_SECRET_KEY': '0f' * 32}) as server:
        send_random(python, server.base, server.boss(), make_things(server.base, server.boss()))
        live.check('the server still answers', live.call(server.base, 'GET', '/v1/health')[0] == 200)
        for problem in server.stop_and_verify():
            live.fail(problem)


def random_admin_requests(python):
    with live.JwtServer() as server:
        send_random(python, server.admin_base, server.boss())


def main():
    python = tool_python()
    if not python:
        return 0
    live.run_parts([(part.__name__, lambda part=part: part(python))
                    for part in (validate, use_generated_client, random_admin_requests, random_requests)])
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
