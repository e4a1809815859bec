#!/usr/bin/env python3
"""A world in a folder on a real server: `pawl world init`, `build`, `deploy` and `patch`, and what they say about folders
that are wrong."""
import json, os, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live

STEP = 'counter/counter.step@1'


def check(good, what):
    live.check(what, good)


class Folder:
    """A folder of a world, and the commands on it."""

    def __init__(self, scratch, name, server):
        self.path, self.server = os.path.join(scratch, name), server
        self.env = {**os.environ, 'PAWL_SERVER': server.http}

    def pawl(self, *words):
        """Runs a command. Returns (exit code, the parsed output or its text, the message on standard error)."""
        done = subprocess.run([live.PAWL, *words, '--json'], capture_output=True, text=True, env=self.env)
        try:
            out = json.loads(done.stdout) if done.stdout else None
        except ValueError:
            out = done.stdout
        return done.returncode, out, done.stderr

    def world(self, command, *flags):
        return self.pawl('world', command, self.path, *flags)

    def file(self, name):
        return os.path.join(self.path, name)

    def read(self, name):
        with open(self.file(name)) as f:
            return f.read()

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)
        with open(self.file(name), 'w') as f:
            f.write(text if isinstance(text, str) else json.dumps(text))

    def replace(self, name, old, new):
        text = self.read(name)
        assert old in text, (name, old)
        self.write(name, text.replace(old, new))


def init_build_deploy(folder):
    code, out, err = folder.world('init', '--world', 'shop')
    check(code == 0 and out['world'] == 'shop', f'init: {code} {out} {err}')
    check(os.path.exists(folder.file('.gitignore')), 'init writes a .gitignore')
    code, _, err = folder.world('init')
    check(code == 4 and 'not an empty folder' in err, f'init never overwrites: {code} {err}')

    code, built, err = folder.world('build')
    check(code == 0 and built['manifest_hash'].startswith('sha256:'), f'build: {code} {built} {err}')
    with open(folder.file('build/manifest.json')) as f:
        document = json.load(f)
    check(all(ref['hash'].startswith('sha256:') for ref in document['manifest']['schemas']), 'build fills in every hash')
    check([ref['name'] for ref in document['manifest']['workflows']] == [STEP], 'missing lists hold every definition')

    code, out, err = folder.world('patch')
    check(code == 3 and 'world deploy' in err, f'patch of a world that is not there: {code} {err}')
    code, out, err = folder.world('deploy')
    check(code == 0 and out == {'world': 'shop', 'manifest_hash': built['manifest_hash'], 'created': True}, f'deploy: {code} {out} {err}')
    status, page = live.call(folder.server.base, 'GET', '/v1/worlds/shop/manifest')
    check(page['manifest_hash'] == built['manifest_hash'], f'the server and `build` agree on the hash: {page}')
    code, out, err = folder.world('deploy')
    check(code == 0 and out['created'] is False, f'a second deploy changes nothing: {code} {out} {err}')
    code, out, err = folder.world('patch')
    check(code == 0 and out['state'] == 'unchanged', f'a patch without a change: {code} {out} {err}')


def send(folder, value, world='shop'):
    return live.call(folder.server.base, 'POST', f'/v1/worlds/{world}/events', {'schema': 'counter/Add@1', 'value': value})


