import { subscribe } from 'node:diagnostics_channel';
import type { OperationDefinitionNode, SelectionNode } from 'graphql';
import type {
  DeprecatedFigures,
  ErrorFigures,
  InspectFigures,
  Latencies,
  OperationFigures,
} from '../../types/inspect.ts';
import type { ResponseEvent } from '../diagnostics/events.ts';
import { readError } from '../diagnostics/logging.ts';
import { deprecatedUses, offeredTools, readAll } from '../diagnostics/registry.ts';
import { readGauges, readProcessStats } from '../diagnostics/stats.ts';
import type { ObservedOperation, ObservedResult } from '../execution/observed.ts';
import type { PreparedOperation } from '../execution/types.ts';
import { CLIENT_ABORTED } from '../http/body.ts';
import { getOrCreate } from '../options/values.ts';
import type { DeliveryEvent, ObservedPublish } from '../pubsub/pubsub.ts';
import type { ObservedRequest } from '../static/handler.ts';
import type { ObservedUpload } from '../uploads/receipt.ts';

type Counts = Record<string, number>;

const increment = (counts: Counts, name: string | number): void => {
  counts[name] = (counts[name] ?? 0) + 1;
};

/** Collects figures from the diagnostics channels, from its creation on. */
export class Recorder {
  readonly #errors = new ErrorCounters();
  readonly #operations = new OperationCounters(this.#errors);
  /** The requests that had operations. */
  readonly #observed = new WeakSet<object>();
  readonly #documents = { lookups: 0, misses: 0 };
  readonly #files = { hits: 0, misses: 0 };
  readonly #statuses = { graphql: {} as Counts, files: {} as Counts };
  readonly #uploaded = { requests: 0, files: 0, bytes: 0, failed: 0 };
  readonly #pubsub = { published: 0, failed: 0, delivered: 0 };

  constructor() {
    this.#observeGraphQL();
    this.#observeOthers();
    // Starts the measurement of the event loop.
    readProcessStats();
  }

  read(): InspectFigures {
    const { lookups, misses } = this.#documents;
    const responses = readGauges('responses');
    return {
      time: new Date().toISOString(),
      process: { pid: process.pid, node: process.version, uptime: process.uptime() },
      ...this.#operations.read(),
      errors: this.#errors.read(),
      deprecated: readDeprecated(),
      tools: readAll(offeredTools)?.map(({ name, description }) => ({ name, description })) ?? null,
      lookups: {
        documents: { hits: Math.max(0, lookups - misses), misses },
        responses: { hits: responses['hits'] ?? 0, misses: responses['misses'] ?? 0 },
        files: this.#files,
      },
      statuses: this.#statuses,
      uploaded: this.#uploaded,
      pubsub: this.#pubsub,
      ...readProcessStats(),
    };
  }

  #observeGraphQL(): void {
    on<ObservedOperation>('graphql:operation', (operation) => {
      this.#documents.lookups++;
      if (operation.request !== undefined) this.#observed.add(operation.request);
      this.#operations.observe(operation);
    });
    on('graphql:parse', () => {
      this.#documents.misses++;
    });
    on<ResponseEvent>('graphql:response', ({ req, status, errors }) => {
      increment(this.#statuses.graphql, status);
      // The errors of operations are counted with the operations.
      if (errors.length > 0 && !this.#observed.has(req)) this.#errors.add(errors, undefined);
    });
  }

  #observeOthers(): void {
    on<ObservedRequest>('static:request', (request) => {
      request.onEnd(({ status }) => {
        if (status === undefined) return;
        increment(this.#statuses.files, status);
        this.#files[request.isCached ? 'hits' : 'misses']++;
      });
    });
    on<ObservedUpload>('uploads:request', (upload) => {
      upload.onEnd(({ files, bytes, error }) => {
        this.#uploaded.requests++;
        this.#uploaded.files += files;
        this.#uploaded.bytes += bytes;
        if (error !== undefined) this.#uploaded.failed++;
      });
    });
    on<ObservedPublish>('pubsub:publish', (publish) => {
      publish.onEnd(({ error }) => {
        if (error === undefined) this.#pubsub.published++;
        else this.#pubsub.failed++;
      });
    });
    on<DeliveryEvent>('pubsub:event', ({ streams }) => {
      this.#pubsub.delivered += streams;
    });
  }
}

function readDeprecated(): DeprecatedFigures[] | null {
  const uses = readAll(deprecatedUses);
  if (uses === undefined) return null;
  const recent = [...uses].sort((a, b) => b.last - a.last);
  return recent.map((use) => ({ ...use, last: new Date(use.last).toISOString() }));
}

const on = <Message>(name: string, subscriber: (message: Message) => void): void =>
  subscribe(`espalier:${name}`, (message) => subscriber(message as Message));

type OperationType = OperationFigures['type'];

/** The figures of one operation. */
interface Entry {
  readonly type: OperationType;
  readonly name: string;
  readonly window: LatencyWindow;
  total: number;
}

const createEntry = (type: OperationType, name: string): Entry => ({
  type,
  name,
  window: new LatencyWindow(),
  total: 0,
});

/** Operations with their own figures. Clients choose the names; further ones are counted together. */
const MAX_OPERATIONS = 200;

/** The figures of all operations. The number of operations with their own figures is bounded. */
class OperationCounters {
  readonly #errorsByCode: ErrorCounters;
  readonly #entries = new Map<string, Entry>();
  readonly #others = createEntry('other', 'other operations');
  readonly #all = new LatencyWindow();
  readonly #requests = new RateHistory();
  readonly #errors = new RateHistory();
  #total = 0;
  #active = 0;

