"""A worker of the original's SDK with heartbeat: stock_worker.py rest|grpc TARGET JOBTYPE LEASE_S WORK_S. Its first attempt fails."""
import sys, time

from workflow_sdk.client.grpc import GrpcEngineClient
from workflow_sdk.client.rest import RestEngineClient
from workflow_sdk.handler.registry import HandlerRegistry
from workflow_sdk.runner.runner import Runner

way, target, job_type, lease_s, work_s = sys.argv[1:]
client = RestEngineClient(target) if way == 'rest' else GrpcEngineClient(target)
ids = []


def handle(job):
    ids.append(job['id'])
    print('attempt', len(ids), job['id'], flush=True)
    if len(ids) == 1:
        raise RuntimeError('the first attempt fails')
    cancel, end = job['cancel_event'], time.monotonic() + float(work_s)
    while time.monotonic() < end:
        if cancel.wait(0.05):
            print('lost', flush=True)
            raise RuntimeError('the lease was lost')
    return {'total': 12}


registry = HandlerRegistry()
registry.register(job_type, handle)
Runner(client, registry, worker_id='stock', poll_interval=0.1, lease_seconds=int(lease_s), heartbeat=True).run()
