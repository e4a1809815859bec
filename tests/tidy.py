#!/usr/bin/env python3
"""The rules of the house that a compiler does not check: layers go down only, files stay short."""
import os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Each folder of src and what it may include besides itself. Tests may include anything.
LANGUAGES = {'base', 'json', 'wire', 'kernel', 'storage', 'runtime'}
MAY = {
    'base': set(),
    'json': {'base'},
    'cbor': {'base'},
    'wasm': {'base'},
    'storage': {'base'},
    'expr': {'base', 'json'},
    'condition': {'base', 'json'},
    'kernel': {'base', 'storage'},
    'wire': {'base', 'json'},
    'net': {'base', 'wire'},
    'runtime': {'base', 'storage', 'kernel'},
    'faces/processes': LANGUAGES | {'expr'},
    'faces/entities': LANGUAGES | {'condition'},
    'faces/lifecycle': LANGUAGES | {'pawl'},
    'faces/worlds': LANGUAGES | {'pawl', 'cbor', 'wasm', 'net'},
    'server': LANGUAGES | {'net'},
    'embed': LANGUAGES | {'net', 'faces/lifecycle', 'pawl'},
    'client': {'base', 'json', 'wire', 'net', 'pawl'},
    'cli': None,  # the top: anything
}
# Files over 600 lines, each a question asked and answered. The list may only shrink.
LONG = {
    'server/ops/config.cc', 'cli/process_commands.cc', 'faces/processes/run/program_test.cc',
    'faces/entities/face_test.cc',
    'faces/entities/flow/machine_test.cc', 'faces/lifecycle/run/model_test.cc',
}
BANNED = [
    (re.compile(r'\bcatch\s*\(\.\.\.\)'), 'catch (...) hides what happened: name the exception'),
    (re.compile(r'\bTODO\b(?!\s*\(?#\d)'), 'a TODO needs an issue number'),
]


def folder_of(path):
    parts = path.split('/')
    return '/'.join(parts[:2]) if parts[0] == 'faces' else parts[0]


def problems():
    src = os.path.join(ROOT, 'src')
    for base, _, names in os.walk(src):
        for name in sorted(names):
            if not name.endswith(('.cc', '.h')):
                continue
            full = os.path.join(base, name)
            path = os.path.relpath(full, src)
            own = folder_of(path)
            with open(full) as f:
                lines = f.read().split('\n')
            if len(lines) > 600 and path not in LONG:
                yield f'src/{path}: {len(lines)} lines; is it still one idea?'
            if name.endswith('.h') and '#pragma once' not in lines[:3]:
                yield f'src/{path}:1: a header begins with #pragma once'
            for n, line in enumerate(lines, 1):
                for rule, why in BANNED:
                    if rule.search(line):
                        yield f'src/{path}:{n}: {why}'
                hit = re.match(r'\s*#include "([^"]+)"', line)
                if not hit or own not in MAY or MAY[own] is None or '_test.' in name or name.startswith('test_'):
                    continue
                target = folder_of(hit[1])
                if '/' not in hit[1] or hit[1].endswith('.pb.h'):
                    continue
                if target != own and target not in MAY[own]:
                    yield f'src/{path}:{n}: {own} may not include {hit[1]}: layers go down only'


def main():
    found = list(problems())
    for line in found:
        print(line)
    print(f'tidy: {len(found)} problems' if found else 'tidy: the house is in order')
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
