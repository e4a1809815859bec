// An order that is charged and shipped: node examples/worker.mjs [URL].
// The program deploys the workflow, starts one order, runs its jobs and waits until it is done.
import { Client, JobFailed, Worker } from '../src/index.js';

const ORDER = {
  id: 'example-order', name: 'Order', steps: [
    { id: 'charge', name: 'Charge the card', type: 'SERVICE_TASK', jobType: 'charge', retryCount: 3, nextStep: 'ship' },
    { id: 'ship', name: 'Ship the parcel', type: 'SERVICE_TASK', jobType: 'ship', nextStep: 'done' },
    { id: 'done', name: 'Done', type: 'END' },
  ],
};

const url = process.argv[2] ?? 'http://127.0.0.1:8080';
const worker = new Worker(url, { concurrency: 4, maxWaitMs: 1000 });

worker.job('charge', (job) => {
  if (job.variables.amount <= 0) throw new JobFailed('there is nothing to charge'); // no retry helps
  return { chargeId: `ch-${job.id}` }; // the job's id as the key: charging again is harmless
});
worker.job('ship', async (job) => ({ parcel: `P-${job.variables.chargeId.slice(-4)}` }));

const client = new Client(url);
await client.deploy(ORDER);
const order = await client.start('example-order', { amount: 40 }, { businessKey: 'order-1001' });
const working = worker.run({ signals: false });
const done = await client.wait(order.id);
console.log(done.status, JSON.stringify(done.variables));
worker.stop();
await working;
