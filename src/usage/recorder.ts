import {
  type ASTNode,
  type FragmentDefinitionNode,
  type GraphQLArgument,
  type GraphQLEnumValue,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isInputObjectType,
  isInputType,
  isSpecifiedScalarType,
  type OperationDefinitionNode,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from 'graphql';
import type { SchemaUsage, UsageClient, UsageReport } from '../../types/usage.ts';
import { type DeprecatedUse, deprecatedUses } from '../diagnostics/registry.ts';
import type { PreparedOperation, ValidatedOperation } from '../execution/types.ts';
import { getOrCreate, isObject, isString } from '../options/values.ts';
import { dayOf, UsageCounts, type UsageTarget } from './report.ts';

const DAY = 24 * 60 * 60 * 1000;

/** Operations, and their coordinates together, that are counted before the counts are multiplied. */
const MAX_OPERATIONS = 10_000;
const MAX_COORDINATES = 500_000;

/** Milliseconds until new counts are written, and until they are written again after a failure. */
const INTERVAL = 60_000;

/** Deprecated coordinates with their clients; the oldest ones become uses of `_OTHER`. */
const MAX_DEPRECATED = 1000;

interface Counter {
  count: number;
  /** Milliseconds since 1970. */
  last: number;
}

/** The counts of one operation of a document, by client. Its document may leave the document cache. */
interface OperationUsage {
  readonly coordinates: ReadonlySet<Coordinate>;
  readonly inputs: InputVariables | undefined;
  readonly counters: Map<Client, Counter>;
}

/** What a recorder needs. */
interface RecorderParts {
  readonly target: UsageTarget;
  /** Reports counts that could not be written; they are written later. */
  report(error: Error): void;
}

/**
 * Counts the operations of one handler. A request increments one counter; the coordinates of its document are counted
 * when the counts are read, or there are too many of them.
 */
export class UsageRecorder implements SchemaUsage {
  readonly #parts: RecorderParts;
  readonly #schemas = new WeakMap<GraphQLSchema, SchemaCoordinates>();
  /** By the node of the operation: an observed operation is another object in each request. */
  readonly #usages = new WeakMap<OperationDefinitionNode, OperationUsage>();
  readonly #active = new Set<OperationUsage>();
  #activeCoordinates = 0;
  readonly #sockets = new WeakMap<object, Client>();
  readonly #deprecated = new Map<string, DeprecatedUse>();
  #counts = new UsageCounts();
  #clients = new DailyClients();
  #day = '';
  #dayEnds = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(parts: RecorderParts) {
    this.#parts = parts;
    deprecatedUses.add(this, () => this.#readDeprecated());
  }

  /** Reads the client of a WebSocket, whose operations it names. */
  open(websocket: object, connectionParams: Readonly<Record<string, unknown>>): void {
    this.#sockets.set(websocket, readClient(websocket, connectionParams));
  }

  /**
   * Counts an operation that is about to be executed, and returns its client: the one that is known, or that of its
   * request or WebSocket.
   */
  count(
    prepared: PreparedOperation,
    variables: Readonly<Record<string, unknown>> | undefined,
    source: unknown,
    known?: Client,
  ): Client {
    const now = Date.now();
    if (now >= this.#dayEnds) this.#beginDay(now);
    const given = known ?? this.#sockets.get(source as object) ?? readClient(source as object);
    const client = this.#clients.of(given);
    const usage = this.#usages.get(prepared.operation) ?? this.#add(prepared);
    let counter = usage.counters.get(client);
    if (counter === undefined) counter = this.#begin(usage, client);
    counter.count++;
    counter.last = now;
    if (usage.inputs !== undefined && variables !== undefined) {
      const found = new Set<Coordinate>();
      addInputs(usage.inputs, variables, found);
      // Those that the document has too are counted with it.
      const others = [...found].filter((coordinate) => !usage.coordinates.has(coordinate));
      this.#count(others, client, { count: 1, last: now });
    }
    return given;
  }

  flush(): Promise<void> {
    const writing = this.#writing.then(() => this.#write());
    this.#writing = writing.catch(() => undefined);
    return writing;
  }

  async report(): Promise<UsageReport> {
    await this.flush();
    return (await this.#parts.target.read()).toJSON();
  }

  #add(prepared: PreparedOperation): OperationUsage {
    const { schema, operation } = prepared;
    const schemaCoordinates = getOrCreate(this.#schemas, schema, () => new SchemaCoordinates(schema));
    const usage = {
      coordinates: schemaCoordinates.ofOperation(prepared),
      inputs: schemaCoordinates.variablesOf(operation),
      counters: new Map<Client, Counter>(),
    };
    this.#usages.set(operation, usage);
    return usage;
  }

  /** Begins to count an operation for a client. */
  #begin(usage: OperationUsage, client: Client): Counter {
    if (usage.counters.size === 0) {
      if (this.#active.size >= MAX_OPERATIONS || this.#activeCoordinates >= MAX_COORDINATES) this.#multiply();
      this.#active.add(usage);
    }
    this.#activeCoordinates += usage.coordinates.size;
    const counter = { count: 0, last: 0 };
    usage.counters.set(client, counter);
    this.#schedule();
    return counter;
  }

  #schedule(): void {
    const { report } = this.#parts;
    this.#timer ??= setTimeout(() => void this.flush().catch(report), INTERVAL).unref();
  }

  #beginDay(now: number): void {
    this.#multiply();
    this.#day = dayOf(now);
    this.#dayEnds = (Math.floor(now / DAY) + 1) * DAY;
    this.#clients = new DailyClients();
  }

  /** Adds the counts of operations to those of their coordinates. */
  #multiply(): void {
    for (const { coordinates, counters } of this.#active) {
      for (const [client, counter] of counters) {
        this.#counts.of(this.#day, client.key).operations += counter.count;
        this.#count(coordinates, client, counter);
      }
      counters.clear();
    }
    this.#active.clear();
    this.#activeCoordinates = 0;
  }

  #count(coordinates: Iterable<Coordinate>, client: Client, { count, last }: Counter): void {
    const counts = this.#counts.of(this.#day, client.key);
    for (const { text, isDeprecated } of coordinates) {
      counts.add(text, count);
      if (isDeprecated) this.#countDeprecated(text, client.key, { count, last });
    }
  }

  #countDeprecated(coordinate: string, client: string, { count, last }: Counter): void {
    const key = `${coordinate} ${client}`;
    const earlier = this.#deprecated.get(key);
    this.#deprecated.delete(key);
    this.#deprecated.set(key, {
      coordinate,
      client,
      count: count + (earlier?.count ?? 0),
      last: Math.max(last, earlier?.last ?? 0),
    });
    if (this.#deprecated.size <= MAX_DEPRECATED) return;
    for (const [oldest, use] of this.#deprecated) {
      if (use.client === OTHER.key) continue;
      this.#deprecated.delete(oldest);
      this.#countDeprecated(use.coordinate, OTHER.key, use);
      return;
    }
  }

  #readDeprecated(): readonly DeprecatedUse[] {
    this.#multiply();
    return [...this.#deprecated.values()];
  }

  async #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#multiply();
    const counts = this.#counts;
    if (counts.days.size === 0) return;
    this.#counts = new UsageCounts();
    try {
      await this.#parts.target.add(counts);
    } catch (error) {
      this.#counts.add(counts);
      this.#counts.keepRecent();
      this.#schedule();
      throw error;
    }
  }
}

