// The errors of this package. A caller acts on the class; the text is for people.

/** The root of every error of this package. */
export class PawlError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer came, or only 429 and 503, until the patience was used up. Trying later may help. */
export class Unavailable extends PawlError {}

/** The awaited thing did not happen in time. It may still happen. */
export class TimedOut extends PawlError {}

/** The server refused the request. `status` is the HTTP status, `code` the server's name for the refusal. */
export class Refused extends PawlError {
  constructor(status, code, reason) {
    super(`${status} ${code}: ${reason}`);
    Object.assign(this, { status, code, reason });
  }
}

/** The request can never succeed as written. */
export class Invalid extends Refused {}

/** The thing named does not exist. */
export class NotFound extends Refused {}

/** The thing is no longer in the state that the request needs. */
export class Conflict extends Refused {}

/** Thrown by a handler: this attempt failed, another may succeed. Any other error says the same. */
export class Retry extends PawlError {}

/** Thrown by a handler: no further attempt helps. The step fails now, whatever retries are left. */
export class JobFailed extends PawlError {}

// Every other status of 400 and above is a plain Refused.
const BY_STATUS = new Map([[400, Invalid], [404, NotFound], [409, Conflict], [422, Invalid]]);

export function refused(status, code, reason) {
  return new (BY_STATUS.get(status) ?? Refused)(status, code, reason);
}
