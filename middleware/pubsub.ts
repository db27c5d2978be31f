export { createPubSub } from '../src/pubsub/pubsub.ts';
export { filter, map, merge } from '../src/pubsub/streams.ts';
export type * from '../types/pubsub.ts';
