import type { ServerResponse } from 'node:http';

/** Whether the client has disconnected. In the HTTP/2 compatibility API the socket shows it: missing or destroyed. */
export function isAborted(res: ServerResponse): boolean {
  return res.destroyed || ('stream' in res && res.socket?.destroyed !== false);
}
