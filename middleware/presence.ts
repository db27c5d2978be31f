export { presence } from '../src/presence/room.ts';
export type * from '../types/presence.ts';
