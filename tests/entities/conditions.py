"""A model of the condition language: which entities a condition matches, and which searches are refused.

It is written from the contract, not from the server's code. Where the contract says nothing, the model copies the server and so
cannot find a fault: a number in an operand is written with an exponent only from 1e21 on; two `[*]` in a path give one flat
list; a search may have array conditions; IS_NULL and NOT_NULL accept any operand."""
import re

from schema import DECIMALS, INTEGERS, Num, class_of, dump, paths, widens

# Stands for a path that leads nowhere. It differs from None, which is a null in the document; most operators treat both
# alike.
MISSING = object()


def go_number(x):
    """The shortest text that reads back as the same double, as Go prints it: 1000000, 0.0001, 1.5. Below 1e-4 and from 1e21 on it
    has an exponent."""
    for precision in range(18):
        short = f'{x:.{precision}e}'
        if float(short) == x:
            break
    digits, _, exponent = short.partition('e')
    exponent = int(exponent)
    if exponent < -4 or exponent >= 21 and x:
        return f'{digits}e{"-" if exponent < 0 else "+"}{abs(exponent):02d}'
    return f'{x:.{max(0, precision - exponent)}f}'


def number_of(v):
    """An operand or a text as a double; None when it is not a number."""
    if isinstance(v, bool) or v is None or isinstance(v, (list, dict)):
        return None
    if not isinstance(v, Num) and not re.fullmatch(r'[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?', v):
        return None
    return float(v)


def text_of_field(a):
    """A field of a document as text; numbers keep their digits."""
    return str(a) if isinstance(a, str) else 'true' if a is True else 'false' if a is False else dump(a)


def text_of_operand(v):
    """An operand of a condition as text: its numbers are doubles, and null is Go's '<nil>'."""
    if isinstance(v, Num):
        return go_number(float(v))
    return v if isinstance(v, str) else 'true' if v is True else 'false' if v is False else '<nil>' if v is None else dump(v)


def is_null(a):
    return a is MISSING or a is None


def equals(a, v):
    if is_null(a):
        return v is None
    if isinstance(a, Num) and number_of(v) is not None:
        return float(a) == number_of(v)
    return text_of_field(a) == text_of_operand(v)


def compare(a, v):
    """-1, 0 or 1; None when the field is null or missing, which no comparison matches. Numbers compare by value, all else as bytes."""
    if is_null(a):
        return None
    if isinstance(a, Num) and number_of(v) is not None:
        x, y = float(a), number_of(v)
    else:
        x, y = text_of_field(a).encode(), text_of_operand(v).encode()
    return (x > y) - (x < y)


def between(a, v):
    """Bounds are a list of two or a text "low,high". A field that is not a number counts as 0, and true counts as 1."""
    if is_null(a):
        return False
    low, high = (number_of(e.strip() if not isinstance(e, Num) else e) for e in (v.split(',', 1) if isinstance(v, str) else v))
    x = 1.0 if a is True else number_of(a) or 0.0
    return low <= x <= high


def lower(text):
    """Lower case, letter by letter. A letter whose lower case has several letters stays as it is, so the length never changes."""
    return ''.join(c.lower() if len(c.lower()) == 1 else c for c in text)


def folded(text):
    """Equal for texts that differ only in case. It goes through upper case, because sigma has two lower-case forms."""
    return lower(''.join(c.upper() if len(c.upper()) == 1 else c for c in text))


def on_text(test, fold):
    """An operator from a test of two texts; with `fold` it ignores case. Null and missing fields never match."""
    def run(a, v):
        if is_null(a):
            return False
        x, y = text_of_field(a), text_of_operand(v)
        return test(lower(x), lower(y)) if fold else test(x, y)
    return run


def like(a, v):
    if is_null(a):
        return False
    pattern = ''.join('.*' if c == '%' else '.' if c == '_' else re.escape(c) for c in text_of_operand(v))
    return re.fullmatch(pattern, text_of_field(a)) is not None


def iequals(a, v):
    return v is None if is_null(a) else folded(text_of_field(a)) == folded(text_of_operand(v))


def negated(f):
    return lambda a, v: not f(a, v)


