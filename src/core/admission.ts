import { types } from 'node:util';
import { type GraphQLError, getVariableValues } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { OperationDecision } from '../../types/operation.ts';
import type { Authorization } from '../auth/authorization.ts';
import { type BudgetCheck, createBudgetCheck, resolveBudget, type WithinBudget } from '../cost/budget.ts';
import {
  type CostCheck,
  createCostCheck,
  createPrice,
  type PricedOperation,
  resolveCost,
} from '../cost/cost-check.ts';
import { refuse, toGraphQLError } from '../execution/graphql-error.ts';
import { setErrorCode } from '../execution/graphql-js.ts';
import type { ObservedOperation } from '../execution/observed.ts';
import {
  type EngineSettings,
  type ExecutionInputs,
  type ExecutionOutcome,
  type PreparedOperation,
  type RequestError,
  withNativePromise,
} from '../execution/types.ts';
import type { Headers } from '../http/reply.ts';
import { isListOf, isObject, type OptionScope, settle, wrongReturnValue } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import type { CoreSettings, OnOperation } from './options.ts';

/** The checks of each operation between its validation and its execution. */
interface AdmissionChecks {
  /** Compiles the cost of an operation; undefined if no option needs it. */
  readonly price: EngineSettings['price'];
  /** The highest cost of one batch; undefined if costs are not limited. */
  readonly maxCost: number | undefined;
  /** Adds the checks of `auth`, `cost` and `budget` to the hook of `onOperation`. */
  hookFor(hook: OperationHook | undefined, settings: CoercionSettings): OperationHook | undefined;
}

/**
 * Creates the checks of the options `cost` and `budget`.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
export function createAdmission(
  options: Pick<CoreSettings, 'budget' | 'cost' | 'usage'>,
  schema: unknown,
  authorization: Authorization | undefined,
): AdmissionChecks {
  const budget = options.budget === undefined ? undefined : resolveBudget(options.budget);
  // A budget of costs needs the cost of operations also without a limit for each.
  const implied = budget?.unit === 'cost' ? { reportOnly: true } : undefined;
  const cost = resolveCost(options.cost ?? implied, schema);
  const checkCost = cost && createCostCheck(cost);
  const checkBudget = budget && createBudgetCheck(budget);
  return {
    price: cost && ((operation, account) => createPrice(operation, cost, account)),
    maxCost: cost === undefined || cost.reportOnly ? undefined : cost.maxCost,
    hookFor: (hook, settings) =>
      counted(options.usage, authorized(authorization, settings, combine(checkCost, checkBudget, hook))),
  };
}

/** Refuses what the caller may not run before all other checks. */
function authorized(
  authorization: Authorization | undefined,
  settings: CoercionSettings,
  hook: OperationHook | undefined,
): OperationHook | undefined {
  if (authorization === undefined) return hook;
  return (prepared, inputs, source) => {
    const { visible } = prepared;
    // Variables have names too: those of input fields.
    const given =
      visible && coerceVariables({ ...prepared, schema: visible }, inputs.variableValues, settings);
    if (given?.kind === 'error') return given;
    return settle(
      authorization.authorize(prepared, inputs, source),
      (refusal) => refusal ?? hook?.(prepared, inputs, source) ?? ADMITTED,
    );
  };
}

const ADMITTED: Admission = { kind: 'admitted', extensions: undefined };
const UNPRICED: PricedOperation = { kind: 'priced', cost: 1, headers: undefined };
const NO_BUDGET: WithinBudget = { kind: 'within', headers: undefined };

/**
 * Creates one hook that runs the checks in this order. Undefined if all are off, so that operations cost
 * nothing more.
 */
function combine(
  checkCost: CostCheck | undefined,
  budget: BudgetCheck | undefined,
  hook: OperationHook | undefined,
): OperationHook | undefined {
  if (checkCost === undefined && budget === undefined) return hook;
  return (prepared, inputs, source) => {
    const priced = checkCost?.(prepared, inputs, source) ?? UNPRICED;
    if (priced.kind === 'error') return priced;
    const { cost, headers } = priced;
    const taken = budget?.(source, inputs.contextValue, cost) ?? NO_BUDGET;
    return settle(taken, (within) => {
      if (within.kind === 'error') return within;
      return settle(hook?.(prepared, inputs, source) ?? ADMITTED, (admission) =>
        admission.kind === 'error'
          ? admission
          : { ...admission, cost, headers: { ...headers, ...within.headers } },
      );
    });
  };
}

/** Counts the operations that a hook admits, if the option `usage` is set. */
function counted(usage: CoreSettings['usage'], hook: OperationHook | undefined): OperationHook | undefined {
  if (usage === undefined) return hook;
  return (prepared, inputs, source) =>
    settle(hook?.(prepared, inputs, source) ?? ADMITTED, (admission) => {
      if (admission.kind === 'error') return admission;
      const client = usage.count(prepared, inputs.variableValues, source);
      if (inputs.observed !== undefined) inputs.observed.client = client;
      return admission;
    });
}

/** An operation that may be executed. */
export interface Admission {
  readonly kind: 'admitted';
  /** The JSON text of the `extensions` to add to the response. */
  readonly extensions: string | undefined;
  /** The time in milliseconds since 1970 at which a subscription has to end. */
  readonly expiresAt?: number | undefined;
  /** The headers of an HTTP response, from the options `cost` and `budget`. */
  readonly headers?: Headers | undefined;
  /** The cost of the operation. */
  readonly cost?: number | undefined;
}

/**
 * Checks the variables of an operation and calls the option `onOperation`. `source` is the request or the
 * WebSocket. Every transport calls it once per operation, when the context is known and before the execution.
 */
export type OperationHook = (
  operation: PreparedOperation,
  inputs: HookInputs,
  source: unknown,
) => MaybePromise<RequestError | Admission>;

