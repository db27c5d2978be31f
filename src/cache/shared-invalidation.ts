import { randomUUID } from 'node:crypto';
import type { CachePubSub } from '../../types/response-cache.ts';
import { isCount, isListOf, isObject, isString } from '../options/rules.ts';
import { deferred, delay, InvalidationQueue } from './invalidation-queue.ts';
import { ALL_TAGS } from './tags.ts';

/**
 * The time for which a process may use its memory store without contact to the others, in milliseconds. An
 * invalidation waits at most this long for a process that does not reply.
 */
const LEASE_MILLISECONDS = 3000;

/** Milliseconds between two renewals. */
const RENEWAL_MILLISECONDS = 1000;

/** A time on both clocks: one stops while the machine sleeps, the other one can be set. */
interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

const now = (): Moment => ({ monotonic: performance.now(), wall: Date.now() });

/**
 * The permission of a process to use its memory store. It begins when the process sends a renewal, and is granted
 * when the process receives it: messages arrive in order, so all invalidations before the renewal have arrived too.
 */
class Lease {
  #start: Moment | undefined;

  get isValid(): boolean {
    const start = this.#start;
    if (start === undefined) return false;
    const age = Date.now() - start.wall;
    return age >= 0 && age < LEASE_MILLISECONDS && performance.now() - start.monotonic < LEASE_MILLISECONDS;
  }

  grant(start: Moment): void {
    this.#start = start;
  }

  end(): void {
    this.#start = undefined;
  }
}

/** The processes that may use their stores, as far as this process knows from their renewals. */
class Members {
  /** The times at which their leases expire at the latest (`performance.now()`). */
  readonly #expiries = new Map<string, number>();
  /** The time from which on every process with a lease is known; undefined without a subscription. */
  #completeFrom: number | undefined;

  renewed(id: string): void {
    this.#expiries.set(id, performance.now() + LEASE_MILLISECONDS);
  }

  /** Call it when the subscription has proved to work. Leases that began earlier expire within their length. */
  subscribed(): void {
    this.#completeFrom ??= performance.now() + LEASE_MILLISECONDS;
  }

  /** Call it when renewals may have been missed. */
  forget(): void {
    this.#expiries.clear();
    this.#completeFrom = undefined;
  }

