#!/usr/bin/env python3
"""`pawl simulate`: the shipped example passes, its broken variant is found out quickly with a story that can be replayed, and each
kind of finding, fault and bad file is shown by a small definition."""
import json, os, re, stat, subprocess, sys, tempfile, time, xml.dom.minidom

import live
from live import PAWL, check

sys.path.insert(0, os.path.join(live.ROOT, 'sdk', 'python'))
LOAN = os.path.join(live.ROOT, 'examples', 'loan', 'simulate')
WORLDS = os.path.join(live.ROOT, 'examples', 'worlds')
END = {'id': 'end', 'name': 'End', 'type': 'END'}


def run(*words):
    done = subprocess.run([PAWL, 'simulate', *words], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def task(id, next='end', **more):
    return {'id': id, 'name': id, 'type': 'SERVICE_TASK', 'jobType': id, 'nextStep': next, **more}


def script(folder, steps, name='script.json', definition=None, **more):
    path = os.path.join(folder, name)
    with open(path, 'w') as f:
        json.dump({'definition': {'id': 'd', 'name': 'D', 'steps': steps, **(definition or {})}, 'lives': 50, **more}, f)
    return path


def report_of(folder, steps, *words, **more):
    code, out, err = run(script(folder, steps, **more), '--json', *words)
    check(f'a report is printed: {code} {err}', code in (0, 6))
    report = json.loads(out)
    check(f'the exit code tells of findings: {code} {report["findings"]}', (code == 6) == bool(report['findings']))
    return report


def kinds(report):
    return sorted({f['kind'] for f in report['findings']})


def the_loan_passes():
    code, out, err = run(os.path.join(LOAN, 'loan.json'), '--lives', '600')
    check(f'the loan has no findings: {out}{err}', code == 0 and 'nothing found' in out)
    check(f'all of it is reached: {out}', re.search(r'reached: (\d+) of \1 steps, (\d+) of \2 branches', out))


def the_broken_loan_is_found_out():
    began = time.monotonic()
    code, out, err = run(os.path.join(LOAN, 'broken.json'), '--json')
    took = time.monotonic() - began
    report = json.loads(out)
    found = [f for f in report['findings'] if f['kind'] == 'invariant']
    check(f'the fraud is found: {code} {kinds(report)} {err}', code == 6 and len(found) == 1 and 'fraudScore' in found[0]['what'])
    check(f'soon: {took:.1f}', took < 60)  # under 10 s on a machine that does nothing else
    print(f'the broken loan was found out in {took:.1f} s')
    again = found[0]['replay'].split()
    code, told, err = run(*[word.replace("'", '') for word in again[2:]], '--json')
    story = json.loads(told)['story']
    check(f'the story is replayed: {code} {err}', code == 6 and story == found[0]['story'])
    check(f'it tells of the fraud and the transfer: {story}', any('0.9' in line['text'] for line in story)
          and any('BROKEN' in line['text'] for line in story))


def the_same_seed_gives_the_same_lives():
    with tempfile.TemporaryDirectory() as folder:
        steps = [task('a', 'b', retryCount=2), task('b'), END]
        more = {'jobs': {'a': {'fails': '30%', 'takes': '1s..2h'}}, 'crashes': '50%'}
        one, same, other = (report_of(folder, steps, '--seed', seed, **more) for seed in ('7', '7', '8'))
        check('the same seed gives the same report', one == same)
        check('another seed gives another one', one['durationMs'] != other['durationMs'])


def each_kind_of_finding():
    with tempfile.TemporaryDirectory() as folder:
        wait = {'id': 'w', 'name': 'W', 'type': 'WAIT', 'nextStep': 'end'}
        report = report_of(folder, [wait, END], signals={'w': {'never': '20%', 'after': '1m..3d'}})
        check(f'an instance waits for ever: {report["findings"]}', kinds(report) == ['waits-for-ever'] and 0 < report['findings'][0]['lives'] < 50)
        check(f'and the ends are counted: {report["ends"]}', sum(report['ends'].values()) == 50 and report['ends']['WAITING'] == report['findings'][0]['lives'])
        report = report_of(folder, [wait, END], signals={'w': {'never': '20%'}}, mayWait=True)
        check(f'which may be: {report["findings"]}', kinds(report) == [])
        choice = {'id': 'c', 'name': 'C', 'type': 'DECISION', 'conditionalNextSteps': {'n > 1': 'a', 'n <= 1': 'end'}}
        report = report_of(folder, [choice, task('a'), END], start=[{'n': 0}])
        check(f'a step is never reached: {report["findings"]}', [f['what'] for f in report['findings']] == ['d/a'])
        report = report_of(folder, [choice, task('a'), END], start=[{'n': 0}], mayBeUnreached=['a'])
        check(f'which may be: {report["findings"]}', report['findings'] == [])
        report = report_of(folder, [task('z', 'c'), choice, task('a'), END], start=[{'n': 2}])
        check(f'a branch is never taken: {report["findings"]}', [f['what'] for f in report['findings']] == ['d/c -> end'])
        report = report_of(folder, [task('a', outputsSchema={'type': 'object', 'required': ['x']}), END], jobs={'a': {'results': [{}, {'x': 1}]}})
        check(f'a result is refused: {report["findings"]}', kinds(report) == ['refused-result'])
        check(f'and its instance failed: {report["ends"]}', set(report['ends']) == {'COMPLETED', 'FAILED'})
        report = report_of(folder, [task('a'), END], '--invariant', '!(status == "COMPLETED" && paid && !shipped)',
                           jobs={'a': {'results': [{'paid': True}, {'paid': True, 'shipped': True}]}})
        check(f'an invariant breaks: {report["findings"]}', kinds(report) == ['invariant'] and 0 < report['findings'][0]['lives'] < 50)
        report = report_of(folder, [task('a'), END], '--invariant', 'amount > 5', start=[{'amount': 9}], jobs={'a': {'results': [{'amount': 'x'}, {}]}})
        check(f'an invariant cannot be evaluated: {report["findings"]}', kinds(report) == ['invariant-fails'] and 0 < report['findings'][0]['lives'] < 50
              and any('cannot be evaluated' in line['text'] for line in report['findings'][0]['story']))
        report = report_of(folder, [task('a'), END], '--invariant', 'paid > 5', jobs={'a': {'results': [{'paid': 6}, {}]}})
        check(f'it is told that a variable was missing: {report}', report['findings'] == [] and report['notChecked'][0]['invariant'] == 'paid > 5'
              and report['notChecked'][0]['lives'] == 50)
        code, out, err = run(script(folder, [task('a'), END]), '--invariant', 'paid > 5')
        check(f'an invariant that no life can evaluate: {code} {out} {err}', code == 2 and 'could not be evaluated in any life' in err)


def each_fault_happens():
    with tempfile.TemporaryDirectory() as folder:
        def story(**more):
            code, out, err = run(script(folder, [task('a', retryCount=3), END], **more), '--life', '0')
            check(f'one life is told: {code} {err}', code in (0, 6))
            return out
        check('a dead worker', 'never heard of again' in story(jobs={'a': {'dies': '90%'}}))
        text = story(jobs={'a': {'late': 1}})
        check(f'a late answer: the job is taken again: {text}', 'attempt 2' in text)
        check('an answer twice', story(jobs={'a': {'twice': 1}}).count('the worker completes a') == 2)
        text = story(jobs={'a': {'fails': 1, 'message': 'out of money'}})
        check(f'retries are used up: {text}', text.count('job a fails') == 4 and 'FAILED' in text and 'out of money' in text)
        check('a final failure', 'fails for good' in story(jobs={'a': {'fails': 1, 'retryable': False}}))
        check('a crash', 'the server is killed' in story(crashes=1, jobs={'a': {'fails': '90%'}}))
        text = story(jobs={'a': {'takes': '3d'}})
        check(f'a job that takes days keeps its lease: {text}', 'attempt 2' not in text and 'COMPLETED' in text)
        report = report_of(folder, [task('a', retryCount=2, boundaryEvents=[
            {'type': 'TIMER', 'duration': 'PT1H', 'interrupting': True, 'targetStepId': 'late'}]), task('late'), END],
            jobs={'a': {'takes': '50m..70m', 'fails': '20%'}}, lives=100, crashes='30%')
        check(f'timers race answers: {report["findings"]} {report["ends"]}', report['findings'] == [] and report['ends'].get('COMPLETED', 0) > 50)


def a_real_worker():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'charge.py')
        with open(program, 'w') as f:
            f.write('#!/usr/bin/env python3\nimport json, sys\nv = json.load(sys.stdin)\n'
                    'if v["n"] > 2: sys.exit("too much")\nprint(json.dumps({"double": v["n"] * 2}))\n')
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        report = report_of(folder, [task('charge'), END], '--worker', f'charge={program}', '--invariant', 'status != "COMPLETED" || double == n * 2',
                           start=[{'n': 1}, {'n': 2}, {'n': 3}], lives=20)
        check(f'its results are used: {report}', report['findings'] == [] and report['ends'].get('COMPLETED') and report['ends'].get('FAILED'))
        check(f'its failures too: {report["failures"]}', any('too much' in reason for reason in report['failures']))
        code, _, err = run(script(folder, [task('charge'), END]), '--worker', 'charge=/nowhere')
        check(f'a program that is not there: {err}', code == 2 and '/nowhere' in err)


