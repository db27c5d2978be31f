import type { MaybePromise } from '../../types/connect.ts';
import { invalidateRest } from '../core/caching/invalidate-rest.ts';
import type { GraphQLCore } from '../core/core.ts';
import { events } from '../core/diagnostics.ts';
import { assertVariableLimits } from '../core/limits/variables.ts';
import { type OperationHook, withExtensions } from '../core/operation-hook.ts';
import { refusalError, toGraphQLError } from '../execution/graphql-error.ts';
import { type ObservedOperation, observedOf } from '../execution/observed.ts';
import {
  type ExecutionOutcome,
  isThenable,
  type PreparedOperation,
  type RequestError,
} from '../execution/types.ts';
import { HttpError } from '../http/reply/http-error.ts';
import type { ClientOperation, LiveOperation } from './live-operation.ts';
import { sendRest } from './send-rest.ts';
import { type OperationServices, subscribe } from './subscribe.ts';

/**
 * Starts an operation: sends a single result, opens a private source stream, or joins a group. A long new
 * document is prepared asynchronously; later operations of the same client wait for it and start in order.
 */
export function startOperation(operation: ClientOperation, services: OperationServices): void {
  const { client } = operation;
  if (client.queuedOperations !== undefined) {
    client.queuedOperations.push(operation);
    return;
  }
  attempt(operation, () => {
    const prepared = prepare(operation, services.core);
    if (isThenable(prepared)) void runWhenPrepared(operation, services, prepared);
    else begin(operation, services, prepared);
  });
}

async function runWhenPrepared(
  operation: ClientOperation,
  services: OperationServices,
  preparing: Promise<PreparedOperation | RequestError>,
): Promise<void> {
  const { client } = operation;
  const queued: ClientOperation[] = [];
  client.queuedOperations = queued;
  try {
    const prepared = await preparing;
    if (operation.isLive) attempt(operation, () => begin(operation, services, prepared));
  } catch (error) {
    failOperation(operation, error);
  }
  client.queuedOperations = undefined;
  for (const next of queued) if (next.isLive) startOperation(next, services);
}

/** Runs `step`. An exception fails this operation only. */
function attempt(operation: LiveOperation, step: () => void): void {
  try {
    step();
  } catch (error) {
    failOperation(operation, error);
  }
}

function failOperation(operation: LiveOperation, error: unknown): void {
  const isClientError = HttpError.is(error) && error.code !== undefined;
  operation.fail([isClientError ? refusalError(error.message, error.code) : toGraphQLError(error)]);
}

function prepare(
  { client, params }: ClientOperation,
  core: GraphQLCore,
): MaybePromise<PreparedOperation | RequestError> {
  assertVariableLimits([params.variables], core.maxVariables);
  return core.prepare(client.schema, params, client.source);
}

/** Runs a prepared operation, and lets subscribers of `espalier:graphql:operation` observe it. */
function begin(
  operation: ClientOperation,
  services: OperationServices,
  prepared: PreparedOperation | RequestError,
): void {
  const { observed } = operation;
  if (observed === undefined) run(operation, services, prepared);
  else observed.begin(prepared, publish, (seen) => run(operation, services, seen));
}

const publish = (operation: ObservedOperation): void => events.operation.publish(operation);

function run(
  operation: ClientOperation,
  services: OperationServices,
  prepared: PreparedOperation | RequestError,
): void {
  if ('errors' in prepared) {
    operation.fail(prepared.errors);
    return;
  }
  const kind = prepared.operation.operation;
  if (!services.settings.operations.includes(kind)) {
    operation.fail([refusalError(`A ${kind} is not accepted over this socket`, 'OPERATION_REFUSED')]);
    return;
  }
  const context = operation.client.contextFor(operation.params);
  if (!isThenable(context)) {
    runWithContext(operation, services, prepared, context);
    return;
  }
  context.then(
    (value) => attempt(operation, () => runWithContext(operation, services, prepared, value)),
    (error) => failOperation(operation, error),
  );
}

/** Runs a prepared operation: sends a single result, opens a private source stream, or joins a group. */
export function runWithContext(
  operation: LiveOperation,
  services: OperationServices,
  prepared: PreparedOperation,
  context: unknown,
): void {
  if (!operation.isLive) return;
  operation.contextValue = context;
  operation.observed ??= observedOf(prepared);
  if (services.onOperation === undefined) {
    execute(operation, services, prepared);
    return;
  }
  const admission = services.onOperation(prepared, operation, operation.source);
  if (!isThenable(admission)) {
    executeAdmitted(operation, services, prepared, admission);
    return;
  }
  admission.then(
    (settled) => attempt(operation, () => executeAdmitted(operation, services, prepared, settled)),
    (error) => failOperation(operation, error),
  );
}

/** Continues after the option `onOperation`. */
function executeAdmitted(
  operation: LiveOperation,
  services: OperationServices,
  prepared: PreparedOperation,
  admission: Awaited<ReturnType<OperationHook>>,
): void {
  if (!operation.isLive) return;
  if ('errors' in admission) {
    operation.fail(admission.errors);
    return;
  }
  operation.extensions = admission.extensions;
  execute(operation, services, prepared);
}

function execute(operation: LiveOperation, services: OperationServices, prepared: PreparedOperation): void {
  if (prepared.operation.operation === 'subscription') subscribe(operation, services, prepared);
  else executeOnce(operation, services, prepared);
}

function executeOnce(
  operation: LiveOperation,
  { counters }: OperationServices,
  prepared: PreparedOperation,
): void {
  const respond = (outcome: ExecutionOutcome): void => {
    operation.send(withExtensions(outcome, operation.extensions).body, 'soon');
    const { rest } = outcome;
    const { caching } = operation;
    if (rest === undefined) operation.complete();
    else sendRest(caching === undefined ? rest : invalidateRest(rest, caching), operation, counters);
  };
  const finish = (outcome: ExecutionOutcome): Promise<void> | undefined => {
    if (outcome.kind !== 'refused') return operation.afterInvalidation(() => respond(outcome));
    operation.fail(outcome.errors);
    return undefined;
  };
  operation.incremental = prepared.incremental;
  operation.caching = prepared.cachePolicy?.startWrite(operation.variableValues);
  const fail = (error: unknown): void => {
    // Fields of a mutation may have changed data before, for example if `formatError` throws.
    void operation.afterInvalidation(() => operation.fail([toGraphQLError(error)]));
  };
  try {
    const outcome = prepared.execute(operation);
    const responded = isThenable(outcome) ? outcome.then(finish) : finish(outcome);
    responded?.catch(fail);
  } catch (error) {
    fail(error);
  }
}
