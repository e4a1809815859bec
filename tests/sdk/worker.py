"""worker.py URL GRPC RECORD is the worker that tests/run_sdk.py starts.

It writes a line to the file RECORD when a slow job begins and ends. GRPC is not used: this SDK polls over HTTP.
PAWL_CLIENT_ID and PAWL_CLIENT_SECRET are set when the server requires a token."""
import logging
import os
import sys
import time

from pawl import Credentials, JobFailed, Retry, Worker

URL, _, RECORD = sys.argv[1:4]
logging.basicConfig(level=logging.WARNING)
ID = os.environ.get('PAWL_CLIENT_ID')
TOKEN = Credentials(URL, ID, os.environ['PAWL_CLIENT_SECRET']) if ID else None
worker = Worker(URL, token=TOKEN, concurrency=4, max_wait_ms=1000)


def note(word, job):
    with open(RECORD, 'a') as f:
        f.write(f'{word} {job.instance_id} {job.step_id}\n')


@worker.job('py-flaky')
def flaky(job):
    """Fails until one retry is left."""
    if job.retries_left > 1:
        raise Retry('not yet')
    return {'retriesLeft': job.retries_left}


@worker.job('py-final')
def final(job):
    raise JobFailed('no further attempt helps')


@worker.job('py-odd')
def odd(job):
    """Returns something that is not an object, which fails the job for good."""
    return ['not', 'an', 'object']


@worker.job('py-huge')
def huge(job):
    """Returns more than an instance may hold: the server refuses the result, and the worker fails the job."""
    return {'more': 'than an instance may hold' * 200_000}


@worker.job('py-slow')
def slow(job):
    note('begin', job)
    time.sleep(job.variables['ms'] / 1000)
    note('end', job)
    return {job.step_id: os.getpid()}


worker.run()
