import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { InjectedResponse } from '../../../types/testing.ts';
import { parseSetCookie } from './cookies.ts';

/** The characters of a body in an error message. */
const EXCERPT = 200;

/** Receives the whole body of a response. */
export async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A response that was received completely. */
export class ReceivedResponse implements InjectedResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly (readonly [name: string, value: string])[];
  readonly trailers: Readonly<Record<string, string | undefined>>;
  readonly cookies: Readonly<Record<string, string>>;
  readonly body: Buffer;

  constructor(message: IncomingMessage, body: Buffer) {
    // Both are set in responses that a client receives.
    this.status = message.statusCode as number;
    this.statusText = message.statusMessage as string;
    this.headers = message.headers;
    this.rawHeaders = pairsOf(message.rawHeaders);
    this.trailers = message.trailers;
    this.cookies = parseSetCookie(message.headers['set-cookie'] ?? []);
    this.body = body;
  }

  get text(): string {
    return this.body.toString();
  }

  json<Value = unknown>(): Value {
    try {
      return JSON.parse(this.text);
    } catch (cause) {
      const type = this.headers['content-type'] ?? 'no Content-Type';
      const start = this.text.slice(0, EXCERPT);
      const message = `The body of the response is not JSON (status ${this.status}, ${type}): ${start}`;
      throw new Error(message, { cause });
    }
  }
}

function pairsOf(list: readonly string[]): (readonly [string, string])[] {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1] as string] as const] : []));
}
