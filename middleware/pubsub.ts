export { createPubSub } from '../src/pubsub/pubsub.ts';
export type * from '../types/pubsub.ts';
