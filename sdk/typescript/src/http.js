// Requests with JSON in and out, repeated while the server is away.
//
// A request is repeated after a lost connection, so every request that changes something carries an
// Idempotency-Key: the server runs it once however often it arrives.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PawlError, Unavailable, refused } from './errors.js';

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 5000;
const PASSING = new Set([429, 502, 503, 504]);

export class Http {
  constructor(url, { token, timeoutMs = 60_000, patienceMs = 60_000 } = {}) {
    const text = url.includes('://') ? url : `http://${url}`;
    if (!URL.canParse(text)) throw new PawlError(`'${url}' is no server address: write http://127.0.0.1:8080`);
    this.base = text.replace(/\/+$/, '');
    Object.assign(this, { token, timeoutMs, patienceMs });
  }

  /** The answer's JSON, undefined when empty. `once`: the Idempotency-Key; '' makes a fresh one. A body that is text goes as it is. */
  async call(method, path, body, { once, headers = {}, patienceMs = this.patienceMs } = {}) {
    const head = { 'Content-Type': 'application/json', ...headers };
    if (once !== undefined) head['Idempotency-Key'] = once || randomUUID();
    const request = { method, headers: head, body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body) };
    const until = performance.now() + patienceMs;
    let renew = this.token?.forget;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      if (this.token) head.Authorization = `Bearer ${typeof this.token === 'function' ? await this.token() : this.token}`;
      const { reply, text, why } = await this.#once(path, request);
      if (reply?.status === 401 && renew) {
        renew();
        renew = undefined;
        continue;
      }
      if (reply && !passing(reply.status, text)) return answer(reply.status, text);
      const wait = Math.max(Number(reply?.headers.get('retry-after') ?? 0) * 1000 || 0, jittered(pause));
      if (performance.now() + wait >= until) {
        throw new Unavailable(`${method} ${path}: no answer from ${this.base} (${why ?? `it answered ${reply.status}: ${text.slice(0, 200)}`}): is \`pawl serve\` running there?`);
      }
      await sleep(wait);
    }
  }

  async #once(path, request) {
    try {
      const reply = await fetch(this.base + path, { ...request, signal: AbortSignal.timeout(this.timeoutMs) });
      return { reply, text: await reply.text() };
    } catch (err) {
      // fetch says "fetch failed" and hides why in its cause.
      return { why: err.cause?.message || err.cause?.code || err.message };
    }
  }
}

/** From half to one and a half: so that many who were cut off together do not come back together. */
export function jittered(ms) {
  return ms * (0.5 + Math.random());
}

// Answers that another try may change. 409 only while the first request with our key still runs.
function passing(status, text) {
  return PASSING.has(status) || (status === 409 && text.includes('Idempotency-Key still runs'));
}

function answer(status, text) {
  let value;
  try {
    value = text ? JSON.parse(text) : undefined;
  } catch {
    value = undefined;
  }
  if (status < 400) return value;
  const code = value?.error ?? value?.properties?.errorCode ?? '';
  throw refused(status, code, value?.reason ?? value?.detail ?? value?.title ?? text.slice(0, 500));
}
