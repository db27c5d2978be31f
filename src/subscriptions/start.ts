import { refusalError } from '../core/errors.ts';
import { requireFew } from '../core/limits/depth.ts';
import { isThenable } from '../execution/graphql-js.ts';
import type { ExecutionOutcome, PreparedOperation, RequestError } from '../execution/types.ts';
import { LONG_QUERY } from '../graphql/run-operation.ts';
import { HttpError } from '../http/reply/http-error.ts';
import { assertSync } from '../options/assert-sync.ts';
import { wrongReturnValue } from '../options/resolve-options.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import type { Operation } from './operation.ts';
import { follow, type Reader } from './reader.ts';
import { asGraphQLError } from './source.ts';

/**
 * Runs an operation the engine has accepted: a single result, a stream of its own, or a place in a shared one. A long
 * document that is new takes several turns of the event loop; what comes behind it on the same socket waits.
 */
export function start(operation: Operation): void {
  const { connection, params } = operation;
  const { core } = connection.hub;
  if (connection.behind !== undefined) {
    connection.behind.push(operation);
    return;
  }
  attempt(operation, () => {
    requireFew([params.variables], core.mostVariables);
    if (params.query.length > LONG_QUERY && !core.knows(operation.schema, params.query)) {
      connection.behind = [];
      void startInTurns(operation);
    } else run(operation, prepare(operation));
  });
}

async function startInTurns(operation: Operation): Promise<void> {
  const { connection, schema, params } = operation;
  const { core, ownTurn } = connection.hub;
  await ownTurn();
  attempt(operation, () => core.readAhead(schema, params.query));
  await ownTurn();
  // Also where nobody waits for it any more: what was read ahead is not kept.
  const prepared = attempt(operation, () => prepare(operation));
  await ownTurn();
  if (prepared !== undefined && operation.live) attempt(operation, () => run(operation, prepared));
  const behind = connection.behind ?? [];
  connection.behind = undefined;
  for (const next of behind) if (next.live) start(next);
}

/** What fails in here fails that operation alone. */
function attempt<T>(operation: Operation, step: () => T): T | undefined {
  try {
    return step();
  } catch (error) {
    const isMistake = error instanceof HttpError && error.code !== undefined;
    operation.fail([isMistake ? refusalError(error.message, error.code) : asGraphQLError(error)]);
    return undefined;
  }
}

function prepare({ connection, schema, params }: Operation): PreparedOperation | RequestError {
  return connection.hub.core.prepare(schema, params, connection.websocket);
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
