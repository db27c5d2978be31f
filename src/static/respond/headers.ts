import { type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { toError } from '../../http/reply/http-error.ts';
import { destroyIncomplete } from '../../http/reply/response-state.ts';
import { addVary } from '../../http/reply/write-reply.ts';
import type { HeaderList } from '../file/representation.ts';
import { isAborted } from '../stream/is-aborted.ts';
import type { RequestTriple } from './request-context.ts';

/** Whether other code has responded or the client has disconnected. */
export function isFinished(res: ServerResponse): boolean {
  return res.headersSent || res.writableEnded || isAborted(res);
}

/** Passes an exception to the application. Destroys the response if its headers have been sent. */
export function failResponse({ res, next }: RequestTriple, error: unknown): void {
  if (res.headersSent) destroyIncomplete(res, error);
  else next(toError(error));
}

/**
 * Names of headers that earlier middleware has set, in lower case; undefined if the response is unchanged.
 */
export type PresetHeaders = readonly string[] | undefined;

/**
 * Returns the headers that are already set. A replaced `writeHead` may set headers at the last moment, and
 * older versions of on-headers (morgan, compression, sessions) corrupt a flat list of headers, so such a
 * response counts as changed.
 */
export function presetHeadersOf(res: ServerResponse): PresetHeaders {
  const names = res.getHeaderNames();
  const isUntouched = names.length === 0 && res.writeHead === ServerResponse.prototype.writeHead;
  return isUntouched ? undefined : names;
}

/**
 * Sets the status and the headers. Keeps headers that are already set, except framing headers of the body.
 */
export function setResponseHeaders(
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

/** The status and the headers of a response that was not sent yet. */
interface ResponseHead {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
}

/** Restores an earlier status and earlier headers of a response. */
export function restoreHead(res: ServerResponse, { status, headers }: ResponseHead): void {
  res.statusCode = status;
  for (const name of res.getHeaderNames()) res.removeHeader(name);
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
}

/** Writes the status and the headers in the cheapest form that is safe for this response. */
export function writeHeaders(
  res: ServerResponse,
  status: number,
  headers: HeaderList,
  preset: PresetHeaders,
): void {
  if (preset === undefined) res.writeHead(status, headers as string[]);
  else setResponseHeaders(res, status, headers, preset);
}

function isFraming(name: string): boolean {
  return name === 'Content-Length' || name === 'Content-Range' || name === 'Content-Encoding';
}
