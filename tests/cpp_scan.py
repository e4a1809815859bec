"""A small reader of C++ for tests/tidy.py: it finds functions and their length, and commas that stand for semicolons.

It knows the shapes that clang-format leaves behind, not the whole language. A lambda is part of the function around it.
A table (an initialiser with five or more rows in braces) is data: of its lines only those with a statement count."""
import re

NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/'                      # comments
    r'|R"([^(\s]*)\(.*?\)\1"'                  # raw strings
    r'|"(?:\\.|[^"\\\n])*"'                    # strings
    r"|(?<![0-9a-fA-F])'(?:\\[^\n']+|\\'|[^'\\\n])'"  # characters, but not the marks in 1'000
    r'|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*',         # preprocessor lines
    re.S | re.M)
MARK = re.compile(r'[(){}\[\];]')
ANGLES = re.compile(r'(?<=\w)<[\w\s:,*&()\[\].]*>')
TYPE = re.compile(r'^(?:typedef\s+|static\s+|constexpr\s+|const\s+)*(?:struct|class|union|enum)\b[^()=]*$')
NAMESPACE = re.compile(r'^(?:inline\s+)?namespace\b|^extern\s*""$')
AFTER_PARAMETERS = re.compile(r'^(?:\s*(?:const|noexcept(?:\(\))?|override|final|mutable|&&?|requires\b.*|->.*))*\s*$', re.S)
LAMBDA = re.compile(r'\[\]\s*(?:<.*>\s*)?(?:\(\))?\s*(?:mutable\b|noexcept\b|->.*|\s)*$', re.S)
BLOCK = re.compile(r'(?:^|\)|\b(?:else|do|try))\s*$|\b(?:case\b[^;]*|default\s*):\s*$')
CONTROL = re.compile(r'^(?:\}?\s*else\b\s*|(?:if|for|while|switch)\s*(?:constexpr\s*)?\(\)\s*'
                     r'|(?:case\b(?:[^:]|::)*|default\s*):(?!:)\s*|do\b\s*)')
ACCESS = re.compile(r'^(?:public|private|protected)\s*:(?!:)\s*')
CHAIN = r'(?:\(\)\s*)?[*&!~+-]*[A-Za-z_]\w*(?:::\w+|\.\w+|->\w+|\(\)|\[\]|\{\})*'
EXPRESSION = re.compile(rf'^(?:\(\)\s*\w+|{CHAIN}\s*(?:(?:[-+*/|&^%]|<<|>>)?=(?!=).*|\+\+|--)|(?:\+\+|--){CHAIN}'
                        rf'|{CHAIN}(?:\(\)))$', re.S)
LOOSE = re.compile(r'^(?:using|template|typedef|friend|namespace|public|private|protected)\b')
MIN_TABLE_ROWS = 5


class Level:
    def __init__(self, kind, line, resets=False, name='', lead=''):
        self.kind, self.line, self.resets, self.name, self.lead = kind, line, resets, name, lead
        self.text, self.rows, self.data_lines = '', 0, 0


def without_text(source):
    """The source without comments, strings and preprocessor lines; lines keep their numbers."""
    def blank(match):
        text = match[0]
        kept = '""' if text[0] in 'R"' else '0' if text[0] == "'" else ''
        return kept + '\n' * text.count('\n')
    return NOT_CODE.sub(blank, source)


def without_angles(text):
    while True:
        shorter = ANGLES.sub('', text)
        if shorter == text:
            return text
        text = shorter


def is_comma_list(statement):
    """True for `a = 1, b = 2` and `return x = 1, y`: two statements that a comma joins."""
    if ',' not in statement:
        return False
    text = without_angles(ACCESS.sub('', statement.strip()))
    while True:
        rest = CONTROL.sub('', text, count=1)
        if rest == text:
            break
        text = rest
    if ',' not in text or LOOSE.match(text):
        return False
    if re.match(r'(?:co_)?return\b', text):
        return True
    return bool(EXPRESSION.match(text[:text.index(',')].strip()))


