import { types } from 'node:util';
import { type GraphQLError, getVariableValues } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { OperationDecision } from '../../types/operation.ts';
import { refuse, toGraphQLError } from '../execution/graphql-error.ts';
import { setErrorCode } from '../execution/graphql-js.ts';
import {
  type EngineSettings,
  type ExecutionOutcome,
  type OnOperation,
  type OperationCall,
  type PreparedOperation,
  type RequestError,
  withNativePromise,
} from '../execution/types.ts';
import { isListOf, type OptionScope, wrongReturnValue } from '../options/rules.ts';
import { GRAPHQL_OPTIONS } from '../options/scopes.ts';
import { isObject, settle } from '../options/values.ts';
import type { Extension } from './extension.ts';

/** Creates the extension of the option `onOperation`, which is called after the checks of the variables. */
export function createOperationHook({
  onOperation,
}: {
  readonly onOperation?: OnOperation | undefined;
}): Extension {
  if (onOperation === undefined) return {};
  return {
    readsSource: true,
    prepare: (prepared, { settings }) => ({
      admit: (call) => ask(onOperation, prepared, call, settings),
    }),
  };
}

function ask(
  onOperation: OnOperation,
  prepared: PreparedOperation,
  call: OperationCall,
  settings: CoercionSettings,
): MaybePromise<RequestError | undefined> {
  const { variableValues, contextValue, origin, source, caller } = call;
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
    caller,
    transport: origin?.transport ?? 'http',
  });
  return settle(withNativePromise(returned), (decision) => use(decision, prepared, call));
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
  /** The same as `getArgumentValues` of the installed graphql takes them. */
  readonly variables: Values;
}

/** Coerces the variables. The engine does it again, since most operations run without a hook and with the whole schema. */
export function coerceVariables(
  { schema, operation }: PreparedOperation,
  inputs: Record<string, unknown> | undefined,
  { maxErrors, hideSuggestions }: CoercionSettings,
): RequestError | CoercedValues {
  const definitions = operation.variableDefinitions ?? [];
  if (definitions.length === 0) return { kind: 'values', values: {}, variables: {} };
  const options = { maxErrors, hideSuggestions };
  const result: CoercionResult = getVariableValues(schema, definitions, inputs ?? {}, options);
  if (result.errors === undefined) {
    const values = result.coerced ?? result.variableValues?.coerced ?? {};
    return { kind: 'values', values, variables: result.variableValues ?? values };
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
function use(
  decision: OperationDecision,
  { operation }: PreparedOperation,
  call: OperationCall,
): RequestError | undefined {
  if (decision === undefined) return undefined;
  if (!isObject(decision)) throw wrongDecision(decision);
  const { errors = [], extensions = {}, expiresAt, ...others } = decision;
  if (Object.keys(others).length > 0 || !isErrorList(errors) || !isObject(extensions))
    throw wrongDecision(decision);
  if (errors.length > 0) return { kind: 'error', errors: errors.map(toGraphQLError), status: 400 };
  const text: string | undefined = JSON.stringify(extensions);
  if (text?.startsWith('{') !== true) throw wrongDecision(decision);
  const end = expiresAt === undefined ? undefined : toMilliseconds(expiresAt, GRAPHQL_OPTIONS, 'onOperation');
  if (end !== undefined && end <= Date.now()) return refuse('The token has expired', 'UNAUTHENTICATED', 401);
  if (end !== undefined && operation.operation === 'subscription') call.expireBy(end);
  if (text === '{}') return undefined;
  call.extensions = text;
  call.willExtend();
  return undefined;
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
    get extensions() {
      return { ...own, ...JSON.parse(extensions) };
    },
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
