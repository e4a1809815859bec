#!/usr/bin/env python3
"""The reference of processes lists every error that a user can meet: the failure reasons and the error words in the code."""
import glob, os, re, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import check

FACE = os.path.join(live.ROOT, 'src/faces/processes')
PAGE = os.path.join(live.ROOT, 'docs/reference/processes.md')


def sources():
    for path in glob.glob(os.path.join(FACE, '**/*.cc'), recursive=True):
        if not path.endswith('_test.cc'):
            with open(path) as file:
                yield file.read()


def failure_reasons():
    """A reason begins a text: "StepLimitReached: more than ...", "DecisionTableCellError"."""
    ends = 'Reached|Invalid|Error|Violation|Conflict|Matched|Mismatch|TooLarge'
    return {name for text in sources() for name in re.findall(rf'"([A-Z][a-z]+(?:[A-Z][a-z]+)*?(?:{ends}))\b', text)}


def error_words():
    with open(os.path.join(FACE, 'http/answers.cc')) as file:
        table = re.search(r'kErrorWords\[\] = \{(.*?)\};', file.read(), re.S)[1]
    return set(re.findall(r'Code::\w+, "([a-z-]+)"', table))


def main():
    with open(PAGE) as file:
        page = file.read()
    reasons, words = failure_reasons(), error_words()
    check(f'the code has failure reasons: {reasons}', len(reasons) > 10 and 'ChainLimitReached' in reasons)
    check(f'the code has error words: {words}', len(words) > 8)
    for name in sorted(reasons):
        check(f'docs/reference/processes.md does not list the failure reason {name}', re.search(rf'\b{name}\b', page))
    for word in sorted(words):
        check(f'docs/reference/processes.md does not list the error {word}', re.search(rf'\| [^|]*\b{word}\b', page))
    return live.report(f'{len(reasons)} failure reasons and {len(words)} errors')


if __name__ == '__main__':
    sys.exit(main())
