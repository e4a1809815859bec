#!/usr/bin/env python3
"""A server with 8 shards: tenants are spread over them, all faces answer as with one, a kill -9 under load loses nothing, and the
commands that work on a data folder know all shards."""
import glob, http.client, json, os, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live
from live import call, check

SHARDS = 8
TENANTS = [f'tenant-{i}' for i in range(12)]
ROLES = ('ROLE_ADMIN', 'ROLE_M2M')
WORK = {'id': 'work', 'name': 'w', 'steps': [
    {'id': 'a', 'name': 'a', 'type': 'SERVICE_TASK', 'jobType': 'shard-a', 'nextStep': 'end'},
    {'id': 'end', 'name': 'e', 'type': 'END'}]}


def pawl(*words):
    done = subprocess.run([live.PAWL, *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def used_shards(folder):
    """How many of the shards have frames in their journal."""
    used = 0
    for shard in range(SHARDS):
        code, text = pawl('journal', 'ls', '--data', folder, '--shard', str(shard), '--json')
        check(f'journal ls of shard {shard}: {text}', code == 0)
        used += json.loads(text)['last'] > 0
    return used


def callers(server):
    return {tenant: live.Caller(server, server.token_for(*ROLES, tenant=tenant)) for tenant in TENANTS}


def finish_jobs(caller, wanted):
    """Polls and completes jobs until this many are done."""
    done = set()
    end = time.monotonic() + 20
    while len(done) < wanted and time.monotonic() < end:
        _, got = call(caller.base, 'POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': ['shard-a'], 'maxJobs': 10, 'maxWaitMs': 500})
        for job in got['jobs'] or []:
            status, _ = call(caller.base, 'POST', f'/v1/jobs/{job["id"]}/complete', {'workerId': 'w', 'variables': {'done': True}})
            check(f'completing {job["id"]}: {status}', status == 204)
            done.add(job['id'])
    return done


def use_processes(tenant, caller):
    status, body = call(caller.base, 'POST', '/v1/definitions', WORK)
    check(f'{tenant}: a definition: {status} {body}', status == 201)
    ids = []
    for i in range(5):
        status, body = call(caller.base, 'POST', '/v1/instances', {'definitionId': 'work', 'businessKey': f'{tenant}-{i}'})
        check(f'{tenant}: a start: {status} {body}', status == 201)
        ids.append(body['id'])
    check(f'{tenant}: all jobs are polled', len(finish_jobs(caller, 5)) == 5)
    status, body = call(caller.base, 'GET', '/v1/instances?pageSize=50')
    check(f'{tenant}: its own instances are listed: {body}', sorted(one['id'] for one in body['items']) == sorted(ids))
    check(f'{tenant}: the total: {body}', body['total'] == 5)
    pages, cursor = [], ''
    while True:
        status, body = call(caller.base, 'GET', f'/pawl/v1/processes/instances?limit=2{cursor}')
        pages += [one['id'] for one in body['items']]
        if not body.get('cursor'):
            break
        cursor = '&cursor=' + body['cursor']
    check(f'{tenant}: pages: {pages}', pages == sorted(ids, reverse=True) or sorted(pages) == sorted(ids))
    for one in ids:
        status, body = call(caller.base, 'GET', f'/v1/instances/{one}')
        check(f'{tenant}: {one} is completed: {body}', status == 200 and body['status'] == 'COMPLETED')


def use_entities(tenant, caller):
    status, body = call(caller.base, 'POST', '/api/model/import/JSON/SAMPLE_DATA/thing/1', {'name': 'x', 'size': 1})
    check(f'{tenant}: a model: {status} {body}', status == 200)
    call(caller.base, 'PUT', '/api/model/thing/1/lock')
    status, body = call(caller.base, 'POST', '/api/entity/JSON/thing/1', {'name': tenant, 'size': 7})
    check(f'{tenant}: an entity: {status} {body}', status == 200)
    entity = body[0]['entityIds'][0]
    status, body = call(caller.base, 'GET', f'/api/entity/{entity}')
    check(f'{tenant}: its data: {body}', status == 200 and body['data']['name'] == tenant)


def use_lifecycle(tenant, caller):
    status, body = call(caller.base, 'GET', '/pawl/v1/lifecycle/types')
    check(f'{tenant}: lifecycle answers: {status} {body}', status == 200)


def use_worlds(tenant, caller):
    status, body = call(caller.base, 'GET', '/v1/worlds')
    check(f'{tenant}: worlds answer: {status} {body}', status == 200)


def tenants_are_spread_and_served():
    with live.JwtServer('--shards', str(SHARDS)) as server:
        everybody = callers(server)
        for tenant, caller in everybody.items():
            use_processes(tenant, caller)
            use_entities(tenant, caller)
            use_lifecycle(tenant, caller)
            use_worlds(tenant, caller)
        status, body = call(live.Base(server.admin_base), 'POST', '/scrub', headers=server.boss())
        check(f'the journals of all shards are read: {status} {body}', status == 200 and body['findings'] == [])
        for problem in server.stop_and_verify():
            live.fail(problem)
        check('12 tenants use at least 4 of 8 shards', used_shards(server.folder) >= 4)
        # A restart without the flag finds the number in the folder.
        server.flags = tuple(flag for flag in server.flags if flag not in ('--shards', str(SHARDS)))
        server.start()
        for tenant, caller in callers(server).items():
            status, body = call(caller.base, 'GET', '/v1/instances?pageSize=50')
            check(f'{tenant}: after a restart: {body}', body['total'] == 5)


class Load:
    """Threads that start instances and complete jobs of all tenants until the server dies; they record what was acknowledged."""

    def __init__(self, everybody):
        self.everybody, self.started, self.completed = everybody, {tenant: set() for tenant in everybody}, {tenant: set() for tenant in everybody}
        self.threads = [threading.Thread(target=self.work, args=(tenant,), daemon=True) for tenant in everybody]
        for thread in self.threads:
            thread.start()

    def work(self, tenant):
        base = self.everybody[tenant].base
        try:
            while True:
                status, got = call(base, 'POST', '/v1/instances', {'definitionId': 'work'})
                if status == 201:
                    self.started[tenant].add(got['id'])
                _, got = call(base, 'POST', '/v1/jobs/poll', {'workerId': 'w', 'jobTypes': ['shard-a'], 'maxJobs': 2})
                for job in got['jobs'] or []:
                    status, _ = call(base, 'POST', f'/v1/jobs/{job["id"]}/complete', {'workerId': 'w', 'variables': {}})
                    if status == 204:
                        self.completed[tenant].add(job['instanceId'])
        except (OSError, http.client.HTTPException):
            pass

    def join(self):
        for thread in self.threads:
            thread.join(30)


def nothing_acknowledged_is_lost():
    server = live.JwtServer('--shards', str(SHARDS))
    with server:
        for caller in callers(server).values():
            call(caller.base, 'POST', '/v1/definitions', WORK)
        for _ in range(3):
            load = Load(callers(server))
            time.sleep(2)
            server.kill()
            load.join()
            server.start()
            everybody = callers(server)
            acknowledged = 0
            for tenant, caller in everybody.items():
                for instance in load.started[tenant]:
                    status, body = call(caller.base, 'GET', f'/v1/instances/{instance}')
                    check(f'{tenant}: the start of {instance} is lost: {status}', status == 200)
                    done = instance in load.completed[tenant]
                    check(f'{tenant}: the end of {instance} is lost: {body}', not done or body['status'] == 'COMPLETED')
                acknowledged += len(load.started[tenant])
            check(f'only {acknowledged} starts before the kill', acknowledged > 20)
        for problem in server.stop_and_verify():
            live.fail(problem)


def the_number_never_changes():
    with live.Server('--shards', str(SHARDS)) as server:
        folder = server.folder
        with open(os.path.join(folder, 'FORMAT')) as f:
            check('FORMAT names the number', f.read() == f'pawl data 2, {SHARDS} shards\n')
        check('a folder for each shard', len(glob.glob(folder + '/shards/*/journal')) == SHARDS)
        server.stop()
        code, text = pawl('serve', '--data', folder, '--shards', '4', '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--admin', '127.0.0.1:0')
        check(f'another number is refused with the remedy: {text}', code != 0 and f'--shards {SHARDS}' in text)
        code, text = pawl('serve', '--data', folder + '-new', '--shards', '1025', '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--admin', '127.0.0.1:0')
        check(f'too many are refused: {text}', code != 0 and '1024' in text)
        code, text = pawl('journal', 'ls', '--data', folder)
        check(f'a command for one journal asks for the shard: {text}', code != 0 and '--shard' in text)
        code, text = pawl('journal', 'cut', '--data', folder, '--shard', '99', '--at', '1', '--yes')
        check(f'a shard that there is not: {text}', code != 0 and 'no shard 99' in text)


def backups_hold_all_shards():
    with tempfile.TemporaryDirectory() as scratch, live.JwtServer('--shards', str(SHARDS)) as server:
        for caller in callers(server).values():
            call(caller.base, 'POST', '/v1/definitions', WORK)
            call(caller.base, 'POST', '/v1/instances', {'definitionId': 'work'})
        status, body = call(live.Base(server.admin_base), 'POST', '/backup?to=running', headers=server.boss())
        check(f'a running server backs up: {status} {body}', status == 200)
        code, text = pawl('verify', '--data', os.path.join(server.folder, 'backups', 'running'))
        check(f'that backup agrees: {text}', code == 0)
        server.stop()
        for words in (['checkpoint', '--data', server.folder],
                      ['backup', '--data', server.folder, '--to', scratch + '/copy'],
                      ['verify', '--data', scratch + '/copy'],
                      ['restore', '--from', scratch + '/copy', '--data', scratch + '/restored'],
                      ['verify', '--data', scratch + '/restored']):
            code, text = pawl(*words)
            check(f'pawl {" ".join(words)}: {text}', code == 0)
        os.unlink(glob.glob(scratch + '/copy/shards/0003/MANIFEST')[0])
        code, text = pawl('restore', '--from', scratch + '/copy', '--data', scratch + '/other')
        check(f'a backup that lacks the end of one shard is refused: {text}', code != 0 and 'MANIFEST' in text)
        server.folder = scratch + '/restored'
        server.start()
        for tenant, caller in callers(server).items():
            status, body = call(caller.base, 'GET', '/v1/instances')
            check(f'{tenant}: the restored server: {status} {body}', body['total'] == 1)
        server.stop()


def many_shards_need_few_threads():
    with live.Server('--shards', '1') as one, live.Server('--shards', '64') as many:
        threads = [len(os.listdir(f'/proc/{server.process.pid}/task')) for server in (one, many)]
        check(f'64 shards have {threads[1]} threads, one has {threads[0]}', threads[1] < threads[0] + 40)


if __name__ == '__main__':
    live.run_parts([tenants_are_spread_and_served, nothing_acknowledged_is_lost, the_number_never_changes, backups_hold_all_shards,
                    many_shards_need_few_threads])
    sys.exit(live.report())
