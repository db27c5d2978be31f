export { resumedCursor } from '../src/pubsub/cursor.ts';
export { filter, latest, map, merge } from '../src/pubsub/derived.ts';
export { createPubSub } from '../src/pubsub/pubsub.ts';
export type * from '../types/pubsub.ts';
export type * from '../types/redis.ts';