/** A client by its key: its name and version. */
interface Client {
  readonly name: string;
  readonly version: string | undefined;
  readonly key: string;
}

const clientNamed = (name: string): Client => ({ name, version: undefined, key: name });
/** Operations whose client has no name. */
const UNNAMED = clientNamed('_UNNAMED');
/** Further clients, and those with a name that is too long. */
const OTHER: Client = clientNamed('_OTHER');

/** The clients of one day that are counted separately: anybody can invent names. */
const MAX_CLIENTS = 100;
const ACCEPTED = /^[^\p{Cc}]{1,100}$/u;

/** The names of headers, and of members of `connection_init`: of Hive and Cosmo, and of Apollo. */
const NAMES = [
  ['graphql-client-name', 'graphql-client-version'],
  ['apollographql-client-name', 'apollographql-client-version'],
] as const;

type Values = Readonly<Record<string, unknown>>;

/** Reads the client that a request, or a WebSocket with the payload of `connection_init`, names. */
function readClient(source: object, connectionParams: Values = {}): Client {
  const { headers = {} } = source as { readonly headers?: Values };
  return fromValues(connectionParams) ?? fromValues(headers) ?? UNNAMED;
}

function fromValues(values: Values): Client | undefined {
  for (const [nameOf, versionOf] of NAMES) {
    const name = Object.hasOwn(values, nameOf) ? values[nameOf] : undefined;
    if (isString(name) && name !== '') return createClient(name, values[versionOf]);
  }
  return undefined;
}