def change(folder):
    for inc in (2, 3):
        status, answer = send(folder, {'id': 'a', 'inc': inc})
        check(status < 300, f'event: {status} {answer}')
    code, out, err = folder.pawl('world', 'state', 'shop', STEP, '--key', 'a')
    check(code == 0 and out['state'] == {'count': 5}, f'state: {code} {out} {err}')

    # The module counts double from now on, and there is a new schema.
    folder.replace('modules/counter.cc', '.number() + inc;', '.number() + 2 * inc;')
    folder.write('air/note.json', {'$kind': 'defschema', 'name': 'counter/Note@1', 'type': {'text': {}}})
    code, out, err = folder.world('deploy')
    check(code == 4 and 'world patch' in err, f'deploy never changes a running world: {code} {out} {err}')
    code, out, err = folder.world('patch', '--dry-run')
    changed = sorted((c['change'], c['name']) for c in out['changes'])
    check(code == 0 and changed == [('add', 'counter/Note@1'), ('replace', 'counter/counter_wasm@1')], f'dry run: {code} {out} {err}')
    check(live.call(folder.server.base, 'GET', '/v1/worlds/shop/governance')[1]['proposals'] == [], 'a dry run proposes nothing')

    events = os.path.join(folder.path, '..', 'events.json')
    with open(events, 'w') as f:
        json.dump([{'schema': 'counter/Add@1', 'value': {'id': 'a', 'inc': 1}}], f)
    code, out, err = folder.world('patch', '--shadow', '--events', events, '--description', 'counts double')
    check(code == 0 and out['state'] == 'shadowed' and out['shadow'], f'shadow: {code} {out} {err}')
    code, state, _ = folder.pawl('world', 'state', 'shop', STEP, '--key', 'a')
    check(state['state'] == {'count': 5}, f'a shadow run changes nothing: {state}')
    first = out['proposal_id']
    code, out, err = folder.pawl('world', 'gov', 'shop', 'apply', str(first))
    check(code == 1, f'a proposal that nobody approved is not applied: {code} {out}')

    code, out, err = folder.world('patch', '--shadow', '--approve', '--approver', 'alice', '--apply', '--mode', 'relaxed')
    check(code == 0 and out['state'] == 'applied' and out['proposal_id'] != first, f'patch: {code} {out} {err}')
    send(folder, {'id': 'a', 'inc': 10})
    code, state, _ = folder.pawl('world', 'state', 'shop', STEP, '--key', 'a')
    check(state['state'] == {'count': 25}, f'the new module runs: {state}')
    code, out, err = folder.world('deploy')
    check(code == 0 and out['created'] is False, f'the folder and the world agree again: {code} {out} {err}')


def steps_in_order(folder):
    """A flag without the step before it proposes nothing."""
    folder.write('air/more.json', {'$kind': 'defschema', 'name': 'counter/More@1', 'type': {'nat': {}}})
    proposals = live.call(folder.server.base, 'GET', '/v1/worlds/shop/governance')
    for flags, missing in ((['--apply'], '--approve'), (['--shadow', '--apply'], '--approve'), (['--approve'], '--shadow'),
                           (['--mode', 'strict'], '--apply'), (['--events', 'x'], '--shadow')):
        code, out, err = folder.world('patch', *flags)
        check(code == 2 and f'needs {missing}' in err, f'{flags}: {code} {out} {err}')
    check(proposals == live.call(folder.server.base, 'GET', '/v1/worlds/shop/governance'), 'no proposal is left behind')
    os.unlink(folder.file('air/more.json'))


def migration_is_refused(folder):
    """A state that does not fit the new type: the shadow run says so, and apply refuses and changes nothing."""
    good = folder.read('air/schemas.air.json')
    folder.replace('air/schemas.air.json', '{"count": {"nat": {}}}', '{"count": {"text": {}}}')
    code, out, err = folder.world('patch', '--shadow', '--approve', '--apply', '--mode', 'relaxed')
    check(code == 4 and 'apply failed' in err, f'a state that does not fit: {code} {out} {err}')
    _, state, _ = folder.pawl('world', 'state', 'shop', STEP, '--key', 'a')
    check(state['state'] == {'count': 25}, f'a refused apply changes nothing: {state}')
    folder.write('air/schemas.air.json', good)


def routing_only(folder):
    """A change of the routes alone is a change."""
    folder.replace('air/counter.air.json', '"key_field": "id"}]}', '"key_field": "id"},\n'
                   '     {"event": "sys/WorkspaceCommit@1", "workflow": "sys/Workspace@1", "key_field": "workspace"}]}')
    code, out, err = folder.world('patch', '--shadow', '--approve', '--apply', '--mode', 'relaxed')
    check(code == 0 and out['state'] == 'applied' and out['changes'][0]['kind'] == 'manifest', f'routing: {code} {out} {err}')


