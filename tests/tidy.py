#!/usr/bin/env python3
"""The rules of the house that a compiler does not check.

    tests/tidy.py            checks everything and prints each problem with its place
    tests/tidy.py --shrink   first removes exceptions that are no longer needed
    tests/tidy.py --list     prints every exception that is in use, with the lines behind it

The layer table and the tree are read from ARCHITECTURE.md: there is no second copy of them. Exceptions are counted for
each rule and file in tests/tidy_exceptions.txt. That list may only shrink: more violations than listed are a problem,
and so are fewer. tests/tidy_test.py shows a bad sample for every rule."""
import hashlib, os, re, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cpp_scan import Scan

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE = ('src', 'include', 'sim', 'bench', 'tests')
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
# Folders that may name a thread, a clock, a socket or a random device. Tests may as well.
IMPURE_FOLDERS = ('src/runtime/', 'src/net/', 'src/server/', 'src/storage/file/', 'src/storage/rocks/', 'src/storage/memory/',
                  'src/storage/postgres/', 'src/embed/', 'src/client/', 'src/cli/')
IMPURE = re.compile(r'\bstd::j?thread\b(?!::id)|\bstd::condition_variable|\bsystem_clock\b|\bsteady_clock\b|\brandom_device\b'
                    r'|(?<![\w.>])socket\(')
# The simulator runs the code that ships: a second copy of the pipeline in sim/ would name one of these.
PIPELINE = re.compile(r'\bKernel\b|\bCommitter\b|\bCellCache\b|\breplay\(|kernel/(?:kernel|commit|replay|cache)\.h')
BANNED = [
    (re.compile(r'\bcatch\s*\(\.\.\.\)'), 'catch (...) hides what happened: name the exception'),
    (re.compile(r'\bTODO\b(?!\s*\(?#\d)'), 'a TODO needs an issue number'),
]
# What a handler reads of a request has a row in a shape, from which /openapi.json is printed (wire/member.h).
HANDLERS = re.compile(r'src/faces/\w+/http/')
UNLISTED = re.compile(r'\b(?:query_params?|form_param)\("'
                      r'|\bbody(?:\.|->)(?:value\(\)\.)?(?:text|required_text|integer|count|flag|texts|choice|object|take_object|find|has|string_or)\("')
CLANG_FORMAT = 'clang-format'
CLANG_FORMAT_VERSION = 'version 14.'


def is_test(path):
    name = os.path.basename(path)
    return '_test.' in name or name.startswith('test_') or path.startswith('tests/')


def folder_of(path):
    """The layer of a path below src: its first folder, and for a face the face."""
    parts = path.split('/')
    return '/'.join(parts[:2]) if parts[0] == 'faces' else parts[0]


class Problem:
    def __init__(self, path, line, text, rule=None):
        self.path, self.line, self.text, self.rule = path, line, text, rule

    def __str__(self):
        return f'{self.path}:{self.line}: {self.text}'


# --- one file of C++ ---------------------------------------------------------------------------------------------------

def check_shape(path, text, scan):
    lines = text.count('\n')
    if lines > MAX_FILE_LINES:
        yield Problem(path, 1, f'{lines} lines, at most {MAX_FILE_LINES}: split the file by idea', 'long-file')
    if not scan.balanced:
        yield Problem(path, 1, 'tidy lost count of the brackets here: mend tests/cpp_scan.py')
    for name, line, length in scan.functions:
        if length > MAX_FUNCTION_LINES:
            yield Problem(path, line, f'{name} has {length} lines, at most {MAX_FUNCTION_LINES}: split it', 'long-function')
    for line in scan.commas:
        yield Problem(path, line, 'a comma joins two statements: write two statements', 'comma')


