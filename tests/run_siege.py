#!/usr/bin/env python3
"""All attacks at once on one real server, beside honest clients of another tenant on all four faces.

At the end every honest request was answered in time, everything acknowledged is readable, no attack got in, the server stayed
small and stops with 0, its log has no report of a sanitizer, and the journal verifies.

    tests/run_siege.py --minutes 60 [--kill] [--only churn,bombs]
    PAWL_BUILD=build-sanitize tests/run_siege.py --minutes 60    # the hour under the address sanitizer
"""
import argparse, contextlib, json, multiprocessing, os, shutil, sys, tempfile, time, traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import live, run_fair, run_memory, siege_attacks, siege_honest
from live import check

HONEST_TENANT = 'honest'
# Attackers share the processors with the server here, which they do not elsewhere. So they get less of them.
ATTACKER_NICE = 10
MAX_RESIDENT = 1280 * run_memory.MIB  # of all attacks together, with a budget of 256 MiB
KILL_EVERY_S = 40
# Seconds in which 99 of 100 honest requests, and all of them, are answered. A turn has a budget of about a second, several
# attacks queue turns, and attackers, clients and server share a few processors with whatever else runs; a sanitizer makes all
# of it several times slower. Two idle processors: p99 0.5 to 1 s, max 3 to 6 s.
LIMITS = {False: (6.0, 20.0), True: (30.0, 90.0)}
REPORTS = ('ERROR: AddressSanitizer', 'ERROR: LeakSanitizer', 'runtime error:', 'WARNING: ThreadSanitizer', 'CHECK failed')


def is_sanitized():
    with open(live.PAWL, 'rb') as f:
        return b'__asan_init' in f.read()


