import type { GraphQLError, GraphQLSchema } from 'graphql';
import type { MaybePromise } from '../../types/connect.ts';
import type { SharedOperation } from '../../types/subscriptions.ts';
import type {
  ExecutionInputs,
  ExecutionOutcome,
  GraphQLParams,
  PreparedOperation,
} from '../execution/types.ts';
import { assertSync, wrongReturnValue } from '../options/rules.ts';
import { SUBSCRIPTION_OPTIONS } from '../options/scopes.ts';
import { getOrCreate } from '../options/values.ts';
import { areEqualCursors } from '../pubsub/cursor.ts';
import type { OperationCursors } from './cursors.ts';
import { markShared } from './deflate.ts';
import type { LiveOperation } from './operation.ts';
import type { FlushScheduler } from './queue.ts';
import type { EventContext } from './source.ts';
import { consumeSource, type EventConsumer, type SourceCounters } from './source.ts';
import type { IntervalTimer } from './timers.ts';

/** Milliseconds that a source stays open after its last subscriber has unsubscribed, for clients that reconnect. */
const IDLE_SOURCE_TTL = 1000;

/** Equal subscriptions: the live group, and the replays of single clients until they have reached its position. */
interface Family {
  readonly schema: GraphQLSchema;
  readonly name: string;
  live: SharedSubscription | undefined;
  readonly replays: Set<SharedSubscription>;
}

/** The groups of equal subscriptions of one endpoint. */
export class SubscriptionGroups {
  readonly #counters: SourceCounters;
  readonly #pacing: GroupPacing;
  readonly #timer: IntervalTimer;
  readonly #bySchema = new Map<GraphQLSchema, Map<string, Family>>();
  #size = 0;

  constructor(counters: SourceCounters, pacing: GroupPacing, timer: IntervalTimer) {
    this.#counters = counters;
    this.#pacing = pacing;
    this.#timer = timer;
  }

  get size(): number {
    return this.#size;
  }

  /**
   * Adds an operation to the group of equal operations. One that continues after an earlier cursor first gets a replay of
   * its own. Returns false if it cannot be compared.
   */
  join(operation: LiveOperation, prepared: PreparedOperation, key: ShareKey): boolean {
    const name = groupNameOf(operation, key);
    if (name === undefined) return false;
    const family = this.#familyOf(prepared.visible ?? prepared.schema, name);
    const { cursors } = operation;
    family.live ??= this.#open(prepared, operation, family, cursors?.forSource({ after: undefined }));
    const after = cursors?.after;
    if (after === undefined || isAt(family.live, after)) {
      this.#add(operation, family.live);
      if (after === undefined) operation.onStarted();
      return true;
    }
    const replay = this.#open(prepared, operation, family, cursors);
    family.replays.add(replay);
    this.#add(operation, replay);
    return true;
  }

  /**
   * Releases the sources without subscribers for `IDLE_SOURCE_TTL`, and ends the replays that have become
   * live. Returns true while more may follow.
   */
  releaseIdle(now: number): boolean {
    let waiting = false;
    this.#forEachLive((live, family) => {
      for (const replay of family.replays) this.#endReplay(replay, family);
      if (family.replays.size > 0) waiting = true;
      else if (live.members.size > 0) return;
      else if (now - live.emptySince >= IDLE_SOURCE_TTL) live.release();
      else waiting = true;
    });
    return waiting;
  }

  /** Releases all sources without subscribers. */
  close(): void {
    this.#forEachLive((live) => {
      if (live.members.size === 0) live.release();
    });
  }

  #familyOf(schema: GraphQLSchema, name: string): Family {
    const families = getOrCreate(this.#bySchema, schema, () => new Map());
    return getOrCreate(families, name, () => ({ schema, name, live: undefined, replays: new Set() }));
  }

  #add(operation: LiveOperation, group: SharedSubscription): void {
    group.add(operation);
    operation.setSource(() => {
      group.members.delete(operation);
      if (group.members.size > 0) return;
      if (group.isReplay) group.release();
      else group.emptySince = this.#timer.now();
      // Its ticks also release a live group that has never had members.
      this.#timer.start();
    });
  }

  #open(
    prepared: PreparedOperation,
    first: LiveOperation,
    family: Family,
    cursors: OperationCursors | undefined,
  ): SharedSubscription {
    this.#size++;
    const group = new SharedSubscription(first, cursors, this.#pacing, {
      onAdvanced: () => {
        for (const replay of group.isReplay ? [group] : family.replays) this.#endReplay(replay, family);
      },
      onEnded: () => {
        this.#size--;
        if (family.live === group) family.live = undefined;
        family.replays.delete(group);
        this.#forget(family);
      },
    });
    group.open(prepared, this.#counters);
    return group;
  }

  /** Moves the member of a replay that has reached the position of the live group to that group. */
  #endReplay(replay: SharedSubscription, { live }: Family): void {
    if (live?.position === undefined || !isAt(replay, live.position)) return;
    for (const member of replay.members) this.#add(member, live);
    replay.members.clear();
    replay.release();
  }

  #forget(family: Family): void {
    if (family.live !== undefined || family.replays.size > 0) return;
    const families = this.#bySchema.get(family.schema);
    if (families?.get(family.name) !== family) return;
    families.delete(family.name);
    if (families.size === 0) this.#bySchema.delete(family.schema);
  }

  #forEachLive(visit: (live: SharedSubscription, family: Family) => void): void {
    for (const families of this.#bySchema.values()) {
      for (const family of families.values()) if (family.live !== undefined) visit(family.live, family);
    }
  }
}

