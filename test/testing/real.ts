import { Agent, request } from 'node:http';

/** A response as both clients of a comparison see it. */
export interface Seen {
  readonly status: number | undefined;
  readonly statusText: string | undefined;
  readonly headers: readonly (readonly string[])[];
  readonly trailers: object;
  readonly body: string;
}

/** The headers whose values differ from request to request. */
const VARYING = /^(date|etag-of-body|x-response-time)$/i;

/** Replaces the values that differ between two equal responses. */
export function comparable(rawHeaders: readonly (readonly string[])[]): string[][] {
  return rawHeaders.map(([name = '', value = '']) => [
    name,
    VARYING.test(name) ? 'varies' : withoutNonce(value),
  ]);
}

/** The nonce of the policy of GraphiQL and the boundaries of ranges are new for each response. */
export const withoutNonce = (text: string): string =>
  text.replace(/nonce(-|=")[\w+/=-]+/g, 'nonce').replace(/(boundary=|--)[0-9a-f]{36}/g, '$1boundary');

const agent = new Agent({ keepAlive: true });

afterAll(() => agent.destroy());

/** Sends a request over a real connection. */
export function send(
  port: number,
  { method = 'GET', path = '/', headers = {}, body }: SentRequest,
): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { port, host: '127.0.0.1', agent, method, path, headers: { host: 'localhost', ...headers } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const pairs = response.rawHeaders.flatMap((name, index) =>
            index % 2 === 0 ? [[name, response.rawHeaders[index + 1] ?? '']] : [],
          );
          resolve({
            status: response.statusCode,
            statusText: response.statusMessage,
            headers: comparable(pairs),
            trailers: { ...response.trailers },
            body: withoutNonce(Buffer.concat(chunks).toString('latin1')),
          });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}

export interface SentRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Buffer;
}
