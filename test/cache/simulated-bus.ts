import type { CachePubSub } from '../../types/response-cache.ts';

/** Returns a generator of numbers from 0 to 1 with a seed. */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

interface Waiting {
  resolve(result: IteratorResult<unknown>): void;
  reject(error: Error): void;
}

class Stream implements AsyncIterableIterator<unknown> {
  readonly topic: string;
  readonly #events: unknown[] = [];
  #waiting: Waiting | undefined;
  #error: Error | undefined;

  constructor(topic: string) {
    this.topic = topic;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<unknown>> {
    if (this.#events.length > 0) return Promise.resolve({ value: this.#events.shift(), done: false });
    if (this.#error !== undefined) return Promise.reject(this.#error);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  push(value: unknown): void {
    if (this.#waiting === undefined) this.#events.push(value);
    else this.#waiting.resolve({ value, done: false });
    this.#waiting = undefined;
  }

  fail(error: Error): void {
    this.#error = error;
    this.#waiting?.reject(error);
    this.#waiting = undefined;
  }
}

/** The connection of one process to the broker. Messages keep their order; each takes a random time. */
export class Link implements CachePubSub {
  #streams: Stream[] = [];
  #isUp = true;
  #sentUntil = 0;
  #receivedUntil = 0;
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  publish(topic: string, payload: unknown): Promise<void> {
    if (!this.#isUp) return Promise.reject(new Error('not connected'));
    this.#sentUntil = Math.max(this.#sentUntil, Date.now() + this.#bus.latency());
    return new Promise((resolve, reject) => {
      setTimeout(() => {
        if (!this.#isUp) return reject(new Error('connection lost'));
        this.#bus.distribute(topic, JSON.parse(JSON.stringify(payload)));
        resolve();
      }, this.#sentUntil - Date.now());
    });
  }

  subscribe(topic: string): AsyncIterable<unknown> {
    const stream = new Stream(topic);
    this.#streams.push(stream);
    return stream;
  }

  deliver(topic: string, payload: unknown): void {
    if (!this.#isUp) return;
    this.#receivedUntil = Math.max(this.#receivedUntil, Date.now() + this.#bus.latency());
    const streams = this.#streams.filter((stream) => stream.topic === topic);
    setTimeout(() => {
      // Messages on the way are lost with the connection, also if it is open again.
      for (const stream of streams) if (this.#streams.includes(stream)) stream.push(payload);
    }, this.#receivedUntil - Date.now());
  }

  /** Loses the connection. The process does not notice. */
  cut(): void {
    this.#isUp = false;
    this.#lost.push(...this.#streams);
    this.#streams = [];
  }

  /** Connects again. The streams end, because they have missed messages. */
  heal(): void {
    this.#isUp = true;
    for (const stream of this.#lost.splice(0)) stream.fail(new Error('events missed'));
  }

  readonly #lost: Stream[] = [];
}

/** A broker with a total order of messages, like one Redis. */
export class Bus {
  readonly links: Link[];
  readonly latency: () => number;

  constructor(count: number, latency: () => number) {
    this.latency = latency;
    this.links = Array.from({ length: count }, () => new Link(this));
  }

  distribute(topic: string, payload: unknown): void {
    for (const link of this.links) link.deliver(topic, payload);
  }
}
