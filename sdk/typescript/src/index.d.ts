// The types of the package: the same names as in Python, in camel case.

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Variables = { [name: string]: Json };

export class PawlError extends Error {}
/** No answer came until the patience was used up. Trying later may help. */
export class Unavailable extends PawlError {}
/** The awaited thing did not happen in time. It may still happen. */
export class TimedOut extends PawlError {}
/** The server refused the request. */
export class Refused extends PawlError {
  constructor(status: number, code: string, reason: string);
  readonly status: number;
  readonly code: string;
  readonly reason: string;
}
export class Invalid extends Refused {}
export class NotFound extends Refused {}
export class Conflict extends Refused {}
/** Thrown by a handler: this attempt failed, another may succeed. Any other error says the same. */
export class Retry extends PawlError {}
/** Thrown by a handler: no further attempt helps. */
export class JobFailed extends PawlError {}

/** A token, or a function that returns the current one; `forget` is called when the server did not accept it. */
export type Token = string | ((() => string | Promise<string>) & { forget?: () => void });
/** Fetches a token for a machine client, keeps it, renews it before it expires. */
export function credentials(url: string, clientId: string, secret: string, options?: { path?: string }): Token;

export interface ClientOptions {
  token?: Token;
  /** Time limit of one attempt; default 60,000. */
  timeoutMs?: number;
  /** How long a request is repeated while no answer comes; default 60,000. */
  patienceMs?: number;
}

export type Status = 'ACTIVE' | 'WAITING' | 'COMPLETED' | 'FAILED' | 'CANCELLED';

/** An instance as it stood when the server answered. */
export interface Instance<V = Variables> {
  readonly id: string;
  readonly definitionId: string;
  readonly version: number;
  readonly status: Status;
  readonly steps: string[];
  readonly variables: V;
  readonly businessKey?: string;
  readonly failureReason?: string;
  readonly finished: boolean;
  /** Every member of the server's answer. */
  readonly raw: Variables;
}

export interface Definition {
  id: string;
  name: string;
  description?: string;
  autoStartNextWorkflow?: boolean;
  nextWorkflowId?: string;
  steps: Step[];
  metadata?: Variables;
  businessKey?: { unique: 'running' | 'always'; conflict?: 'refuse' | 'return' };
  queries?: Record<string, string>;
  retention?: { completed?: string; failed?: string; cancelled?: string };
  onFailure?: 'fail' | 'compensate';
}

export interface Step {
  id: string;
  name: string;
  type: 'SERVICE_TASK' | 'USER_TASK' | 'DECISION' | 'DECISION_TABLE' | 'TRANSFORMATION' | 'WAIT' | 'PARALLEL_GATEWAY' | 'JOIN_GATEWAY' | 'END' | 'CALL';
  [member: string]: unknown;
}

export interface DefinitionSummary {
  id: string;
  version: number;
  name: string;
  uploadedAt: string;
}

export interface StartOptions {
  version?: number;
  businessKey?: string;
  /** Your own name for this start. A second start with the same name returns the instance of the first. */
  idempotencyKey?: string;
}

export interface Filters {
  status?: Status;
  definitionId?: string;
  businessKey?: string;
  step?: string;
  paused?: boolean;
  /** "name=value" */
  variable?: string;
  startedFrom?: string;
  startedTo?: string;
  updatedFrom?: string;
  updatedTo?: string;
}

/** Every call is repeated while the server is away, busy or restarting; a repeated call takes effect once. */
export class Client {
  constructor(url?: string, options?: ClientOptions);
  /** Uploads a definition. Equal content keeps its version. */
  deploy(definition: Definition): Promise<DefinitionSummary>;
  definition(id: string, version?: number): Promise<Definition>;
  /** Checks a definition and stores nothing. */
  validate(definition: Definition): Promise<Variables>;
  /** Starts an instance and runs it as far as it goes by itself. */
  start<V = Variables>(definitionId: string, variables?: Variables, options?: StartOptions): Promise<Instance<V>>;
  /** Up to 1000 starts in one request; one outcome each. */
  startBatch(starts: Iterable<{ definitionId: string; variables?: Variables; businessKey?: string }>, options?: { idempotencyKey?: string }): Promise<Variables[]>;
  get<V = Variables>(id: string): Promise<Instance<V>>;
  /** The instance once it is finished. Throws TimedOut. */
  wait<V = Variables>(id: string, timeoutMs?: number): Promise<Instance<V>>;
  /** Completes a WAIT step. The variables are merged into those of the instance. */
  signal(id: string, stepId: string, variables?: Variables): Promise<void>;
  completeTask(id: string, stepId: string, variables?: Variables, options?: { user?: string }): Promise<void>;
  cancel(id: string, reason?: string): Promise<Instance>;
  /** Calls an operator's verb: retry, skip, move, variables, pause, resume, cancel, migrate, restart. */
  operate(id: string, operation: string, body?: Variables): Promise<Json>;
  /** The step executions in the order they happened. */
  history(id: string): Promise<Variables[]>;
  /** Everything that happened, with the variables that each event changed. */
  events(id: string): Promise<Variables[]>;
  /** Open user tasks, oldest first. */
  tasks(filters?: { limit?: number; cursor?: string }): Promise<Variables[]>;
  /** Instances, newest first, page by page as they are asked for. */
  search(filters?: Filters & { limit?: number }): AsyncGenerator<Instance>;
  findByBusinessKey(key: string): Promise<Instance[]>;
}

export interface Job<V = Variables> {
  readonly id: string;
  readonly type: string;
  readonly instanceId: string;
  readonly stepId: string;
  readonly retriesLeft: number;
  readonly variables: V;
  readonly raw: Variables;
}

export type Handler<V = any> = (job: Job<V>) => Variables | void | null | Promise<Variables | void | null>;

export interface WorkerOptions {
  token?: Token;
  id?: string;
  /** Handlers that run at the same time; default 8. */
  concurrency?: number;
  /** Must exceed the time of the slowest handler; default 30. */
  leaseSeconds?: number;
  /** How long a poll waits on the server, and so how long an idle worker takes to stop; default 5,000. */
  maxWaitMs?: number;
  /** How long a result is kept while the server is away; default 300,000. */
  patienceMs?: number;
  /** Receives log lines; default console.error. */
  log?: (line: string) => void;
}

/** A handler returns the variables to merge into the instance, or nothing. */
export class Worker {
  constructor(url?: string, options?: WorkerOptions);
  readonly client: Client;
  readonly id: string;
  /** Registers the handler of a job type. Throws when the type has one already. */
  job<V = Variables>(type: string, handler: Handler<V>): this;
  /** Works until stop(), SIGTERM or SIGINT; then takes no new jobs, finishes the ones it has and returns. */
  run(options?: { signals?: boolean }): Promise<void>;
  /** Begins to stop: no new jobs are taken, and run() returns when the running ones are reported. */
  stop(): void;
}
