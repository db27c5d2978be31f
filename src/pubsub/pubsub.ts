import type { PubSub, PubSubOptions, RedisClient } from '../../types/pubsub.ts';
import { resolveOptions } from '../options/resolve-options.ts';
import { isFunction, isObject, isString, positive, type Rules, rule } from '../options/rules.ts';
import { PUBSUB_OPTIONS } from '../options/scopes.ts';
import { createQueue, type Queue } from './queue.ts';
import { connectRedis, FOREIGN, type Transport } from './redis.ts';

interface Settled {
  redis: string | RedisClient | undefined;
  prefix: string;
  bufferSize: number;
  onGap: () => void;
  onError: (error: Error) => void;
}

const isRedis = (value: unknown): boolean =>
  isString(value) ? /^rediss?:\/\//.test(value) : isObject(value) && isFunction(value['duplicate']);
const ignore = (): void => undefined;

const RULES: Rules<Settled> = {
  redis: rule(undefined, isRedis, 'a redis:// or rediss:// URL, or an ioredis client'),
  prefix: rule('espalier:', isString, 'a string'),
  bufferSize: positive(1024),
  onGap: rule(ignore, isFunction, 'a function'),
  onError: rule(ignore, isFunction, 'a function'),
};

/**
 * Events for subscriptions: within this process, or with `redis` in every process on the same Redis.
 *
 * @throws TypeError for an unknown option or a wrong value.
 */
export function createPubSub<Events extends object = Record<string, unknown>>(
  options?: PubSubOptions,
): PubSub<Events> {
  const { redis, prefix, bufferSize, onGap, onError } = resolveOptions(PUBSUB_OPTIONS, options, RULES);
  const queues = new Set<Queue<unknown>>();
  // Refuses those who wait for Redis: what is queued between two attempts to connect is never settled by ioredis.
  const waiting = new Set<(error: Error) => void>();
  // Everything below goes through this one promise, so that joins, leaves and publishes keep their order.
  const transport =
    redis === undefined ? Promise.resolve(inMemory()) : connectRedis(redis, { gap, error: onError });
  transport.catch(onError);
  let closed = false;

  function gap(): void {
    for (const queue of [...queues]) queue.end(missed('the connection to Redis was lost for a moment'));
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
      const { detail } = event as CustomEvent<T | typeof FOREIGN>;
      if (detail !== FOREIGN) queue.push(detail);
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
        if (closed) return reject(left());
        waiting.add(reject);
        transport
          .then((open) => open.ready(prefix + topic))
          .then(() => resolve(), reject)
          .finally(() => waiting.delete(reject));
      });
    },
    async close() {
      closed = true;
      for (const refuse of waiting) refuse(left());
      for (const queue of [...queues]) queue.end();
      await transport.then((open) => open.close(), ignore);
    },
  };
}

const left = (): Error => new Error('Closed: close() was called before Redis confirmed the subscription');

function inMemory(): Transport {
  const done = (): Promise<void> => Promise.resolve();
  return { target: new EventTarget(), published: done, ready: done, close: done };
}

/** Why a stream ended early. 1013 "try again later": clients connect again, and ask for what they missed. */
function missed(reason: string): Error {
  return Object.assign(new Error(`Events may have been missed: ${reason}.`), {
    code: 'ERR_EVENTS_MISSED',
    closeCode: 1013,
  });
}
