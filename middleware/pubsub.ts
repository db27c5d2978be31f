export { createPubSub } from '../src/pubsub/pubsub.ts';
export type { PubSub, PubSubOptions, RedisClient } from '../types/pubsub.ts';
