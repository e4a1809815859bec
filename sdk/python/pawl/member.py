"""A compute member: answers the processor, criteria and schedule calls of entity workflows. Needs grpcio.

    member = Member('127.0.0.1:9090', tags=['approval-service'])

    @member.processor('notify-approval')
    def notify(call):
        return {**call.data, 'notified': True}

    member.run()

A call may be made again after a lost connection (a durable processor keeps its request id), so a processor's effects
outside Pawl must tolerate a repetition.
"""
from __future__ import annotations

import logging
import queue
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _event
from .auth import Token
from .errors import PawlError, Refused, Unavailable

try:
    import grpc
except ImportError as _missing:  # pragma: no cover
    raise ImportError('pawl.member needs grpcio: pip install "pawl[member]"') from _missing

log = logging.getLogger('pawl.member')

_SERVICE = '/org.cyoda.cloud.api.grpc.CloudEventsService/'
_JOIN, _GREET, _ALIVE = (f'CalculationMember{word}Event' for word in ('Join', 'Greet', 'KeepAlive'))
_PROCESSOR, _CRITERION, _FUNCTION = (f'Entity{word}Calculation' for word in ('Processor', 'Criteria', 'Function'))
_REQUESTS = {kind + 'Request': kind for kind in (_PROCESSOR, _CRITERION, _FUNCTION)}
_MOST_BYTES = 64 << 20
_HANDSHAKE_MS = 5000  # gRPC's min_reconnect_backoff_ms, which is the time limit of one attempt to connect
# How long one look for a connection takes before stop() is checked again.
_CONNECT_S = 0.5
_LONGEST_MESSAGE = 4000

# Status codes after which the member does not connect again, because a retry would be refused too.
_REFUSED = {grpc.StatusCode.INVALID_ARGUMENT: (400, 'INVALID_ARGUMENT'), grpc.StatusCode.UNAUTHENTICATED: (401, 'UNAUTHENTICATED'),
            grpc.StatusCode.PERMISSION_DENIED: (403, 'PERMISSION_DENIED')}

# The rpc for each type of request. The rpcs of collections answer with several events.
_RPC = {
    **{f'Entity{word}Request': 'entityManage' for word in ('Create', 'Update', 'Patch', 'Transition', 'Delete')},
    **{f'Entity{word}Request': 'entityManageCollection' for word in ('CreateCollection', 'UpdateCollection', 'DeleteAll')},
    **{f'{word}Request': 'entitySearch' for word in ('EntityGet', 'EntitySnapshotSearch', 'SnapshotGetStatus', 'SnapshotCancel')},
    **{f'{word}Request': 'entitySearchCollection' for word in ('EntityGetAll', 'EntitySearch', 'SnapshotGet', 'EntityStatsGet',
                                                              'EntityStatsByStateGet', 'EntityChangesMetadataGet')},
    **{f'EntityModel{word}Request': 'entityModelManage' for word in ('Import', 'Export', 'Transition', 'Delete', 'GetAll', 'SetUniqueKeys')},
}


@dataclass(frozen=True)
class Call:
    """A processor, criterion or schedule that the server asks for; `request` has every member that it sent."""
    name: str
    entity_id: str
    data: Optional[Dict[str, Any]]
    meta: Dict[str, Any]
    transition: str
    parameters: str
    transaction_id: str
    tx_token: str
    request: Dict[str, Any] = field(repr=False)
    attributes: Dict[str, str] = field(repr=False)
    member: 'Member' = field(repr=False)

    def ask(self, type: str, payload: Dict[str, Any]) -> Any:
        """Sends a request inside the call's transaction: it sees the writes of the transaction and is committed or rolled back with it."""
        return self.member.ask(type, payload, tx_token=self.tx_token)

    @property
    def headers(self) -> Dict[str, str]:
        """HTTP headers that let a REST request join the call's transaction."""
        return {'X-Tx-Token': self.tx_token} if self.tx_token else {}


Processor = Callable[[Call], Optional[Mapping[str, Any]]]
Criterion = Callable[[Call], bool]
Schedule = Callable[[Call], Mapping[str, int]]


