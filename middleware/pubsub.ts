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
 * Creates a transport for `createPubSub` that carries events over a Redis or a cluster: a URL, for which the package `redis`,
 * `ioredis` or `iovalkey` is needed, or a client. It opens two connections with the settings of the client, and reconnects
 * even if the client itself would give up. Without options, write `transport: url`.
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
 * cursors miss nothing when it restarts. The file is created, its directory must exist. Only one process can use it:
 * `createPubSub` throws in another one after 5 seconds. Needs Node 24 or later.
 *
 * @throws TypeError (code `ERR_OPTION`) for a value that is not a path.
 * @example
 * const createEvents = () => createPubSub({ transport: file('/var/lib/app/events.db') });
 */
export function file(path: string): EventTransport {
  return new FileTransport(path);
}