def check_words(path, text, code):
    if path.endswith('.h') and '#pragma once' not in text.split('\n')[:3]:
        yield Problem(path, 1, 'a header begins with #pragma once')
    for rule, why in BANNED:
        for hit in rule.finditer(text):
            yield Problem(path, 1 + text.count('\n', 0, hit.start()), why)
    # The code without comments; the names of headers are strings, and are read from the text.
    for line, words in enumerate(code.split('\n'), 1) if path.startswith('sim/') else ():
        source = text.split('\n')[line - 1]
        if hit := PIPELINE.search(source if source.startswith('#include') else words):
            yield Problem(path, line, f'{hit[0]} here: the simulator runs the shard that ships and has no pipeline of its own')
    for hit in UNLISTED.finditer(text) if HANDLERS.match(path) and not is_test(path) else ():
        yield Problem(path, 1 + text.count('\n', 0, hit.start()),
                      f'{hit[0]}...: read by a row of a shape, so that /openapi.json shows it (wire/member.h)')
    pure = path.startswith('src/') and not path.startswith(IMPURE_FOLDERS) and not is_test(path)
    for hit in IMPURE.finditer(code) if pure else ():
        yield Problem(path, 1 + code.count('\n', 0, hit.start()),
                      f'{hit[0]} here: take time, threads and chance from runtime (see runtime/background.h)', 'impure')


def check_includes(path, text, layers):
    if not path.startswith('src/') or is_test(path):
        return
    own = folder_of(path[len('src/'):])
    allowed = layers.get(own)
    if allowed is None:
        yield Problem(path, 1, f'src/{own} has no row in the layer table of ARCHITECTURE.md')
        return
    for hit in re.finditer(r'^\s*#include "([^"]+)"', text, re.M):
        target = folder_of(hit[1])
        if '/' not in hit[1] or hit[1].endswith('.pb.h') or target == own or 'everything' in allowed:
            continue
        if target not in allowed:
            yield Problem(path, 1 + text.count('\n', 0, hit.start(1)),
                          f'{own} may not include {hit[1]}: layers go down only', 'layer')


def check_code(path, text, layers):
    scan = Scan(text)
    yield from check_shape(path, text, scan)
    yield from check_words(path, text, scan.code)
    yield from check_includes(path, text, layers)


# --- ARCHITECTURE.md ---------------------------------------------------------------------------------------------------

def read_layers(page):
    """The layer table: folder -> set of folders that it may include."""
    table = re.search(r'^\| folder \| may include \|\n\|[-| ]+\n((?:\|.*\n)+)', page, re.M)
    layers = {}
    for row in table[1].splitlines() if table else ():
        cells = row.strip('|').split('|')
        names = re.findall(r'`([^`]+)`', cells[1])
        layers[cells[0].strip(' `')] = {'everything'} if cells[1].strip() == 'everything' else set(names)
    return layers


def check_layers(page):
    seen = set()
    layers = read_layers(page)
    if not layers:
        yield Problem('ARCHITECTURE.md', 1, 'there is no table "| folder | may include |"')
    for folder, allowed in layers.items():
        for other in sorted(allowed - {'everything', 'pawl'} - seen):
            yield Problem('ARCHITECTURE.md', 1, f'the layer table lets {folder} include {other}, which is not above it')
        seen.add(folder)


def folder_of_library(name):
    """faces_worlds_air and faces_worlds_grpc are parts of faces/worlds, storage_postgres of storage; others have the name of their folder."""
    face = re.match(r'faces_([a-z]+)', name)
    return f'faces/{face[1]}' if face else 'storage' if name.startswith('storage_') else name


def check_links(path, text, layers):
    """A library of ours links only folders that the layer table allows; TEST_LINKS are for tests and are free."""
    for name, arguments in re.findall(r'^pawl_library\((\w+)([^)]*)\)', text, re.M):
        own = folder_of_library(name)
        links = re.search(r'\bLINKS\b(.*?)(?=\b[A-Z_]{4,}\b(?!:)|\Z)', arguments, re.S)
        for linked in links[1].split() if links else ():
            other = folder_of_library(linked)
            if other in layers and other != own and not layers.get(own, set()) & {other, 'everything'}:
                yield Problem(path, 1, f'{name} links {linked}: the layer table does not let {own} include {other}')


