"""The errors of this package. A caller acts on the class; the text is for people."""
from __future__ import annotations

from typing import Type


class PawlError(Exception):
    """The root of every error of this package."""


class Unavailable(PawlError):
    """No answer came, or only 429 and 503, until the patience was used up. Trying later may help."""


class TimedOut(PawlError):
    """The awaited thing did not happen in time. It may still happen."""


class Refused(PawlError):
    """The server refused the request. `status` is the HTTP status, `code` the server's name for the refusal."""

    def __init__(self, status: int, code: str, reason: str):
        super().__init__(f'{status} {code}: {reason}')
        self.status, self.code, self.reason = status, code, reason


class Invalid(Refused):
    """The request can never succeed as written."""


class NotFound(Refused):
    """The thing named does not exist."""


class Conflict(Refused):
    """The thing is no longer in the state that the request needs."""


class Retry(PawlError):
    """Raised by a handler: this attempt failed, another may succeed. Any other exception says the same."""


class JobFailed(PawlError):
    """Raised by a handler: no further attempt helps. The step fails now, whatever retries are left."""


# Every other status of 400 and above is a plain Refused.
_BY_STATUS = {400: Invalid, 404: NotFound, 409: Conflict, 422: Invalid}


def refused(status: int, code: str, reason: str) -> Refused:
    kind: Type[Refused] = _BY_STATUS.get(status, Refused)
    return kind(status, code, reason)
