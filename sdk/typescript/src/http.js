// Requests with JSON in and out, repeated while the server is away.
//
// A request is repeated after a lost connection, so every request that changes something carries an
// Idempotency-Key: the server runs it once however often it arrives.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PawlError, Unavailable, refused } from './errors.js';

// Pauses between repetitions; each is twice the one before. PASSING are statuses that a repetition
// may change.
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

  /**
   * Returns the JSON of the answer, undefined when it is empty. Throws Refused or Unavailable.
   * `once` is the Idempotency-Key of a request that changes something; '' makes a fresh one. A body that is a string is
   * sent as it is. `patienceMs` is how long to repeat the request while no answer comes; 0 tries once.
   */
  async call(method, path, body, { once, headers = {}, patienceMs = this.patienceMs } = {}) {
    const head = { 'Content-Type': 'application/json', ...headers };
    if (once !== undefined) head['Idempotency-Key'] = once || randomUUID();
    const request = { method, headers: head, body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body) };
    const until = performance.now() + patienceMs;
    let renew = this.token?.forget;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      if (this.token) head.Authorization = `Bearer ${typeof this.token === 'function' ? await this.token() : this.token}`;
      const { reply, text, why } = await this.#once(path, request);
      // A refused token is dropped and fetched again, once for each call.
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
      // The message of fetch is only "fetch failed"; the reason is in its cause.
      return { why: err.cause?.message || err.cause?.code || err.message };
    }
  }
}

/** A random time from half of `ms` to one and a half. Clients that were cut off together then do not reconnect together. */
export function jittered(ms) {
  return ms * (0.5 + Math.random());
}

// True for answers that a repetition may change. A 409 counts only while the first request with our
// key still runs.
function passing(status, text) {
  return PASSING.has(status) || (status === 409 && text.includes('Idempotency-Key still runs'));
}

// The faces name the members of an error differently.
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
