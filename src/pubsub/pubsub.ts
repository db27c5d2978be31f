import type {
  EventStream,
  EventTransport,
  HistorySettings,
  PublishOptions,
  PubSub,
  PubSubOptions,
  PubSubStats,
  SubscribeOptions,
  TopicStats,
} from '../../types/pubsub.ts';
import type { RedisSource } from '../../types/redis.ts';
import { createChannel, type EventChannel, Observed } from '../diagnostics/channels.ts';
import { createErrorListener, guardListener } from '../diagnostics/logging.ts';
import {
  bytes,
  isEither,
  optionError,
  type Rules,
  resolveOptions,
  rule,
  unchecked,
} from '../options/rules.ts';
import { HISTORY_OPTIONS, PUBSUB_OPTIONS } from '../options/scopes.ts';
import { isFunction, isObject } from '../options/values.ts';
import { isRedis, redisRule } from '../redis/clients.ts';
import { cursorsOf, idOf, isId, resumedCursor } from './cursor.ts';
import { assertTopic } from './derived.ts';
import { HISTORY_RULES, MemoryHistory } from './history.ts';
import { type PresenceAccess, type PresenceStore, withAccess } from './presence-store.ts';
import { IdleTopics, RecordedTopic } from './recorded-topic.ts';
import { RedisTransport } from './redis-transport.ts';
import {
  EventQueue,
  eventsNotStored,
  mayHaveMissedEvents,
  SlowReaders,
  Topic,
  type TopicServices,
} from './topic.ts';
import {
  channelOf,
  createLocalTransport,
  type Engine,
  SharedTransport,
  type Transport,
  type TransportEvents,
} from './transport.ts';

/**
 * Creates a source of events for subscriptions: within this process, or with a `transport` in every process that has the
 * same one.
 *
 * @throws TypeError for an unknown option or a wrong value.
 */
export function createPubSub<Events extends object = Record<string, unknown>>(
  options?: PubSubOptions,
): PubSub<Events> {
  const broker = new EventBroker<Events>(resolvePubSubOptions(options));
  const pubsub: PubSub<Events> = {
    publish(topic, payload, publishOptions) {
      assertTopic(PUBLISH, topic);
      if (publishOptions !== undefined) resolveOptions(PUBLISH, publishOptions, PUBLISH_RULES);
      return broker.publish(topic, payload, publishOptions);
    },
    subscribe(topic, subscribeOptions) {
      assertTopic(SUBSCRIBE, topic);
      if (subscribeOptions !== undefined) resolveOptions(SUBSCRIBE, subscribeOptions, SUBSCRIBE_RULES);
      return broker.subscribe(topic, subscribeOptions);
    },
    ready: (topic) => broker.ready(topic),
    stats: () => broker.stats(),
    close: () => broker.close(),
  };
  return withAccess(pubsub, broker);
}

// The options of the methods. An unknown one would be ignored: a client that is not passed as `client` for example.
const PUBLISH = { ...PUBSUB_OPTIONS, name: 'publish', example: '{ client }' };
const PUBLISH_RULES = { client: unchecked };
const SUBSCRIBE = {
  ...PUBSUB_OPTIONS,
  name: 'subscribe',
  example: '{ after: cursor }. Read the events with for await',
};
const SUBSCRIBE_RULES = { after: unchecked };

class EventBroker<Events extends object> implements PubSub<Events>, PresenceAccess {
  readonly #settings: PubSubSettings;
  readonly #prefix: string;
  readonly #transport: Transport;
  readonly #topics = new Map<string, Topic>();
  readonly #services: TopicServices;
  readonly #idleTopics: IdleTopics | undefined;
  readonly #beforeClose: (() => Promise<unknown>)[] = [];
  #replays = 0;
  #closed = false;

