import {
  type PubSubOptions,
  type RedisSource,
  type RedisTransportOptions,
  redis,
} from '../../middleware/pubsub.ts';

/** The options of a pubsub and of its Redis in one object, so that a test can replace single ones. */
export type RedisPubSubOptions = PubSubOptions & RedisTransportOptions & { redis?: RedisSource | undefined };

export function withRedis({
  redis: source,
  prefix,
  sharded,
  heartbeat,
  commandTimeout,
  ...options
}: RedisPubSubOptions): PubSubOptions {
  if (source === undefined) return options;
  return { transport: redis(source, { prefix, sharded, heartbeat, commandTimeout }), ...options };
}
