"""The client: definitions, instances, user tasks and searches of the processes API. Errors are those of errors.py."""
from __future__ import annotations

import time
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional

from .auth import Token
from .errors import TimedOut
from .http import Http, quoted

Json = Dict[str, Any]
FINISHED = ('COMPLETED', 'FAILED', 'CANCELLED')
# The longest pause between two polls of wait().
_LONGEST_LOOK_S = 1.0


@dataclass(frozen=True)
class Instance:
    """An instance as it stood when the server answered; `raw` has every member of the answer."""
    id: str
    definition_id: str
    version: int
    status: str
    steps: List[str]
    variables: Json
    business_key: Optional[str] = None
    failure_reason: Optional[str] = None
    raw: Json = field(default_factory=dict, repr=False, compare=False)

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    @staticmethod
    def of(raw: Json) -> 'Instance':
        return Instance(raw['id'], raw['definitionId'], raw['definitionVersion'], raw['status'], raw.get('currentStepIds') or [],
                        raw.get('variables') or {}, raw.get('businessKey'), raw.get('failureReason'), raw)


class Client:
    """Client('http://127.0.0.1:8080'). Threads may share one.

    Every call is repeated with growing, jittered pauses while the server is away, busy or restarting, for
    at most patience_s; a repeated call takes effect once.
    """

    def __init__(self, url: str = 'http://127.0.0.1:8080', token: Optional[Token] = None, *, timeout_s: float = 60.0, patience_s: float = 60.0):
        self.http = Http(url, token, timeout_s, patience_s)

    # Definitions.

    def deploy(self, definition: Mapping[str, Any]) -> Json:
        """Uploads a definition: {"id", "version", "name", "uploadedAt"}. Equal content keeps its version."""
        return self.http.call('POST', '/v1/definitions', definition, once='')

    def definition(self, id: str, version: Optional[int] = None) -> Json:
        return self.http.call('GET', f'/v1/definitions/{quoted(id)}' + (f'/versions/{version}' if version else ''))

    def validate(self, definition: Mapping[str, Any]) -> Json:
        """Checks a definition and stores nothing."""
        return self.http.call('POST', '/pawl/v1/processes/validate', definition)

    # Instances.

    def start(self, definition_id: str, variables: Optional[Mapping[str, Any]] = None, *, version: int = 0,
              business_key: str = '', idempotency_key: str = '') -> Instance:
        """Starts an instance and runs it as far as it goes by itself.

        idempotency_key: a name of your own for this start. A second start with the same key, even from
        another process, answers with the first one's instance. Kept for a day.
        """
        return Instance.of(self.http.call('POST', '/v1/instances', _start(definition_id, variables, version, business_key), once=idempotency_key))

    def start_batch(self, starts: Iterable[Mapping[str, Any]], *, idempotency_key: str = '') -> List[Json]:
        """Up to 1000 starts ({"definitionId", "variables"?, "businessKey"?}) in one request; one outcome each."""
        return self.http.call('POST', '/pawl/v1/processes/start-batch', {'items': list(starts)}, once=idempotency_key)['items']

    def get(self, id: str) -> Instance:
        return Instance.of(self.http.call('GET', f'/v1/instances/{quoted(id)}'))

    def wait(self, id: str, timeout_s: float = 30.0) -> Instance:
        """The instance once it is COMPLETED, FAILED or CANCELLED. Raises TimedOut."""
        until, pause = time.monotonic() + timeout_s, 0.01
        while True:
            instance = self.get(id)
            if instance.finished:
                return instance
            if time.monotonic() + pause >= until:
                raise TimedOut(f'instance {id} is {instance.status} at {", ".join(instance.steps)} after {timeout_s:g} s')
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_LOOK_S)

    def signal(self, id: str, step_id: str, variables: Optional[Mapping[str, Any]] = None) -> None:
        """Completes a WAIT step. The variables are merged into those of the instance."""
        self.http.call('POST', f'/v1/instances/{quoted(id)}/signals/{quoted(step_id)}', dict(variables or {}), once='')

    def complete_task(self, id: str, step_id: str, variables: Optional[Mapping[str, Any]] = None, *, user: str = '') -> None:
        """Completes an open user task."""
        self.http.call('POST', f'/v1/instances/{quoted(id)}/user-tasks/{quoted(step_id)}/complete', {'workerId': user, 'variables': dict(variables or {})}, once='')

    def cancel(self, id: str, reason: str = '') -> Instance:
        return Instance.of(self.http.call('POST', f'/v1/instances/{quoted(id)}/cancel', {'reason': reason}, once=''))

    def operate(self, id: str, operation: str, **body: Any) -> Any:
        """Calls an operator's verb: retry, skip, move, variables, pause, resume, cancel, migrate, restart. `body` is its JSON body."""
        return self.http.call('POST', f'/pawl/v1/processes/instances/{quoted(id)}/{quoted(operation)}', body, once='')

    # Reads.

    def history(self, id: str) -> List[Json]:
        """The step executions in the order they happened."""
        return self.http.call('GET', f'/v1/instances/{quoted(id)}/history')['items'] or []

    def events(self, id: str) -> List[Json]:
        """Everything that happened, with the variables that each event changed."""
        return self.http.call('GET', f'/pawl/v1/processes/instances/{quoted(id)}/events')['items'] or []

    def tasks(self, **filters: Any) -> List[Json]:
        """Open user tasks, oldest first."""
        return self.http.call('GET', '/pawl/v1/processes/tasks' + _query(filters))['items'] or []

    def search(self, *, limit: int = 0, **filters: Any) -> Iterator[Instance]:
        """Instances, newest first, page by page as they are asked for.

        filters: status, definitionId, businessKey, step, paused, variable ("name=value"), startedFrom, startedTo,
        updatedFrom, updatedTo. limit: how many at most; 0 for all.
        """
        cursor, left = '', limit or None
        while left is None or left > 0:
            page = self.http.call('GET', '/pawl/v1/processes/instances' + _query({**filters, 'cursor': cursor, 'limit': min(left or 200, 200)}))
            for raw in page['items'] or []:
                yield Instance.of(raw)
            left = None if left is None else left - len(page['items'] or [])
            cursor = page.get('cursor', '')
            if not cursor:
                return

    def find_by_business_key(self, key: str) -> List[Instance]:
        return list(self.search(businessKey=key))


def _start(definition_id: str, variables: Optional[Mapping[str, Any]], version: int, business_key: str) -> Json:
    body: Json = {'definitionId': definition_id, 'variables': dict(variables or {})}
    if version:
        body['definitionVersion'] = version
    if business_key:
        body['businessKey'] = business_key
    return body


def _query(filters: Mapping[str, Any]) -> str:
    given = {k: v for k, v in filters.items() if v not in (None, '')}
    return '?' + urllib.parse.urlencode(given) if given else ''