  constructor(errors: ErrorCounters) {
    this.#errorsByCode = errors;
  }

  /** Observes an operation: its duration, or the durations of its events. */
  observe(operation: ObservedOperation): void {
    this.#active++;
    operation.observe({
      executing: () => {
        const { prepared } = operation;
        if (prepared?.operation.operation !== 'subscription') return undefined;
        const started = performance.now();
        return {
          ended: (result: ObservedResult | undefined, error?: unknown) => {
            const errors = result === undefined ? [error] : result.kind === 'data' ? [] : result.errors;
            this.#add(prepared, started, errors);
          },
        };
      },
      ended: () => {
        this.#active--;
        const { prepared, errors, started } = operation;
        // The events of a subscription are counted instead of the subscription, unless it was refused.
        if (prepared?.operation.operation === 'subscription' && errors.length === 0) return;
        this.#add(prepared, started, errors);
      },
    });
  }

  /** Adds an operation or an event that has ended. */
  #add(prepared: PreparedOperation | undefined, started: number, errors: readonly unknown[]): void {
    const now = performance.now();
    const isError = errors.length > 0;
    const entry = this.#entryOf(prepared);
    entry.total++;
    this.#total++;
    entry.window.add(now - started, isError, now);
    this.#all.add(now - started, isError, now);
    this.#requests.add(now);
    if (!isError) return;
    this.#errors.add(now);
    this.#errorsByCode.add(errors, prepared === undefined ? undefined : operationName(prepared.operation));
  }

