// The client: definitions, instances, user tasks and searches of the processes API. The methods are described in
// index.d.ts. `once` is the Idempotency-Key of a request that changes something; '' makes a fresh one (http.js).
import { setTimeout as sleep } from 'node:timers/promises';
import { TimedOut } from './errors.js';
import { Http } from './http.js';

const FINISHED = new Set(['COMPLETED', 'FAILED', 'CANCELLED']);
// Pauses between two polls of wait(), and the size of a page of search().
const FIRST_LOOK_MS = 10;
const LONGEST_LOOK_MS = 1000;
const PAGE = 200;

const segment = encodeURIComponent;

export class Client {
  constructor(url = 'http://127.0.0.1:8080', options = {}) {
    this.http = new Http(url, options);
  }

  // Definitions.

  deploy(definition) {
    return this.http.call('POST', '/v1/definitions', definition, { once: '' });
  }

  definition(id, version) {
    return this.http.call('GET', `/v1/definitions/${segment(id)}${version ? `/versions/${version}` : ''}`);
  }

  validate(definition) {
    return this.http.call('POST', '/pawl/v1/processes/validate', definition);
  }

  // Instances.

  async start(definitionId, variables = {}, { version, businessKey, idempotencyKey = '' } = {}) {
    const body = { definitionId, variables, definitionVersion: version, businessKey };
    return instanceOf(await this.http.call('POST', '/v1/instances', body, { once: idempotencyKey }));
  }

  async startBatch(starts, { idempotencyKey = '' } = {}) {
    return (await this.http.call('POST', '/pawl/v1/processes/start-batch', { items: [...starts] }, { once: idempotencyKey })).items;
  }

  async get(id) {
    return instanceOf(await this.http.call('GET', `/v1/instances/${segment(id)}`));
  }

  async wait(id, timeoutMs = 30_000) {
    const until = performance.now() + timeoutMs;
    for (let pause = FIRST_LOOK_MS; ; pause = Math.min(pause * 1.5, LONGEST_LOOK_MS)) {
      const instance = await this.get(id);
      if (instance.finished) return instance;
      if (performance.now() + pause >= until) throw new TimedOut(`instance ${id} is ${instance.status} at ${instance.steps.join(', ')} after ${timeoutMs} ms`);
      await sleep(pause);
    }
  }

  async signal(id, stepId, variables = {}) {
    await this.http.call('POST', `/v1/instances/${segment(id)}/signals/${segment(stepId)}`, variables, { once: '' });
  }

  async completeTask(id, stepId, variables = {}, { user = '' } = {}) {
    await this.http.call('POST', `/v1/instances/${segment(id)}/user-tasks/${segment(stepId)}/complete`, { workerId: user, variables }, { once: '' });
  }

  async cancel(id, reason = '') {
    return instanceOf(await this.http.call('POST', `/v1/instances/${segment(id)}/cancel`, { reason }, { once: '' }));
  }

  operate(id, operation, body = {}) {
    return this.http.call('POST', `/pawl/v1/processes/instances/${segment(id)}/${segment(operation)}`, body, { once: '' });
  }

  // Reads.

  async history(id) {
    return (await this.http.call('GET', `/v1/instances/${segment(id)}/history`)).items ?? [];
  }

  async events(id) {
    return (await this.http.call('GET', `/pawl/v1/processes/instances/${segment(id)}/events`)).items ?? [];
  }

  async tasks(filters = {}) {
    return (await this.http.call('GET', `/pawl/v1/processes/tasks${query(filters)}`)).items ?? [];
  }

  async *search({ limit = Infinity, ...filters } = {}) {
    for (let cursor = '', left = limit; left > 0; ) {
      const page = await this.http.call('GET', `/pawl/v1/processes/instances${query({ ...filters, cursor, limit: Math.min(left, PAGE) })}`);
      for (const raw of page.items ?? []) yield instanceOf(raw);
      left -= page.items?.length ?? 0;
      cursor = page.cursor ?? '';
      if (!cursor) return;
    }
  }

  async findByBusinessKey(key) {
    const found = [];
    for await (const instance of this.search({ businessKey: key })) found.push(instance);
    return found;
  }
}

function instanceOf(raw) {
  return {
    id: raw.id,
    definitionId: raw.definitionId,
    version: raw.definitionVersion,
    status: raw.status,
    steps: raw.currentStepIds ?? [],
    variables: raw.variables ?? {},
    businessKey: raw.businessKey,
    failureReason: raw.failureReason,
    finished: FINISHED.has(raw.status),
    raw,
  };
}

function query(filters) {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : '';
}