def table():
    ops = {
        'EQUALS': equals, 'NOT_EQUAL': negated(equals),
        'IS_NULL': lambda a, v: is_null(a), 'NOT_NULL': lambda a, v: not is_null(a),
        'GREATER_THAN': lambda a, v: compare(a, v) == 1, 'LESS_THAN': lambda a, v: compare(a, v) == -1,
        'GREATER_OR_EQUAL': lambda a, v: compare(a, v) in (0, 1), 'LESS_OR_EQUAL': lambda a, v: compare(a, v) in (0, -1),
        'BETWEEN': between, 'BETWEEN_INCLUSIVE': between, 'LIKE': like,
        'MATCHES_PATTERN': lambda a, v: not is_null(a) and re.search(text_of_operand(v), text_of_field(a)) is not None,
        'IEQUALS': iequals, 'INOT_EQUAL': negated(iequals),
    }
    for name, test in (('CONTAINS', lambda x, y: y in x), ('STARTS_WITH', str.startswith), ('ENDS_WITH', str.endswith)):
        for fold in (False, True):
            one = on_text(test, fold)
            ops['I' * fold + name], ops['I' * fold + 'NOT_' + name] = one, negated(one)
    return ops


OPERATORS = table()


def walk(value, steps):
    """The value at a path, or MISSING. A `[*]` inside the path gives a flat list of the values of all elements; a `[*]` at its end
    gives the length of the array."""
    for i, step in enumerate(steps):
        if step == '*':
            if not isinstance(value, list):
                return MISSING
            if i == len(steps) - 1:
                return Num(len(value))
            return [one for got in (walk(v, steps[i + 1:]) for v in value) if got is not MISSING for one in (got if '*' in steps[i + 1:-1] else [got])]
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def steps_of(path):
    path = path[2:] if path.startswith('$.') else path[1:] if path.startswith('$') else path
    return [s for s in path.replace('[*]', '.*').split('.') if s]


def operator_of(c):
    """Clients use three names for the member."""
    for name in ('operatorType', 'operator', 'operation'):
        if c.get(name):
            return c[name]


def matches(c, data, life):
    """Whether a condition matches a document. `life` has the lifecycle fields: state, creationDate, previousTransition.
    On a list of values the condition matches when it matches one of them."""
    if c['type'] == 'group':
        some = (matches(x, data, life) for x in c['conditions'])
        return all(some) if c['operator'] == 'AND' else any(some)
    if c['type'] == 'array':
        at = [(walk(data, steps_of(c['jsonPath']) + [str(i)]), v) for i, v in enumerate(c['values']) if v is not None]
        return all(a is not MISSING and equals(a, v) for a, v in at)
    op = OPERATORS[operator_of(c)]
    if c['type'] == 'lifecycle':
        field = 'previousTransition' if c['field'] == 'transitionForLatestSave' else c['field']
        return op(life[field], c.get('value'))
    value = walk(data, steps_of(c['jsonPath']))
    if isinstance(value, list):
        return any(op(v, c.get('value')) for v in value)
    return op(value, c.get('value'))


def fits(value, types):
    """Whether a field with these types may be compared with this operand. Only numbers and booleans are strict."""
    if not any(t in INTEGERS or t in DECIMALS or t == 'BOOLEAN' for t in types) or value is None:
        return True
    if isinstance(value, dict):
        return False
    if isinstance(value, list):
        return all(fits(v, types) for v in value)
    return any(widens(class_of(value), t) for t in types)


def refusals(c, node):
    """The codes that a search with this condition may be refused with; none when it runs."""
    if c['type'] == 'group':
        return set().union(*(refusals(x, node) for x in c['conditions']))
    if c['type'] == 'lifecycle':
        return set()
    fields = paths(node)
    path = '$.' + '.'.join(steps_of(c['jsonPath'])).replace('.*', '[*]')
    known = lambda p: p in fields or any(f.startswith(p + '.') for f in fields)
    found = set()
    # An array condition may name any field, or an array, and its values may have any type.
    if not known(path) and not (c['type'] == 'array' and known(path + '[*]')):
        found.add('INVALID_FIELD_PATH')
    ignored = c['type'] == 'array' or operator_of(c) in ('IS_NULL', 'NOT_NULL')
    if path in fields and not ignored and not fits(c.get('value'), fields[path]):
        found.add('CONDITION_TYPE_MISMATCH')
    return found
