"""A model of the schemas of the entities face: numbers with their digits, types, inference, widening, change levels.

It is written from the contract, as a second implementation of what src/faces/entities/model does. The contract does not say, and this model
copies from the server, that null at a scalar, and a type which widens to one of the model's types, need no change level."""
import copy, functools, json
from decimal import Decimal

INTEGERS = ['INTEGER', 'LONG', 'BIG_INTEGER', 'UNBOUND_INTEGER']
DECIMALS = ['DOUBLE', 'BIG_DECIMAL', 'UNBOUND_DECIMAL']
ORDER = INTEGERS + DECIMALS + ['STRING', 'BOOLEAN', 'NULL']  # the order in which a list of types is shown
UNBOUND = {'UNBOUND_INTEGER', 'UNBOUND_DECIMAL'}
# A value of the first type fits a field of each of the others without a change of the model.
WIDENS = {
    'INTEGER': {'LONG', 'DOUBLE', 'BIG_INTEGER', 'BIG_DECIMAL'} | UNBOUND,
    'LONG': {'BIG_INTEGER', 'BIG_DECIMAL'} | UNBOUND,
    'BIG_INTEGER': UNBOUND,
    'UNBOUND_INTEGER': {'UNBOUND_DECIMAL'},
    'DOUBLE': {'UNBOUND_DECIMAL'},
    'BIG_DECIMAL': {'UNBOUND_DECIMAL'},
}
# Change levels, the strictest first: each allows what those before it allow.
LEVELS = ['ARRAY_LENGTH', 'ARRAY_ELEMENTS', 'TYPE', 'STRUCTURAL']


