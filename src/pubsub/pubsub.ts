import type { PubSub, PubSubOptions, RedisClient } from '../../types/pubsub.ts';
import { resolveOptions } from '../options/resolve-options.ts';
import { isFunction, isObject, isString, positive, type Rules, rule } from '../options/rules.ts';
import { PUBSUB_OPTIONS } from '../options/scopes.ts';
import { createQueue, type Queue } from './event-queue.ts';
import { connectRedis, INVALID_MESSAGE, type Transport } from './redis.ts';

interface PubSubSettings {
  redis: string | RedisClient | undefined;
  prefix: string;
  bufferSize: number;
  onGap: () => void;
  onError: (error: Error) => void;
}

const isRedis = (value: unknown): boolean =>
  isString(value) ? /^rediss?:\/\//.test(value) : isObject(value) && isFunction(value['duplicate']);
const ignore = (): void => undefined;

const RULES: Rules<PubSubSettings> = {
  redis: rule(undefined, isRedis, 'a redis:// or rediss:// URL, or an ioredis client'),
  prefix: rule('espalier:', isString, 'a string'),
  bufferSize: positive(1024),
  onGap: rule(ignore, isFunction, 'a function'),
  onError: rule(ignore, isFunction, 'a function'),
};

/**
 * Creates a source of events for subscriptions: within this process, or with `redis` in every process on the same Redis.
 *
 * @throws TypeError for an unknown option or a wrong value.
 */
export function createPubSub<Events extends object = Record<string, unknown>>(
  options?: PubSubOptions,
): PubSub<Events> {
  const { redis, prefix, bufferSize, onGap, onError } = resolveOptions(PUBSUB_OPTIONS, options, RULES);
  const queues = new Set<Queue<unknown>>();
  // `close` rejects these: ioredis never settles commands that are queued between two attempts to connect.
  const waiting = new Set<(error: Error) => void>();
  // Everything below waits for this one promise, so that subscribe, unsubscribe and publish keep their order.
  const transport =
    redis === undefined ? Promise.resolve(inMemory()) : connectRedis(redis, { gap, error: onError });
  transport.catch(onError);
  let closed = false;

  function gap(): void {
    for (const queue of [...queues]) queue.end(missed('the connection to Redis was lost'));
    onGap();
  }

  async function send(topic: string, payload: unknown): Promise<void> {
    const { target, published } = await transport;
    target.dispatchEvent(new CustomEvent(prefix + topic, { detail: payload }));
    await published();
  }

  function subscribe<T>(topic: string): AsyncIterableIterator<T> {
    const channel = prefix + topic;
    const listener = (event: Event): void => {
      const { detail } = event as CustomEvent<T | typeof INVALID_MESSAGE>;
      if (detail !== INVALID_MESSAGE) queue.push(detail);
    };
    const overflow = (): Error => missed(`more than ${bufferSize} events were waiting`);
    const queue: Queue<T> = createQueue<T>(bufferSize, overflow, () => {
      queues.delete(queue as Queue<unknown>);
      transport.then(({ target }) => target.removeEventListener(channel, listener), ignore);
    });
    queues.add(queue as Queue<unknown>);
    transport.then(({ target }) => target.addEventListener(channel, listener), queue.end);
    if (closed) queue.end();
    return queue.stream;
  }

  return {
    subscribe,
    publish(topic, payload) {
      const sent = send(topic, payload);
      sent.catch(onError);
      return sent;
    },
    ready(topic) {
      return new Promise((resolve, reject) => {
        if (closed) return reject(closedError());
        waiting.add(reject);
        transport
          .then((open) => open.ready(prefix + topic))
          .then(() => resolve(), reject)
          .finally(() => waiting.delete(reject));
      });
    },
    async close() {
      closed = true;
      for (const reject of waiting) reject(closedError());
      for (const queue of [...queues]) queue.end();
      await transport.then((open) => open.close(), ignore);
    },
  };
}

const closedError = (): Error => new Error('The pubsub was closed before Redis confirmed the subscription');

function inMemory(): Transport {
  const done = (): Promise<void> => Promise.resolve();
  return { target: new EventTarget(), published: done, ready: done, close: done };
}

/** Ends a stream early. With close code 1013, "try again later", clients reconnect and query the events that they missed. */
function missed(reason: string): Error {
  return Object.assign(new Error(`Events may have been missed: ${reason}.`), {
    code: 'ERR_EVENTS_MISSED',
    closeCode: 1013,
  });
}
