#!/usr/bin/env python3
"""The original's published Python SDK, unchanged, against a real server: workers with heartbeat over REST and gRPC.

The package comes from PyPI into a virtual environment in PAWL_BUILD. Where it cannot be installed, the test says so and is skipped.
"""
import os, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live

VERSION = '1.1.0'
VENV = os.path.join(live.BUILD, f'stock-sdk-{VERSION}')
WORKER = os.path.join(live.ROOT, 'tests', 'sdk', 'stock_worker.py')
# The heartbeat must outlive this lease: the handler takes longer.
LEASE_S, WORK_S = 5, 8


def python_with_sdk():
    """The interpreter that has the SDK, or None."""
    python = os.path.join(VENV, 'bin', 'python')
    probe = [python, '-c', 'import workflow_sdk.client.grpc']
    if os.path.exists(python) and subprocess.run(probe, capture_output=True).returncode == 0:
        return python
    made = subprocess.run([sys.executable, '-m', 'venv', VENV], capture_output=True, text=True)
    if made.returncode == 0:
        made = subprocess.run([python, '-m', 'pip', 'install', '-q', f'rochallor-sdk=={VERSION}'], capture_output=True, text=True, timeout=180)
    if made.returncode == 0 and subprocess.run(probe, capture_output=True).returncode == 0:
        return python
    print(f'SKIPPED: rochallor-sdk {VERSION} cannot be installed here: {made.stderr.strip()[-300:]}')
    return None


def flow(id, **more):
    return {'id': id, 'name': id, 'inputSchema': {'required': ['order']}, 'steps': [
        {'id': 'work', 'name': 'work', 'type': 'SERVICE_TASK', 'jobType': id, 'nextStep': 'size', 'retryCount': 1,
         'outputsSchema': {'properties': {'total': {'type': 'number'}}, 'required': ['total']}},
        {'id': 'size', 'name': 'size', 'type': 'DECISION_TABLE', 'hitPolicy': 'F', 'nextStep': 'end',
         'decisionTable': {'rules': [{'when': {'total': 'total > 10'}, 'outputs': {'size': 'large'}}, {'outputs': {'size': 'small'}}]}},
        {'id': 'end', 'name': 'end', 'type': 'END'}]}


def run_worker(python, server, way):
    """A worker whose handler takes longer than its lease, and that fails its first attempt."""
    id = f'stock-{way}'
    status, got = live.call(server.base, 'POST', '/v1/definitions', flow(id))
    live.check(f'{way}: the definition is stored: {got}', status == 201)
    status, got = live.call(server.base, 'POST', '/v1/instances', {'definitionId': id, 'variables': {}})
    live.check(f'{way}: inputSchema refuses: {got}', status == 400 and "at ''" in got['reason'])
    _, instance = live.call(server.base, 'POST', '/v1/instances', {'definitionId': id, 'variables': {'order': 7}})
    target = server.base if way == 'rest' else server.grpc
    worker = subprocess.Popen([python, WORKER, way, target, id, str(LEASE_S), str(WORK_S)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        path = f'/v1/instances/{instance["id"]}'
        ended = live.until(lambda: live.call(server.base, 'GET', path)[1]['status'] not in ('ACTIVE', 'WAITING'), f'{way}: the instance ends', 40)
    finally:
        worker.terminate()
        said, _ = worker.communicate(timeout=30)
    _, got = live.call(server.base, 'GET', path)
    live.check(f'{way}: {got} {said}', got['status'] == 'COMPLETED' and got['variables'].get('size') == 'large')
    live.check(f'{way}: two attempts, each run once: {said}', said.count('attempt ') == 2 and 'lost' not in said)


def main():
    python = python_with_sdk()
    if not python:
        return 0
    with live.Server() as server:
        for way in ('rest', 'grpc'):
            run_worker(python, server, way)
        if problems := server.stop_and_verify():
            live.check(str(problems), False)
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
