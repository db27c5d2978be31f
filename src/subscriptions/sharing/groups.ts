import type { GraphQLSchema } from 'graphql';
import type { OperationCursors } from '../../cursors/operation-cursors.ts';
import type { PreparedOperation } from '../../execution/types.ts';
import { areEqualCursors } from '../../pubsub/cursor.ts';
import type { SourceCounters } from '../consume-source.ts';
import type { IntervalTimer } from '../interval-timer.ts';
import type { LiveOperation } from '../live-operation.ts';
import { SharedSubscription } from './group.ts';
import type { GroupPacing } from './group-services.ts';
import { groupNameOf, type ShareKey } from './share-key.ts';

/** Milliseconds that a source stays open after its last subscriber has unsubscribed, for clients that reconnect. */
const IDLE_SOURCE_TTL = 1000;

/**
 * The groups of one subscription: live, and those that replay stored events until they reach the live group.
 */
interface Family {
  live: SharedSubscription | undefined;
  replays: Set<SharedSubscription> | undefined;
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
   * Adds an operation to the group of equal operations at its position, or to a new group. Returns false if
   * it cannot be compared.
   */
  join(operation: LiveOperation, prepared: PreparedOperation, key: ShareKey): boolean {
    const name = groupNameOf(operation, key);
    if (name === undefined) return false;
    const family = this.#familyOf(prepared.schema, name);
    const { cursors } = operation;
    family.live ??= this.#open(prepared, operation, family, name);
    if (cursors?.after === undefined) {
      family.live.add(operation);
      this.#setRelease(operation, family.live);
      operation.onStarted();
      return true;
    }
    const now = this.#timer.now();
    const { after } = cursors;
    const group =
      [family.live, ...(family.replays ?? [])].find((each) => each.addAfter(operation, after, now)) ??
      this.#openReplay(prepared, operation, family, name);
    this.#setRelease(operation, group);
    return true;
  }

  /**
   * Releases the sources without subscribers for `IDLE_SOURCE_TTL`, and ends the replays that have become
   * live. Returns true while more may follow.
   */
  releaseIdle(now: number): boolean {
    let waiting = false;
    this.#forEach((group, family) => {
      group.expireLog(now);
      if (family.live === group && hasReplays(family)) {
        this.#endReplays(family);
        waiting = true;
      } else if (group.members.size > 0) return;
      else if (now - group.emptySince >= IDLE_SOURCE_TTL) group.release();
      else waiting = true;
    });
    return waiting;
  }

  /** Releases all sources without subscribers. */
  close(): void {
    this.#forEach((group) => {
      if (group.members.size === 0) group.release();
    });
  }

  #familyOf(schema: GraphQLSchema, name: string): Family {
    let families = this.#bySchema.get(schema);
    if (families === undefined) {
      families = new Map();
      this.#bySchema.set(schema, families);
    }
    let family = families.get(name);
    if (family === undefined) {
      family = { live: undefined, replays: undefined };
      families.set(name, family);
    }
    return family;
  }

  #setRelease(operation: LiveOperation, group: SharedSubscription): void {
    operation.setSource(() => {
      group.members.delete(operation);
      if (group.members.size > 0) return;
      group.emptySince = this.#timer.now();
      this.#timer.start();
    });
  }

  /** Opens the group of live events. */
  #open(prepared: PreparedOperation, first: LiveOperation, family: Family, name: string): SharedSubscription {
    const cursors = first.cursors?.forSource({ after: undefined });
    const group = this.#create(first, family, cursors, () => {
      if (family.live === group) family.live = undefined;
      this.#forget(prepared.schema, family, name);
    });
    group.open(prepared, this.#counters);
    return group;
  }

  /** Opens a group that begins after the cursor of its first member. */
  #openReplay(
    prepared: PreparedOperation,
    first: LiveOperation,
    family: Family,
    name: string,
  ): SharedSubscription {
    const group = this.#create(first, family, first.cursors, () => {
      family.replays?.delete(group);
      this.#forget(prepared.schema, family, name);
    });
    family.replays ??= new Set();
    family.replays.add(group);
    group.addAfter(first, first.cursors?.after as string, this.#timer.now());
    group.open(prepared, this.#counters);
    return group;
  }

  #create(
    first: LiveOperation,
    family: Family,
    cursors: OperationCursors | undefined,
    remove: () => void,
  ): SharedSubscription {
    let isEnded = false;
    this.#size++;
    return new SharedSubscription(first, {
      pacing: this.#pacing,
      cursors,
      onAdvanced: () => {
        if (hasReplays(family)) this.#endReplays(family);
      },
      onEnded: () => {
        if (isEnded) return;
        isEnded = true;
        this.#size--;
        remove();
      },
    });
  }

  /** Moves the members of replays that have reached the position of the live group to that group. */
  #endReplays({ live, replays }: Family): void {
    if (live?.position === undefined || replays === undefined) return;
    for (const replay of replays) {
      if (replay.position === undefined || !areEqualCursors(replay.position, live.position)) continue;
      live.absorb(replay, (member) => {
        live.add(member);
        this.#setRelease(member, live);
      });
    }
  }

  #forget(schema: GraphQLSchema, family: Family, name: string): void {
    if (family.live !== undefined || hasReplays(family)) return;
    const families = this.#bySchema.get(schema);
    if (families?.get(name) !== family) return;
    families.delete(name);
    if (families.size === 0) this.#bySchema.delete(schema);
  }

  #forEach(visit: (group: SharedSubscription, family: Family) => void): void {
    for (const families of this.#bySchema.values()) {
      for (const family of families.values()) {
        for (const replay of family.replays ?? []) visit(replay, family);
        if (family.live !== undefined) visit(family.live, family);
      }
    }
  }
}

const hasReplays = ({ replays }: Family): boolean => replays !== undefined && replays.size > 0;
