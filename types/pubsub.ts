import type { ByteSize, Duration } from './connect.ts';
import type { RedisSource } from './redis.ts';

/** Options of `createPubSub`. */
export interface PubSubOptions {
  /**
   * What carries events to the subscribers of other processes: a Redis, by its URL or a client; `redis` with more options;
   * `file`, for the events of one process after a restart; `postgres` of `espalier/postgres`; or one of your own.
   * @default none: events stay in the memory of this process
   */
  transport?: EventTransport | RedisSource | undefined;
  /**
   * Stores the last events of each topic, so that streams can continue after an event (`after`), and so that a lost
   * connection ends no stream: in memory, or where the transport keeps them. In Redis (6.2 or later) that is a Redis Stream
   * per topic. All processes need the same value. `file` and `postgres` always have a history.
   * @default none: events are not stored
   */
  history?: HistoryOptions | undefined;
  /**
   * Bytes of events that may wait for one subscriber, measured as JSON from the 65th event on. Above it, its stream
   * ends with `ERR_EVENTS_MISSED`; so does one with more than 1024 waiting events that reads none for a second.
   * @default 8_388_608 (8 MiB)
   */
  maxBufferedBytes?: ByteSize | undefined;
  /**
   * Called after the connection of the transport was lost and is open again. Without `history` the streams have
   * ended. For logs and metrics.
   * @default none
   */
  onGap?: (() => void) | undefined;
  /**
   * Called with every error: a failed attempt to connect, a failed publish, a refused subscription, a message
   * that is not JSON. `false` ignores them.
   * @default a warning on standard error (`process.emitWarning`), at most once a minute for equal errors
   */
  onError?: ((error: Error) => void) | false | undefined;
}

/** The limits of the events that are stored per topic. An event is removed when one of them is reached. */
export interface HistoryOptions {
  /**
   * Events per topic. Redis and PostgreSQL may store some more.
   * @default 1000
   */
  length?: number | undefined;
  /**
   * How long an event is stored. In Redis this is the minimum: later publishes to the topic remove older events.
   * @default 300_000 (5 minutes)
   */
  ttl?: Duration | undefined;
}

/** The option `history` with its defaults. */
export interface HistorySettings {
  readonly length: number;
  /** In milliseconds. */
  readonly ttl: number;
}

/** Options of `redis`. */
export interface RedisTransportOptions {
  /**
   * Prefix of every channel and key. Applications on one Redis need different prefixes.
   * @default 'espalier:'
   */
  prefix?: string | undefined;
  /**
   * Sends an event of a cluster to the node of its topic only (`SPUBLISH`), and not to all nodes. Each process has a
   * connection to each master. All processes need the same value. Needs Redis 7 or later.
   * @default false
   */
  sharded?: boolean | undefined;
  /**
   * The time without traffic after which a connection is checked with PING. With `history` also the time between two
   * checks for messages that Redis has dropped: their events are read from the stream, within about two heartbeats if the
   * topic has no further event.
   * @default 5000
   */
  heartbeat?: Duration | undefined;
  /**
   * The time in which Redis must reply. After that the connection is closed and opened again, and waiting
   * publishes reject with the code `ERR_REDIS_TIMEOUT`. Also the time limit for connecting. After twelve times as long
   * without a connection, streams end with `ERR_EVENTS_MISSED`.
   * @default 5000
   */
  commandTimeout?: Duration | undefined;
}

/** The position of an event in its channel. */
export interface EventLink {
  /** The id of the event: 1 to 64 letters, digits and `_ . : ~ -`. */
  readonly id: string;
  /** The id of the event before it in the channel. For the first event the id of the start, which `newest` returned. */
  readonly previous: string;
}

/** An event that a transport has stored. */
export interface StoredMessage {
  readonly id: string;
  readonly payload: string;
}

/** What a transport tells `createPubSub`. */
export interface TransportListener {
  /** An event of a subscribed channel has arrived. With a history it has a link. */
  message(channel: string, payload: string, link?: EventLink): void;
  /** Messages of the channel, or of all channels, may have been lost; later ones arrive. */
  gap(channel?: string): void;
  /** The connection is lost. `gap` follows when messages arrive again. */
  lost(): void;
  /** Subscriptions to the channel, or to all channels, will never be possible. Ends their streams. */
  refused(error: Error, channel?: string): void;
  /** Any other error, for `onError`. */
  error(error: Error): void;
}

/** The events that a transport has stored. Ids are compared for equality only. */
export interface TransportHistory {
  /**
   * Returns events of a channel after an id, oldest first: none if it is the newest one, otherwise at least
   * one and at most `limit`, of about a megabyte together. `'missed'` if the id is unknown, or the event that follows it
   * is not stored. A read that rejects is repeated, unless the error has the code `ERR_EVENTS_REFUSED`.
   */
  read(channel: string, after: string, limit: number): Promise<readonly StoredMessage[] | 'missed'>;
  /**
   * Returns the id of the newest event. A channel without events needs an id too, that of its start: clients continue
   * after it. It stays the same until the first event, whose `previous` it becomes. When the events were lost, the start
   * is another one: otherwise the clients of the old one would not learn that they have missed events. A transport whose
   * ids have no part that changes then stores `start`, a new id, for a channel that has none, and returns it.
   *
   * Without `start` nothing is stored, and the result may be undefined.
   */
  newest(channel: string, start?: string): Promise<string | undefined>;
  /** Returns numbers for `stats()`. */
  extent?(channel: string): Promise<TopicStats>;
}