class Member:
    """Thread-safe. Register all handlers before run()."""

    def __init__(self, address: str = '127.0.0.1:9090', *, tags: Sequence[str] = (), token: Optional[Token] = None, concurrency: int = 16,
                 credentials: Optional['grpc.ChannelCredentials'] = None):
        """tags: a call comes to this member when they include all calculationNodesTags of its workflow. credentials: for TLS; an
                address that begins with https:// uses the system's certificate authorities."""
        if address.startswith('https://'):
            address, credentials = address[len('https://'):], credentials or grpc.ssl_channel_credentials()
        self.address, self.tags, self.concurrency = address, list(tags), max(1, concurrency)
        options = [('grpc.max_receive_message_length', _MOST_BYTES), ('grpc.max_send_message_length', _MOST_BYTES),
                   ('grpc.initial_reconnect_backoff_ms', 100), ('grpc.min_reconnect_backoff_ms', _HANDSHAKE_MS), ('grpc.max_reconnect_backoff_ms', 1000)]
        self._channel = grpc.secure_channel(address, credentials, options) if credentials else grpc.insecure_channel(address, options)
        self._token = token
        self._processors: Dict[str, Processor] = {}
        self._criteria: Dict[str, Criterion] = {}
        self._schedules: Dict[str, Schedule] = {}
        self._stopping, self._joined = threading.Event(), threading.Event()
        self._stream: Any = None
        self._out: 'queue.SimpleQueue[Optional[_event.Event]]' = queue.SimpleQueue()
        self._refusal: Optional[Refused] = None
        self._running = 0
        self._idle = threading.Condition()

    def processor(self, name: str) -> Callable[[Processor], Processor]:
        """Decorator. Return the entity's new data, or None to leave it. An exception fails the transition."""
        return _register(self._processors, name)

    def criterion(self, name: str) -> Callable[[Criterion], Criterion]:
        """Decorator. Return whether the entity matches."""
        return _register(self._criteria, name)

    def schedule(self, name: str) -> Callable[[Schedule], Schedule]:
        """Decorator. Return when the transition is due: fireAt or fireAfterMs, and expireAt or expireAfterMs if it may expire."""
        return _register(self._schedules, name)

    def run(self, *, signals: bool = True) -> None:
        """Joins, answers calls and joins again whenever the stream ends, until stop(), SIGTERM or SIGINT.

        Raises Refused when the server does not want this member, since trying again is of no use then.
        """
        if signals and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: self.stop())
        pause = 0.1
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix='pawl-member') as threads:
            while not self._stopping.is_set():
                if not self._connected():
                    continue
                # The stream runs on its own thread, because Python delivers signals only to a main thread that is not
                # blocked inside grpc.
                session = threading.Thread(target=self._session, args=(threads,))
                session.start()
                while session.is_alive():
                    session.join(0.1)
                    if self._stopping.is_set():
                        self._drain()
                        session.join()
                if self._refusal:
                    raise self._refusal
                pause = 0.1 if self._joined.is_set() else min(pause * 2, 5.0)
                self._joined.clear()
                self._stopping.wait(pause * random.uniform(0.5, 1.5))
        self._channel.close()

    def stop(self) -> None:
        """Answers the calls that run, then leaves. Safe in a signal handler and from any thread."""
        self._stopping.set()

    def wait_joined(self, timeout_s: float = 10.0) -> bool:
        """True once the server has greeted this member."""
        return self._joined.wait(timeout_s)

    def ask(self, type: str, payload: Dict[str, Any], *, tx_token: str = '', timeout_s: float = 30.0) -> Any:
        """Sends a request such as EntityCreateRequest. Returns the body of its answer, or a list of bodies for a collection."""
        if type not in _RPC:
            raise PawlError(f'{type!r} is no request; known ones: {", ".join(sorted(_RPC))}')
        rpc = _RPC[type]
        many = rpc.endswith('Collection')
        make = self._channel.unary_stream if many else self._channel.unary_unary
        meta = self._meta() + ([('tx-token', tx_token)] if tx_token else [])
        try:
            reply = make(_SERVICE + rpc, _event.encode, _event.decode)(_event.event(type, dict(payload)), metadata=meta, timeout=timeout_s)
            return [_accepted(e.body) for e in reply] if many else _accepted(reply.body)
        except grpc.RpcError as err:
            if err.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise Unavailable(f'{type}: no answer from {self.address}: {err.details()}') from err
            raise Refused(400, err.code().name, str(err.details())) from err

    def _meta(self) -> List[Tuple[str, str]]:
        if not self._token:
            return []
        return [('authorization', 'Bearer ' + (self._token if isinstance(self._token, str) else self._token()))]

    def _connected(self) -> bool:
        ready = grpc.channel_ready_future(self._channel)
        try:
            ready.result(_CONNECT_S)
            return True
        except grpc.FutureTimeoutError:
            ready.cancel()
            return False

    # One stream, from join to its end.

    def _session(self, threads: ThreadPoolExecutor) -> None:
        out: 'queue.SimpleQueue[Optional[_event.Event]]' = queue.SimpleQueue()
        out.put(_event.event(_JOIN, {'tags': self.tags}))
        open_stream = self._channel.stream_stream(_SERVICE + 'startStreaming', _event.encode, _event.decode)
        try:
            stream = open_stream(iter(out.get, None), metadata=self._meta())
            self._out, self._stream = out, stream
            member_id = ''
            for e in stream:
                if e.type == _GREET:
                    member_id = e.body.get('memberId', '')
                    self._joined.set()
                    log.info('joined %s as %s', self.address, member_id)
                elif e.type == _ALIVE and e.body.get('id') == member_id:
                    # The server's own keep-alive carries the member's id. An echo of ours carries another id and is not
                    # answered.
                    out.put(_event.event(_ALIVE, {'memberId': member_id}))
                elif e.type in _REQUESTS:
                    with self._idle:
                        self._running += 1
                    threads.submit(self._answer, e, out)
        except grpc.RpcError as err:
            forget = getattr(self._token, 'forget', None)
            if err.code() == grpc.StatusCode.UNAUTHENTICATED and forget:
                forget()
            elif err.code() in _REFUSED:
                self._refusal = Refused(*_REFUSED[err.code()], str(err.details()))
            if not self._stopping.is_set():
                log.warning('the stream to %s ended: %s %s', self.address, err.code().name, err.details())
        except PawlError as err:
            log.warning('no token: %s', err)
        finally:
            out.put(None)

    def _drain(self) -> None:
        """Waits for the calls that run, then ends the stream."""
        if self._stream is None:
            return
        with self._idle:
            self._idle.wait_for(lambda: self._running == 0)
        # None ends the iterator of requests, so that gRPC sends the queued answers and half-closes the stream. A server
        # that does not end it within 5 s is not waited for.
        self._out.put(None)
        late = threading.Timer(5.0, self._stream.cancel)
        late.daemon = True
        late.start()

    def _answer(self, e: _event.Event, out: 'queue.SimpleQueue[Optional[_event.Event]]') -> None:
        try:
            call = _call(self, e)
            kind = _REQUESTS[e.type]
            body: Dict[str, Any] = {'requestId': call.request['requestId'], 'entityId': call.entity_id, 'success': True}
            try:
                body.update(self._made(kind, call))
                reply = _event.event(kind + 'Response', body)
            except Exception as err:  # a handler may raise anything; all of it is the call's failure
                log.warning('%s of entity %s failed: %s', call.name, call.entity_id, err, exc_info=True)
                failure = {'code': type(err).__name__, 'message': (str(err) or type(err).__name__)[:_LONGEST_MESSAGE]}
                reply = _event.event(kind + 'Response', {**{k: body[k] for k in ('requestId', 'entityId')}, 'success': False, 'error': failure})
            out.put(reply)
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def _made(self, kind: str, call: Call) -> Dict[str, Any]:
        """The members that the handler's result adds to the answer."""
        handlers, word = {_PROCESSOR: (self._processors, 'processor'), _CRITERION: (self._criteria, 'criterion'), _FUNCTION: (self._schedules, 'schedule')}[kind]
        handler = handlers.get(call.name)
        if handler is None:
            raise PawlError(f'this member has no {word} {call.name!r}; it has: {", ".join(sorted(handlers)) or "none"}')
        result = handler(call)
        if kind == _CRITERION:
            return {'matches': bool(result)}
        if kind == _FUNCTION:
            return {'resultKind': 'Schedule', 'result': dict(result)}
        return {} if result is None else {'payload': {'type': 'JSON', 'data': dict(result)}}


def _register(table: Dict[str, Any], name: str) -> Callable[[Any], Any]:
    def register(handler: Any) -> Any:
        if name in table:
            raise ValueError(f'{name!r} already has a handler')
        table[name] = handler
        return handler
    return register


def _call(member: Member, e: _event.Event) -> Call:
    r = e.body
    payload = r.get('payload') or {}
    return Call(r.get('processorName') or r.get('criteriaName') or r.get('functionName') or '', r.get('entityId', ''), payload.get('data'), payload.get('meta') or {},
                (r.get('transition') or {}).get('name', ''), r.get('parameters') or '', r.get('transactionId') or '',
                e.attributes.get('cyodatxtoken', ''), r, e.attributes, member)


def _accepted(body: Dict[str, Any]) -> Dict[str, Any]:
    """The body, unless it says "success": false. Raises Refused."""
    if body.get('success', True):
        return body
    error = body.get('error') or {}
    raise Refused(400, str(error.get('code', '')), str(error.get('message', 'refused')))