# What is wrong with a folder: a change of a good one, and what the message must say.
def wrong_folders(scratch, server):
    good = Folder(scratch, 'good', server)
    good.world('init')
    settings = json.loads(good.read('pawl.world.json'))
    cases = {
        'no settings': (lambda f: os.unlink(f.file('pawl.world.json')), 'pawl world init'),
        'no name': (lambda f: f.write('pawl.world.json', {'modules': settings['modules']}), 'does not name the world'),
        'unknown member': (lambda f: f.write('pawl.world.json', {**settings, 'module': {}}), "unknown member 'module'"),
        'not json': (lambda f: f.write('air/bad.json', '{'), 'air/bad.json'),
        'no air': (lambda f: shutil.rmtree(f.file('air')), 'has no *.json file'),
        'no manifest': (lambda f: os.unlink(f.file('air/counter.air.json')), 'holds a manifest'),
        'two manifests': (lambda f: f.write('air/second.json', {'$kind': 'manifest', 'air_version': '2'}), 'both hold a manifest'),
        'bad definition': (lambda f: f.write('air/bad.json', [{'$kind': 'defschema', 'name': 'x/Y@1', 'type': {'txt': {}}}]), 'air/bad.json'),
        'no module file': (lambda f: os.unlink(f.file('modules/counter.cc')), "no file 'modules/counter.cc'"),
        'module outside': (lambda f: f.write('pawl.world.json', {**settings, 'modules': {'counter/counter_wasm@1': '../x.wasm'}}), 'outside of the folder'),
        'module without a file': (lambda f: f.write('pawl.world.json', {'world': 'w'}), "no file for module 'counter/counter_wasm@1'"),
        'file without a module': (lambda f: f.write('pawl.world.json', {**settings, 'modules': {**settings['modules'], 'counter/x@1': 'modules/counter.cc'}}), "'counter/x@1'"),
        'does not compile': (lambda f: f.write('modules/counter.cc', '#include "pawl_world.hpp"\nPAWL_STEP(step) { return 1; }'), 'does not compile'),
        'no entrypoint': (lambda f: f.replace('modules/counter.cc', 'PAWL_STEP(step)', 'PAWL_STEP(other)'), 'step'),
        'no wasm': (lambda f: (f.write('modules/x.wasm', 'nothing'), f.write('pawl.world.json', {**settings, 'modules': {'counter/counter_wasm@1': 'modules/x.wasm'}})), 'modules/x.wasm'),
        'missing schema': (lambda f: f.write('air/schemas.air.json', []), 'counter/'),
    }
    for number, (what, (spoil, message)) in enumerate(cases.items()):
        bad = Folder(scratch, f'bad{number}', server)
        shutil.copytree(good.path, bad.path)
        spoil(bad)
        code, out, err = bad.world('deploy')
        check(code in (1, 3) and message in err, f'{what}: {code} {err}')
    # The folder's limit on files.
    many = Folder(scratch, 'many', server)
    shutil.copytree(good.path, many.path)
    for n in range(1001):
        many.write(f'air/many{n}.json', [])
    code, out, err = many.world('build')
    check(code == 1 and 'more than 1000 files' in err, f'many files: {code} {err}')
    code, out, err = Folder(scratch, 'nowhere', server).world('build')
    check(code == 3 and 'is not a folder' in err, f'no folder: {code} {err}')
    _, worlds = live.call(server.base, 'GET', '/v1/worlds')
    check([w['world_id'] for w in worlds] == ['shop'], f'a wrong folder creates nothing: {worlds}')


def main():
    scratch = tempfile.mkdtemp(prefix='pawl-folder-')
    try:
        with live.Server() as server:
            folder = Folder(scratch, 'shop', server)
            init_build_deploy(folder)
            change(folder)
            steps_in_order(folder)
            migration_is_refused(folder)
            routing_only(folder)
            wrong_folders(scratch, server)
            for problem in server.stop_and_verify():
                check(False, problem)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return live.report('world folder: init, build, deploy, patch and wrong folders')


if __name__ == '__main__':
    sys.exit(main())
