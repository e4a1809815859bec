// The worker: asks for jobs, runs their handlers concurrently, reports what they return.
//
// A job is handed out under a lease. If this process dies, the lease expires and the job is offered
// again. Handlers therefore run at least once, and their effects outside Pawl must tolerate a
// repetition. `job.id` stays the same on every repetition and makes a good idempotency key.
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from './client.js';
import { JobFailed, PawlError, Refused, Unavailable } from './errors.js';
import { jittered } from './http.js';

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5000;
// Error messages are cut at this length before they are sent.
const LONGEST_MESSAGE = 4000;

export class Worker {
  #handlers = new Map();
  #running = new Map(); // from an attempt to the promise that settles when it is over
  #stopping = false;
  // Ends the pause after a failed poll early. A poll that waits on the server is not ended: stop()
  // takes up to maxWaitMs.
  #wake = new AbortController();

  constructor(url = 'http://127.0.0.1:8080', { token, id, concurrency = 8, leaseSeconds = 30, maxWaitMs = 5000, patienceMs = 300_000, log = console.error } = {}) {
    this.client = new Client(url, { token, timeoutMs: maxWaitMs + 30_000, patienceMs });
    this.id = id ?? `${hostname()}-${process.pid}`;
    Object.assign(this, { concurrency: Math.max(1, concurrency), leaseSeconds, maxWaitMs, log });
  }

  job(type, handler) {
    if (this.#handlers.has(type)) throw new PawlError(`job type '${type}' already has a handler`);
    this.#handlers.set(type, handler);
    return this;
  }

  async run({ signals = true } = {}) {
    if (!this.#handlers.size) throw new PawlError('a worker without handlers has nothing to do: register one with worker.job(type, handler)');
    const stop = () => this.stop();
    const names = signals ? ['SIGTERM', 'SIGINT'] : [];
    for (const name of names) process.on(name, stop);
    try {
      await this.#pollUntilStopped();
      await Promise.all(this.#running.values());
    } finally {
      for (const name of names) process.off(name, stop);
    }
  }

  stop() {
    this.#stopping = true;
    this.#wake.abort();
  }

  async #pollUntilStopped() {
    let pause = FIRST_PAUSE_MS;
    while (!this.#stopping) {
      const room = this.concurrency - this.#running.size;
      if (room <= 0) {
        await Promise.race(this.#running.values());
        continue;
      }
      try {
        for (const job of await this.#poll(room)) this.#begin(job);
        pause = FIRST_PAUSE_MS;
      } catch (err) {
        if (!(err instanceof PawlError)) throw err;
        this.log(`pawl worker ${this.id}: poll failed, trying again: ${err.message}`);
        await sleep(jittered(pause), undefined, { signal: this.#wake.signal }).catch(() => {});
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      }
    }
  }

  async #poll(most) {
    const body = { workerId: this.id, jobTypes: [...this.#handlers.keys()], maxJobs: most, leaseSeconds: this.leaseSeconds, maxWaitMs: this.maxWaitMs };
    const answer = await this.client.http.call('POST', '/v1/jobs/poll', body, { patienceMs: 0 });
    return (answer?.jobs ?? []).map(jobOf);
  }

  #begin(job) {
    // After a restart of the server a job may be offered while its handler still runs here. A job keeps its
    // id when it is retried; each attempt has its own number of retries left.
    const attempt = `${job.id}/${job.retriesLeft}`;
    if (this.#running.has(attempt)) return;
    this.#running.set(attempt, this.#work(job).finally(() => this.#running.delete(attempt)));
  }

  async #work(job) {
    const { word, body } = await this.#outcome(job);
    try {
      await this.#report(job, word, body);
    } catch (err) {
      if (err instanceof Refused) this.log(`pawl worker ${this.id}: job ${job.id} (${job.type}): the result was refused: ${err.message}`);
      else if (err instanceof Unavailable) this.log(`pawl worker ${this.id}: job ${job.id} (${job.type}): the result is lost and the job will be offered again: ${err.message}`);
      else throw err;
    }
  }

  async #report(job, word, body) {
    try {
      // A failure that arrived twice would use up two retries, so it carries an Idempotency-Key. A
      // repeated completion is harmless.
      await this.client.http.call('POST', `/v1/jobs/${encodeURIComponent(job.id)}/${word}`, body, word === 'fail' ? { once: '' } : {});
    } catch (err) {
      // The same result would be refused again, and the job would be offered again for ever.
      if (word === 'fail' || !(err instanceof Refused) || ![400, 413, 422].includes(err.status)) throw err;
      await this.#report(job, 'fail', { workerId: this.id, errorMessage: `the result was refused: ${err.message}`.slice(0, LONGEST_MESSAGE), retryable: false });
    }
  }

  async #outcome(job) {
    try {
      const variables = (await this.#handlers.get(job.type)(job)) ?? {};
      if (typeof variables !== 'object' || Array.isArray(variables)) throw new JobFailed(`the handler of '${job.type}' returned no object: return variables or nothing`);
      const body = { workerId: this.id, variables };
      JSON.stringify(body); // throws here, so that a value without a JSON form fails the job and not the worker
      return { word: 'complete', body };
    } catch (err) {
      const final = err instanceof JobFailed;
      const message = String(err?.message ?? err ?? 'failed') || 'failed';
      this.log(`pawl worker ${this.id}: job ${job.id} (${job.type}) failed${final ? ' for good' : ''}: ${message}`);
      return { word: 'fail', body: { workerId: this.id, errorMessage: message.slice(0, LONGEST_MESSAGE), retryable: !final } };
    }
  }
}

function jobOf(raw) {
  return { id: raw.id, type: raw.jobType, instanceId: raw.instanceId, stepId: raw.stepId ?? '', retriesLeft: raw.retriesRemaining ?? 0, variables: raw.variables ?? {}, raw };
}