def check_tree(page, folders):
    """Every folder of src has exactly one line in the tree, and its sentence ends with a period."""
    lines = re.findall(r'^ {4}(src/\S*)/ +(.*)$', page, re.M)
    told = [folder for folder, _ in lines]
    for folder, sentence in lines:
        if not re.match(r'\S+ \S.*\.$', sentence):
            yield Problem('ARCHITECTURE.md', 1, f'the tree says of {folder}/ no whole sentence: "{sentence}"')
        if folder not in folders:
            yield Problem('ARCHITECTURE.md', 1, f'the tree names {folder}/, which does not exist')
        if told.count(folder) > 1:
            yield Problem('ARCHITECTURE.md', 1, f'the tree names {folder}/ twice')
    for folder in sorted(folders - set(told)):
        yield Problem('ARCHITECTURE.md', 1, f'the tree does not name {folder}/: add its one sentence')


def holds_function(text, name):
    """True when the C++ text defines or declares a function of that name, qualified as given."""
    if '::' in name:
        return bool(re.search(rf'\b{re.escape(name)}\(', text))
    return bool(re.search(rf'^ {{0,2}}(?!return\b)[A-Za-z_][^;={{}}()]*[ &*>]{re.escape(name)}\(', text, re.M))


def check_walks(page, read):
    """`read(path)` returns the text of a file or None."""
    rows = re.findall(r'^\| \d+ \| `([^`]+)` \| `([^`]+)` \| .+ \|$', page, re.M)
    if len(rows) < len(re.findall(r'^\| \d+ \|', page, re.M)):
        yield Problem('ARCHITECTURE.md', 1, 'a row of a walk is not | # | `file` | `function` | what happens |')
    for path, function in rows:
        place = path if path.startswith('include/') else 'src/' + path
        text = read(place)
        if text is None:
            yield Problem('ARCHITECTURE.md', 1, f'a walk names {path}, which does not exist')
        elif not holds_function(text, function):
            yield Problem('ARCHITECTURE.md', 1, f'a walk says that {path} holds {function}(), which it does not')
    walks = len(re.findall(r'^## Walk \d', page, re.M))
    if walks != 4:
        yield Problem('ARCHITECTURE.md', 1, f'there are {walks} walks instead of 4')


# --- all pages ---------------------------------------------------------------------------------------------------------

NAMED_PATH = re.compile(r'`((?:src|docs|tests|examples|scripts|sdk|proto|include|bench|sim)/[\w./-]*\w)`')
CODE_BLOCK = re.compile(r'^```.*?^```$|^ {4}[^\n]*$', re.M | re.S)
LINK = re.compile(r'\]\((?!https?:|mailto:|#)([^)#\s]+)')


def check_page(path, text, exists):
    """Links between pages lead somewhere, and files named in them exist. `exists(path)` answers for the tree."""
    folder = os.path.dirname(path)
    text = CODE_BLOCK.sub(lambda block: '\n' * block[0].count('\n'), text)
    for pattern, bases in ((NAMED_PATH, ('', folder)), (LINK, (folder,))):
        for hit in pattern.finditer(text):
            if not any(exists(os.path.normpath(os.path.join(base, hit[1]))) for base in bases):
                yield Problem(path, 1 + text.count('\n', 0, hit.start()), f'{hit[1]} does not exist')


# --- exceptions --------------------------------------------------------------------------------------------------------

def read_exceptions(text):
    """rule and path -> how many violations are allowed there."""
    out = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith('#'):
            rule, path, count = line.split()
            out[rule, path] = int(count)
    return out


def count_by_place(problems):
    counts = {}
    for p in problems:
        if p.rule:
            counts[p.rule, p.path] = counts.get((p.rule, p.path), 0) + 1
    return counts


def excuse(problems, allowed):
    """The problems that the exceptions do not cover, and the exceptions that are not needed."""
    counts = count_by_place(problems)
    left = [p for p in problems if not p.rule or counts[p.rule, p.path] > allowed.get((p.rule, p.path), 0)]
    for (rule, path), most in sorted(allowed.items()):
        found = counts.get((rule, path), 0)
        if found < most:
            left.append(Problem('tests/tidy_exceptions.txt', 1,
                                f'{rule} {path}: {most} are listed and {found} are there; run tests/tidy.py --shrink'))
    return left


