import { ServerResponse } from 'node:http';
import { addVary } from '../../http/negotiation/vary.ts';
import type { HeaderList } from '../file/representation.ts';

/** Whether the answer was begun elsewhere, or nobody waits for it any more. */
export function isOver(res: ServerResponse): boolean {
  return res.headersSent || res.writableEnded || isGone(res);
}

/** Whether the client has gone. A response of the HTTP/2 compatibility API tells by its socket: none, or a dead one. */
export function isGone(res: ServerResponse): boolean {
  return res.destroyed || ('stream' in res && res.socket?.destroyed !== false);
}

/** Names of headers that somebody in front of us set, in lower case; undefined: we are the first to touch the response. */
export type Preset = readonly string[] | undefined;

/**
 * What is set already. A wrapped `writeHead` may set headers at the last moment: older versions of on-headers (morgan,
 * compression, sessions) turn a flat list of them into garbage, so a response with one counts as touched.
 */
export function presetOf(res: ServerResponse): Preset {
  const names = res.getHeaderNames();
  const isUntouched = names.length === 0 && res.writeHead === ServerResponse.prototype.writeHead;
  return isUntouched ? undefined : names;
}

/** Sets the status and headers; what is set already stays, but for the framing of the body, which only we know. */
export function setHead(
  res: ServerResponse,
  status: number,
  headers: HeaderList,
  preset: readonly string[] = res.getHeaderNames(),
): void {
  res.statusCode = status;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    if (name === 'Vary') addVary(res, value);
    else if (isFraming(name) || !preset.includes(name.toLowerCase())) res.setHeader(name, value);
  }
}

/** Writes the head in the cheapest form that is safe for this response. */
export function writeHead(res: ServerResponse, status: number, headers: HeaderList, preset: Preset): void {
  if (preset === undefined) res.writeHead(status, headers as string[]);
  else setHead(res, status, headers, preset);
}

function isFraming(name: string): boolean {
  return name === 'Content-Length' || name === 'Content-Range' || name === 'Content-Encoding';
}