function createClient(name: string, version: unknown): Client {
  if (version === undefined || version === '') return ACCEPTED.test(name) ? clientNamed(name) : OTHER;
  if (!isString(version) || !ACCEPTED.test(name) || !ACCEPTED.test(version)) return OTHER;
  return { name, version, key: `${name}@${version}` };
}

/** The client that the option `caller` names. */
export const toClient = (given: string | UsageClient): Client =>
  isString(given) ? createClient(given, undefined) : createClient(given.name, given.version);

class DailyClients {
  readonly #byKey = new Map<string, Client>([
    [UNNAMED.key, UNNAMED],
    [OTHER.key, OTHER],
  ]);

  /** Returns one object per client, and `_OTHER` for further ones. */
  of(given: Client): Client {
    const known = this.#byKey.get(given.key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= MAX_CLIENTS) return OTHER;
    this.#byKey.set(given.key, given);
    return given;
  }
}

/** A coordinate of a schema, such as `User.email` or `Query.users(first:)`. */
interface Coordinate {
  readonly text: string;
  readonly isDeprecated: boolean;
}

type Element = Pick<
  GraphQLField<unknown, unknown> | GraphQLArgument | GraphQLInputField | GraphQLEnumValue,
  'deprecationReason'
>;

/** A named type whose values in variables have coordinates, with those of its fields or values. */
interface InputType {
  readonly members: ReadonlyMap<string, InputMember>;
  readonly isEnum: boolean;
}

interface InputMember {
  readonly coordinate: Coordinate;
  /** Undefined if its values have no coordinates. */
  readonly type: InputType | undefined;
}

/** The variables of an operation whose values have coordinates, by name. */
type InputVariables = readonly (readonly [name: string, type: InputType])[];

/** The coordinates of one schema. Each is one object, however many documents contain it. */
class SchemaCoordinates {
  readonly #schema: GraphQLSchema;
  readonly #byText = new Map<string, Coordinate>();
  readonly #inputTypes = new Map<GraphQLNamedType, InputType>();

  constructor(schema: GraphQLSchema) {
    this.#schema = schema;
  }

  #of(text: string, element?: Element): Coordinate {
    const isDeprecated = element?.deprecationReason != null;
    return getOrCreate(this.#byText, text, () => ({ text, isDeprecated }));
  }

