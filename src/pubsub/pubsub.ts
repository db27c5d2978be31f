import type { PubSub, PubSubOptions } from '../../types/pubsub.ts';
import { type PubSubSettings, resolvePubSubOptions } from './options.ts';
import { RedisTransport } from './redis/transport.ts';
import { EventQueue } from './streams/event-queue.ts';
import { missedEvents } from './streams/missed-events.ts';
import { SlowReaders } from './streams/slow-readers.ts';
import { createLocalTransport, type Transport, type TransportEvents } from './transport.ts';

/**
 * Creates a source of events for subscriptions: within this process, or with `redis` in every process on the same Redis.
 *
 * @throws TypeError for an unknown option or a wrong value.
 */
export function createPubSub<Events extends object = Record<string, unknown>>(
  options?: PubSubOptions,
): PubSub<Events> {
  const broker = new EventBroker<Events>(resolvePubSubOptions(options));
  // Functions of the returned object work without it: users spread and destructure it.
  return {
    publish: (topic, payload) => broker.publish(topic, payload),
    subscribe: (topic) => broker.subscribe(topic),
    ready: (topic) => broker.ready(topic),
    close: () => broker.close(),
  };
}

type Queue = EventQueue<unknown>;

class EventBroker<Events extends object> implements PubSub<Events> {
  readonly #settings: PubSubSettings;
  readonly #transport: Transport;
  readonly #queues = new Map<string, Set<Queue>>();
  readonly #slowReaders = new SlowReaders();
  #closed = false;

  constructor(settings: PubSubSettings) {
    this.#settings = settings;
    const events: TransportEvents = {
      message: (channel, payload, size) => {
        for (const queue of this.#queues.get(channel) ?? []) queue.push(payload, size);
      },
      gap: () => {
        for (const channel of [...this.#queues.keys()]) {
          this.#endAll(channel, missedEvents('the connection to Redis was lost'));
        }
        settings.onGap();
      },
      refused: (error, channel) => {
        settings.onError(error);
        for (const name of channel === undefined ? [...this.#queues.keys()] : [channel])
          this.#endAll(name, error);
      },
      error: settings.onError,
    };
    this.#transport =
      settings.redis === undefined
        ? createLocalTransport(events)
        : new RedisTransport(settings.redis, settings, events);
  }

  publish<Topic extends keyof Events & string>(topic: Topic, payload: Events[Topic]): Promise<void> {
    const published = this.#transport.publish(this.#settings.prefix + topic, payload);
    published.catch(this.#settings.onError);
    return published;
  }

  subscribe<Topic extends keyof Events & string>(topic: Topic): AsyncIterableIterator<Events[Topic]> {
    const channel = this.#settings.prefix + topic;
    const queue = new EventQueue<Events[Topic]>(this.#settings, {
      ended: () => this.#remove(channel, queue as Queue),
      grew: () => this.#slowReaders.add(queue),
    });
    if (this.#closed) queue.end();
    else this.#add(channel, queue as Queue);
    return queue;
  }

  ready(topic: keyof Events & string): Promise<void> {
    return this.#transport.ready(this.#settings.prefix + topic);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const channel of [...this.#queues.keys()]) this.#endAll(channel);
    await this.#transport.close();
  }

  #add(channel: string, queue: Queue): void {
    const queues = this.#queues.get(channel);
    if (queues !== undefined) {
      queues.add(queue);
      return;
    }
    this.#queues.set(channel, new Set([queue]));
    this.#transport.subscribe(channel);
  }

  #remove(channel: string, queue: Queue): void {
    const queues = this.#queues.get(channel);
    if (queues?.delete(queue) !== true || queues.size > 0) return;
    this.#queues.delete(channel);
    this.#transport.unsubscribe(channel);
  }

  #endAll(channel: string, error?: Error): void {
    for (const queue of [...(this.#queues.get(channel) ?? [])]) queue.end(error);
  }
}