  constructor(settings: PubSubSettings) {
    this.#settings = settings;
    this.#prefix = settings.engine?.prefix ?? '';
    this.#services = {
      maxBufferedBytes: settings.maxBufferedBytes,
      slowReaders: new SlowReaders(),
      emptied: (topic) => {
        if (this.#topics.get(topic.channel) !== topic) return;
        this.#topics.delete(topic.channel);
        this.#transport.unsubscribe(topic.channel);
      },
    };
    const events: TransportEvents = {
      message: (channel, payload, size, link) => {
        const topic = this.#topics.get(channel);
        topic?.receive(payload, size, link);
        if (topic !== undefined && topic.size > 0 && deliveries.hasSubscribers) {
          deliveries.publish({ topic: channel.slice(this.#prefix.length), streams: topic.size });
        }
      },
      subscribed: (channel) => this.#topics.get(channel)?.subscribed(),
      gap: (channel) => {
        for (const topic of this.#topicsOf(channel)) topic.reconnected();
        settings.onGap();
      },
      outage: (channels, seconds) => {
        for (const channel of channels)
          this.#topics.get(channel)?.end(mayHaveMissedEvents(`no connection for ${seconds} seconds`));
      },
      refused: (error, channel) => {
        settings.onError(error);
        for (const topic of this.#topicsOf(channel)) topic.close(error);
      },
      error: settings.onError,
    };
    this.#transport = createTransport(settings, events);
    this.#idleTopics = this.#checkIdleTopics();
  }

  publish<Name extends keyof Events & string>(
    topic: Name,
    payload: Events[Name],
    options?: PublishOptions,
  ): Promise<void> {
    const publish = () => this.#transport.publish(channelOf(this.#prefix, topic), payload, options);
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

  async ready(name: keyof Events & string): Promise<void> {
    const channel = channelOf(this.#prefix, name);
    if (this.#closed) return this.#transport.ready(channel);
    let topic = this.#topics.get(channel);
    if (topic === undefined) {
      topic = this.#createTopic(channel, name);
      this.#transport.subscribe(channel);
    }
    await topic.ready(this.#transport.ready(channel));
  }

  async stats(): Promise<PubSubStats> {
    const { history } = this.#transport;
    const topics = [...this.#topics.values()].filter(({ size }) => size > 0);
    const extent = history?.extent?.bind(history);
    const entries = extent === undefined ? [] : topics.map((topic) => this.#statsOf(topic, extent));
    return {
      streams: topics.reduce((sum, topic) => sum + topic.size, 0),
      replays: this.#replays,
      topics: Object.fromEntries(await Promise.all(entries)),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    // Without it, the streams end at once.
    if (this.#beforeClose.length > 0) await Promise.all(this.#beforeClose.splice(0).map((close) => close()));
    this.#idleTopics?.close();
    for (const topic of [...this.#topics.values()]) topic.close();
    await this.#transport.close();
  }

  get presence(): PresenceStore | undefined {
    return this.#transport.presence;
  }

  channelOf(topic: string): string {
    return channelOf(this.#prefix, topic);
  }

  onError(error: Error): void {
    this.#settings.onError(error);
  }

  beforeClose(close: () => Promise<unknown>): void {
    this.#beforeClose.push(close);
  }

  #open(name: string, { after }: SubscribeOptions): EventStream<unknown> {
    const channel = channelOf(this.#prefix, name);
    const { history } = this.#transport;
    const cursor = after ?? (history === undefined ? undefined : resumedCursor());
    const id = cursor === undefined ? undefined : idOf(name, cursor);
    if (id !== undefined) {
      if (history === undefined || !isId(id)) return this.#endedStream(eventsNotStored());
      this.#replays++;
    }
    const topic = this.#topics.get(channel);
    if (topic !== undefined) return topic.open(id);
    const created = this.#createTopic(channel, name);
    const stream = created.open(id);
    this.#transport.subscribe(channel);
    return stream;
  }

  #createTopic(channel: string, name: string): Topic {
    const { history } = this.#transport;
    const topic =
      history === undefined
        ? new Topic(channel, this.#services)
        : new RecordedTopic(channel, this.#services, { store: history, cursor: cursorsOf(name) });
    this.#topics.set(channel, topic);
    return topic;
  }

  #checkIdleTopics(): IdleTopics | undefined {
    const { history } = this.#transport;
    const newest = history?.peek?.bind(history);
    if (newest === undefined) return undefined;
    return new IdleTopics(this.#settings.engine?.heartbeat ?? HEARTBEAT, {
      topics: () => this.#topics.values(),
      isConnected: () => this.#transport.isConnected,
      newest,
    });
  }

  /** Returns the topic of a channel if it has streams, or all of them. */
  #topicsOf(channel: string | undefined): readonly Topic[] {
    if (channel === undefined) return [...this.#topics.values()];
    const topic = this.#topics.get(channel);
    return topic === undefined ? [] : [topic];
  }

  async #statsOf(
    { channel }: Topic,
    extent: (channel: string) => Promise<TopicStats>,
  ): Promise<[string, TopicStats]> {
    return [channel.slice(this.#prefix.length), await extent(channel)];
  }

  #endedStream(error?: Error): EventStream<unknown> {
    const queue = new EventQueue(this.#settings.maxBufferedBytes, { ended() {}, grew() {} });
    queue.end(error);
    return queue;
  }
}

/** Milliseconds between two checks for messages that a transport of the application has dropped. */
const HEARTBEAT = 5000;

function createTransport({ engine, history, onError }: PubSubSettings, events: TransportEvents): Transport {
  if (engine === undefined) return createLocalTransport(events, history && new MemoryHistory(history));
  const transport = new SharedTransport(engine, events, history);
  if (history === undefined || transport.history !== undefined) return transport;
  transport.close().catch(onError);
  throw optionError(
    PUBSUB_OPTIONS,
    'option "history" has no effect with this transport, which stores no events; remove it',
  );
}

/** The end of a publish: without an error the transport has the event. */
interface PublishResult {
  readonly error: unknown;
}

/** Published when an event is published. Subscribers may observe how it ends. */
export class ObservedPublish extends Observed<PublishResult> {
  readonly topic: string;
  readonly payload: unknown;

  constructor(topic: string, payload: unknown) {
    super();
    this.topic = topic;
    this.payload = payload;
  }
}

/** Published when an event has arrived for the streams of a topic. */
export interface DeliveryEvent {
  readonly topic: string;
  readonly streams: number;
}

const publishes: EventChannel<ObservedPublish> = createChannel('pubsub:publish');
const deliveries: EventChannel<DeliveryEvent> = createChannel('pubsub:event');

/** Publishes the start of `publish`, and observes its end. */
function observePublish(topic: string, payload: unknown, publish: () => Promise<void>): Promise<void> {
  const observed = new ObservedPublish(topic, payload);
  publishes.publish(observed);
  const published = publish();
  published.then(
    () => observed.end({ error: undefined }),
    (error: unknown) => observed.end({ error }),
  );
  return published;
}

interface PubSubSettings {
  readonly engine: Engine | undefined;
  readonly history: HistorySettings | undefined;
  readonly maxBufferedBytes: number;
  readonly onGap: () => void;
  readonly onError: (error: Error) => void;
}

type Given = Omit<PubSubSettings, 'engine' | 'history' | 'onError'> & {
  readonly transport: EventTransport | RedisSource | undefined;
  readonly history: unknown;
  readonly onError: ((error: Error) => void) | false | undefined;
};

const WARNINGS = { owner: 'createPubSub', type: 'PubSubWarning', code: 'ESPALIER_PUBSUB' };
const ignore = (): void => undefined;

function isTransport(value: unknown): value is EventTransport {
  const methods = ['open', 'publish', 'subscribe', 'unsubscribe', 'close'];
  return isObject(value) && methods.every((name) => isFunction(value[name]));
}

const RULES: Rules<Given> = {
  transport: rule<Given['transport']>(
    undefined,
    isEither(isRedis, isTransport),
    `${redisRule.accepted}, what redis() or file() returned, postgres() of espalier/postgres, or an object with open, publish, subscribe, unsubscribe and close`,
  ),
  history: rule<unknown>(undefined, isObject, "an object such as { length: 1000, ttl: '5m' }"),
  maxBufferedBytes: bytes(8 * 1024 * 1024),
  onGap: rule(ignore, isFunction, 'a function'),
  onError: rule<Given['onError']>(
    undefined,
    isEither(isFunction, (value) => value === false),
    'a function, or false',
  ),
};

/** The transports that belong to a pubsub. */
const usedTransports = new WeakSet<EventTransport>();

/** A transport serves one pubsub. */
function engineOf(transport: Given['transport']): Engine | undefined {
  if (transport === undefined) return undefined;
  if (!isTransport(transport) || isRedis(transport)) return new RedisTransport(transport, undefined);
  if (usedTransports.has(transport)) {
    throw optionError(
      PUBSUB_OPTIONS,
      'the value of the option "transport" belongs to another pubsub; create one for each',
    );
  }
  usedTransports.add(transport);
  return transport;
}

function resolvePubSubOptions(options: PubSubOptions | undefined): PubSubSettings {
  const { transport, history, ...settings } = resolveOptions<Given>(PUBSUB_OPTIONS, options, RULES);
  const onError = createErrorListener(settings.onError, WARNINGS);
  return {
    ...settings,
    history:
      history === undefined
        ? undefined
        : resolveOptions<HistorySettings>(HISTORY_OPTIONS, history, HISTORY_RULES),
    engine: engineOf(transport),
    onGap: guardListener('onGap', settings.onGap, onError),
    onError,
  };
}