def start_variables_from_a_schema():
    with tempfile.TemporaryDirectory() as folder:
        schema = {'type': 'object', 'required': ['amount'], 'properties': {
            'amount': {'type': 'integer', 'minimum': 1, 'maximum': 5}, 'kind': {'enum': ['a', 'b']}}}
        report = report_of(folder, [task('a'), END], '--invariant', 'amount >= 1 && amount <= 5', definition={'inputSchema': schema})
        check(f'all starts fit the schema: {report["findings"]}', report['findings'] == [] and report['ends'] == {'COMPLETED': 50})
        code, _, err = run(script(folder, [task('a'), END], definition={'inputSchema': schema}, start=[{'amount': 9}]))
        check(f'variables that do not fit are named: {err}', code != 0 and 'refuses to start' in err)


def entity_workflows():
    orders = os.path.join(live.ROOT, 'examples', 'orders', 'simulate.json')
    code, out, err = run(orders, '--lives', '300')
    check(f'the orders have no findings: {out}{err}', code == 0 and 'nothing found' in out)
    check(f'all states and transitions are reached: {out}', re.search(r'reached: (\d+) of \1 steps, (\d+) of \2 branches', out))
    code, out, err = run(orders, '--lives', '200', '--json', '--invariant', "!(state == 'CANCELLED' && inStock)")
    report = json.loads(out)
    check(f'an invariant over data and state breaks: {code} {kinds(report)}', code == 6 and kinds(report) == ['invariant'])
    story = report['findings'][0]['story']
    check(f'its story tells of the members and the state: {story}', any('check-stock' in line['text'] for line in story)
          and any('CANCELLED' in line['text'] for line in story))
    with tempfile.TemporaryDirectory() as folder:
        with open(orders) as f:
            document = json.load(f)
        document['workflow'] = os.path.join(os.path.dirname(orders), 'order-workflow.json')
        for change, words in (({'transitions': {}}, 'waits for ever in CHECKED'), ({'create': None}, '"create" is missing'),
                              ({'workflow': {'name': 'x'}}, 'refuses')):
            path = os.path.join(folder, 'orders.json')
            with open(path, 'w') as f:
                json.dump({k: v for k, v in {**document, 'lives': 30, **change}.items() if v is not None}, f)
            code, out, err = run(path)
            check(f'{words}: {code} {out} {err}', code != 0 and words in out + err)


