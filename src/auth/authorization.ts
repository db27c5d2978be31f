import type { GraphQLSchema } from 'graphql';
import type { AuthDetails, AuthNames, AuthOptions } from '../../types/auth.ts';
import type { Caller } from '../../types/caller.ts';
import type { MaybePromise } from '../../types/connect.ts';
import { coerceVariables } from '../core/admission.ts';
import type { Extension, ExtensionParts, PrepareParts } from '../core/extension.ts';
import { createUnenforcedNote } from '../core/unenforced.ts';
import { findDirective } from '../execution/directives.ts';
import type {
  EngineSettings,
  ExecutionInputs,
  ExecutionOutcome,
  Guards,
  OperationHooks,
  PreparedOperation,
  RequestError,
} from '../execution/types.ts';
import { withNativePromise } from '../execution/types.ts';
import {
  isListOf,
  oneOf,
  optionalFunction,
  optionError,
  type Rules,
  resolveOptions,
  wrongOption,
  wrongReturnValue,
} from '../options/rules.ts';
import { AUTH_OPTIONS } from '../options/scopes.ts';
import { isString, settle } from '../options/values.ts';
import { Access, accessOf, namesOf, noCaller, ResolverAuth, statusOf } from './access.ts';
import { createCallerSchemas } from './caller-schemas.ts';
import { NAMES } from './directives.ts';
import { argumentConditions, hasGuardedArguments, OperationRequirement, withDefaults } from './operation.ts';
import { type Condition, requirementsOf } from './requirements.ts';

export { visiblePart } from './visible-schema.ts';

/** The option `auth` after checks. */
interface AuthSettings {
  readonly scopes: ((source: unknown, details: AuthDetails) => MaybePromise<unknown>) | undefined;
  readonly policies:
    | ((names: readonly string[], source: unknown, details: AuthDetails) => MaybePromise<unknown>)
    | undefined;
  readonly mode: 'reject' | 'null';
  readonly schemaFor: AuthOptions['schemaFor'];
}

const rules: Rules<AuthSettings> = {
  scopes: optionalFunction(),
  policies: optionalFunction(),
  mode: oneOf('reject', 'null'),
  schemaFor: optionalFunction(),
};

/**
 * Creates the extension of the option `auth`.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong option.
 */
export function createAuthorization(
  { auth: given, caller }: { readonly auth?: unknown; readonly caller?: unknown },
  { scope }: Pick<ExtensionParts, 'scope'>,
): Extension {
  const settings = resolveOptions(AUTH_OPTIONS, given === true ? {} : given, rules);
  if (settings.scopes === undefined && caller === undefined)
    throw wrongOption(
      AUTH_OPTIONS,
      'scopes',
      undefined,
      'a function of the request, unless the option "caller" of graphqlHTTP says who is calling',
    );
  const { schemaFor } = settings;
  return {
    noteUnenforced: createUnenforcedNote(scope, unused),
    check: (schema) => assertPolicies(settings, schema),
    guards,
    // They might be names that the caller may not see.
    hidesNames: schemaFor === undefined,
    readsSource: true,
    checksEvents: true,
    prepare: (operation, parts) => prepare(settings, operation, parts),
    ...(schemaFor && {
      schemaFor: (serve) => {
        const find = createCallerSchemas(schemaFor, serve);
        return (whole, source, { connectionParams, transport, caller }) => {
          const details = { transport, connectionParams, context: undefined };
          return settle(scopesOf(settings, caller, source, details), (scopes) => find(whole, scopes));
        };
      },
    }),
  };
}

const unused = (schema: GraphQLSchema) =>
  findDirective(schema, NAMES) === undefined
    ? {
        problem:
          'option "auth" is set, but the schema requires nothing of callers: only info.auth of resolvers protects data. printSchema and introspection lose the directives of a schema',
      }
    : undefined;

/** Refuses what the caller may not run before all other checks. */
function prepare(
  settings: AuthSettings,
  prepared: PreparedOperation,
  { settings: engine, account }: PrepareParts,
): OperationHooks {
  assertPolicies(settings, prepared.schema);
  const requirement = new OperationRequirement(prepared, account);
  const { visible } = prepared;
  const check = (inputs: ExecutionInputs, source: unknown) =>
    authorize(settings, { prepared, requirement }, inputs, source);
  return {
    admit(call) {
      // Variables have names too: those of input fields.
      const given = visible && coerceVariables({ ...prepared, schema: visible }, call.variableValues, engine);
      return given?.kind === 'error' ? given : check(call, call.source);
    },
    event: check,
    execute: requirement.isEmpty ? undefined : secured(prepared, engine, settings.mode),
    scopes: () => requirement.scopes,
  };
}

/** @throws TypeError (code `ERR_OPTION`) if nothing decides about the policies of a schema. */
function assertPolicies({ policies }: AuthSettings, schema: GraphQLSchema): void {
  const [name] = namesOf(requirementsOf(schema).conditions, 'policies');
  if (policies !== undefined || name === undefined) return;
  throw optionError(
    AUTH_OPTIONS,
    `the schema has @policy with "${name}", but the option "auth.policies" is not set; pass a function that returns the policies that a caller meets`,
  );
}

interface Requiring {
  readonly prepared: PreparedOperation;
  readonly requirement: OperationRequirement;
}