  read(): Pick<InspectFigures, 'requests' | 'history' | 'operations'> {
    const now = performance.now();
    const entries = [...this.#entries.values(), this.#others].filter(({ total }) => total > 0);
    const operations = entries.map(({ type, name, total, window }): OperationFigures => {
      const { count: requests, ...latencies } = window.read(now);
      return { type, name, total, requests, ...latencies };
    });
    operations.sort((a, b) => b.requests - a.requests || b.total - a.total);
    const all: Latencies & { count: number; errors: number } = this.#all.read(now);
    return {
      requests: { ...all, total: this.#total, active: this.#active },
      history: { requests: this.#requests.read(now), errors: this.#errors.read(now) },
      operations,
    };
  }

  #entryOf(prepared: PreparedOperation | undefined): Entry {
    if (prepared === undefined) return this.#entry('other', 'refused before execution');
    return this.#entry(prepared.operation.operation, operationName(prepared.operation));
  }

  #entry(type: OperationType, name: string): Entry {
    const key = `${type} ${name}`;
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      if (this.#entries.size >= MAX_OPERATIONS) return this.#others;
      entry = createEntry(type, name);
      this.#entries.set(key, entry);
    }
    return entry;
  }
}

const MAX_NAME_LENGTH = 80;
const names = new WeakMap<object, string>();

/** Returns the name of an operation or, if it has none, its root fields. */
function operationName(operation: OperationDefinitionNode): string {
  return getOrCreate(names, operation, () =>
    (operation.name?.value ?? rootFields(operation)).slice(0, MAX_NAME_LENGTH),
  );
}

function rootFields({ selectionSet }: OperationDefinitionNode): string {
  return `{ ${[...new Set(selectionSet.selections.map(labelOf))].join(' ')} }`;
}

function labelOf(selection: SelectionNode): string {
  // Kinds are strings, and an enum from graphql 17 on; the enum would load graphql.
  switch (`${selection.kind}`) {
    case 'Field':
      return 'name' in selection ? selection.name.value : '';
    case 'FragmentSpread':
      return 'name' in selection ? `...${selection.name.value}` : '';
    default:
      return '...';
  }
}

/** Different codes; the oldest is replaced by a new one. */
const MAX_CODES = 50;
const MAX_LENGTH = 300;

class ErrorCounters {
  /** The most recent one is last. */
  readonly #byCode = new Map<string, ErrorFigures>();
  add(errors: readonly unknown[], operation: string | undefined): void {
    for (const value of errors) {
      const { code, message } = describe(value);
      const count = (this.#byCode.get(code)?.count ?? 0) + 1;
      this.#byCode.delete(code);
      const last = new Date().toISOString();
      this.#byCode.set(code, { code, count, message, operation: operation ?? null, last });
      if (this.#byCode.size > MAX_CODES) this.#byCode.delete(this.#byCode.keys().next().value as string);
    }
  }

  read(): ErrorFigures[] {
    return [...this.#byCode.values()].reverse();
  }
}

function describe(value: unknown): { readonly code: string; readonly message: string } {
  const { code, message } = readError(value);
  // Unexpected errors get their code when they are masked.
  const known = code ?? (value === CLIENT_ABORTED ? 'CLIENT_ABORTED' : 'INTERNAL_SERVER_ERROR');
  return { code: known.slice(0, MAX_LENGTH), message: message.slice(0, MAX_LENGTH) };
}

/** Buckets per doubling of the duration, so that a percentile is at most 9 % off. */
const PER_OCTAVE = 4;
/** The buckets from one microsecond to two minutes. */
const BUCKETS = 27 * PER_OCTAVE;

/** The number of periods that are kept, and their milliseconds. */
const PERIODS = 10;
const PERIOD = 30_000;

/** The durations and errors of the last five minutes, in periods that are reused. */
export class LatencyWindow {
  readonly #buckets = new Uint32Array(PERIODS * BUCKETS);
  readonly #counts = new Uint32Array(PERIODS);
  readonly #errors = new Uint32Array(PERIODS);
  readonly #maxima = new Float64Array(PERIODS);
  #period = 0;

  /** Adds a duration in milliseconds. */
  add(duration: number, isError: boolean, now: number): void {
    const slot = this.#advance(now);
    const index = slot * BUCKETS + bucketOf(duration);
    this.#buckets[index] = (this.#buckets[index] as number) + 1;
    this.#counts[slot] = (this.#counts[slot] as number) + 1;
    if (isError) this.#errors[slot] = (this.#errors[slot] as number) + 1;
    this.#maxima[slot] = Math.max(this.#maxima[slot] as number, duration);
  }

  read(now: number): Latencies & { readonly count: number; readonly errors: number } {
    this.#advance(now);
    const count = this.#counts.reduce(add, 0);
    const errors = this.#errors.reduce(add, 0);
    if (count === 0) return { count, errors, p50: null, p99: null, max: null };
    const max = Math.max(...this.#maxima);
    const percentile = (share: number): number => Math.min(max, this.#percentile(count * share));
    return { count, errors, p50: percentile(0.5), p99: percentile(0.99), max };
  }

  /** Returns the middle of the bucket that contains the value of a rank. */
  #percentile(rank: number): number {
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      for (let slot = 0; slot < PERIODS; slot++) seen += this.#buckets[slot * BUCKETS + bucket] as number;
      if (seen >= rank) return 2 ** ((bucket + 0.5) / PER_OCTAVE) / 1000;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Clears the periods that have ended, and returns the slot of the current one. */
  #advance(now: number): number {
    const period = Math.floor(now / PERIOD);
    for (let ended = Math.max(this.#period + 1, period - PERIODS + 1); ended <= period; ended++) {
      const slot = ended % PERIODS;
      this.#buckets.fill(0, slot * BUCKETS, (slot + 1) * BUCKETS);
      this.#counts[slot] = 0;
      this.#errors[slot] = 0;
      this.#maxima[slot] = 0;
    }
    this.#period = Math.max(this.#period, period);
    return this.#period % PERIODS;
  }
}

const add = (sum: number, value: number): number => sum + value;

const bucketOf = (duration: number): number =>
  Math.min(BUCKETS - 1, Math.max(0, Math.floor(Math.log2(Math.max(duration * 1000, 1)) * PER_OCTAVE)));

/** Counts per second of the last two minutes. */
export class RateHistory {
  readonly #seconds = 120;
  readonly #counts = new Uint32Array(this.#seconds);
  #last = 0;

  add(now: number): void {
    const slot = this.#advance(now);
    this.#counts[slot] = (this.#counts[slot] as number) + 1;
  }

  /** Returns the counts, the oldest first. */
  read(now: number): number[] {
    const slot = this.#advance(now);
    return [...this.#counts.subarray(slot + 1), ...this.#counts.subarray(0, slot + 1)];
  }

  #advance(now: number): number {
    const second = Math.floor(now / 1000);
    for (let next = Math.max(this.#last + 1, second - this.#seconds + 1); next <= second; next++) {
      this.#counts[next % this.#seconds] = 0;
    }
    this.#last = Math.max(this.#last, second);
    return this.#last % this.#seconds;
  }
}