class Num(str):
    """A JSON number as its text. Two numbers are equal when their texts are: 1.0 is not 1."""

    def __eq__(self, other):
        return isinstance(other, Num) and str(self) == str(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__


def parse(text):
    return json.loads(text, parse_int=Num, parse_float=Num)


def dump(value):
    """Compact JSON text with sorted members; numbers keep their digits."""
    if isinstance(value, Num):
        return str(value)
    if isinstance(value, dict):
        return '{' + ','.join(f'{dump(k)}:{dump(value[k])}' for k in sorted(value, key=lambda k: k.encode())) + '}'
    if isinstance(value, list):
        return '[' + ','.join(dump(v) for v in value) + ']'
    return json.dumps(value, ensure_ascii=False)


def num(n):
    return Num(str(n))


def class_of(value):
    """The type that the contract gives a scalar. A number is judged by its value without trailing zeros: 1.0 and 1e3 are integers."""
    if value is None:
        return 'NULL'
    if isinstance(value, bool):
        return 'BOOLEAN'
    if not isinstance(value, Num):
        return 'STRING'
    sign, digits, exponent = Decimal(value).as_tuple()
    while len(digits) > 1 and digits[-1] == 0:
        digits, exponent = digits[:-1], exponent + 1
    unscaled = int(''.join(map(str, digits)))
    scale = -exponent if unscaled else 0
    if scale <= 0:
        return class_of_integer((-1 if sign else 1) * unscaled * 10 ** -scale)
    precision = len(str(unscaled))
    if precision <= 15 and scale <= 292:
        return 'DOUBLE'
    if scale <= 18:
        whole = precision - scale
        # BIG_DECIMAL is a 128-bit integer with 18 decimal places.
        at_18 = (-1 if sign else 1) * unscaled * 10 ** (18 - scale)
        if (precision <= 38 and whole <= 20) or (precision <= 39 and whole <= 21 and -2 ** 127 <= at_18 < 2 ** 127):
            return 'BIG_DECIMAL'
    return 'UNBOUND_DECIMAL'


def class_of_integer(n):
    for bits, name in ((32, 'INTEGER'), (64, 'LONG'), (128, 'BIG_INTEGER')):
        if -2 ** (bits - 1) <= n < 2 ** (bits - 1):
            return name
    return 'UNBOUND_INTEGER'


def widens(one, to):
    return one == to or to in WIDENS.get(one, ())


def collapse(types):
    """A set of types as a model keeps it: at most one numeric type, and NULL only when it is the only type."""
    numeric = {t for t in types if t in INTEGERS or t in DECIMALS}
    rest = {t for t in types if t not in numeric}
    if numeric:
        whole, broken = [t for t in INTEGERS if t in numeric], [t for t in DECIMALS if t in numeric]
        one = broken[-1] if broken else whole[-1]
        if not all(widens(t, one) for t in numeric):
            one = 'UNBOUND_DECIMAL'
        rest.add(one)
    return rest - {'NULL'} if len(rest) > 1 else rest


class Node:
    """One node of a model. `kind` is 'object', 'array', 'scalar', or 'null' while only null was seen. `width` is the largest
    length of an array."""

    def __init__(self, kind, types=(), fields=None, element=None, width=0, nullable=False):
        self.kind, self.types, self.fields, self.element, self.width = kind, set(types), fields or {}, element, width
        self.nullable = nullable  # an object or array beside which a sample had null

    def facts(self):
        return (self.kind, sorted(self.types), {k: f.facts() for k, f in self.fields.items()}, self.element and self.element.facts(), self.width, self.nullable)

    def clone(self):
        return copy.deepcopy(self)


class Refused(Exception):
    """A write that the model does not allow. `codes` are the answers that the contract allows."""

    def __init__(self, *codes):
        super().__init__(codes)
        self.codes = set(codes)


def infer(value):
    if isinstance(value, dict):
        return Node('object', fields={k: infer(v) for k, v in value.items()})
    if isinstance(value, list):
        shapes = [infer(v) for v in value if v is not None]
        element = functools.reduce(merge, shapes) if shapes else Node('null', {'NULL'})
        if shapes and None in value:
            element = merge(element, Node('null', {'NULL'}))
        return Node('array', element=element, width=len(value))
    t = class_of(value)
    return Node('null' if t == 'NULL' else 'scalar', {t})


def merge(a, b):
    """The model of both samples together. The contract does not say what happens when their kinds differ, so callers avoid it."""
    if a.kind == 'null' or b.kind == 'null':
        known = (b if a.kind == 'null' else a).clone()
        known.nullable = known.kind in ('object', 'array')
        return known
    assert a.kind == b.kind, (a.kind, b.kind)
    if a.kind == 'scalar':
        return Node('scalar', collapse(a.types | b.types))
    if a.kind == 'array':
        # An empty array says nothing about the elements of another.
        element = merge(a.element, b.element) if a.width and b.width else (b if b.width else a).element.clone()
        return Node('array', element=element, width=max(a.width, b.width), nullable=a.nullable or b.nullable)
    fields = {k: v.clone() for k, v in a.fields.items()}
    for k, v in b.fields.items():
        fields[k] = merge(fields[k], v) if k in fields else v.clone()
    return Node('object', fields=fields, nullable=a.nullable or b.nullable)


def check_strict(node, value, problems):
    """Collects the codes that a strict model may refuse this value with."""
    wrong = 'BAD_REQUEST' if node.kind in ('object', 'array') else 'INCOMPATIBLE_TYPE'
    if value is None:
        if wrong == 'BAD_REQUEST' and not node.nullable:
            problems.add(wrong)
    elif isinstance(value, dict):
        if node.kind != 'object':
            problems.add(wrong)
            return
        for k, v in value.items():
            if k not in node.fields:
                problems.add('BAD_REQUEST')
            else:
                check_strict(node.fields[k], v, problems)
    elif isinstance(value, list):
        if node.kind != 'array':
            problems.add(wrong)
            return
        for v in value:
            check_strict(node.element, v, problems)
    elif node.kind in ('object', 'array'):
        problems.add(wrong)
    elif not any(widens(class_of(value), t) for t in node.types):
        problems.add('INCOMPATIBLE_TYPE')


def needs(node, seen, in_array, found):
    """Collects the change levels that the seen value needs, and POLYMORPHIC_SLOT for a change of kind, which no level allows."""
    own = 'ARRAY_ELEMENTS' if in_array else 'TYPE'
    if seen.kind == 'null':
        if node.kind in ('object', 'array') and not node.nullable:
            found.add(own)
        return
    if node.kind == 'null':
        found.add(own)
        return
    if node.kind != seen.kind:
        found.add('POLYMORPHIC_SLOT')
    elif node.kind == 'scalar':
        if collapse(node.types | seen.types) != node.types:
            found.add(own)
    elif node.kind == 'array':
        if seen.width > node.width:
            found.add('ARRAY_LENGTH')
        if seen.width:
            needs(node.element, seen.element, True, found)
    else:
        for k, v in seen.fields.items():
            if k not in node.fields:
                found.add('STRUCTURAL')
            else:
                needs(node.fields[k], v, False, found)


def admit(node, level, value):
    """The model after a write of this value. Raises Refused. Without a change level the model is strict and does not change."""
    if not level:
        problems = set()
        check_strict(node, value, problems)
        if problems:
            raise Refused(*problems)
        return node
    seen, found = infer(value), set()
    needs(node, seen, False, found)
    codes = {'POLYMORPHIC_SLOT'} & found
    if any(LEVELS.index(n) > LEVELS.index(level) for n in found - codes):
        codes.add('BAD_REQUEST')
    if codes:
        raise Refused(*codes)
    return merge(node, seen)


def simple_view(node):
    """The export SIMPLE_VIEW: a member for each object, the types of its fields."""
    view = {}
    describe(node, '$', False, view)
    return view


def types_text(node):
    if node.kind == 'array':
        return 'NULL'
    types = sorted(node.types, key=ORDER.index)
    return types[0] if len(types) == 1 else '[' + ', '.join(types) + ']'


def describe(node, path, element, view):
    mine = view[path] = {'#': 'ARRAY_ELEMENT'} if element else {}
    for name, child in node.fields.items():
        if child.kind == 'object':
            mine['#.' + name] = 'OBJECT'
            describe(child, f'{path}.{name}', False, view)
        elif child.kind == 'array' and child.element.kind == 'object':
            mine['#.' + name] = 'OBJECT'
            describe(child.element, f'{path}.{name}[*]', True, view)
        elif child.kind == 'array':
            mine[f'.{name}[*]'] = types_text(child.element)
        else:
            mine['.' + name] = types_text(child)


def json_schema(node):
    """The export JSON_SCHEMA."""
    if node.kind == 'object':
        return {'type': 'object', 'properties': {k: json_schema(v) for k, v in node.fields.items()}}
    if node.kind == 'array':
        return {'type': 'array', 'items': json_schema(node.element)}
    words = [{'type': 'integer' if t in INTEGERS else 'number' if t in DECIMALS else t.lower()} for t in sorted(node.types, key=ORDER.index)]
    return words[0] if len(words) == 1 else {'oneOf': words}


def paths(node, path='$'):
    """Path → types of every field that a search may name."""
    found = {}
    for name, child in node.fields.items():
        where = f'{path}.{name}'
        while child.kind == 'array':
            where, child = where + '[*]', child.element
        if child.kind == 'object':
            found.update(paths(child, where))
        else:
            found[where] = child.types
    return found
