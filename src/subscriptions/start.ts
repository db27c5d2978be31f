import type { Outcome, PreparedOperation } from '../graphql/contract.ts';
import { refusalError } from '../graphql/errors.ts';
import { isThenable } from '../graphql/execute.ts';
import { requireFew } from '../graphql/nesting.ts';
import { HttpError } from '../http/error.ts';
import { atOnce } from '../options/at-once.ts';
import type { Operation } from './operation.ts';
import { follow, type Reader } from './reader.ts';
import { OWNER } from './settings.ts';
import { asGraphQLError } from './source.ts';

/** Runs an operation the engine has accepted: a single result, a stream of its own, or a place in a shared one. */
export function start(operation: Operation): void {
  try {
    const { connection, params } = operation;
    const { core, settings } = connection.hub;
    requireFew([params.variables], core.mostVariables);
    const prepared = core.prepare(operation.schema, params, connection.websocket);
    if ('errors' in prepared) {
      operation.fail(prepared.errors);
      return;
    }
    const kind = prepared.operation.operation;
    if (!settings.operations.includes(kind)) {
      operation.fail([refusalError(`A ${kind} is not accepted over this socket`, 'OPERATION_REFUSED')]);
      return;
    }
    if (kind === 'subscription') subscribe(operation, prepared);
    else single(operation, prepared);
  } catch (error) {
    const isMistake = error instanceof HttpError && error.code !== undefined;
    operation.fail([isMistake ? refusalError(error.message, error.code) : asGraphQLError(error)]);
  }
}

function single(operation: Operation, prepared: PreparedOperation): void {
  const answer = (outcome: Outcome): void => {
    if (outcome.kind === 'refused') {
      operation.fail(outcome.errors);
      return;
    }
    operation.emit(outcome.body, true);
    operation.end();
  };
  const outcome = prepared.run(operation);
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
  atOnce(key, OWNER, 'share');
  if (typeof key !== 'string' && typeof key !== 'number') {
    throw new TypeError('share must answer a string, a number, undefined or null');
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
