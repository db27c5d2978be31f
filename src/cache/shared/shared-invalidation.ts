import { randomUUID } from 'node:crypto';
import type { CachePubSub } from '../../../types/response-cache.ts';
import { deferred, delay, InvalidationQueue } from '../tags/invalidation-queue.ts';
import { ALL_TAGS } from '../tags/tags.ts';
import { Lease, now, RENEWAL_MILLISECONDS } from './lease.ts';
import { Members } from './members.ts';
import {
  acknowledgementsTopic,
  type Invalidation,
  parseAcknowledgement,
  parseMessage,
  TOPIC,
} from './messages.ts';

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