  removeExpired(): void {
    const time = performance.now();
    for (const [id, expiry] of this.#expiries) if (expiry <= time) this.#expiries.delete(id);
  }

  /** Whether every process that may have a lease is in `ids`. */
  areAmong(ids: ReadonlySet<string>): boolean {
    if (this.#completeFrom === undefined || performance.now() < this.#completeFrom) return false;
    this.removeExpired();
    for (const id of this.#expiries.keys()) if (!ids.has(id)) return false;
    return true;
  }
}

/** The topic of renewals and invalidations. */
const TOPIC = 'cache:invalidations';

/** The topic of the acknowledgements for one process. */
const acknowledgementsTopic = (id: string): string => `cache:acknowledgements:${id}`;

/** Renews the lease of a process. */
interface Renewal {
  readonly type: 'renewal';
  readonly from: string;
  readonly number: number;
}

/** Invalidates tags in every process. */
interface Invalidation {
  readonly type: 'invalidation';
  readonly from: string;
  readonly number: number;
  readonly tags: readonly string[];
}

/** Confirms to a process that another one has applied its invalidation. */
interface Acknowledgement {
  readonly from: string;
  readonly number: number;
}

const isTags = isListOf(isString);

/** Returns a message of the topic; undefined for a message of another program. */
function parseMessage(value: unknown): Renewal | Invalidation | undefined {
  if (!isObject(value) || !isString(value['from']) || !isCount(value['number'])) return undefined;
  const { type, from, number, tags } = value;
  if (type === 'renewal') return { type, from, number };
  if (type !== 'invalidation' || !isTags(tags)) return undefined;
  return { type, from, number, tags: tags.map(String) };
}

/** Returns an acknowledgement; undefined for a message of another program. */
function parseAcknowledgement(value: unknown): Acknowledgement | undefined {
  if (!isObject(value) || !isString(value['from']) || !isCount(value['number'])) return undefined;
  return { from: value['from'], number: value['number'] };
}

/** Milliseconds between two checks whether an invalidation is complete, and between two attempts to subscribe. */
const CHECK_MILLISECONDS = 100;
const CHECKS_PER_PUBLISH = 10;
/** Renewals whose return is awaited. */
const MAX_RENEWALS = 8;

/** An invalidation that was sent and is not complete. */
interface Sent {
  /** Whether this process has received its own message, and so all earlier ones. */
  hasReturned: boolean;
  readonly acknowledged: Set<string>;
  isComplete: boolean;
  readonly complete: () => void;
}

/**
 * Invalidates tags in the memory stores of all processes. A store is used only while its process has a lease, which
 * it renews through the pubsub. An invalidation is complete when every process with a lease has acknowledged it.
 * A process that lost its connection cannot renew its lease, so its store is not used when the wait for it ends.
 */
export class SharedInvalidation {
  readonly #pubsub: CachePubSub;
  readonly #apply: (tags: readonly string[]) => void;
  readonly #id = randomUUID();
  readonly #lease = new Lease();
  readonly #members = new Members();
  readonly #queue = new InvalidationQueue((tags) => this.#broadcast(tags));
  readonly #sent = new Map<number, Sent>();
  readonly #renewals = new Map<number, ReturnType<typeof now>>();
  readonly #timer: NodeJS.Timeout;
  #number = 0;
  #lastRenewal = Number.NEGATIVE_INFINITY;
  #isUsed = false;

  /** `apply` removes the entries with these tags from the store of this process. */
  constructor(pubsub: CachePubSub, apply: (tags: readonly string[]) => void) {
    this.#pubsub = pubsub;
    this.#apply = apply;
    this.#timer = setInterval(() => this.#tick(), RENEWAL_MILLISECONDS).unref();
    void this.#receive();
    void this.#receiveAcknowledgements();
  }

  /** Whether the store of this process has received every invalidation that is complete. */
  get isCertain(): boolean {
    this.#isUsed = true;
    if (this.#lease.isValid) return true;
    if (performance.now() - this.#lastRenewal >= CHECK_MILLISECONDS) this.#renew();
    return false;
  }

  /** Resolves when no process uses an entry with one of these tags. */
  invalidate(tags: readonly string[]): Promise<void> {
    this.#apply(tags);
    return this.#queue.add(tags);
  }

  #tick(): void {
    this.#members.removeExpired();
    // A process without requests needs no lease, and no other process has to wait for it.
    if (this.#isUsed) this.#renew();
    this.#isUsed = false;
  }

  #renew(): void {
    const number = this.#number++;
    this.#lastRenewal = performance.now();
    if (this.#renewals.size >= MAX_RENEWALS) this.#renewals.clear();
    this.#renewals.set(number, now());
    this.#send(TOPIC, { type: 'renewal', from: this.#id, number });
  }

  /** Publishes without waiting. The pubsub reports its errors; that of another library may throw them. */
  #send(topic: string, message: object): void {
    new Promise((resolve) => resolve(this.#pubsub.publish(topic, message))).catch(() => undefined);
  }

  async #broadcast(tags: readonly string[]): Promise<void> {
    const number = this.#number++;
    const { promise, resolve } = deferred();
    const sent: Sent = { hasReturned: false, acknowledged: new Set(), isComplete: false, complete: resolve };
    this.#sent.set(number, sent);
    try {
      for (let check = 0; !sent.isComplete; check++) {
        // Sent again for a process that did not receive it.
        if (check % CHECKS_PER_PUBLISH === 0) {
          await this.#pubsub.publish(TOPIC, { type: 'invalidation', from: this.#id, number, tags });
        }
        await Promise.race([promise, delay(CHECK_MILLISECONDS)]);
        this.#check(sent);
      }
    } finally {
      this.#sent.delete(number);
    }
  }

  #check(sent: Sent): void {
    if (!sent.hasReturned || !this.#members.areAmong(sent.acknowledged)) return;
    sent.isComplete = true;
    sent.complete();
  }

  async #receive(): Promise<void> {
    for (;;) {
      try {
        for await (const message of this.#pubsub.subscribe(TOPIC)) this.#onMessage(message);
        this.#close();
        return;
      } catch {
        // Invalidations and renewals may have been missed.
        this.#lease.end();
        this.#renewals.clear();
        this.#members.forget();
        this.#apply([ALL_TAGS]);
        await delay(CHECK_MILLISECONDS);
      }
    }
  }

  async #receiveAcknowledgements(): Promise<void> {
    for (;;) {
      try {
        for await (const message of this.#pubsub.subscribe(acknowledgementsTopic(this.#id))) {
          this.#onAcknowledgement(message);
        }
        return;
      } catch {
        // A lost acknowledgement is sent again, because the invalidation is.
        await delay(CHECK_MILLISECONDS);
      }
    }
  }

  #onAcknowledgement(value: unknown): void {
    const message = parseAcknowledgement(value);
    const sent = message === undefined ? undefined : this.#sent.get(message.number);
    if (message === undefined || sent === undefined) return;
    sent.acknowledged.add(message.from);
    this.#check(sent);
  }

  #onMessage(value: unknown): void {
    const message = parseMessage(value);
    if (message === undefined) return;
    const isOwn = message.from === this.#id;
    if (message.type === 'invalidation') {
      if (isOwn) this.#onReturned(message);
      else this.#onInvalidation(message);
    } else if (isOwn) this.#onRenewed(message.number);
    else this.#members.renewed(message.from);
  }

  #onRenewed(number: number): void {
    const start = this.#renewals.get(number);
    this.#members.subscribed();
    if (start === undefined) return;
    this.#renewals.delete(number);
    this.#lease.grant(start);
  }

  #onReturned({ number }: Invalidation): void {
    this.#members.subscribed();
    const sent = this.#sent.get(number);
    if (sent === undefined) return;
    sent.hasReturned = true;
    this.#check(sent);
  }

  #onInvalidation({ from, number, tags }: Invalidation): void {
    this.#apply(tags);
    this.#send(acknowledgementsTopic(from), { from: this.#id, number });
  }

  #close(): void {
    clearInterval(this.#timer);
    this.#lease.end();
    this.#queue.close(new Error('The pubsub of the cache was closed'));
  }
}
