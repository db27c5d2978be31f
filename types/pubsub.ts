/** An ioredis client (5.x). Two connections with its settings are opened; the client itself is not used. */
export interface RedisClient {
  duplicate(override?: object): unknown;
}

/** Options of `createPubSub`. */
export interface PubSubOptions {
  /**
   * A Redis URL (`redis://…`, `rediss://…`), or an ioredis client whose settings are copied. Events then reach the subscribers of
   * every process with the same Redis and prefix. Needs the packages `ioredis` and `@graphql-yoga/redis-event-target`.
   * @default none: events stay in this process
   */
  redis?: string | RedisClient | undefined;
  /**
   * Prefix of every Redis channel. Applications on one Redis need different prefixes.
   * @default 'espalier:'
   */
  prefix?: string | undefined;
  /**
   * Maximum number of events queued for one slow subscriber. One more ends its stream with `ERR_EVENTS_MISSED`.
   * @default 1024
   */
  bufferSize?: number | undefined;
  /**
   * Called after the connection to Redis was lost and is open again, when the streams have ended. For logs and metrics.
   * @default none
   */
  onGap?: (() => void) | undefined;
  /**
   * Called with errors in the background: each failed attempt to connect, and messages on our channels that are not JSON.
   * @default none: such errors are ignored
   */
  onError?: ((error: Error) => void) | undefined;
}

/** Publishes events and creates streams of them. `Events` maps each topic to the type of its payload. */
export interface PubSub<Events extends object> {
  /**
   * Sends an event to every subscriber of the topic. Resolves when Redis has received it, or immediately without Redis. Rejects
   * when it could not be sent; it will not be sent later.
   */
  publish<Topic extends keyof Events & string>(topic: Topic, payload: Events[Topic]): Promise<void>;
  /**
   * Streams the events of a topic from now on, for the `subscribe` resolver of a subscription. The stream rejects with an error of
   * code `ERR_EVENTS_MISSED` if events may have been missed. A WebSocket is then closed with 1013, so that the client reconnects
   * and queries the current state.
   */
  subscribe<Topic extends keyof Events & string>(topic: Topic): AsyncIterableIterator<Events[Topic]>;
  /**
   * Resolves when Redis has confirmed the subscription to a topic; later events arrive. Rejects if `close()` is called first.
   */
  ready(topic: keyof Events & string): Promise<void>;
  /** Ends all streams and disconnects from Redis. Call it after `close()` of `attachSubscriptions`. */
  close(): Promise<void>;
}