/** Whether all members of a group have received the events up to a cursor, and none after it. */
const isAt = ({ position }: SharedSubscription, cursor: string): boolean =>
  position !== undefined && areEqualCursors(position, cursor);

/** Equal subscriptions that share one source stream and execute and serialise each event once. A replay has one member. */
class SharedSubscription implements EventConsumer {
  readonly inputs: ExecutionInputs;
  /** Those of the first member, since all members have the same. */
  readonly extensions: string | undefined;
  readonly cursors: OperationCursors | undefined;
  readonly members: Set<LiveOperation> = new Set();
  /** Whether its source begins with stored events. */
  readonly isReplay: boolean;
  /** The time at which the last member left, by the endpoint's timer. */
  emptySince = 0;
  readonly contextForEvent: (() => MaybePromise<EventContext>) | undefined;
  readonly authorizeEvent = undefined;
  readonly #abortController = new AbortController();
  readonly #pacing: GroupPacing;
  readonly #listeners: GroupListeners;
  #releaseSource: (() => void) | undefined;
  #isOpen = false;
  #hasEnded = false;
  #burst = 0;

  /** The events are executed with the context of `first`, or each with a new context of one of the members. */
  constructor(
    first: LiveOperation,
    cursors: OperationCursors | undefined,
    pacing: GroupPacing,
    listeners: GroupListeners,
  ) {
    const { signal } = this.#abortController;
    const origin = { ...first.origin };
    Object.defineProperty(origin, 'aborted', { get: () => signal.aborted, enumerable: true });
    this.inputs = {
      rootValue: first.rootValue,
      contextValue: first.contextValue,
      variableValues: first.variableValues,
      signal,
      origin,
      access: first.access,
      caller: first.caller,
      isShared: true,
    };
    this.extensions = first.extensions;
    this.cursors = cursors;
    this.isReplay = cursors?.after !== undefined;
    // The first member may have left; all members have the same key, so any context serves them all.
    this.contextForEvent = first.contextForEvent === undefined ? undefined : () => this.#contextOfMember();
    this.#pacing = pacing;
    this.#listeners = listeners;
  }

  /** The cursor of the events that all members have received; undefined without cursors. */
  get position(): string | undefined {
    return this.cursors?.cursor ?? this.cursors?.after;
  }

  open(prepared: PreparedOperation, counters: SourceCounters): void {
    this.#releaseSource = consumeSource(prepared, this, counters);
  }

  onOpen(): void {
    this.#isOpen = true;
    for (const member of this.members) member.onOpen();
  }

  release(): void {
    this.#end();
    this.#releaseSource?.();
  }

