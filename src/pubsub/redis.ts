import type { Redis } from 'ioredis';
import type { RedisClient } from '../../types/pubsub.ts';

/** Carries events between processes: an `EventTarget`, with confirmation and an end. */
export interface Transport {
  readonly target: EventTarget;
  /** Resolves when Redis has received the event that was last dispatched to `target`. */
  published(): Promise<unknown>;
  /** Resolves when Redis has confirmed the subscription to the channel. */
  ready(channel: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Events of the connections. */
export interface TransportEvents {
  /** The connection was lost and is open again; events in between are lost. */
  gap(): void;
  error(error: Error): void;
}

// Connects immediately. On disconnect ioredis waits for the timeout even without a connection.
const SHARED_OPTIONS = { lazyConnect: false, disconnectTimeout: 250 };
// A publish that cannot be sent now fails. Sent later it would reach no subscriber, because those reconnect later still.
const PUBLISHER_OPTIONS = {
  ...SHARED_OPTIONS,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
};
// A subscription waits for Redis without a limit, and ioredis renews it after a reconnect. The ready check is off: its INFO fails
// after a SUBSCRIBE and would close the connection.
const SUBSCRIBER_OPTIONS = {
  ...SHARED_OPTIONS,
  enableReadyCheck: false,
  enableOfflineQueue: true,
  autoResubscribe: true,
  maxRetriesPerRequest: null,
};

/** Opens the two connections that Redis pub/sub needs and creates the event target of graphql-yoga on them. */
export async function connectRedis(redis: string | RedisClient, events: TransportEvents): Promise<Transport> {
  const { createRedisEventTarget } = await import('@graphql-yoga/redis-event-target');
  const publisher = await open(redis, PUBLISHER_OPTIONS, events);
  const tried = firstAttempt(publisher);
  const subscriber = await open(redis, SUBSCRIBER_OPTIONS, events);
  let last: Promise<unknown> = Promise.resolve();
  let lost = false;

  subscriber.on('close', () => {
    lost = true;
  });
  subscriber.on('ready', () => {
    if (lost) events.gap();
    lost = false;
  });

  // The event target ignores the promises of its commands; a rejection without a handler would end the process.
  const handled = (command: Promise<unknown>): Promise<unknown> => {
    command.catch(events.error);
    return command;
  };
  const target = createRedisEventTarget({
    publishClient: {
      publish: (channel: string, message: string) => {
        last = publisher.publish(channel, message);
        return last;
      },
    } as Redis,
    subscribeClient: {
      on: (event: 'message', listener: (channel: string, message: string) => void) =>
        subscriber.on(event, listener),
      subscribe: (channel: string) => handled(subscriber.subscribe(channel)),
      unsubscribe: (channel: string) => handled(subscriber.unsubscribe(channel)),
    } as Redis,
    serializer: { stringify: JSON.stringify, parse: parser(events.error) },
  });

  await tried;
  return {
    target,
    published: () => last,
    // Idempotent. Redis replies to commands in order, so this also waits for all earlier subscriptions.
    ready: (channel) => subscriber.subscribe(channel),
    async close() {
      await Promise.allSettled([last]);
      await Promise.all([disconnect(publisher), disconnect(subscriber)]);
    },
  };
}

/** Resolves when the first attempt to connect has succeeded or failed; a publish waits for it. */
function firstAttempt(client: Redis): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['ready', 'close']) client.once(event, () => resolve());
  });
}

/** Closes a connection, also when Redis is down and QUIT would wait for it. */
function disconnect(client: Redis): Promise<void> {
  return new Promise((resolve) => {
    if (client.status === 'end') return resolve();
    client.once('end', () => resolve());
    // Between two attempts there is no connection that could emit `end`.
    if (client.status === 'reconnecting') resolve();
    client.disconnect();
  });
}

/** The parsed value of a message that is not JSON. */
export const INVALID_MESSAGE: unique symbol = Symbol('invalid message');

/** Any client of Redis can publish on our channels; its messages must not throw inside the connection's message handler. */
function parser(report: (error: Error) => void): (message: string) => unknown {
  return (message) => {
    try {
      return JSON.parse(message);
    } catch (error) {
      report(error as Error);
      return INVALID_MESSAGE;
    }
  };
}

/** The error listener is added immediately: ioredis prints errors without a listener. */
async function open(
  redis: string | RedisClient,
  options: object,
  { error }: TransportEvents,
): Promise<Redis> {
  const client = typeof redis === 'string' ? await connect(redis, options) : redis.duplicate(options);
  return (client as Redis).on('error', error);
}

async function connect(url: string, options: object): Promise<Redis> {
  const { Redis: Client } = await import('ioredis');
  return new Client(url, options);
}
