import type { GraphQLError } from 'graphql';
import type { MaybePromise } from '../../../types/connect.ts';
import type { OperationCursors } from '../../cursors/operation-cursors.ts';
import type { ExecutionInputs, ExecutionOutcome, PreparedOperation } from '../../execution/types.ts';
import { areEqualCursors } from '../../pubsub/cursor.ts';
import { consumeSource, type EventConsumer, type SourceCounters } from '../consume-source.ts';
import type { LiveOperation } from '../live-operation.ts';
import type { GroupServices } from './group-services.ts';
import { ResultLog } from './result-log.ts';

/** Milliseconds for which results are kept that no client has needed. */
const LOG_TTL = 5000;

/** Equal subscriptions that share one source stream and execute and serialise each event once. */
export class SharedSubscription implements EventConsumer {
  readonly inputs: ExecutionInputs;
  /** Those of the first member, since all members have the same. */
  readonly extensions: string | undefined;
  readonly cursors: OperationCursors | undefined;
  readonly members: Set<LiveOperation> = new Set();
  /** The time at which the last member left, by the endpoint's timer. */
  emptySince = 0;
  readonly contextForEvent: (() => MaybePromise<unknown>) | undefined;
  readonly #abortController = new AbortController();
  readonly #services: GroupServices;
  readonly #isReplay: boolean;
  #releaseSource: (() => void) | undefined;
  #isOpen = false;
  #burst = 0;
  /** The last results, for clients that continue after the same cursors; only after a replay. */
  #log: ResultLog | undefined;
  #logUsedAt = 0;

  /**
   * The events are executed with the context of `first`, or each with a new context of one of the members.
   */
  constructor(first: LiveOperation, services: GroupServices) {
    this.inputs = {
      rootValue: first.rootValue,
      contextValue: first.contextValue,
      variableValues: first.variableValues,
      signal: this.#abortController.signal,
      origin: first.origin,
    };
    this.extensions = first.extensions;
    this.cursors = services.cursors;
    this.#isReplay = services.cursors?.after !== undefined;
    // The first member may have left; all members have the same key, so any context serves them all.
    this.contextForEvent = first.contextForEvent === undefined ? undefined : () => this.#contextOfMember();
    this.#services = services;
    const after = services.cursors?.after;
    if (after !== undefined) this.#log = new ResultLog(after, services.pacing.burstBytes * 2);
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
    this.#services.onEnded();
    this.#releaseSource?.();
  }

  add(member: LiveOperation): void {
    this.members.add(member);
    member.cursors = this.cursors;
    // Stored events are not urgent: the group waits for its slow members.
    member.appliesBackpressure = this.#isReplay && !member.droppable;
    if (this.#isOpen) member.onOpen();
  }

  /**
   * Adds a member that has received the events up to a cursor. Returns false if the group has not kept the
   * results after it.
   */
  addAfter(member: LiveOperation, cursor: string, now: number): boolean {
    const { position } = this;
    const isCurrent = position !== undefined && areEqualCursors(position, cursor);
    const results = isCurrent ? [] : this.#log?.after(cursor);
    if (results === undefined) return false;
    this.#logUsedAt = now;
    this.add(member);
    for (const { bytes, signed } of results) member.send(bytes, 'batched', signed);
    return true;
  }

  /** Moves the members of a replay that has reached the position of this group, and its log. */
  absorb(replay: SharedSubscription, add: (member: LiveOperation) => void): void {
    for (const member of replay.members) add(member);
    replay.members.clear();
    if ((replay.#log?.length ?? 0) > (this.#log?.length ?? -1)) {
      this.#log = replay.#log;
      this.#logUsedAt = replay.#logUsedAt;
    }
    replay.release();
  }

  /** Forgets results that no client has needed for some seconds. */
  expireLog(now: number): void {
    if (now - this.#logUsedAt > LOG_TTL) this.#log = undefined;
  }

  isWanted(): boolean {
    if (this.members.size > 0) return true;
    // The event will be missing in the log.
    this.#log = undefined;
    return false;
  }

  onStarted(): void {
    for (const member of this.members) member.onStarted();
    this.#services.onAdvanced();
  }

  onResult({ body }: ExecutionOutcome, cursor?: string): void {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    this.#burst += bytes.length;
    for (const member of this.members) member.send(bytes, 'batched', cursor);
    if (this.#log !== undefined) this.#record(bytes, cursor);
    if (cursor !== undefined) this.#services.onAdvanced();
  }

  /**
   * Never waits for a client with live events, but yields when many messages are queued: a client that reads
   * everything must not be closed because the server had no time to write.
   */
  waitForDrain(): Promise<unknown> | undefined {
    const drained = this.#isReplay ? drainedMembers(this.members) : undefined;
    const { burstBytes, isBackpressured, yield: yieldToWrites } = this.#services.pacing;
    if (drained !== undefined || (this.#burst < burstBytes && !isBackpressured())) return drained;
    this.#burst = 0;
    return yieldToWrites();
  }

  // The group is unregistered before its members end: a client that subscribes again gets a new source.
  complete(): void {
    this.#services.onEnded();
    for (const member of this.members) member.complete();
  }

  fail(errors: readonly GraphQLError[]): void {
    this.#services.onEnded();
    for (const member of this.members) member.fail(errors);
  }

  abort(): void {
    this.#abortController.abort();
  }

  #record(bytes: Buffer, signed: string | undefined): void {
    const position = this.cursors?.delivered;
    const isKept =
      signed !== undefined && position !== undefined && this.#log?.append(position, { bytes, signed });
    // Without a cursor a client could not continue after this event.
    if (isKept !== true) this.#log = undefined;
  }

  #contextOfMember(): MaybePromise<unknown> {
    const [member] = this.members;
    return member?.contextForEvent?.() ?? this.inputs.contextValue;
  }
}

/** Resolves when all slow members have read something; undefined if none is slow. */
function drainedMembers(members: Iterable<LiveOperation>): Promise<unknown> | undefined {
  const slow = [...members].flatMap((member) => member.waitForDrain() ?? []);
  return slow.length > 0 ? Promise.all(slow) : undefined;
}
