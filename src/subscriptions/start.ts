import type { MaybePromise } from '../../types/connect.ts';
import { refusalError } from '../core/errors.ts';
import { requireFew } from '../core/limits/depth.ts';
import { isThenable } from '../execution/promises.ts';
import type { ExecutionOutcome, PreparedOperation, RequestError } from '../execution/types.ts';
import { HttpError } from '../http/reply/http-error.ts';
import { assertSync } from '../options/assert-sync.ts';
import { wrongReturnValue } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import type { Operation } from './operation.ts';
import { follow, type Reader } from './reader.ts';
import { asGraphQLError } from './source.ts';

/**
 * Runs an operation: a single result, a private stream, or a subscription to a shared one. A long new document is
 * prepared asynchronously; later operations of the same connection wait for it, so that they start in order.
 */
export function start(operation: Operation): void {
  const { connection } = operation;
  if (connection.behind !== undefined) {
    connection.behind.push(operation);
    return;
  }
  attempt(operation, () => {
    const prepared = prepare(operation);
    if (prepared instanceof Promise) void runWhenPrepared(operation, prepared);
    else run(operation, prepared);
  });
}

async function runWhenPrepared(
  operation: Operation,
  preparing: Promise<PreparedOperation | RequestError>,
): Promise<void> {
  const { connection } = operation;
  connection.behind = [];
  try {
    const prepared = await preparing;
    if (operation.live) attempt(operation, () => run(operation, prepared));
  } catch (error) {
    fail(operation, error);
  }
  const { behind } = connection;
  connection.behind = undefined;
  for (const next of behind) if (next.live) start(next);
}

/** An error that `step` throws fails this operation only. */
function attempt(operation: Operation, step: () => void): void {
  try {
    step();
  } catch (error) {
    fail(operation, error);
  }
}

function fail(operation: Operation, error: unknown): void {
  const isMistake = error instanceof HttpError && error.code !== undefined;
  operation.fail([isMistake ? refusalError(error.message, error.code) : asGraphQLError(error)]);
}

function prepare({ connection, schema, params }: Operation): MaybePromise<PreparedOperation | RequestError> {
  const { core } = connection.hub;
  requireFew([params.variables], core.maxVariables);
  return core.prepare(schema, params, connection.websocket);
}

function run(operation: Operation, prepared: PreparedOperation | RequestError): void {
  if ('errors' in prepared) {
    operation.fail(prepared.errors);
    return;
  }
  const kind = prepared.operation.operation;
  if (!operation.connection.hub.settings.operations.includes(kind)) {
    operation.fail([refusalError(`A ${kind} is not accepted over this socket`, 'OPERATION_REFUSED')]);
    return;
  }
  if (kind === 'subscription') subscribe(operation, prepared);
  else single(operation, prepared);
}

function single(operation: Operation, prepared: PreparedOperation): void {
  const answer = (outcome: ExecutionOutcome): void => {
    if (outcome.kind === 'refused') {
      operation.fail(outcome.errors);
      return;
    }
    operation.emit(outcome.body, true);
    operation.end();
  };
  const outcome = prepared.execute(operation);
  if (isThenable(outcome)) {
    outcome.then(answer).catch((error) => operation.fail([asGraphQLError(error)]));
  } else answer(outcome);
}

function subscribe(operation: Operation, prepared: PreparedOperation): void {
  const { hub, context } = operation.connection;
  const { share, drop } = hub.settings;
  operation.droppable = drop === 'oldest';
  const key = share?.(context, operation.params);
  if (key === undefined || key === null) {
    subscribePrivately(operation, prepared);
    return;
  }
  assertSync(key, SUBSCRIPTION_OPTIONS, 'share');
  if (typeof key !== 'string' && typeof key !== 'number') {
    throw wrongReturnValue(SUBSCRIPTION_OPTIONS, 'share', key, 'a string, a number, undefined or null');
  }
  hub.groups.join(operation, prepared, key);
}

function subscribePrivately(operation: Operation, prepared: PreparedOperation): void {
  const { outlet, hub } = operation.connection;
  operation.patient = !operation.droppable;
  const reader: Reader = {
    counters: hub.counters,
    inputs: operation,
    wanted: () => operation.live,
    result: (outcome) => hub.deliver(operation, outcome),
    room: () => (operation.patient ? outlet.room() : undefined),
    ended: () => operation.end(),
    failed: (errors) => operation.fail(errors),
    abort: () => operation.abort(),
  };
  operation.release = follow(prepared, reader);
}
