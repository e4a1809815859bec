#!/usr/bin/env python3
"""Shows that every rule of tests/tidy.py can fail: a small bad sample for each, and a good one beside it."""
import os, shutil, tempfile, textwrap, unittest

import cpp_scan, tidy


def code(text):
    return textwrap.dedent(text).lstrip('\n')


def lengths(text):
    return {name: length for name, _, length in cpp_scan.Scan(code(text)).functions}


def commas(text):
    return len(cpp_scan.Scan(code(text)).commas)


def told(problems):
    return [p.text for p in problems]


class FunctionLengths(unittest.TestCase):
    def test_every_line_of_a_function_counts(self):
        self.assertEqual(lengths('int f() {\n  a();\n  b();\n  return 0;\n}\n'), {'f': 4})

    def test_a_method_a_constructor_and_a_test_are_functions(self):
        found = lengths('''
            struct A final : B {
              A(int x) : x_{x}, y_(1) {
                go();
              }
              bool ok() const override { return true; }
              template <class T>
              Result<std::pair<int, T>> both(T t = {}) const;
            };
            A::~A() {
            }
            TEST(a, promise) {
              EXPECT_EQ(1, 1);
            }
            bool operator==(const A& a, const A& b) {
              return true;
            }
            ''')
        self.assertEqual(found, {'A': 2, 'ok': 0, 'A::~A': 1, 'TEST': 2, 'operator==': 2})

    def test_a_lambda_is_part_of_its_function(self):
        self.assertEqual(lengths('void f() {\n  run([&](int x) -> bool {\n    return x;\n  });\n}\n'), {'f': 4})

    def test_a_table_is_data(self):
        rows = ''.join(f'    {{"{i}", {i}}},\n' for i in range(80))
        self.assertEqual(lengths(f'std::vector<Row> all() {{\n  return {{\n{rows}  }};\n}}\n'), {'all': 3})
        self.assertEqual(lengths(f'constexpr Row kRows[] = {{\n{rows}}};\nint f() {{ return 1; }}\n'), {'f': 0})

    def test_statements_inside_a_table_count(self):
        rows = ''.join(f'    {{"{i}", [] {{\n      go();\n    }}}},\n' for i in range(10))
        self.assertEqual(lengths(f'Rows all() {{\n  return {{\n{rows}  }};\n}}\n'), {'all': 13})

    def test_text_and_comments_open_no_braces(self):
        found = lengths('void f() {\n  x = "{"; // {\n  c = \'{\'; n = 1\'000;\n  r = R"({{{)"; /* { */\n}\n')
        self.assertEqual(found, {'f': 4})

    def test_the_scan_says_when_it_is_lost(self):
        self.assertFalse(cpp_scan.Scan('void f() {\n').balanced)
        self.assertIn('lost count', told(tidy.check_code('src/base/a.cc', 'void f() {\n', {'base': set()}))[0])

    def test_a_long_function_and_a_long_file_are_refused(self):
        long = 'void f() {\n' + '  go();\n' * 61 + '}\n'
        good = 'void f() {\n' + '  go();\n' * 58 + '}\n'
        self.assertIn('f has 62 lines', told(tidy.check_code('src/base/a.cc', long, {'base': set()}))[0])
        self.assertEqual(told(tidy.check_code('src/base/a.cc', good, {'base': set()})), [])
        self.assertIn('601 lines', told(tidy.check_code('src/base/a.cc', '\n' * 601, {'base': set()}))[0])


class Commas(unittest.TestCase):
    def test_commas_in_place_of_semicolons_are_found(self):
        for bad in ('a = 1, b = 2;', 'return good = fail(x), false;', 'if (x) close(fd), fd = -1;', 'few_.clear(), many_.clear();',
                    'else ++n, ++m;', 'return (void)a, false;', '(void)a, (void)b;', 'case 3: a = 1, b = 2; break;',
                    'run([&] { x = 1, y = 2; });', 'p->a[i] += 2, *out = 3;'):
            self.assertEqual(commas(f'void f() {{\n  {bad}\n}}\n'), 1, bad)

    def test_other_commas_are_left_alone(self):
        for good in ('int a = 1, b = 2;', 'auto before = f(x), after = g(x);', 'for (i = 0, j = 1; i < j; ++i, --j) go();',
                     'return std::pair<int, std::vector<A, B>>(x, y);', 'call(a, b);', 'return Row{a, b};', 'auto [a, b] = c;',
                     'std::map<int, int> m{{1, 2}};', 'Foo a(1), b(2);', 'using A = B<C, D>;', 'return {a, b};',
                     'x = cond ? f(a, b) : g(c, d);'):
            self.assertEqual(commas(f'void f() {{\n  {good}\n}}\n'), 0, good)


