// Pawl from Node 20 and TypeScript: start and steer workflows (Client), do their work (Worker). No
// dependencies and no build step; the types are in index.d.ts.
export { credentials } from './auth.js';
export { Client } from './client.js';
export { Worker } from './worker.js';
export { Conflict, Invalid, JobFailed, NotFound, PawlError, Refused, Retry, TimedOut, Unavailable } from './errors.js';
