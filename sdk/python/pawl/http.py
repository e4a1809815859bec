"""Requests with JSON in and out over kept connections, repeated while the server is away.

A request is repeated after a lost connection, so every request that changes something carries an
Idempotency-Key: the server runs it once however often it arrives.
"""
from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
import urllib.parse
import uuid
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from .errors import PawlError, Unavailable, refused

# Pauses between repetitions; each is twice the one before.
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0


class Http:
    """One server. Threads may share it: each has a connection of its own."""

    def __init__(self, url: str, token: Union[None, str, Callable[[], str]] = None, timeout_s: float = 60.0, patience_s: float = 60.0):
        parts = urllib.parse.urlsplit(url if '://' in url else 'http://' + url)
        if parts.scheme not in ('http', 'https') or not parts.hostname:
            raise PawlError(f'{url!r} is no server address: write http://127.0.0.1:8080')
        self.secure = parts.scheme == 'https'
        self.host, self.port = parts.hostname, parts.port or (443 if self.secure else 8080)
        self.prefix = parts.path.rstrip('/')
        self.token, self.timeout_s, self.patience_s = token, timeout_s, patience_s
        self._local = threading.local()

    def call(self, method: str, path: str, body: Any = None, *, once: Optional[str] = None,
             headers: Optional[Mapping[str, str]] = None, timeout_s: Optional[float] = None,
             patience_s: Optional[float] = None) -> Any:
        """The answer's JSON (None when empty). Raises Refused or Unavailable.

        once: the Idempotency-Key of a request that changes something; '' makes a fresh one.
        patience_s: how long to go on trying while no answer comes; 0 tries once.
        """
        head = dict(headers or {})
        if once is not None:
            head['Idempotency-Key'] = once or uuid.uuid4().hex
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        until = time.monotonic() + (self.patience_s if patience_s is None else patience_s)
        pause = _FIRST_PAUSE_S
        renew = getattr(self.token, 'forget', None)
        while True:
            try:
                status, text, wait_s = self._once(method, path, data, head, timeout_s or self.timeout_s)
                if status == 401 and renew is not None:
                    renew()
                    renew = None
                    continue
                if not _passing(status, text):
                    return _answer(status, text)
                why = f'it answered {status}: {text[:200]}'
            except ssl.SSLCertVerificationError as err:  # waiting does not help
                raise Unavailable(f'no TLS with {self.host}:{self.port}: {err}. Name its certificate authority with SSL_CERT_FILE') from err
            except (OSError, http.client.HTTPException) as err:
                # The connection is in an unknown state, so the next attempt opens a new one.
                self.close()
                why, wait_s = f'{type(err).__name__}: {err}', 0.0
            sleep_s = max(wait_s, pause * random.uniform(0.5, 1.5))
            if time.monotonic() + sleep_s >= until:
                raise Unavailable(f'{method} {path}: no answer from {self.host}:{self.port} ({why}): is `pawl serve` running there?')
            time.sleep(sleep_s)
            pause = min(pause * 2, _LONGEST_PAUSE_S)

    def close(self) -> None:
        """Ends this thread's connection; the next call makes a new one."""
        connection = getattr(self._local, 'connection', None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    def _once(self, method: str, path: str, data: Optional[bytes], head: Dict[str, str], timeout_s: float) -> Tuple[int, str, float]:
        head = {'Content-Type': 'application/json', **head}
        if self.token:
            head['Authorization'] = 'Bearer ' + (self.token if isinstance(self.token, str) else self.token())
        connection = getattr(self._local, 'connection', None) or self._connect(timeout_s)
        # http.client has closed the socket when the server ended the connection; it then connects again by itself.
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        connection.request(method, self.prefix + path, data, head)
        reply = connection.getresponse()
        text = reply.read().decode('utf-8', 'replace')
        after = reply.getheader('Retry-After') or ''
        return reply.status, text, float(after) if after.isdigit() else 0.0

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        if self.secure:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                self.host, self.port, timeout=timeout_s, context=ssl.create_default_context())
        else:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout_s)
        connection.connect()
        self._local.connection = connection
        return connection


def _passing(status: int, text: str) -> bool:
    """True for answers that a repetition may change. A 409 counts only while the first request with our key still runs."""
    return status in (429, 502, 503, 504) or (status == 409 and 'Idempotency-Key still runs' in text)


def _answer(status: int, text: str) -> Any:
    """The JSON of an answer. Raises Refused with the words of the face that answered: the faces name these members differently."""
    try:
        value = json.loads(text) if text else None
    except ValueError:
        value = None
    if status < 400:
        return value
    value = value if isinstance(value, dict) else {}
    code = value.get('error') or (value.get('properties') or {}).get('errorCode') or ''
    reason = value.get('reason') or value.get('detail') or value.get('title') or text[:500]
    raise refused(status, str(code), str(reason))


def quoted(text: str) -> str:
    """The text as one segment of a path."""
    return urllib.parse.quote(text, safe='')
