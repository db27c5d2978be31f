import type { GraphQLSchema, OperationDefinitionNode } from 'graphql';
import type { SchemaUsage, UsageClient, UsageReport } from '../../types/usage.ts';
import { type DeprecatedUse, deprecatedUses } from '../diagnostics/registry.ts';
import { observedOf } from '../execution/observed.ts';
import type { PreparedOperation } from '../execution/types.ts';
import { isObject, isString } from '../options/rules.ts';
import { addInputs, type Coordinate, type InputVariables, SchemaCoordinates } from './coordinates.ts';
import { dayOf, UsageCounts, type UsageTarget } from './report.ts';

const DAY = 24 * 60 * 60 * 1000;

/** Operations, and their coordinates together, that are counted before the counts are multiplied. */
const MAX_OPERATIONS = 10_000;
const MAX_COORDINATES = 500_000;

/** Milliseconds until counts that could not be written are written again, at least. */
const RETRY = 1000;

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
  readonly clientOf: ClientReader;
  /** Milliseconds. */
  readonly interval: number;
  readonly days: number;
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
    this.#sockets.set(websocket, this.#parts.clientOf(websocket, connectionParams));
  }

  /** Counts an operation that is about to be executed. `source` is its request or WebSocket. */
  count(
    prepared: PreparedOperation,
    variables: Readonly<Record<string, unknown>> | undefined,
    source: unknown,
  ): void {
    const now = Date.now();
    if (now >= this.#dayEnds) this.#beginDay(now);
    const given = this.#sockets.get(source as object) ?? this.#parts.clientOf(source as object, undefined);
    const observed = observedOf(prepared);
    if (observed !== undefined) observed.client = given;
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
    const schemaCoordinates = this.#schemas.get(schema) ?? new SchemaCoordinates(schema);
    this.#schemas.set(schema, schemaCoordinates);
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

  #schedule(delay = this.#parts.interval): void {
    const { report } = this.#parts;
    this.#timer ??= setTimeout(() => void this.flush().catch(report), delay).unref();
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
      this.#counts.keep(this.#parts.days);
      this.#schedule(Math.max(this.#parts.interval, RETRY));
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

/** Returns the client of a request, or of a WebSocket with the payload of `connection_init`. */
export type ClientReader = (
  source: object,
  connectionParams: Readonly<Record<string, unknown>> | undefined,
) => Client;

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

/** Reads the client that a request or a WebSocket names. */
export const readClient: ClientReader = (source, connectionParams) => {
  const { headers = {} } = source as { readonly headers?: Values };
  return fromValues(connectionParams ?? {}) ?? fromValues(headers) ?? UNNAMED;
};

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

/** Reads what the option `usage.client` returned; undefined for a value of another type. */
export function toClient(returned: unknown): Client | undefined {
  if (returned === undefined) return UNNAMED;
  const { name, version }: Partial<Record<keyof UsageClient, unknown>> = isObject(returned)
    ? returned
    : { name: returned };
  if (!isString(name) || name === '' || (version !== undefined && !isString(version))) return undefined;
  return createClient(name, version);
}

/** The clients of one day. */
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