  /**
   * Returns what an operation and its fragments name: fields of the types that the document names, also abstract ones;
   * arguments, input fields and enum values that it gives; directives; types of conditions and variables. Without
   * introspection.
   */
  ofOperation({ operation, document }: ValidatedOperation): ReadonlySet<Coordinate> {
    const found = new Set<Coordinate>();
    const definitions: (OperationDefinitionNode | FragmentDefinitionNode)[] = [operation];
    for (const definition of definitions) {
      this.#visit(definition, found, (name) => {
        const fragment = document.definitions.find(
          (node) => node.kind === 'FragmentDefinition' && node.name.value === name,
        ) as FragmentDefinitionNode | undefined;
        if (fragment !== undefined && !definitions.includes(fragment)) definitions.push(fragment);
      });
    }
    return found;
  }

  #visit(definition: ASTNode, found: Set<Coordinate>, onSpread: (name: string) => void): void {
    const info = new TypeInfo(this.#schema);
    const add = (text: string, element?: Element | null): void =>
      void found.add(this.#of(text, element ?? undefined));
    visit(
      definition,
      visitWithTypeInfo(info, {
        Field: ({ name }) => {
          if (name.value.startsWith('__')) return false;
          add(`${info.getParentType()?.name}.${name.value}`, info.getFieldDef());
          return undefined;
        },
        Argument: ({ name }) => {
          const directive = info.getDirective();
          const owner = directive
            ? `@${directive.name}`
            : `${info.getParentType()?.name}.${info.getFieldDef()?.name}`;
          add(`${owner}(${name.value}:)`, info.getArgument());
        },
        Directive: ({ name }) => add(`@${name.value}`),
        ObjectField: ({ name }) => {
          const parent = getNamedType(info.getParentInputType());
          if (isInputObjectType(parent)) add(`${parent.name}.${name.value}`, parent.getFields()[name.value]);
        },
        EnumValue: ({ value }) => {
          const type = getNamedType(info.getInputType());
          if (isEnumType(type)) add(`${type.name}.${value}`, type.getValue(value));
        },
        NamedType: ({ name }) => {
          const type = this.#schema.getType(name.value);
          if (type !== undefined && !isSpecifiedScalarType(type)) add(name.value);
        },
        FragmentSpread: ({ name }) => onSpread(name.value),
      }),
    );
  }

  /** Returns the variables whose values have coordinates; undefined if there are none. */
  variablesOf({ variableDefinitions = [] }: OperationDefinitionNode): InputVariables | undefined {
    const variables = variableDefinitions.flatMap(({ variable, type }) => {
      // The overloads of `typeFromAST` have no common one.
      const given = typeFromAST(this.#schema, type as Parameters<typeof typeFromAST>[1]);
      const known = isInputType(given) ? this.#inputType(getNamedType(given)) : undefined;
      return known === undefined ? [] : [[variable.name.value, known] as const];
    });
    return variables.length === 0 ? undefined : variables;
  }

  #inputType(type: GraphQLNamedType): InputType | undefined {
    const known = this.#inputTypes.get(type);
    if (known !== undefined) return known;
    const members = new Map<string, InputMember>();
    const isEnum = isEnumType(type);
    const input = { members, isEnum };
    if (isEnum) {
      this.#inputTypes.set(type, input);
      for (const value of type.getValues()) {
        members.set(value.name, {
          coordinate: this.#of(`${type.name}.${value.name}`, value),
          type: undefined,
        });
      }
      return input;
    }
    if (!isInputObjectType(type)) return undefined;
    // Before its fields, which may have the same type.
    this.#inputTypes.set(type, input);
    for (const field of Object.values(type.getFields())) {
      const coordinate = this.#of(`${type.name}.${field.name}`, field);
      members.set(field.name, { coordinate, type: this.#inputType(getNamedType(field.type)) });
    }
    return input;
  }
}

/** Adds the input fields and enum values in the variables of a request. Reads names of the schema only. */
function addInputs(
  types: InputVariables,
  variables: Readonly<Record<string, unknown>>,
  found: Set<Coordinate>,
): void {
  const pending: [InputType, unknown][] = [];
  for (const [name, type] of types) {
    if (Object.hasOwn(variables, name)) pending.push([type, variables[name]]);
  }
  // Not recursive: clients choose the depth.
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const [type, value] = next;
    if (Array.isArray(value)) {
      for (const item of value) pending.push([type, item]);
    } else if (type.isEnum) {
      const member = typeof value === 'string' ? type.members.get(value) : undefined;
      if (member !== undefined) found.add(member.coordinate);
    } else if (isObject(value)) {
      for (const name of Object.keys(value)) {
        const member = type.members.get(name);
        if (member === undefined || value[name] === undefined) continue;
        found.add(member.coordinate);
        if (member.type !== undefined) pending.push([member.type, value[name]]);
      }
    }
  }
}