def shrunk(text, problems):
    counts, out = count_by_place(problems), []
    for line in text.splitlines():
        if line.strip() and not line.startswith('#'):
            rule, path, count = line.split()
            found = min(int(count), counts.get((rule, path), 0))
            if not found:
                continue
            line = f'{rule} {path} {found}'
        out.append(line)
    return '\n'.join(out) + '\n'


# --- formatting --------------------------------------------------------------------------------------------------------

def has_clang_format():
    try:
        said = subprocess.run([CLANG_FORMAT, '--version'], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return False
    return CLANG_FORMAT_VERSION in said


def check_format(paths, root, memory=None):
    """Files that clang-format would change. `memory` names a file that lists hashes of contents known to be good: most
    files have not changed since the last run, and clang-format is the slowest part of tidy."""
    style = read_or_none('.clang-format') or ''
    known = set((read_or_none(memory) or '').split()) if memory else set()
    hashes = {path: hashlib.sha1((style + (read_or_none(path) or '')).encode()).hexdigest() for path in paths}
    new = [path for path in paths if hashes[path] not in known]
    count = os.cpu_count() or 1

    def run(part):
        command = [CLANG_FORMAT, '--dry-run', '--ferror-limit=1', *part]
        return subprocess.run(command, capture_output=True, text=True, cwd=root).stderr if part else ''
    with ThreadPoolExecutor() as pool:
        said = '\n'.join(pool.map(run, [new[i::count] for i in range(count)]))
    bad = re.findall(r'^(\S+?):(\d+):\d+: (?:warning|error): code should be clang-formatted', said, re.M)
    if memory and os.path.isdir(os.path.dirname(os.path.join(ROOT, memory))):
        with open(os.path.join(ROOT, memory), 'w', encoding='utf-8') as f:
            f.write('\n'.join(sorted(set(hashes.values()) - {hashes[path] for path, _ in bad})))
    for path, line in bad:
        yield Problem(path, line, 'clang-format would change this: run clang-format -i')


# --- all of it ---------------------------------------------------------------------------------------------------------

def read_or_none(path):
    try:
        with open(os.path.join(ROOT, path), encoding='utf-8') as f:
            return f.read()
    except FileNotFoundError:
        return None


def code_files():
    for top in CODE:
        for base, folders, names in os.walk(os.path.join(ROOT, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(('.cc', '.h')):
                    yield os.path.relpath(os.path.join(base, name), ROOT)


def pages():
    for base, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not f.startswith(('build', '.', 'node_modules', 'data')))
        for name in sorted(names):
            if name.endswith('.md'):
                yield os.path.relpath(os.path.join(base, name), ROOT)


def src_folders(paths):
    out = set()
    for path in paths:
        folder = os.path.dirname(path)
        while folder.startswith('src/'):
            out.add(folder)
            folder = os.path.dirname(folder)
    return out


def problems():
    page = read_or_none('ARCHITECTURE.md')
    paths = list(code_files())
    layers = read_layers(page)
    found = list(check_layers(page)) + list(check_tree(page, src_folders(paths))) + list(check_walks(page, read_or_none))
    for path in paths:
        found += check_code(path, read_or_none(path), layers)
    for path in pages():
        found += check_page(path, read_or_none(path), lambda target: os.path.exists(os.path.join(ROOT, target)))
    for path in ('src/CMakeLists.txt', 'src/faces/entities/CMakeLists.txt'):
        found += check_links(path, read_or_none(path) or '', layers)
    if has_clang_format():
        found += check_format(paths, ROOT, 'build/tidy-formatted.txt')
    else:
        print(f'tidy: formatting is not checked: install {CLANG_FORMAT} 14')
    return found


def main(words):
    found = problems()
    place = os.path.join(ROOT, 'tests', 'tidy_exceptions.txt')
    text = read_or_none('tests/tidy_exceptions.txt') or ''
    if '--shrink' in words:
        text = shrunk(text, found)
        with open(place, 'w', encoding='utf-8') as f:
            f.write(text)
    if '--list' in words:
        for p in found:
            if p.rule:
                print(f'{p.rule:14} {p}')
        return 0
    left = excuse(found, read_exceptions(text))
    for p in left:
        print(p)
    print(f'tidy: {len(left)} problems' if left else 'tidy: no problems')
    return 1 if left else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
