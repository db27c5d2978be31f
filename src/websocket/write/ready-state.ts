import type { WebSocketLike } from '../../../types/subscriptions.ts';

/** `OPEN`, the same number in every implementation (WHATWG WebSockets, "ready state"). */
const OPEN = 1;

export const isOpen = (websocket: WebSocketLike): boolean => websocket.readyState === OPEN;
