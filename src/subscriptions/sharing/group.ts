import type { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import type { ExecutionInputs, ExecutionOutcome, PreparedOperation } from '../../execution/types.ts';
import { consumeSource, type EventConsumer, type SourceCounters } from '../consume-source.ts';
import type { LiveOperation } from '../live-operation.ts';

/** Decides when a group has to wait until its results are written before it executes further events. */
export interface GroupPacing {
  /** The number of bytes after which a group yields. */
  readonly burstBytes: number;
  /** True if so many messages are queued that producers should yield. */
  isBackpressured(): boolean;
  /** Writes the queued messages and yields to the event loop. */
  yield(): Promise<void>;
}

/** Equal subscriptions that share one source stream and execute and serialise each event once. */
export class SharedSubscription implements EventConsumer {
  readonly inputs: ExecutionInputs;
  /** Those of the first member, since all members have the same. */
  readonly extensions: string | undefined;
  readonly members: Set<LiveOperation> = new Set();
  /** The time at which the last member left, by the endpoint's timer. */
  emptySince = 0;
  readonly contextForEvent: (() => MaybePromise<unknown>) | undefined;
  readonly #abortController = new AbortController();
  readonly #pacing: GroupPacing;
  /** Removes the group from the map of groups. */
  readonly #unregister: () => void;
  #releaseSource: (() => void) | undefined;
  #burst = 0;

  /**
   * The events are executed with the context of `first`, or each with a new context of one of the members.
   */
  constructor(first: LiveOperation, pacing: GroupPacing, unregister: () => void) {
    this.inputs = {
      rootValue: first.rootValue,
      contextValue: first.contextValue,
      variableValues: first.variableValues,
      signal: this.#abortController.signal,
      origin: first.origin,
    };
    this.extensions = first.extensions;
    // The first member may have left; all members have the same key, so any context serves them all.
    this.contextForEvent = first.contextForEvent === undefined ? undefined : () => this.#contextOfMember();
    this.#pacing = pacing;
    this.#unregister = unregister;
  }

  open(prepared: PreparedOperation, counters: SourceCounters): void {
    this.#releaseSource = consumeSource(prepared, this, counters);
  }

  release(): void {
    this.#unregister();
    this.#releaseSource?.();
  }

  isWanted(): boolean {
    return this.members.size > 0;
  }

  onResult({ body }: ExecutionOutcome): void {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    this.#burst += bytes.length;
    for (const member of this.members) member.send(bytes, 'batched');
  }

  /**
   * Never waits for a client, but yields when many messages are queued: a client that reads everything must
   * not be closed because the server had no time to write.
   */
  waitForDrain(): Promise<void> | undefined {
    if (this.#burst < this.#pacing.burstBytes && !this.#pacing.isBackpressured()) return undefined;
    this.#burst = 0;
    return this.#pacing.yield();
  }

  // The group is unregistered before its members end: a client that subscribes again gets a new source.
  complete(): void {
    this.#unregister();
    for (const member of this.members) member.complete();
  }

  fail(errors: readonly GraphQLError[]): void {
    this.#unregister();
    for (const member of this.members) member.fail(errors);
  }

  abort(): void {
    this.#abortController.abort();
  }

  #contextOfMember(): MaybePromise<unknown> {
    const [member] = this.members;
    return member?.contextForEvent?.() ?? this.inputs.contextValue;
  }
}