def rules_of_decision_tables():
    def table(id, policy, rules, next):
        return {'id': id, 'name': id, 'type': 'DECISION_TABLE', 'hitPolicy': policy, 'decisionTable': {'rules': rules}, 'nextStep': next}
    first = table('rate', 'F', [{'when': {'n': 'n > 5'}, 'outputs': {'n': 0}}, {'when': {'n': 'n > 50'}, 'outputs': {'n': 1}},
                                {'when': {}, 'outputs': {'n': 2}}], 'all')
    every = table('all', 'C', [{'when': {'n': 'n == 0'}, 'outputs': {'m': 1}}, {'when': {}, 'outputs': {'m': 2}}], 'a')
    with tempfile.TemporaryDirectory() as folder:
        report = report_of(folder, [first, every, task('a'), END], start=[{'n': 1}, {'n': 9}, {'n': 99}])
        check(f'a rule that another one hides is never chosen: {report["findings"]}',
              [(f['kind'], f['what']) for f in report['findings']] == [('rule-never-chosen', 'd/rate rule 1: {"n":"n > 50"}')])
        check(f'rules are counted: {report}', (report['rules'], report['rulesReached']) == (5, 4))
        report = report_of(folder, [first, every, task('a'), END], start=[{'n': 1}, {'n': 9}], mayBeUnreached=['rate rule 1'])
        check(f'which may be: {report["findings"]}', report['findings'] == [])
        choice = {'id': 'c', 'name': 'C', 'type': 'DECISION', 'conditionalNextSteps': {'1 > 2': 'rate', '1 < 2': 'end'}}
        report = report_of(folder, [choice, first, every, task('a'), END], start=[{'n': 1}])
        check(f'the rules of a table that nobody reaches are not listed: {report["findings"]}',
              kinds(report) == ['step-never-reached'] and len(report['findings']) == 3)


