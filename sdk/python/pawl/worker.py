"""The worker: asks for jobs, runs their handlers on threads, reports what they return.

A job is handed out under a lease. If this process dies, the lease expires and the job is offered
again. Handlers therefore run at least once, and their effects outside Pawl must tolerate a repetition. `job.id` stays
the same on every repetition and makes a good idempotency key.
"""
from __future__ import annotations

import logging
import os
import random
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Set

from .auth import Token
from .client import Client, Json
from .errors import JobFailed, Refused, Unavailable
from .http import quoted

log = logging.getLogger('pawl.worker')

# Error messages are cut at this length before they are sent.
_LONGEST_MESSAGE = 4000


@dataclass(frozen=True)
class Job:
    """One piece of work; `raw` has every member that the server sent."""
    id: str
    type: str
    instance_id: str
    step_id: str
    retries_left: int
    variables: Json
    raw: Json = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(raw: Json) -> 'Job':
        return Job(raw['id'], raw['jobType'], raw['instanceId'], raw.get('stepId', ''), raw.get('retriesRemaining', 0), raw.get('variables') or {}, raw)


Handler = Callable[[Job], Optional[Mapping[str, Any]]]


class Worker:
    """worker = Worker('http://127.0.0.1:8080', concurrency=8)

    @worker.job('charge-card')
    def charge(job):
        return {'chargeId': pay(job.variables['amount'], key=job.id)}

    worker.run()

    A handler returns the variables to merge into the instance, or None. JobFailed fails the step for
    good; any other exception is a failed attempt, and the step's retryCount says how many it has.
    """

    def __init__(self, url: str = 'http://127.0.0.1:8080', *, token: Optional[Token] = None, id: Optional[str] = None, concurrency: int = 8,
                 lease_s: int = 30, max_wait_ms: int = 5000, patience_s: float = 300.0):
        """lease_s: longer than the slowest handler. max_wait_ms: how long a poll waits on the server, and so
        how long an idle worker takes to stop. patience_s: how long a result is kept while the server is away."""
        self.client = Client(url, token, timeout_s=max_wait_ms / 1000 + 30, patience_s=patience_s)
        self.id = id or f'{socket.gethostname()}-{os.getpid()}'
        self.concurrency, self.lease_s, self.max_wait_ms = max(1, concurrency), lease_s, max_wait_ms
        self._handlers: Dict[str, Handler] = {}
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        self._running: Set[str] = set()

    def job(self, type: str) -> Callable[[Handler], Handler]:
        """Decorator: the function does the jobs of this type."""
        def register(handler: Handler) -> Handler:
            self.add(type, handler)
            return handler
        return register

    def add(self, type: str, handler: Handler) -> None:
        if type in self._handlers:
            raise ValueError(f'job type {type!r} already has a handler')
        self._handlers[type] = handler

    def run(self, *, signals: bool = True) -> None:
        """Works until stop(), SIGTERM or SIGINT; then takes no new jobs, finishes the ones it has and returns."""
        if not self._handlers:
            raise ValueError('a worker without handlers has nothing to do: register one with @worker.job("type")')
        if signals and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())
        log.info('worker %s takes %s', self.id, ', '.join(sorted(self._handlers)))
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix='pawl-job') as threads:
            self._poll_until_stopped(threads)
        log.info('worker %s has finished', self.id)

    def stop(self) -> None:
        """Begins to drain. Safe in a signal handler and from any thread."""
        self._stopping.set()

    def _poll_until_stopped(self, threads: ThreadPoolExecutor) -> None:
        pause = 0.1
        while not self._stopping.is_set():
            free = self._wait_for_room()
            if not free:
                continue
            try:
                # A worker asks only for as many jobs as it has free threads, so a lease does not expire while its job
                # waits here.
                jobs = self._poll(free)
                pause = 0.1
            except (Unavailable, Refused) as err:
                log.warning('poll failed, trying again: %s', err)
                self._stopping.wait(pause * random.uniform(0.5, 1.5))
                pause = min(pause * 2, 5.0)
                continue
            for job in jobs:
                threads.submit(self._work, job)

    def _wait_for_room(self) -> int:
        with self._changed:
            # The wait is short, because stop() may be called in a signal handler, which cannot notify a condition.
            self._changed.wait_for(lambda: len(self._running) < self.concurrency, 0.2)
            return max(0, self.concurrency - len(self._running))

    def _poll(self, most: int) -> List[Job]:
        answer = self.client.http.call('POST', '/v1/jobs/poll', {
            'workerId': self.id, 'jobTypes': sorted(self._handlers), 'maxJobs': most,
            'leaseSeconds': self.lease_s, 'maxWaitMs': self.max_wait_ms}, patience_s=0)
        jobs = [Job.of(raw) for raw in answer.get('jobs') or []]
        with self._changed:
            # After a restart of the server a job may be offered while its handler still runs here.
            new = [job for job in jobs if _attempt(job) not in self._running]
            self._running.update(_attempt(job) for job in new)
        return new

    def _work(self, job: Job) -> None:
        began = time.monotonic()
        try:
            self._report(job, *self._outcome(job))
        except Refused as err:
            log.warning('job %s (%s): the result was refused: %s', job.id, job.type, err)
        except Unavailable as err:
            log.error('job %s (%s): the result is lost and the job will be offered again: %s', job.id, job.type, err)
        finally:
            log.debug('job %s (%s) took %.3f s', job.id, job.type, time.monotonic() - began)
            with self._changed:
                self._running.discard(_attempt(job))
                self._changed.notify_all()

    def _outcome(self, job: Job) -> 'tuple[str, Json]':
        """The last word of the path to report to, and the body."""
        try:
            result = self._handlers[job.type](job)
            if result is not None and not isinstance(result, Mapping):
                raise JobFailed(f'the handler of {job.type!r} returned {type(result).__name__}: return a dict of variables or None')
            return 'complete', {'workerId': self.id, 'variables': dict(result or {})}
        except Exception as err:  # a handler may raise anything; all of it is the job's failure
            final = isinstance(err, JobFailed)
            log.warning('job %s (%s) failed%s: %s', job.id, job.type, ' for good' if final else '', err, exc_info=not final)
            text = str(err) or type(err).__name__
            return 'fail', {'workerId': self.id, 'errorMessage': text[:_LONGEST_MESSAGE], 'retryable': not final}

    def _report(self, job: Job, word: str, body: Json) -> None:
        path = f'/v1/jobs/{quoted(job.id)}/'
        try:
            # A failure that arrived twice would use up two retries, so it carries an Idempotency-Key. A repeated
            # completion is harmless.
            self.client.http.call('POST', path + word, body, once='' if word == 'fail' else None)
        except (TypeError, ValueError) as err:  # the returned value cannot be written as JSON
            self._give_up(path, f'the result is not JSON: {err}')
        except Refused as err:
            # The same result would be refused again, and the job would be offered again for ever.
            if word == 'fail' or err.status not in (400, 413, 422):
                raise
            log.warning('job %s (%s): the result was refused: %s', job.id, job.type, err)
            self._give_up(path, f'the result was refused: {err.reason}')

    def _give_up(self, path: str, why: str) -> None:
        """Fails the job for good: no retry would change the handler's result."""
        self.client.http.call('POST', path + 'fail', {'workerId': self.id, 'errorMessage': why[:_LONGEST_MESSAGE], 'retryable': False}, once='')


def _attempt(job: Job) -> str:
    """Servers before attempts had ids of their own keep the id of a retried job; each attempt has its own number of retries left."""
    return f'{job.id}/{job.retries_left}'
