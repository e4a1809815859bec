"""Pawl from Python: start and steer workflows (Client), do their work (Worker).

`pawl.member` answers processor and criteria calls of entities and needs grpcio; everything else is
the standard library. `pawl.testing` starts a server for tests.
"""
from .auth import Credentials
from .client import Client, Instance, Json
from .errors import (Conflict, Invalid, JobFailed, NotFound, PawlError, Refused, Retry, TimedOut,
                     Unavailable)
from .worker import Job, Worker

__all__ = ['Client', 'Conflict', 'Credentials', 'Instance', 'Invalid', 'Job', 'JobFailed', 'Json', 'NotFound',
           'PawlError', 'Refused', 'Retry', 'TimedOut', 'Unavailable', 'Worker']
__version__ = '0.1.0'
