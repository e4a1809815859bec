"""Concurrent calls on one instance. The result on the server must equal the result of the model for one of the possible orders."""
import copy, itertools, threading

import model_definitions


class Races:
    """The random action of a Play (run_processes_model.py) that makes two or three calls at the same time."""

    def race(self):
        instance = self.some_instance()
        calls = self.calls(instance) if instance else []
        if not calls:
            return
        chosen = [self.rng.choice(calls) for _ in range(self.rng.choice([2, 2, 3]))]
        heard = [None] * len(chosen)

        def make(n):
            verb, path, body, _ = chosen[n]
            heard[n] = self.wire.rest('POST', path, body)[0]
        threads = [threading.Thread(target=make, args=(n,)) for n in range(len(chosen))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        _, got = self.wire.rest('GET', f'/v1/instances/{instance.id}')
        _, past = self.wire.rest('GET', f'/v1/instances/{instance.id}/history')
        where = self.engine.instances.index(instance)
        self.asked += 1
        # Each order is tried on a copy of the model. The first one that explains the answers and the state is then
        # applied to the model itself.
        for order in itertools.permutations(range(len(chosen))):
            tried = copy.deepcopy(self.engine).instances[where]
            told = {n: chosen[n][3](tried) for n in order}
            if tried.next and not tried.next.id:
                tried.next.id = got.get('nextInstanceId')
            if [told[n] for n in range(len(chosen))] == heard and not self.differences(tried, got, past['items']):
                for n in order:
                    chosen[n][3](instance)
                return self.sync(instance)
        self.lost.add(instance)
        self.problem(f'{[c[:3] for c in chosen]} at once gave {heard}, and {got} {[(r["StepID"], r["Status"]) for r in past["items"]]}: the model gives that in no order\n    {instance.definition.document}')

    def calls(self, instance):
        """The calls that may race: (name, path, body, function). The function applies the call to an instance of the model, which may be a
        copy, so it finds jobs by their place in the history."""
        made, base, ops = [], f'/v1/instances/{instance.id}', f'/pawl/v1/processes/instances/{instance.id}'

        def result():
            return model_definitions.Expressions(self.rng).result()
        for job in instance.jobs():
            if job.id:
                n, r = instance.history.index(job.token.execution), result()
                at = lambda i, n=n: next((t.job for t in i.tokens if t.job and t.execution is i.history[n]), None)
                made.append(('complete', f'/v1/jobs/{job.id}/complete', {'workerId': 'w', 'variables': r}, lambda i, r=r, at=at: i.complete_job(at(i), r)))
                made.append(('fail', f'/v1/jobs/{job.id}/fail', {'workerId': 'w', 'errorMessage': 'raced', 'retryable': False}, lambda i, at=at: i.fail_job(at(i), 'raced', False)))
        for token in instance.tokens:
            step, r = token.step['id'], result()
            if token.step['type'] == 'USER_TASK':
                made.append(('task', f'{base}/user-tasks/{step}/complete', {'variables': r}, lambda i, s=step, r=r: i.complete_task(s, r)))
            if token.step['type'] == 'WAIT':
                made.append(('signal', f'{base}/signals/{step}', r, lambda i, s=step, r=r: i.signal(s, r)))
        if made:
            made.append(('cancel', f'{base}/cancel', {'reason': 'raced'}, lambda i: i.cancel('raced')))
        if made and not instance.timers():  # a pause stops timers at a moment that cannot be known afterwards
            made.append(('pause', f'{ops}/pause', {}, lambda i: i.pause()))
            made.append(('resume', f'{ops}/resume', {}, lambda i: i.resume_all()))
        return made

