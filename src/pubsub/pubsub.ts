import type {
  EventStream,
  PubSub,
  PubSubOptions,
  PubSubStats,
  SubscribeOptions,
  TopicStats,
} from '../../types/pubsub.ts';
import { type OptionScope, wrongArgument } from '../options/resolve-options.ts';
import { isFunction, isString } from '../options/rules.ts';
import { PUBSUB_OPTIONS } from '../options/scopes.ts';
import { cursorsOf, idOf, isId, resumedCursor } from './cursor.ts';
import { IdleTopics } from './history/idle-topics.ts';
import { MemoryHistory } from './history/memory.ts';
import { RecordedTopic } from './history/recorded-topic.ts';
import type { HistoryStore } from './history/store.ts';
import { deliveries, observePublish, publishes } from './observed-publish.ts';
import { type PubSubSettings, resolvePubSubOptions } from './options.ts';
import { RedisTransport } from './redis/transport.ts';
import { EventQueue } from './streams/event-queue.ts';
import { eventsNotStored } from './streams/missed-events.ts';
import { SlowReaders } from './streams/slow-readers.ts';
import { Topic, type TopicServices } from './streams/topic.ts';
import { channelOf, createLocalTransport, type Transport, type TransportEvents } from './transport.ts';

/**
 * Creates a source of events for subscriptions: within this process, or with `redis` in every process on the
 * same Redis.
 *
 * @throws TypeError for an unknown option or a wrong value.
 */
export function createPubSub<Events extends object = Record<string, unknown>>(
  options?: PubSubOptions,
): PubSub<Events> {
  const broker = new EventBroker<Events>(resolvePubSubOptions(options));
  return {
    publish(topic, payload) {
      assertTopic(PUBLISH, topic);
      return broker.publish(topic, payload);
    },
    subscribe(topic, subscribeOptions) {
      assertTopic(SUBSCRIBE, topic);
      if (isFunction(subscribeOptions))
        throw wrongArgument(SUBSCRIBE, 'options', subscribeOptions, NO_CALLBACK);
      return broker.subscribe(topic, subscribeOptions);
    },
    ready: (topic) => broker.ready(topic),
    stats: () => broker.stats(),
    close: () => broker.close(),
  };
}

// The scopes of the methods.
const PUBLISH = { ...PUBSUB_OPTIONS, name: 'publish' };
const SUBSCRIBE = { ...PUBSUB_OPTIONS, name: 'subscribe' };
const NO_CALLBACK = 'an object such as { after: cursor }. Read the events with for await';

function assertTopic(scope: OptionScope, topic: unknown): void {
  if (!isString(topic)) throw wrongArgument(scope, 'topic', topic, 'the name of a topic, a string');
}

class EventBroker<Events extends object> implements PubSub<Events> {
  readonly #settings: PubSubSettings;
  readonly #transport: Transport;
  readonly #topics = new Map<string, Topic>();
  readonly #services: TopicServices;
  readonly #idleTopics: IdleTopics | undefined;
  #replays = 0;
  #closed = false;

  constructor(settings: PubSubSettings) {
    this.#settings = settings;
    this.#services = {
      limits: settings,
      slowReaders: new SlowReaders(),
      emptied: (channel) => {
        this.#topics.delete(channel);
        this.#transport.unsubscribe(channel);
      },
    };
    const events: TransportEvents = {
      message: (channel, payload, size, link) => {
        const topic = this.#topics.get(channel);
        topic?.receive(payload, size, link);
        if (topic !== undefined && deliveries.hasSubscribers) {
          deliveries.publish({ topic: channel.slice(settings.prefix.length), streams: topic.size });
        }
      },
      subscribed: (channel) => this.#topics.get(channel)?.subscribed(),
      gap: () => {
        for (const topic of [...this.#topics.values()]) topic.reconnected();
        settings.onGap();
      },
      refused: (error, channel) => {
        settings.onError(error);
        for (const name of channel === undefined ? [...this.#topics.keys()] : [channel])
          this.#topics.get(name)?.end(error);
      },
      error: settings.onError,
    };
    this.#transport = createTransport(settings, events);
    this.#idleTopics = this.#checkIdleTopics();
  }

  publish<Name extends keyof Events & string>(topic: Name, payload: Events[Name]): Promise<void> {
    const publish = () => this.#transport.publish(channelOf(this.#settings.prefix, topic), payload);
    const published = publishes.hasSubscribers ? observePublish(topic, payload, publish) : publish();
    published.catch(this.#settings.onError);
    return published;
  }

  subscribe<Name extends keyof Events & string>(
    name: Name,
    options: SubscribeOptions = {},
  ): EventStream<Events[Name]> {
    const stream = this.#closed ? this.#endedStream() : this.#open(name, options);
    return stream as EventStream<Events[Name]>;
  }

  async ready(topic: keyof Events & string): Promise<void> {
    const channel = channelOf(this.#settings.prefix, topic);
    await this.#transport.ready(channel);
    await this.#topics.get(channel)?.started();
  }

  async stats(): Promise<PubSubStats> {
    const { history } = this.#transport;
    const topics = [...this.#topics.values()];
    const entries = history === undefined ? [] : topics.map(({ channel }) => this.#extent(channel, history));
    return {
      streams: topics.reduce((sum, topic) => sum + topic.size, 0),
      replays: this.#replays,
      topics: Object.fromEntries(await Promise.all(entries)),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#idleTopics?.close();
    for (const topic of [...this.#topics.values()]) topic.end();
    await this.#transport.close();
  }

  #open(name: string, { after }: SubscribeOptions): EventStream<unknown> {
    const channel = channelOf(this.#settings.prefix, name);
    const { history } = this.#transport;
    const cursor = after ?? (history === undefined ? undefined : resumedCursor());
    const id = cursor === undefined ? undefined : idOf(name, cursor);
    if (id !== undefined) {
      if (history === undefined || !isId(id)) return this.#endedStream(eventsNotStored());
      this.#replays++;
    }
    const topic = this.#topics.get(channel);
    if (topic !== undefined) return topic.open(id);
    const created =
      history === undefined
        ? new Topic(channel, this.#services)
        : new RecordedTopic(channel, this.#services, { store: history, cursor: cursorsOf(name) });
    this.#topics.set(channel, created);
    const stream = created.open(id);
    this.#transport.subscribe(channel);
    return stream;
  }

  #checkIdleTopics(): IdleTopics | undefined {
    const { history } = this.#transport;
    const newest = history?.peek?.bind(history);
    if (newest === undefined) return undefined;
    return new IdleTopics(this.#settings.heartbeat, {
      topics: () => this.#topics.values(),
      isConnected: () => this.#transport.isConnected,
      newest,
    });
  }

  async #extent(channel: string, history: HistoryStore): Promise<[string, TopicStats]> {
    return [channel.slice(this.#settings.prefix.length), await history.extent(channel)];
  }

  #endedStream(error?: Error): EventStream<unknown> {
    const queue = new EventQueue(this.#settings, { ended() {}, grew() {} });
    queue.end(error);
    return queue;
  }
}

function createTransport(settings: PubSubSettings, events: TransportEvents): Transport {
  const { redis, history } = settings;
  if (redis !== undefined) return new RedisTransport(redis, settings, events);
  return createLocalTransport(events, history && new MemoryHistory(history));
}
