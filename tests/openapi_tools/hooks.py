"""Hooks for schemathesis. Requests that would wait or never end get short waits, so that a run is bounded. Most path parameters
get ids of things that exist (PAWL_KNOWN: rows of a pattern of the path, a parameter and its values), because random ids find
nothing behind the 404."""
import json, os, random, re
import schemathesis

WAITS = ('maxWaitMs', 'wait_ms', 'timeout_ms')
KNOWN = [(re.compile(pattern), name, values) for pattern, name, values in json.loads(os.environ.get('PAWL_KNOWN', '[]'))]


def shortened(members):
    """A copy in which nothing waits long and nothing streams."""
    if not isinstance(members, dict):
        return members
    members = {name: value for name, value in members.items() if name != 'stream'}
    return {name: 10 if name in WAITS else value for name, value in members.items()}


@schemathesis.hook
def map_query(context, query):
    # Without a timeout this one waits for half a minute.
    if context.operation.path.endswith('/journal/wait'):
        query = {**(query or {}), 'timeout_ms': 10}
    return shortened(query)


@schemathesis.hook
def map_body(context, body):
    return shortened(body)


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    if not path_parameters:
        return path_parameters
    # The choice depends on the generated values alone, so that a seed repeats it.
    chance = random.Random(repr(sorted(path_parameters.items(), key=repr)))
    out = dict(path_parameters)
    for pattern, name, values in KNOWN:
        if name in out and pattern.match(context.operation.path) and chance.random() < 0.8:
            out[name] = chance.choice(values)
    return out
