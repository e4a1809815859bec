// client.mjs URL PREFIX calls the functions of the TypeScript client on a live server and prints the results as JSON, which
// tests/run_sdk.py compares with those of the other languages.
import { readFileSync } from 'node:fs';
import * as pawl from '../../sdk/typescript/src/index.js';

const { Client, NotFound, TimedOut } = pawl;
const [url, prefix] = process.argv.slice(2);
const client = new Client(url);
const thrown = async (promise) => promise.then(() => 'nothing', (err) => err.constructor);

const first = await client.start(`${prefix}-people`, { n: 1 }, { businessKey: `${prefix}-key`, idempotencyKey: `${prefix}-once` });
const again = await client.start(`${prefix}-people`, { n: 1 }, { businessKey: `${prefix}-key`, idempotencyKey: `${prefix}-once` });
const late = await thrown(client.wait(first.id, 100));
const tasks = (await client.tasks({ limit: 1000 })).filter((task) => task.instanceId === first.id);
await client.completeTask(first.id, 'approve', { approved: true }, { user: 'ann' });
await client.signal(first.id, 'paid', { amount: 5 });
const done = await client.wait(first.id);
const found = await client.findByBusinessKey(`${prefix}-key`);
const cancelled = await client.cancel((await client.start(`${prefix}-people`)).id, 'changed my mind');
const batch = await client.startBatch([{ definitionId: `${prefix}-people` }, { definitionId: 'no-such' }]);

// Every exported class and method must be declared in index.d.ts; `untyped` lists those that are
// not.
const types = readFileSync(new URL('../../sdk/typescript/src/index.d.ts', import.meta.url), 'utf8');
const untyped = [];
for (const [name, made] of Object.entries(pawl)) {
  if (!String(made).startsWith('class')) {
    if (!types.includes(`export function ${name}(`)) untyped.push(name);
    continue;
  }
  const body = types.match(new RegExp(`export class ${name}\\b[^{]*{([^]*?)\\n?}\\n`))?.[1];
  if (body === undefined) untyped.push(name);
  for (const method of Object.getOwnPropertyNames(made.prototype).filter((m) => m !== 'constructor'))
    if (!new RegExp(`^ *${method}[<(]`, 'm').test(body ?? '')) untyped.push(`${name}.${method}`);
}

console.log(JSON.stringify({
  same: first.id === again.id,
  late: late === TimedOut,
  tasks: tasks.map((task) => task.stepId),
  done: [done.status, done.variables.approved, done.variables.amount],
  found: found.map((instance) => instance.id).includes(first.id),
  history: (await client.history(first.id)).map((step) => step.StepID),
  cancelled: cancelled.status,
  batch: batch.map((item) => item.status),
  missing: (await thrown(client.get('01M7AAAAAAAAAAAAAAAAAAAAAA'))) === NotFound,
  untyped,
}));
