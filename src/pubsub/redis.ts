import type { Redis } from 'ioredis';
import type { RedisClient } from '../../types/pubsub.ts';

/** What carries events between processes: an `EventTarget`, and what that interface has no words for. */
export interface Transport {
  readonly target: EventTarget;
  /** Resolves when Redis has taken the event that `target` was just given. */
  published(): Promise<unknown>;
  /** Resolves when Redis has confirmed the channel. */
  ready(channel: string): Promise<unknown>;
  close(): Promise<void>;
}

/** What happens without anybody asking. */
export interface TransportEvents {
  /** The connection was lost and is back: events in between are gone. */
  gap(): void;
  error(error: Error): void;
}

// Connected from the start; when closing, ioredis waits out the timeout even where there is no connection.
const BOTH = { lazyConnect: false, disconnectTimeout: 250 };
// A publish that cannot be sent now fails: sent later it would reach nobody, for subscribers come back later still.
const PUBLISHER = {
  ...BOTH,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
};
// A subscription waits for Redis as long as it takes, and is renewed by ioredis after a reconnect. Without the ready check:
// its INFO fails, and costs the connection, when a SUBSCRIBE was faster.
const SUBSCRIBER = {
  ...BOTH,
  enableReadyCheck: false,
  enableOfflineQueue: true,
  autoResubscribe: true,
  maxRetriesPerRequest: null,
};

/** Opens the two connections that Redis pub/sub takes and puts the event target of graphql-yoga over them. */
export async function connectRedis(redis: string | RedisClient, events: TransportEvents): Promise<Transport> {
  const { createRedisEventTarget } = await import('@graphql-yoga/redis-event-target');
  const publisher = await open(redis, PUBLISHER, events);
  const tried = attempted(publisher);
  const subscriber = await open(redis, SUBSCRIBER, events);
  let last: Promise<unknown> = Promise.resolve();
  let lost = false;

  subscriber.on('close', () => {
    lost = true;
  });
  subscriber.on('ready', () => {
    if (lost) events.gap();
    lost = false;
  });

  // The event target ignores the promises of the commands it sends; unwatched, a rejected one would end the process.
  const watched = (command: Promise<unknown>): Promise<unknown> => {
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
      subscribe: (channel: string) => watched(subscriber.subscribe(channel)),
      unsubscribe: (channel: string) => watched(subscriber.unsubscribe(channel)),
    } as Redis,
    serializer: { stringify: JSON.stringify, parse: parser(events.error) },
  });

  await tried;
  return {
    target,
    published: () => last,
    // Idempotent, and answered after every command before it on this connection: a barrier.
    ready: (channel) => subscriber.subscribe(channel),
    async close() {
      await Promise.allSettled([last]);
      await Promise.all([leave(publisher), leave(subscriber)]);
    },
  };
}

/** Resolves when a first attempt to connect has succeeded or failed: until then a publish has nowhere to go. */
function attempted(client: Redis): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['ready', 'close']) client.once(event, () => resolve());
  });
}

/** Hangs up, also where Redis is away and a QUIT would wait for it. */
function leave(client: Redis): Promise<void> {
  return new Promise((resolve) => {
    if (client.status === 'end') return resolve();
    client.once('end', () => resolve());
    // Between two attempts there is no connection whose end would be told.
    if (client.status === 'reconnecting') resolve();
    client.disconnect();
  });
}

/** What a message that is not ours parses to. */
export const FOREIGN: unique symbol = Symbol('foreign') as never;

/** Redis is open to others: what they send on our channels must not throw inside the connection's message handler. */
function parser(report: (error: Error) => void): (message: string) => unknown {
  return (message) => {
    try {
      return JSON.parse(message);
    } catch (error) {
      report(error as Error);
      return FOREIGN;
    }
  };
}

/** Listened to from the start: ioredis prints what nobody listens to. */
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
