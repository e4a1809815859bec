"""Random documents, conditions and workflows from a seed, for the comparison of the entities face with its model.

The pools of values are chosen to sit on borders: limits of the numeric types, case folding, texts that look like numbers. The
first eight values of a pool are drawn more often, so that equal values meet."""
from xml.sax.saxutils import escape

from conditions import OPERATORS
from schema import Num

STRINGS = ['', 'a', 'b', 'ab', 'AB', 'abc', 'a%b', 'a_b', 'x.y', '10', '9', '1e3', '1.50', '-5', 'true', 'null', 'é', 'É', 'straße', 'line\nbreak', '"q"', 'z' * 40, '日本', ' a', 'a,b', '1,5', '1000000', 'STRASSE', 'ΑΣ', 'ας', 'ασ', 'ſ', '\u212a', 'k', 'K', 's']
SMALL = ['0', '1', '2', '3', '5', '9', '10', '-1', '-5', '100', '1000', '1000000', '1e3', '1.0', '2.50e1', '-0']
INTS = SMALL + ['2147483647', '-2147483648']
LONGS = INTS + ['2147483648', '-2147483649', '9007199254740992', '9007199254740993', '9223372036854775807', '-9223372036854775808']
BIGS = LONGS + ['9223372036854775808', '170141183460469231731687303715884105727', '-170141183460469231731687303715884105728',
                '170141183460469231731687303715884105728', '1' + '0' * 60, '12345678901234567890123456789012345678901234567890']
DOUBLES = INTS + ['0.1', '0.10', '1.5', '-2.25', '0.00001', '123456.789', '1.5e-7', '99999.9999999999']
DECIMALS = DOUBLES + ['0.1234567890123456', '12345678901234567890.123456789012345678', '123456789012345678901.1', '170141183460469231731.687303715884105727',
                      '170141183460469231731.687303715884105728', '0.1234567890123456789', '1.5e-300', '12345678901234567890.5']
STATES = ['A', 'B', 'C', 'D', 'E']
TRANSITIONS = ['t1', 't2', 't3', 't4']
# The fields of documents, by name: a pool of numbers, or a kind that Dice.value() knows. A model uses some of them.
FIELDS = {
    'i': INTS, 'l': LONGS, 'g': BIGS, 'd': DOUBLES, 'x': DECIMALS, 's': 'string', 'u': 'string', 'b': 'bool', 'm': 'mixed', 'z': 'null',
    't': 'strings', 'n': 'numbers', 'o': 'object', 'a': 'objects', 'r': 'rows', 'deep': 'deep'}
SCALARS = ['i', 'l', 'g', 'd', 'x', 's', 'u', 'b', 'm']
# Paths that a search may name when the model has the field, and further ones that only criteria use: a search by them
# is refused.
PATHS = [f'$.{f}' for f in SCALARS] + ['$.z', '$.o.k', '$.o.v', '$.o.p.q', '$.a[*].q', '$.a[*].w', '$.deep[*].xs[*].z', '$.t[*]', '$.a[*]', '$.o', 'i', 's', 'o.k']
OPEN_PATHS = ['$.t', '$.n', '$.t.0', '$.a.0.q', '$.a.1.w', '$.gone', '$.o.gone', '$.r', '$.a[*].gone', '$.r[*]']
OPERANDS = STRINGS + [True, False, None]


XML_STRINGS = ['abc', 'a b', '<&>', 'é', 'x"y', "it's", '007', 'T', 'nan', '1,5']


def to_xml(document):
    """The document as XML: the fields i and s become attributes of the root, the others elements. A list repeats its element, and
    an empty object is an empty element."""
    def element(name, value):
        if isinstance(value, list):
            return ''.join(element(name, v) for v in value)
        inner = ''.join(element(k, v) for k, v in value.items()) if isinstance(value, dict) else text(value)
        return f'<{name}>{inner}</{name}>'

    def text(value):
        return 'true' if value is True else 'false' if value is False else escape(str(value), {'"': '&quot;'})
    attributes = ''.join(f' {k}="{text(v)}"' for k, v in document.items() if k in ('i', 's'))
    return f'<?xml version="1.0"?>\n<root{attributes}>\n  ' + '\n  '.join(element(k, v) for k, v in document.items() if k not in ('i', 's')) + '\n</root>'


