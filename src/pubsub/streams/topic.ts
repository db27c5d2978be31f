import type { EventStream } from '../../../types/pubsub.ts';
import type { EventLink } from '../cursor.ts';
import { EventQueue, type QueueLimits } from './event-queue.ts';
import { mayHaveMissedEvents } from './missed-events.ts';
import type { SlowReaders } from './slow-readers.ts';

/** The services that the topics of one `createPubSub` share. */
export interface TopicServices {
  readonly limits: QueueLimits;
  readonly slowReaders: SlowReaders;
  /** Called when the last stream of a channel has ended. */
  emptied(channel: string): void;
}

type Queue = EventQueue<unknown>;

/** The streams of one topic in this process. */
export class Topic {
  readonly channel: string;
  protected readonly streams: Set<Queue> = new Set<Queue>();
  readonly #services: TopicServices;

  constructor(channel: string, services: TopicServices) {
    this.channel = channel;
    this.#services = services;
  }

  get size(): number {
    return this.streams.size;
  }

  /** The id of the last event. Undefined without a history, and until the topic has started. */
  get position(): string | undefined {
    return undefined;
  }

  /** Opens a stream of later events. */
  open(_after?: string): EventStream<unknown> {
    return this.addQueue();
  }

  /** Delivers an event to all streams. */
  receive(payload: unknown, size: () => number, _link?: EventLink): void {
    for (const queue of this.streams) queue.push(payload, size);
  }

  /** Redis has confirmed the subscription to the channel. */
  subscribed(): void {}

  /** Resolves when the position of later events is known. */
  started(): Promise<void> | undefined {
    return undefined;
  }

  /** Delivers stored events whose messages were dropped. */
  catchUp(): void {}

  /** Ends the streams, because events of the time without a connection are missing. */
  reconnected(): void {
    this.end(mayHaveMissedEvents('the connection to Redis was lost'));
  }

  /** Ends all streams, with or without an error. */
  end(error?: Error): void {
    for (const queue of [...this.streams]) queue.end(error);
  }

  protected addQueue(): Queue {
    const queue: Queue = new EventQueue(this.#services.limits, {
      ended: () => this.removeQueue(queue),
      grew: () => this.#services.slowReaders.add(queue),
    });
    this.streams.add(queue);
    return queue;
  }

  protected removeQueue(queue: Queue): void {
    if (this.streams.delete(queue) && this.streams.size === 0) this.#services.emptied(this.channel);
  }
}
