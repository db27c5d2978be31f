import { FileTransport } from '../src/pubsub/file-transport.ts';
import { RedisTransport } from '../src/pubsub/redis-transport.ts';
import type { EventTransport, RedisTransportOptions } from '../types/pubsub.ts';
import type { RedisSource } from '../types/redis.ts';

export { resumedCursor } from '../src/pubsub/cursor.ts';
export { filter, latest, map, merge } from '../src/pubsub/derived.ts';
export { createPubSub } from '../src/pubsub/pubsub.ts';
export type * from '../types/pubsub.ts';
export type * from '../types/redis.ts';

/**
 * Creates a transport for `createPubSub` that carries events over a Redis, or a cluster: a URL, with the package `redis`,
 * `ioredis` or `iovalkey`, or a client. Two connections with the settings of a client are opened, which connect again even
 * if its own strategy gives up. Without options, write `transport: url`.
 *
 * @throws TypeError (code `ERR_OPTION`) for an unknown option or a wrong value.
 * @example
 * const events = createPubSub({ transport: redis('redis://localhost:6379', { prefix: 'shop:' }) });
 */
export function redis(redis: RedisSource, options?: RedisTransportOptions): EventTransport {
  return new RedisTransport(redis, options);
}

/**
 * Creates a transport for `createPubSub` that stores the events of this process in a file of SQLite, so that clients with
 * cursors miss nothing when it restarts. The file is created if it does not exist; its directory must. One process uses it
 * at a time: `createPubSub` throws in another one, after it has waited for 5 seconds. Needs Node 24 or later.
 *
 * @throws TypeError (code `ERR_OPTION`) for a value that is not a path.
 * @example
 * const createEvents = () => createPubSub({ transport: file('/var/lib/app/events.db') });
 */
export function file(path: string): EventTransport {
  return new FileTransport(path);
}
