// worker.mjs URL GRPC RECORD is the worker that tests/run_sdk.py starts. It writes a line to the file RECORD when a slow job
// begins and ends. GRPC is not used: this SDK polls over HTTP.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { JobFailed, Retry, Worker, credentials } from '../../sdk/typescript/src/index.js';

const [url, , record] = process.argv.slice(2);
const { PAWL_CLIENT_ID: id, PAWL_CLIENT_SECRET: secret } = process.env;
const worker = new Worker(url, { token: id && credentials(url, id, secret), concurrency: 4, maxWaitMs: 1000 });
const note = (word, job) => appendFileSync(record, `${word} ${job.instanceId} ${job.stepId}\n`);

worker.job('js-flaky', (job) => {
  if (job.retriesLeft > 1) throw new Retry('not yet');
  return { retriesLeft: job.retriesLeft };
});
worker.job('js-final', () => {
  throw new JobFailed('no further attempt helps');
});
worker.job('js-odd', () => ['not', 'an', 'object']);
worker.job('js-huge', () => ({ more: 'than an instance may hold'.repeat(200_000) }));
worker.job('js-slow', async (job) => {
  note('begin', job);
  await sleep(job.variables.ms);
  note('end', job);
  return { [job.stepId]: process.pid };
});

await worker.run();
