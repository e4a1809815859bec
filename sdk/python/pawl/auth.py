"""Tokens for a server under --auth jwt.

A token is a string, or a function that returns the current one. When the function has a method forget(), a client calls it
after the server refused the token, and asks again.
"""
from __future__ import annotations

import base64
import threading
import time
import urllib.parse
from typing import Callable, Optional, Union

from .http import Http

Token = Union[str, Callable[[], str]]


class Credentials:
    """token=Credentials(url, client_id, secret): fetches a token, keeps it and renews it before it expires. Threads may share it."""

    def __init__(self, url: str, client_id: str, secret: str, *, path: str = '/api/oauth/token'):
        self._http, self._path = Http(url), path
        pair = ':'.join(urllib.parse.quote(part, safe='') for part in (client_id, secret))
        self._basic = 'Basic ' + base64.b64encode(pair.encode()).decode()
        self._token: Optional[str] = None
        self._good_until = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            if self._token is None or time.monotonic() >= self._good_until:
                asked = time.monotonic()
                answer = self._http.call('POST', self._path, b'grant_type=client_credentials', headers={
                    'Authorization': self._basic, 'Content-Type': 'application/x-www-form-urlencoded'})
                # The token is renewed when a tenth of its life is left. A life that the server does not name is taken
                # as 60 s.
                self._token, self._good_until = answer['access_token'], asked + 0.9 * float(answer.get('expires_in', 60))
            return self._token

    def forget(self) -> None:
        """Drops the token, because the server did not accept it. The next call fetches another."""
        with self._lock:
            self._token = None
