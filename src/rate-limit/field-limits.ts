import {
  type DirectiveNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  isAbstractType,
  isCompositeType,
  isUnionType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { type CoercedValues, coerceVariables } from '../core/admission.ts';
import type { PrepareParts } from '../core/extension.ts';
import { directivesOf } from '../execution/directives.ts';
import { fragmentsOf, isIncluded } from '../execution/document.ts';
import type { Guards, OperationCall, OperationHooks, PreparedOperation } from '../execution/types.ts';
import { clientAddress } from '../http/address.ts';
import { duration, optionError } from '../options/rules.ts';
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

const NONE: readonly FieldLimit[] = [];
const WINDOW = duration(60_000);

/** The limits of the fields of a schema. */
class SchemaLimits {
  readonly #schema: GraphQLSchema;
  readonly #own = new Map<Field | undefined, readonly FieldLimit[]>();
  readonly #names = new Set<string>();

  /** @throws TypeError (code `ERR_OPTION`) for a wrong argument of a directive. */
  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
    for (const type of Object.values(schema.getTypeMap()))
      for (const field of isCompositeType(type) && !isUnionType(type)
        ? Object.values(type.getFields())
        : []) {
        const coordinate = `${type.name}.${field.name}`;
        const uses = directivesOf(field, 'rateLimit').map((given) => readLimit(coordinate, field, given));
        if (uses.length === 0) continue;
        // Libraries such as Pothos write a directive into both the SDL and the extensions of a field.
        this.#own.set(field, [...new Map(uses.map((limit) => [limit.name, limit])).values()]);
        this.#names.add(field.name);
      }
  }

  get isEmpty(): boolean {
    return this.#own.size === 0;
  }

  /**
   * The limits of a field of an object type: its own, and those of its interfaces. For a field of an interface also those of
   * all types that may be meant.
   */
  of(type: GraphQLCompositeType, name: string): readonly FieldLimit[] {
    if (!this.#names.has(name)) return NONE;
    const objects = isAbstractType(type) ? this.#schema.getPossibleTypes(type) : [type];
    const types = new Set(objects.flatMap((each) => [each, ...each.getInterfaces()]));
    return [...types].flatMap((each) => this.#own.get(each.getFields()[name]) ?? NONE);
  }
}

const known = new WeakMap<GraphQLSchema, SchemaLimits>();

export const limitsOf = (schema: GraphQLSchema): SchemaLimits =>
  getOrCreate(known, schema, () => new SchemaLimits(schema));

function readLimit(coordinate: string, definition: Field, given: unknown): FieldLimit {
  const { limit, window = WINDOW.fallback, by = 'CALLER' } = isObject(given) ? given : {};
  const fail = (name: string, accepted: string): TypeError =>
    optionError(
      CLIENT_LIMITS,
      `the argument "${name}" of @rateLimit of "${coordinate}" has a wrong value; accepted: ${accepted}`,
    );
  if (!isPositive(limit)) throw fail('limit', 'a whole number from 1');
  const milliseconds = WINDOW.read?.(window) ?? window;
  if (!isPositive(milliseconds)) throw fail('window', WINDOW.accepted);
  const isArgument = isString(by) && definition.args.some(({ name }) => name === by.split('.')[0]);
  if (!isString(by) || !(by === 'CALLER' || by === 'ADDRESS' || isArgument))
    throw fail('by', `"CALLER", "ADDRESS", or the path of an argument, such as "input.email"`);
  const name = `${coordinate}:${limit}:${milliseconds}:${by}`;
  return { name, by, definition, limit, window: milliseconds };
}

/** A limited field of an operation at one place of its result: all nodes with the same response keys. */
interface Use {
  readonly limits: readonly FieldLimit[];
  readonly nodes: { readonly node: FieldNode; readonly directives: readonly DirectiveNode[] }[];
}

/**
 * Finds the limited fields of an operation. Each place in the result is one use, so the work is that of the document without
 * fragments, which `limits.fields` bounds.
 */
function usesOf({ schema, document, operation }: PreparedOperation, limits: SchemaLimits): readonly Use[] {
  const uses = new Map<string, Use>();
  const fragments = fragmentsOf(document);
  const visit = (
    set: SelectionSetNode,
    type: GraphQLCompositeType,
    place: string,
    above: readonly DirectiveNode[],
  ): void => {
    for (const node of set.selections) {
      const directives = [...above, ...(node.directives ?? [])];
      if (node.kind !== Kind.FIELD) {
        const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value);
        const condition = fragment?.typeCondition && schema.getType(fragment.typeCondition.name.value);
        if (fragment !== undefined)
          visit(fragment.selectionSet, isCompositeType(condition) ? condition : type, place, directives);
        continue;
      }
      const name = node.name.value;
      const definition = isUnionType(type) ? undefined : type.getFields()[name];
      if (definition === undefined) continue;
      const key = `${place} ${node.alias?.value ?? name}`;
      const found = limits.of(type, name);
      if (found.length > 0)
        getOrCreate(uses, `${key} ${type.name}.${name}`, () => ({ limits: found, nodes: [] })).nodes.push({
          node,
          directives,
        });
      const inner = getNamedType(definition.type);
      if (node.selectionSet !== undefined && isCompositeType(inner))
        visit(node.selectionSet, inner, key, directives);
    }
  };
  const root = schema.getRootType(operation.operation);
  if (root) visit(operation.selectionSet, root, '', []);
  return [...uses.values()];
}

/** The values of a path in arguments: several if it leads through a list, none if they are not given. */
function valuesAt(value: unknown, [name, ...path]: readonly string[]): readonly string[] {
  if (Array.isArray(value))
    return value.flatMap((item) => valuesAt(item, name === undefined ? [] : [name, ...path]));
  if (value === undefined || value === null) return [];
  if (name !== undefined) return isObject(value) ? valuesAt(value[name], path) : [];
  return [typeof value === 'object' ? JSON.stringify(value) : String(value)];
}

/** The memory of one use. */
const BYTES_PER_USE = 300;

/** Takes the tokens of the limited fields of an operation before it is executed. Undefined if it has none. */
export function prepareFields(
  prepared: PreparedOperation,
  { settings, account }: PrepareParts,
  { bucketsOf, keyOf }: ClientBuckets,
): OperationHooks | undefined {
  const limits = limitsOf(prepared.schema);
  const uses = limits.isEmpty ? [] : usesOf(prepared, limits);
  if (uses.length === 0) return undefined;
  account.charge(uses.length * BYTES_PER_USE);
  const { operation } = prepared.operation;
  return {
    admit(call) {
      const variables = coerceVariables(prepared, call.variableValues, settings);
      // The execution refuses the operation for these errors.
      if (variables.kind === 'error') return undefined;
      const client = { source: call.source, key: keyOf(call.source, call.caller) };
      return settle(refusedBy(demandsOf(uses, variables, client), bucketsOf), (refused) => {
        if (refused.size === 0) return undefined;
        // An operation starts once and has many events.
        if (operation === 'subscription')
          return refuseOperation(
            tooMany(requestedTooOften('The subscription'), Math.max(...refused.values())),
          );
        call.refused = refused;
        return undefined;
      });
    },
    // The result belongs to this client: a cache must neither answer with another one nor share it.
    around: (call, { execute }, next) =>
      operation === 'query' && call.refused !== undefined ? execute(call) : next(),
  };
}

/** The tokens that an operation wants of one bucket, each for a use. */
interface Demand {
  readonly limit: FieldLimit;
  readonly uses: Use[];
}

/** Returns what an operation wants of each bucket, by the keys of the buckets. */
function demandsOf(
  uses: readonly Use[],
  { values, variables }: CoercedValues,
  client: Client,
): ReadonlyMap<string, Demand> {
  const demands = new Map<string, Demand>();
  for (const use of uses) {
    const first = use.nodes.find(({ directives }) => isIncluded(directives, (name) => values[name] === true));
    if (first === undefined) continue;
    for (const limit of use.limits)
      for (const key of keysOf(limit, first.node, variables, client))
        getOrCreate(demands, `${limit.name}:${key}`, () => ({ limit, uses: [] })).uses.push(use);
  }
  return demands;
}

/** The keys of the buckets that a field takes a token from: none if its arguments are wrong. */
function keysOf(
  { by, definition }: FieldLimit,
  node: FieldNode,
  variables: CoercedValues['variables'],
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

/** Takes the tokens. The first uses of a bucket get those that it has. Returns the seconds to wait for the others. */
function refusedBy(
  demands: ReadonlyMap<string, Demand>,
  bucketsOf: BucketsOf,
): MaybePromise<ReadonlyMap<FieldNode, number>> {
  const refused = new Map<FieldNode, number>();
  const steps = [...demands].map(([key, { limit, uses }]) =>
    settle(bucketsOf(limit).take(key, uses.length, 1), (taken) => {
      const seconds = secondsUntil(1, taken, limit);
      for (const { nodes } of uses.slice(taken.taken))
        for (const { node } of nodes) refused.set(node, Math.max(seconds, refused.get(node) ?? 0));
    }),
  );
  return steps.some(isThenable) ? Promise.all(steps).then(() => refused) : refused;
}

const requestedTooOften = (subject: string): string => `${subject} was requested too often`;

/** Leaves out the refused fields. */
export const fieldGuards: Guards = {
  appliesTo: ({ refused }) => refused !== undefined,
  fieldGuard(schema, parentType, { name }) {
    if (limitsOf(schema).of(parentType, name).length === 0) return undefined;
    const reason = requestedTooOften(`The field "${parentType.name}.${name}"`);
    return ({ refused }, node) => {
      const retryAfter = refused?.get(node);
      return retryAfter === undefined ? undefined : refuseField(reason, retryAfter);
    };
  },
};
