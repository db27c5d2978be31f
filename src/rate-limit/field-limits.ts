import {
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  isAbstractType,
  isCompositeType,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { coerceVariables } from '../core/admission.ts';
import type { PrepareParts } from '../core/extension.ts';
import { directivesOf, elementsOf, hasPath, wrongDirective } from '../execution/directives.ts';
import { fieldOf, OperationVariants, visitPlaces } from '../execution/document.ts';
import type { Guards, OperationCall, OperationHooks, PreparedOperation } from '../execution/types.ts';
import { clientAddress } from '../http/address.ts';
import { duration } from '../options/rules.ts';
import { CLIENT_LIMITS } from '../options/scopes.ts';
import { getOrCreate, isObject, isPositive, isString, isThenable, settle } from '../options/values.ts';
import { type BucketSize, type BucketsOf, secondsUntil } from './buckets.ts';
import { refuseField, refuseOperation, tooMany } from './refusal.ts';

type Field = GraphQLField<unknown, unknown>;

/** Who sends an operation. */
interface Client {
  readonly source: unknown;
  /** Undefined for a client without limits. */
  readonly key: string | undefined;
}

/** The buckets of clients, and the keys of clients; undefined for one without limits. */
export interface ClientBuckets {
  readonly bucketsOf: BucketsOf;
  readonly keyOf: (source: unknown, caller: OperationCall['caller']) => string | undefined;
}

/** One `@rateLimit` of a field. */
interface FieldLimit extends BucketSize {
  /** The coordinate and the arguments: the name of its buckets. */
  readonly name: string;
  /** `CALLER`, `ADDRESS`, or the path of an argument. */
  readonly by: string;
  readonly definition: Field;
}

const WINDOW = duration(60_000);

function readLimit(coordinate: string, definition: Field, given: unknown): FieldLimit {
  const { limit, window = WINDOW.fallback, by = 'CALLER' } = isObject(given) ? given : {};
  const fail = (name: string, accepted: string): TypeError =>
    wrongDirective(CLIENT_LIMITS, `@rateLimit of "${coordinate}"`, name, accepted);
  if (!isPositive(limit)) throw fail('limit', 'a whole number from 1');
  const milliseconds = WINDOW.read?.(window) ?? window;
  if (!isPositive(milliseconds)) throw fail('window', WINDOW.accepted);
  if (!isString(by) || !(by === 'CALLER' || by === 'ADDRESS' || hasPath(definition.args, by.split('.'))))
    throw fail('by', '"CALLER", "ADDRESS", or the path of an argument, such as "input.email"');
  const name = `${coordinate}:${limit}:${milliseconds}:${by}`;
  return { name, by, definition, limit, window: milliseconds };
}

/** Returns the limits of a field of a type. */
type LimitsOf = (type: GraphQLCompositeType, name: string) => readonly FieldLimit[];

const ofSchemas = new WeakMap<GraphQLSchema, LimitsOf>();
/** Of a schema without a limit, whose operations are not searched. */
const NO_LIMITS: LimitsOf = () => [];

/**
 * Returns the limits of the fields of a schema. A field of an object type has its own and those of its interfaces; a field of
 * an interface also those of all types that may be meant.
 *
 * @throws TypeError (code `ERR_OPTION`) for a wrong argument of a directive.
 */
export const limitsOf = (schema: GraphQLSchema): LimitsOf =>
  getOrCreate(ofSchemas, schema, () => {
    const own = new Map<string, readonly FieldLimit[]>();
    for (const { coordinate, field } of elementsOf(schema)) {
      if (field === undefined) continue;
      const uses = directivesOf(field, 'rateLimit').map((given) => readLimit(coordinate, field, given));
      if (uses.length > 0) own.set(coordinate, uses);
    }
    if (own.size === 0) return NO_LIMITS;
    const known = new Map<string, readonly FieldLimit[]>();
    return (type, name) =>
      getOrCreate(known, `${type.name}.${name}`, () => {
        const objects = isAbstractType(type) ? schema.getPossibleTypes(type) : [type];
        const types = new Set(objects.flatMap((each) => [each, ...each.getInterfaces()]));
        const limits = [...types].flatMap((each) => own.get(`${each.name}.${name}`) ?? []);
        // Libraries such as Pothos write a directive into both the SDL and the extensions of a field.
        return [...new Map(limits.map((limit) => [limit.name, limit])).values()];
      });
  });

/** The values of a path in arguments: several if it leads through a list, none if they are not given. */
function valuesAt(value: unknown, [name, ...path]: readonly string[]): readonly string[] {
  if (Array.isArray(value))
    return value.flatMap((item) => valuesAt(item, name === undefined ? [] : [name, ...path]));
  if (value === undefined || value === null) return [];
  if (name !== undefined) return isObject(value) ? valuesAt(value[name], path) : [];
  return [typeof value === 'object' ? JSON.stringify(value) : String(value)];
}

/** A limited field at one place of a result, which has a number. */
interface Use {
  readonly limit: FieldLimit;
  readonly place: number;
  readonly node: FieldNode;
}

/** Finds the limited fields of an operation. `limits.fields` bounds their number. */
function usesIn(operation: PreparedOperation, variable: (name: string) => unknown): readonly Use[] {
  const uses: Use[] = [];
  const places = new Map<string, number>();
  visitPlaces(operation, variable, 0, (type, node, above) => {
    const { alias, name } = node;
    const place = getOrCreate(places, `${above} ${(alias ?? name).value}`, () => places.size + 1);
    for (const limit of limitsOf(operation.schema)(type, name.value)) uses.push({ limit, place, node });
    const below = getNamedType(fieldOf(type, name.value)?.type);
    return { place, types: isCompositeType(below) ? [below] : [] };
  });
  return uses;
}

/** The memory of one use. */
const BYTES_PER_USE = 200;

/** Takes the tokens of the limited fields of an operation before it is executed. Undefined if it has none. */
export function prepareFields(
  prepared: PreparedOperation,
  { settings, account }: PrepareParts,
  { bucketsOf, keyOf }: ClientBuckets,
): OperationHooks | undefined {
  if (limitsOf(prepared.schema) === NO_LIMITS) return undefined;
  const { length } = usesIn(prepared, () => undefined);
  if (length === 0) return undefined;
  const variants = new OperationVariants(prepared, (variable) => usesIn(prepared, variable));
  account.charge(length * BYTES_PER_USE * variants.size);
  const { operation } = prepared.operation;
  return {
    admit(call) {
      const coerced = coerceVariables(prepared, call.variableValues, settings);
      // The execution refuses the operation for these errors.
      if (coerced.kind === 'error') return undefined;
      const uses = variants.of(coerced.values);
      const client = { source: call.source, key: keyOf(call.source, call.caller) };
      return settle(takeTokens(uses, coerced.variables, client, bucketsOf), (refused) => {
        if (refused.size > 0) call.refused = refused;
        // A subscription starts once and has many events.
        if (refused.size === 0 || operation !== 'subscription') return undefined;
        const seconds = Math.max(...refused.values());
        return refuseOperation(tooMany(requestedTooOften('The subscription'), seconds));
      });
    },
    // The result belongs to this client: a cache must neither answer with another one nor share it.
    around: (call, { execute }, next) =>
      operation === 'query' && call.refused !== undefined ? execute(call) : next(),
  };
}

/** Takes the tokens. The first fields of a bucket get those that it has. Returns the seconds to wait for the others. */
function takeTokens(
  uses: readonly Use[],
  variables: Readonly<Record<string, unknown>>,
  client: Client,
  bucketsOf: BucketsOf,
): MaybePromise<ReadonlyMap<FieldNode, number>> {
  /** The fields that take of each bucket; those that are merged, which have one place, take together. */
  const wanted = new Map<string, { limit: FieldLimit; fields: Map<string, FieldNode[]> }>();
  for (const { limit, place, node } of uses)
    for (const [index, key] of keysOf(limit, node, variables, client).entries()) {
      const { fields } = getOrCreate(wanted, `${limit.name}:${key}`, () => ({ limit, fields: new Map() }));
      getOrCreate(fields, `${index} ${place}`, () => []).push(node);
    }
  const refused = new Map<FieldNode, number>();
  const steps = [...wanted].map(([key, { limit, fields }]) =>
    settle(bucketsOf(limit).take(key, fields.size, 1), (taken) => {
      const seconds = secondsUntil(1, taken, limit);
      for (const node of [...fields.values()].slice(taken.taken).flat())
        refused.set(node, Math.max(seconds, refused.get(node) ?? 0));
    }),
  );
  return steps.some(isThenable) ? Promise.all(steps).then(() => refused) : refused;
}

/** The keys of the buckets that a field takes a token from: none if its arguments are wrong. */
function keysOf(
  { by, definition }: FieldLimit,
  node: FieldNode,
  variables: Readonly<Record<string, unknown>>,
  { source, key }: Client,
): readonly string[] {
  if (by === 'ADDRESS') return [clientAddress(source)];
  const ofCaller = key === undefined ? [] : [key];
  if (by === 'CALLER') return ofCaller;
  try {
    const values = valuesAt(getArgumentValues(definition, node, variables), by.split('.'));
    return values.length === 0 ? ofCaller : values.map((value) => `argument ${value}`);
  } catch {
    return [];
  }
}

const requestedTooOften = (subject: string): string => `${subject} was requested too often`;

/** Leaves out the refused fields. */
export const fieldGuards: Guards = {
  appliesTo: ({ refused }) => refused !== undefined,
  fieldGuard(schema, parentType, { name }) {
    if (limitsOf(schema)(parentType, name).length === 0) return undefined;
    const reason = requestedTooOften(`The field "${parentType.name}.${name}"`);
    return ({ refused }, node) => {
      const retryAfter = refused?.get(node);
      return retryAfter === undefined ? undefined : refuseField(reason, retryAfter);
    };
  },
};