/** Sets `access` of the inputs of an execution. Returns the reason if the operation must not run. */
function authorize(
  settings: AuthSettings,
  { prepared, requirement }: Requiring,
  inputs: ExecutionInputs,
  source: unknown,
): MaybePromise<RequestError | undefined> {
  const { demands, possible, policies: names } = requirement.for(inputs.variableValues);
  const details = detailsOf(inputs);
  return settle(scopesOf(settings, inputs.caller, source, details), (scopes) =>
    settle(policiesOf(settings, names, source, details), (policies) => {
      const access = new Access({ scopes, policies }, possible, requirement);
      inputs.access = access;
      if (access.isUnrestricted) return undefined;
      // In mode 'null' there is no event whose field could be null.
      const refuses = settings.mode === 'reject' || prepared.operation.operation === 'subscription';
      const refused = demands.filter(
        ({ conditions, isRoot }) => (settings.mode === 'reject' || isRoot) && access.denies(conditions),
      );
      if (!refuses || refused.length === 0) return undefined;
      const fields = [...new Map(refused.map((demand) => [demand.coordinate, demand])).values()];
      const errors = fields
        .slice(0, prepared.maxErrors)
        .map(({ coordinate, node }) => access.error(coordinate, [node]));
      return { kind: 'error', errors, status: statusOf(errors[0] as (typeof errors)[number]) };
    }),
  );
}

const detailsOf = ({ origin, connectionParams, contextValue }: ExecutionInputs): AuthDetails => ({
  transport: origin?.transport ?? 'http',
  connectionParams,
  context: contextValue,
});

/** The scopes of the caller; undefined if nobody is signed in. */
function scopesOf(
  { scopes }: AuthSettings,
  caller: Caller | null | undefined,
  source: unknown,
  details: AuthDetails,
): MaybePromise<ReadonlySet<string> | undefined> {
  if (scopes === undefined) return caller ? new Set(caller.scopes) : undefined;
  return settle(withNativePromise(scopes(source, details)), (returned) => {
    if (returned === null || returned === undefined) return undefined;
    return toNames(returned, 'scopes', "a list of scopes, such as scope.split(' '), or null");
  });
}

const NO_NAMES: ReadonlySet<string> = new Set();

function policiesOf(
  { policies }: AuthSettings,
  names: readonly string[],
  source: unknown,
  details: AuthDetails,
): MaybePromise<ReadonlySet<string>> {
  if (names.length === 0 || policies === undefined) return NO_NAMES;
  return settle(withNativePromise(policies(names, source, details)), (returned) =>
    toNames(returned, 'policies', 'a list of the policies that the caller meets'),
  );
}

const isNames = isListOf(isString);

function toNames(returned: unknown, option: string, accepted: string): ReadonlySet<string> {
  const names = returned instanceof Set ? [...returned] : returned;
  if (!isNames(names)) throw wrongReturnValue(AUTH_OPTIONS, option, returned, accepted);
  return new Set(names as AuthNames);
}

/**
 * An operation with requirements never runs without a caller. In mode 'reject' a query whose values turned out to
 * require more is refused as a whole; other operations have changed data, or are events.
 */
function secured(
  { operation }: PreparedOperation,
  { formatErrors }: EngineSettings,
  mode: AuthSettings['mode'],
): NonNullable<OperationHooks['execute']> {
  const rejects = mode === 'reject' && operation.operation === 'query';
  return (inputs, next) => {
    const access = accessOf(inputs);
    if (access === undefined) throw new TypeError('An operation was executed without its caller');
    if (!rejects || access.isUnrestricted) return next(inputs);
    return settle(next(inputs), (outcome) => {
      if (!access.hasRefused) return outcome;
      outcome.release?.();
      outcome.rest?.return().catch(() => undefined);
      return refusal(access, inputs, formatErrors);
    });
  };
}

function refusal(
  access: Access,
  { origin }: ExecutionInputs,
  formatErrors: EngineSettings['formatErrors'],
): ExecutionOutcome {
  const error = access.error('a selected value');
  const body = JSON.stringify({ errors: formatErrors([error], origin) });
  return { kind: 'refused', body, errors: [error], status: statusOf(error) };
}

/** The checks of fields and values, which depend on the schema alone. */
const guards: Guards = {
  appliesTo: ({ access }) => access?.isUnrestricted !== true,
  fieldGuard(schema, parentType, field) {
    if (parentType.getFields()[field.name] !== field) return undefined;
    const requirements = requirementsOf(schema);
    const conditions = requirements.ofField(parentType, field);
    const coordinate = `${parentType.name}.${field.name}`;
    const hasInputs = hasGuardedArguments(requirements, field);
    if (conditions.length === 0 && !hasInputs) return undefined;
    return (inputs, node, operation) => {
      const error = check(inputs, conditions, coordinate);
      if (error !== undefined || !hasInputs || inputs.access?.isUnrestricted === true) return error;
      const given = withDefaults({ operation }, inputs.variableValues);
      return check(inputs, argumentConditions(requirements, field, node, given), coordinate);
    };
  },
  valueGuard(schema, type) {
    const conditions = requirementsOf(schema).ofType(type);
    return conditions.length === 0 ? undefined : (inputs) => check(inputs, conditions, 'this value');
  },
  authOf: (inputs) => new ResolverAuth(inputs),
};

function check(
  inputs: ExecutionInputs,
  conditions: readonly Condition[],
  subject: string,
): ReturnType<Access['error']> | undefined {
  const access = accessOf(inputs);
  if (access === undefined) return noCaller(subject);
  if (!access.denies(conditions)) return undefined;
  access.hasRefused = true;
  return access.error(subject);
}