  add(member: LiveOperation): void {
    this.members.add(member);
    member.cursors = this.cursors;
    // Stored events are not urgent: the replay waits for its slow client.
    member.appliesBackpressure = this.isReplay;
    if (this.#isOpen) member.onOpen();
  }

  isWanted(): boolean {
    return this.members.size > 0;
  }

  onStarted(): void {
    for (const member of this.members) member.onStarted();
    this.#listeners.onAdvanced();
  }

  onResult({ body }: ExecutionOutcome, cursor?: string): void {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    this.#burst += bytes.length;
    if (this.members.size > 1) markShared(bytes);
    for (const member of this.members) member.send(bytes, 'batched', cursor);
    if (cursor !== undefined) this.#listeners.onAdvanced();
  }

  /**
   * Never waits for a client with live events, but yields when many messages are queued: a client that reads
   * everything must not be closed because the server had no time to write.
   */
  waitForDrain(): Promise<unknown> | undefined {
    const drained = this.isReplay ? this.#first?.waitForDrain() : undefined;
    const { burstBytes, scheduler } = this.#pacing;
    if (drained !== undefined || (this.#burst < burstBytes && !scheduler.isBackpressured())) return drained;
    this.#burst = 0;
    return scheduler.yield();
  }

  // The group is unregistered before its members end: a client that subscribes again gets a new source.
  complete(): void {
    this.#end();
    for (const member of this.members) member.complete();
  }

  fail(errors: readonly GraphQLError[]): void {
    this.#end();
    for (const member of this.members) member.fail(errors);
  }

  abort(): void {
    this.#abortController.abort();
  }

  #end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#listeners.onEnded();
  }

  #contextOfMember(): MaybePromise<EventContext> {
    const { contextValue, caller } = this.inputs;
    return this.#first?.contextForEvent?.() ?? { contextValue, caller };
  }

  get #first(): LiveOperation | undefined {
    const [first] = this.members;
    return first;
  }
}

/** Decides when a group has to wait until its results are written before it executes further events. */
interface GroupPacing {
  /** The number of bytes after which a group yields. */
  readonly burstBytes: number;
  readonly scheduler: FlushScheduler;
}

/** The callbacks of a group to its family. */
interface GroupListeners {
  /** Called when all members have the result of an event, or when the position of the source is known. */
  onAdvanced(): void;
  /** Called once, when the group accepts no more members. */
  onEnded(): void;
}

export type ShareFunction = (context: unknown, operation: SharedOperation) => unknown;

/** A key of the application: subscriptions with different keys are never shared. */
export type ShareKey = string | number;

/**
 * Returns the key of one subscription, or undefined for a private subscription.
 *
 * @throws TypeError (code `ERR_OPTION`) if the function returns a value of another type.
 */
export function shareKeyOf(
  share: ShareFunction | undefined,
  context: unknown,
  params: GraphQLParams,
): ShareKey | undefined {
  if (share === undefined) return undefined;
  const key = share(context, params);
  if (key === undefined || key === null) return undefined;
  assertSync(key, SUBSCRIPTION_OPTIONS, 'share');
  // NaN and Infinity have the same JSON, so they would be the same key.
  if (typeof key === 'string' || Number.isFinite(key)) return key as ShareKey;
  throw wrongReturnValue(SUBSCRIPTION_OPTIONS, 'share', key, 'a string, a finite number, undefined or null');
}

/**
 * Returns the name of a group: equal only for equal subscriptions. JSON separates its parts, so clients
 * cannot forge it. Returns undefined for variables with numbers such as 1e400, which become Infinity and have
 * the same JSON as null.
 */
function groupNameOf(
  { params, extensions, access }: Pick<LiveOperation, 'params' | 'extensions' | 'access'>,
  key: ShareKey,
): string | undefined {
  const { operationName, variables, query } = params;
  let isExact = true;
  const parts = [key, operationName, variables, query, extensions, access?.key];
  const name = JSON.stringify(parts, (_, value: unknown) => {
    if (typeof value === 'number' && !Number.isFinite(value)) isExact = false;
    return sortMembers(value);
  });
  return isExact ? name : undefined;
}

/**
 * Returns a text that is equal only for equal operations of one principal: a user, or a share key. Numbers
 * such as 1e400 count as null.
 */
export function identityOf(principal: object, { operationName, variables, query }: GraphQLParams): string {
  return JSON.stringify([principal, operationName, variables, query], (_, value: unknown) =>
    sortMembers(value),
  );
}

function sortMembers(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
