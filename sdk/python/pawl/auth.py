"""Tokens for a server under --auth jwt."""
from __future__ import annotations

import base64
import threading
import time
import urllib.parse
from typing import Callable, Optional, Union

from .http import Http

Token = Union[str, Callable[[], str]]


class Credentials:
    """token=Credentials(url, client_id, secret): fetches a token, keeps it, renews it before it expires."""

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
                # Renewed when a tenth of its life is left.
                self._token, self._good_until = answer['access_token'], asked + 0.9 * float(answer.get('expires_in', 60))
            return self._token

    def forget(self) -> None:
        """The server did not accept the token: the next one is fetched."""
        with self._lock:
            self._token = None
