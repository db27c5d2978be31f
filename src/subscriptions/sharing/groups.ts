import type { GraphQLSchema } from 'graphql';
import type { PreparedOperation } from '../../execution/types.ts';
import type { SourceCounters } from '../consume-source.ts';
import { type GroupPacing, SharedSubscription } from './group.ts';
import type { IntervalTimer } from '../interval-timer.ts';
import type { LiveOperation } from '../live-operation.ts';
import { groupNameOf, type ShareKey } from './share-key.ts';

/** Milliseconds that a source stays open after its last subscriber has left, for clients that reconnect. */
const IDLE_SOURCE_TTL = 1000;

/** The groups of equal subscriptions of one endpoint. */
export class SubscriptionGroups {
  readonly #counters: SourceCounters;
  readonly #pacing: GroupPacing;
  readonly #timer: IntervalTimer;
  readonly #bySchema = new Map<GraphQLSchema, Map<string, SharedSubscription>>();
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
   * Adds an operation to the group of equal operations, or to a new group. Returns false if it cannot be
   * compared.
   */
  join(operation: LiveOperation, prepared: PreparedOperation, key: ShareKey): boolean {
    const name = groupNameOf(operation, key);
    if (name === undefined) return false;
    let groups = this.#bySchema.get(prepared.schema);
    if (groups === undefined) {
      groups = new Map();
      this.#bySchema.set(prepared.schema, groups);
    }
    const group = groups.get(name) ?? this.#open(prepared, operation, name, groups);
    group.members.add(operation);
    operation.releaseSource = () => {
      group.members.delete(operation);
      if (group.members.size > 0) return;
      group.emptySince = this.#timer.now();
      this.#timer.start();
    };
    return true;
  }

  /** Releases the sources without subscribers for `IDLE_SOURCE_TTL`. Returns true while more may follow. */
  releaseIdle(now: number): boolean {
    let waiting = false;
    this.#forEachEmpty((group) => {
      if (now - group.emptySince >= IDLE_SOURCE_TTL) group.release();
      else waiting = true;
    });
    return waiting;
  }

  /** Releases all sources without subscribers. */
  close(): void {
    this.#forEachEmpty((group) => group.release());
  }

  #open(
    prepared: PreparedOperation,
    first: LiveOperation,
    name: string,
    groups: Map<string, SharedSubscription>,
  ): SharedSubscription {
    const group = new SharedSubscription(first, this.#pacing, () => {
      if (groups.get(name) !== group) return;
      groups.delete(name);
      this.#size--;
    });
    groups.set(name, group);
    this.#size++;
    group.open(prepared, this.#counters);
    return group;
  }

  #forEachEmpty(visit: (group: SharedSubscription) => void): void {
    for (const [schema, groups] of this.#bySchema) {
      for (const group of groups.values()) if (group.members.size === 0) visit(group);
      if (groups.size === 0) this.#bySchema.delete(schema);
    }
  }
}
