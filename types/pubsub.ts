/** An ioredis client (5.x). Two connections like it are opened beside it; the client itself stays yours. */
export interface RedisClient {
  duplicate(override?: object): unknown;
}

/** Options of `createPubSub`. */
export interface PubSubOptions {
  /**
   * Redis, through ioredis: a URL (`redis://…`, `rediss://…`) or a client of yours to take the settings from. Events then reach
   * the subscribers of every process on the same Redis and prefix. Needs `ioredis` and `@graphql-yoga/redis-event-target`.
   * @default none: events stay in this process
   */
  redis?: string | RedisClient | undefined;
  /**
   * Put before every topic to make the Redis channel, so that applications sharing a Redis do not hear each other.
   * @default 'espalier:'
   */
  prefix?: string | undefined;
  /**
   * Events held for one subscriber that does not keep up. One more, and its stream ends as after a gap: memory stays bounded
   * and the client starts afresh.
   * @default 1024
   */
  bufferSize?: number | undefined;
  /**
   * Called when events may have been missed because the connection to Redis was lost, once it is back; the streams have
   * ended by then. For logs and metrics.
   * @default none
   */
  onGap?: (() => void) | undefined;
  /**
   * Called with what goes wrong in the background: a lost connection (for each attempt), a foreign message that is not JSON.
   * @default none: such errors are dropped
   */
  onError?: ((error: Error) => void) | undefined;
}

/** What a publisher of events and its subscribers share; `Events` maps each topic to its payload. */
export interface PubSub<Events extends object> {
  /**
   * Sends an event to every subscriber of the topic. Resolves when it was handed over (to Redis, when there is one) and
   * rejects when it was not: it will not be sent later.
   */
  publish<Topic extends keyof Events & string>(topic: Topic, payload: Events[Topic]): Promise<void>;
  /**
   * The events of a topic from now on, for a subscription's `subscribe` resolver. The stream rejects with an error of code
   * `ERR_EVENTS_MISSED` where events may have been missed; over a WebSocket that closes the socket with 1013, so that clients
   * connect again and ask for what they missed.
   */
  subscribe<Topic extends keyof Events & string>(topic: Topic): AsyncIterableIterator<Events[Topic]>;
  /**
   * Resolves when Redis has confirmed the subscription to a topic: what is published after that arrives. Rejects when
   * `close()` comes first.
   */
  ready(topic: keyof Events & string): Promise<void>;
  /** Ends all streams, leaves Redis. After `attachSubscriptions`' own `close`, so that clients were told to go elsewhere. */
  close(): Promise<void>;
}