class Dice:
    def __init__(self, random):
        self.r = random

    def pick(self, some):
        return self.r.choice(some)

    def chance(self, p):
        return self.r.random() < p

    def number(self, pool):
        return Num(self.pick(pool[:8] if self.chance(0.4) else pool))

    def value(self, kind):
        """A random value for a field. `kind` is a value of FIELDS."""
        if isinstance(kind, list):
            return self.number(kind)
        return {
            'string': lambda: self.pick(STRINGS[:8] if self.chance(0.4) else STRINGS),
            'bool': lambda: self.chance(0.5),
            'mixed': lambda: self.pick([self.number(INTS), self.pick(STRINGS)]),
            'null': lambda: None,
            'strings': lambda: [self.pick(STRINGS + [None]) for _ in range(self.r.randrange(4))],
            'numbers': lambda: [self.number(INTS) for _ in range(self.r.randrange(4))],
            'object': lambda: self.some({'k': 'string', 'v': INTS, 'p': 'inner'}),
            'inner': lambda: self.some({'q': DOUBLES}),
            'objects': lambda: [self.some({'q': INTS, 'w': 'string'}) for _ in range(self.r.randrange(4))],
            'rows': lambda: [[self.number(INTS) for _ in range(self.r.randrange(3))] for _ in range(self.r.randrange(3))],
            'deep': lambda: [{'xs': [self.some({'z': INTS}) for _ in range(self.r.randrange(3))]} for _ in range(self.r.randrange(3))],
        }[kind]()

    def some(self, fields):
        return {k: None if self.chance(0.1) else self.value(v) for k, v in fields.items() if self.chance(0.8)}

    def document(self, fields):
        return self.some({f: FIELDS[f] for f in fields})

    def xml_document(self, fields):
        """A document that XML can express: no empty text, no null, and no list with fewer than two items."""
        found = {f: self.number(FIELDS[f]) for f in fields if isinstance(FIELDS[f], list)}
        found.update({f: self.pick(XML_STRINGS) for f in fields if f in 'su'})
        found.update({f: [self.pick(XML_STRINGS) for _ in range(self.r.randrange(2, 4))] for f in fields if f == 't'})
        found.update({f: [{'q': self.number(INTS), 'w': self.pick(XML_STRINGS)} for _ in range(2)] for f in fields if f == 'a'})
        found.update({f: {'k': self.pick(XML_STRINGS), 'p': {'q': self.number(DOUBLES)}} for f in fields if f == 'o'})
        found.update({f: self.chance(0.5) for f in fields if f == 'b'})
        return {k: {} if k == 'o' and self.chance(0.2) else v for k, v in found.items() if self.chance(0.7)}

    def samples(self, fields):
        """Two samples that together contain every field. The field m is a number in one and a text in the other."""
        full = {}
        for f in fields:
            full[f] = {'string': 'a', 'bool': True, 'mixed': Num('1'), 'null': None, 'strings': ['a'], 'numbers': [Num('1'), Num('2')],
                       'object': {'k': 'a', 'v': Num('1'), 'p': {'q': Num('1.5')}}, 'objects': [{'q': Num('1'), 'w': 'a'}], 'rows': [[Num('1')]],
                       'deep': [{'xs': [{'z': Num('1')}]}]}.get(FIELDS[f] if isinstance(FIELDS[f], str) else None, Num(FIELDS[f][-1]) if isinstance(FIELDS[f], list) else None)
        first = {'m': 'a'} if 'm' in fields else {}
        return [full, first] if self.chance(0.5) else [first, full]

    def wrong(self, document):
        """The document with a change that a strict model of its fields usually refuses: an unknown field, or a value of another type."""
        document = dict(document)
        what = self.r.randrange(5)
        if what == 0:
            document['unknown' + str(self.r.randrange(3))] = self.value(self.pick(['string', INTS, 'bool', 'object']))
        elif what == 1 and document:
            document[self.pick(list(document))] = self.value(self.pick(list(FIELDS.values())))
        elif what == 2:
            document['t'] = [self.pick(STRINGS) for _ in range(self.r.randrange(8))] + [self.pick(['a', Num('1'), True])]
        elif what == 3:
            document['a'] = [self.pick([{'q': 'text'}, {'q': Num('1.5')}, {'new': True}, None])]
        else:
            document[self.pick(SCALARS)] = self.value(self.pick([BIGS, DECIMALS, 'string', 'bool']))
        return document

    # Conditions

    def operand(self, op):
        if op.startswith('BETWEEN'):
            low, high = self.number(DECIMALS), self.number(DECIMALS)
            return self.pick([[low, high], [low, high], f'{low},{high}', f' {low} , {high}', [str(low), high]])
        if op == 'MATCHES_PATTERN':
            return self.pick(['a', '^a', 'b$', '^[A-Z]+$', '^1', '0$', '.', '^$', 'é|x', r'\d+'])
        if op == 'LIKE':
            return self.pick(['%', '_', 'a%', '%b', 'a_b', '%e%', 'a%b', '1%', '__', ''])
        return self.pick([self.pick(OPERANDS), self.number(BIGS), self.number(DECIMALS), self.number(INTS), self.pick(STRINGS[:8])])

    def leaf(self, paths):
        if self.chance(0.12):
            op = self.pick(list(OPERATORS))
            field = self.pick(['state', 'state', 'previousTransition', 'transitionForLatestSave', 'creationDate'])
            value = {'state': self.pick(STATES + ['CREATED', '', 'a']), 'creationDate': self.pick(['2000-01-01T00:00:00Z', '2999-01-01T00:00:00Z', '2'])}.get(
                field, self.pick(TRANSITIONS + ['loopback', 'UPDATE', '']))
            return {'type': 'lifecycle', 'field': field, 'operatorType': op, 'value': self.operand(op) if op.startswith('BETWEEN') else value}
        if self.chance(0.06):
            return self.positions(['$.t', '$.n'])
        op = self.pick(list(OPERATORS))
        return {'type': 'simple', 'jsonPath': self.pick(paths), self.pick(['operatorType', 'operatorType', 'operator', 'operation']): op, 'value': self.operand(op)}

    def condition(self, paths, depth=2):
        if depth and self.chance(0.3):
            return {'type': 'group', 'operator': self.pick(['AND', 'OR']), 'conditions': [self.condition(paths, depth - 1) for _ in range(self.r.randrange(4))]}
        return self.leaf(paths)

    def positions(self, paths):
        """An array condition: it compares the items at given positions; None skips a position."""
        return {'type': 'array', 'jsonPath': self.pick(paths), 'values': [self.pick(STRINGS[:4] + [None, Num('1'), Num('2')]) for _ in range(self.r.randrange(3))]}

    def criterion(self):
        if self.chance(0.1):
            return self.positions(['$.t', '$.n', '$.a', '$.o', '$.gone'])
        return self.condition(PATHS + OPEN_PATHS)

    # Workflows

    def workflow(self, name):
        states = self.r.sample(STATES, self.r.randrange(2, 5))
        found = {'version': '1', 'name': name, 'initialState': self.pick(states), 'active': self.chance(0.7), 'states': {}}
        if self.chance(0.5):
            found['criterion'] = self.criterion() if self.chance(0.8) else None
        for s in states:
            found['states'][s] = {'transitions': [self.transition(name, states) for name in self.r.sample(TRANSITIONS, self.r.randrange(4))]}
        return found

    def transition(self, name, states):
        t = {'name': name, 'next': self.pick(states), 'manual': self.chance(0.6)}
        if self.chance(0.15):
            t['disabled'] = True
        if self.chance(0.5):
            t['criterion'] = self.criterion()
        return t