def all_cores_find_the_same():
    with tempfile.TemporaryDirectory() as folder:
        steps = [task('a', 'w', retryCount=1), {'id': 'w', 'name': 'W', 'type': 'WAIT', 'nextStep': 'end'}, END]
        more = {'jobs': {'a': {'fails': '30%', 'takes': '1s..2h', 'results': [{'x': 1}, {'x': 2}]}}, 'crashes': '50%',
                'signals': {'w': {'never': '10%', 'early': True}}, 'invariants': ['x != 2'], 'lives': 250}
        reports = [report_of(folder, steps, '--jobs', jobs, **more) for jobs in ('1', '2', '5')]
        check(f'the number of processes changes nothing: {[kinds(r) for r in reports]}', reports[0] == reports[1] == reports[2])
        check(f'there is something to find: {kinds(reports[0])}', kinds(reports[0]) == ['invariant', 'waits-for-ever'])


def the_shop_passes():
    code, out, err = run(os.path.join(WORLDS, 'shop', 'simulate.json'))
    check(f'the shop has no findings: {out}{err}', code == 0 and 'nothing found' in out)
    check(f'all of it is reached: {out}',
          re.search(r'reached: (\d+) of \1 workflows, (\d+) of \2 states, (\d+) of \3 effects, (\d+) of \4 routes', out))
    check(f'cells and their ends are counted: {out}', re.search(r'\d+ cells of shop/order.step@1: completed, pc=Shipped', out))


def the_broken_shop_is_found_out():
    began = time.monotonic()
    code, out, err = run(os.path.join(WORLDS, 'shop-broken', 'simulate.json'), '--json')
    took = time.monotonic() - began
    report = json.loads(out)
    found = [f for f in report['findings'] if f['kind'] == 'invariant']
    check(f'the money that is kept is found: {code} {kinds(report)} {err}', code == 6 and len(found) == 1 and 'refunded' in found[0]['what'])
    check(f'soon: {took:.1f}', took < 60)  # under 10 s on a machine that does nothing else
    print(f'the broken shop was found out in {took:.1f} s')
    code, told, err = run(*found[0]['replay'].split()[2:], '--json')
    story = json.loads(told)['story']
    check(f'the story is replayed: {code} {err}', code == 6 and story == found[0]['story'])
    text = json.dumps(story)
    check(f'it tells of the cancellation and the charge: {text}', 'shop/Cancelled@1' in text and 'the executor answers shop/charge@1: ok' in text
          and 'BROKEN' in text)


def world_report(folder, *words, **more):
    """The report of the shop with another script."""
    path = os.path.join(folder, 'world.json')
    with open(os.path.join(WORLDS, 'shop', 'simulate.json')) as f:
        document = json.load(f)
    document.update({'world': os.path.join(WORLDS, 'shop'), 'lives': 40, **more})
    with open(path, 'w') as f:
        json.dump({k: v for k, v in document.items() if v is not None}, f)
    code, out, err = run(path, '--json', *words)
    return json.loads(out) if code in (0, 6) else f'{code} {out} {err}'


PLACED = {'schema': 'shop/Placed@1', 'values': [{'order_id': 'a', 'amount_cents': 5}]}
PAID = {'shop/charge@1': {'results': [{'code': 0}]}, 'shop/ship@1': {'results': [{'tracking': 't'}]}}