class Words(unittest.TestCase):
    def problems(self, path, text):
        return told(tidy.check_code(path, text, {'base': set(), 'kernel': {'base'}, 'faces/worlds': set(), 'runtime': set()}))

    def test_impure_words_are_refused_outside_runtime(self):
        for word in ('std::thread t;', 'std::condition_variable c;', 'std::chrono::system_clock::now();', 'std::random_device d;',
                     'int fd = ::socket(AF_INET, 0, 0);', 'std::chrono::steady_clock::now();'):
            self.assertEqual(len(self.problems('src/kernel/a.cc', word + '\n')), 1, word)
            self.assertEqual(self.problems('src/runtime/a.cc', word + '\n'), [])
            self.assertEqual(self.problems('src/kernel/a_test.cc', word + '\n'), [])
            self.assertEqual(self.problems('src/kernel/a.cc', '// ' + word + '\n'), [])

    def test_a_second_pipeline_in_the_simulator_is_refused(self):
        for bad in ('Kernel kernel_;', 'Committer committer(journal);', 'auto r = replay(journal, rows, programs);',
                    '#include "kernel/commit.h"'):
            self.assertEqual(len(told(tidy.check_words('sim/world.cc', bad + '\n', cpp_scan.Scan(bad + '\n').code))), 1, bad)
        good = '// The Kernel is the shard\'s own.\nShard& shard = *server.shard;\n#include "kernel/verify.h"\n'
        self.assertEqual(told(tidy.check_words('sim/world.cc', good, cpp_scan.Scan(good).code)), [])
        self.assertEqual(told(tidy.check_words('src/runtime/shard.cc', 'Kernel kernel_;\n', 'Kernel kernel_;\n')), [])

    def test_a_handler_reads_by_rows(self):
        for bad in ('TRY(auto id, body.text("id"));', 'body->value().find("id");', 'request.query_param("id");'):
            self.assertTrue(told(tidy.check_words('src/faces/a/http/routes.cc', bad, bad)), bad)
        for good in ('body.text(kPoll["id"]);', 'request.query_param(kQuery["id"]);', 'answer.find("id");'):
            self.assertFalse(told(tidy.check_words('src/faces/a/http/routes.cc', good, good)), good)
        self.assertFalse(told(tidy.check_words('src/faces/a/http/routes_test.cc', 'body.text("id");', '')))

    def test_a_header_begins_with_pragma_once(self):
        self.assertEqual(self.problems('src/base/a.h', 'int a;\n'), ['a header begins with #pragma once'])
        self.assertEqual(self.problems('src/base/a.h', '#pragma once\n'), [])

    def test_a_nameless_catch_and_a_bare_todo_are_refused(self):
        self.assertEqual(len(self.problems('src/base/a.cc', 'void f() { try { g(); } catch (...) {} }\n')), 1)
        self.assertEqual(len(self.problems('src/base/a.cc', '// TO' + 'DO: later\n')), 1)
        self.assertEqual(self.problems('src/base/a.cc', '// TO' + 'DO(#12): later\n'), [])

    def test_includes_follow_the_layer_table(self):
        self.assertEqual(self.problems('src/kernel/a.cc', '#include "base/b.h"\n#include "kernel/c.h"\n#include "x.h"\n'), [])
        self.assertIn('layers go down only', self.problems('src/base/a.cc', '#include "kernel/b.h"\n')[0])
        self.assertIn('no row in the layer table', self.problems('src/attic/a.cc', '\n')[0])
        self.assertIn('layers go down only', self.problems('src/faces/worlds/a.cc', '#include "faces/entities/b.h"\n')[0])


PAGE = code('''
        src/base/   The base of it all.
        src/kernel/ The kernel runs turns.

    | folder | may include |
    |---|---|
    | `base` | |
    | `kernel` | `base` |
    | `cli` | everything |

    ## Walk 1: one
    | 1 | `kernel/kernel.cc` | `Kernel::run` | It runs. |
    ## Walk 2: two
    ## Walk 3: three
    ## Walk 4: four
    ''')
FILES = {'src/kernel/kernel.cc': 'void Kernel::run(Input input) {\n}\nstatic int helper(int x) {\n  return other(x);\n}\n'}


