import {
  type DirectiveNode,
  type FieldNode,
  type GraphQLCompositeType,
  GraphQLError,
  type GraphQLField,
  type GraphQLSchema,
  getArgumentValues,
  getNamedType,
  getVariableValues,
  isAbstractType,
  isCompositeType,
  isUnionType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import { directivesOf } from '../execution/directives.ts';
import { fragmentsOf, isIncluded } from '../execution/document.ts';
import type {
  Guards,
  MemoryAccount,
  OperationCall,
  OperationHooks,
  PreparedOperation,
  RequestError,
} from '../execution/types.ts';
import { duration, optionError } from '../options/rules.ts';
import { CLIENT_LIMITS } from '../options/scopes.ts';
import { getOrCreate, isObject, isPositive, isString, settle } from '../options/values.ts';
import { type BucketSize, type Buckets, boundedKey, secondsUntil } from './buckets.ts';

type Field = GraphQLField<unknown, unknown>;

/** One `@rateLimit` of a field. */
interface FieldLimit extends BucketSize {
  /** The coordinate and the arguments: the name of its buckets. */
  readonly name: string;
  readonly coordinate: string;
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
        const limits = directivesOf(field, 'rateLimit').map((given) =>
          readLimit(`${type.name}.${field.name}`, field, given),
        );
        if (limits.length === 0) continue;
        this.#own.set(field, limits);
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
  return { name, coordinate, by, definition, limit, window: milliseconds };
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

/** The result of `getVariableValues`: graphql 17 nests the values. */
interface CoercionResult {
  readonly errors?: readonly GraphQLError[];
  readonly coerced?: Readonly<Record<string, unknown>>;
  readonly variableValues?: { readonly coerced: Readonly<Record<string, unknown>> };
}

/** The values of a path in arguments: several if it leads through a list, none if they are not given. */
function valuesAt(value: unknown, [name, ...path]: readonly string[]): readonly string[] {
  if (Array.isArray(value))
    return value.flatMap((item) => valuesAt(item, name === undefined ? [] : [name, ...path]));
  if (value === undefined || value === null) return [];
  if (name !== undefined) return isObject(value) ? valuesAt(value[name], path) : [];
  return [typeof value === 'object' ? JSON.stringify(value) : String(value)];
}

/** The tokens that an operation wants of one bucket, each for a use. */
interface Demand {
  readonly limit: FieldLimit;
  readonly uses: Use[];
}

/** The memory of one use. */
const BYTES_PER_USE = 300;

/** The parts of `clientLimits` that fields need. */
interface FieldServices {
  bucketsOf(size: BucketSize): Buckets;
  readonly clients: {
    /** The key of a client; null if it has no limits. */
    keyOf(source: unknown): MaybePromise<string | null>;
    addressOf(source: object): string;
  };
  /** The seconds to wait while the buckets are unavailable. */
  readonly unavailable: number;
}

/** Takes the tokens of the limited fields of an operation before it is executed. Undefined if it has none. */
export function prepareFields(
  prepared: PreparedOperation,
  account: MemoryAccount,
  services: FieldServices,
): OperationHooks | undefined {
  const limits = limitsOf(prepared.schema);
  const uses = limits.isEmpty ? [] : usesOf(prepared, limits);
  if (uses.length === 0) return undefined;
  account.charge(uses.length * BYTES_PER_USE);
  const { operation } = prepared.operation;
  const onRefused = (call: OperationCall, refused: ReadonlyMap<FieldNode, number>) => {
    if (refused.size === 0) return undefined;
    // An operation starts once and has many events.
    if (operation === 'subscription') return refusedOperation(refused);
    call.refused = refused;
    return undefined;
  };
  return {
    admit: (call) =>
      settle(services.clients.keyOf(call.source), (key) =>
        settle(
          refusedBy(
            demandsOf(prepared, uses, call, {
              caller: key,
              address: () => services.clients.addressOf(Object(call.source)),
            }),
            services,
          ),
          (refused) => onRefused(call, refused),
        ),
      ),
    // The result belongs to this client: a cache must neither answer with another one nor share it.
    around: (call, { execute }, next) =>
      operation === 'query' && call.refused !== undefined ? execute(call) : next(),
  };
}

function demandsOf(
  { schema, operation }: PreparedOperation,
  uses: readonly Use[],
  { variableValues }: OperationCall,
  client: Omit<KeyParts, 'variables'>,
): ReadonlyMap<string, Demand> {
  const demands = new Map<string, Demand>();
  const definitions = operation.variableDefinitions ?? [];
  const result: CoercionResult = getVariableValues(schema, definitions, variableValues ?? {});
  // The execution refuses the operation for these errors.
  if (result.errors !== undefined && result.errors.length > 0) return demands;
  // What `getArgumentValues` of the same version of graphql takes.
  const variables = result.coerced ?? result.variableValues ?? {};
  const values = result.coerced ?? result.variableValues?.coerced ?? {};
  for (const use of uses) {
    const first = use.nodes.find(({ directives }) => isIncluded(directives, (name) => values[name] === true));
    if (first === undefined) continue;
    for (const limit of use.limits)
      for (const key of keysOf(limit, first.node, { ...client, variables }))
        getOrCreate(demands, boundedKey(`${limit.name}:${key}`), () => ({ limit, uses: [] })).uses.push(use);
  }
  return demands;
}

interface KeyParts {
  readonly variables: Readonly<Record<string, unknown>>;
  readonly caller: string | null;
  address(): string;
}

/** The keys of the buckets that a field takes a token from: none for a client without limits, or with wrong arguments. */
function keysOf(
  { by, definition }: FieldLimit,
  node: FieldNode,
  { variables, caller, address }: KeyParts,
): readonly string[] {
  const ofCaller = caller === null ? [] : [`caller ${caller}`];
  if (by === 'CALLER') return ofCaller;
  if (by === 'ADDRESS') return caller === null ? [] : [`address ${address()}`];
  let values: readonly string[];
  try {
    values = valuesAt(getArgumentValues(definition, node, variables), by.split('.'));
  } catch {
    return [];
  }
  return values.length === 0 ? ofCaller : values.map((value) => `argument ${value}`);
}

/** Takes the tokens. The first uses of a bucket get those that it has. */
function refusedBy(
  demands: ReadonlyMap<string, Demand>,
  { bucketsOf, unavailable }: FieldServices,
): MaybePromise<ReadonlyMap<FieldNode, number>> {
  const refused = new Map<FieldNode, number>();
  const steps = [...demands].map(([key, { limit, uses }]) =>
    settle(bucketsOf(limit).take(key, uses.length, 1), (taken) => {
      if (taken === 'open') return;
      const [granted, seconds] =
        taken === 'closed' ? [0, unavailable] : [taken.taken, secondsUntil(1, taken, limit)];
      for (const { nodes } of uses.slice(granted))
        for (const { node } of nodes) refused.set(node, Math.max(seconds, refused.get(node) ?? 0));
    }),
  );
  const waits = steps.filter((step) => step !== undefined);
  return waits.length === 0 ? refused : Promise.all(waits).then(() => refused);
}

const rateLimited = (subject: string, retryAfter: number, http?: object): GraphQLError =>
  new GraphQLError(`${subject} was requested too often; retry after ${retryAfter} s`, {
    extensions: { code: 'RATE_LIMITED', retryAfter, ...(http && { http }) },
  });

function refusedOperation(refused: ReadonlyMap<FieldNode, number>): RequestError {
  const retryAfter = Math.max(...refused.values());
  const http = { status: 429, headers: { 'retry-after': String(retryAfter) } };
  return { kind: 'error', errors: [rateLimited('The subscription', retryAfter, http)], status: 429 };
}

/** Leaves out the refused fields. */
export const fieldGuards: Guards = {
  appliesTo: ({ refused }) => refused !== undefined,
  fieldGuard(schema, parentType, { name }) {
    if (limitsOf(schema).of(parentType, name).length === 0) return undefined;
    return ({ refused }, node) => {
      const retryAfter = refused?.get(node);
      return retryAfter === undefined
        ? undefined
        : rateLimited(`The field "${parentType.name}.${name}"`, retryAfter);
    };
  },
};
