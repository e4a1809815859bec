"""Hooks for schemathesis: requests that would wait or never end get short waits, so that a run is bounded."""
import schemathesis

WAITS = ('maxWaitMs', 'wait_ms', 'timeout_ms')


def shortened(members):
    """A copy in which nothing waits long and nothing streams."""
    if not isinstance(members, dict):
        return members
    members = {name: value for name, value in members.items() if name != 'stream'}
    return {name: 10 if name in WAITS else value for name, value in members.items()}


@schemathesis.hook
def map_query(context, query):
    return shortened(query)


@schemathesis.hook
def map_body(context, body):
    return shortened(body)