/** Options of `publish`. */
export interface PublishOptions {
  /**
   * A client with an open transaction. The event becomes part of it: subscribers get it after the commit. Only
   * transports of databases accept it, such as `postgres`.
   */
  client?: object | undefined;
}

/**
 * Carries events between processes. Channels are strings, and payloads JSON or empty. `testTransport` of `espalier/testing` checks
 * these rules:
 *
 * 1. `subscribe` resolves only when every later message arrives.
 * 2. After an interruption, `gap` is called before the next message of a channel that has lost one.
 * 3. With a `history`, every message has a link, and `link.previous` names the event before it in the channel.
 * 4. `read` never begins at another event than the next one.
 * 5. The messages of a channel arrive once, in the order of their ids, which are never used again. Events of one
 *    publisher have the order of its calls.
 * 6. `publish` sends an event once. It rejects if the event may not have been stored or sent.
 */
export interface EventTransport {
  /** Called once, before all other methods. `history` has the limits of that option, undefined without it. */
  open(listener: TransportListener, history?: HistorySettings): void;
  /** Resolves when the event is stored or sent. `options` is passed only if `acceptsClient` is true. */
  publish(channel: string, payload: string, options?: PublishOptions): Promise<void>;
  /**
   * Resolves when later events of the channel arrive; called again to verify that. Rejects if they never will. After a
   * lost connection the transport subscribes again by itself.
   */
  subscribe(channel: string): Promise<void>;
  /** Events of the channel do not arrive any more, unless `subscribe` is called again, which may be immediately. */
  unsubscribe(channel: string): void;
  /** Closes the connections. Later calls of `publish` and `subscribe` reject. */
  close(): Promise<void>;
  /** Known after `open`. */
  readonly history?: TransportHistory | undefined;
  /** Whether `publish` accepts a client with a transaction. */
  readonly acceptsClient?: boolean | undefined;
  /** The name of the transport, for messages. */
  readonly name?: string | undefined;
}

/** Options of `subscribe`. */
export interface SubscribeOptions {
  /**
   * The cursor of an event. The stream begins with the events that follow it. The cursor of another topic is
   * ignored. If the events are no longer stored, or the pubsub has no `history`, the stream rejects with an
   * error whose `extensions` are `{ code: 'EVENTS_MISSED', refetch: true }`.
   * @default none: later events only
   */
  after?: string | undefined;
}

/** A result of `next()`. With `history`, an event has a cursor: the position in its topic. */
export type EventResult<T> = IteratorResult<T> & { readonly cursor?: string | undefined };

/** A stream of events. */
export interface EventStream<T> extends AsyncIterableIterator<T> {
  next(): Promise<EventResult<T>>;
  return(): Promise<EventResult<T>>;
  [Symbol.asyncIterator](): this;
  /** The cursor before the first event. Undefined without `history`, and until Redis has replied. */
  readonly startCursor?: string | undefined;
  /**
   * The cursor up to which the consumer has all events: those that it took before its last call of `next`,
   * and those that a `filter` has left out. Undefined while `startCursor` is.
   */
  readonly position?: string | undefined;
  /** Resolves when `startCursor` is known or the stream has ended. Without `history` it resolves at once. */
  started?(): Promise<void>;
}

/** Numbers of one `createPubSub`, for metrics. */
export interface PubSubStats {
  /** Open streams of this process. */
  readonly streams: number;
  /** Streams of this process that have continued after a cursor, since its start. */
  readonly replays: number;
  /** The history of each topic with a stream in this process. Empty without `history`. */
  readonly topics: Readonly<Record<string, TopicStats>>;
}

/** The stored events of one topic. */
export interface TopicStats {
  readonly length: number;
  /** Time of the oldest event, in milliseconds since 1970; undefined without events. */
  readonly oldest: number | undefined;
}

/** Publishes events and creates streams of them. `Events` maps each topic to the type of its payload. */
export interface PubSub<Events extends object> {
  /**
   * Sends an event to every subscriber of the topic. Resolves when Redis has received it, or immediately
   * without Redis. Rejects when it could not be sent, or when Redis did not reply within `commandTimeout`; it
   * will not be sent later.
   */
  publish<Topic extends keyof Events & string>(
    topic: Topic,
    payload: Events[Topic],
    options?: PublishOptions,
  ): Promise<void>;
  /**
   * Streams the events of a topic from now on or after a cursor, for the `subscribe` resolver of a
   * subscription. The stream rejects with an error of code `ERR_EVENTS_MISSED` if events may have been
   * missed. Without `history` a WebSocket is then closed with 1013, so that the client reconnects and queries
   * the current state. The code `ERR_EVENTS_REFUSED` means that Redis has refused the subscription.
   */
  subscribe<Topic extends keyof Events & string>(
    topic: Topic,
    options?: SubscribeOptions,
  ): EventStream<Events[Topic]>;
  /**
   * Resolves when Redis has confirmed the subscription to a topic. A stream that is opened within the next 30 seconds
   * gets all later events; without one the subscription ends. Rejects if Redis refuses it, or if `close()` is called
   * first.
   */
  ready(topic: keyof Events & string): Promise<void>;
  /** Returns the numbers of streams, and the lengths of the histories. Rejects if Redis does not reply. */
  stats(): Promise<PubSubStats>;
  /** Ends all streams and disconnects from Redis. Call it after `close()` of `attachSubscriptions`. */
  close(): Promise<void>;
}