def each_kind_of_finding_in_worlds():
    with tempfile.TemporaryDirectory() as folder:
        report = world_report(folder, events=[PLACED], effects={**PAID, 'shop/ship@1': {'dies': 1}}, horizon='5d')
        waits = [f for f in report['findings'] if f['kind'] == 'waits-for-ever']
        check(f'an effect waits for ever: {report["findings"]}', [f['what'] for f in waits] == ['effect shop/ship@1 of shop/order.step@1 waits for ever']
              and waits[0]['lives'] == 40 and report['ends'] == {'WAITING': 40})
        report = world_report(folder, events=[PLACED], effects=PAID)
        found = {(f['kind'], f['what']) for f in report['findings']}
        check(f'what nobody reaches is named: {found}', found >= {('state-never-reached', 'shop/order.step@1 pc=Refunding'),
              ('effect-never-requested', 'shop/order.step@1 -> shop/refund@1'), ('effect-never-requested', 'shop/order.step@1 -> sys/timer.set@1'),
              ('route-never-taken', 'shop/Cancelled@1 -> shop/order.step@1')} and 'waits-for-ever' not in kinds(report))
        check(f'cells end: {report["cells"]}', report['cells'] == {'shop/order.step@1: completed, pc=Shipped': 40, 'shop/ledger.step@1: running': 40})
        report = world_report(folder, events=[PLACED], effects={**PAID, 'shop/charge@1': {'results': [{'code': 'x'}]}})
        refused = [f for f in report['findings'] if f['kind'] == 'refused-result']
        check(f'a receipt does not fit: {report["findings"]}', len(refused) == 1 and refused[0]['lives'] == 40 and 'a result of shop/charge@1 is refused' in refused[0]['what']
              and any('is refused' in line['text'] for line in refused[0]['story']))
        check(f'and is a failure for the module: {report["cells"]}', report['cells'].get('shop/order.step@1: completed, pc=Failed') == 40)
        report = world_report(folder, events=[{'schema': 'shop/Placed@1'}], effects={})
        check(f'values are made from schemas: {report}', report['notInScript'] == ['effect shop/charge@1', 'effect shop/refund@1', 'effect shop/ship@1']
              and report['lives'] == 40 and 'refused-result' not in kinds(report))
        one, same, spread = (world_report(folder, '--jobs', jobs, lives=150) for jobs in ('1', '1', '2'))
        check('the same seed gives the same report, on any number of cores', one == same == spread)


def each_fault_happens_in_worlds():
    with tempfile.TemporaryDirectory() as folder:
        def story(effects, *words, **more):
            report = world_report(folder, '--life', '0', *words, events=[PLACED], effects={**PAID, **effects}, **more)
            return [line['text'] for line in report['story']]
        told = story({'shop/charge@1': {'results': [{'code': 0}], 'twice': 1}})
        check(f'an answer twice is ignored: {told}', any('is ignored' in line for line in told))
        told = story({'shop/charge@1': {'results': [{'code': 0}], 'dies': '90%'}})
        check(f'a dead executor: {told}', any('never heard of again' in line for line in told) and any('attempt 2' in line for line in told))
        told = story({'shop/charge@1': {'results': [{'code': 0}], 'late': 1}}, horizon='2d')
        check(f'a late executor: the effect is taken again: {told}', any('attempt 2' in line for line in told))
        check(f'and the answer of the second one is ignored: {told}', any('is ignored' in line for line in told))
        told = story({'shop/charge@1': {'fails': 1, 'message': 'no funds'}})
        check(f'a failure, retried after timers: {told}', sum('error' in line and 'no funds' in line for line in told) == 3 and any('pc":"Failed' in line for line in told))
        told = story({'shop/charge@1': {'results': [{'code': 51}, {'code': 0}]}, 'shop/ship@1': {'fails': '90%'}}, crashes=1)
        check(f'a crash: {told}', any('the server is killed' in line for line in told))