interface HookInputs extends ExecutionInputs {
  readonly observed: ObservedOperation | undefined;
}

/** Creates the hook. Without the option there is none, so that operations cost nothing more. */
export function createOperationHook(
  onOperation: OnOperation | undefined,
  settings: EngineSettings,
): OperationHook | undefined {
  if (onOperation === undefined) return undefined;
  return (prepared, { variableValues, contextValue, origin }, source) => {
    const coerced = coerceVariables(prepared, variableValues, settings);
    if (coerced.kind === 'error') return coerced;
    const { schema, document, operation } = prepared;
    const returned = onOperation({
      schema,
      document,
      operation,
      operationName: operation.name?.value,
      variables: variableValues ?? {},
      coercedVariables: coerced.values,
      request: source,
      context: contextValue,
      transport: origin?.transport ?? 'http',
    });
    return settle(withNativePromise(returned), toAdmission);
  };
}

/** The result of `getVariableValues`: graphql 17 nests the values. */
interface CoercionResult {
  readonly errors?: readonly GraphQLError[];
  readonly coerced?: Values;
  readonly variableValues?: { readonly coerced: Values };
}

type CoercionSettings = Pick<EngineSettings, 'maxErrors' | 'hideSuggestions'>;
type Values = Readonly<Record<string, unknown>>;

/** The variables of an operation as resolvers get them. */
interface CoercedValues {
  readonly kind: 'values';
  readonly values: Values;
}

/** Coerces the variables. The engine does it again, since most operations run without a hook and with the whole schema. */
function coerceVariables(
  { schema, operation }: PreparedOperation,
  inputs: Record<string, unknown> | undefined,
  { maxErrors, hideSuggestions }: CoercionSettings,
): RequestError | CoercedValues {
  const definitions = operation.variableDefinitions ?? [];
  if (definitions.length === 0) return { kind: 'values', values: {} };
  const options = { maxErrors, hideSuggestions };
  const result: CoercionResult = getVariableValues(schema, definitions, inputs ?? {}, options);
  if (result.errors === undefined) {
    return { kind: 'values', values: result.coerced ?? result.variableValues?.coerced ?? {} };
  }
  for (const error of result.errors) setErrorCode(error, 'BAD_USER_INPUT');
  return { kind: 'error', errors: result.errors.slice(0, maxErrors), status: 400 };
}

const isErrorList = isListOf((item) => item instanceof Error);

/**
 * Checks the return value strictly: an operation must not run because a refusal was misspelt.
 *
 * @throws TypeError (code `ERR_OPTION`).
 */
function toAdmission(decision: OperationDecision): RequestError | Admission {
  if (decision === undefined) return ADMITTED;
  if (!isObject(decision)) throw wrongDecision(decision);
  const { errors = [], extensions = {}, expiresAt, ...others } = decision;
  if (Object.keys(others).length > 0 || !isErrorList(errors) || !isObject(extensions))
    throw wrongDecision(decision);
  if (errors.length > 0) return { kind: 'error', errors: errors.map(toGraphQLError), status: 400 };
  const text: string | undefined = JSON.stringify(extensions);
  if (text?.startsWith('{') !== true) throw wrongDecision(decision);
  const end = expiresAt === undefined ? undefined : toMilliseconds(expiresAt, GRAPHQL_OPTIONS, 'onOperation');
  if (end !== undefined && end <= Date.now()) return refuse('The token has expired', 'UNAUTHENTICATED', 401);
  return { kind: 'admitted', extensions: text === '{}' ? undefined : text, expiresAt: end };
}

const wrongDecision = (decision: unknown): TypeError =>
  wrongReturnValue(
    GRAPHQL_OPTIONS,
    'onOperation',
    decision,
    'undefined, or an object with a list of "errors", an object of "extensions" or "expiresAt"',
  );

/** Smaller numbers are seconds, as in a JWT's `exp`. */
const MAX_SECONDS = 1e11;

/**
 * Returns the `expiresAt` that a function of the application has returned, in milliseconds since 1970.
 *
 * @throws TypeError (code `ERR_OPTION`) if it is not a valid time.
 */
export function toMilliseconds(time: unknown, scope: OptionScope, option: string): number {
  const value = typeof time === 'number' || types.isDate(time) ? Number(time) : Number.NaN;
  if (Number.isNaN(value)) {
    throw wrongReturnValue(scope, option, { expiresAt: time }, 'a Date or a number as expiresAt');
  }
  return value < MAX_SECONDS ? value * 1000 : value;
}

/**
 * Adds the `extensions` of the hook to a response, if there are any. They replace members of the same name
 * that the option `engine` returned.
 */
export function withExtensions(outcome: ExecutionOutcome, extensions: string | undefined): ExecutionOutcome {
  if (extensions === undefined) return outcome;
  const { kind, body, rest, status, isMasked = false, extensions: own } = outcome;
  const extended = own === undefined ? append(body, extensions) : merge(body, own, extensions);
  outcome.release?.();
  return {
    kind,
    body: extended,
    rest,
    status,
    isMasked,
    // Some outcomes create their errors when they are read.
    get errors() {
      return outcome.errors;
    },
  };
}

/** Adds a member to the end of a JSON object that has members. */
function append(body: string | Buffer, extensions: string): string | Buffer {
  const end = `,"extensions":${extensions}}`;
  if (typeof body === 'string') return body.slice(0, -1) + end;
  return Buffer.concat([body.subarray(0, -1), Buffer.from(end)]);
}

function merge(body: string | Buffer, own: object, extensions: string): string {
  return JSON.stringify({
    ...JSON.parse(body.toString()),
    extensions: { ...own, ...JSON.parse(extensions) },
  });
}
