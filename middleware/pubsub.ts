export { resumedCursor } from '../src/pubsub/cursor.ts';
export { createPubSub } from '../src/pubsub/pubsub.ts';
export { filter, map, merge } from '../src/pubsub/streams/derived.ts';
export type * from '../types/pubsub.ts';
