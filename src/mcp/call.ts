import type { IncomingMessage } from 'node:http';
import type { Access } from '../auth/access.ts';
import { type OperationHook, withExtensions } from '../core/admission.ts';
import type { GraphQLCore } from '../core/core.ts';
import { failedOperation } from '../core/errors.ts';
import { assertVariableLimits } from '../core/limits.ts';
import { events } from '../diagnostics/events.ts';
import { inTime } from '../execution/deadline.ts';
import { refuse } from '../execution/graphql-error.ts';
import { ObservedOperation } from '../execution/observed.ts';
import type {
  ErrorOrigin,
  ExecutionCaching,
  ExecutionInputs,
  ExecutionOutcome,
  GraphQLParams,
  PreparedOperation,
  RequestError,
} from '../execution/types.ts';
import { HttpError } from '../http/reply.ts';
import type { OperationTool } from './tools.ts';

/** The response of GraphQL to a call, and the error that refused it. */
export interface CallResult {
  readonly response: {
    readonly data?: unknown;
    readonly errors?: readonly { readonly message: string }[];
  };
  /** 401 or 403 if the option `auth` refused the operation. */
  readonly status: number | undefined;
}

interface Call {
  readonly req: IncomingMessage;
  readonly variables: Record<string, unknown>;
  readonly signal: AbortSignal;
}

/** Runs the operation of a tool. Never rejects. */
export type RunTool = (tool: OperationTool, call: Call) => Promise<CallResult>;

/** Creates the function that runs operations through all steps that an operation over HTTP has. */
export function createRunTool(core: GraphQLCore): RunTool {
  const hook = core.operationHookFor();
  return async ({ documentId, operationName }, { req, variables, signal }) => {
    const document = { id: documentId, isPersistedQuery: false };
    const params: GraphQLParams = { query: '', document, operationName, variables, extensions: undefined };
    const inputs = new CallInputs(req, params, signal);
    try {
      const result = await observe(req, (observed) => run({ core, hook, params, inputs }, observed));
      return result.kind === 'error' ? refused(core, result, inputs) : settled(result);
    } catch (error) {
      return refusedCall(core, error, inputs);
    }
  };
}

/** The response to a call that failed: a mistake of the client as it is, any other error masked and reported. */
export function refusedCall(core: GraphQLCore, error: unknown, origin: ErrorOrigin): CallResult {
  const isClientError = HttpError.is(error) && error.code !== undefined;
  if (!isClientError) return refused(core, failedOperation(error), origin);
  return refused(core, refuse(error.message, error.code, error.status), origin);
}

const refused = (core: GraphQLCore, { errors, status }: RequestError, origin: ErrorOrigin): CallResult => ({
  response: { errors: core.formatErrors(errors, origin) },
  status,
});

class CallInputs implements ExecutionInputs, ErrorOrigin {
  readonly transport = 'mcp';
  readonly socket = undefined;
  readonly request: IncomingMessage;
  readonly operationName: string | undefined;
  readonly variableValues: Record<string, unknown> | undefined;
  readonly #signal: AbortSignal;
  /** Set before an execution that continues without its client, such as one with an idempotency key. */
  outlivesClient = false;
  rootValue: unknown;
  contextValue: unknown;
  access: Access | undefined;
  caching: ExecutionCaching | undefined;

  constructor(req: IncomingMessage, { operationName, variables }: GraphQLParams, signal: AbortSignal) {
    this.request = req;
    this.operationName = operationName;
    this.variableValues = variables;
    this.#signal = signal;
  }

  get origin(): ErrorOrigin {
    return this;
  }

  get signal(): AbortSignal | undefined {
    return this.outlivesClient || this.caching !== undefined ? undefined : this.#signal;
  }

  get aborted(): boolean {
    return !this.outlivesClient && this.#signal.aborted;
  }
}

type Outcome = ExecutionOutcome | RequestError;
type Observed = ObservedOperation | undefined;

/** Lets subscribers of `espalier:graphql:operation` observe the operation. */
async function observe(
  request: IncomingMessage,
  steps: (observed: Observed) => Promise<Outcome>,
): Promise<Outcome> {
  if (!events.operation.hasSubscribers) return steps(undefined);
  const details = { socket: undefined, connectionParams: undefined, extensions: undefined };
  const observed = new ObservedOperation({ transport: 'mcp', request, ...details });
  try {
    const outcome = await steps(observed);
    if (outcome.kind === 'error') observed.fail(outcome.errors);
    return outcome;
  } catch (error) {
    observed.fail([error]);
    throw error;
  } finally {
    observed.end();
  }
}

interface Steps {
  readonly core: GraphQLCore;
  readonly hook: OperationHook | undefined;
  readonly params: GraphQLParams;
  readonly inputs: CallInputs;
}

async function run(steps: Steps, observed: Observed): Promise<Outcome> {
  const { core, params, inputs } = steps;
  assertVariableLimits([params.variables], core.maxVariables);
  const { timeLimit } = core;
  const schema = await inTime(timeLimit, core.schemaFor(inputs.request, undefined, 'mcp'), inputs);
  const prepared = await inTime(timeLimit, core.prepare(schema, params, inputs.request), inputs);
  const next = (seen: PreparedOperation | RequestError): Outcome | Promise<Outcome> =>
    seen.kind === 'error' ? seen : admitAndExecute(steps, seen);
  return observed === undefined
    ? next(prepared)
    : observed.begin(prepared, (message) => events.operation.publish(message), next);
}

async function admitAndExecute(
  { core, hook, params, inputs }: Steps,
  prepared: PreparedOperation,
): Promise<Outcome> {
  const context = core.contextFor(inputs.request, params, undefined, 'mcp');
  inputs.contextValue = await inTime(core.timeLimit, context, inputs);
  inputs.rootValue = core.rootValueFor(inputs.request);
  const admission = await hook?.(prepared, inputs, inputs.request);
  if (admission?.kind === 'error') return admission;
  inputs.caching = prepared.cachePolicy?.startWrite(inputs.variableValues);
  try {
    return withExtensions(await prepared.execute(inputs), admission?.extensions);
  } finally {
    await inputs.caching?.invalidate();
  }
}

function settled(outcome: ExecutionOutcome): CallResult {
  outcome.rest?.return().catch(() => undefined);
  const response = JSON.parse(outcome.body.toString());
  outcome.release?.();
  return { response, status: outcome.kind === 'refused' ? outcome.status : undefined };
}
