import type { ServerResponse } from 'node:http';
import { isAborted as isConnectionLost } from '../../http/reply/response-state.ts';

/**
 * Whether the client has disconnected. In the HTTP/2 compatibility API the socket is then missing or
 * destroyed.
 */
export function isAborted(res: ServerResponse): boolean {
  return isConnectionLost(res) || ('stream' in res && res.socket?.destroyed !== false);
}