class Page(unittest.TestCase):
    def tree(self, page, folders=frozenset({'src/base', 'src/kernel'})):
        return told(tidy.check_tree(page, set(folders)))

    def walks(self, page):
        return told(tidy.check_walks(page, FILES.get))

    def test_a_good_page_has_no_problem(self):
        self.assertEqual(self.tree(PAGE) + self.walks(PAGE) + told(tidy.check_layers(PAGE)), [])
        self.assertEqual(tidy.read_layers(PAGE), {'base': set(), 'kernel': {'base'}, 'cli': {'everything'}})

    def test_every_folder_has_its_sentence(self):
        self.assertIn('does not name src/net/', self.tree(PAGE, {'src/base', 'src/kernel', 'src/net'})[0])
        self.assertIn('does not exist', self.tree(PAGE, {'src/base'})[0])
        self.assertIn('no whole sentence', self.tree(PAGE.replace('runs turns.', 'runs turns'))[0])
        self.assertIn('twice', self.tree(PAGE.replace('src/kernel/', 'src/base/  '), {'src/base'})[0])

    def test_a_walk_names_files_and_functions_that_exist(self):
        self.assertIn('does not exist', self.walks(PAGE.replace('kernel/kernel.cc', 'kernel/gone.cc'))[0])
        self.assertIn('which it does not', self.walks(PAGE.replace('Kernel::run', 'Kernel::gone'))[0])
        self.assertEqual(self.walks(PAGE.replace('Kernel::run', 'helper')), [])
        self.assertIn('which it does not', self.walks(PAGE.replace('Kernel::run', 'other'))[0])
        self.assertIn('a row of a walk', self.walks(PAGE.replace('`Kernel::run`', 'Kernel::run'))[0])
        self.assertIn('3 walks', self.walks(PAGE.replace('## Walk 4', '## Stroll'))[0])

    def test_the_layer_table_goes_down_only(self):
        self.assertIn('is not above it', told(tidy.check_layers(PAGE.replace('| `base` | |', '| `base` | `kernel` |')))[0])
        self.assertIn('there is no table', told(tidy.check_layers('nothing'))[0])


class Links(unittest.TestCase):
    def test_link_lists_follow_the_layer_table(self):
        layers = {'base': set(), 'kernel': {'base'}, 'faces/worlds': {'kernel', 'base'}, 'server': {'base'}}
        good = 'pawl_library(faces_worlds_grpc ${faces}/worlds/grpc LINKS faces_worlds kernel base fmt::fmt TEST_LINKS server)\n'
        self.assertEqual(told(tidy.check_links('CMakeLists.txt', good, layers)), [])
        bad = 'pawl_library(base ${here}/base LINKS fmt::fmt\n  kernel)\n'
        self.assertIn('base links kernel', told(tidy.check_links('CMakeLists.txt', bad, layers))[0])


class Pages(unittest.TestCase):
    def test_links_and_named_files_exist(self):
        there = {'docs/a.md', 'src/base/bytes.h'}.__contains__
        good = 'See [a](a.md#top), [out](https://example.org), `src/base/bytes.h`, `docs/*.md` and `src/base/`.\n'
        self.assertEqual(told(tidy.check_page('docs/b.md', good, there)), [])
        self.assertEqual(told(tidy.check_page('docs/b.md', '[c](c.md)\n', there)), ['c.md does not exist'])
        self.assertEqual(told(tidy.check_page('docs/b.md', '`src/base/gone.h`\n', there)), ['src/base/gone.h does not exist'])


class Exceptions(unittest.TestCase):
    LIST = '# reasons\ncomma src/a.cc 2\nimpure src/b.cc 1\n'

    def left(self, found):
        return told(tidy.excuse([tidy.Problem(p, 1, 'bad', r) for r, p in found], tidy.read_exceptions(self.LIST)))

    def test_listed_violations_are_excused_and_no_more(self):
        listed = [('comma', 'src/a.cc')] * 2 + [('impure', 'src/b.cc')]
        self.assertEqual(self.left(listed), [])
        self.assertEqual(len(self.left(listed + [('comma', 'src/a.cc')])), 3)
        self.assertEqual(len(self.left(listed + [(None, 'src/a.cc')])), 1)

    def test_an_exception_that_is_not_needed_is_a_problem(self):
        self.assertIn('2 are listed and 1 are there', self.left([('comma', 'src/a.cc'), ('impure', 'src/b.cc')])[0])

    def test_shrink_only_ever_shrinks(self):
        found = [tidy.Problem('src/a.cc', 1, 'bad', 'comma')] + [tidy.Problem('src/c.cc', 1, 'bad', 'comma')] * 3
        self.assertEqual(tidy.shrunk(self.LIST, found), '# reasons\ncomma src/a.cc 1\n')


@unittest.skipUnless(tidy.has_clang_format(), 'clang-format 14 is not installed')
class Format(unittest.TestCase):
    def test_what_clang_format_would_change_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(tidy.ROOT, '.clang-format'), folder)
            for name, text in (('bad.cc', 'int  f( ) {return 1;}\n'), ('good.cc', 'int f() { return 1; }\n')):
                with open(os.path.join(folder, name), 'w') as f:
                    f.write(text)
            self.assertEqual([p.path for p in tidy.check_format(['bad.cc', 'good.cc'], folder)], ['bad.cc'])


if __name__ == '__main__':
    unittest.main()