def quiet(path):
    """Everything that this process prints goes to a file."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)


def attack_again_and_again(name, server, tokens, stop, loot, folder):
    """The process of one attack: rounds and pauses until `stop` is set."""
    quiet(os.path.join(folder, name + '.log'))
    os.nice(ATTACKER_NICE)
    attack, lasts_s, pause_s = next(row for row in siege_attacks.ATTACKS if row[0].__name__ == name)
    attacker = siege_attacks.Attacker(server, tokens, name, loot)
    attacker.name = name.replace('_', '-')
    errors = 0
    while not stop.is_set():
        attacker.until = time.monotonic() + lasts_s
        attacker.round += 1
        live.failures.clear()  # answers to attacks are judged elsewhere
        try:
            attack(attacker)
        except Exception:
            errors += 1
            traceback.print_exc(limit=-3)
        with open(os.path.join(folder, name + '.json'), 'w') as f:
            json.dump({'rounds': attacker.round, 'errors': errors, 'findings': attacker.findings[:20]}, f)
        stop.wait(pause_s * attacker.dice.uniform(0.5, 1))


def be_honest(face, caller, lives, stop, loot, folder):
    """The process of one honest client."""
    quiet(os.path.join(folder, face + '.log'))
    client = next(kind for kind in siege_honest.FACES if kind.__name__ == face)(caller, lives, stop, loot)
    try:
        client.run()
    except Exception:
        client.problem(traceback.format_exc(limit=-4))
    with open(os.path.join(folder, face + '.honest'), 'w') as f:
        json.dump(client.result(), f)


class Siege:
    """The server, the processes around it, and what is known in the end."""

    def __init__(self, args, folder):
        self.args, self.folder, self.sanitized = args, folder, is_sanitized()
        self.spawn = multiprocessing.get_context('spawn')  # gRPC does not survive a fork
        self.server, self.tokens = run_fair.tenants(folder, '--memory-budget', '256MiB', '--worlds-env-allow', '*:WORLD_TOKEN', keep_ports=True)
        self.server.env['ASAN_OPTIONS'] = 'detect_stack_use_after_return=0:malloc_context_size=12'
        self.honest, self.attackers, self.peak, self.kills = [], [], 0, 0
        self.chosen = [attack.__name__ for attack, _, _ in siege_attacks.ATTACKS if not args.only or attack.__name__ in args.only.split(',')]

    def begin(self):
        caller = live.Caller(self.server, self.tokens(HONEST_TENANT, seconds=24 * 3600))
        place = live.Caller(self.server)
        self.lives, self.stop, self.loot = self.spawn.Value('i', 0), self.spawn.Event(), self.manager.dict()
        self.over = self.spawn.Event()
        for kind in siege_honest.FACES:
            self.honest.append(self.spawn.Process(target=be_honest, args=(kind.__name__, caller, self.lives, self.stop, self.loot, self.folder)))
        for name in self.chosen:
            self.attackers.append(self.spawn.Process(target=attack_again_and_again, args=(name, place, self.tokens, self.over, self.loot, self.folder)))
        for process in self.honest + self.attackers:
            process.start()

    def hold(self):
        """Waits until the time is over, kills the server now and then if that is wanted, and follows its memory."""
        until, next_kill = time.monotonic() + 60 * self.args.minutes, time.monotonic() + KILL_EVERY_S
        while time.monotonic() < until:
            time.sleep(0.5)
            if self.server.process.poll() is not None:
                check(f'the server ended with {self.server.process.returncode}: {self.server.tail()}', False)
                return
            self.measure()
            if self.args.kill and time.monotonic() > next_kill:
                self.kill()
                next_kill = time.monotonic() + KILL_EVERY_S

    def measure(self):
        self.peak = max(self.peak, run_memory.memory_of(self.server, 'VmHWM'))

    def kill(self):
        self.measure()
        self.lives.value += 1
        self.server.kill()
        self.server.start(wait_s=600)
        self.lives.value += 1
        self.kills += 1

    def end(self):
        """The attackers stop first: the last honest requests are answered beside their ruins."""
        self.stop.set()
        for process in self.honest:
            process.join(300)
            check(f'an honest client ends: {process.name}', process.exitcode == 0)
        self.over.set()
        until = time.monotonic() + 30
        for process in self.attackers:
            process.join(max(0.1, until - time.monotonic()))
        for process in self.honest + self.attackers:
            if process.is_alive():
                process.kill()
                process.join()

    def judge_attacks(self):
        for name in self.chosen:
            with contextlib.suppress(OSError), open(os.path.join(self.folder, name + '.json')) as f:
                made = json.load(f)
                print(f'  {name}: {made["rounds"]} rounds, {made["errors"]} ended by an error', flush=True)
                for finding in made['findings']:
                    check(f'{name}: {finding}', False)
                continue
            print(f'  {name}: its first round did not end', flush=True)

    def judge_honest(self):
        """Checks times and problems. Returns what was acknowledged, by face."""
        acknowledged, times = {}, []
        for kind in siege_honest.FACES:
            with open(os.path.join(self.folder, kind.__name__ + '.honest')) as f:
                result = json.load(f)
            acknowledged[kind.__name__] = result['acknowledged']
            times += result['times']
            own = sorted(t for t, _ in result['times'])
            check(f'{kind.__name__} worked: {len(own)} requests', len(own) > 20)
            print(f'  {kind.__name__}: {len(own)} requests, p50 {at(own, 0.5):.3f} s, p99 {at(own, 0.99):.3f} s, max {at(own, 1):.3f} s, '
                  f'{len(result["problems"])} problems', flush=True)
            for problem in result['problems'][:10]:
                check(f'{kind.__name__}: {problem}', False)
        ordered = sorted(t for t, _ in times)
        for name, share, limit in (('p99', 0.99, self.args.p99), ('max', 1, self.args.max)):
            check(f'{name} of {len(ordered)} honest requests is {at(ordered, share):.2f} s, at most {limit}', at(ordered, share) <= limit)
        for slow in sorted(times, reverse=True)[:3]:
            print(f'  slowest: {slow[0]:.2f} s {slow[1]}', flush=True)
        return acknowledged

    def read_again(self, acknowledged):
        """After a restart, everything that was acknowledged is there."""
        caller = live.Caller(self.server, self.tokens(HONEST_TENANT, seconds=24 * 3600))
        for kind in siege_honest.FACES:
            client = kind(caller, self.lives, self.stop, {})
            try:
                client.read_again(acknowledged[kind.__name__])
            except siege_honest.Refused:
                pass
            for problem in client.problems[:10]:
                check(f'{kind.__name__}: {problem}', False)

    def run(self):
        with self.spawn.Manager() as self.manager, self.server:
            try:
                self.begin()
                self.hold()
            finally:
                self.end()
            self.judge_attacks()
            acknowledged = self.judge_honest()
            if self.server.process.poll() is not None:
                return
            self.measure()
            print(f'peak of the resident memory: {self.peak // run_memory.MIB} MiB, {self.kills} kills', flush=True)
            # Each attack alone stays below 1 GiB (run_memory.py). All of them at once were measured at 1,069 and 1,140 MiB.
            check(f'the peak of {self.peak // run_memory.MIB} MiB is below 1.25 GiB', self.sanitized or self.peak < MAX_RESIDENT)
            began = time.monotonic()
            check(f'SIGTERM ends the server with 0: {self.server.tail()}', self.server.stop() == 0)
            print(f'stopped in {time.monotonic() - began:.1f} s', flush=True)
            self.server.start(wait_s=600)
            self.read_again(acknowledged)
            check(f'SIGTERM ends the server with 0 again: {self.server.tail()}', self.server.stop() == 0)
            self.judge_log()
            began = time.monotonic()
            code, text = self.server.verify()
            check(f'verify: {text[-2000:]}', code == 0)
            print(f'verified in {time.monotonic() - began:.1f} s: {text.strip()[-300:]}', flush=True)

    def judge_log(self):
        with open(self.server.log, errors='replace') as f:
            for line in f:
                check(f'the log has: {line.strip()[:400]}', not any(word in line for word in REPORTS))


def at(ordered, share):
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def main():
    live.need_grpc()
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument('--minutes', type=float, default=1)
    args.add_argument('--kill', action='store_true', help=f'kill -9 every {KILL_EVERY_S} s, and start again')
    args.add_argument('--p99', type=float, help='seconds in which 99 of 100 honest requests are answered')
    args.add_argument('--max', type=float, help='seconds in which every honest request is answered')
    args.add_argument('--only', default='', help='names of attacks, with commas')
    args.add_argument('--keep', action='store_true', help='keep the data and the logs')
    args = args.parse_args()
    p99, longest = LIMITS[is_sanitized()]
    args.p99, args.max = args.p99 or p99, args.max or longest
    folder = tempfile.mkdtemp(prefix='pawl-siege-')
    siege = Siege(args, folder)
    siege.server.keep = args.keep
    try:
        siege.run()
    finally:
        if args.keep:
            print(f'kept: {folder} and {siege.server.scratch}')
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return live.report()


if __name__ == '__main__':
    sys.exit(main())
