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
SEED, EXAMPLES = 20, 8
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
                               '--config', os.path.join(folder, 'config.yml'), '--fail-on-warning'], capture_output=True, text=True)
        live.check(f'a client is generated: {made.stdout[-3000:]}{made.stderr[-2000:]}', made.returncode == 0)
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


def send_random(python, base, headers):
    """One run of schemathesis. Its report is shown when it fails."""
    left_out = [word for id in without_random(document_of(base)) for word in ('--exclude-operation-id', id)]
    given = [word for name, value in headers.items() for word in ('-H', f'{name}: {value}')]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, '-m', 'schemathesis.cli', 'run', base + '/openapi.json', '--checks', CHECKS, '--phases', 'examples,fuzzing',
                               '--max-examples', str(EXAMPLES), '--seed', str(SEED), '--workers', '2', '--generation-database', 'none',
                               '--generation-with-security-parameters', 'false', '--warnings', 'off', '--request-timeout', '20', '--no-color', '--continue-on-failure', *left_out, *given],
                              capture_output=True, text=True, cwd=folder,
                              env={**os.environ, 'PYTHONPATH': TOOLS, 'SCHEMATHESIS_HOOKS': 'hooks', 'NO_COLOR': '1'})
    live.check(f'random requests to {base}:\n{done.stdout[-30000:]}\n{done.stderr[-3000:]}', done.returncode == 0)


def random_requests(python):
    with live.JwtServer(env={'PAWL_WORLDS_SECRET_KEY': '0f' * 32}) as server:
        send_random(python, server.base, server.boss())
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