def parameters_end(lead):
    """The text after the parameter list of a function's head, or None when `lead` is no such head."""
    flat = without_angles(lead)
    if re.search(r'(?<!operator)(?<![=!<>+*/|&^%-])=(?!=)', flat.split('(')[0]) and 'operator' not in flat:
        return None
    constructor = re.search(r'\)\s*(?:noexcept\s*)?:(?!:)', flat)
    if constructor:
        return '' if re.search(r'[)}]\s*$', flat) else None
    last = flat.rfind(')')
    if last < 0:
        return None
    tail = flat[last + 1:]
    return tail if AFTER_PARAMETERS.match(tail) else None


def name_of(lead):
    flat = without_angles(re.sub(r'^template\s*<.*?>\s*', '', lead, flags=re.S))
    found = re.search(r'(operator\s*[^\s\w(]+|operator\s*\(\)|[~\w:]+)\s*\(', flat)
    return found[1].strip(':') if found else lead[:40]


class Scan:
    """functions: (name, first line, lines that count); commas: line numbers of comma lists.

    The first line is the one with the opening brace; the length is the number of lines after it, up to the closing brace.
    `balanced` is false when the scan lost count of the brackets, so that its answers mean nothing.
    `code` is the source without comments and texts."""

    def __init__(self, source):
        self.functions, self.commas = [], []
        code = self.code = without_text(source)
        lines = code.split('\n')
        stack = [Level('scope', 1)]
        at, line = 0, 1
        inside = 0  # functions that are open
        for mark in MARK.finditer(code):
            piece = code[at:mark.start()]
            stack[-1].text += piece
            line += piece.count('\n')
            at = mark.end()
            sign = mark[0]
            if sign in '([':
                stack.append(Level(sign, line))
            elif sign in ')]':
                if len(stack) > 1:
                    stack.pop()
                stack[-1].text += '()' if sign == ')' else '[]'
            elif sign == ';':
                self.end_statement(stack[-1], line)
            elif sign == '{':
                level = self.open_brace(stack[-1], line, inside)
                inside += level.kind == 'function'
                stack.append(level)
            elif len(stack) > 1:
                level = stack.pop()
                inside -= level.kind == 'function'
                self.close_brace(level, stack, line, lines)
        self.balanced = len(stack) == 1

    def end_statement(self, level, line):
        if level.kind in '([':
            level.text += ';'
            return
        if is_comma_list(level.text):
            self.commas.append(line)
        level.text = ''

    def open_brace(self, outer, line, inside):
        lead = ACCESS.sub('', outer.text.strip())
        bare = re.sub(r'^template\s*<.*?>\s*(?=struct|class|union)', '', lead, flags=re.S)
        if NAMESPACE.match(lead):
            return Level('scope', line, resets=True)
        if TYPE.match(bare):
            return Level('scope' if not inside else 'block', line)
        if not inside and outer.kind == 'scope':
            if re.search(r'=\s*\[\]', lead):
                return Level('function', line, name=name_of(lead.split('=')[0] + '('), lead=lead)
            if parameters_end(lead) is not None:
                return Level('function', line, resets=True, name=name_of(lead), lead=lead)
            return Level('data', line, lead=lead)
        if LAMBDA.search(outer.text):
            return Level('block', line)
        if outer.kind in ('function', 'block', 'scope') and BLOCK.search(lead):
            return Level('block', line, resets=True)
        return Level('data', line, lead=lead)

    def close_brace(self, level, stack, line, lines):
        outer = stack[-1]
        if level.kind == 'function':
            length = line - level.line - level.data_lines
            self.functions.append((level.name, level.line, length))
        elif level.kind == 'data':
            if outer.kind == 'data':
                outer.rows += 1
            else:
                rows = level.rows if level.rows >= MIN_TABLE_ROWS else 0
                function = next((l for l in reversed(stack) if l.kind == 'function'), None)
                if rows and function:
                    body = lines[level.line:line - 1]
                    function.data_lines += sum(';' not in text for text in body)
        if level.resets:
            outer.text = ''
        else:
            outer.text += '{}'
