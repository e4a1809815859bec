#!/usr/bin/env python3
"""Compares the entities face with a model that was written from the contract. Random conversations by seed: every answer is compared,
the server is stopped and killed in between, and its journal is verified at the end.

  run_entities_model.py                       the seeds of `make test`
  run_entities_model.py --seed 7 --steps 400  one seed
  run_entities_model.py --seconds 600         seed after seed until the time is over
"""
import argparse, os, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, 'entities')]
import live, run_members
from inside import Inside
from talk import Differs

# The relative frequency of each step.
STEPS = {
    'create': 20, 'create_xml': 3, 'create_many': 4, 'create_mixed': 2, 'update': 25, 'patch': 8, 'update_many': 4, 'delete': 3, 'delete_some': 2,
    'change_level': 1, 'import_workflows': 2, 'set_indexes': 2, 'set_unique_keys': 1, 'lock_again': 1, 'validate': 3,
    'transaction': 3, 'read_history': 8, 'read_transitions': 5, 'read_list': 3, 'read_stats': 4, 'read_export': 2, 'search': 40, 'read_groups': 8}


class Run(Inside):
    def run(self, steps, restarts):
        for _ in range(3):
            self.new_model()
        at = set(self.dice.r.sample(range(steps), restarts))
        for n in range(steps):
            name = 'restart' if n in at else self.dice.r.choices(list(STEPS), list(STEPS.values()))[0]
            getattr(self, name)(self.dice.pick(list(self.world.models.values())))
            self.done[name] = self.done.get(name, 0) + 1
        for model in self.world.models.values():
            for name in ('read_list', 'read_stats', 'read_export'):
                getattr(self, name)(model)


def play(server, seed, options):
    """Plays one seed. Returns (number of steps done, problems); a problem shows the last requests before the difference."""
    run = Run(server, seed)
    try:
        run.run(options.steps, options.restarts)
        return sum(run.done.values()), []
    except Differs as differs:
        return sum(run.done.values()), [f'seed {seed} after {sum(run.done.values())} steps: {differs}\n   ' + '\n   '.join(t[:3000] for t in run.trail[-options.trail:])]
    finally:
        run.hang_up()


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument('--seed', type=int)
    asked.add_argument('--seconds', type=float)
    asked.add_argument('--steps', type=int, default=300)
    asked.add_argument('--restarts', type=int, default=1)
    asked.add_argument('--trail', type=int, default=3, help='how many of the last requests are shown with a difference')
    options = asked.parse_args()
    live.need_grpc()
    run_members.prepare()
    import member
    Run.members = member
    seeds = [options.seed] if options.seed is not None else range(1000, 10 ** 6) if options.seconds else live.shard(range(1, 9))
    until, problems, done = time.monotonic() + (options.seconds or 1e9), [], 0
    with live.Server() as s:
        for seed in seeds:
            steps, found = play(s, seed, options)
            problems += found
            done += steps
            if time.monotonic() > until:
                break
        problems += s.stop_and_verify()
    return live.report(f'{done} steps beside the model', problems)


if __name__ == '__main__':
    sys.exit(main())
