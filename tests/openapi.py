"""Checks answers against the OpenAPI document of the server that gave them: the status is listed, the media type is that
of the status, and a JSON body fits its schema. The checker knows the keywords that the document uses."""
import functools, json, re, urllib.error, urllib.request

TYPES = {'string': str, 'array': list, 'object': dict, 'boolean': bool, 'null': type(None)}
ANNOTATIONS = {'description', 'default', 'examples', 'title', 'format', 'readOnly'}
KEYWORDS = {'$ref', 'type', 'enum', 'anyOf', 'properties', 'required', 'items', 'additionalProperties', 'minimum', 'maximum',
            'minLength', 'maxLength', 'minItems', 'maxItems'}


# Operations that accept a request with wrong items and answer for each item.
EACH_ITEM_ALONE = {'startInstances', 'settleJobs'}


def is_type(value, name):
    if name in ('integer', 'number'):
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and (name == 'number' or float(value).is_integer())
    return isinstance(value, TYPES[name])


class Contract:
    def __init__(self, document):
        self.document = document
        self.operations = []  # (pattern of the path, rank, {method: operation})
        for path, item in document['paths'].items():
            segments = path.split('/')
            several = any(p.get('x-multi-segment') for operation in item.values() for p in operation.get('parameters', ()))
            words = [re.escape(s) if '{' not in s else ('.+' if several and i + 1 == len(segments) else '[^/]+') for i, s in enumerate(segments)]
            # Literal segments win over parameters, from left to right, and one segment over several.
            rank = ([('{' in s) for s in segments], len(segments))
            self.operations.append((re.compile('/'.join(words) + '$'), rank, item))

    def find(self, method, path):
        """The operation of a request, or None when it matches none."""
        slashes = path.count('/')
        hits = [(rank[1] != slashes + 1, rank[0], item[method.lower()])
                for pattern, rank, item in self.operations if method.lower() in item and pattern.match(path)]
        return min(hits, key=lambda hit: hit[:2])[2] if hits else None

    def resolve(self, value):
        while '$ref' in value:
            target = self.document
            for name in value['$ref'].removeprefix('#/').split('/'):
                target = target[name]
            value = target
        return value

    def problem(self, method, path, status, media, text):
        """What is wrong with an answer; '' when it is as the document says, or when no operation matches."""
        operation = self.find(method, path.split('?')[0])
        if operation is None or status == 405:
            return ''
        name = operation['operationId']
        if str(status) not in operation['responses']:
            return f'{name} does not list the status {status}: {text[:200]}'
        answer = self.resolve(operation['responses'][str(status)])
        content = answer.get('content', {})
        if not content:
            return f'{name} lists no body for {status}, got {text[:200]!r}' if text else ''
        media = (media or '').split(';')[0].strip()
        if media not in content:
            return f'{name} lists {sorted(content)} for {status}, got {media!r}'
        if not media.endswith('json') or media == 'application/x-ndjson':
            return ''
        wrong = self.mismatch(content[media].get('schema', {}), json.loads(text), '$')
        return f'{name} {status}: {wrong}' if wrong else ''

    def request_problem(self, method, path, body):
        """What is wrong with the schema of a request whose JSON body the server has accepted."""
        operation = self.find(method, path.split('?')[0])
        content = operation.get('requestBody', {}).get('content', {}) if operation else {}
        if 'application/json' not in content or operation['operationId'] in EACH_ITEM_ALONE:
            return ''
        if isinstance(body, dict):
            body = {name: value for name, value in body.items() if value is not None}  # null is as absent
        wrong = self.mismatch(content['application/json']['schema'], body, '$')
        return f'{operation["operationId"]} accepted a body that its schema refuses: {wrong}' if wrong else ''

    def mismatch(self, schema, value, at):
        unknown = set(schema) - KEYWORDS - ANNOTATIONS
        if unknown:
            raise ValueError(f'{at}: the checker does not know {sorted(unknown)}')
        if '$ref' in schema:
            schema = self.resolve(schema)
            return self.mismatch(schema, value, at)
        if 'anyOf' in schema:
            found = [self.mismatch(one, value, at) for one in schema['anyOf']]
            if all(found):
                return ' or '.join(found)
        if 'type' in schema:
            names = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
            if not any(is_type(value, name) for name in names):
                return f'{at}: want {" or ".join(names)}, got {json.dumps(value)[:100]}'
        if 'enum' in schema and value not in schema['enum']:
            return f'{at}: {json.dumps(value)[:100]} is none of {schema["enum"]}'
        return self.out_of_bounds(schema, value, at) or self.inner(schema, value, at)

    @staticmethod
    def out_of_bounds(schema, value, at):
        for low, high, size in (('minimum', 'maximum', value if is_type(value, 'number') else None),
                                ('minLength', 'maxLength', len(value) if isinstance(value, str) else None),
                                ('minItems', 'maxItems', len(value) if isinstance(value, list) else None)):
            if size is not None and (size < schema.get(low, size) or size > schema.get(high, size)):
                return f'{at}: {json.dumps(value)[:100]} is out of bounds'
        return ''

    def inner(self, schema, value, at):
        if isinstance(value, list) and 'items' in schema:
            parts = ((schema['items'], one, f'{at}[{i}]') for i, one in enumerate(value))
        elif isinstance(value, dict):
            missing = set(schema.get('required', ())) - set(value)
            if missing:
                return f'{at}: {sorted(missing)} are missing'
            known, others = schema.get('properties', {}), schema.get('additionalProperties', {})
            parts = ((known.get(name, others), one, f'{at}.{name}') for name, one in value.items())
        else:
            return ''
        return next((wrong for wrong in (self.mismatch(*part) for part in parts) if wrong), '')


@functools.lru_cache(maxsize=None)
def contract_of(base):
    """The contract of a server; None when it has no document."""
    try:
        with urllib.request.urlopen(base + '/openapi.json', timeout=30) as reply:
            document = json.load(reply)
    except (OSError, ValueError):
        return None
    return Contract(document) if 'paths' in document else None