def worlds_from_a_folder():
    with tempfile.TemporaryDirectory() as folder:
        world = os.path.join(folder, 'counter')
        subprocess.run([PAWL, 'world', 'init', world], check=True, capture_output=True)
        source = os.path.join(world, 'modules', 'counter.cc')
        with open(source) as f:
            text = f.read()
        with open(source, 'w') as f:
            f.write(text.replace('if (inc == 0)', 'if (inc == 13) __builtin_trap();\n  if (inc == 0)'))

        def count(values, **more):
            return world_report(folder, world='counter', effects={}, invariants=['count < 5'], events=[
                {'schema': 'counter/Add@1', 'values': [{'id': 'a', 'inc': n}]} for n in values], **more)
        check(f'a world that passes: {count([1, 2])}', count([1, 2])['findings'] == [])
        report = count([2, 3])
        check(f'an invariant over the state breaks: {report["findings"]}', kinds(report) == ['invariant'] and report['findings'][0]['lives'] == 40)
        report = count([1, 13])
        check(f'a step that traps is found: {report["findings"]}', kinds(report) == ['step-failed'] and report['ends'] == {'FAILED': 40})
        report = count([1, 0])
        check(f'a cell may be gone at the end: {report}', report['findings'] == [] and sum(report.get('cells', {}).values()) < 40)
        for more, words in (({'events': None}, '"events" is missing'), ({'world': 'nowhere'}, 'is not a folder'),
                            ({'definition': {'id': 'd'}}, 'need files of their own'),
                            ({'events': [{'values': [{}]}]}, '"schema" is missing'),
                            ({'events': [{'schema': 'counter/Nope@1', 'values': [{}]}]}, 'refuses event counter/Nope@1'),
                            ({'events': [{'schema': 'counter/Add@1', 'values': [{'id': 1}]}]}, 'refuses event counter/Add@1'),
                            ({'effects': {'x': {'takes': 'long'}}}, 'effects.x.takes: must be a time')):
            said = world_report(folder, **{'world': 'counter', 'effects': {}, 'invariants': [],
                                           'events': [{'schema': 'counter/Add@1', 'values': [{'id': 'a', 'inc': 1}]}], **more})
            check(f'{words}: {said}', isinstance(said, str) and words in said.replace('\\"', '"'))
        with open(source, 'a') as f:
            f.write('nonsense')
        said = count([1])
        check(f'a module that does not compile: {said}', isinstance(said, str) and 'does not compile' in said)


def bad_files():
    with tempfile.TemporaryDirectory() as folder:
        good = [task('a'), END]
        for more, words in (({'jobs': {'a': {'fails': '200%'}}}, 'jobs.a.fails: must be a share'),
                            ({'jobs': {'a': {'takes': '5 minutes'}}}, 'jobs.a.takes: must be a time'),
                            ({'jobs': {'a': {'fail': 1}}}, 'unknown member "fail"'),
                            ({'tasks': []}, 'tasks: must be an object'),
                            ({'lives': 0}, 'lives: must be a number between'),
                            ({'invariants': ['a +']}, 'is no expression'),
                            ({'start': {'amount': 1}}, 'start: must be a list'),
                            ({'also': ['nowhere.json']}, 'nowhere.json')):
            code, out, err = run(script(folder, good, **more))
            check(f'{words}: {code} {out} {err}', code not in (0, 6) and words in err)
        code, _, err = run(script(folder, [task('a', next='gone'), END]))
        check(f'a definition that the server refuses: {err}', code not in (0, 6) and 'refuses definition "d"' in err)
        path = os.path.join(folder, 'x.json')
        for text, words in (('{', ''), ('[]', 'must be an object'), ('{}', '"definition", "workflow" or "world" is missing')):
            with open(path, 'w') as f:
                f.write(text)
            code, _, err = run(path)
            check(f'{text}: {err}', code not in (0, 6) and words in err)


def other_forms_of_the_report():
    with tempfile.TemporaryDirectory() as folder:
        junit = os.path.join(folder, 'report.xml')
        choice = {'id': 'c', 'name': 'C', 'type': 'DECISION', 'conditionalNextSteps': {'1 > 2': 'b<&>', '1 < 2': 'a'}}
        path = script(folder, [choice, task('a'), task('b<&>'), END])
        code, out, _ = run(path, '--junit', junit)
        document = xml.dom.minidom.parse(junit)
        check(f'JUnit names the failures: {out}', code == 6 and document.documentElement.getAttribute('failures') == '1')
        from pawl.testing import simulate
        os.environ['PAWL_BINARY'] = PAWL
        try:
            simulate(path, lives=10)
            check('a finding raises', False)
        except AssertionError as found:
            check(f'a finding raises with its title: {found}', 'b<&>' in str(found))
        report = simulate(script(folder, [task('a'), END]), lives=10, invariants=['true'])
        check('a report without findings is returned', report['lives'] == 10)


if __name__ == '__main__':
    live.run_parts([the_loan_passes, the_broken_loan_is_found_out, the_same_seed_gives_the_same_lives, each_kind_of_finding, each_fault_happens,
                    a_real_worker, start_variables_from_a_schema, entity_workflows, rules_of_decision_tables, all_cores_find_the_same,
                    the_shop_passes, the_broken_shop_is_found_out, each_kind_of_finding_in_worlds, each_fault_happens_in_worlds,
                    worlds_from_a_folder, bad_files, other_forms_of_the_report])
    sys.exit(live.report())
